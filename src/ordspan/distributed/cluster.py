"""Dask: pure tasks with the same results whoever computes them, on the blocks of collections."""

import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.delayed import Delayed, delayed
from dask.utils import parse_timedelta
from distributed import Client, KilledWorker, as_completed
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ordspan.labels.ranks import distinct, find_classes, read_labels, refuse_missing
from ordspan.wording import shown

FIRST_WORKER_SECONDS = 5.0
RESUME = (
    "; with checkpoint=PATH, or resume=True (--resume) for files, the next call continues from the "
    "last finished round"
)
WORKING = ("executing", "long-running", "flight")  # tasks that finish even on a paused worker
Blocks = list[tuple[str, tuple[Any, Any]]]
"""A name for messages and the delayed rows and labels of every block."""


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


def is_frame(collection: Any) -> bool:
    """Whether a collection is a Dask data frame, without importing dask.dataframe."""
    return dask.is_dask_collection(collection) and hasattr(collection, "to_dask_array")


def whole_rows(X: Any) -> Any:
    """A Dask array with one block of columns."""
    if X.ndim != 2 or np.isnan(X.shape[1]):
        raise ValueError(
            f"X must be 2-dimensional with a known number of columns, got shape {X.shape}"
        )
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def blocks_of(cluster: Cluster, X: Any, y: Any, classes: Any) -> tuple[Blocks, Any, NDArray[Any]]:
    """The blocks of Dask collections, a row of zeros with their columns, and their grades."""
    for name, collection in (("X", X), ("y", y)):
        if not dask.is_dask_collection(collection):
            raise TypeError(
                f"{name} is a {type(collection).__name__}, not a Dask collection such as "
                "dask.array.from_array(rows, chunks=...); train on files with "
                "ordspan.train_files(files, model, dask=client), and on local rows with "
                "estimator.fit"
            )
    X = X if is_frame(X) else whole_rows(X)
    y = _aligned(X, y)
    rows, labels = _blocks(X), _blocks(y)
    if len(rows) != len(labels):
        raise ValueError(
            f"X has {len(rows)} blocks and y has {len(labels)}; split both the same way, for "
            "example with repartition or rechunk"
        )
    names = [f"block {number}" for number in range(len(rows))]
    sample: Any = np.zeros((1, X.shape[1]))
    if is_frame(X):
        import pandas as pd

        sample = pd.DataFrame(sample, columns=list(X.columns))
    grades = []
    if classes is None:
        grades = cluster.run(_distinct, [(block,) for block in labels], names, "ordspan-labels")
    pairs = zip(rows, labels, strict=True)
    return list(zip(names, pairs, strict=True)), sample, _union(grades, classes)


def _aligned(X: Any, y: Any) -> Any:
    """Labels with the same chunks as the rows, if known."""
    if is_frame(X) or is_frame(y):
        return y
    y = whole_rows(y) if y.ndim == 2 else y
    if np.isnan(X.shape[0]) or np.isnan(y.shape[0]):
        return y
    if X.shape[0] != y.shape[0]:
        raise ValueError(f"X has {X.shape[0]} rows, but y has {y.shape[0]} labels")
    return y.rechunk({0: X.chunks[0]})


def _blocks(collection: Any) -> list[Delayed]:
    # not optimised: X and y would no longer share inputs, and Dask could fuse different numbers
    # of Parquet files for X and for y
    blocks = collection.to_delayed(optimize_graph=False)
    return blocks.ravel().tolist() if isinstance(blocks, np.ndarray) else blocks


def _distinct(y: Any) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """The distinct labels of a block, and their order if known."""
    labels, order = read_labels(y)
    refuse_missing(labels)
    return distinct(labels), order


def _union(grades: list[tuple[NDArray[Any], NDArray[Any] | None]], classes: Any) -> NDArray[Any]:
    """The grades of all blocks, by the rules of ``fit``."""
    orders = [order for _, order in grades if order is not None]
    for order in orders:
        if not np.array_equal(order, orders[0]):
            raise ValueError(
                f"blocks differ in the order of their grades, {shown(orders[0])} and "
                f"{shown(order)}; give classes=[...]"
            )
    some = [labels for labels, _ in grades if labels.size]
    labels = np.unique(np.concatenate(some)) if some else np.empty(0)
    return find_classes(labels, orders[0] if orders else None, classes)


def predict(model: Any, X: Any) -> Any:
    """Grade of every row of a Dask collection, computed lazily.

    Parameters
    ----------
    model : estimator
        Any fitted estimator of ordspan.
    X : dask array or dask data frame
        Rows; blocks may be dense or CSR.

    Returns
    -------
    dask array or dask series
        Grades, in the blocks of ``X``; a series with the index of ``X`` if ``X`` is a data frame.

    Examples
    --------
    >>> import dask.array as da
    >>> from ordspan import OrdinalPA
    >>> from ordspan.distributed import predict
    >>> model = OrdinalPA(random_state=0).fit([[-2.0], [0.0], [2.0]], [1, 2, 3])
    >>> lazy = predict(model, da.from_array([[2.0], [-2.0]], chunks=1))
    >>> lazy.compute()
    array([3, 1])
    """
    check_is_fitted(model)
    if is_frame(X):
        return X.map_partitions(_series_of, model, meta=_series_of(X._meta, model))
    if not isinstance(X, da.Array):
        raise TypeError(
            f"X is a {type(X).__name__}; distributed.predict takes Dask arrays and data frames, "
            "model.predict other rows"
        )
    how = {"drop_axis": 1, "dtype": model.classes_.dtype, "meta": model.classes_[:0]}
    return whole_rows(X).map_blocks(_classes_of, model=model, **how)


def _classes_of(X: Any, model: Any) -> NDArray[Any]:
    """Grade of every row of a block, which may be empty."""
    return model.predict(X) if X.shape[0] else model.classes_[:0]


def _series_of(X: Any, model: Any) -> Any:
    import pandas as pd

    classes = _classes_of(X, model)
    # strings as objects, whatever the settings of pandas and Dask
    plain = classes.astype(object) if classes.dtype.kind == "U" else classes
    return pd.Series(plain, index=X.index, dtype=np.asarray(plain).dtype)
