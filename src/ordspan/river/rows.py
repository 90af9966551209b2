"""Dicts and data frames of features as numbers, checked."""

from __future__ import annotations

from collections.abc import Mapping
from reprlib import repr as short
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ordspan.core.rows import MAX_SQ_NORM
from ordspan.labels.ranks import is_open_value


class Row(NamedTuple):
    """The values of a dict of features, their columns, and the names of new features."""

    values: NDArray[np.float64]
    columns: NDArray[np.int64]
    new: list[Any]


def missing_refusal(name: Any, value: Any) -> str:
    """Why a value that is unknown or infinite was refused."""
    return (
        f"feature {name!r} is {value}; leave it out, or fill it first, for example with "
        "preprocessing.StatImputer, which fills None"
    )


def as_number(name: Any, value: Any) -> float:
    """The value of a feature as a float; text is refused even if it looks like a number."""
    if is_open_value(value):
        raise ValueError(missing_refusal(name, value))
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
    """The values of a dict of features as floats."""
    if x.__class__ is not dict and not isinstance(x, Mapping):
        raise TypeError(f"x must be a dict of numbers by feature name, got {type(x).__name__}")
    try:
        values = np.array(list(x.values()))
    except ValueError:  # values of different lengths
        values = np.array(None)
    if values.dtype.char == "d" and values.ndim == 1:
        return values
    if values.dtype.kind in "fiub" and values.ndim == 1:
        return values.astype(np.float64)
    return np.array([as_number(name, value) for name, value in x.items()])


OVERFLOW = (
    "the score overflows, because the weights have grown too large; scale the features, for "
    "example with preprocessing.StandardScaler, or choose a smaller C"
)


def feature_refusal(values: NDArray[np.float64], names: list[Any]) -> str:
    """Why an example was refused, naming the feature and its value."""
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        return missing_refusal(names[bad[0]], values[bad[0]])
    with np.errstate(over="ignore"):  # infinity is the right answer
        if np.square(values).sum() < MAX_SQ_NORM:
            return OVERFLOW
    largest = int(np.argmax(np.abs(values)))
    return (
        f"feature {names[largest]!r} is {values[largest]:.3g}, which overflows; scale the "
        "features, for example with preprocessing.StandardScaler"
    )


def check_values(values: NDArray[np.float64], names: list[Any]) -> None:
    """Refuse an example that a learner would refuse whatever its weights are."""
    why = feature_refusal(values, names)
    if why is not OVERFLOW:
        raise ValueError(why)


def check_matrix(rows: Any, names: list[Any]) -> None:
    """Refuse rows of a CSR matrix that a learner would refuse whatever its weights are."""
    with np.errstate(over="ignore"):
        sq_norms = rows.multiply(rows).sum(axis=1)
    bad = np.flatnonzero(~(sq_norms < MAX_SQ_NORM))
    if bad.size:
        row = rows[bad[:1]].tocoo()
        why = feature_refusal(row.data, [names[column] for column in row.col])
        raise ValueError(f"row {bad[0]}: {why}")


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
                try:
                    as_number(name, value)
                except ValueError as reason:
                    raise ValueError(f"row {row}: {reason}") from None
    if names and all(hasattr(dtype, "fill_value") and dtype.fill_value == 0 for dtype in X.dtypes):
        rows = sp.csr_array(X.sparse.to_coo(), dtype=np.float64)
    else:
        rows = sp.csr_array(X.to_numpy(dtype=np.float64, na_value=np.nan))
    check_matrix(rows, names)
    return rows


def with_columns(rows: Any, columns: NDArray[np.int64], n_features: int) -> Any:
    """A CSR matrix with its columns moved to the given numbers; those outside are dropped."""
    numbers = columns[rows.indices]
    n_columns = max(n_features, int(columns.max(initial=-1)) + 1)
    moved = sp.csr_array((rows.data, numbers, rows.indptr), shape=(rows.shape[0], n_columns))
    return moved if n_columns == n_features else moved[:, :n_features]
