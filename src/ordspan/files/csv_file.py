"""Comma separated values by Polars; a block that it refuses is read again, cell by cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ordspan.files.batch import INFER_ROWS, SHOWN, Faults, FileError, first_duplicate
from ordspan.files.dialect import find_delimiter, sep_line
from ordspan.files.tables import Frame, TableFile, TextFile
from ordspan.files.text import (
    QUOTE,
    SAVE_AS_UTF8,
    UTF8_MARK,
    WESTERN,
    TextBlock,
    open_text,
    plain_name,
    record,
    text_blocks,
    well_quoted,
)

MAX_FALLBACK_BLOCKS = 3
"""After so many blocks with other cells than numbers in a number column, all are read as words."""


class CsvFile(TextFile):
    """Comma separated values under a header."""

    def __init__(
        self, path: str, delimiter: str | None = None, encoding: str | None = None
    ) -> None:
        self._told, self.encoding = delimiter, encoding
        self._refused = 0
        super().__init__(path)
        self._places = {name: place for place, name in enumerate(self.names)}

    def _open(self) -> list[str]:
        """The names of the columns; the blocks under them wait to be read."""
        text = open_text(self.path, self.encoding)
        if self.encoding is None and text.encoding == WESTERN:
            self.notes.append("read as Windows-1252 (Latin-1), because it is not UTF-8")
        self._choose_delimiter(text.head)
        found = text_blocks(self.path, delimiter=self.delimiter, text=text)
        rest = (block for block in found if not block.is_blank())
        first = next(rest, None)
        if first is None:
            raise FileError(f"{self.path}: the file is empty")
        self.plain = text.plain and first.line == 1
        skipped = sep_line(first.content)
        lines = first.content[len(skipped) :].split(b"\n")
        at = next((i for i, line in enumerate(lines) if line.strip(b"\r")), None)
        if at is None:
            raise FileError(f"{self.path}: there is no header")
        used, names, fault = self._record(lines, at)
        self.line = first.line + bool(skipped) + at
        if fault:
            raise FileError(f"{self.path}, line {self.line}: {fault}")
        at, self.line = at + used, self.line + used
        content = b"\n".join(lines[at:])
        self.begin = text.begin + len(first.content) - len(content)
        under = TextBlock(content, self.line, first.share, first.odd)
        self._begun = chain([] if under.is_blank() else [under], rest)
        return _named(names)

    def _choose_delimiter(self, head: bytes) -> None:
        if self._told is not None:
            self.delimiter = self._told
        elif plain_name(self.path).lower().endswith(".tsv") and not sep_line(head):
            self.delimiter = "\t"
        else:
            self.delimiter = find_delimiter(head)
            if self.delimiter != ",":
                shown = "tabs" if self.delimiter == "\t" else repr(self.delimiter)
                self.notes.append(f"fields are separated by {shown}")

    def _n_rows(self, block: TextBlock) -> int:
        """Rows of a block, which are its lines unless there are quotes."""
        if QUOTE in block.content:
            return self._parsed(block, (), ()).lines.size
        return len(block.numbered_lines())

    def _parsed(self, block: TextBlock, numbers: Sequence[str], texts: Sequence[str]) -> Frame:
        """The rows of a block: the quick way, or as words by Polars, or as words by Python."""
        wanted, content = list(dict.fromkeys([*numbers, *texts])), block.content
        odd_ends = b"\r" in content and content.count(b"\r") != content.count(b"\r\n")
        # a mark within the text would be left out by Polars, and wrong letters in other columns
        odd = block.odd or odd_ends or b"\0" in content or content.startswith(UTF8_MARK)
        if odd or not _is_utf8(content):
            return self._slowly(block, wanted)
        # what is carried along stays as it is written
        floats = [name for name in numbers if name not in texts]
        for typed in (floats, []) if self._refused < MAX_FALLBACK_BLOCKS else ([],):
            try:
                return self._read(block, wanted, typed)
            except pl.exceptions.PolarsError:
                self._refused += bool(typed)
        return self._slowly(block, wanted)

    def _read(self, block: TextBlock, wanted: list[str], floats: list[str]) -> Frame:
        """The rows by Polars; if it may have overlooked a long row, with all columns."""
        content, last = block.content, self.names[-1]
        needed = [name for name in self.names if name in {*wanted, last}]
        frame = self._frame(content, needed, floats)
        # without quotes, and where the last field of no row is empty, each line is a whole row
        plain = QUOTE not in content and not frame[last].null_count()
        if plain and len(needed) < len(self.names):  # Polars looks at the fields it needs only
            n_cuts = frame.height * (len(self.names) - 1)
            plain = content.count(self.delimiter.encode()) == n_cuts
        if plain:
            lines = np.arange(block.line, block.line + frame.height)
            return Frame(frame[wanted], lines, {}, block.share)
        if len(needed) < len(self.names):
            frame = self._frame(content, self.names, floats)
        return self._settled(block, frame, wanted)

    def _frame(self, content: bytes, needed: list[str], floats: list[str]) -> pl.DataFrame:
        types = dict.fromkeys(self.names, pl.String()) | dict.fromkeys(floats, pl.Float64())
        frame = pl.read_csv(
            content,
            has_header=False,
            separator=self.delimiter,
            schema={f"column_{i}": kind for i, kind in enumerate(types.values(), 1)},
            columns=[f"column_{self._places[name] + 1}" for name in needed],
        )
        frame.columns = needed
        return frame

    def _settled(self, block: TextBlock, frame: pl.DataFrame, wanted: list[str]) -> Frame:
        """What Polars read, without blank lines, which it takes for rows; short rows are found."""
        starts, ends, lines = records(block)
        if starts.size != frame.height:
            raise pl.exceptions.ComputeError("rows and lines do not agree")
        filled, faults = ends > starts, Faults()
        suspect = frame[self.names[-1]].is_null().to_numpy() & filled
        n_cuts = np.count_nonzero(filled) * (len(self.names) - 1)
        if QUOTE not in block.content and block.content.count(self.delimiter.encode()) == n_cuts:
            suspect[:] = False  # no row is short: the last fields are only empty
        for row in np.flatnonzero(suspect).tolist():
            lines_of_row = block.content[starts[row] : ends[row]].split(b"\n")
            if fault := self._field_fault(record(lines_of_row, 0, self.delimiter)[1]):
                faults[int(np.count_nonzero(filled[:row]))] = fault
        kept = frame.filter(pl.Series(filled))[wanted]
        return Frame(kept, lines[filled], faults, block.share)

    def _slowly(self, block: TextBlock, wanted: Sequence[str], most: int | None = None) -> Frame:
        """The wanted cells as words, by Python's own reader, which finds the line at fault."""
        lines: list[int] = []
        rows: list[list[str | None]] = []
        faults, texts = Faults(), block.content.split(b"\n")
        at = 0
        while at < len(texts) and (most is None or len(rows) < most):
            if not texts[at].strip(b"\r"):
                at += 1
                continue
            used, cells, fault = self._record(texts, at)
            fault = fault or self._field_fault(cells)
            if fault:
                faults[len(rows)] = fault
            rows.append([None if fault else cells[self._places[name]] for name in wanted])
            lines.append(block.line + at)
            at += used
        frame = pl.DataFrame(rows, dict.fromkeys(wanted, pl.String()), orient="row")
        return Frame(frame, np.array(lines, dtype=np.int64), faults, block.share)

    def _record(self, lines: list[bytes], at: int) -> tuple[int, list[str], str]:
        """Lines and cells of the record that begins on a line, and what is wrong with it."""
        used, cells = record(lines, at, self.delimiter)
        whole = b"\n".join(lines[at : at + max(1, used)])
        try:
            shown = repr(whole.decode()[:SHOWN])
        except UnicodeDecodeError as error:
            return max(1, used), [], f"byte {error.start + 1} is not UTF-8; {SAVE_AS_UTF8}"
        if b"\0" in whole:
            return max(1, used), [], f"byte {whole.index(0) + 1} is a null byte; take it out"
        if used == 0 and lines[at].count(QUOTE) % 2:
            return (
                1,
                [],
                f"a quote is not closed; close it, or double a quote within quotes: {shown}",
            )
        if QUOTE in whole and not well_quoted(whole, self.delimiter):
            fault = f"a quote stands inside a cell; put the whole cell in quotes: {shown}"
            return max(1, used), [], fault
        if used == 0 or (b"\r" in whole.rstrip(b"\r") and QUOTE not in whole):
            return 1, [], "cannot be read as fields: there is a carriage return inside the line"
        return used, cells, ""

    def _field_fault(self, cells: list[str]) -> str:
        if len(cells) == len(self.names):
            return ""
        s = "" if len(cells) == 1 else "s"
        return f"{len(cells)} field{s}, but the header has {len(self.names)}"


