"""Number columns of a Parquet file straight as a matrix, page by page.

pyarrow reads a column at a time, and a learner wants rows: to turn the one into the other takes as
long as to learn. Here both are one walk. It knows plain pages and pages with a dictionary, of
floats and whole numbers without missing values, which is what most writers make of such columns; at
the first page that is anything else it raises `Unusual`, and its caller goes on with pyarrow.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from ordspan.core import paging
from ordspan.data.files.ahead import THREADS
from ordspan.data.files.chunks import LARGEST
from ordspan.data.files.parquet_footer import Struct, row_groups

if TYPE_CHECKING:
    from pyarrow import parquet

HEADER_READ, MOST_READ = 1 << 10, 1 << 17
"""Bytes to read at once: enough for a header, and at most so many before the header is known."""

MOST_BYTES = 1 << 29
"""Of the open pages of all columns together, and of their dictionaries."""

SPARE, LINE = 8, 64
"""Bytes behind each page, whose last places are read as parts of words; and of a cache line."""

FEWEST_VALUES = 256
"""Of a page that is not the last one of its row group; pyarrow turns smaller pages more quickly."""

UNPACKED, SNAPPY, ZSTD = 0, 1, 6
CODECS = {SNAPPY: "snappy", ZSTD: "zstd"}

SMALL_NUMBERS = ("int8", "uint8", "int16", "uint16", "int32")
KINDS: dict[str, tuple[int, str, int, np.dtype[Any]]] = {
    "float": (4, "FLOAT", paging.SINGLES, np.dtype(np.float32)),
    "double": (5, "DOUBLE", paging.DOUBLES, np.dtype(np.float64)),
    "int64": (2, "INT64", paging.LONGS, np.dtype(np.int64)),
    **dict.fromkeys(SMALL_NUMBERS, (1, "INT32", paging.SHORTS, np.dtype(np.int32))),
}
"""Arrow's name of a type: how it is stored, as a number and a name, what its plain pages hold, and
what one value is."""

CHUNKS = 1
CHUNK_FILE, CHUNK_PLACE, CHUNK_SECRET = 1, 3, (8, 9)
TYPE, PATH, CODEC, SIZE, FIRST_PAGE, DICTIONARY = 1, 3, 4, 7, 9, 11
"""Fields of a row group, of a column in it, and of what that tells about the pages."""


class Unusual(Exception):  # noqa: N818 - the name says what is the matter
    """Something that only pyarrow can read, or can say what is wrong with it."""


class Column:
    """One number column, and how far its pages in a row group have been read."""

    def __init__(self, leaf: int, arrow_type: str, told: parquet.ColumnSchema) -> None:
        if arrow_type not in KINDS or told.max_repetition_level:
            raise Unusual
        self._type, stored, self.kind, self.dtype = KINDS[arrow_type]
        if told.physical_type != stored:
            raise Unusual
        self._leaf, self._name = leaf, told.path.encode()
        self.has_levels = told.max_definition_level == 1
        self.at = self.end = 0
        self.next_read = HEADER_READ
        self._packing, self._codec = UNPACKED, None

    def begin(self, chunks: list[Struct]) -> None:
        """Stand before the first page of a row group."""
        import pyarrow as pa

        chunk = chunks[self._leaf]
        told = chunk[CHUNK_PLACE]
        elsewhere = CHUNK_FILE in chunk or any(secret in chunk for secret in CHUNK_SECRET)
        if elsewhere or told[PATH] != [self._name] or told[TYPE] != self._type:
            raise Unusual
        self._packing = told[CODEC]
        if self._packing not in (UNPACKED, *CODECS):
            raise Unusual
        self._codec = pa.Codec(CODECS[self._packing]) if self._packing else None
        self.at = told[FIRST_PAGE]
        if 0 < told.get(DICTIONARY, 0) < self.at:
            self.at = told[DICTIONARY]
        self.end = self.at + told[SIZE]
        if not 0 < self.at < self.end:
            raise Unusual
        self.next_read = HEADER_READ

    def unpacked(self, content: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
        """What a page holds."""
        import pyarrow as pa

        if self._packing == SNAPPY and paging.varint(content, 0)[0] != size:
            raise Unusual  # pyarrow's codec would fill what is missing with anything
        if self._codec is not None:
            try:
                buffer = self._codec.decompress(pa.py_buffer(content), size)
            except (pa.ArrowException, OSError):
                raise Unusual from None
            content = np.frombuffer(buffer, dtype=np.uint8)
        if content.size != size:
            raise Unusual
        return content

    def values(self, content: NDArray[np.uint8], n_values: int) -> NDArray[Any]:
        """The values of a plain page."""
        n_bytes = n_values * self.dtype.itemsize
        if n_bytes > content.size:
            raise Unusual
        return content[:n_bytes].view(self.dtype)


def _columns(file: parquet.ParquetFile, names: Sequence[str]) -> list[Column]:
    """The columns of that name, none of which may be nested or share its path."""
    schema = file.schema
    leaves = {schema.column(j).path: j for j in range(len(schema))}
    arrow_types = {field.name: str(field.type) for field in file.schema_arrow}
    if not names or len(leaves) < len(schema) or not leaves.keys() >= set(names):
        raise Unusual
    return [Column(leaves[n], arrow_types[n], schema.column(leaves[n])) for n in names]


class Lease:
    """Memory on loan to an array: back in its pool when no array refers to it any more.

    New memory would have to be cleared by the system each time, which takes as long as to fill it.
    """

    def __init__(self, memory: NDArray[Any], pool: deque[NDArray[Any]]) -> None:
        self._memory, self._pool = memory, pool
        self.__array_interface__ = memory.__array_interface__

    def __del__(self) -> None:
        self._pool.append(self._memory)


class Source:
    """Reads pages from a file, each into the same memory."""

    def __init__(self, path: str) -> None:
        self._file = Path(path).open("rb", buffering=0)  # noqa: SIM115 - closed by its owner
        self._read = np.empty(MOST_READ, dtype=np.uint8)
        self.close = self._file.close

    def next_page(self, column: Column) -> tuple[list[int], NDArray[np.uint8]]:
        """Header and content of the page at which a column stands, and step over it."""
        head = self.head(column)
        size = head[paging.HEAD] + head[paging.PACKED]
        if column.at + size > column.end:
            raise Unusual
        self._load(column.at, min(column.next_read, size), size)
        content = self._read[head[paging.HEAD] : size]
        column.at += size
        column.next_read = min(max(size, HEADER_READ), MOST_READ)
        return head, column.unpacked(content, head[paging.UNPACKED])

    def head(self, column: Column) -> list[int]:
        """The header of the page at which a column stands."""
        size = column.next_read = min(column.next_read, column.end - column.at)
        self._load(column.at, 0, size)
        head: list[int] = paging.page_header(self._read[:size]).tolist()
        largest = max(head[paging.PACKED], head[paging.UNPACKED], head[paging.N_VALUES])
        if not head[paging.HEAD] or min(head) < 0 or largest > MOST_BYTES:
            raise Unusual
        return head

    def _load(self, at: int, begin: int, end: int) -> None:
        """Bring the bytes ``begin`` to ``end`` behind a place of the file to memory."""
        if end > self._read.size:
            self._read = np.concatenate([self._read, np.empty(end, dtype=np.uint8)])
        if begin < end and self._read_at(at + begin, self._read[begin:end]) < end - begin:
            raise Unusual

    def _read_at(self, at: int, place: NDArray[np.uint8]) -> int:
        if hasattr(os, "preadv"):  # one call: each lets other threads in, and has to wait for them
            return os.preadv(self._file.fileno(), [place.data], at)
        self._file.seek(at)
        return self._file.readinto(place.data)


class PageWalk:
    """Walks over number columns of some row groups; `take` gives the next rows."""

    def __init__(
        self, file: parquet.ParquetFile, path: str, names: Sequence[str], groups: Sequence[int]
    ) -> None:
        self._columns = _columns(file, names)
        wanted = set(groups)
        self._groups = (g for i, g in enumerate(row_groups(path)) if i in wanted)
        singles = all(column.kind == paging.SINGLES for column in self._columns)
        self.dtype = np.dtype(np.float32 if singles else np.float64)
        self._largest = np.finfo(np.float32).max if singles else np.float64(LARGEST)
        self._state = np.zeros((len(names), paging.N_STATE), dtype=np.int64)
        self._tile = np.empty((len(names), paging.TILE + 1), dtype=self.dtype)
        self._entries = np.empty(0, dtype=self.dtype)
        self._pages = np.empty((len(names), 0), dtype=np.uint8)
        self._make_room(0)
        self._pool: deque[NDArray[Any]] = deque()
        self._sources = [Source(path) for _ in range(THREADS)]
        self._threads = ThreadPoolExecutor(THREADS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown()
        for source in self._sources:
            source.close()

    def take(self, n_rows: int) -> tuple[NDArray[Any], bool]:
        """The next rows, and whether each of their numbers can be learned from."""
        rows = self._room_for(n_rows)
        done = n_bad = 0
        while done < n_rows:
            for j in np.flatnonzero(self._state[:, paging.LEFT] == 0).tolist():
                self._turn_page(j)
            n = min(n_rows - done, int(self._state[:, paging.LEFT].min()))
            part = rows[done : done + n]
            found = paging.fill(
                self._state, self._views, self._entries, self._tile, part, self._largest
            )
            if found < 0:
                raise Unusual
            n_bad += found
            done += n
        return rows, n_bad == 0

    def end(self) -> None:
        """Make sure that nothing is left, as it would be where columns are of different length."""
        if self._state[:, paging.LEFT].any() or any(c.at != c.end for c in self._columns):
            raise Unusual

    def _room_for(self, n_rows: int) -> NDArray[Any]:
        memory = self._pool.pop() if self._pool else None
        if memory is None or len(memory) < n_rows:
            memory = np.empty((n_rows, len(self._columns)), dtype=self.dtype)
        return np.asarray(Lease(memory, self._pool))[:n_rows]

    def _turn_page(self, j: int) -> None:
        """Open the next page of a column that holds values."""
        while self._state[j, paging.LEFT] == 0:
            if self._columns[j].at == self._columns[j].end:
                self._open_group()
            self._open_page(j)

    def _open_group(self) -> None:
        """Go on to the next row group, which all columns must do together."""
        self.end()
        try:
            chunks = next(self._groups)[CHUNKS]
            for column in self._columns:
                column.begin(chunks)
        except (StopIteration, LookupError, TypeError, AttributeError, RecursionError):
            raise Unusual from None
        self._open_dictionaries()

    def _open_dictionaries(self) -> None:
        """Read the dictionaries, which stand before the other pages of a row group."""
        heads = [self._sources[0].head(column) for column in self._columns]
        sizes = [
            h[paging.N_VALUES] if h[paging.PAGE] == paging.DICTIONARY_PAGE else 0 for h in heads
        ]
        if sum(sizes) * self.dtype.itemsize > MOST_BYTES:
            raise Unusual
        if sum(sizes) > self._entries.size:
            self._entries = np.empty(0, dtype=self.dtype)  # let go of the old ones first
            self._entries = np.empty(sum(sizes) * 9 // 8, dtype=self.dtype)
        self._state[:, paging.N_ENTRIES] = sizes
        self._state[:, paging.FIRST] = np.cumsum(sizes) - sizes
        # nobody has rows to learn yet, so that there is room for another thread
        list(self._threads.map(self._read_dictionaries, self._sources, range(THREADS)))

    def _read_dictionaries(self, source: Source, begin: int) -> None:
        """Read every second dictionary, or whatever share one of the threads has."""
        for j in range(begin, len(self._columns), THREADS):
            size, first = (int(self._state[j, k]) for k in (paging.N_ENTRIES, paging.FIRST))
            if size:
                head, content = source.next_page(self._columns[j])
                if head[paging.ENCODING] not in (paging.PLAIN, paging.OLD_CODED):
                    raise Unusual
                self._entries[first : first + size] = self._columns[j].values(content, size)

    def _open_page(self, j: int) -> None:
        """Take the next page of a column as the one to read from."""
        column = self._columns[j]
        head, content = self._sources[0].next_page(column)
        levels_known = not column.has_levels or head[paging.LEVELS] == paging.RUNS
        begin = -1
        n_values, encoding = head[paging.N_VALUES], head[paging.ENCODING]
        large = n_values >= FEWEST_VALUES or column.at == column.end
        if head[paging.PAGE] == paging.DATA_PAGE and levels_known and large:
            begin = paging.open_page(
                self._state, j, content, n_values, encoding, column.kind, column.has_levels
            )
        if begin < 0:
            raise Unusual
        self._make_room(content.size)
        self._pages[j, : content.size - begin] = content[begin:]

    def _make_room(self, n_bytes: int) -> None:
        """Let every column have a page of so many bytes."""
        n_columns, there = self._pages.shape
        if n_bytes + SPARE <= there:
            return
        # an odd number of lines apart: at multiples of a power of two they would share their
        # places in the cache
        wide = (n_bytes + n_bytes // 8 + SPARE) // (2 * LINE) * (2 * LINE) + 3 * LINE
        if wide * n_columns > MOST_BYTES:
            raise Unusual
        wider = np.empty((n_columns, wide), dtype=np.uint8)
        in_use = np.flatnonzero(self._state[:, paging.LEFT])
        wider[in_use, :there] = self._pages[in_use]
        self._pages = wider
        dtypes = (np.uint8, np.uint32, np.float32, np.float64, np.int32, np.int64)
        self._views = tuple(wider.view(dtype) for dtype in dtypes)
