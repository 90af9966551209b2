"""Dicts and data frames of features as numbers, checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from reprlib import repr as short
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ordspan.core.rows import MAX_SQ_NORM
from ordspan.labels.ranks import is_open_value


def as_number(name: Any, value: Any) -> float:
    """The value of a feature as a float; text is refused even if it looks like a number."""
    if is_open_value(value):
        raise ValueError(
            f"feature {name!r} is {value}; leave it out, or fill it first, for example with "
            "preprocessing.StatImputer, which fills None"
        )
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"feature {name!r} is {short(value)}, not a number; encode it first, for example "
            "with preprocessing.OneHotEncoder"
        ) from None


def as_values(x: Mapping[Any, Any]) -> NDArray[np.float64]:
    """The values of a dict of features as floats that no learner refuses."""
    if x.__class__ is not dict and not isinstance(x, Mapping):
        raise TypeError(f"x must be a dict of numbers by feature name, got {type(x).__name__}")
    try:
        values = np.array(list(x.values()))
    except ValueError:  # values of different lengths
        values = np.array(None)
    if values.dtype.kind not in "fiub" or values.ndim != 1:
        values = np.array([as_number(name, value) for name, value in x.items()])
    if values.dtype.char != "d":
        values = values.astype(np.float64)
    if not values @ values < MAX_SQ_NORM:
        refuse_values(values, list(x))
    return values


def refuse_values(values: NDArray[np.float64], names: list[Any]) -> None:
    """Name the feature for which an example is refused."""
    largest = int(np.argmax(np.abs(values)))  # a NaN counts as the largest
    as_number(names[largest], values[largest])
    raise ValueError(
        f"feature {names[largest]!r} is {values[largest]:.3g}, which overflows; scale the "
        "features, for example with preprocessing.StandardScaler"
    )


def read_frame(X: Any) -> Any:
    """A data frame of numbers as a CSR matrix; sparse columns never become dense."""
    from pandas import DataFrame
    from pandas.api.types import is_numeric_dtype

    if not isinstance(X, DataFrame):
        raise TypeError(f"a mini-batch must be a pandas DataFrame, got {type(X).__name__}")
    names = list(X.columns)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"more than one column of X is named {twice!r}; rename one of them")
    for name in names:
        if not is_numeric_dtype(X[name].dtype):
            for row, value in enumerate(X[name]):
                _name_row(row, as_number, name, value)
    if names and all(getattr(dtype, "fill_value", None) == 0 for dtype in X.dtypes):
        rows = sp.csr_array(X.sparse.to_coo(), dtype=np.float64)
    else:
        rows = sp.csr_array(X.to_numpy(dtype=np.float64, na_value=np.nan))
    with np.errstate(over="ignore"):
        sq_norms = rows.multiply(rows).sum(axis=1)
    for row in np.flatnonzero(~(sq_norms < MAX_SQ_NORM)).tolist():
        bad = rows[[row]].tocoo()
        _name_row(row, refuse_values, bad.data, [names[column] for column in bad.col])
    return rows


def _name_row(row: int, check: Callable[..., Any], *values: Any) -> None:
    """Put the number of a row before the reason of its refusal."""
    try:
        check(*values)
    except ValueError as reason:
        raise ValueError(f"row {row}: {reason}") from None


def with_columns(rows: Any, columns: NDArray[np.int64], n_features: int) -> Any:
    """A CSR matrix with its columns moved to the given numbers; those outside are dropped."""
    n_columns = max(n_features, int(columns.max(initial=-1)) + 1)
    shape = rows.shape[0], n_columns
    return sp.csr_array((rows.data, columns[rows.indices], rows.indptr), shape)[:, :n_features]
