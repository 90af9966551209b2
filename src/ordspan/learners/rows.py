"""The door to the walks: matrices, ranks and weights become `Rows`, checked once."""

from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ordspan.core.rows import MAX_SQ_NORM, Rows, row_at
from ordspan.core.state import Floats, Ranks

FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
MAX_WEIGHT = 1e150
"""The largest sample weight: a step of this size along the longest row is still finite."""
NO_WEIGHTS: Floats = np.empty(0)
NO_RANKS: Ranks = np.empty(0, dtype=np.int64)
NO_ORDER: NDArray[np.intp] = np.empty(0, dtype=np.intp)


class RowValueError(ValueError):
    """A row that cannot be learned or predicted, because of its values."""


def is_sparse(matrix: Any) -> bool:
    """True for SciPy's sparse matrices and arrays."""
    return hasattr(matrix, "tocsr")


def as_matrix(X: Any) -> Any:
    """A 2-d float matrix, dense or CSR, checked; copies only what is not yet so.

    >>> as_matrix([[1, 2]])
    array([[1., 2.]])
    """
    matrix = as_csr(X) if is_sparse(X) else np.asarray(X)
    if matrix.dtype.kind == "c":
        raise ValueError("complex numbers are not supported; give real features")
    if matrix.dtype not in FLOATS or not matrix.dtype.isnative:
        matrix = matrix.astype(np.float64)
    if matrix.ndim != 2:
        raise ValueError(f"expected a 2-d matrix, one row per example, got {matrix.ndim}-d")
    return matrix


def as_csr(matrix: Any) -> Any:
    """A CSR matrix with each column at most once per row; refused if its arrays are damaged.

    SciPy's own flags (sorted, canonical) are not relied on: they miss writes to the arrays.
    Duplicates are summed in a copy.
    """
    if matrix.ndim != 2:
        return matrix  # the caller refuses other shapes
    try:
        own = type(matrix)(matrix)  # shares the arrays, but not the flags
        check_arrays(own)
        if own.format != "csr":
            own = own.tocsr()
            check_arrays(own)  # lists of columns, for example, are not checked before
    except (ValueError, IndexError) as error:
        name = matrix.format.upper()
        raise ValueError(f"damaged {name} matrix: {error}; rebuild it from its data") from None
    if not own.has_canonical_format:
        own = own.copy()
        own.sum_duplicates()
    return own


def check_arrays(matrix: Any) -> None:
    """SciPy's check, and what it lets pass: fractions, and falling starts of an empty matrix."""
    if not hasattr(matrix, "indptr"):
        return
    starts, places = matrix.indptr, matrix.indices
    if starts.dtype.kind not in "iu" or places.dtype.kind not in "iu":
        raise ValueError(f"indptr and indices hold {starts.dtype} and {places.dtype}, not integers")
    if (starts[1:] < starts[:-1]).any():
        raise ValueError("indptr must be a non-decreasing sequence")
    matrix.check_format(full_check=True)


def make_rows(
    matrix: Any, lower: Ranks = NO_RANKS, upper: Ranks = NO_RANKS, weight: Floats = NO_WEIGHTS
) -> Rows:
    """The rows of a checked matrix with checked labels; only rows of another stride are copied."""
    if is_sparse(matrix):
        data, columns, starts = map(unlocked, (matrix.data, matrix.indices, matrix.indptr))
        return Rows(data, columns, starts, lower, upper, weight, matrix.shape[1])
    flat = unlocked(np.ascontiguousarray(matrix).reshape(-1))
    return Rows(flat, None, None, lower, upper, weight, matrix.shape[1])


def count_rows(rows: Rows) -> int:
    """Number of rows, with labels or without."""
    return rows.data.size // rows.width if rows.starts is None else rows.starts.size - 1


# Otherwise the first fit on read-only arrays, as of a frame, spends 1.3 s more on compiling.
def unlocked(values: NDArray[Any]) -> NDArray[Any]:
    """The same memory as an array that is not read-only, which Numba treats as a different type.

    Walks never write to rows.
    """
    if values.flags.writeable:
        return values
    interface = values.__array_interface__
    place, _ = interface["data"]
    writable = interface | {"data": (place, False)}
    return np.asarray(SimpleNamespace(__array_interface__=writable, kept_alive=values))


