"""Files as frames of Polars: CSV, JSON lines, svmlight, Excel, SPSS, Stata, Parquet and Arrow."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice, repeat, takewhile
from typing import Any

import msgspec
import numpy as np
import polars as pl
from polars.exceptions import ComputeError, PanicException, PolarsError

from ordspan.labels.forms import is_number
from ordspan.tables import text as texts
from ordspan.tables.files import HEADER_ROW, UNSURE, FileOptions, check_columns, format_of
from ordspan.tables.numbers import FLOAT, TEXT, find_decimal
from ordspan.tables.rows import GROUP, LABEL, Batch, Cursor, Faults, FileError, damage_reported
from ordspan.tables.svmlight import NO_QUERY, SparseRows, read_rows
from ordspan.wording import SHOWN, brief, hint

INFER_ROWS = 500  # first rows of a pipe from which its columns are understood
SAMPLE_BYTES = 1 << 20  # text from which the decimal sign of a file is found
DELIMITERS, HEAD_LINES = ",;\t|", 400
SEP_LINE = re.compile(r'\s*"?sep=(.)"?\r?\n', re.IGNORECASE)
"""A line above the header that gives Excel the delimiter."""
BATCH_BYTES, LONG_BYTES = 1 << 23, 1 << 24
"""Size of a batch of numbers, and the limit for all columns together, whose text may be long."""
MAX_ROWS, MIN_ROWS = 1 << 16, 1 << 8
REPLACED = "\ufffd"
MORE = ""  # the name of what stands behind the last column
CP1252 = hint("encoding='cp1252'", "--encoding cp1252")
DEEPEST, MOST_EXACT = 64, 2**53
JSON_OBJECT = msgspec.json.Decoder(dict[str, Any])
QUOTED_OR_NAN = re.compile(rb'("(?:[^"\\\n]|\\.)*")|\bNaN\b')
csv.field_size_limit(max(texts.LONGEST_LINE, csv.field_size_limit()))  # 128 kB by default

Types = Mapping[str, Any]
"""The columns to read: as numbers (FLOAT) where the file has plain ones, or as text (TEXT)."""
Parsed = tuple[Any, pl.DataFrame, Faults]
"""Lines of text as sparse features, if they have any, columns, and the faults of bad rows."""


class Table:
    """One file with named columns; this one is held whole, as libraries read some formats.

    Its ``names`` are those of the columns, ``decimal`` is its decimal sign, ``notes`` are about how
    it is read. ``sample`` reads about so many bytes of good rows spread over the file, and says
    whether these are all; ``blocks`` reads columns from the block of a position on.
    """

    cells: pl.DataFrame
    decimal = "."
    words: Sequence[str] = ()  # columns that are words, whatever their type
    typed = True  # whether text in it is text, and not perhaps a number
    fault = ""  # of the first row, told if a sample has no good one
    n_headers = 0  # rows that belong to the header
    orders: Mapping[str, list[Any]] = {}  # values from lowest to highest, by column

    def __init__(self, path: str, options: FileOptions, pipe: Any = None) -> None:
        self.path, self._options, self._pipe, self.na = path, options, pipe, options.na
        self.notes: list[str] = []
        self.names = self._open()
        check_columns(self.path, self.names, ())

    def _open(self) -> list[str]:
        """Open the file; the names of its columns."""
        return []

    def sample(self, size: int) -> tuple[pl.DataFrame, bool]:
        """All rows."""
        return self.cells, True

    def blocks(self, types: Types, at: Cursor) -> Iterator[Batch]:
        """All rows, as one batch."""
        rows = np.arange(self.cells.height) + 1 + self.n_headers
        yield Batch(None, self.cells.select(list(types)), rows, self.path, 1.0, at)

    def _keep(self, cells: pl.DataFrame, names: Sequence[str | None]) -> list[str]:
        """Keep the rows, under distinct names."""
        cells.columns = self._distinct(names, next(cells.iter_rows(), ()))
        self.cells = cells[self.n_headers :]
        return cells.columns

    def _distinct(self, header: Sequence[str | None], below: Sequence[Any]) -> list[str]:
        """Names of a header: by place if empty, and numbered if several are the same.

        A row ``below`` that goes on with the header, as SurveyMonkey writes it, is no data: an
        option below each of several columns, "Response" below the others.
        """
        names = [(name or "").strip() for name in header]
        alone = [name and after for name, after in zip(names, [*names[1:], "end"], strict=True)]
        cells = [str(cell or "") for cell, one in zip(below, alone, strict=False) if one]
        if any(cells) and {*cells} <= {"", "Response", "Open-Ended Response"}:
            self.n_headers = 1
            self.notes.append("row 1 is a second line of the header, so it is left out")
        called = [name or f"column {place}" for place, name in enumerate(names, 1)]
        for name, count in Counter(called).items():
            if count > 1:
                numbers = iter(range(1, count + 1))
                called = [f"{name} ({next(numbers)})" if one == name else one for one in called]
                self.notes.append(
                    f"{count} columns are named {name!r}: called {name} (1) and so on"
                )
        return called


class TextTable(Table):
    """Lines of text, parsed by Polars in blocks; a pipe can be read once."""

    quoted, delimiter = False, ","
    patient = True  # whether to wait for many lines of a pipe
    _begin = 0  # first byte below the header
    _opened: texts.Text | None = None  # the pipe
    _as_text: frozenset[str] = frozenset()  # columns that are not all plain numbers

    def _text(self) -> texts.Text:
        """The file, opened again, or the pipe."""
        how: Any = {"quoted": self.quoted, "pipe": self._pipe}
        text = self._opened or texts.Text(self.path, self._options.encoding, **how)
        self._opened = text if self.path == texts.STDIN else None
        return text

    def sample(self, size: int) -> tuple[pl.DataFrame, bool]:
        """About ``size`` bytes of good rows spread over the file; the first ones of a pipe.

        They have the types that Polars finds; in CSV all are text.
        """
        pieces, whole = self._text().sample(size, INFER_ROWS if self.patient else 1)
        try:
            for piece in pieces:
                piece.decode()
        except UnicodeDecodeError as error:
            near = error.object[max(0, error.start - 20) : error.end + 20].decode(errors="replace")
            word = re.findall(rf"\w*{REPLACED}\w*", near)[0]
            self.notes.append(
                f"letters that are not UTF-8 read as {REPLACED}, as in {word!r}; for the right "
                f"ones give {CP1252}"
            )
        pieces[0] = pieces[0][self._begin :]
        if self.quoted and not whole:  # a piece may begin within quotes
            pieces[1:] = [piece for piece in pieces[1:] if piece.count(b'"') % 2 == 0]
        try:
            _, table, faults = self._read_text(b"".join(pieces), None)
        except FileError:
            if whole:
                raise
            _, table, faults = self._read_text(pieces[0], None)
        if 0 in faults:
            self.fault = f"{self.path}, row {1 + self.n_headers}: {faults[0]}"
        table = table.filter(~pl.int_range(pl.len()).is_in(list(faults)))
        self.names = table.columns  # a first line of JSON may lack some
        self.decimal = self.decimal or find_decimal(self.path, table, self.delimiter)
        return table, whole

    def blocks(self, types: Types, at: Cursor) -> Iterator[Batch]:
        """The rows from the block of a position on; blocks of a file are parsed in parallel."""
        if not self.decimal:
            self.sample(SAMPLE_BYTES)  # finds it
        blocks = (b for b in self._text().blocks(at.byte or self._begin) if not b[0].isspace())
        before, parse = at.before or self.n_headers, partial(self._parse, types=types)
        # rows of a pipe are read as they arrive
        parsed = (map if self.path == texts.STDIN else texts.parallel_map)(parse, blocks)
        for (X, table, faults), byte, share in parsed:
            rows = np.arange(before, before + table.height) + 1
            begin = at._replace(byte=byte, before=before)
            yield Batch(X, table, rows, self.path, share, begin, faults=faults)
            before += table.height

    def _parse(self, block: texts.Block, types: Types) -> tuple[Parsed, int, float]:
        """The rows of a block: with the wanted types, or as text where Polars refuses them.

        The text itself is not returned, which would stay in memory.
        """
        content, byte, share = block
        as_text = types if self.decimal == "," else self._as_text
        try:
            wanted = {name: TEXT if name in as_text else kind for name, kind in types.items()}
            return self._read(content, wanted), byte, share
        except PolarsError:
            X, table, faults = self._read_text(content, list(types))
        numbers = table.select(n for n in types if types[n] == FLOAT).cast(FLOAT, strict=False)
        self._as_text |= {c.name for c in numbers if c.null_count() > table[c.name].null_count()}
        return (X, table, faults), byte, share

    def _read(self, content: bytes, types: Types) -> Parsed:
        """The rows by Polars, which raises if a cell is not of its type."""
        raise NotImplementedError

    def _read_text(self, content: bytes, wanted: Sequence[str] | None) -> Parsed:
        """Columns as text; None: all, as Polars finds them."""
        raise NotImplementedError


class CsvTable(TextTable):
    """A CSV file with a header, or standard input."""

    quoted, typed = True, False

    def _open(self) -> list[str]:
        options, head = self._options, self._text().head.splitlines(keepends=True)[:HEAD_LINES]
        lines = [line.decode(errors="replace") for line in head]
        stated = SEP_LINE.match("".join(lines[:1]))
        n_above = (options.header_row or 1) - 1 + bool(stated)
        usual = "\t" if texts.ending_of(self.path) == ".tsv" else ""
        lines = lines[n_above:]
        found = stated[1] if stated else usual or find_delimiter(lines)
        self.delimiter = options.delimiter or found
        reader = csv.reader(lines, delimiter=self.delimiter, strict=True)
        try:
            header = next((cells for cells in reader if any(cells)), None)
        except csv.Error as error:
            raise FileError(f"{self.path}: the header cannot be read ({error})") from None
        if header is None:
            raise FileError(f"{self.path}: the file is empty")
        n_lines, below = reader.line_num, [""]
        with suppress(csv.Error):  # a bad row
            below = next((cells for cells in reader if cells), below)
        names = self._distinct(header, below)
        n_lines = (reader.line_num if self.n_headers else n_lines) + n_above
        self._begin = sum(map(len, head[:n_lines]))
        self.decimal = options.decimal or ""
        if options.format is None and self.path.lower().endswith(UNSURE):
            self.notes.append(f"{self.path} holds separated values, so it is read as CSV")
        if 2 * sum(map(is_number, header)) > len(header):
            self.notes.append(
                f"the first line, which holds {header[0]!r}, is taken for the names of the "
                "columns; if it is a row, write a line of names above it"
            )
        if self.delimiter != "," and options.delimiter is None:
            self.notes.append(f"fields are separated by {self.delimiter!r}")
        return names

    def _read(self, content: bytes, types: Types) -> Parsed:
        if b'"' in content and content.count(b'"') % 2:  # a count takes longer than a search
            raise ComputeError("a quote is not closed, or stands inside a cell")
        content = content.lstrip(b"\r\n")
        X, table, faults = self._by_polars(content, types)
        if table.to_series(0).null_count() and re.search(rb"\n\r?\n", content):
            raise ComputeError("a blank line would be a row")
        return X, table, faults

    def _by_polars(self, content: bytes, types: Types) -> Parsed:
        """The rows, and the faults of those with a cell in one column more than the header has."""
        place, n = {name: number for number, name in enumerate(self.names)}, len(self.names)
        table = pl.read_csv(
            content,
            has_header=False,
            separator=self.delimiter,
            schema={name: types.get(name, TEXT) for name in place} | {MORE: TEXT},
            columns=[*(place[name] for name in types), n],
            extra_columns="ignore",
            missing_columns="insert",
            truncate_ragged_lines=True,
            raise_if_empty=False,
            encoding="utf8-lossy",
        )
        cells = table.drop_in_place(MORE)
        titled = n == 1 or self.names[-1] == f"column {n}"
        title = f"; if the header stands below titles, give {HEADER_ROW}" if titled else ""
        faults = {
            row: f"more fields than the {n} of the header, from {brief(cells[row])} on{title}"
            for row in cells.is_not_null().arg_true()
        }
        return None, table, faults

    def _read_text(self, content: bytes, wanted: Sequence[str] | None) -> Parsed:
        types = dict.fromkeys(wanted or self.names, TEXT)
        try:
            return self._read(content, types)
        except PolarsError:
            return self._by_polars(self._rewritten(content), types)

    def _rewritten(self, content: bytes) -> bytes:
        """The rows as Python's csv module reads them, without blank lines and misplaced quotes."""
        lines, rows = io.StringIO(content.decode(errors="replace"), newline=""), io.StringIO()
        reader = csv.reader(lines, delimiter=self.delimiter, strict=True)
        writer, begun = csv.writer(rows, delimiter=self.delimiter, lineterminator="\n"), 0
        try:
            for cells in filter(None, reader):
                writer.writerow(cells)
                begun = reader.line_num
        except csv.Error as error:
            line = content.split(b"\n")[begun].decode(errors="replace")
            raise FileError(
                f"{self.path}: a quote is not closed in the row that begins with {line[:SHOWN]!r} "
                f"({error}); close it, or double quotes within quotes"
            ) from None
        return rows.getvalue().encode()


