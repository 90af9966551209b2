"""svmlight and LETOR files: a grade, perhaps qid:N, then index:value pairs on each line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordspan.labels.forms import is_number
from ordspan.labels.grades import MAX_GRADES
from ordspan.tables import svmlight_numbers as parsing
from ordspan.tables.rows import GROUP, LABEL, Cursor, Faults, FileError, Frame, check_features
from ordspan.tables.text import Block, Text, parallel_map
from ordspan.wording import brief, hint, join_hints

NO_QUERY = -(1 << 62)
LARGEST_INDEX = 2**31 - 2
MAX_FALLBACK_BLOCKS = 3  # after this many blocks that were not plain, all are read line by line


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


def index_base(
    paths: Sequence[str], extents: Sequence[Extent], given: bool | None
) -> tuple[bool, int]:
    """Whether indices start at 0 (by default, if 0 occurs), and the number of features.

    >>> index_base(["a.txt", "b.txt"], [Extent({"1"}, 1, 7), Extent({"1"}, 2, 9)], given=None)
    (False, 9)
    """
    zero_based = min(extent.smallest for extent in extents) == 0 if given is None else given
    path, extent = max(zip(paths, extents, strict=True), key=lambda found: found[1].largest)
    n_features = extent.largest + zero_based
    if n_features < 1:
        raise FileError(f"{path}: no line has a feature, index:value")
    bad = f"treat such lines as bad with {hint('n_features=', '--n-features N')}"
    what = f"{path}, row {extent.row}: index {extent.largest} means {n_features:,} features, which"
    check_features(what, n_features, join_hints("correct it", "number the features from 1", bad))
    return zero_based, n_features


class SparseRows(NamedTuple):
    """Rows of a block; a bad row is empty and has the grade NaN."""

    X: Any  # CSR
    grades: NDArray[np.float64]
    queries: NDArray[np.int64] | None
    faults: Faults


class SvmlightFile:
    """Sparse rows; the grade is the column ``label``, the query the column ``qid``."""

    sparse, decimal = True, "."
    names = (LABEL, GROUP)

    def __init__(self, path: str, n_features: int = 0, zero_based: bool = False) -> None:
        self.path, self.n_features, self.zero_based = path, n_features, zero_based
        self._odd_blocks = 0
        lines = (line for b in Text(path).blocks() for line in b.content.split(b"\n"))
        if not any(_split_line(line) for line in lines):
            raise FileError(f"{path}: the file is empty")

    def frames(self, types: Any, at: Cursor) -> Iterator[Frame]:
        """The rows from the block of a position on."""
        import polars as pl

        before = at.before
        for block, found in self.sparse_rows(Text(self.path).blocks(at.byte)):
            # whole numbers without a decimal point
            columns = {LABEL: pl.Series(found.grades).cast(pl.String()).str.strip_suffix(".0")}
            if found.queries is not None:
                columns[GROUP] = pl.Series(found.queries).replace(NO_QUERY, None)
            rows = np.arange(before, before + found.grades.size) + 1
            begin = at._replace(byte=block.byte, before=before)
            yield Frame(pl.DataFrame(columns), rows, found.faults, block.share, begin, found.X)
            before += found.grades.size

    def sample(self, size: int) -> Iterator[SparseRows]:
        """About ``size`` bytes of rows spread over the file."""
        pieces, _ = Text(self.path).sample(size)
        return (rows for _, rows in self.sparse_rows(Block(piece, 0, 0.0) for piece in pieces))

    def sparse_rows(self, blocks: Iterator[Block]) -> Iterator[tuple[Block, SparseRows]]:
        """The rows of blocks: by a compiled loop, or line by line where that refuses them."""
        self._has_queries: bool | None = None  # decided by the first good line
        for block, found in parallel_map(lambda b: (b, self._parse_plain(b)), blocks):
            has_queries = found is not None and found.queries is not None
            if found is None or self._has_queries not in (None, has_queries):
                found = self._parse_slowly(block)
            elif self._has_queries is None and found.grades.size:
                self._has_queries = has_queries
            if found.grades.size:
                yield block, found

    def _parse_plain(self, block: Block) -> SparseRows | None:
        """The rows by a compiled loop, if every line of the block is plain."""
        if self._odd_blocks >= MAX_FALLBACK_BLOCKS:
            return None
        content = block.content if block.content.endswith(b"\n") else block.content + b"\n"
        n_most, entries = content.count(b"\n"), content.count(b":")
        grades, queries = np.empty(n_most), np.full(n_most, NO_QUERY, dtype=np.int64)
        starts = np.zeros(n_most + 1, dtype=np.int32)
        columns, values = np.empty(entries, dtype=np.int32), np.empty(entries)
        raw, first = np.frombuffer(content, dtype=np.uint8), 0 if self.zero_based else 1
        n = parsing.read_svmlight_lines(raw, first, grades, queries, starts, columns, values)
        size = int(starts[n]) if n >= 0 else 0
        known = queries[: max(n, 0)] != NO_QUERY
        too_large = self.n_features and size and columns[:size].max() >= self.n_features
        if n < 0 or too_large or (known.any() and not known.all()):
            self._odd_blocks += 1
            return None
        X = self._matrix(columns[:size], values[:size], starts[: n + 1])
        return SparseRows(X, grades[:n], queries[:n] if known.any() else None, {})

    def _matrix(self, columns: Any, values: Any, starts: Any) -> Any:
        from scipy.sparse import csr_array

        width = self.n_features or (int(columns.max()) + 1 if columns.size else 1)
        return csr_array((values, columns, starts), shape=(starts.size - 1, width))

    def _parse_slowly(self, block: Block) -> SparseRows:
        """The rows line by line, with their faults."""
        faults = Faults()
        grades: list[float] = []
        queries: list[int] = []
        columns: list[int] = []
        values: list[float] = []
        starts = [0]
        for line in block.content.split(b"\n"):
            words = _split_line(line)
            if not words:
                continue
            pairs, query, fault = self._pairs(words)
            if not fault and self._has_queries is None:
                self._has_queries = query is not None
            if not fault and self._has_queries != (query is not None):
                here, before = ("no", "one") if self._has_queries else ("a", "none")
                fault = f"{here} qid after the grade, but the lines before have {before}"
            if fault:
                faults[len(grades)], pairs = fault, []
            columns += [index for index, _ in pairs]
            values += [value for _, value in pairs]
            starts.append(len(columns))
            grades.append(np.nan if fault else float(words[0]))
            queries.append(NO_QUERY if query is None else query)
        X = self._matrix(
            np.array(columns, dtype=np.int32), np.array(values, float), np.array(starts, np.int32)
        )
        found = np.array(queries, dtype=np.int64) if self._has_queries else None
        return SparseRows(X, np.array(grades, float), found, faults)

    def _pairs(self, words: list[str]) -> tuple[list[tuple[int, float]], int | None, str]:
        """Columns and values of a line, its query, and its fault."""
        grade, *cells = words
        pairs: list[tuple[int, float]] = []
        query = None
        if not is_number(grade):
            return [], None, f"the grade {brief(grade)} is not a number"
        before = -1 if self.zero_based else 0
        for place, cell in enumerate(cells):
            index, _, value = cell.partition(":")
            if index == "qid" and place == 0 and re.fullmatch(r"-?[0-9]{1,18}", value):
                query = int(value)
                continue
            if not re.fullmatch("[0-9]{1,18}", index) or not is_number(value):
                return [], None, f"{brief(cell)} is not of the form index:value"
            if int(index) <= before:
                zero = f"; give {hint('zero_based=True', '--zero-based')}?"
                fault = f"index {index} in {brief(cell)} does not increase"
                return [], None, fault + (zero if int(index) == 0 else "")
            before = int(index)
            pairs.append((before - (not self.zero_based), float(value)))
        if before > LARGEST_INDEX:
            return [], None, f"index {before} is larger than {LARGEST_INDEX}"
        if self.n_features and pairs and pairs[-1][0] >= self.n_features:
            return [], None, f"index {before}, but there are {self.n_features} features"
        return pairs, query, ""


def _split_line(line: bytes) -> list[str]:
    return line.partition(b"#")[0].decode(errors="replace").split()
