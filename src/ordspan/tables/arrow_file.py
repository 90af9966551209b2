"""Parquet and Arrow files, read by pyarrow in batches."""

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

from ordspan.tables.batch import INFER_ROWS, OTHER, Faults, FileError
from ordspan.tables.tables import Frame, TableFile, kind_of
from ordspan.tables.text import N_SPANS
from ordspan.tables.threads import read_ahead
from ordspan.wording import brief

BATCH_BYTES, LONG_BYTES = 1 << 22, 1 << 24
"""Size of a batch of numbers, and the limit for all columns together, whose text may be long."""
AHEAD = 2
"""Batches decoded ahead: one may take much longer than another."""

COLUMN_BUFFER_BYTES = 1 << 14  # of each column
MAX_ROWS, MIN_ROWS = 1 << 16, 1 << 8
ARROW_MAGIC = b"ARROW1"
ENOUGH_PARTS, MAX_PHASES = 32, 8
"""Wanted number of parts to read in random order, and the most that a row group is cut into."""
DAMAGE = (pa.ArrowException, OSError, UnicodeDecodeError)
UNKNOWN = (pa.ArrowException, pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError)
"""Errors for types that Polars does not know, or for damage that pyarrow does not notice."""


class GroupPart(NamedTuple):
    """Every ``of``-th batch of a row group, from batch ``phase`` on."""

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
                f"{self.path}: not {self.kind}, or damaged or truncated ({error}); copy it again"
            ) from None
        if self.n_rows == 0:
            raise FileError(f"{self.path}: the file has columns but no rows")
        return names

    def _look(self) -> tuple[pa.Schema, int]:
        """The schema, and the number of rows according to the metadata."""
        # without pre-buffering: row groups may be as large as the file
        self._file = parquet.ParquetFile(
            self.path, pre_buffer=False, buffer_size=COLUMN_BUFFER_BYTES
        )
        metadata = self._file.metadata
        self._sizes = [metadata.row_group(g).num_rows for g in range(metadata.num_row_groups)]
        if sum(self._sizes) != metadata.num_rows or min(self._sizes, default=0) < 0:
            raise pa.ArrowInvalid("the row counts do not agree")
        sizes = [metadata.row_group(g).total_byte_size for g in range(metadata.num_row_groups)]
        row_bytes = max(
            (s // max(1, n) for s, n in zip(sizes, self._sizes, strict=True)), default=0
        )
        self._most_rows = max(MIN_ROWS, LONG_BYTES // max(1, row_bytes))
        return self._file.schema_arrow, metadata.num_rows

    def _pieces(
        self, columns: list[str], start: int, part: GroupPart | None = None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Batches of all row groups or of a part, each with the position of its first row."""
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
        """The row groups; if there are few, each is split into interleaved batches.

        Reading such a part decodes its whole row group.
        """
        of = min(MAX_PHASES, -(-ENOUGH_PARTS // max(1, len(self._sizes))))
        return [GroupPart(g, p, of) for g, n in enumerate(self._sizes) if n for p in range(of)]

    def head(self) -> pl.DataFrame:
        """The first rows."""
        with self._reported():
            _, piece = next(self._pieces(self._known(), 0))
            return self._good_rows(piece.slice(0, INFER_ROWS), 0)

    def sample(self, size: int) -> tuple[pl.DataFrame, bool]:
        """About ``size`` bytes of rows spread over the file; whether these are all."""
        names = self._known()
        most = max(INFER_ROWS, size // (8 * max(1, len(names))))
        whole = self.n_rows <= most
        most = most if whole else most // 2
        parts = self.parts()
        parts = [part for part in parts if part is None or part.phase == 0]
        parts = [part and part._replace(of=1) for part in parts]
        chosen = parts[:: max(1, len(parts) // N_SPANS)]
        every = 1 if len(chosen) > 1 else -(-self.n_rows // most)  # a single group: thin it out
        kept = []
        with self._reported():
            for part in [None] if whole else chosen:
                left = self.n_rows if part is None else most // len(chosen)
                for row, piece in self._pieces(names, 0, part):
                    n_rows = min(left, -(-piece.num_rows // every))
                    if n_rows < piece.num_rows:  # copied: a slice would keep all rows alive
                        piece = piece.take(pa.array(range(n_rows)))
                    kept.append(self._good_rows(piece, row))
                    left -= n_rows
                    if left <= 0:
                        break
        del piece
        pa.default_memory_pool().release_unused()  # the decoded pages of every column
        return pl.concat(kept, how="vertical_relaxed"), whole

    def _known(self) -> list[str]:
        """The columns that are not nested."""
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
        """The values of ordered categories, from lowest to highest."""
        return {
            field.name: self._order(field.name)
            for field in self.schema
            if types.is_dictionary(field.type) and field.type.ordered
        }

    def _order(self, name: str) -> list[Any]:
        with self._reported():
            _, piece = next(self._pieces([name], 0))
            dtype = self._good_rows(piece, 0)[name].dtype
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
                row, end = first if part is None else row, first + piece.num_rows
                X = self._matrix(piece.select(numbers)) if plain else None
                frame, faults = self._as_frame(piece.select(texts) if plain else piece)
                lines = np.arange(first, end) + 1
                yield Frame(frame, lines, faults, end / self.n_rows, row, X)
                row += piece.num_rows
        except DAMAGE as error:
            raise FileError(
                f"{self.path}, after row {end}: damaged ({error}); copy it again"
            ) from None
        if part is None and row < self.n_rows:
            raise FileError(
                f"{self.path}, after row {row}: damaged, rows are missing; copy it again"
            )

    def _matrix(self, piece: pa.RecordBatch) -> NDArray[Any]:
        """Numeric columns as a row-major matrix, nulls as NaN; faster than through Polars."""
        X: NDArray[Any] = piece.to_tensor(null_to_nan=True, row_major=True).to_numpy()
        small = all(types.is_float32(field.type) for field in piece.schema)
        return X if small else X.astype(np.float64, copy=False)

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except DAMAGE as error:
            raise FileError(f"{self.path}: damaged ({error}); copy it again") from None

    def _good_rows(self, piece: pa.RecordBatch, first: int) -> pl.DataFrame:
        """The good rows of a batch for a preview; the fault of the first bad one is kept."""
        frame, faults = self._as_frame(piece)
        if not faults:
            return frame
        self.fault = self.fault or (
            f"{self.path}, row {first + min(faults) + 1}: {faults[min(faults)]}"
        )
        return frame.filter(~pl.int_range(pl.len()).is_in(list(faults)))

    def _as_frame(self, piece: pa.RecordBatch) -> tuple[pl.DataFrame, Faults]:
        """The rows of a batch, and the faults of those whose text is not UTF-8."""
        if not piece.num_columns:
            return pl.DataFrame(), Faults()
        faults = Faults()
        try:
            piece.validate(full=True)  # Polars would crash on damaged lengths or characters
        except pa.ArrowInvalid:
            piece, faults = _without_bad_text(piece)
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
        is_file = source.read(len(ARROW_MAGIC)) == ARROW_MAGIC
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


def _without_bad_text(piece: pa.RecordBatch) -> tuple[pa.RecordBatch, Faults]:
    """A batch in which text that is not UTF-8 is null, and the faults of its rows."""
    faults, columns = Faults(), []
    for name, column in zip(piece.schema.names, piece.columns, strict=True):
        repaired, bad = _repaired(column)
        columns.append(repaired)
        for row, text in bad.items():
            fault = f"column {name!r} holds {brief(text)}, which is not UTF-8; correct it"
            faults.setdefault(row, fault)
    return pa.RecordBatch.from_arrays(columns, schema=piece.schema), faults


def _repaired(column: pa.Array) -> tuple[pa.Array, dict[int, bytes]]:
    """A column with null in place of text that is not UTF-8, and that text by row."""
    dtype = column.type
    if types.is_dictionary(dtype) and not dtype.ordered:
        words, bad = _repaired(column.dictionary)
        codes = column.indices.to_pylist()
        rows = {row: bad[code] for row, code in enumerate(codes) if code in bad}
        codes = pa.array([None if code in bad else code for code in codes], dtype.index_type)
        known = [
            f"not UTF-8: {place}" if place in bad else w.as_py() for place, w in enumerate(words)
        ]
        return pa.DictionaryArray.from_arrays(codes, pa.array(known, words.type)), rows
    if not (types.is_string(dtype) or types.is_large_string(dtype) or types.is_string_view(dtype)):
        return column, {}
    as_bytes = column.cast(pa.large_binary())
    as_bytes.validate(full=True)  # damaged lengths
    bad, words = {}, []
    for row, word in enumerate(as_bytes.to_pylist()):
        try:
            words.append(None if word is None else word.decode())
        except UnicodeDecodeError:
            bad[row] = word
            words.append(None)
    return pa.array(words, dtype), bad


def _is_plain(dtype: pa.DataType) -> bool:
    """Whether pyarrow can put a column of this type into a matrix."""
    return bool(types.is_integer(dtype) or types.is_float32(dtype) or types.is_float64(dtype))


def batch_rows(n_columns: int) -> int:
    """Rows per batch: many, because each batch costs a call per column.

    >>> batch_rows(3), batch_rows(136), batch_rows(50_000)
    (65536, 3855, 256)
    """
    return min(MAX_ROWS, max(MIN_ROWS, BATCH_BYTES // (8 * max(1, n_columns))))
