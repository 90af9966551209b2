"""Label columns of tables as ranks: each distinct value is read once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ordspan.core.state import Ranks
from ordspan.labels.forms import OPEN, number_as_text
from ordspan.labels.text import LabelReader
from ordspan.tables.encoder import word_codes
from ordspan.tables.rows import Faults, FileError
from ordspan.wording import brief

if TYPE_CHECKING:
    import polars as pl

NO_LABEL = 0  # the rank of a row without a label, which is left out
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


def label_frame(table: pl.DataFrame, columns: LabelColumns, decimal: str = ".") -> pl.DataFrame:
    """The label columns as text."""
    import polars as pl

    cells = [table.get_column(name) for name in columns.names()]
    labels = pl.DataFrame([column.cast(pl.String()).fill_null("") for column in cells])
    for column in labels if decimal == "," else ():
        odd = column.filter(column.str.contains(r"^\s*[-+]?[0-9]+\.[0-9]+\s*$"))
        if len(odd):
            raise FileError(
                f"column {column.name!r} holds {odd[0]!r}, but the decimal sign is a comma; write "
                "grades without signs between thousands, or with a comma"
            )
    return labels


def label_words(table: pl.DataFrame) -> set[str]:
    """The distinct labels in a `label_frame`, as they are written; missing ones are none."""
    words = {number_as_text(word) for column in table for word in column.unique()}
    return words - {*OPEN}


def read_ranks(
    reader: LabelReader, table: pl.DataFrame, columns: LabelColumns
) -> tuple[Ranks, Ranks, Faults]:
    """Lower and upper ranks of the rows of a `label_frame`, and the faults of bad ones.

    A row without a label has the rank NO_LABEL.
    """
    last = len(reader.classes)
    if columns.label is not None:
        return _read_column(table[columns.label], reader.interval)
    ends: tuple[tuple[str | None, _Read], ...] = (
        (columns.lower, lambda word: (reader.end(word, 1), last)),
        (columns.upper, lambda word: (1, reader.end(word, last))),
    )
    lower, upper = np.full(table.height, 1), np.full(table.height, last)
    faults: Faults = {}
    for name, read in ends:
        if name is not None:
            low, high, wrong = _read_column(table[name], read)
            known = low != NO_LABEL
            lower = np.where(known, np.maximum(lower, low), lower)
            upper = np.where(known, np.minimum(upper, high), upper)
            faults = wrong | faults
    remedy = "swap the two columns?"
    if (lower < upper).any():
        remedy = "take the lower and the higher of each row if they are the labels of two people"
    for row in np.flatnonzero(lower > upper).tolist():
        a, b = (reader.classes[end[row] - 1].item() for end in (lower, upper))
        message = f"{columns.lower} {a!r} is above {columns.upper} {b!r}; {remedy}"
        faults.setdefault(row, message)
    empty = np.logical_and.reduce([np.isin(table[n].to_numpy(), OPEN) for n in columns.names()])
    lower[empty] = upper[empty] = NO_LABEL
    return lower, upper, faults


def _read_column(column: pl.Series, read: _Read) -> tuple[Ranks, Ranks, Faults]:
    """Read each distinct value once, then spread the results over the rows."""
    codes, words = word_codes(column)
    ranks = np.full((len(words), 2), NO_LABEL, dtype=np.int64)
    reasons: dict[int, str] = {}
    for code, word in enumerate(words):
        try:
            ranks[code] = read(number_as_text(word))
        except ValueError as error:
            if number_as_text(word) not in OPEN:
                reasons[code] = f"column {column.name!r} holds {brief(word)}: {error}"
    rows = np.flatnonzero(np.isin(codes, list(reasons))).tolist() if reasons else []
    return ranks[codes, 0], ranks[codes, 1], {row: reasons[int(codes[row])] for row in rows}
