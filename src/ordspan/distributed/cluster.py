"""Run pure tasks on Dask: the same results whoever computes them, or a clear error."""

import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import dask
from dask.delayed import Delayed, delayed
from dask.utils import parse_timedelta
from distributed import Client, KilledWorker, as_completed

FIRST_WORKER_SECONDS = 5.0
RESUME = (
    "; with checkpoint=PATH, or resume=True (--resume) for files, the next call continues from the "
    "last finished round"
)
WORKING = ("executing", "long-running", "flight")  # tasks that finish even on a paused worker


class Cluster:
    """A client that runs the tasks of one call.

    Dask's setting ``ordspan.timeout`` is the time without an answer from the scheduler, or without
    a working worker, before an error.

    Parameters
    ----------
    client : distributed.Client
        Connected, and not asynchronous.
    """

    def __init__(self, client: Any) -> None:
        if not isinstance(client, Client):
            raise TypeError(
                f"client is {client!r}, not a distributed.Client; connect one to your cluster with "
                "Client(ADDRESS), or start one on this machine with Client()"
            )
        if client.asynchronous or client.status != "running":
            state = "asynchronous" if client.asynchronous else client.status
            raise ValueError(f"client is {state}; connect a new one, which is not asynchronous")
        self.client, self.address = client, client.scheduler.address
        self.timeout = parse_timedelta(dask.config.get("ordspan.timeout", default=60))
        self._token = uuid.uuid4().hex[:8]
        patience = min(FIRST_WORKER_SECONDS, self.timeout)
        try:
            client.wait_for_workers(1, timeout=patience)
        except TimeoutError:
            raise RuntimeError(
                f"the cluster at {self.address} had no running worker within {patience:g} s; start "
                "one, for example with: dask worker ADDRESS"
            ) from None
        except OSError as error:
            raise self._lost_scheduler(error) from None

    def share(self, value: Any, label: str) -> Delayed:
        """A value that many tasks need; unlike scattered data it survives the death of workers."""
        return delayed(value, name=f"{label}-{self._token}", pure=False)

    def run(
        self,
        function: Callable[..., Any],
        blocks: list[tuple[Any, ...]],
        names: Sequence[str],
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
        names : sequence of str
            Names of the blocks for messages; the first error ends the call.
        label : str
            Name of the tasks on the Dask dashboard.
        arrived : callable, optional
            Called with each result as it arrives, in any order.
        """
        keys = [f"{label}-block-{number}-{self._token}" for number in range(len(blocks))]
        task = delayed(function, pure=False)
        tasks = [task(*block, dask_key_name=key) for block, key in zip(blocks, keys, strict=True)]
        if self.client.status != "running":
            raise self._lost_scheduler(f"the client is {self.client.status}")
        futures = self.client.compute(tasks)
        block_names, results = dict(zip(keys, names, strict=True)), {}
        try:
            if arrived is None:  # fetching results one by one slows the workers down
                for future in self._completed(futures, with_results=False):
                    if future.status == "error":
                        break
            for future, result in self._completed(futures):
                # not by the status of the future, which may have changed since
                if isinstance(result, BaseException):
                    raise self._cancelled(block_names[future.key], result)
                if isinstance(result, tuple) and isinstance(result[1], BaseException):
                    raise _block_error(block_names[future.key], result[1])
                results[future.key] = result
                if arrived is not None:
                    arrived(result)
        finally:
            for future in futures:
                future.release()
        return [results[key] for key in keys]

    def _completed(self, futures: list[Any], with_results: bool = True) -> Iterator[Any]:
        """Futures, with their results, as they arrive; raises if the cluster no longer works."""
        pending, problem = {*futures}, ""
        while pending:
            # the loop of this client, which may not be the default client
            arrivals = as_completed(
                pending, self.client.loop, with_results, False, timeout=self.timeout / 2
            )
            try:
                for arrival in arrivals:
                    pending.remove(arrival[0] if with_results else arrival)
                    problem = ""
                    yield arrival
            except TimeoutError:
                before, problem = problem, self._problem()
                if before and problem:  # and nothing arrived since
                    raise RuntimeError(
                        f"the cluster at {self.address} has had {problem}" + RESUME
                    ) from None

    def _problem(self) -> str:
        """Why no result may ever arrive; empty if one may."""
        try:
            scheduler = self.client.sync(
                self.client.scheduler.identity, callback_timeout=self.timeout / 2
            )
        except (TimeoutError, OSError, RuntimeError, AttributeError) as error:
            raise self._lost_scheduler(error) from None
        workers, seconds = scheduler["workers"].values(), f"for {self.timeout / 2:g} s"
        if not workers:
            return f"no worker {seconds}"
        paused = sum(worker["status"] == "paused" for worker in workers)
        counts = [worker["metrics"].get("task_counts", {}) for worker in workers]
        if not paused or any(count.get(state) for count in counts for state in WORKING):
            return ""
        return (
            f"{paused} of {len(workers)} workers paused for lack of memory and none working "
            f"{seconds}; use more memory or smaller blocks, or do not persist them"
        )

    def _lost_scheduler(self, error: Any) -> ConnectionError:
        reason = str(error) or f"no answer within {self.timeout / 2:g} s"
        return ConnectionError(f"lost the scheduler at {self.address}: {reason}" + RESUME)

    def _cancelled(self, name: str, error: BaseException) -> Exception:
        reason = getattr(error, "reason", str(error))
        if "connection" in reason:
            return self._lost_scheduler(reason)
        return RuntimeError(
            f"{name}: Dask has lost its data and cannot recompute it ({reason}): the scheduler was "
            "lost, or data was scattered and its worker died; load or compute the data in tasks"
            + RESUME
        )


def _block_error(name: str, error: BaseException) -> Exception:
    """An error of the same meaning that names the block."""
    if isinstance(error, KilledWorker):
        return RuntimeError(
            f"{name}: every worker that took it died, {error.allowed_failures + 1} in a row, "
            "perhaps for lack of memory; split the data into more blocks"
        )
    message = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
    if not message.startswith(name):
        message = f"{name}{', ' if message.startswith('row ') else ': '}{message}"
    refusal = ValueError(message)
    refusal.__cause__ = error
    return refusal