def _named(names: Sequence[str]) -> list[str]:
    """The names in a header; a column without one is called by its place.

    >>> _named(["", "age ", ""])
    ['column 1', 'age', 'column 3']
    """
    return [name.strip() or f"column {place}" for place, name in enumerate(names, start=1)]


def _is_utf8(content: bytes) -> bool:
    try:
        return content.isascii() or bool(content.decode())
    except UnicodeDecodeError:
        return False


def records(block: TextBlock) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    r"""Where each record of a block begins and ends, and its line; line ends in quotes are none.

    >>> starts, ends, lines = records(TextBlock(b'1,"a\nb"\n\n2,c\r\n', line=5, share=1.0))
    >>> starts.tolist(), ends.tolist(), lines.tolist()
    ([0, 8, 9], [7, 8, 12], [5, 7, 8])
    """
    letters = np.frombuffer(block.content, dtype=np.uint8)
    line_ends = np.flatnonzero(letters == ord("\n"))
    if not block.content.endswith(b"\n"):
        line_ends = np.append(line_ends, letters.size)
    quotes = np.flatnonzero(letters == ord(QUOTE))
    outside = np.searchsorted(quotes, line_ends) % 2 == 0
    ends = line_ends[outside]
    starts = np.concatenate([[0], ends + 1])[: ends.size]
    lines = block.line + np.concatenate([[0], np.flatnonzero(outside) + 1])[: ends.size]
    returns = letters[np.maximum(ends - 1, 0)] == ord("\r")
    return starts, np.where(returns & (ends > starts), ends - 1, ends), lines