def find_delimiter(lines: Sequence[str]) -> str:
    """The character that splits every line into as many fields as the header, and into most.

    >>> find_delimiter(["a;b;c\\n", "1,5;2,5;x\\n"]), find_delimiter(["a,b\\n", "1,5\\n"])
    (';', ',')
    """
    lines = lines[:-1] or lines  # the last may be incomplete

    def agreement(delimiter: str) -> tuple[float, int]:
        """Share of the first records with as many fields as the header, and that number."""
        counts = [len(cells) for cells in csv.reader(lines, delimiter=delimiter) if cells] or [1]
        agree = counts.count(counts[0]) / len(counts)
        return (round(agree, 1), counts[0]) if agree >= 0.5 and counts[0] > 1 else (0.0, 1)

    return max(DELIMITERS, key=agreement)


class JsonTable(TextTable):
    """A file, or standard input, with one JSON object per line; its keys are the columns."""

    def _open(self) -> list[str]:
        head = texts.first_lines(self._text().first_lines(INFER_ROWS), SAMPLE_BYTES)
        if not head.strip():
            raise FileError(f"{self.path}: the file is empty")
        if head.lstrip().startswith(b"["):
            raise FileError(f"{self.path}: holds a JSON array; give one object per line instead")
        return self._read_text(head, None)[1].columns

    def _read(self, content: bytes, types: Types) -> Parsed:
        return None, pl.read_ndjson(nan_as_null(content), schema=dict(types)), {}

    def _read_text(self, content: bytes, wanted: Sequence[str] | None) -> Parsed:
        content = nan_as_null(content)
        deep = any(line.count(b"[") + line.count(b"{") > DEEPEST for line in content.splitlines())
        if wanted is None and not deep:  # Polars takes very long to find the type of a deep value
            asked = dict.fromkeys(self.words, TEXT)
            with suppress(PolarsError):
                table = pl.read_ndjson(content, schema_overrides=asked, infer_schema_length=None)
                return None, table, {}
        # line by line, to say what is wrong with one; a row of nulls keeps its place
        lines, names, faults = list[str](), dict[str, None](), Faults()
        for line in filter(str.strip, content.decode(errors="replace").split("\n")):
            try:
                names |= dict.fromkeys(JSON_OBJECT.decode(line))
            except (msgspec.MsgspecError, RecursionError) as error:
                why = f"not a JSON object with a value, or null, for each column ({error})"
                faults[len(lines)] = f"{brief(line)} is {why}"
            lines.append("{}" if len(lines) in faults else line)
        types = dict.fromkeys(wanted or names, TEXT)
        if not types:
            raise FileError(f"{self.path}, row 1: {faults.get(0, 'an object without values')}")
        self.typed = False
        with damage_reported(self.path, "a line is not JSON", PolarsError):
            return None, pl.read_ndjson("\n".join(lines).encode(), schema=types), faults


