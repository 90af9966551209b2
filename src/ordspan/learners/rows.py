"""Rows of a matrix in the form the walks read: dense or CSR, any stride, never another type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordspan.core.rows import MAX_SQ_NORM
from ordspan.learners.sparse import as_csr

FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
BLOCK_BYTES = 1 << 20
"""Dense rows that are not contiguous are copied in blocks of about this size."""


class RowBlock(NamedTuple):
    """Rows ``rows`` of the matrix: flat values, and the CSR arrays or None."""

    rows: slice
    data: NDArray[Any]
    columns: NDArray[Any] | None
    starts: NDArray[Any] | None


def is_sparse(matrix: Any) -> bool:
    """True for SciPy's sparse matrices and arrays."""
    return hasattr(matrix, "tocsr")


def as_rows(matrix: Any) -> Any:
    """A 2-d float matrix whose rows can be walked; copies only what has no float type.

    >>> as_rows([[1, 2]])
    array([[1., 2.]])
    """
    rows = as_csr(matrix) if is_sparse(matrix) else np.asarray(matrix)
    if rows.dtype.kind == "c":
        raise ValueError("complex numbers have no order to learn from; give real features")
    if rows.dtype not in FLOATS or not rows.dtype.isnative:
        rows = rows.astype(np.float64)
    if rows.ndim != 2:
        raise ValueError(f"expected a 2-d matrix, one row an example, got {rows.ndim}-d")
    return rows


def row_blocks(matrix: Any, order: NDArray[np.intp]) -> Iterator[tuple[RowBlock, NDArray[np.intp]]]:
    """The matrix as few blocks as can be, each with the order of its rows (empty: as they come)."""
    n_rows = matrix.shape[0]
    everything = slice(0, n_rows)
    if is_sparse(matrix):
        yield RowBlock(everything, matrix.data, matrix.indices, matrix.indptr), order
    elif matrix.flags.c_contiguous:
        yield RowBlock(everything, matrix.reshape(-1), None, None), order
    else:
        in_order = order[:0]
        step = max(1, BLOCK_BYTES // max(1, matrix.itemsize * matrix.shape[1]))
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
            "scale the features, or choose a smaller C or the exact solver"
        )
    column = int(columns[np.argmax(np.abs(values))])
    return (
        f"row {row}: values as large as {np.abs(values).max():.3g} (column {column}) overflow; the "
        f"squared norm of a row must stay below {MAX_SQ_NORM:g}: scale the features, for example "
        "with StandardScaler"
    )
