"""Run tasks on Dask: persist blocks, map functions over them, detect dead clusters."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from concurrent.futures import wait as wait_for
from typing import Any

from dask.delayed import Delayed, delayed
from distributed import Client, KilledWorker, as_completed

from ordspan.wording import hint, join_hints

FIRST_WORKER_SECONDS = 5.0
"""How long to wait for the first worker."""

POLL_SECONDS, WAIT_SECONDS = 0.01, 1.0
CHECK_SECONDS = 5.0
"""Shortest time between two checks of the scheduler while no result arrives."""

FAILED = ("error", "cancelled")
"""States of failed futures; a "lost" one died with its worker and is recomputed."""

LOST_FOR_GOOD = ("already forgotten", "lost dependencies", "unknown")
"""Reasons why Dask cancels tasks whose inputs cannot be recomputed; "unknown" if it has forgotten
the task itself."""

WORKING = ("executing", "long-running", "flight")
"""States of tasks that will finish, even on a paused worker."""


class Cluster:
    """A client with the settings of one call.

    Parameters
    ----------
    client : distributed.Client
        Connected, and not asynchronous.
    timeout : float
        Seconds without answer from the scheduler, or without a working worker, before an error.
    retries : int
        How often Dask retries a task that raised.
    persist : bool
        Whether blocks stay in the memory of the workers.
    """

    def __init__(self, client: Any, *, timeout: float, retries: int, persist: bool) -> None:
        self.client = _check_client(client)
        self.address = client.scheduler.address
        self.timeout = timeout
        self.retries = retries
        self.persist = persist
        self.token = uuid.uuid4().hex[:8]
        self._kept: list[Any] = []
        self._wait_for_a_worker()

    def _wait_for_a_worker(self) -> None:
        patience = min(FIRST_WORKER_SECONDS, self.timeout)
        try:
            self.client.wait_for_workers(1, timeout=patience)
        except TimeoutError:
            if not self._workers():  # paused workers may resume
                raise RuntimeError(
                    f"the cluster at {self.address} had no worker within {patience:g} s; start "
                    "one, for example with: dask worker ADDRESS"
                ) from None
        except OSError as error:
            raise self._lost_scheduler(error) from None

    def keep(self, blocks: list[Delayed]) -> list[Any]:
        """Persist the blocks on the workers, unless they are recomputed in each round."""
        if not self.persist:
            return blocks
        futures: list[Any] = self.client.compute(blocks, retries=self.retries)
        self._kept += futures
        return futures

    def release(self) -> None:
        """Release persisted blocks, even if an error still refers to them."""
        for future in self._kept:
            future.release()

    def place(self, value: Any, key: str) -> Any:
        """A value as a task, which Dask recomputes if its worker dies, unlike scattered data."""
        return self._tasks(_identity, [(value,)], [key])[0]

    def _tasks(
        self, function: Callable[..., Any], blocks: list[tuple[Any, ...]], keys: list[str]
    ) -> list[Any]:
        """One task per block; not started yet if blocks are not persisted."""
        if self.persist:  # arguments are on the workers: less work for the client
            arguments = zip(*blocks, strict=True)
            futures = self.client.map(
                function, *arguments, key=keys, retries=self.retries, pure=False
            )
            return list(futures)
        task = delayed(function, pure=False)
        return [task(*block, dask_key_name=key) for block, key in zip(blocks, keys, strict=True)]

    def run(
        self,
        function: Callable[..., Any],
        blocks: list[tuple[Any, ...]],
        names: list[str],
        label: str,
        arrived: Callable[[Any], None] | None = None,
    ) -> list[Any]:
        """Apply a function to each block; results are in the order of the blocks.

        Parameters
        ----------
        function : callable
            What each task does.
        blocks : list of tuples
            The arguments of each task.
        names : list of str
            Names of the blocks for messages; the first error ends the call.
        label : str
            Name of the tasks on the Dask dashboard.
        arrived : callable, optional
            Called with each result as it arrives, in any order; by default all results are
            fetched in one call at the end, which is less work for the client.
        """
        if self.client.status != "running":
            raise self._lost_scheduler(f"the client is {self.client.status}")
        if not blocks:
            return []
        keys = [f"{label}-block-{number}-{self.token}" for number in range(len(blocks))]
        futures = self._tasks(function, blocks, keys)
        if not self.persist:
            futures = self.client.compute(futures, retries=self.retries)
        called = dict(zip(keys, names, strict=False))
        found: dict[str, Any] = {}
        try:
            for batch in [futures] if arrived is None else self._arrivals(futures):
                for future, result in zip(batch, self._gather(batch, called), strict=True):
                    found[future.key] = result
                    if arrived is not None:
                        arrived(result)
        finally:
            for future in futures:
                future.release()
        return [found[key] for key in keys]

    def _arrivals(self, futures: list[Any]) -> Iterator[list[Any]]:
        """Futures as they finish; raises if the cluster no longer answers."""
        # use the loop of this client, which may not be the default client
        waiting = as_completed(futures, loop=self.client.loop)
        self._reset_clock()
        while not waiting.is_empty():
            batch = waiting.next_batch(block=False)
            if batch:
                yield batch
                self._reset_clock()
            else:
                time.sleep(POLL_SECONDS)
                self._check_cluster()

    def _gather(self, futures: list[Any], called: dict[str, str]) -> list[Any]:
        """Results of all futures; raises the error of the first that fails."""
        self._reset_clock()
        answer = asyncio.run_coroutine_threadsafe(
            self.client.gather(futures, asynchronous=True), self.client.loop.asyncio_loop
        )
        while not wait_for([answer], timeout=WAIT_SECONDS).done:
            self._check_cluster()  # if it raises, releasing the futures ends the gather too
        try:
            return answer.result()
        except (Exception, asyncio.CancelledError) as error:
            reason = error
        for future in futures:
            if future.status in FAILED:
                raise self._block_error(called[future.key], future)
        raise (
            self._lost_scheduler(reason) if isinstance(reason, OSError | CancelledError) else reason
        )

    def _reset_clock(self) -> None:
        self._last_check = self._last_ok = time.monotonic()

    def _check_cluster(self) -> None:
        """Check now and then that the scheduler answers and workers can work."""
        if time.monotonic() - self._last_check < min(CHECK_SECONDS, self.timeout / 2):
            return
        problem = self._problem()
        self._last_check = time.monotonic()
        if not problem:
            self._last_ok = self._last_check
        elif self._last_check - self._last_ok > self.timeout:
            raise RuntimeError(f"the cluster at {self.address} has had {problem}" + _resume_hint())

    def _problem(self) -> str:
        """Why no result may ever arrive; empty if one may."""
        workers, seconds = self._workers(), f"for {self.timeout:g} s"
        if not workers:
            return f"no worker {seconds}"
        paused = sum(worker["status"] == "paused" for worker in workers)
        if not paused or any(_is_working(worker) for worker in workers):
            return ""
        remedies = ["give the workers more memory", "split the data into more blocks"]
        if self.persist:
            remedies.append("recompute the blocks in each round with persist=False")
        stuck = f"{paused} of {len(workers)} workers paused and none working {seconds}"
        return stuck + join_hints(*remedies)

    def _workers(self) -> list[dict[str, Any]]:
        """Information on all workers; raises if the scheduler does not answer."""
        try:
            known = self.client.sync(
                self.client.scheduler.identity, callback_timeout=self.timeout / 2
            )
        except (TimeoutError, OSError, RuntimeError, AttributeError) as error:
            raise self._lost_scheduler(error) from None
        return [*known["workers"].values()]

    def _lost_scheduler(self, error: Any) -> ConnectionError:
        reason = str(error) or f"no answer within {self.timeout / 2:g} s"
        return ConnectionError(f"lost the scheduler at {self.address}: {reason}" + _resume_hint())

    def _block_error(self, name: str, future: Any) -> Exception:
        """The error to raise for a block that failed."""
        if future.status == "cancelled":
            return self._cancelled_error(name, future)
        error = future._state.exception
        return (
            _killed_worker_error(name, error)
            if isinstance(error, KilledWorker)
            else _named(name, error)
        )

    def _cancelled_error(self, name: str, future: Any) -> Exception:
        taken = [future, *(kept for kept in self._kept if kept.status == "cancelled")]
        reasons = [one._state.exception.reason for one in taken]
        for reason in reasons:
            if "connection" in reason:  # persisted blocks are gone, even after a reconnect
                return self._lost_scheduler(reason)
        if reasons[0] in LOST_FOR_GOOD:
            return RuntimeError(
                f"{name}: its data was lost with a worker, and Dask cannot recompute it "
                f"({reasons[0]}); if it was scattered, load or compute it in tasks instead"
            )
        return RuntimeError(f"{name}: cancelled by Dask ({reasons[0]})" + _resume_hint())


def _resume_hint() -> str:
    resume = hint("resume=True", "--resume")
    return (
        f"; with checkpoint=PATH, or {resume} for files, the next call continues from the last "
        "finished round"
    )


def _is_working(worker: dict[str, Any]) -> bool:
    counts = worker["metrics"].get("task_counts", {})
    return any(counts.get(state, 0) for state in WORKING)


def _identity(value: Any) -> Any:
    return value


def _killed_worker_error(name: str, error: KilledWorker) -> RuntimeError:
    """The error for a block whose workers die."""
    return RuntimeError(
        f"{name}: every worker that took it died, {error.allowed_failures + 1} in a row, perhaps "
        "for lack of memory; split the data into more blocks"
    )


def _named(name: str, error: Exception) -> ValueError:
    """The error of a block, prefixed with the name of the block, which may include its path."""
    kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
    message, path = str(error), name.partition(" (")[2].removesuffix(")")
    glue = ", " if not kind and message.startswith("row ") else ": "
    if path and not kind and message.startswith(path):
        glue, message = "", message.removeprefix(path)
    refusal = ValueError(f"{name}{glue}{kind}{message}")
    refusal.__cause__ = error
    return refusal


def _check_client(client: Any) -> Any:
    """Return the client; raises if it is not connected and synchronous."""
    if not isinstance(client, Client):
        raise TypeError(
            f"client is {client!r}, not a distributed.Client; connect one to your cluster with "
            "Client(ADDRESS), or start one on this machine with Client()"
        )
    if client.asynchronous:
        raise ValueError("client is asynchronous; give one made with asynchronous=False")
    if client.status != "running":
        raise ValueError(f"client is {client.status}, not running; connect a new one")
    return client