def nan_as_null(content: bytes) -> bytes:
    """JSON with null for each NaN outside quotes, which Python's json module writes."""
    if b"NaN" not in content:
        return content
    return QUOTED_OR_NAN.sub(lambda found: found[1] or b"null", content)


class SvmlightTable(TextTable):
    """Sparse rows; the grade is the column ``label``, the query the column ``qid``."""

    def _open(self) -> list[str]:
        first, n_features = int(not self._options.zero_based), self._options.n_features
        self._read_rows = partial(read_rows, n_features=n_features, first=first)
        return [LABEL, GROUP]

    def sample_rows(self, size: int) -> Iterator[SparseRows]:
        """About ``size`` bytes of rows spread over the file."""
        pieces, _ = self._text().sample(size)
        return (rows for rows in texts.parallel_map(self._read_rows, iter(pieces)) if rows[1].size)

    def _read(self, content: bytes, types: Types) -> Parsed:
        X, grades, queries, faults = self._read_rows(content)
        # whole numbers without a decimal point
        columns = {LABEL: pl.Series(grades).cast(TEXT).str.strip_suffix(".0")}
        if (queries != NO_QUERY).any():
            columns[GROUP] = pl.Series(queries).replace(NO_QUERY, None)
        return X, pl.DataFrame(columns), faults


