"""What is asked of Dask: keep blocks, run one task for each, notice when nobody answers."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from typing import Any

from dask.delayed import Delayed, delayed
from distributed import Client, KilledWorker, as_completed, wait

from ordspan.wording import spoken_here

FIRST_WORKER_SECONDS = 5.0
"""How long a cluster may take to show its first worker."""

POLL_SECONDS, WAIT_SECONDS = 0.01, 1.0
LOOK_SECONDS = 5.0
"""How often, at most, to ask whether the scheduler is still there while nothing arrives."""

GO_ON = "; with checkpoint=PATH the next call goes on from the last finished round"


class Cluster:
    """A running client, with the settings of one call.

    Parameters
    ----------
    client : distributed.Client
        Connected, and not asynchronous.
    timeout : float
        Seconds after which silence is an error.
    retries : int
        How often Dask repeats a task that raised.
    persist : bool
        Whether blocks stay on the workers once they are there.
    """

    def __init__(self, client: Any, *, timeout: float, retries: int, persist: bool) -> None:
        self.client = _running(client)
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
            raise RuntimeError(
                f"the cluster at {self.address} had no worker within {patience:g} s; start one, "
                "for example with: dask worker ADDRESS"
            ) from None
        except OSError as error:
            raise self._lost(error) from None

    def keep(self, blocks: list[Delayed]) -> list[Any]:
        """The blocks, on the workers from now on unless each round is to make them anew."""
        if not self.persist:
            return blocks
        futures: list[Any] = self.client.compute(blocks, retries=self.retries)
        self._kept += futures
        return futures

    def release(self) -> None:
        """Let go of the blocks that were kept, also where an error still refers to them."""
        for future in self._kept:
            future.release()

    def place(self, value: Any, key: str) -> Any:
        """A value as a task: unlike scattered data, Dask makes it anew where its worker dies."""
        return self._tasks(_same, [(value,)], [key])[0]

    def _tasks(
        self, function: Callable[..., Any], blocks: list[tuple[Any, ...]], keys: list[str]
    ) -> list[Any]:
        """One task for each block, not started yet where blocks are made anew."""
        if self.persist:  # all arguments are there: a quarter less work for the client
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
        """Results of a function of each block, in the order of the blocks.

        Parameters
        ----------
        function : callable
            What each task does.
        blocks : list of tuples
            The arguments of each task.
        names : list of str
            What the blocks are called in messages; one that raises ends the call with its name.
        label : str
            What the tasks are called on Dask's dashboard.
        arrived : callable, optional
            Told each result when it comes, in whatever order that is; left out, all are fetched in
            one call at the end, which is less work for the client.
        """
        if self.client.status != "running":
            raise self._lost(f"the client is {self.client.status}")
        if not blocks:
            return []
        keys = [f"{label}-block-{number}-{self.token}" for number in range(len(blocks))]
        futures = self._tasks(spoken_here(function), blocks, keys)
        if not self.persist:
            futures = self.client.compute(futures, retries=self.retries)
        called = {future.key: name for future, name in zip(futures, names, strict=False)}
        found: dict[str, Any] = {}
        try:
            for batch in self._all_at_once(futures) if arrived is None else self._arrivals(futures):
                for future in batch:
                    if future.status not in ("pending", "finished"):
                        raise self._refusal(called[future.key], future)
                for future, result in zip(batch, self._gathered(batch), strict=True):
                    found[future.key] = result
                    if arrived is not None:
                        arrived(result)
        finally:
            for future in futures:
                future.release()
        return [found[key] for key in keys]

    def _all_at_once(self, futures: list[Any]) -> Iterator[list[Any]]:
        """All futures when all have come to an end or one has failed: less work than one by one."""
        self._heard_of_workers()
        with self.client.as_current():  # the default one may be another client of this process
            while True:
                try:
                    wait(futures, timeout=WAIT_SECONDS)
                    break
                except CancelledError:
                    break
                except TimeoutError:
                    if any(future.status not in ("pending", "finished") for future in futures):
                        break
                    self._look()
        yield futures

    def _arrivals(self, futures: list[Any]) -> Iterator[list[Any]]:
        """Futures that have come to an end, as they do; an error when nobody answers any more."""
        # on its own client's loop: another client of this process may be the default one
        waiting = as_completed(futures, loop=self.client.loop)
        self._heard_of_workers()
        while not waiting.is_empty():
            batch = waiting.next_batch(block=False)
            if batch:
                yield batch
                self._heard_of_workers()
            else:
                time.sleep(POLL_SECONDS)
                self._look()

    def _gathered(self, futures: list[Any]) -> list[Any]:
        """Results of finished futures; made anew by Dask where their worker has died since."""
        while True:
            try:
                return self._ask(lambda: self.client.gather(futures, asynchronous=True))
            except TimeoutError:
                self._look(at_once=True)
            except KilledWorker as error:  # made anew after its worker had died, and again in vain
                raise _deadly(str(error.task), error) from None
            except (OSError, CancelledError) as error:
                raise self._lost(error) from None

    def _ask(self, question: Callable[[], Any]) -> Any:
        return self.client.sync(question, callback_timeout=self.timeout / 2)

    def _heard_of_workers(self) -> None:
        self._last_look = self._last_worker = time.monotonic()

    def _look(self, *, at_once: bool = False) -> None:
        """See now and then whether the scheduler answers and has workers; an error if not."""
        every = min(LOOK_SECONDS, self.timeout / 2)
        if not at_once and time.monotonic() - self._last_look < every:
            return
        if self._n_workers():
            self._heard_of_workers()
        elif time.monotonic() - self._last_worker > self.timeout:
            raise RuntimeError(
                f"the cluster at {self.address} has had no worker for {self.timeout:g} s" + GO_ON
            )
        self._last_look = time.monotonic()

    def _n_workers(self) -> int:
        """How many workers the scheduler has; an error when it does not answer."""
        try:
            threads = self._ask(self.client.scheduler.ncores)
        except (TimeoutError, OSError, RuntimeError, AttributeError) as error:
            raise self._lost(error) from None
        return len(threads)

    def _lost(self, error: Any) -> ConnectionError:
        reason = str(error) or f"no answer within {self.timeout / 2:g} s"
        return ConnectionError(f"lost the scheduler at {self.address}: {reason}" + GO_ON)

    def _refusal(self, name: str, future: Any) -> Exception:
        """The error to raise for a block that did not finish."""
        error = _error_of(future)
        if isinstance(error, CancelledError):
            reason = getattr(error, "reason", "cancelled")
            if "connection" in reason:
                return self._lost(reason)
            return RuntimeError(f"{name}: taken back by Dask ({reason})" + GO_ON)
        if isinstance(error, KilledWorker):
            return _deadly(name, error)
        return _named(name, error)


def _same(value: Any) -> Any:
    return value


def _deadly(name: str, error: KilledWorker) -> RuntimeError:
    """What to say of a block whose workers die."""
    return RuntimeError(
        f"{name}: every worker that took it died, {error.allowed_failures + 1} in a row; is there "
        "too little memory for a block? cut the data into more blocks"
    )


def _named(name: str, error: Exception) -> ValueError:
    """What a block raised, with the name of the block in front."""
    kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
    glue = ", " if not kind and str(error).startswith("row ") else ": "
    refusal = ValueError(f"{name}{glue}{kind}{error}")
    refusal.__cause__ = error
    return refusal


def _error_of(future: Any) -> Exception:
    """Why a future that has come to an end did not finish."""
    try:
        future.result()
    except Exception as error:
        return error
    raise AssertionError("the future finished")


def _running(client: Any) -> Any:
    """The client, if it is one that can be asked now."""
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
