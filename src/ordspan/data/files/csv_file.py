"""Comma separated values: plain blocks by a compiled walk, others by pyarrow, bad ones slowly."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ordspan.core import parsing
from ordspan.data.files.ahead import THREADS, made_ahead
from ordspan.data.files.chunks import (
    EMPTY,
    JUDGED_LINES,
    TEXT,
    BadRows,
    Chunk,
    Place,
    is_number,
    kind_of,
    kind_of_words,
    not_a_number,
    repeated,
)
from ordspan.data.files.lines import STDIN, Block, FileError, blocks, numbered_lines, plain_name

if TYPE_CHECKING:
    import pyarrow as pa


PATIENCE = 3
"""After so many blocks that were not plain, no other is tried."""


class CsvFile:
    """Comma separated values under a header line."""

    def __init__(self, path: str, delimiter: str = ",") -> None:
        self.path = path
        self.delimiter = "\t" if plain_name(path).endswith(".tsv") else delimiter
        self.numbers_in_table = False  # whether the table must hold the numbers, too
        self._odd_blocks = 0
        self._blocks: Iterator[Block] | None = None
        self._first: Block | None = None
        self.names = self._read_header()

    def _read_header(self) -> list[str]:
        self._blocks = blocks(self.path)
        self._first = next(self._blocks, None)
        if self._first is None:
            raise FileError(f"{self.path}: the file is empty")
        line, rest = _first_line(self._first)
        text = _decoded(line, f"{self.path}, line 1")
        try:
            names = next(csv.reader([text], delimiter=self.delimiter), [])
        except csv.Error as error:
            raise FileError(f"{self.path}, line 1: the header cannot be read ({error})") from None
        names = [name.strip() for name in names]
        if (twice := repeated(names)) is not None:
            raise FileError(f"{self.path}, line 1: the header has {twice!r} more than once")
        self._places = {name: place for place, name in enumerate(names)}
        self._first = rest
        return names

    def kinds(self) -> dict[str, str]:
        """What each column holds, judged by the first block of lines."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        self._wait_for_rows()
        head = self._first
        if head is None or not head.content.strip():
            raise FileError(f"{self.path}: there is a header, but no row under it")
        lines = [text for _, text in islice(numbered_lines(head), JUDGED_LINES)]
        good = [line for line in lines if not self._fault(line, {})]
        if not good:
            raise FileError(f"{self.path}, line {head.line}: {self._fault(lines[0], {})}")
        table = arrow_csv.read_csv(
            pa.BufferReader(b"\n".join(good) + b"\n"),
            arrow_csv.ReadOptions(column_names=self.names),
            arrow_csv.ParseOptions(delimiter=self.delimiter),
            arrow_csv.ConvertOptions(null_values=list(EMPTY)),
        )
        return {name: _column_kind(table.column(name)) for name in self.names}

    def _wait_for_rows(self) -> None:
        """A pipe may give the header alone at first; then the next block is waited for."""
        while self._first is not None and self._blocks and not self._first.content.strip():
            following = next(self._blocks, None)
            if following is None:
                return
            self._first = following

    def chunks(
        self, numbers: Sequence[str], texts: Sequence[str], place: Place, bad: BadRows
    ) -> Iterator[Chunk]:
        """Chunks from a place on, with the columns ``numbers`` as floats and ``texts`` as words."""
        plain = partial(self._plain_chunk, numbers=numbers, texts=texts)
        threads = 0 if self.path == STDIN else THREADS  # rows of a pipe are used as they come
        for block, found in made_ahead(plain, self._blocks_from(place), threads):
            yield found if found is not None else self._chunk(block, numbers, texts, bad)

    def _blocks_from(self, place: Place) -> Iterator[Block]:
        """Blocks of lines under the header; standard input can be read only once."""
        if place.start == 0:
            started, first = self._blocks, self._first
            self._blocks = None
            if started is None:
                started = blocks(self.path)
                _, first = _first_line(next(started))
            if first is not None and first.content:
                yield first
            yield from started
        else:
            yield from blocks(self.path, place.start, place.line)

    def _chunk(
        self, block: Block, numbers: Sequence[str], texts: Sequence[str], bad: BadRows
    ) -> Chunk:
        import pyarrow as pa

        place = Place(block.start, block.line)
        try:
            table = self._parse(block.content, numbers, texts)
            lines = np.arange(block.line, block.line + block.n_lines)
            if table.num_rows != block.n_lines:
                lines = np.array([number for number, _ in numbered_lines(block)], dtype=np.int64)
            if table.num_rows == lines.size:
                return Chunk(self.path, "line", lines, place, table)
            reason = "rows and lines do not agree; a cell must not span lines"
        except pa.ArrowInvalid as error:
            reason = str(error)
        return self._careful_chunk(block, numbers, texts, bad, reason)

    def _plain_chunk(
        self, block: Block, numbers: Sequence[str], texts: Sequence[str]
    ) -> Chunk | None:
        """The numbers straight as a matrix, where every cell of the block is plain."""
        import pyarrow as pa

        if self.numbers_in_table or self._odd_blocks >= PATIENCE or b'"' in block.content:
            return None
        content = block.content if block.content.endswith(b"\n") else block.content + b"\n"
        number_places = [self._places[name] for name in numbers]
        text_places = [self._places[name] for name in texts]
        kinds = np.full(len(self.names), parsing.LEFT_OUT, dtype=np.int8)
        kinds[number_places], kinds[text_places] = parsing.NUMBER_COLUMN, parsing.TEXT_COLUMN
        matrix = np.empty((block.n_lines, len(numbers)))
        lines = np.empty(block.n_lines, dtype=np.int64)
        words = np.empty((len(texts), len(content)), dtype=np.uint8)  # only what is filled counts
        ends = np.zeros((len(texts), block.n_lines + 1), dtype=np.int32)
        n_rows = parsing.read_csv_lines(
            np.frombuffer(content, dtype=np.uint8),
            ord(self.delimiter),
            kinds,
            matrix,
            lines,
            words,
            ends,
        )
        if n_rows < 0:
            self._odd_blocks += 1
            return None
        matrix = matrix[:n_rows]
        if number_places != sorted(number_places):  # the walk fills them as they stand in the file
            matrix = matrix[:, np.argsort(np.argsort(number_places))]
        columns = {}
        for name, place in zip(texts, np.argsort(np.argsort(text_places)), strict=True):
            offsets, letters = pa.py_buffer(ends[place]), pa.py_buffer(words[place])
            columns[name] = pa.StringArray.from_buffers(n_rows, offsets, letters)
        return self._checked(block, pa.table(columns), lines[:n_rows] + block.line, matrix)

    def _checked(
        self, block: Block, table: pa.Table, lines: NDArray[np.int64], matrix: NDArray[np.float64]
    ) -> Chunk | None:
        """The chunk, unless its words are not UTF-8."""
        import pyarrow as pa

        try:
            table.validate(full=True)
        except pa.ArrowInvalid:
            return None
        return Chunk(self.path, "line", lines, Place(block.start, block.line), table, matrix)

    def _careful_chunk(
        self, block: Block, numbers: Sequence[str], texts: Sequence[str], bad: BadRows, reason: str
    ) -> Chunk:
        """A slow second look at a block that could not be parsed, which leaves bad lines out."""
        columns = {name: self._places[name] for name in numbers}
        good = []
        for number, line in numbered_lines(block):
            if fault := self._fault(line, columns):
                bad.meet(f"{self.path}, line {number}: {fault}")
            else:
                good.append((number, line))
        content = b"".join(line + b"\n" for _, line in good)
        table = self._parse(content, numbers, texts)
        lines = np.array([number for number, _ in good], dtype=np.int64)
        if table.num_rows != lines.size:
            last = block.line + block.n_lines - 1
            raise FileError(f"{self.path}, lines {block.line} to {last}: {reason}")
        return Chunk(self.path, "line", lines, Place(block.start, block.line), table)

    def _parse(self, content: bytes, numbers: Sequence[str], texts: Sequence[str]) -> pa.Table:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        types = {name: pa.float64() for name in numbers} | {name: pa.string() for name in texts}
        if not content:
            return pa.schema(types.items()).empty_table()
        return arrow_csv.read_csv(
            pa.BufferReader(content),
            arrow_csv.ReadOptions(column_names=self.names),
            arrow_csv.ParseOptions(delimiter=self.delimiter),
            arrow_csv.ConvertOptions(
                column_types=types,
                include_columns=[*numbers, *texts],
                null_values=list(EMPTY),
                strings_can_be_null=False,
            ),
        )

    def _fault(self, line: bytes, columns: dict[str, int]) -> str:
        """What is wrong with a line; empty when nothing is."""
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            return f"byte {error.start + 1} is not UTF-8; save the file as UTF-8"
        if text.count('"') % 2:
            return "a quote is not closed; a quoted cell must not span lines"
        try:
            cells = next(csv.reader([text], delimiter=self.delimiter), [])
        except csv.Error as error:
            return f"cannot be read as fields ({error})"
        if len(cells) != len(self.names):
            s = "" if len(cells) == 1 else "s"
            return f"{len(cells)} field{s}, but the header has {len(self.names)}"
        for name, column in columns.items():
            if cells[column].strip() not in EMPTY and not is_number(cells[column]):
                return not_a_number(name, cells[column])
        return ""


def _first_line(block: Block) -> tuple[bytes, Block]:
    """The first line, and the block without it."""
    line, _, rest = block.content.partition(b"\n")
    size = len(block.content) - len(rest)
    after = Block(rest, block.start + size, block.line + 1, block.n_lines - 1)
    return line.rstrip(b"\r"), after


def _decoded(line: bytes, where: str) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise FileError(
            f"{where}: byte {error.start + 1} is not UTF-8; save the file as UTF-8"
        ) from None


def _column_kind(column: pa.ChunkedArray) -> str:
    """What a column holds; true and false are words, because no later block need have them."""
    import pyarrow as pa

    if pa.types.is_boolean(column.type):
        return TEXT
    kind = kind_of(column.type)
    return kind_of_words(column.to_pylist()) if kind == TEXT else kind
