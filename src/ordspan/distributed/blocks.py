"""Dask collections: their rows and labels as blocks on a cluster, and their prediction."""

from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.delayed import Delayed
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ordspan.distributed.cluster import Cluster
from ordspan.labels.ranks import distinct, find_classes, read_labels, refuse_missing
from ordspan.wording import shown

Blocks = list[tuple[str, tuple[Any, Any]]]
"""A name for messages and the delayed rows and labels of every block."""


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
    rows = whole_rows(X)
    if rows.shape[1] != model.n_features_in_:
        raise ValueError(
            f"X has {rows.shape[1]} features, but {type(model).__name__} was fitted with "
            f"{model.n_features_in_}"
        )
    nothing = model.classes_[:0]
    return rows.map_blocks(_classes_of, model=model, drop_axis=1, dtype=nothing.dtype, meta=nothing)


def _classes_of(X: Any, model: Any) -> NDArray[Any]:
    """Grade of every row of a block, which may be empty."""
    return model.predict(X) if X.shape[0] else model.classes_[:0]


def _series_of(X: Any, model: Any) -> Any:
    import pandas as pd

    classes = _classes_of(X, model)
    # strings as objects, whatever the settings of pandas and Dask
    plain = classes.astype(object) if classes.dtype.kind == "U" else classes
    return pd.Series(plain, index=X.index, dtype=np.asarray(plain).dtype)
