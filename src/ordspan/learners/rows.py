"""Matrices as rows for compiled walks: dense or CSR, any stride, float32 or float64."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordspan.core.rows import MAX_SQ_NORM

FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
COPY_BYTES = 1 << 20
"""Dense rows that are not contiguous are copied in blocks of about this size."""
NO_WEIGHTS: NDArray[np.float64] = np.empty(0)
NO_ORDER: NDArray[np.intp] = np.empty(0, dtype=np.intp)


class RowBlock(NamedTuple):
    """Rows ``rows`` of the matrix: flat values, and the CSR arrays or None."""

    rows: slice
    data: NDArray[Any]
    columns: NDArray[Any] | None
    starts: NDArray[Any] | None


def is_sparse(matrix: Any) -> bool:
    """True for SciPy's sparse matrices and arrays."""
    return hasattr(matrix, "tocsr")


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


# Without it the first fit of read-only rows, such as those of a frame, compiles 1.3 s longer.
def unlocked(values: NDArray[Any]) -> NDArray[Any]:
    """The same memory as an array that is not read-only, which to Numba is another type.

    Walks never write to rows.
    """
    if values.flags.writeable:
        return values
    interface = values.__array_interface__
    place, _ = interface["data"]
    writable = interface | {"data": (place, False)}
    return np.asarray(SimpleNamespace(__array_interface__=writable, kept_alive=values))


def as_rows(matrix: Any) -> Any:
    """A 2-d float matrix, dense or CSR; copies only if the type is not float.

    >>> as_rows([[1, 2]])
    array([[1., 2.]])
    """
    rows = as_csr(matrix) if is_sparse(matrix) else np.asarray(matrix)
    if rows.dtype.kind == "c":
        raise ValueError("complex numbers are not supported; give real features")
    if rows.dtype not in FLOATS or not rows.dtype.isnative:
        rows = rows.astype(np.float64)
    if rows.ndim != 2:
        raise ValueError(f"expected a 2-d matrix, one row per example, got {rows.ndim}-d")
    return rows


def row_blocks(matrix: Any, order: NDArray[np.intp]) -> Iterator[tuple[RowBlock, NDArray[np.intp]]]:
    """The matrix in as few blocks as possible, each with the order of its rows (empty: as is)."""
    n_rows = matrix.shape[0]
    everything = slice(0, n_rows)
    if is_sparse(matrix):
        arrays = map(unlocked, (matrix.data, matrix.indices, matrix.indptr))
        yield RowBlock(everything, *arrays), order
    elif matrix.flags.c_contiguous:
        yield RowBlock(everything, unlocked(matrix.reshape(-1)), None, None), order
    else:
        in_order = order[:0]
        step = max(1, COPY_BYTES // max(1, matrix.itemsize * matrix.shape[1]))
        for start in range(0, n_rows, step):
            rows = slice(start, min(start + step, n_rows))
            picked = matrix[order[rows]] if order.size else matrix[rows]
            yield RowBlock(rows, np.ascontiguousarray(picked).reshape(-1), None, None), in_order


def refusal(matrix: Any, row: int, names: Any = None) -> str:
    """Why a row was refused, naming row, column and value."""
    if is_sparse(matrix):
        inside = slice(matrix.indptr[row], matrix.indptr[row + 1])
        values, columns = matrix.data[inside], matrix.indices[inside]
    else:
        values, columns = matrix[row], np.arange(matrix.shape[1])
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