def as_row(x: ArrayLike) -> NDArray[Any]:
    """One example as a 1-d float array."""
    row = np.asarray(x)
    if row.ndim != 1:
        raise ValueError(f"one example is a 1-d row, got shape {row.shape}")
    return row if row.dtype in FLOATS else row.astype(np.float64)


def check_ranks(lower: ArrayLike, upper: ArrayLike, n_classes: int) -> tuple[Ranks, Ranks]:
    """Lower and upper ranks as integer arrays of one length, every interval within 1..K.

    >>> check_ranks([1, 2], [1, 3], n_classes=3)
    (array([1, 2]), array([1, 3]))
    """
    low, high = whole_numbers(lower, "lower"), whole_numbers(upper, "upper")
    if low.shape != high.shape:
        raise ValueError(f"lower has {low.size} ranks, but upper has {high.size}")
    wrong = (low < 1) | (high > n_classes) | (low > high)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"row {row}: ranks {low[row]} to {high[row]} are not a range within 1..{n_classes}"
            + ("; swap the two columns?" if low[row] > high[row] else "")
        )
    return low, high


def whole_numbers(ranks: ArrayLike, name: str) -> Ranks:
    """Ranks as a 1-d int64 array; fractions are refused, not truncated."""
    values = np.asarray(ranks)
    if values.ndim != 1:
        raise ValueError(f"{name} must be 1-d, one rank per row, got shape {values.shape}")
    if values.dtype.kind in "iu":
        return values.astype(np.int64, copy=False)
    if values.dtype.kind != "f":
        raise ValueError(f"{name} must hold whole numbers, not {values.dtype}")
    bad = np.flatnonzero(~np.isfinite(values) | (values != np.floor(values)))
    if bad.size:
        raise ValueError(f"row {bad[0]}: {name} rank {values[bad[0]]} is not a whole number")
    return values.astype(np.int64)


def check_weights(sample_weight: ArrayLike | None, n_rows: int) -> Floats:
    """Sample weights as floats, not negative and not above MAX_WEIGHT; empty for None: all 1."""
    if sample_weight is None:
        return NO_WEIGHTS
    weight = np.asarray(sample_weight)
    weight = np.full(n_rows, weight) if weight.ndim == 0 else weight
    if weight.shape != (n_rows,) or weight.dtype.kind == "c":
        raise ValueError(
            f"sample_weight has shape {weight.shape} and type {weight.dtype}, expected "
            f"({n_rows},) real numbers"
        )
    weight = weight.astype(np.float64, copy=False)
    bad = np.flatnonzero(~((weight >= 0) & (weight <= MAX_WEIGHT)))
    if bad.size:
        raise ValueError(
            f"row {bad[0]}: sample_weight {weight[bad[0]]:g} is not a number from 0 to "
            f"{MAX_WEIGHT:g}; if it is larger, divide all weights by the largest"
        )
    return weight


def refusal(rows: Rows, row: int, names: Any = None) -> str:
    """Why a row was refused, naming row, column and value."""
    values, columns = row_at.py_func(*rows[:3], rows.width, row)
    columns = np.arange(rows.width) if columns is None else columns
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        column = int(columns[bad[0]])
        what = "NaN" if np.isnan(values[bad[0]]) else "infinity (inf)"
        name = "" if names is None else f" ({names[column]!r})"
        return (
            f"Input X contains {what}: row {row}, column {column}{name}; "
            "fill or drop missing values first, for example with SimpleImputer"
        )
    with np.errstate(over="ignore"):  # infinity is the right answer
        sq_norm = float(np.square(values, dtype=np.float64).sum())
    if sq_norm < MAX_SQ_NORM:
        return (
            f"row {row}: the score of the row overflows, because the weights have grown too large; "
            "scale the features, or choose a smaller C, or the exact solver"
        )
    column = int(columns[np.argmax(np.abs(values))])
    return (
        f"row {row}: values as large as {np.abs(values).max():.3g} (column {column}) overflow; the "
        f"squared norm of a row must be below {MAX_SQ_NORM:g}: scale the features, for example "
        "with StandardScaler"
    )
