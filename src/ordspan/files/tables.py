"""What the readers of tables share: from columns of a frame to rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

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


class Frame(NamedTuple):
    """Consecutive rows of a file as columns, and what is wrong with bad ones."""

    table: pl.DataFrame
    lines: NDArray[np.int64]
    faults: Faults
    share: float
    row: int = 0  # place of the first among the rows of the file


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
        for frame, lines, faults, share, row in self.frames(numbers, texts, start):
            try:
                X = matrix_of(frame, numbers, faults)
            except ValueError as error:
                raise FileError(f"{self.path}: {error}") from None
            rows = np.arange(row, row + lines.size)
            table = words_of(frame, texts)
            yield Batch(X, table, lines, rows, self.path, self.unit, share=share), faults


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
    table = frame[list(texts)] if texts else pl.DataFrame(height=frame.height)
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