class ExcelTable(Table):
    """A sheet of an Excel workbook; cells are read as text."""

    typed = False

    def _open(self) -> list[str]:
        import fastexcel

        how: Any = {"header_row": None, "skip_rows": 0, "dtypes": "string"}
        with damage_reported(
            self.path, "not an Excel workbook, or damaged", fastexcel.FastExcelError
        ):
            book = fastexcel.read_excel(self.path)
            sheets, sheet = book.sheet_names, self._options.sheet
            if sheet not in sheets and (sheet is not None or len(sheets) > 1):
                has = f"no sheet {sheet!r}" if sheet is not None else f"{len(sheets)} sheets"
                raise FileError(
                    f"{self.path}: the workbook has {has}; choose one of {', '.join(sheets)} with "
                    + hint("sheet=", "--sheet NAME")
                )
            cells = book.load_sheet(sheet or 0, **how).to_polars()
        counts = cells.select((pl.all() != "").fill_null(value=False)).sum_horizontal()
        header = (self._options.header_row or self._header_row(cells, counts)) - 1
        rows = cells[header:].filter(counts[header:] > 0)
        return self._keep(rows[1:], next(rows.iter_rows(), ()))

    def _header_row(self, cells: pl.DataFrame, counts: pl.Series) -> int:
        """The row that names the columns: the first that is not mostly empty, as titles are."""
        found = ((2 * counts >= counts.max()).arg_max() or 0) + 1
        if (counts[: found - 1] > 0).any():
            numbers = [cell for cell in cells.row(found - 1) if cell and is_number(cell)]
            if numbers:
                raise FileError(
                    f"{self.path}: which row names the columns? The first full one, row "
                    f"{found}, holds {numbers[0]!r}; give {HEADER_ROW}"
                )
            self.notes.append(f"the columns are named in row {found} of the sheet")
        return found


