"""Label columns of tables as ranks: each distinct value is read once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordspan.core.state import Ranks
from ordspan.labels.forms import number_as_text
from ordspan.labels.text import LabelReader
from ordspan.tables.batch import Faults
from ordspan.wording import brief

if TYPE_CHECKING:
    import polars as pl

_Read = Callable[[str], tuple[int, int]]


class LabelColumns(NamedTuple):
    """The label columns: one column of grades or ranges, or one column for each end."""

    label: str | None = None
    lower: str | None = None
    upper: str | None = None

    def names(self) -> list[str]:
        """The columns in use."""
        return [name for name in self if name is not None]


def label_columns(label: str | None, lower: str | None, upper: str | None) -> LabelColumns:
    """The label columns that were given, checked."""
    if label is not None and (lower is not None or upper is not None):
        raise ValueError("give either a label column, or a lower and an upper column")
    if lower is not None and lower == upper:
        raise ValueError(f"lower and upper are both column {lower!r}; give it as the label column")
    return LabelColumns(label, lower, upper)


def read_ranks(
    reader: LabelReader, table: pl.DataFrame, columns: LabelColumns
) -> tuple[Ranks, Ranks, Faults]:
    """Lower and upper ranks of every row, and the faults of the rows that have none."""
    if columns.label is not None:
        return _read_column(table, columns.label, reader.interval)
    last = len(reader.classes)
    ends: tuple[tuple[str | None, _Read], ...] = (
        (columns.lower, lambda word: (reader.end(word, 1), last)),
        (columns.upper, lambda word: (1, reader.end(word, last))),
    )
    lower, upper = np.full(table.height, 1), np.full(table.height, last)
    faults: Faults = {}
    for name, read in ends:
        if name is not None:
            low, high, wrong = _read_column(table, name, read)
            lower, upper, faults = np.maximum(lower, low), np.minimum(upper, high), wrong | faults
    remedy = "swap the two columns?"
    if (lower < upper).any():
        remedy = "take the lower and the higher of each row if they are the labels of two people"
    for row in np.flatnonzero(lower > upper).tolist():
        a, b = (reader.classes[end[row] - 1].item() for end in (lower, upper))
        message = f"{columns.lower} {a!r} is above {columns.upper} {b!r}; {remedy}"
        faults.setdefault(row, message)
    return lower, upper, faults


def _read_column(table: pl.DataFrame, name: str, read: _Read) -> tuple[Ranks, Ranks, Faults]:
    """Read each distinct value once, then spread the results over the rows."""
    codes, words = encode_column(table, name)
    ranks = np.ones((len(words), 2), dtype=np.int64)
    reasons: dict[int, str] = {}
    for code, word in enumerate(words):
        try:
            ranks[code] = read(word)
        except ValueError as error:
            reasons[code] = f"column {name!r} holds {brief(word)}: {error}"
    rows = np.flatnonzero(np.isin(codes, list(reasons))).tolist() if reasons else []
    return ranks[codes, 0], ranks[codes, 1], {row: reasons[int(codes[row])] for row in rows}


def encode_column(
    table: pl.DataFrame, name: str, read: Callable[[Any], str] = number_as_text
) -> tuple[NDArray[np.int64], list[str]]:
    """A column as a code for every row, and the value of every code."""
    import polars as pl  # models are loaded without it

    column = table[name]
    if column.dtype.is_nested():
        raise ValueError(f"column {name!r} holds {column.dtype}, not plain values")
    if column.dtype == pl.String and not column.null_count():
        words = column.unique(maintain_order=True)
        codes = column.cast(pl.Enum(words)).to_physical().to_numpy()
        return codes.astype(np.int64), [read(word) for word in words]
    known: dict[Any, int] = {}
    numbered = [known.setdefault(value, len(known)) for value in column]
    return np.array(numbered, dtype=np.int64), [read(value) for value in known]
