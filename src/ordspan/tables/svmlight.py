"""svmlight and LETOR files: a grade, perhaps qid:N, then index:value pairs on each line."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordspan.labels.forms import is_number
from ordspan.labels.grades import MAX_GRADES
from ordspan.tables.files import Identity, identity
from ordspan.tables.rows import Faults
from ordspan.tables.svmlight_numbers import LARGEST_INDEX, read_lines
from ordspan.tables.text import Text, parallel_map
from ordspan.wording import brief, hint

NO_QUERY = -(1 << 62)
CELL = re.compile(rb"[^ \t\r\n#]*")
SparseRows = tuple[Any, NDArray[np.float64], NDArray[np.int64], Faults]
"""A CSR matrix, grades, queries (NO_QUERY without one) and faults; a bad row has the grade NaN."""


class Extent(NamedTuple):
    """What a first pass over files finds: their grades, their smallest and their largest index.

    Grades beyond the number that can be learned are not all kept.
    """

    grades: set[str]
    smallest: int
    largest: int
    where: str  # file and row of the largest


def find_extent(files: Sequence[str]) -> Extent:
    """A first pass over files, which ignores bad lines."""
    return _find_extent(*map(identity, files))


@lru_cache
def _find_extent(*files: Identity) -> Extent:
    words: set[str] = set()
    smallest, largest, where = LARGEST_INDEX, -1, files[0].name
    for file in files:
        n_rows = 0
        for X, grades, _, _ in read_file(file.name):
            if len(words) <= MAX_GRADES:
                words.update(f"{grade:.17g}" for grade in np.unique(grades[~np.isnan(grades)]))
            smallest = min(smallest, int(X.indices.min(initial=smallest)))
            if X.nnz and X.indices.max() > largest:
                entry = int(X.indices.argmax())
                largest = int(X.indices[entry])
                row = n_rows + int(np.searchsorted(X.indptr, entry, side="right"))
                where = f"{file.name}, row {row}"
            n_rows += grades.size
    return Extent(words, smallest, largest, where)


def read_file(path: str, n_features: int = 0, first: int = 0) -> Iterator[SparseRows]:
    """All rows of a file, in blocks."""
    read = partial(read_rows, n_features=n_features, first=first)
    return parallel_map(read, (content for content, _, _ in Text(path).blocks()))


def read_rows(content: bytes, n_features: int = 0, first: int = 0) -> SparseRows:
    """The rows of some lines, by a compiled walk; bad cells are named.

    Indices are from ``first`` on, and unlimited if ``n_features`` is 0.
    """
    from scipy.sparse import csr_array

    content += b"" if content.endswith(b"\n") else b"\n"
    raw = np.frombuffer(content, dtype=np.uint8)
    n_most, n_values = (int(np.count_nonzero(raw == mark)) for mark in b"\n:")
    queries, stops = np.full(n_most, NO_QUERY), np.full(n_most, -1)
    starts, columns = np.zeros(n_most + 1, dtype=np.int32), np.empty(n_values, dtype=np.int32)
    numbers, places = np.zeros(n_values + n_most), np.empty(n_values + n_most, dtype=np.int32)
    values, grades = np.split(numbers, [n_values])
    last = first + n_features - 1 if n_features else LARGEST_INDEX
    cells = grades, queries, starts, columns, values, places, stops
    n = read_lines(raw, first, last, *cells)
    size = int(starts[n])
    numbers[size:n_values] = 0.0  # of rows that are empty, because they are bad
    for place in np.flatnonzero(np.isnan(numbers)).tolist():
        number = cell_at(content, places[place])
        number = number.partition(":")[2] if place < n_values else number
        if is_number(number):
            numbers[place] = float(number)
        else:
            row = int(np.searchsorted(starts[: n + 1], place, side="right")) - 1
            stops[row if place < n_values else place - n_values] = places[place]
    faults, bad = Faults(), np.flatnonzero(stops >= 0)
    for row, place in zip(bad.tolist(), stops[bad].tolist(), strict=True):
        cell, form = brief(cell_at(content, place)), f"from {first} to at most {last}"
        faults[row] = f"{cell} is not of the form index:value, with indices that rise {form}"
        if cell.startswith("'0:") and first:
            faults[row] += f"; give {hint('zero_based=True', '--zero-based')}?"
        if place == places[n_values + row]:
            faults[row] = f"the grade {cell} is not a number"
    grades[bad] = np.nan
    widest = n_features or int(columns[:size].max(initial=0)) + 1
    X = csr_array((values[:size], columns[:size], starts[: n + 1]), shape=(n, widest))
    return X, grades[:n], queries[:n], faults


def cell_at(content: bytes, place: int) -> str:
    """The cell that begins at a byte."""
    return next(CELL.finditer(content, place))[0].decode(errors="replace")
