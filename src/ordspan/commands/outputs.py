"""Tables written piece by piece, as CSV, Parquet or JSON lines; a file whole or not at all."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

from ordspan.atomic import opened_atomically
from ordspan.data.files.lines import FileError

if TYPE_CHECKING:
    import pyarrow as pa

STDOUT = "-"
ROW_GROUP = 1 << 16
"""Rows that are gathered for one row group of a Parquet file."""
NO_ROOM = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


class Output(Protocol):
    """Takes tables that all have the same columns."""

    def write(self, table: pa.Table) -> None:
        """Append rows."""

    def close(self) -> None:
        """Write what is still held back."""

    def abandon(self) -> None:
        """Let go of the file, which will be removed."""


class CsvOutput:
    """Comma separated values under a header line; cells are quoted where they have to be."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._begun = False

    def write(self, table: pa.Table) -> None:
        """Append rows, the first ones under a header."""
        if not self._begun:
            check_cells(table.schema)
            self._file.write(csv_line(table.column_names))
            self._begun = True
        self._file.write(csv_rows(table))

    def close(self) -> None:
        """Nothing is held back."""

    def abandon(self) -> None:
        """Nothing holds the file."""


def check_cells(schema: pa.Schema) -> None:
    """Refuse columns of lists or records."""
    from pyarrow import types

    for field in schema:
        if types.is_nested(field.type):
            raise ValueError(
                f"column {field.name!r} holds {field.type}, which has no place in a CSV file; "
                "leave it out, or write .parquet or .jsonl"
            )


def csv_line(cells: Iterable[str]) -> bytes:
    r"""One line of a CSV file.

    >>> csv_line(["id", "a,b"])
    b'id,"a,b"\n'
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue().encode()


def csv_rows(table: pa.Table) -> bytes:
    """The rows of a table, quoted only if some cell asks for it: pyarrow knows all or none."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    for style in ("none", "needed"):
        buffer = pa.BufferOutputStream()
        options = arrow_csv.WriteOptions(include_header=False, quoting_style=style)
        try:
            arrow_csv.write_csv(table, buffer, options)
            break
        except pa.ArrowInvalid:
            if style == "needed":
                raise
    content: bytes = buffer.getvalue().to_pybytes()
    return content


class ParquetOutput:
    """A Parquet file with row groups of a useful size."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._writer: Any = None
        self._waiting: list[pa.Table] = []

    def write(self, table: pa.Table) -> None:
        """Append rows; they reach the file when enough of them wait."""
        from pyarrow import parquet

        if self._writer is None:
            self._writer = parquet.ParquetWriter(self._file, table.schema)
        self._waiting.append(table)
        if sum(part.num_rows for part in self._waiting) >= ROW_GROUP:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa

        if self._waiting:
            self._writer.write_table(pa.concat_tables(self._waiting))
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


class JsonOutput:
    """One JSON object a line."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._encode = json.JSONEncoder(ensure_ascii=False).encode

    def write(self, table: pa.Table) -> None:
        """Append rows."""
        names, columns = table.column_names, map(json_values, table.columns)
        rows = (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))
        self._file.write("".join(f"{self._encode(row)}\n" for row in rows).encode())

    def close(self) -> None:
        """Nothing is held back."""

    def abandon(self) -> None:
        """Nothing holds the file."""


def json_values(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column, as JSON knows them."""
    from pyarrow import types

    values: list[Any] = column.to_pylist()
    plain = types.is_integer(column.type) or types.is_string(column.type)
    return values if plain else [as_json(value) for value in values]


def as_json(value: Any) -> Any:
    """A value as JSON knows it: no NaN; dates and decimals as text, bytes as UTF-8.

    >>> import datetime
    >>> as_json({"when": datetime.date(2020, 2, 3), "size": [1.5, float("nan")]})
    {'when': '2020-02-03', 'size': [1.5, None]}
    """
    if isinstance(value, dict):
        return {name: as_json(inside) for name, inside in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(inside) for inside in value]
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value if value is None or isinstance(value, bool | int | str) else str(value)


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
    if path.is_dir():
        raise FileError(f"{out} is a folder; give the name of a file")
    if not path.resolve().parent.is_dir():
        raise FileError(f"{path.parent}: no such folder; make it first, or choose another")
    for name in inputs:
        if path.exists() and Path(name).exists() and os.path.samefile(path, name):
            raise FileError(f"{out} is read by this command; write to another file")
    return path


@contextmanager
def room_told(name: str) -> Iterator[None]:
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
        with room_told("standard output"):
            yield CsvOutput(sys.stdout.buffer)
            sys.stdout.buffer.flush()
        return
    path = check_path(out, OUTPUTS, inputs)
    with room_told(out), opened_atomically(path) as file:
        output = OUTPUTS[path.suffix.lower()](file)
        try:
            yield output
            output.close()
        except BaseException:
            output.abandon()
            raise
