"""svmlight and LETOR files: a grade, perhaps qid:N, then index:value pairs on each line."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordspan.labels.forms import is_number
from ordspan.labels.grades import MAX_GRADES
from ordspan.tables.rows import GROUP, LABEL, Batch, Cursor, Faults
from ordspan.tables.svmlight_numbers import LARGEST_INDEX, read_lines
from ordspan.tables.text import Block, Text, parallel_map
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


def survey(files: Sequence[str]) -> Extent:
    """A first pass over files, which ignores bad lines."""
    states = [(path, Path(path).stat()) for path in files]
    return _survey(*((path, state.st_size, state.st_mtime_ns) for path, state in states))


@lru_cache
def _survey(*files: tuple[str, int, int]) -> Extent:
    words: set[str] = set()
    smallest, largest, where = LARGEST_INDEX, -1, files[0][0]
    for path, _, _ in files:
        n_rows = 0
        for _, (X, grades, _, _) in SvmlightFile(path, zero_based=True).rows(Text(path).blocks()):
            if len(words) <= MAX_GRADES:
                words.update(f"{grade:.17g}" for grade in np.unique(grades[~np.isnan(grades)]))
            smallest = min(smallest, int(X.indices.min(initial=smallest)))
            if X.nnz and X.indices.max() > largest:
                entry = int(X.indices.argmax())
                largest = int(X.indices[entry])
                row = n_rows + int(np.searchsorted(X.indptr, entry, side="right"))
                where = f"{path}, row {row}"
            n_rows += grades.size
    return Extent(words, smallest, largest, where)


class SvmlightFile:
    """Sparse rows; the grade is the column ``label``, the query the column ``qid``."""

    sparse, decimal = True, "."
    names = (LABEL, GROUP)
    notes = ()

    def __init__(self, path: str, n_features: int = 0, zero_based: bool = False) -> None:
        self.path, self.n_features, self._first = path, n_features, 0 if zero_based else 1

    def blocks(self, types: Any, at: Cursor) -> Iterator[Batch]:
        """The rows from the block of a position on."""
        import polars as pl

        before = at.before
        blocks = Text(self.path).blocks(at.byte)
        for (_, byte, share), (X, grades, queries, faults) in self.rows(blocks):
            # whole numbers without a decimal point
            columns = {LABEL: pl.Series(grades).cast(pl.String()).str.strip_suffix(".0")}
            if (queries != NO_QUERY).any():
                columns[GROUP] = pl.Series(queries).replace(NO_QUERY, None)
            rows = np.arange(before, before + grades.size) + 1
            begin = at._replace(byte=byte, before=before)
            table = pl.DataFrame(columns)
            yield Batch(X, table, rows, self.path, share, begin, faults=faults)
            before += grades.size

    def sample(self, size: int) -> Iterator[SparseRows]:
        """About ``size`` bytes of rows spread over the file."""
        pieces, _ = Text(self.path).sample(size)
        return (rows for _, rows in self.rows((piece, 0, 0.0) for piece in pieces))

    def rows(self, blocks: Iterator[Block]) -> Iterator[tuple[Block, SparseRows]]:
        """The rows of blocks, with the faults of bad ones."""
        parsed = parallel_map(lambda block: (block, self._read(block[0])), blocks)
        return (found for found in parsed if found[1][1].size)

    def _read(self, content: bytes) -> SparseRows:
        """The rows of some lines, by a compiled walk; bad cells are named."""
        from scipy.sparse import csr_array

        content += b"" if content.endswith(b"\n") else b"\n"
        raw = np.frombuffer(content, dtype=np.uint8)
        n_most, n_values = (int(np.count_nonzero(raw == mark)) for mark in b"\n:")
        queries, stops = np.full(n_most, NO_QUERY), np.full(n_most, -1)
        starts, columns = np.zeros(n_most + 1, dtype=np.int32), np.empty(n_values, dtype=np.int32)
        numbers, places = np.zeros(n_values + n_most), np.empty(n_values + n_most, dtype=np.int32)
        values, grades = np.split(numbers, [n_values])
        last = self._first + self.n_features - 1 if self.n_features else LARGEST_INDEX
        cells = grades, queries, starts, columns, values, places, stops
        n = read_lines(raw, self._first, last, *cells)
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
            cell, form = brief(cell_at(content, place)), f"from {self._first} to at most {last}"
            faults[row] = f"{cell} is not of the form index:value, with indices that rise {form}"
            if cell.startswith("'0:") and self._first:
                faults[row] += f"; give {hint('zero_based=True', '--zero-based')}?"
            if place == places[n_values + row]:
                faults[row] = f"the grade {cell} is not a number"
        grades[bad] = np.nan
        widest = self.n_features or int(columns[:size].max(initial=0)) + 1
        X = csr_array((values[:size], columns[:size], starts[: n + 1]), shape=(n, widest))
        return X, grades[:n], queries[:n], faults


def cell_at(content: bytes, place: int) -> str:
    """The cell that begins at a byte."""
    return next(CELL.finditer(content, place))[0].decode(errors="replace")
