"""What the readers of tables share: from columns of a frame to rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ordspan.files.ahead import THREADS, side_by_side
from ordspan.files.batch import (
    EMPTY,
    NUMBER,
    OTHER,
    TEXT,
    Batch,
    Faults,
    FileError,
    is_number,
    repeated,
)
from ordspan.files.text import STDIN, Block


class Frame(NamedTuple):
    """Consecutive rows of a file as columns, and what is wrong with bad ones."""

    table: pl.DataFrame
    lines: NDArray[np.int64]
    faults: Faults
    share: float
    row: int = 0  # place of the first among the rows of the file
    X: NDArray[Any] | None = None  # the numbers, where they were turned to rows already


class TableFile:
    """One file with named columns."""

    sparse = False
    unit = "line"

    def __init__(self, path: str) -> None:
        self.path = path
        self.names = self._open()
        if (twice := repeated(self.names)) is not None:
            raise FileError(f"{path}: there is more than one column {twice!r}; rename one of them")

    def _open(self) -> list[str]:
        """The names of the columns."""
        raise NotImplementedError

    def kinds(self) -> dict[str, str]:
        """What each column holds: numbers, words or something else."""
        raise NotImplementedError

    def frames(self, numbers: Sequence[str], texts: Sequence[str], start: int) -> Iterator[Frame]:
        """At least the rows from ``start`` on, of which some columns should be numbers."""
        raise NotImplementedError

    def batches(
        self, numbers: Sequence[str], texts: Sequence[str], start: int = 0
    ) -> Iterator[tuple[Batch, Faults]]:
        """At least the rows from ``start`` on, and what is wrong with bad ones.

        The columns ``numbers`` become X, ``texts`` the table.
        """
        for frame, lines, faults, share, row, X in self.frames(numbers, texts, start):
            try:
                X = matrix_of(frame, numbers, faults) if X is None else X
            except ValueError as error:
                raise FileError(f"{self.path}: {error}") from None
            rows = np.arange(row, row + lines.size)
            table = words_of(frame, texts)
            yield Batch(X, table, lines, rows, self.path, self.unit, share=share), faults


class TextFile(TableFile):
    """A text, or standard input; its rows can be read once."""

    _begun: Iterator[Block]  # blocks that are still to be read

    def _head(self, n_lines: int) -> list[Block]:
        """The first blocks, with so many lines if there are; for a pipe they are waited for."""
        rest = self._begun
        head: list[Block] = []
        while sum(block.n_lines for block in head) < n_lines and (more := next(rest, None)):
            head.append(more)
        self._begun = chain(head, rest)
        return head

    def _n_rows(self, block: Block) -> int:
        """Number of rows of a block, bad ones too."""
        raise NotImplementedError

    def _parsed(self, block: Block, numbers: Sequence[str], texts: Sequence[str]) -> Frame:
        """The rows of a block."""
        raise NotImplementedError

    def frames(self, numbers: Sequence[str], texts: Sequence[str], start: int) -> Iterator[Frame]:
        """At least the rows from ``start`` on; of a file several blocks are parsed at a time."""
        rest, row = self._begun, 0
        while row < start and (block := next(rest, None)):
            n_rows = self._n_rows(block)
            if row + n_rows > start:
                rest = chain([block], rest)
                break
            row += n_rows
        parse = partial(self._parsed, numbers=numbers, texts=texts)
        for found in side_by_side(parse, rest, 0 if self.path == STDIN else THREADS):
            yield found._replace(row=row)
            row += found.lines.size


def matrix_of(frame: pl.DataFrame, numbers: Sequence[str], faults: Faults) -> NDArray[np.floating]:
    """Columns as rows of numbers, missing ones NaN; words among them are faults of their row."""
    if not numbers:
        return np.empty((frame.height, 0))
    table = frame[list(numbers)]
    if not all(dtype in (pl.Float32, pl.Float64) for dtype in table.dtypes):
        table = pl.DataFrame([_as_floats(column, faults) for column in table])
    return np.array(table.to_numpy(order="fortran"), order="C")  # a seventh quicker than order="c"


def _as_floats(column: pl.Series, faults: Faults) -> pl.Series:
    name = column.name
    if column.dtype != pl.String:
        try:
            return column if column.dtype == pl.Float32 else column.cast(pl.Float64())
        except pl.exceptions.PolarsError:
            raise ValueError(
                f"column {name!r} holds {column.dtype}, not numbers; leave it out with "
                f"--drop {name}"
            ) from None
    cells = column.str.strip_chars()
    values = cells.cast(pl.Float64(), strict=False)
    for row in (values.is_null() & ~cells.fill_null("").is_in(EMPTY)).arg_true():
        faults.setdefault(row, not_a_number(name, column[row]))
    return values


def not_a_number(name: str, value: object) -> str:
    """The fault of a cell with words in a column of numbers."""
    return f"column {name!r} holds {value!r}, not a number; correct it, or give --text {name}"


def words_of(frame: pl.DataFrame, texts: Sequence[str]) -> pl.DataFrame:
    """Some columns; a missing word is an empty one, and codes for words become the words."""
    table = frame[list(texts)] if texts else pl.DataFrame()
    for column in table:
        if isinstance(column.dtype, pl.Categorical | pl.Enum):
            table = table.with_columns(column.cast(pl.String()))
    if any(column.null_count() for column in table):
        return table.with_columns(pl.col(pl.String).fill_null(""))
    return table


def kind_of(column: pl.Series) -> str:
    """What a column holds.

    Words are numbers where at least half of the filled cells are: so a stray word among numbers is
    found and told, instead of turning the column into words.
    """
    dtype = column.dtype
    if isinstance(dtype, pl.Categorical | pl.Enum):
        return TEXT
    if dtype == pl.String:
        known = [cell for cell in column.drop_nulls() if cell.strip() not in EMPTY]
        return NUMBER if 2 * sum(map(is_number, known)) >= len(known) else TEXT
    return NUMBER if dtype.is_numeric() or dtype in (pl.Boolean, pl.Null) else OTHER
