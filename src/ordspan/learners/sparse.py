"""Sparse matrices, whose structure is checked before SciPy or compiled code relies on it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordspan.core.sparse import damaged_line

INDICES = (np.dtype(np.int32), np.dtype(np.int64))


def unlocked(values: NDArray[Any]) -> NDArray[Any]:
    """The same memory as an array that is not read-only.

    To Numba a read-only array has another type, so every walk would be compiled once more for
    memory maps and for frames of pandas. Walks never write to rows.
    """
    if values.flags.writeable:
        return values
    interface = values.__array_interface__
    place, _ = interface["data"]
    unlocked = interface | {"data": (place, False)}
    return np.asarray(SimpleNamespace(__array_interface__=unlocked, kept_alive=values))


def as_csr(matrix: Any) -> Any:
    """A CSR matrix with each column at most once per row; refused if its arrays are damaged.

    SciPy's own flags (sorted, canonical) are not relied on: they miss writes to the arrays.
    Duplicates are summed in a copy.
    """
    if matrix.ndim != 2:
        return matrix  # the caller refuses other shapes
    if matrix.format != "csr":
        check_other_format(matrix)
        matrix = matrix.tocsr()
    n_rows, width = matrix.shape
    check_sizes(matrix, n_rows)
    starts, columns = index_array(matrix, "indptr"), index_array(matrix, "indices")
    rising = check_lines(matrix, "row", "column", starts, columns, width)
    as_it_is = starts is matrix.indptr and columns is matrix.indices
    if as_it_is and rising and starts[-1] == columns.size:
        return matrix
    own = type(matrix)((matrix.data, columns, starts), shape=matrix.shape, copy=True)
    own.sum_duplicates()
    return own


def check_other_format(matrix: Any) -> None:
    """Refuse a matrix in another format than CSR that SciPy could not convert safely."""
    name, (n_rows, n_columns) = matrix.format.upper(), matrix.shape
    if name == "CSC":
        check_sizes(matrix, n_columns)
        starts, rows = index_array(matrix, "indptr"), index_array(matrix, "indices")
        check_lines(matrix, "column", "row", starts, rows, n_rows)
    elif name == "COO":
        for what, places, size in (("row", matrix.row, n_rows), ("column", matrix.col, n_columns)):
            if places.shape != matrix.data.shape:
                raise damaged(name, f"{places.size} {what}s for {matrix.data.size} values")
            outside = np.flatnonzero((places < 0) | (places >= size))
            if outside.size:
                raise damaged(name, outside_text(what, size, outside[0], places[outside[0]]))
    elif name == "DIA" and matrix.data.shape[:-1] != matrix.offsets.shape:
        raise damaged(name, f"{matrix.offsets.size} offsets for data of {matrix.data.shape}")
    elif name == "BSR":
        matrix.copy().check_format(full_check=True)


def check_sizes(matrix: Any, n_lines: int) -> None:
    """Refuse compressed arrays whose sizes contradict each other or the shape."""
    name, starts, places, data = matrix.format.upper(), *compressed(matrix)
    if starts.shape != (n_lines + 1,):
        raise damaged(name, f"indptr has shape {starts.shape}, expected ({n_lines + 1},)")
    if starts[0] != 0:
        raise damaged(name, f"indptr begins with {starts[0]}, not with 0")
    if places.ndim != 1 or places.shape != data.shape:
        raise damaged(name, f"indices have shape {places.shape}, data have shape {data.shape}")


def compressed(matrix: Any) -> tuple[Any, Any, Any]:
    """The three arrays of a CSR or CSC matrix."""
    return matrix.indptr, matrix.indices, matrix.data


def index_array(matrix: Any, name: str) -> Any:
    """An index array of a type that compiled code reads."""
    array = getattr(matrix, name)
    if array.dtype in INDICES and array.dtype.isnative:
        return array
    if array.dtype.kind not in "iu":
        raise damaged(matrix.format.upper(), f"{name} holds {array.dtype}, not whole numbers")
    return array.astype(np.int64)


def check_lines(matrix: Any, line: str, place: str, starts: Any, places: Any, width: int) -> bool:
    """Refuse lines with invalid entries; whether places increase in every line (no duplicates)."""
    bad, rising = damaged_line(unlocked(starts), unlocked(places), width)
    if bad < 0:
        return bool(rising)
    name = matrix.format.upper()
    first, last = int(starts[bad]), int(starts[bad + 1])
    if not 0 <= first <= last <= places.size:
        raise damaged(
            name,
            f"{line} {bad} has entries {first} to {last} by indptr, but there are {places.size} "
            "entries",
        )
    own = places[first:last]
    entry = first + int(np.argmax((own < 0) | (own >= width)))
    raise damaged(name, f"{line} {bad}: " + outside_text(place, width, entry, places[entry]))


def outside_text(what: str, size: int, entry: Any, found: Any) -> str:
    """What is wrong with one stored entry."""
    return f"stored entry {entry} has {what} {found}, but there are {size} {what}s"


def damaged(name: str, why: str) -> ValueError:
    """The error for a matrix that cannot be read."""
    return ValueError(f"damaged {name} matrix: {why}; rebuild it from its data")
