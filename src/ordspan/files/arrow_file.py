"""Parquet and Arrow files by pyarrow, some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import ipc, parquet, types

from ordspan.files.batch import INFER_ROWS, OTHER, Faults, FileError, brief
from ordspan.files.tables import Frame, TableFile, kind_of
from ordspan.files.text import N_SPANS, stop_hook
from ordspan.files.threads import read_ahead

BATCH_BYTES, LONG_BYTES = 1 << 22, 1 << 24
"""Of numbers, and at most of all columns together, whose words may be long."""
AHEAD = 2
"""Batches that are decoded while one is used: one may take much longer than another."""

BUFFER_BYTES = 1 << 14  # of each column
MAX_ROWS, MIN_ROWS = 1 << 16, 1 << 8
MAGIC = b"ARROW1"
ENOUGH_PARTS, MAX_PHASES = 32, 8
"""Parts to read in random order, and into how many a row group may be cut for that."""
DAMAGE = (pa.ArrowException, OSError, UnicodeDecodeError)
UNKNOWN = (pa.ArrowException, pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError)
"""What may come of a type that Polars does not know, or of damage that pyarrow does not notice."""


class GroupPart(NamedTuple):
    """Some batches of a row group: those of a phase out of so many."""

    group: int
    phase: int = 0
    of: int = 1


class ParquetFile(TableFile):
    """One Parquet file; its rows are numbered from 1."""

    unit = "row"
    kind = "a Parquet file"

    def _open(self) -> list[str]:
        if not Path(self.path).is_file():
            raise FileError(f"{self.path}: no such file")
        try:
            self.schema, self.n_rows = self._look()
            names: list[str] = self.schema.names
        except DAMAGE as error:
            raise FileError(
                f"{self.path}: not {self.kind}, damaged or cut short ({error}); copy it anew"
            ) from None
        if self.n_rows == 0:
            raise FileError(f"{self.path}: the file has columns, but no rows")
        return names

    def _look(self) -> tuple[pa.Schema, int]:
        """The columns, and the number of rows that the file promises."""
        # else memory grows with the row groups, which may be as large as the file
        self._file = parquet.ParquetFile(self.path, pre_buffer=False, buffer_size=BUFFER_BYTES)
        metadata = self._file.metadata
        self._sizes = [metadata.row_group(g).num_rows for g in range(metadata.num_row_groups)]
        if sum(self._sizes) != metadata.num_rows or min(self._sizes, default=0) < 0:
            raise pa.ArrowInvalid("the numbers of rows do not agree")
        sizes = [metadata.row_group(g).total_byte_size for g in range(metadata.num_row_groups)]
        row_bytes = max(
            (s // max(1, n) for s, n in zip(sizes, self._sizes, strict=True)), default=0
        )
        self._most_rows = max(MIN_ROWS, LONG_BYTES // max(1, row_bytes))
        return self._file.schema_arrow, metadata.num_rows

    def _pieces(
        self, columns: list[str], start: int, part: GroupPart | None = None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Some rows at a time, of all row groups or of a part, with the place of the first."""
        ends = np.cumsum(self._sizes)
        group = int(np.searchsorted(ends, start, side="right")) if part is None else part.group
        row = int(ends[group - 1]) if group else 0
        groups, size = list(range(group, len(ends))), min(self._most_rows, batch_rows(len(columns)))
        if part is not None:  # each of its phases has a batch
            groups, size = [group], min(size, -(-self._sizes[group] // part.of))
        found = self._file.iter_batches(size, row_groups=groups, columns=columns, use_threads=False)
        for number, piece in enumerate(found):
            if part is None or number % part.of == part.phase:
                yield row, piece
            row += piece.num_rows

    def parts(self) -> list[Any]:
        """The row groups; where they are few, every so many batches of each are a part.

        To read such a part its whole row group is decoded.
        """
        of = min(MAX_PHASES, -(-ENOUGH_PARTS // max(1, len(self._sizes))))
        return [GroupPart(g, p, of) for g, n in enumerate(self._sizes) if n for p in range(of)]

    def head(self) -> pl.DataFrame:
        """The first rows."""
        with self._reported():
            _, piece = next(self._pieces(self._known(), 0))
            return self._good(piece.slice(0, INFER_ROWS), 0)

    def sample(self, size: int) -> tuple[pl.DataFrame, bool]:
        """Rows spread over the file, about ``size`` bytes of them; whether these are all."""
        names = self._known()
        most = max(INFER_ROWS, size // (8 * max(1, len(names))))
        whole = self.n_rows <= most
        most = most if whole else most // 2
        parts = self.parts()
        parts = [part for part in parts if part is None or part.phase == 0]
        parts = [part and part._replace(of=1) for part in parts]
        chosen = parts[:: max(1, len(parts) // N_SPANS)]
        every = 1 if len(chosen) > 1 else -(-self.n_rows // most)  # one group: spread over it
        kept = []
        with self._reported():
            for part in [None] if whole else chosen:
                left = self.n_rows if part is None else most // len(chosen)
                for row, piece in self._pieces(names, 0, part):
                    stop_hook.check()
                    n_rows = min(left, -(-piece.num_rows // every))
                    if n_rows < piece.num_rows:  # copied: a slice would hold on to all rows
                        piece = piece.take(pa.array(range(n_rows)))
                    kept.append(self._good(piece, row))
                    left -= n_rows
                    if left <= 0:
                        break
        del piece
        pa.default_memory_pool().release_unused()  # the pages of every column, once more
        return pl.concat(kept, how="vertical_relaxed"), whole

    def _known(self) -> list[str]:
        """The columns of plain values."""
        return [field.name for field in self.schema if not types.is_nested(field.type)]

    def kinds(self) -> dict[str, str]:
        """What each column holds."""
        kinds = {}
        for field in self.schema:
            try:
                none = pl.from_arrow(pa.schema([field]).empty_table())
                assert isinstance(none, pl.DataFrame)
                kinds[field.name] = kind_of(none.to_series())
            except UNKNOWN:
                kinds[field.name] = OTHER
        return kinds

    def orders(self) -> dict[str, list[Any]]:
        """The values from lowest to highest of ordered categories."""
        return {
            field.name: self._order(field.name)
            for field in self.schema
            if types.is_dictionary(field.type) and field.type.ordered
        }

    def _order(self, name: str) -> list[Any]:
        with self._reported():
            _, piece = next(self._pieces([name], 0))
            dtype = self._good(piece, 0)[name].dtype
        if isinstance(dtype, pl.Enum):
            return dtype.categories.to_list()
        known: list[Any] = piece.column(name).dictionary.to_pylist()
        return known

    def frames(
        self, numbers: Sequence[str], texts: Sequence[str], start: int, part: Any = None
    ) -> Iterator[Frame]:
        """At least the rows from ``start`` on."""
        columns = list(dict.fromkeys([*numbers, *texts])) or self.names[:1]
        plain = numbers and all(_is_plain(self.schema.field(name).type) for name in numbers)
        row, end = start if part is None else 0, 0
        try:
            for first, piece in read_ahead(self._pieces(columns, start, part), AHEAD):
                stop_hook.check()
                row, end = first if part is None else row, first + piece.num_rows
                X = self._matrix(piece.select(numbers)) if plain else None
                frame, faults = self._as_frame(piece.select(texts) if plain else piece)
                lines = np.arange(first, end) + 1
                yield Frame(frame, lines, faults, end / self.n_rows, row, X)
                row += piece.num_rows
        except DAMAGE as error:
            raise FileError(
                f"{self.path}, after row {end}: damaged ({error}); copy it anew"
            ) from None
        if part is None and row < self.n_rows:
            raise FileError(
                f"{self.path}, after row {row}: damaged, rows are missing; copy it anew"
            )

    def _matrix(self, piece: pa.RecordBatch) -> NDArray[Any]:
        """Columns of plain numbers as rows, missing ones as NaN; quicker than by way of Polars."""
        X: NDArray[Any] = piece.to_tensor(null_to_nan=True, row_major=True).to_numpy()
        small = all(types.is_float32(field.type) for field in piece.schema)
        return X if small else X.astype(np.float64, copy=False)

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except DAMAGE as error:
            raise FileError(f"{self.path}: damaged ({error}); copy it anew") from None

    def _good(self, piece: pa.RecordBatch, first: int) -> pl.DataFrame:
        """The good rows of a piece for a look; what is wrong with the first bad one is noted."""
        frame, faults = self._as_frame(piece)
        if not faults:
            return frame
        self.fault = self.fault or (
            f"{self.path}, row {first + min(faults) + 1}: {faults[min(faults)]}"
        )
        return frame.filter(~pl.int_range(pl.len()).is_in(list(faults)))

    def _as_frame(self, piece: pa.RecordBatch) -> tuple[pl.DataFrame, Faults]:
        """The rows of a piece, and what is wrong with those whose words are not UTF-8."""
        if not piece.num_columns:
            return pl.DataFrame(), Faults()
        faults = Faults()
        try:
            piece.validate(full=True)  # damaged lengths or letters would end the process in Polars
        except pa.ArrowInvalid:
            piece, faults = _without_odd_words(piece)
            piece.validate(full=True)
        try:
            frame = pl.from_arrow(piece)
        except UNKNOWN as error:
            raise FileError(f"{self.path}: a column cannot be read ({error})") from None
        assert isinstance(frame, pl.DataFrame)
        return frame, faults


class ArrowFile(ParquetFile):
    """One Arrow IPC (Feather) file or stream; each record batch in it is read whole."""

    kind = "an Arrow file"

    def _look(self) -> tuple[pa.Schema, int]:
        with pa.memory_map(self.path) as source:
            reader = self._reader(source)
            schema, self._in_any_order = reader.schema, hasattr(reader, "get_batch")
            lengths = (batch.num_rows for batch in self._record_batches(source, schema, [0]))
            self._sizes = list(lengths)
            return schema, sum(self._sizes)

    def parts(self) -> list[Any]:
        """The record batches of a file; a stream can be read only in its order."""
        if not self._in_any_order:
            return [None]
        return [GroupPart(number) for number, n_rows in enumerate(self._sizes) if n_rows]

    def _reader(self, source: pa.NativeFile, columns: list[int] | None = None) -> Any:
        """The reader of a file, or of a stream."""
        source.seek(0)
        is_file = source.read(len(MAGIC)) == MAGIC
        source.seek(0)
        options = ipc.IpcReadOptions(included_fields=columns)
        return (ipc.open_file if is_file else ipc.open_stream)(source, options=options)

    def _record_batches(
        self,
        source: pa.NativeFile,
        schema: pa.Schema,
        columns: list[int],
        part: GroupPart | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The batches, or one of them, of which only some columns are read."""
        reader = self._reader(source, sorted(columns) if len(schema) else None)
        if part is not None:
            return iter([reader.get_batch(part.group)])
        if hasattr(reader, "get_batch"):
            return map(reader.get_batch, range(reader.num_record_batches))
        return iter(reader)

    def _pieces(
        self, columns: list[str], start: int, part: GroupPart | None = None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        row, size = 0, batch_rows(len(columns))
        if part is not None:
            row = sum(self._sizes[: part.group])
        with pa.OSFile(self.path) as source:
            places = [self.schema.get_field_index(name) for name in columns]
            for whole in self._record_batches(source, self.schema, places, part):
                for begin in range(0, whole.num_rows, size):
                    piece = whole.slice(begin, size).select(columns)
                    yield row, piece
                    row += piece.num_rows


def _without_odd_words(piece: pa.RecordBatch) -> tuple[pa.RecordBatch, Faults]:
    """A piece in which words that are not UTF-8 are missing, and the faults of their rows."""
    faults, columns = Faults(), []
    for name, column in zip(piece.schema.names, piece.columns, strict=True):
        mended, odd = _mended(column)
        columns.append(mended)
        for row, word in odd.items():
            told = f"column {name!r} holds {brief(word)}, which is not UTF-8; correct it"
            faults.setdefault(row, told)
    return pa.RecordBatch.from_arrays(columns, schema=piece.schema), faults


def _mended(column: pa.Array) -> tuple[pa.Array, dict[int, bytes]]:
    """A column without its odd words, and these by their rows."""
    dtype = column.type
    if types.is_dictionary(dtype) and not dtype.ordered:
        words, odd = _mended(column.dictionary)
        codes = column.indices.to_pylist()
        rows = {row: odd[code] for row, code in enumerate(codes) if code in odd}
        codes = pa.array([None if code in odd else code for code in codes], dtype.index_type)
        known = [
            f"not UTF-8: {place}" if place in odd else w.as_py() for place, w in enumerate(words)
        ]
        return pa.DictionaryArray.from_arrays(codes, pa.array(known, words.type)), rows
    if not (types.is_string(dtype) or types.is_large_string(dtype) or types.is_string_view(dtype)):
        return column, {}
    as_bytes = column.cast(pa.large_binary())
    as_bytes.validate(full=True)  # damaged lengths
    odd, words = {}, []
    for row, word in enumerate(as_bytes.to_pylist()):
        try:
            words.append(None if word is None else word.decode())
        except UnicodeDecodeError:
            odd[row] = word
            words.append(None)
    return pa.array(words, dtype), odd


def _is_plain(dtype: pa.DataType) -> bool:
    """Whether pyarrow turns such a column into rows as it is."""
    return bool(types.is_integer(dtype) or types.is_float32(dtype) or types.is_float64(dtype))


def batch_rows(n_columns: int) -> int:
    """How many rows to read at a time: many, because each batch costs a call for every column.

    >>> batch_rows(3), batch_rows(136), batch_rows(50_000)
    (65536, 3855, 256)
    """
    return min(MAX_ROWS, max(MIN_ROWS, BATCH_BYTES // (8 * max(1, n_columns))))