class SurveyTable(Table):
    """A file of SPSS or Stata: value labels are words in the order of their codes."""

    def _open(self) -> list[str]:
        import pyreadstat

        is_stata = format_of(self.path, self._options) == "dta"
        read = pyreadstat.read_dta if is_stata else pyreadstat.read_sav
        errors = (pyreadstat.ReadstatError, pyreadstat.PyreadstatError, UnicodeError)
        kind = "a Stata" if is_stata else "an SPSS"
        with damage_reported(self.path, f"not {kind} file, or damaged", *errors):
            how: Any = {"output_format": "polars"}
            about = read(self.path, metadataonly=True, user_missing=True, **how)[1]
            cells = read(self.path, **how)[0]
        partly = []
        for column in cells:
            labels = about.variable_value_labels.get(column.name, {})
            gone: Any = about.missing_ranges.get(column.name, ())
            words = {
                code: labels[code].strip()
                for code in sorted(labels)
                if not any(span["lo"] <= code <= span["hi"] for span in gone)
            }
            if column.dtype == FLOAT and ((column % 1 == 0) & (column.abs() <= MOST_EXACT)).all():
                column = column.cast(pl.Int64())
            values = set(column.drop_nulls().unique())
            if words and values <= words.keys() and len({*words.values()}) == len(words):
                column = column.replace_strict(words, return_dtype=pl.Enum([*words.values()]))
                self.orders = {**self.orders, column.name: [*words.values()]}
            elif values & words.keys():
                partly.append(column.name)
            cells = cells.with_columns(column)
        if partly:
            names = ", ".join(partly[:8]) + ", ..." * (len(partly) > 8)
            self.notes.append(f"not every value has a label of its own, so codes stay: {names}")
        return self._keep(cells, cells.columns)


