"""svmlight and LETOR files: a grade, perhaps qid:N, then index:value pairs on each line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordspan.labels.forms import is_number
from ordspan.labels.grades import MAX_GRADES
from ordspan.tables import svmlight_numbers as parsing
from ordspan.tables.rows import GROUP, LABEL, Batch, Cursor, Faults, FileError
from ordspan.tables.text import Block, Text, parallel_map
from ordspan.wording import brief, hint

NO_QUERY = -(1 << 62)
LARGEST_INDEX = 2**31 - 2


class Extent(NamedTuple):
    """What a first pass over a file finds: its grades, its smallest and its largest index.

    Grades beyond the number that can be learned are not all kept.
    """

    grades: set[str]
    smallest: int
    largest: int
    row: int = 0  # where the largest is


def survey(path: str) -> Extent:
    """A first pass over a file, which ignores bad lines."""
    state = Path(path).stat() if Path(path).is_file() else None
    return _survey(path, state and (state.st_size, state.st_mtime_ns))


@lru_cache
def _survey(path: str, state: Any) -> Extent:
    grades: set[str] = set()
    smallest, largest, row = LARGEST_INDEX, -1, 0
    n_rows = 0
    for _, found in SvmlightFile(path, zero_based=True).sparse_rows(Text(path).blocks()):
        if len(grades) <= MAX_GRADES:
            known = found.grades[~np.isnan(found.grades)]
            grades.update(f"{grade:.17g}" for grade in np.unique(known))
        if found.X.nnz:
            smallest = min(smallest, int(found.X.indices.min()))
            entry = int(found.X.indices.argmax())
            if found.X.indices[entry] > largest:
                largest = int(found.X.indices[entry])
                row = n_rows + int(np.searchsorted(found.X.indptr, entry, side="right"))
        n_rows += found.grades.size
    return Extent(grades, smallest, largest, row)


class SparseRows(NamedTuple):
    """Rows of a block; a bad row is empty and has the grade NaN."""

    X: Any  # CSR
    grades: NDArray[np.float64]
    queries: NDArray[np.int64]  # NO_QUERY without one
    faults: Faults


class SvmlightFile:
    """Sparse rows; the grade is the column ``label``, the query the column ``qid``."""

    sparse, decimal = True, "."
    names = (LABEL, GROUP)

    def __init__(self, path: str, n_features: int = 0, zero_based: bool = False) -> None:
        self.path, self.n_features, self.zero_based = path, n_features, zero_based
        lines = (line for b in Text(path).blocks() for line in b.content.split(b"\n"))
        if not any(_split_line(line) for line in lines):
            raise FileError(f"{path}: the file is empty")

    def blocks(self, types: Any, at: Cursor) -> Iterator[Batch]:
        """The rows from the block of a position on."""
        import polars as pl

        before = at.before
        for block, found in self.sparse_rows(Text(self.path).blocks(at.byte)):
            # whole numbers without a decimal point
            columns = {LABEL: pl.Series(found.grades).cast(pl.String()).str.strip_suffix(".0")}
            if (found.queries != NO_QUERY).any():
                columns[GROUP] = pl.Series(found.queries).replace(NO_QUERY, None)
            rows = np.arange(before, before + found.grades.size) + 1
            begin = at._replace(byte=block.byte, before=before)
            some = (found.X, pl.DataFrame(columns), rows, self.path, block.share, begin)
            yield Batch(*some, faults=found.faults)
            before += found.grades.size

    def sample(self, size: int) -> Iterator[SparseRows]:
        """About ``size`` bytes of rows spread over the file."""
        pieces, _ = Text(self.path).sample(size)
        return (rows for _, rows in self.sparse_rows(Block(piece, 0, 0.0) for piece in pieces))

    def sparse_rows(self, blocks: Iterator[Block]) -> Iterator[tuple[Block, SparseRows]]:
        """The rows of blocks: by a compiled loop, or line by line where that refuses them."""

        def parse(block: Block) -> tuple[Block, SparseRows]:
            return block, self._parse_plain(block) or self._parse_slowly(block)

        return (found for found in parallel_map(parse, blocks) if found[1].grades.size)

    def _parse_plain(self, block: Block) -> SparseRows | None:
        """The rows by a compiled loop, if every line of the block is plain."""
        content = block.content if block.content.endswith(b"\n") else block.content + b"\n"
        n_most, entries = content.count(b"\n"), content.count(b":")
        grades, queries = np.empty(n_most), np.full(n_most, NO_QUERY, dtype=np.int64)
        starts = np.zeros(n_most + 1, dtype=np.int32)
        columns, values = np.empty(entries, dtype=np.int32), np.empty(entries)
        raw, first = np.frombuffer(content, dtype=np.uint8), 0 if self.zero_based else 1
        n = parsing.read_svmlight_lines(raw, first, grades, queries, starts, columns, values)
        size = int(starts[n]) if n >= 0 else 0
        if n < 0 or (self.n_features and size and columns[:size].max() >= self.n_features):
            return None
        X = self._matrix(columns[:size], values[:size], starts[: n + 1])
        return SparseRows(X, grades[:n], queries[:n], {})

    def _matrix(self, columns: Any, values: Any, starts: Any) -> Any:
        from scipy.sparse import csr_array

        width = self.n_features or (int(columns.max()) + 1 if columns.size else 1)
        return csr_array((values, columns, starts), shape=(starts.size - 1, width))

    def _parse_slowly(self, block: Block) -> SparseRows:
        """The rows line by line, with their faults."""
        faults = Faults()
        rows: list[tuple[float, int, list[tuple[int, float]]]] = []
        for words in filter(None, map(_split_line, block.content.split(b"\n"))):
            try:
                rows.append(self._read_line(*words))
            except ValueError as error:
                faults[len(rows)] = str(error)
                rows.append((np.nan, NO_QUERY, []))
        grades, queries = (np.array([row[i] for row in rows]) for i in (0, 1))
        pairs = np.array([pair for row in rows for pair in row[2]]).reshape(-1, 2)
        starts = np.cumsum([0, *(len(row[2]) for row in rows)], dtype=np.int32)
        X = self._matrix(pairs[:, 0].astype(np.int32), pairs[:, 1], starts)
        return SparseRows(X, grades, queries, faults)

    def _read_line(self, grade: str, *cells: str) -> tuple[float, int, list[tuple[int, float]]]:
        """Grade, query, columns and values of a line; the message of an error says what is bad."""
        if not is_number(grade):
            raise ValueError(f"the grade {brief(grade)} is not a number")
        query, pairs, first = NO_QUERY, [], 0 if self.zero_based else 1
        before = first - 1
        if cells and re.fullmatch(r"qid:-?[0-9]{1,18}", cells[0]):
            query, cells = int(cells[0][4:]), cells[1:]
        for cell in cells:
            index, _, value = cell.partition(":")
            if not re.fullmatch("[0-9]{1,18}", index) or not is_number(value):
                raise ValueError(f"{brief(cell)} is not of the form index:value")
            if int(index) <= before:
                zero = f"; give {hint('zero_based=True', '--zero-based')}?" * (int(index) == 0)
                raise ValueError(f"index {index} in {brief(cell)} does not increase{zero}")
            before = int(index)
            pairs.append((before - first, float(value)))
        if before > LARGEST_INDEX:
            raise ValueError(f"index {before} is larger than {LARGEST_INDEX}")
        if self.n_features and pairs and pairs[-1][0] >= self.n_features:
            raise ValueError(f"index {before}, but there are {self.n_features} features")
        return float(grade), query, pairs


def _split_line(line: bytes) -> list[str]:
    return line.partition(b"#")[0].decode(errors="replace").split()
