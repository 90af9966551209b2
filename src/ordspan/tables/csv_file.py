"""CSV files, read by Polars; a block that it rejects is read again, cell by cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ordspan.tables.batch import INFER_ROWS, Faults, FileError, first_duplicate
from ordspan.tables.dialect import find_delimiter, sep_line
from ordspan.tables.lines import QUOTE, TextBlock, record, well_quoted
from ordspan.tables.tables import Frame, TableFile, TextFile
from ordspan.tables.text import SAVE_AS_UTF8, UTF8_MARK, WESTERN, open_text, plain_name, text_blocks
from ordspan.wording import SHOWN

MAX_FALLBACK_BLOCKS = 3
"""After this many blocks with non-numeric cells in numeric columns, all are read as text."""


class CsvFile(TextFile):
    """A CSV file with a header, or standard input."""

    def __init__(
        self,
        path: str,
        delimiter: str | None = None,
        encoding: str | None = None,
        pipe: Any = None,
    ) -> None:
        self._given, self.encoding, self._pipe = delimiter, encoding, pipe
        self._refused = 0
        super().__init__(path)
        self._places = {name: place for place, name in enumerate(self.names)}

    def _open(self) -> list[str]:
        """The names of the columns; the blocks below them are read later."""
        text = open_text(self.path, self.encoding, self._pipe)
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
            raise FileError(f"{self.path}: there is no header line")
        used, names, fault = self._record(lines, at)
        self.line = first.line + bool(skipped) + at
        if fault:
            raise FileError(f"{self.path}, line {self.line}: {fault}")
        at, self.line = at + used, self.line + used
        content = b"\n".join(lines[at:])
        self.begin = text.begin + len(first.content) - len(content)
        under = TextBlock(content, self.line, first.share, first.odd)
        self._begun = chain([] if under.is_blank() else [under], rest)
        return _column_names(names)

    def _choose_delimiter(self, head: bytes) -> None:
        if self._given is not None:
            self.delimiter = self._given
        elif plain_name(self.path).lower().endswith(".tsv") and not sep_line(head):
            self.delimiter = "\t"
        else:
            self.delimiter = find_delimiter(head)
            if self.delimiter != ",":
                shown = "tabs" if self.delimiter == "\t" else repr(self.delimiter)
                self.notes.append(f"fields are separated by {shown}")

    def _n_rows(self, block: TextBlock) -> int:
        """Number of rows of a block: its lines, unless there are quotes."""
        if QUOTE in block.content:
            return self._parsed(block, (), ()).lines.size
        return len(block.numbered_lines())

    def _parsed(self, block: TextBlock, numbers: Sequence[str], texts: Sequence[str]) -> Frame:
        """The rows of a block, by Polars with numbers, by Polars as text, or by Python."""
        wanted, content = list(dict.fromkeys([*numbers, *texts])), block.content
        odd_ends = b"\r" in content and content.count(b"\r") != content.count(b"\r\n")
        # Polars drops a byte-order mark inside the text, and ignores bad bytes in other columns
        odd = block.odd or odd_ends or b"\0" in content or content.startswith(UTF8_MARK)
        if odd or not _is_utf8(content):
            return self._parse_slowly(block, wanted)
        # columns to keep stay as they are written
        floats = [name for name in numbers if name not in texts]
        for typed in (floats, []) if self._refused < MAX_FALLBACK_BLOCKS else ([],):
            try:
                return self._read(block, wanted, typed)
            except pl.exceptions.PolarsError:
                self._refused += bool(typed)
        return self._parse_slowly(block, wanted)

    def _read(self, block: TextBlock, wanted: list[str], floats: list[str]) -> Frame:
        """The rows by Polars; with all columns if it may have missed a long row."""
        content, last = block.content, self.names[-1]
        needed = [name for name in self.names if name in {*wanted, last}]
        frame = self._frame(content, needed, floats)
        # without quotes and empty last fields, each line is a complete row
        plain = QUOTE not in content and not frame[last].null_count()
        if plain and len(needed) < len(self.names):  # Polars parses only the fields it needs
            n_cuts = frame.height * (len(self.names) - 1)
            plain = content.count(self.delimiter.encode()) == n_cuts
        if plain:
            lines = np.arange(block.line, block.line + frame.height)
            return Frame(frame[wanted], lines, {}, block.share)
        if len(needed) < len(self.names):
            frame = self._frame(content, self.names, floats)
        return self._without_blank_lines(block, frame, wanted)

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

    def _without_blank_lines(
        self, block: TextBlock, frame: pl.DataFrame, wanted: list[str]
    ) -> Frame:
        """What Polars read, without blank lines, which it counts as rows; finds short rows."""
        starts, ends, lines = records(block)
        if starts.size != frame.height:
            raise pl.exceptions.ComputeError("rows and lines do not agree")
        filled, faults = ends > starts, Faults()
        suspect = frame[self.names[-1]].is_null().to_numpy() & filled
        n_cuts = np.count_nonzero(filled) * (len(self.names) - 1)
        if QUOTE not in block.content and block.content.count(self.delimiter.encode()) == n_cuts:
            suspect[:] = False  # no row is short: the last fields are just empty
        for row in np.flatnonzero(suspect).tolist():
            lines_of_row = block.content[starts[row] : ends[row]].split(b"\n")
            if fault := self._field_fault(record(lines_of_row, 0, self.delimiter)[1]):
                faults[int(np.count_nonzero(filled[:row]))] = fault
        kept = frame.filter(pl.Series(filled))[wanted]
        return Frame(kept, lines[filled], faults, block.share)

    def _parse_slowly(
        self, block: TextBlock, wanted: Sequence[str], most: int | None = None
    ) -> Frame:
        """The wanted cells as text, by Python's csv reader, which finds the faulty line."""
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
        """Number of lines and cells of the record that begins at a line, and its fault."""
        used, cells = record(lines, at, self.delimiter)
        whole = b"\n".join(lines[at : at + max(1, used)])
        try:
            shown = repr(whole.decode()[:SHOWN])
        except UnicodeDecodeError as error:
            return max(1, used), [], f"byte {error.start + 1} is not UTF-8; {SAVE_AS_UTF8}"
        if b"\0" in whole:
            return max(1, used), [], f"byte {whole.index(0) + 1} is a null byte; remove it"
        if used == 0 and lines[at].count(QUOTE) % 2:
            fault = f"a quote is not closed; close it, or double quotes within quotes: {shown}"
            return 1, [], fault
        if QUOTE in whole and not well_quoted(whole, self.delimiter):
            fault = f"a quote inside an unquoted cell; quote the whole cell: {shown}"
            return max(1, used), [], fault
        if used == 0 or (b"\r" in whole.rstrip(b"\r") and QUOTE not in whole):
            return 1, [], "cannot be split into fields: carriage return inside the line"
        return used, cells, ""

    def _field_fault(self, cells: list[str]) -> str:
        if len(cells) == len(self.names):
            return ""
        s = "" if len(cells) == 1 else "s"
        return f"{len(cells)} field{s}, but the header has {len(self.names)}"