class ParquetTable(Table):
    """One Parquet file, read by pyarrow in batches."""

    kind = "a Parquet file"

    def _open(self) -> list[str]:
        with self._damage_reported(f"not {self.kind}, or damaged or truncated"):
            self._sizes, self.schema = self._look()
        self.n_rows = sum(self._sizes)
        return list(self.schema.names)

    def _look(self) -> tuple[list[int], Any]:
        """The sizes of the row groups, and the schema."""
        from pyarrow import parquet

        with parquet.ParquetFile(self.path) as file:
            self._metadata, schema = file.metadata, file.schema_arrow
        groups = [self._metadata.row_group(n) for n in range(self._metadata.num_row_groups)]
        row_bytes = max((g.total_byte_size // max(1, g.num_rows) for g in groups), default=0)
        self._most_rows = max(MIN_ROWS, LONG_BYTES // max(1, row_bytes))
        return [group.num_rows for group in groups], schema

    def _damage_reported(self, what: str = "damaged") -> Any:
        from pyarrow import ArrowException

        return damage_reported(self.path, what, ArrowException, OSError, UnicodeDecodeError)

    def _batches(self, columns: list[str], groups: Sequence[int], size: int) -> Iterator[Any]:
        """Batches of some row groups, of so many rows if memory allows."""
        from pyarrow.parquet import ParquetFile

        size = min(self._most_rows, size)
        how: Any = {"pre_buffer": False, "buffer_size": 1 << 14}  # a group may be a whole file
        with ParquetFile(self.path, metadata=self._metadata, **how) as file:
            yield from file.iter_batches(size, groups, columns, use_threads=False)

    def sample(self, size: int) -> tuple[pl.DataFrame, bool]:
        """About ``size`` bytes of rows spread over the file; whether these are all."""
        import pyarrow as pa
        from pyarrow import types as t

        no_cells = (t.is_nested, t.is_interval, t.is_binary, t.is_large_binary)
        fields = [f for f in self.schema if not any(kind(f.type) for kind in no_cells)]
        names = [f.name for f in fields]
        most = max(INFER_ROWS, size // (8 * max(1, len(names))))
        ordered = [f.name for f in fields if getattr(f.type, "ordered", False)]
        groups = [group for group, n_rows in enumerate(self._sizes) if n_rows]
        whole = self.n_rows <= most
        groups = groups if whole else groups[:: max(1, len(groups) // texts.N_SPANS)]
        # the first rows of each group, or of each batch if there is only one
        first = self.n_rows if whole else -(-most // 2 // len(groups))
        span = first if len(groups) > 1 else -(-self.n_rows // texts.N_SPANS)
        kept: list[pl.DataFrame] = []
        with self._damage_reported():
            for group in groups:
                pieces = self._batches(names, [group], span)
                for piece in pieces if whole or len(groups) == 1 else islice(pieces, 1):
                    self.orders = {n: piece.column(n).dictionary.to_pylist() for n in ordered}
                    part = first if len(groups) > 1 else -(-piece.num_rows * first // self.n_rows)
                    some = self._frame(piece.slice(0, part))
                    kept.append(some[np.arange(some.height)])  # copied, not all rows kept alive
            pa.default_memory_pool().release_unused()  # the decoded pages of every column
        kept = kept or [self._frame(pa.schema(fields).empty_table())]  # which imports pandas
        return pl.concat(kept, how="vertical_relaxed", rechunk=True), whole

    def blocks(self, types: Types, at: Cursor) -> Iterator[Batch]:
        """The rows from the row group of a position on."""
        ends = np.cumsum(self._sizes)
        group = int(np.searchsorted(ends, at.row, side="right"))
        row = int(ends[group - 1]) if group else 0
        columns = list(types) or self.names[:1]
        batches = self._batches(columns, range(group, len(ends)), batch_rows(len(columns)))
        # read in another thread
        ahead: Iterator[Any] = texts.parallel_map(lambda _: next(batches, None), repeat(0), 1)
        with self._damage_reported("damaged after some rows"):
            for piece in takewhile(lambda piece: piece is not None, ahead):
                rows = np.arange(row, row + piece.num_rows) + 1
                row += piece.num_rows
                yield Batch(None, self._frame(piece), rows, self.path, row / self.n_rows, at)
        if row < self.n_rows:
            raise FileError(
                f"{self.path}, after row {row}: damaged, rows are missing; copy it again"
            )

    def _frame(self, piece: Any) -> pl.DataFrame:
        """A batch of Arrow as a frame; damaged ones are refused."""
        piece.validate(full=True)  # Polars would crash on damaged lengths or characters
        try:
            frame: Any = pl.from_arrow(piece)
            return frame
        except (PolarsError, PanicException, ValueError) as error:
            raise FileError(f"{self.path}: a column cannot be read ({error})") from None


class ArrowTable(ParquetTable):
    """One Arrow IPC (Feather) file or stream, as one group of record batches, each read whole."""

    kind = "an Arrow file"

    def _look(self) -> tuple[list[int], Any]:
        import pyarrow as pa

        with pa.memory_map(self.path) as source:
            schema, _ = _open_arrow(source)
            _, batches = _open_arrow(source, [0] if len(schema) else None)
            return [sum(batch.num_rows for batch in batches)], schema

    def _batches(self, columns: list[str], groups: Sequence[int], size: int) -> Iterator[Any]:
        import pyarrow as pa

        places = sorted(self.schema.get_field_index(name) for name in columns)
        with pa.OSFile(self.path) as source:
            for whole in _open_arrow(source, places)[1]:
                for begin in range(0, whole.num_rows, size):
                    yield whole.slice(begin, size).select(columns)


def _open_arrow(source: Any, columns: list[int] | None = None) -> tuple[Any, Iterable[Any]]:
    """The schema and the record batches of a file, or of a stream."""
    from pyarrow import ipc

    is_file = source.read_at(6, 0) == b"ARROW1"
    source.seek(0)
    options = ipc.IpcReadOptions(included_fields=columns)
    reader = (ipc.open_file if is_file else ipc.open_stream)(source, options=options)
    if not is_file:
        return reader.schema, reader
    return reader.schema, map(reader.get_batch, range(reader.num_record_batches))


def batch_rows(n_columns: int) -> int:
    """Rows per batch: many, because each batch costs a call per column.

    >>> batch_rows(3), batch_rows(136), batch_rows(50_000)
    (65536, 7710, 256)
    """
    return min(MAX_ROWS, max(MIN_ROWS, BATCH_BYTES // (8 * max(1, n_columns))))
