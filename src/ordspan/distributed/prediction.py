"""Lazy prediction on Dask collections, block by block."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ordspan.distributed.blocks import is_frame, whole_rows


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
            "model.predict takes the rest"
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
