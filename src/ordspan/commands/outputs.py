"""Write tables in chunks as CSV, Parquet, JSON lines or Excel; files appear atomically."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Any

from ordspan.models.atomic import check_can_write, opened_atomically
from ordspan.tables.rows import FileError
from ordspan.tables.text import STDIN
from ordspan.wording import as_text, hint

if TYPE_CHECKING:
    import polars as pl

    Write = Callable[[pl.DataFrame], object]
    """Appends rows; all tables have the same columns."""

STDOUT = "-"
ROW_GROUP = 1 << 16
"""Rows per row group of a Parquet file."""
MAX_SHEET_ROWS, MAX_CELL, MAX_EXACT = 1_048_576, 32_767, 1 << 53
"""Of Excel: rows of a sheet, characters of a cell, and the largest number with all its digits."""
AS_TEXT = {"strings_to_formulas": False, "strings_to_urls": False, "constant_memory": True}
NO_ROOM = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


@contextmanager
def csv_file(file: Any) -> Iterator[Write]:
    """Comma separated values with a header; cells are quoted if needed."""
    begun = False

    def write(table: pl.DataFrame) -> None:
        nonlocal begun
        if not begun:
            check_cells(table, "CSV")
        file.write(table.write_csv(include_header=not begun).encode())
        begun = True

    yield write


@contextmanager
def json_file(file: IO[bytes]) -> Iterator[Write]:
    """One JSON object per line."""
    yield lambda table: file.write(table.write_ndjson().encode())


@contextmanager
def parquet_file(file: IO[bytes]) -> Iterator[Write]:
    """A Parquet file with row groups of a sensible size."""
    import polars as pl
    from pyarrow import parquet

    writer: Any = None
    waiting: list[pl.DataFrame] = []

    def write(*tables: pl.DataFrame, last: bool = False) -> None:
        nonlocal writer
        waiting.extend(tables)
        if waiting and (last or sum(part.height for part in waiting) >= ROW_GROUP):
            table = pl.concat(waiting).to_arrow(compat_level=pl.CompatLevel.oldest())
            writer = writer or parquet.ParquetWriter(file, table.schema, store_schema=False)
            writer.write_table(table)
            waiting.clear()

    try:
        yield write
        write(last=True)
        if writer is not None:
            writer.close()
    except BaseException:
        if writer is not None:  # it would otherwise write when it is garbage collected
            with suppress(Exception):
                writer.close()
            writer.is_open = False
        raise


@contextmanager
def excel_file(file: IO[bytes]) -> Iterator[Write]:
    """An Excel sheet with a header, in which text stays text: a formula is shown, not run."""
    from xlsxwriter import Workbook
    from xlsxwriter.exceptions import FileCreateError

    with TemporaryDirectory() as folder:
        book = Workbook(file, AS_TEXT | {"tmpdir": folder})
        book.set_properties({"created": datetime(1980, 1, 1)})  # the same rows give the same bytes
        sheet, n_rows = book.add_worksheet(), 0

        def write(table: pl.DataFrame) -> None:
            nonlocal n_rows
            if not n_rows:
                check_cells(table, "Excel")
                sheet.write_row(0, 0, table.columns)
                n_rows = 1
            if n_rows + table.height > MAX_SHEET_ROWS:
                raise FileError(
                    f"an Excel sheet has at most {MAX_SHEET_ROWS:,} rows; write .csv or .parquet"
                )
            for cells in table.iter_rows():
                sheet.write_row(n_rows, 0, [excel_cell(cell) for cell in cells])
                n_rows += 1

        yield write
        try:
            book.close()
        except FileCreateError as error:
            raise error.args[0] from None


def excel_cell(value: Any) -> Any:
    """A value as Excel can hold it: long whole numbers and dates as text.

    >>> excel_cell(0.5), excel_cell(12345678901234567890)
    (0.5, '12345678901234567890')
    """
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int) and abs(value) <= MAX_EXACT:
        return value
    text = str(value)
    if len(text) > MAX_CELL:
        raise FileError(
            f"{text[:30]!r}... has {len(text):,} characters, more than a cell of Excel holds; "
            "write .csv or .parquet"
        )
    return text


def check_cells(table: pl.DataFrame, format: str) -> None:
    """Refuse columns of lists or records."""
    for column in table:
        if column.dtype.is_nested():
            raise ValueError(
                f"column {column.name!r} holds {column.dtype}, which {format} cannot represent; "
                "leave it out, or write .parquet or .jsonl"
            )


class Terminal:
    """Standard output on a terminal, with control characters escaped."""

    def write(self, lines: bytes) -> None:
        """Write lines."""
        sys.stdout.buffer.write(as_text(lines.decode()).encode())


OUTPUTS = {".csv": csv_file, ".parquet": parquet_file, ".jsonl": json_file, ".xlsx": excel_file}


def check_place(out: str | Path, inputs: Iterable[str], clash: str) -> None:
    """Raise if no file can be written here, or, as ``clash`` says, if it would be an input."""
    path = Path(out)
    if not Path(os.path.realpath(path)).parent.is_dir():
        raise FileError(f"{path.parent}: no such folder; create it first, or choose another")
    if path.is_dir():
        raise FileError(f"{out} is a folder; give the name of a file")
    check_can_write(path)
    if path.exists() and not path.is_file():
        raise FileError(f"{out} is not a regular file; give the name of a file")
    for name in inputs:
        if name != STDIN and path.exists() and Path(name).exists() and path.samefile(name):
            raise FileError(f"{out} {clash}")


def check_path(out: str, endings: Iterable[str], inputs: Iterable[str] = ()) -> Path:
    """Check the extension, the folder, and that no input would be overwritten."""
    path, known = Path(out), " or ".join(endings)
    if path.suffix.lower() not in endings:
        raise FileError(f"{out}: unknown file extension {path.suffix!r}; choose {known}")
    check_place(out, inputs, "is an input of this command; write to another file")
    return path


def check_replaced(path: Path, what: str, ours: Callable[[Path], bool], overwrite: bool) -> None:
    """Refuse to replace a file, unless ordspan wrote it and it may be overwritten."""
    if not path.exists():
        return
    if not ours(path):
        raise FileError(f"{path} is not {what} that ordspan wrote; choose another name")
    if not overwrite:
        replace = hint("overwrite=True", "--overwrite")
        raise FileError(f"{path} already exists: {replace} replaces it")


def check_table(path: Path, columns: Sequence[str], overwrite: bool) -> None:
    """Refuse to replace a file, unless it is a table with these columns and may be overwritten."""
    check_replaced(path, "a table", lambda old: has_columns(old, columns), overwrite)


def has_columns(path: Path, names: Iterable[str]) -> bool:
    """Whether a table in a format that can be written has these columns."""
    import polars as pl

    read: dict[str, Any] = {
        ".csv": pl.scan_csv,
        ".parquet": pl.scan_parquet,
        ".jsonl": pl.scan_ndjson,
        ".xlsx": lambda path: pl.read_excel(path, read_options={"n_rows": 1}).lazy(),
    }
    try:
        columns = read[path.suffix.lower()](path).collect_schema()
    except Exception:  # of whatever library finds that it is none
        return False
    return set(names) <= set(columns)


@contextmanager
def report_full_disk(name: str) -> Iterator[None]:
    """Report which file filled the disk."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise FileError(f"{name}: {error.strerror}; free some space, or write elsewhere") from None


@contextmanager
def opened_output(
    out: str, inputs: Iterable[str] = (), *, columns: Sequence[str] = (), overwrite: bool = True
) -> Iterator[Write]:
    """A function that writes tables to a file, which appears only if the block succeeds.

    Parameters
    ----------
    out : str
        A file with one of the endings of `OUTPUTS`, or "-": CSV on standard output.
    inputs : iterable of str
        Files being read, which must not be overwritten.
    columns : sequence of str
        A file that is there is replaced only if it has these columns.
    overwrite : bool
        Whether it may be replaced.
    """
    if out == STDOUT:
        stream: Any = Terminal() if sys.stdout.isatty() else sys.stdout.buffer
        with report_full_disk("standard output"), csv_file(stream) as write:
            yield write
            sys.stdout.buffer.flush()
        return
    path = check_path(out, OUTPUTS, inputs)
    if columns:
        check_table(path, columns, overwrite)
    as_format = OUTPUTS[path.suffix.lower()]
    with report_full_disk(out), opened_atomically(path) as file, as_format(file) as write:
        yield write