class ExcelFile(TableFile):
    """The one sheet of an Excel workbook; its cells are taken as words, lines are its rows."""

    def _open(self) -> list[str]:
        import fastexcel

        try:
            book = fastexcel.read_excel(self.path)
        except fastexcel.FastExcelError as error:
            raise FileError(f"{self.path}: not an Excel workbook ({error})") from None
        if len(book.sheet_names) > 1:
            raise FileError(
                f"{self.path}: there are {len(book.sheet_names)} sheets, "
                f"{', '.join(book.sheet_names)}; save the one to read as a file of its own"
            )
        sheet: Any = book.load_sheet(0, header_row=None, skip_rows=0, dtypes="string")
        cells = sheet.to_polars().with_columns(pl.all().fill_null(""))
        filled = cells.with_row_index("line", 1).filter(
            ~pl.all_horizontal(pl.exclude("line") == "")
        )
        if filled.height < 2:
            raise FileError(f"{self.path}: there is no row under a header")
        self._lines = filled["line"].to_numpy()[1:].astype(np.int64)
        self._cells = filled.drop("line")[1:]
        names = _named(filled.row(0)[1:])
        self._cells.columns = names if first_duplicate(names) is None else self._cells.columns
        return names

    def head(self) -> pl.DataFrame:
        """The first rows."""
        return self._cells[:INFER_ROWS]

    def sample(self, size: int) -> tuple[pl.DataFrame, bool]:
        """All rows: they are in memory."""
        return self._cells, True

    def frames(
        self, numbers: Sequence[str], texts: Sequence[str], start: int, part: Any = None
    ) -> Iterator[Frame]:
        """All rows."""
        yield Frame(self._cells, self._lines, {}, 1.0)
