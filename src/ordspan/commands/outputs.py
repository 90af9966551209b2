"""Tables written piece by piece, as CSV, Parquet or JSON lines; a file whole or not at all."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

from ordspan.atomic import check_can_write, opened_atomically
from ordspan.files.batch import FileError
from ordspan.wording import as_text

if TYPE_CHECKING:
    import polars as pl

STDOUT = "-"
ROW_GROUP = 1 << 16
"""Rows that are gathered for one row group of a Parquet file."""
NO_ROOM = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


class Output(Protocol):
    """Takes tables that all have the same columns."""

    def write(self, table: pl.DataFrame) -> None:
        """Append rows."""

    def close(self) -> None:
        """Write what is still held back."""

    def abandon(self) -> None:
        """Let go of the file, which will be removed."""


class TextOutput:
    """Rows that reach the file at once."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._begun = False

    def close(self) -> None:
        """Nothing is held back."""

    def abandon(self) -> None:
        """Nothing holds the file."""


class Terminal:
    """Standard output where it is a terminal, which shows all that is in cells as text."""

    def write(self, lines: bytes) -> None:
        """Write lines."""
        sys.stdout.buffer.write(as_text(lines.decode()).encode())


class CsvOutput(TextOutput):
    """Comma separated values under a header line; cells are quoted where they have to be."""

    def write(self, table: pl.DataFrame) -> None:
        """Append rows, the first ones under a header."""
        if not self._begun:
            check_cells(table)
        self._file.write(table.write_csv(include_header=not self._begun).encode())
        self._begun = True


def check_cells(table: pl.DataFrame) -> None:
    """Refuse columns of lists or records."""
    for column in table:
        if column.dtype.is_nested():
            raise ValueError(
                f"column {column.name!r} holds {column.dtype}, which has no place in a CSV file; "
                "leave it out, or write .parquet or .jsonl"
            )


class JsonOutput(TextOutput):
    """One JSON object a line; JSON knows no NaN."""

    def write(self, table: pl.DataFrame) -> None:
        """Append rows."""
        self._file.write(table.write_ndjson().encode())


class ParquetOutput:
    """A Parquet file with row groups of a useful size."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._writer: Any = None
        self._waiting: list[pl.DataFrame] = []

    def write(self, table: pl.DataFrame) -> None:
        """Append rows; they reach the file when enough of them wait."""
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
        """End pyarrow's writer, which would otherwise try to write when it is collected."""
        if self._writer is not None:
            with suppress(Exception):
                self._writer.close()
            self._writer.is_open = False


OUTPUTS: dict[str, Callable[[IO[bytes]], Output]] = {
    ".csv": CsvOutput,
    ".parquet": ParquetOutput,
    ".jsonl": JsonOutput,
}


def check_path(out: str, endings: Iterable[str], inputs: Iterable[str] = ()) -> Path:
    """Where to write, if that is possible: a known ending, a folder that exists, no input."""
    path, known = Path(out), " or ".join(endings)
    if path.suffix.lower() not in endings:
        raise FileError(f"{out}: the ending {path.suffix!r} is not known; choose {known}")
    if not Path(os.path.realpath(path)).parent.is_dir():
        raise FileError(f"{path.parent}: no such folder; make it first, or choose another")
    check_can_write(path)
    if path.is_dir():
        raise FileError(f"{out} is a folder; give the name of a file")
    if path.exists() and not path.is_file():
        raise FileError(f"{out} is no ordinary file; give the name of a file")
    for name in inputs:
        if path.exists() and Path(name).exists() and os.path.samefile(path, name):
            raise FileError(f"{out} is read by this command; write to another file")
    return path


@contextmanager
def report_full_disk(name: str) -> Iterator[None]:
    """A full disk is told with the file that found no room."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise FileError(f"{name}: {error.strerror}; make room, or write elsewhere") from None


@contextmanager
def opened_output(out: str, inputs: Iterable[str] = ()) -> Iterator[Output]:
    """An output for tables; a file appears under its name only when the block ends well.

    Parameters
    ----------
    out : str
        A file that ends with .csv, .parquet or .jsonl, or "-": CSV on standard output.
    inputs : iterable of str
        Files that are read meanwhile, and so cannot be written.
    """
    if out == STDOUT:
        with report_full_disk("standard output"):
            file: Any = Terminal() if sys.stdout.isatty() else sys.stdout.buffer
            yield CsvOutput(file)
            sys.stdout.buffer.flush()
        return
    path = check_path(out, OUTPUTS, inputs)
    with report_full_disk(out), opened_atomically(path) as file:
        output = OUTPUTS[path.suffix.lower()](file)
        try:
            yield output
            output.close()
        except BaseException:
            output.abandon()
            raise
