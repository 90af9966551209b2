"""Parquet files, read some rows at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ordspan.data.files.ahead import ahead
from ordspan.data.files.chunks import (
    EMPTY,
    BadRows,
    Chunk,
    Place,
    is_number,
    kind_of,
    not_a_number,
    repeated,
)
from ordspan.data.files.lines import FileError, moment
from ordspan.data.files.parquet_pages import PageWalk, Unusual

if TYPE_CHECKING:
    import pyarrow as pa

COLUMN_BYTES, ROW_BYTES = 1 << 25, 1 << 23
"""Of the rows that are read at a time, as columns by pyarrow and as rows by our own walk."""

AHEAD = 2
"""Batches that are read while one is learned: pages are turned for many rows at once, so that one
batch may take much longer than another."""

BUFFER_BYTES = 1 << 16  # of each column
MOST_ROWS, FEWEST_ROWS = 1 << 16, 1 << 8


class ParquetFile:
    """One Parquet file; its rows are numbered from 1."""

    def __init__(self, path: str) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        self.path = path
        if not Path(path).is_file():
            raise FileError(f"{path}: no such file")
        self._version = _version(path)
        try:
            # else memory grows with the row groups, which may be as large as the file
            self._file = parquet.ParquetFile(path, pre_buffer=False, buffer_size=BUFFER_BYTES)
            self._schema = self._file.schema_arrow
            self.names = self._schema.names
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise FileError(
                f"{path}: not a Parquet file, damaged or cut short ({error}); copy it anew"
            ) from None
        metadata = self._file.metadata
        if metadata.num_rows == 0:
            raise FileError(f"{path}: the file has columns, but no rows")
        self._sizes = [metadata.row_group(g).num_rows for g in range(self._file.num_row_groups)]
        if sum(self._sizes) != metadata.num_rows or min(self._sizes) < 0:
            raise FileError(f"{path}: damaged, the numbers of rows do not agree; copy it anew")
        if (twice := repeated(self.names)) is not None:
            raise FileError(f"{path}: two columns have the name {twice!r}; rename one of them")
        self.numbers_in_table = False  # whether the table must hold the numbers, too

    def kinds(self) -> dict[str, str]:
        """What each column holds."""
        return {field.name: kind_of(field.type) for field in self._schema}

    def chunks(
        self, numbers: Sequence[str], texts: Sequence[str], place: Place, bad: BadRows
    ) -> Iterator[Chunk]:
        """Chunks from a place on, with the columns ``numbers`` as numbers and ``texts`` as is."""
        import pyarrow as pa

        groups, row = self._groups_from(place.start)
        try:
            for batch, matrix, checked in ahead(self._batches(numbers, texts, groups), AHEAD):
                moment.pass_by()
                skip = min(max(place.start - row, 0), batch.num_rows)
                first, row = row + skip, row + batch.num_rows
                if skip < batch.num_rows:
                    rows = None if matrix is None else matrix[skip:]
                    chunk = self._chunk(batch.slice(skip), rows, first, numbers, bad)
                    yield replace(chunk, checked=checked)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise FileError(
                f"{self.path}, after row {row}: damaged ({error}); copy it anew"
            ) from None
        if row < sum(self._sizes):
            raise FileError(
                f"{self.path}, after row {row}: damaged, rows are missing; copy it anew"
            )

    def _batches(
        self, numbers: Sequence[str], texts: Sequence[str], groups: list[int]
    ) -> Iterator[tuple[pa.RecordBatch, NDArray[Any] | None, bool]]:
        """Rows of row groups: as columns, and their numbers as a matrix where that can be had.

        And whether the numbers were found to be fit for learning.
        """
        n_columns = len(numbers) + len(texts)
        done = 0
        if not self.numbers_in_table:
            with (
                contextlib.suppress(Unusual),
                PageWalk(self._file, self.path, numbers, groups) as pages,
            ):
                if _version(self.path) != self._version:  # pyarrow goes on with the file it has
                    raise Unusual
                for batch in self._columns(texts, groups, batch_rows(n_columns, ROW_BYTES)):
                    yield batch, *pages.take(batch.num_rows)
                    done += batch.num_rows
                pages.end()
                return
        n_rows = batch_rows(n_columns, COLUMN_BYTES)
        while len(groups) > 1 and self._sizes[groups[0]] <= done:
            done -= self._sizes[groups[0]]
            groups = groups[1:]
        for batch in self._columns([*numbers, *texts], groups, n_rows):
            skip = min(done, batch.num_rows)
            done -= skip
            if skip < batch.num_rows:
                yield batch.slice(skip), None, False

    def _columns(
        self, names: Sequence[str], groups: list[int], n_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Columns of row groups, so many rows at a time."""
        import pyarrow as pa

        if names:
            yield from self._file.iter_batches(
                n_rows, row_groups=groups, columns=names, use_threads=False
            )
            return
        # pyarrow would end each batch of no columns with its row group
        total = sum(self._sizes[group] for group in groups)
        for begin in range(0, total, n_rows):
            rows = pa.StructArray.from_buffers(pa.struct([]), min(n_rows, total - begin), [None])
            yield pa.RecordBatch.from_struct_array(rows)

    def _groups_from(self, start: int) -> tuple[list[int], int]:
        """The row groups that hold row ``start`` and later ones, and the first row of the first."""
        ends = np.cumsum(self._sizes)
        first = int(np.searchsorted(ends, start, side="right"))
        return list(range(first, len(ends))), int(ends[first - 1]) if first else 0

    def _chunk(
        self,
        batch: pa.RecordBatch,
        matrix: NDArray[Any] | None,
        first: int,
        numbers: Sequence[str],
        bad: BadRows,
    ) -> Chunk:
        import pyarrow as pa

        table = pa.Table.from_batches([batch])
        faults: dict[int, str] = {}
        for i, field in enumerate(table.schema):
            if field.name in numbers and _needs_cast(field.type):
                floats = self._as_floats(table.column(i), field, faults)
                table = table.set_column(i, field.name, floats)
        rows = np.arange(first + 1, first + 1 + batch.num_rows)
        chunk = Chunk(self.path, "row", rows, Place(first, 1), table, matrix)
        return chunk.only(bad.drop(chunk, faults)) if faults else chunk

    def _as_floats(
        self, column: pa.ChunkedArray, field: pa.Field, faults: dict[int, str]
    ) -> pa.ChunkedArray:
        """A column as numbers; words among them are faults of their rows."""
        import pyarrow as pa

        try:
            return column.cast(pa.float64())
        except pa.ArrowNotImplementedError:
            raise FileError(
                f"{self.path}: column {field.name!r} holds {field.type}, not numbers; leave it "
                f"out with --drop {field.name}"
            ) from None
        except pa.ArrowInvalid:
            cells = column.to_pylist()
        for row, cell in enumerate(cells):
            if not (cell is None or cell in EMPTY or is_number(cell)):
                faults.setdefault(row, not_a_number(field.name, cell))
        numbers = [float(cell) if is_number(cell) else None for cell in cells]
        return pa.chunked_array([pa.array(numbers, type=pa.float64())])


def batch_rows(n_columns: int, n_bytes: int) -> int:
    """How many rows to read at a time: many, because each batch costs a call for every column.

    >>> batch_rows(3, 1 << 25), batch_rows(136, 1 << 25), batch_rows(50_000, 1 << 25)
    (65536, 30840, 256)
    """
    return min(MOST_ROWS, max(FEWEST_ROWS, n_bytes // (8 * max(1, n_columns))))


def _version(path: str) -> tuple[int, int, int]:
    """What changes when another file takes the place of one."""
    told = Path(path).stat()
    return told.st_ino, told.st_size, told.st_mtime_ns


def _needs_cast(dtype: pa.DataType) -> bool:
    from pyarrow import types

    plain = types.is_integer(dtype) or types.is_float32(dtype) or types.is_float64(dtype)
    return not plain
