"""svmlight and LETOR files: a grade, perhaps qid:N, then index:value pairs on each line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordspan.labels.forms import is_number
from ordspan.labels.grades import MAX_GRADES
from ordspan.tables import svmlight_numbers as parsing
from ordspan.tables.batch import GROUP, LABEL, Batch, Faults, FileError
from ordspan.tables.limits import FEATURE_BYTES, check_memory
from ordspan.tables.lines import TextBlock
from ordspan.tables.text import (
    N_SPANS,
    PART_BYTES,
    Part,
    open_text,
    parts_of,
    spread_parts,
    text_blocks,
)
from ordspan.tables.threads import parallel_map
from ordspan.wording import brief, hint, join_hints

if TYPE_CHECKING:
    import polars as pl

NO_QUERY = -(1 << 62)
LARGEST_INDEX = 2**31 - 2
MAX_FALLBACK_BLOCKS = 3
"""After this many blocks that were not plain, all are read line by line."""


class Extent(NamedTuple):
    """What a first pass over a file finds: its grades, its smallest and its largest index.

    Grades beyond the number that can be learned are not all kept.
    """

    grades: set[str]
    smallest: int
    largest: int
    line: int = 0  # where the largest is


def survey(path: str) -> Extent:
    """A first pass over a file, which ignores bad lines."""
    state = Path(path).stat() if Path(path).is_file() else None
    return _survey(path, state and (state.st_size, state.st_mtime_ns))


@lru_cache
def _survey(path: str, state: Any) -> Extent:
    grades: set[str] = set()
    smallest, largest, line = LARGEST_INDEX, -1, 0
    for found in SvmlightFile(path, zero_based=True).sparse_rows():
        if len(grades) <= MAX_GRADES:
            grades.update(f"{grade:.17g}" for grade in np.unique(found.grades))
        if found.X.nnz:
            smallest = min(smallest, int(found.X.indices.min()))
            entry = int(found.X.indices.argmax())
            if found.X.indices[entry] > largest:
                largest = int(found.X.indices[entry])
                line = int(found.lines[np.searchsorted(found.X.indptr, entry, side="right") - 1])
    return Extent(grades, smallest, largest, line)


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
    check_memory(
        f"{path}, line {extent.line}: index {extent.largest} means {n_features:,} features, which",
        FEATURE_BYTES * n_features,
        join_hints("correct it", "number the features from 1", bad),
    )
    return zero_based, n_features


class SparseRows(NamedTuple):
    """Rows of a block; a bad row is empty and has the grade NaN."""

    X: Any  # CSR
    grades: NDArray[np.float64]
    queries: NDArray[np.int64] | None
    lines: NDArray[np.int64]
    faults: Faults
    share: float


class SvmlightFile:
    """Sparse rows; the grade is the column ``label``, the query the column ``qid``."""

    sparse = True
    names = (LABEL, GROUP)

    def __init__(self, path: str, *, n_features: int = 0, zero_based: bool = False) -> None:
        self.path = path
        self.n_features = n_features
        self.zero_based = zero_based
        self._odd_blocks = 0
        text = open_text(path)
        self.plain = text.plain and not text.begin
        lines = (line for b in text_blocks(path, text=text) for _, line in b.numbered_lines())
        if not any(_split_line(line) for line in lines):
            raise FileError(f"{path}: the file is empty")

    def batches(
        self,
        numbers: Sequence[str] = (),
        texts: Sequence[str] = (),
        start: int = 0,
        part: Part | None = None,
    ) -> Iterator[tuple[Batch, Faults]]:
        """Batches with at least the rows from ``start`` on, and the faults of bad rows.

        The columns of the table are always label and, if lines have it, qid.
        """
        import polars as pl

        row = 0
        for found in self.sparse_rows(part):
            rows = np.arange(row, row + found.lines.size)
            row += rows.size
            frame = pl.DataFrame({LABEL: _as_words(found.grades)})
            if found.queries is not None:
                queries = pl.Series(GROUP, found.queries).replace(NO_QUERY, None)
                frame = frame.with_columns(queries)
            batch = Batch(found.X, frame, found.lines, rows, self.path, share=found.share)
            yield batch, found.faults

    def sample(self, size: int) -> Iterator[SparseRows]:
        """About ``size`` bytes of rows spread over the file; the start of a compressed one."""
        if not self.plain or Path(self.path).stat().st_size <= size:
            for found in self.sparse_rows():
                yield found
                size -= found.X.data.nbytes
                if size < 0:
                    break
            return
        for part in spread_parts(self.path, 0, N_SPANS, size // N_SPANS):
            yield from self.sparse_rows(part)

    def parts(self) -> list[Any]:
        """Parts of the file that can be read in any order; None is the whole file."""
        return parts_of(self.path, 0, 1, size=PART_BYTES) if self.plain else [None]

    def sparse_rows(self, part: Part | None = None) -> Iterator[SparseRows]:
        """The rows of the file, or of a part of it, block by block."""
        self._has_queries: bool | None = None  # decided by the first good line
        found_blocks = text_blocks(self.path, part=part)
        for block, plain in parallel_map(lambda b: (b, self._parse_plain(b)), found_blocks):
            agrees = plain and self._has_queries in (None, plain.queries is not None)
            found = plain if plain and agrees else self._parse_slowly(block)
            if found.lines.size:
                if plain and self._has_queries is None:
                    self._has_queries = plain.queries is not None
                yield found

    def _parse_plain(self, block: TextBlock) -> SparseRows | None:
        """The rows by a compiled loop, if every line of the block is plain."""
        if self._odd_blocks >= MAX_FALLBACK_BLOCKS:
            return None
        content = block.content if block.content.endswith(b"\n") else block.content + b"\n"
        n_most, entries = content.count(b"\n"), content.count(b":")
        grades, queries = np.empty(n_most), np.full(n_most, NO_QUERY, dtype=np.int64)
        starts, lines = np.zeros(n_most + 1, dtype=np.int32), np.empty(n_most, dtype=np.int64)
        columns, values = np.empty(entries, dtype=np.int32), np.empty(entries)
        n = parsing.read_svmlight_lines(
            np.frombuffer(content, dtype=np.uint8),
            0 if self.zero_based else 1,
            grades,
            queries,
            starts,
            columns,
            values,
            lines,
        )
        size = int(starts[n]) if n >= 0 else 0
        known = queries[: max(n, 0)] != NO_QUERY
        if n < 0 or self._too_large(columns[:size]) or (known.any() and not known.all()):
            self._odd_blocks += 1
            return None
        X = self._matrix(columns[:size], values[:size], starts[: n + 1])
        found = queries[:n] if known.any() else None
        return SparseRows(X, grades[:n], found, lines[:n] + block.line, {}, block.share)

    def _too_large(self, columns: Any) -> bool:
        return bool(self.n_features and columns.size and columns.max() >= self.n_features)

    def _matrix(self, columns: Any, values: Any, starts: Any) -> Any:
        from scipy.sparse import csr_array

        width = self.n_features or (int(columns.max()) + 1 if columns.size else 1)
        return csr_array((values, columns, starts), shape=(starts.size - 1, width))

    def _parse_slowly(self, block: TextBlock) -> SparseRows:
        """The rows line by line, with their faults."""
        faults = Faults()
        lines: list[int] = []
        grades: list[float] = []
        queries: list[int] = []
        columns: list[int] = []
        values: list[float] = []
        starts = [0]
        for number, line in block.numbered_lines():
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
                faults[len(lines)], pairs = fault, []
            columns += [index for index, _ in pairs]
            values += [value for _, value in pairs]
            starts.append(len(columns))
            lines.append(number)
            grades.append(np.nan if fault else float(words[0]))
            queries.append(NO_QUERY if query is None else query)
        X = self._matrix(
            np.array(columns, dtype=np.int32), np.array(values, float), np.array(starts, np.int32)
        )
        found = np.array(queries, dtype=np.int64) if self._has_queries else None
        numbers = np.array(lines, dtype=np.int64)
        return SparseRows(X, np.array(grades, float), found, numbers, faults, block.share)

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


def _as_words(grades: NDArray[np.float64]) -> pl.Series:
    """Grades as text, whole numbers without a decimal point."""
    import polars as pl

    return pl.Series(grades).cast(pl.String()).str.strip_suffix(".0")


def _split_line(line: bytes) -> list[str]:
    return line.partition(b"#")[0].decode(errors="replace").split()
