"""Write tables in chunks as CSV, Parquet, JSON lines or Excel; files appear atomically."""

import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import chain
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

import polars as pl

from ordspan.models.atomic import check_can_write, opened_atomically, report_full_disk
from ordspan.tables.files import FileOptions, open_file
from ordspan.tables.rows import FileError
from ordspan.wording import as_text, hint

Tables = Iterable[pl.DataFrame]
"""Rows in chunks; all have the columns of the first."""
STDOUT = "-"
OVERWRITE = hint("overwrite=True", "--overwrite")
MAX_SHEET_ROWS, MAX_CELL, MAX_EXACT = 1_048_576, 32_767, 1 << 53
"""Of Excel: rows of a sheet, characters of a cell, and the largest number with all its digits."""
AS_TEXT = {"strings_to_formulas": False, "strings_to_urls": False, "constant_memory": True}
Kind = tuple[str, bytes | Sequence[str]]
MODEL: Kind = ("a model", b'"__metadata__":{"ordspan":')
PAGE: Kind = ("a page", b'<meta name="generator" content="ordspan">')
GRAPH: Kind = ("a graph", b"\x12\x07ordspan")  # the name of the producer
"""What a file is, and what only ordspan's have among their first bytes, or as columns."""


def write_csv(file: IO[bytes], tables: Tables) -> None:
    """Write comma separated values with a header; on a terminal, control characters are escaped."""
    for number, table in enumerate(tables):
        for column in table:
            if column.dtype.is_nested():
                raise ValueError(
                    f"column {column.name!r} holds {column.dtype}, which CSV cannot represent; "
                    "leave it out, or write .parquet or .jsonl"
                )
        text = table.write_csv(include_header=number == 0)
        file.write((as_text(text) if file.isatty() else text).encode())
        file.flush()  # rows of a pipe are answered as they arrive


def write_json(file: IO[bytes], tables: Tables) -> None:
    """Write one JSON object per line."""
    for table in tables:
        file.write(table.write_ndjson().encode())


def write_parquet(file: IO[bytes], tables: Tables) -> None:
    """Write a Parquet file with a row group for each table."""
    from pyarrow import parquet

    rows = (table.to_arrow(compat_level=pl.CompatLevel.oldest()) for table in tables)
    first = next(rows)
    with parquet.ParquetWriter(file, first.schema, store_schema=False) as writer:
        for chunk in chain([first], rows):
            writer.write_table(chunk)


def write_excel(file: IO[bytes], tables: Tables) -> None:
    """Write an Excel sheet with a header, in which text stays text: a formula is not run."""
    from xlsxwriter import Workbook
    from xlsxwriter.exceptions import FileCreateError

    with TemporaryDirectory() as folder:
        book = Workbook(file, AS_TEXT | {"tmpdir": folder})
        book.set_properties({"created": datetime(1980, 1, 1)})  # the same rows give the same bytes
        sheet, rows = book.add_worksheet(), iter(tables)
        first = next(rows)
        cells = chain.from_iterable(table.iter_rows() for table in chain([first], rows))
        for number, row in enumerate(chain([first.columns], cells)):
            if number == MAX_SHEET_ROWS:
                raise FileError(
                    f"an Excel sheet has at most {MAX_SHEET_ROWS:,} rows; write .csv or .parquet"
                )
            sheet.write_row(number, 0, map(excel_cell, row))
        try:
            book.close()
        except FileCreateError as error:
            raise error.args[0] from None


def excel_cell(value: Any) -> Any:
    """A value as Excel can hold it: long whole numbers, NaN, dates and lists as text.

    >>> excel_cell(0.5), excel_cell(12345678901234567890), excel_cell(float("nan"))
    (0.5, '12345678901234567890', 'nan')
    """
    if value is None or (isinstance(value, float) and isfinite(value)):
        return value
    if isinstance(value, int) and abs(value) <= MAX_EXACT:  # or a truth value
        return value
    text = str(value)
    if len(text) > MAX_CELL:
        raise FileError(
            f"{text[:30]!r}... has {len(text):,} characters, more than a cell of Excel holds; "
            "write .csv or .parquet"
        )
    return text


WRITERS = {".csv": write_csv, ".parquet": write_parquet, ".jsonl": write_json, ".xlsx": write_excel}


def write_tables(
    out: str, tables: Tables, columns: Sequence[str], inputs: Iterable[str], *, overwrite: bool
) -> None:
    """Write tables, of which there is at least one, to a file that appears when it is complete.

    Parameters
    ----------
    out : str
        A file with one of the endings of `WRITERS`, or "-": CSV on standard output.
    tables : iterable of DataFrame
        Rows in chunks; all have the columns of the first.
    columns : sequence of str
        A file that is there is replaced only if it has these columns.
    inputs : iterable of str
        Files being read, which must not be overwritten.
    overwrite : bool
        Whether a file may be replaced.
    """
    if out == STDOUT:
        with report_full_disk("standard output"):
            write_csv(sys.stdout.buffer, tables)
        return
    path = check_output(out, inputs, ("a table", columns), overwrite, WRITERS)
    with opened_atomically(path) as file:
        WRITERS[path.suffix.lower()](file, tables)


def is_ours(path: Path, mark: bytes | Sequence[str]) -> bool:
    """Whether a file begins with a mark of ordspan, or is a table with these columns."""
    if isinstance(mark, bytes):
        with path.open("rb") as file:
            return mark in file.read(100)
    try:
        return set(mark) <= set(open_file(str(path), FileOptions()).names)
    except Exception:  # of whatever library finds that it is none
        return False


def check_output(
    out: str | Path, inputs: Iterable[str], kind: Kind, overwrite: bool, endings: Iterable[str] = ()
) -> Path:
    """The path of a file to write, after checking its ending, its place and what it replaces.

    Only what ordspan wrote, as the mark of its kind tells, is replaced, and only if it may be.
    """
    path = Path(out)
    if endings and path.suffix.lower() not in endings:
        choices = " or ".join(endings)
        raise FileError(f"{out}: unknown file extension {path.suffix!r}; choose {choices}")
    check_can_write(path)
    if not path.exists():
        return path
    if not path.is_file():
        raise FileError(f"{path} is a folder, pipe or device; give the name of a file")
    if any(Path(name).exists() and path.samefile(name) for name in inputs):
        raise FileError(f"{path} is an input of this command; write to another file")
    if not is_ours(path, kind[1]):
        raise FileError(f"{path} is not {kind[0]} that ordspan wrote; choose another name")
    if not overwrite:
        raise FileError(f"{path} already exists: {OVERWRITE} replaces it")
    return path
