"""svmlight and LETOR files: a grade, perhaps qid:N, then index:value pairs on each line."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ordspan.core import parsing
from ordspan.data.files.ahead import made_ahead
from ordspan.data.files.chunks import BadRows, Chunk, Place, is_number
from ordspan.data.files.lines import Block, FileError, blocks, numbered_lines

LABEL, GROUP = "label", "qid"
NO_QUERY = -(1 << 62)
LARGEST_INDEX = 2**31 - 2
PATIENCE = 3
"""After so many blocks that were not plain, no other is tried."""


class Extent(NamedTuple):
    """What a first look over a file finds: its numeric grades, its largest index of a feature."""

    grades: set[str]
    largest: int


def survey(path: str) -> Extent:
    """A quick look at the first and the last word of every line; a file is looked at once."""
    state = Path(path).stat() if Path(path).is_file() else None
    return _survey(path, state and (state.st_size, state.st_mtime_ns))


@lru_cache
def _survey(path: str, state: Any) -> Extent:
    grades: set[bytes] = set()
    largest = -1
    for block in blocks(path):
        for _, line in numbered_lines(block):
            words = line.partition(b"#")[0].replace(b"\t", b" ").rstrip()
            grade, _, rest = words.lstrip().partition(b" ")
            if grade:
                grades.add(grade)
                index = rest.rpartition(b" ")[2].partition(b":")[0]
                # an index that no matrix has is told with its line later
                largest = max(largest, int(index) if index.isdigit() and len(index) < 10 else -1)
    if not grades:
        raise FileError(f"{path}: the file is empty")
    texts = (grade.decode(errors="replace") for grade in grades)
    return Extent({text for text in texts if is_number(text)}, largest)


class SvmlightFile:
    """Sparse rows; the grade is the column ``label``, the query the column ``qid``."""

    names = (LABEL, GROUP)

    def __init__(self, path: str, *, n_features: int = 0, zero_based: bool = False) -> None:
        self.path = path
        self.n_features = n_features
        self.zero_based = zero_based
        self._odd_blocks = 0
        first = next(blocks(path), None)
        if first is None or not any(_words(line) for _, line in numbered_lines(first)):
            raise FileError(f"{path}: the file is empty")

    def chunks(
        self, numbers: Sequence[str], texts: Sequence[str], place: Place, bad: BadRows
    ) -> Iterator[Chunk]:
        """Chunks from a place on; the columns are always label and qid."""
        rest = blocks(self.path, place.start, place.line)
        for block, found in made_ahead(self._plain_chunk, rest):
            yield found if found is not None else self._chunk(block, bad)

    def _chunk(self, block: Block, bad: BadRows) -> Chunk:
        place = Place(block.start, block.line)
        try:
            rows = self._parse(block.content)
            if 0 < block.content.count(b"qid:") < rows[1].size:
                raise ValueError("some lines have a qid and some have none")
            lines = np.arange(block.line, block.line + block.n_lines)
            if rows[1].size != lines.size:
                lines = self._line_numbers(block)
            if rows[1].size == lines.size:
                return self._as_chunk(rows, lines, place)
        except (ValueError, OverflowError):
            pass
        return self._careful_chunk(block, bad, place)

    def _plain_chunk(self, block: Block) -> Chunk | None:
        """The rows by a compiled walk, where every line of the block is plain."""
        from scipy.sparse import csr_matrix

        if self._odd_blocks >= PATIENCE:
            return None
        content = block.content if block.content.endswith(b"\n") else block.content + b"\n"
        n_most, entries = block.n_lines, content.count(b":")
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
        width = self.n_features or (int(columns[:size].max()) + 1 if size else 1)
        if n < 0 or (size and columns[:size].max() >= width):
            self._odd_blocks += 1
            return None
        matrix = csr_matrix((values[:size], columns[:size], starts[: n + 1]), shape=(n, width))
        missing = int(np.count_nonzero(queries[:n] == NO_QUERY))
        if 0 < missing < n:
            return None  # some lines have a qid and some have none: to be told line by line
        found = queries[:0] if missing else queries[:n]
        return self._as_chunk(
            (matrix, grades[:n], found), lines[:n] + block.line, Place(block.start, block.line)
        )

    def _line_numbers(self, block: Block) -> Any:
        numbers = [number for number, line in numbered_lines(block) if _words(line)]
        return np.array(numbers, dtype=np.int64)

    def _careful_chunk(self, block: Block, bad: BadRows, place: Place) -> Chunk:
        """A slow second look at a block that could not be parsed, which leaves bad lines out."""
        good = []
        queries = b"qid:" in block.content
        for number, line in numbered_lines(block):
            words = _words(line)
            fault = self._fault(words)
            if queries and words and not fault and not _has_query(words):
                fault = "no qid after the grade, as other lines have one"
            if fault:
                bad.meet(f"{self.path}, line {number}: {fault}")
            elif words:
                good.append((number, line))
        lines = np.array([number for number, _ in good], dtype=np.int64)
        try:
            rows = self._parse(b"".join(line + b"\n" for _, line in good))
        except ValueError as error:
            last = block.line + block.n_lines - 1
            raise FileError(f"{self.path}, lines {block.line} to {last}: {error}") from None
        return self._as_chunk(rows, lines, place)

    def _parse(self, content: bytes) -> tuple[Any, Any, Any]:
        """Matrix, grades and queries by scikit-learn's reader, which knows every form."""
        from sklearn.datasets import load_svmlight_file

        matrix, grades, queries = load_svmlight_file(
            io.BytesIO(content),
            n_features=self.n_features or None,
            zero_based=self.zero_based,
            query_id=True,
        )
        return matrix, grades, queries

    def _as_chunk(self, rows: tuple[Any, Any, Any], lines: Any, place: Place) -> Chunk:
        import pyarrow as pa

        matrix, grades, queries = rows
        columns = {LABEL: grades}
        if queries.size == grades.size:
            columns[GROUP] = queries
        table = pa.table(columns)
        return Chunk(self.path, "line", lines, place, table, matrix)

    def _fault(self, words: list[str]) -> str:
        """What is wrong with the words of a line; empty when nothing is."""
        if not words:
            return ""
        grade, *cells = words
        if not is_number(grade):
            return f"the grade {grade!r} is not a number"
        before = -1 if self.zero_based else 0
        for cell in cells:
            index, _, value = cell.partition(":")
            if index == "qid" and value.lstrip("-").isdecimal():
                continue
            if not index.isdecimal() or not is_number(value):
                return f"{cell!r} is not of the form index:value"
            if int(index) <= before:
                zero = "; give --zero-based?" if int(index) == 0 else ""
                return f"index {index} in {cell!r} does not rise{zero}"
            before = int(index)
        if before >= LARGEST_INDEX:
            return f"index {before} is larger than any that can be learned"
        if self.n_features and before - (not self.zero_based) >= self.n_features:
            return f"index {before}, but there are {self.n_features} features"
        return ""


def _has_query(words: list[str]) -> bool:
    return len(words) > 1 and words[1].startswith("qid:")


def _words(line: bytes) -> list[str]:
    return line.partition(b"#")[0].decode(errors="replace").split()