def _column_names(names: Sequence[str]) -> list[str]:
    """The names in a header; a column without one is named by its position.

    >>> _column_names(["", "age ", ""])
    ['column 1', 'age', 'column 3']
    """
    return [name.strip() or f"column {place}" for place, name in enumerate(names, start=1)]


def _is_utf8(content: bytes) -> bool:
    try:
        return content.isascii() or bool(content.decode())
    except UnicodeDecodeError:
        return False


def records(block: TextBlock) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    r"""Start, end and line of each record of a block; line breaks in quotes do not end one.

    >>> starts, ends, lines = records(TextBlock(b'1,"a\nb"\n\n2,c\r\n', line=5, share=1.0))
    >>> starts.tolist(), ends.tolist(), lines.tolist()
    ([0, 8, 9], [7, 8, 12], [5, 7, 8])
    """
    codes = np.frombuffer(block.content, dtype=np.uint8)
    line_ends = np.flatnonzero(codes == ord("\n"))
    if not block.content.endswith(b"\n"):
        line_ends = np.append(line_ends, codes.size)
    quotes = np.flatnonzero(codes == ord(QUOTE))
    outside = np.searchsorted(quotes, line_ends) % 2 == 0
    ends = line_ends[outside]
    starts = np.concatenate([[0], ends + 1])[: ends.size]
    lines = block.line + np.concatenate([[0], np.flatnonzero(outside) + 1])[: ends.size]
    returns = codes[np.maximum(ends - 1, 0)] == ord("\r")
    return starts, np.where(returns & (ends > starts), ends - 1, ends), lines


class ExcelFile(TableFile):
    """The only sheet of an Excel workbook; cells are read as text, lines are its rows."""

    def _open(self) -> list[str]:
        import fastexcel

        try:
            book = fastexcel.read_excel(self.path)
        except fastexcel.FastExcelError as error:
            raise FileError(f"{self.path}: not an Excel workbook ({error})") from None
        if len(book.sheet_names) > 1:
            raise FileError(
                f"{self.path}: the workbook has {len(book.sheet_names)} sheets, "
                f"{', '.join(book.sheet_names)}; save the one to read as its own file"
            )
        sheet: Any = book.load_sheet(0, header_row=None, skip_rows=0, dtypes="string")
        cells = sheet.to_polars().with_columns(pl.all().fill_null(""))
        filled = cells.with_row_index("line", 1).filter(
            ~pl.all_horizontal(pl.exclude("line") == "")
        )
        if filled.height < 2:
            raise FileError(f"{self.path}: there is no row below the header")
        self._lines = filled["line"].to_numpy()[1:].astype(np.int64)
        self._cells = filled.drop("line")[1:]
        names = _column_names(filled.row(0)[1:])
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
