"""Base classes of the readers of tables: from columns of a frame to rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ordspan.tables.batch import (
    DATE,
    INFER_ROWS,
    NUMBER,
    OTHER,
    TEXT,
    UNTYPED,
    Batch,
    Faults,
    FileError,
    first_duplicate,
)
from ordspan.tables.dialect import as_numbers, find_decimals, is_empty
from ordspan.tables.lines import TextBlock, beginning
from ordspan.tables.text import (
    BLOCK_BYTES,
    N_SPANS,
    PART_BYTES,
    STDIN,
    Part,
    parts_of,
    spread_parts,
    text_blocks,
)
from ordspan.tables.threads import THREADS, parallel_map
from ordspan.wording import brief, columns_hint

GLIMPSE_BYTES = 1 << 20
MANY_COLUMNS = 1 << 10
"""Text with more columns is parsed one block at a time: Polars takes some 30 kB per column."""


class Frame(NamedTuple):
    """Consecutive rows of a file as columns, and the faults of bad ones."""

    table: pl.DataFrame
    lines: NDArray[np.int64]
    faults: Faults
    share: float
    row: int = 0  # position of the first row in the file
    X: NDArray[Any] | None = None  # the numbers, if they are a matrix already


class TableFile:
    """One file with named columns."""

    sparse = False
    unit = "line"
    delimiter = ""

    def __init__(self, path: str) -> None:
        self.path = path
        self.decimals: dict[str, str] = {}  # separators of numbers that are formatted as text
        self.notes: list[str] = []  # decisions about how to read the file
        self.fault = ""  # of the first bad row in a preview
        self.typed: dict[str, pl.Series] = {}  # numbers that the preview has as text
        self.names = self._open()
        if (twice := first_duplicate(self.names)) is not None:
            raise FileError(f"{path}: more than one column is named {twice!r}; rename one of them")

    def _open(self) -> list[str]:
        """The names of the columns."""
        raise NotImplementedError

    def kinds(self) -> dict[str, str]:
        """The kind of each column, as far as the format has types: number, text or other."""
        return dict.fromkeys(self.names, UNTYPED)

    def sample(self, size: int) -> tuple[pl.DataFrame, bool]:
        """About ``size`` bytes of good rows spread over the file; whether these are all.

        The reader cannot be used for anything else afterwards.
        """
        raise NotImplementedError

    def find(self, wanted: Sequence[str]) -> None:
        """Search for columns that may appear only later in the file; most formats have none."""

    def glimpse(self) -> pl.DataFrame:
        """The first rows, and perhaps some more; they can be read again."""
        return self.head()

    def orders(self) -> dict[str, list[Any]]:
        """The values, from lowest to highest, of columns with an ordered type."""
        return {}

    def head(self) -> pl.DataFrame:
        """The first rows, which can be read again."""
        raise NotImplementedError

    def parts(self) -> list[Any]:
        """Parts of the file that can be read in any order; None is the whole file."""
        return [None]

    def frames(
        self, numbers: Sequence[str], texts: Sequence[str], start: int, part: Any = None
    ) -> Iterator[Frame]:
        """At least the rows from ``start`` on, with some columns as numbers."""
        raise NotImplementedError

    def detect_decimals(
        self, names: Sequence[str], known: Mapping[str, str], given: str | None
    ) -> None:
        """Find out which numeric columns are formatted as text, and their decimal separators.

        Where the first rows do not show it, ``known`` from an earlier file decides.
        """
        kinds = self.kinds()
        asked = [name for name in names if kinds.get(name) in (TEXT, UNTYPED)]
        if asked:
            plain, separators = find_decimals(
                self.path, self.glimpse(), asked, delimiter=self.delimiter, given=given, known=known
            )
            self.decimals = text_numbers(plain.columns, kinds) | separators

    def batches(
        self, numbers: Sequence[str], texts: Sequence[str], start: int = 0, part: Any = None
    ) -> Iterator[tuple[Batch, Faults]]:
        """At least the rows from ``start`` on, and the faults of bad ones.

        The columns ``numbers`` become X, ``texts`` the table.
        """
        plain = [name for name in numbers if name not in self.decimals]
        as_text = [*texts, *(n for n in numbers if n in self.decimals and n not in texts)]
        for frame, lines, faults, share, row, X in self.frames(plain, as_text, start, part):
            try:
                if X is None or len(plain) < len(numbers):
                    if X is not None:
                        frame = frame.hstack([pl.Series(n, X[:, j]) for j, n in enumerate(plain)])
                    X = matrix_of(frame, numbers, faults, self.decimals)
            except ValueError as error:
                raise FileError(f"{self.path}: {error}") from None
            rows = np.arange(row, row + lines.size)
            table = text_columns(frame, texts)
            yield Batch(X, table, lines, rows, self.path, self.unit, share=share), faults


class TextFile(TableFile):
    """A text file, or standard input; its rows can be read once."""

    encoding: str | None = None
    patient = True  # whether to wait for many lines of standard input
    plain = False  # whether its parts can be read in any order
    begin, line = 0, 1  # byte and line of the first row
    _begun: Iterator[TextBlock]  # blocks that are still to be read

    def _head(self, n_lines: int) -> list[TextBlock]:
        """The first blocks, with at least this many lines if there are; may wait for a pipe."""
        rest, n_lines = self._begun, n_lines if self.patient else 1
        head: list[TextBlock] = []
        while sum(block.n_lines for block in head) < n_lines and (more := next(rest, None)):
            head.append(more)
        self._begun = chain(head, rest)
        return head

    def head(self) -> pl.DataFrame:
        """The first good rows, which can be read again."""
        head = self._head(INFER_ROWS)
        if not head:
            return self._good_rows([])
        content = b"".join(block.content for block in head)
        ends = np.flatnonzero(np.frombuffer(content, dtype=np.uint8) == ord("\n"))
        size = int(ends[INFER_ROWS - 1]) + 1 if ends.size >= INFER_ROWS else len(content)
        return self._good_rows([beginning(head[0]._replace(content=content), size, self.delimiter)])

    def glimpse(self) -> pl.DataFrame:
        """The first rows, and for a large file some from places spread over it."""
        head = self.head()
        if not self.plain or Path(self.path).stat().st_size < GLIMPSE_BYTES:
            return head
        parts = spread_parts(self.path, self.begin, N_SPANS, GLIMPSE_BYTES // N_SPANS)
        more = self._good_rows([block for part in parts for block in self._blocks(part)])
        return pl.concat([head, more], how="vertical_relaxed")

    def sample(self, size: int) -> tuple[pl.DataFrame, bool]:
        """About ``size`` bytes of good rows spread over the file; whether these are all."""
        if self.plain and Path(self.path).stat().st_size - self.begin > size:
            parts = spread_parts(self.path, self.begin, N_SPANS, size // (2 * N_SPANS))
            found = [block for part in parts for block in self._blocks(part)]
            return self._good_rows(found), False
        found, each = [], BLOCK_BYTES
        for block in self._begun:
            found.append(block if each == BLOCK_BYTES else beginning(block, each, self.delimiter))
            if sum(len(one.content) for one in found) > size:
                each //= 2
                found = [beginning(one, each, self.delimiter) for one in found]
        return self._good_rows(found), each == BLOCK_BYTES

    def typed_numbers(self) -> list[str]:
        """Columns that are numbers by their type in the file."""
        return []

    def _good_rows(self, found: list[TextBlock]) -> pl.DataFrame:
        """The good rows of blocks, as text; numbers by type go to ``typed``."""
        typed = self.typed_numbers()
        frames = [pl.DataFrame(schema=dict.fromkeys(self.names, pl.String()))]
        numbers = [pl.DataFrame(schema=dict.fromkeys(typed, pl.Float64()))]
        for block in found:
            if block.is_blank():
                continue
            frame = self._parsed(block, (), self.names)
            if typed:  # again, with their types
                as_numbers = self._parsed(block, typed, ())
                frame.faults.update(as_numbers.faults)
            faulty = sorted(frame.faults)
            if faulty and not self.fault:
                self.fault = (
                    f"{self.path}, line {frame.lines[faulty[0]]}: {frame.faults[faulty[0]]}"
                )
            good = ~pl.int_range(pl.len()).is_in(faulty)
            frames.append(compact(frame.table.select(self.names).filter(good)))
            if typed:
                numbers.append(as_numbers.table.select(typed).filter(good))
        self.typed = {c.name: c for c in pl.concat(numbers)} if typed else {}
        return pl.concat(frames, how="vertical_relaxed", rechunk=True)

    def parts(self) -> list[Any]:
        """Whole records, about PART_BYTES in each."""
        if not self.plain:
            return [None]
        return parts_of(
            self.path, self.begin, self.line, delimiter=self.delimiter, size=PART_BYTES
        ) or [None]

    def _blocks(self, part: Part | None) -> Iterator[TextBlock]:
        if part is None:
            return self._begun
        return text_blocks(self.path, delimiter=self.delimiter, part=part)

    def _n_rows(self, block: TextBlock) -> int:
        """Number of rows of a block, bad ones too."""
        raise NotImplementedError

    def _parsed(self, block: TextBlock, numbers: Sequence[str], texts: Sequence[str]) -> Frame:
        """The rows of a block."""
        raise NotImplementedError

    def frames(
        self, numbers: Sequence[str], texts: Sequence[str], start: int, part: Any = None
    ) -> Iterator[Frame]:
        """At least the rows from ``start`` on; blocks of a file are parsed in parallel."""
        rest, row = self._blocks(part), 0
        while row < start and (block := next(rest, None)):
            n_rows = self._n_rows(block)
            if row + n_rows > start:
                rest = chain([block], rest)
                break
            row += n_rows
        parse = partial(self._parsed, numbers=numbers, texts=texts)
        alone = self.path == STDIN or part is not None or len(self.names) > MANY_COLUMNS
        for found in parallel_map(parse, rest, 0 if alone else THREADS):
            # compact, because many may be held to be shuffled
            yield found._replace(table=compact(found.table), row=row)
            row += found.lines.size


def compact(frame: pl.DataFrame) -> pl.DataFrame:
    """The same frame without the spare capacity that Polars leaves in each text column."""
    if frame.width <= MANY_COLUMNS:
        return frame
    names, frame = frame.columns, frame.clone()
    frame.columns = [f"{place}" for place in range(len(names))]  # a null character would panic
    table = frame.to_arrow(compat_level=pl.CompatLevel.oldest()).combine_chunks()
    packed = pl.DataFrame(table, schema=frame.schema)
    packed.columns = names
    return packed


def text_numbers(plain: Sequence[str], kinds: Mapping[str, str]) -> dict[str, str]:
    """Plain numbers in columns that are typed as text, with a point as decimal separator."""
    return {name: "." for name in plain if kinds[name] == TEXT}


def matrix_of(
    frame: pl.DataFrame, numbers: Sequence[str], faults: Faults, decimals: Mapping[str, str]
) -> NDArray[np.floating]:
    """Columns as a matrix of numbers, missing ones NaN; text among them is a fault of its row.

    ``decimals`` has the decimal separators of columns that are formatted as text.
    """
    if not numbers:
        return np.empty((frame.height, 0))
    table = frame[list(numbers)]
    if not all(dtype in (pl.Float32, pl.Float64) for dtype in table.dtypes):
        table = pl.DataFrame(
            [_as_floats(column, faults, decimals.get(column.name, ".")) for column in table]
        )
    return np.array(table.to_numpy(order="fortran"), order="C")  # faster than order="c"


def _as_floats(column: pl.Series, faults: Faults, decimal: str) -> pl.Series:
    name = column.name
    if column.dtype != pl.String:
        try:
            return column if column.dtype == pl.Float32 else column.cast(pl.Float64())
        except pl.exceptions.PolarsError:
            raise ValueError(
                f"column {name!r} holds {column.dtype}, not numbers; convert it, or train with "
                + columns_hint("drop", name)
            ) from None
    values = as_numbers(column, decimal)
    for row in (values.is_null() & ~is_empty(column.str.strip_chars())).arg_true():
        faults.setdefault(row, not_a_number(name, column[row]) + as_text_hint(name))
    return values


def not_a_number(name: str, value: object) -> str:
    """The fault of a cell with text in a numeric column."""
    return f"column {name!r} holds {brief(value)}, not a number; correct it"


def as_text_hint(name: str) -> str:
    """Another remedy for text in a numeric column, for those who can train the model."""
    return f", or train with {columns_hint('text', name)}"


def text_columns(frame: pl.DataFrame, texts: Sequence[str]) -> pl.DataFrame:
    """Some columns, with missing text as empty strings and categories as text."""
    table = frame[list(texts)] if texts else pl.DataFrame()
    for column in table:
        if isinstance(column.dtype, pl.Categorical | pl.Enum):
            table = table.with_columns(column.cast(pl.String()))
    if any(column.null_count() for column in table):
        return table.with_columns(pl.col(pl.String).fill_null(""))
    return table


def kind_of(column: pl.Series) -> str:
    """The kind of a column, by its type."""
    dtype = column.dtype
    if dtype == pl.String or isinstance(dtype, pl.Categorical | pl.Enum):
        return TEXT
    if dtype.is_temporal():
        return DATE
    return NUMBER if dtype.is_numeric() or dtype in (pl.Boolean, pl.Null) else OTHER
