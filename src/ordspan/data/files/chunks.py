"""Chunks of rows on their way from a file to a learner, and what happens to bad rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

POLICIES = ("raise", "skip")
LARGEST = 1e90
"""Larger numbers are refused: the squared norm of a row would overflow."""

N_EXAMPLES = 5
JUDGED_LINES = 500
"""Lines of a text that tell which of its columns hold numbers and which hold words."""
NUMBER, TEXT, OTHER = "number", "text", "other"
EMPTY = ("", "NA", "N/A", "NaN", "nan", "null", "None", "#N/A", "n/a")
"""Cells that mean a missing number."""


class RowError(ValueError):
    """A row of a file that cannot be used: file, line or row, column, value and the way out."""


class Place(NamedTuple):
    """Where a chunk begins in its file: bytes and line of a text, or the row of a Parquet file."""

    start: int = 0
    line: int = 1


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows of one file, as columns.

    Where ``matrix`` is there, it holds the numbers: a CSR matrix of svmlight rows, or an array with
    the number columns of a CSV or Parquet file, which the table then does not hold.
    """

    path: str
    unit: str  # "line" or "row": what ``numbers`` counts
    numbers: NDArray[np.int64]  # line or row number of every row, from 1
    place: Place
    table: pa.Table
    matrix: Any = None
    checked: bool = False  # whether all numbers are known to be finite and not too large

    def __len__(self) -> int:
        return self.numbers.size

    def where(self, row: int) -> str:
        """File and line of a row, for a message."""
        return f"{self.path}, {self.unit} {self.numbers[row]}"

    def only(self, stays: NDArray[np.bool_]) -> Chunk:
        """The rows that stay."""
        rows = np.flatnonzero(stays)
        matrix = None if self.matrix is None else self.matrix[rows]
        table = self.table.take(rows)
        return replace(self, numbers=self.numbers[rows], table=table, matrix=matrix)

    def part(self, begin: int, end: int) -> Chunk:
        """Consecutive rows."""
        rows = slice(begin, end)
        matrix = None if self.matrix is None else self.matrix[rows]
        table = self.table.slice(begin, end - begin)
        return replace(self, numbers=self.numbers[rows], table=table, matrix=matrix)

    def without_numbers(self, words: list[str]) -> Chunk:
        """The same rows, of which only the columns of words are still needed."""
        there = [name for name in words if name in self.table.column_names]
        return replace(self, table=self.table.select(there), matrix=None)


@dataclass
class BadRows:
    """What to do with a bad row: end with its message, or leave it out and count it."""

    policy: str = "raise"
    count: int = 0
    examples: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            known = " or ".join(POLICIES)
            raise ValueError(f"on_bad_row must be {known}, got {self.policy!r}")

    def meet(self, message: str) -> None:
        """A bad row was met."""
        if self.policy == "raise":
            raise RowError(f"{message} (--on-bad-row skip leaves such rows out)")
        self.count += 1
        if len(self.examples) < N_EXAMPLES:
            self.examples.append(message)

    def told(self) -> str:
        """How many rows were left out, and why the first."""
        first = f", the first: {self.examples[0]}" if self.examples else ""
        return f"{self.count} skipped{first}"

    def drop(self, chunk: Chunk, faults: dict[int, str]) -> NDArray[np.bool_]:
        """Meet the faulty rows of a chunk; True for the rows that stay."""
        stays = np.ones(len(chunk), dtype=bool)
        for row in sorted(faults):
            self.meet(f"{chunk.where(row)}: {faults[row]}")
            stays[row] = False
        return stays


def repeated(names: Iterable[str]) -> str | None:
    """The first name that more than one column has.

    >>> repeated(["a", "b", "a"]), repeated(["a", "b"])
    ('a', None)
    """
    return next((name for name, count in Counter(names).items() if count > 1), None)


def is_number(text: Any) -> bool:
    """Whether a cell can be read as a number."""
    try:
        float(text)
    except (TypeError, ValueError, OverflowError):
        return False
    # what only Python takes for a number: 1_000, digits of other scripts
    return not isinstance(text, str) or (text.isascii() and "_" not in text)


def not_a_number(name: str, value: Any) -> str:
    """The fault of a cell with words in a column of numbers."""
    return f"column {name!r} holds {value!r}, not a number; correct it, or give --text {name}"


def kind_of_words(values: list[Any]) -> str:
    """A column of cells is numeric when at least half of those filled are numbers.

    So a stray word among numbers is found and told, instead of turning the column into words.
    """
    known = [v for v in values if v not in EMPTY and v is not None]
    return NUMBER if 2 * sum(map(is_number, known)) >= max(1, len(known)) else TEXT


def kind_of(dtype: pa.DataType) -> str:
    """Whether a column holds numbers, words or something else."""
    from pyarrow import types

    if types.is_dictionary(dtype):
        dtype = dtype.value_type
    if types.is_integer(dtype) or types.is_floating(dtype) or types.is_boolean(dtype):
        return NUMBER
    if types.is_decimal(dtype) or types.is_null(dtype):
        return NUMBER
    return TEXT if types.is_string(dtype) or types.is_large_string(dtype) else OTHER
