"""Write tables in chunks as CSV, Parquet or JSON lines; files appear atomically."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ordspan.models.atomic import check_can_write, opened_atomically
from ordspan.tables.rows import FileError
from ordspan.tables.text import STDIN
from ordspan.wording import as_text, hint

if TYPE_CHECKING:
    import polars as pl

STDOUT = "-"
ROW_GROUP = 1 << 16
"""Rows per row group of a Parquet file."""
NO_ROOM = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


class Output:
    """A sink for tables that all have the same columns; nothing is buffered."""

    def write(self, table: pl.DataFrame) -> None:
        """Append rows."""

    def close(self) -> None:
        """Write buffered rows."""

    def abandon(self) -> None:
        """Release the file, which will be removed."""


class Terminal:
    """Standard output on a terminal, with control characters escaped."""

    def write(self, lines: bytes) -> None:
        """Write lines."""
        sys.stdout.buffer.write(as_text(lines.decode()).encode())


class TextOutput(Output):
    """Comma separated values with a header, or one JSON object per line; nothing is buffered."""

    def __init__(self, file: IO[bytes], *, json: bool = False) -> None:
        self._file, self._json = file, json
        self._begun = False

    def write(self, table: pl.DataFrame) -> None:
        """Append rows, in CSV after a header the first time; cells are quoted if needed."""
        if self._json:
            self._file.write(table.write_ndjson().encode())
            return
        if not self._begun:
            check_cells(table)
        self._file.write(table.write_csv(include_header=not self._begun).encode())
        self._begun = True


def check_cells(table: pl.DataFrame) -> None:
    """Refuse columns of lists or records."""
    for column in table:
        if column.dtype.is_nested():
            raise ValueError(
                f"column {column.name!r} holds {column.dtype}, which CSV cannot represent; "
                "leave it out, or write .parquet or .jsonl"
            )


class ParquetOutput(Output):
    """A Parquet file with row groups of a sensible size."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._writer: Any = None
        self._waiting: list[pl.DataFrame] = []

    def write(self, table: pl.DataFrame) -> None:
        """Append rows, buffered up to a row group."""
        self._waiting.append(table)
        if sum(part.height for part in self._waiting) >= ROW_GROUP:
            self._flush()

    def _flush(self) -> None:
        import polars as pl
        from pyarrow import parquet

        if self._waiting:
            table = pl.concat(self._waiting).to_arrow(compat_level=pl.CompatLevel.oldest())
            if self._writer is None:
                self._writer = parquet.ParquetWriter(self._file, table.schema, store_schema=False)
            self._writer.write_table(table)
            self._waiting = []

    def close(self) -> None:
        """Write the last rows and the end of the file."""
        self._flush()
        if self._writer is not None:
            self._writer.close()

    def abandon(self) -> None:
        """Close pyarrow's writer, which would otherwise write when garbage collected."""
        if self._writer is not None:
            with suppress(Exception):
                self._writer.close()
            self._writer.is_open = False


OUTPUTS: dict[str, Callable[[IO[bytes]], Output]] = {
    ".csv": TextOutput,
    ".parquet": ParquetOutput,
    ".jsonl": partial(TextOutput, json=True),
}


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

    scan: dict[str, Any] = {".csv": pl.scan_csv, ".parquet": pl.scan_parquet}
    try:
        columns = scan.get(path.suffix.lower(), pl.scan_ndjson)(path).collect_schema()
    except (pl.exceptions.PolarsError, OSError):
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
) -> Iterator[Output]:
    """Open an output for tables; a file appears only if the block succeeds.

    Parameters
    ----------
    out : str
        A file that ends with .csv, .parquet or .jsonl, or "-": CSV on standard output.
    inputs : iterable of str
        Files being read, which must not be overwritten.
    columns : sequence of str
        A file that is there is replaced only if it has these columns.
    overwrite : bool
        Whether it may be replaced.
    """
    if out == STDOUT:
        with report_full_disk("standard output"):
            file: Any = Terminal() if sys.stdout.isatty() else sys.stdout.buffer
            yield TextOutput(file)
            sys.stdout.buffer.flush()
        return
    path = check_path(out, OUTPUTS, inputs)
    if columns:
        check_table(path, columns, overwrite)
    with report_full_disk(out), opened_atomically(path) as file:
        output = OUTPUTS[path.suffix.lower()](file)
        try:
            yield output
            output.close()
        except BaseException:
            output.abandon()
            raise
