"""Label columns of tables as ranks: each distinct value is read once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ordspan.core.state import Ranks
from ordspan.labels.amounts import BRACKETS
from ordspan.labels.forms import OPEN, number_as_text
from ordspan.labels.grades import ALL_GRADES
from ordspan.labels.ranks import shared_edge
from ordspan.labels.text import BETWEEN_RATINGS, LabelReader, split_ratings
from ordspan.tables.encoder import word_codes
from ordspan.tables.rows import Faults, FileError
from ordspan.wording import brief, columns_hint

if TYPE_CHECKING:
    import polars as pl

LIST = r"^\s*\[[^],;|]*([,;|][^],;|]*){2,}\]\s*$"  # of three or more; [3,5] is a range
POINT_NUMBER = r"^\s*[-+]?[0-9]+\.[0-9]+\s*$"
COMMA_NUMBER = r"^\s*([-+]?[0-9]+),([0-9]+)\s*$"
BETWEEN_ENDS = "\x1e"
NO_LABEL = 0  # the rank of a row without a label, which is left out


@dataclass(frozen=True)
class LabelColumns:
    """The label columns: one of grades or ranges, one for each end, or those of several judges.

    To find the grades, labels may be brackets of amounts, or numbers to cut into equal parts.
    """

    label: str | None = None
    lower: str | None = None
    upper: str | None = None
    ratings: tuple[str, ...] = ()
    brackets: bool = False
    parts: int = 0

    def __post_init__(self) -> None:
        if bool(self.label) + bool(self.lower or self.upper) + bool(self.ratings) > 1:
            raise ValueError(
                "give either a label column, or a lower and an upper column, or columns of ratings"
            )
        if self.lower and self.lower == self.upper:
            raise ValueError(
                f"lower and upper are both column {self.lower!r}; give it as the label column"
            )

    def names(self) -> list[str]:
        """The label columns, each once."""
        return [*filter(None, (self.label, self.lower, self.upper)), *dict.fromkeys(self.ratings)]


def label_frame(
    table: pl.DataFrame, columns: LabelColumns, decimal: str = ".", path: str = "the table"
) -> pl.DataFrame:
    """The label columns as text; the ratings of a row are one label, and lists are refused."""
    import polars as pl

    cells = [table.get_column(name) for name in columns.names()]
    if columns.ratings:
        return pl.DataFrame([_ratings(cells)])
    labels = pl.DataFrame([column.cast(pl.String()).fill_null("") for column in cells])
    for column in labels:
        lists = column.filter(column.str.contains(LIST))
        if 2 * len(lists) > len(column):
            raise FileError(
                f"{path}: column {column.name!r} holds lists such as {brief(lists[0])}: if these "
                "are the ratings of several people, give "
                f"{columns_hint('ratings', column.name)} instead"
            )
        if decimal == "," and len(odd := column.filter(column.str.contains(POINT_NUMBER))):
            raise FileError(
                f"{path}: column {column.name!r} holds {odd[0]!r}, but the decimal sign of the "
                "file is a comma; write the grade with a comma, or without a separator of thousands"
            )
    if decimal == ",":  # else 3,456 would be an amount of thousands
        return labels.with_columns(pl.all().str.replace(COMMA_NUMBER, "$1.$2"))
    return labels


def _ratings(columns: Sequence[pl.Series]) -> pl.Series:
    """The ratings in each row, without gaps, as one text."""
    import polars as pl

    name = ", ".join(column.name for column in columns)
    cells = [column.cast(pl.String(), strict=False).fill_null("").to_list() for column in columns]
    rows: Any = zip(*cells, strict=True) if len(cells) > 1 else map(split_ratings, cells[0])
    votes = ([vote for vote in map(str.strip, row) if vote not in OPEN] for row in rows)
    return pl.Series(name, list(map(BETWEEN_RATINGS.join, votes)), dtype=pl.String())


def label_words(table: pl.DataFrame, columns: LabelColumns) -> Counter[str]:
    """How often each label occurs in a `label_frame`, as it is written, without missing ones.

    The two ends of a bracket are counted as the labels "at least" and "under" that amount.
    """
    forms: dict[str | None, str] = {}
    if columns.brackets:
        forms = {columns.lower: "at least {}", columns.upper: "under {}"}
        if table.width > 1:  # two equal ends are a single amount, and no edges
            table = table.filter(table.to_series(0) != table.to_series(1))
    words: Counter[str] = Counter()
    for column in table:
        for word, count in column.value_counts().iter_rows():
            for vote in word.split(BETWEEN_RATINGS):
                if (text := number_as_text(vote)) not in OPEN:
                    words[forms.get(column.name, "{}").format(text)] += count
    return words


def refuse_amounts(table: pl.DataFrame, columns: LabelColumns, path: str) -> None:
    """Refuse two columns whose ends look like half-open brackets: never equal, and far apart."""
    if columns.brackets or columns.lower is None or columns.upper is None:
        return
    import polars as pl

    ends = (c.str.strip_chars().cast(pl.Float64(), strict=False).to_numpy() for c in table)
    if edge := shared_edge(*ends):
        raise FileError(
            f"{path}: {columns.lower!r} and {columns.upper!r} are never equal, and {edge} is in "
            f"both: if they are amounts where brackets start and end, give {BRACKETS}; if they are "
            f"the lowest and the highest grade, both included, give all grades, {ALL_GRADES}"
        )


def read_ranks(
    reader: LabelReader, table: pl.DataFrame, columns: LabelColumns
) -> tuple[Ranks, Ranks, Faults]:
    """Lower and upper ranks of the rows of a `label_frame`, and the faults of bad ones.

    A row without a label has the rank NO_LABEL.
    """
    import polars as pl

    rows = pl.concat_str(pl.all().cast(pl.String()).fill_null(""), separator=BETWEEN_ENDS)
    codes, words = word_codes(table.select(rows).to_series())
    ranks, reasons = np.full((len(words), 2), NO_LABEL, dtype=np.int64), dict[int, str]()
    for code, word in enumerate(words):  # each distinct label once
        ends = word.split(BETWEEN_ENDS, table.width - 1)
        cells = dict(zip(table.columns, map(str.strip, ends), strict=True))
        try:
            ranks[code] = _read_cells(reader, cells, columns)
        except ValueError as error:
            reasons[code] = str(error)
    bad = np.flatnonzero(np.isin(codes, list(reasons))).tolist() if reasons else []
    return ranks[codes, 0], ranks[codes, 1], {row: reasons[int(codes[row])] for row in bad}


def _read_cells(reader: LabelReader, cells: dict[str, str], columns: LabelColumns) -> Any:
    """Lower and upper rank of a label, which is one cell, or one for each end."""
    lower, upper = 1, len(reader.classes)
    for name, cell in cells.items():
        text = number_as_text(cell)
        try:
            if name not in (columns.lower, columns.upper):
                return reader.interval(text)
            if name == columns.lower:
                lower = reader.end(text, lower)
            else:
                upper = reader.end(text, upper)
        except ValueError as error:
            if text not in OPEN:
                raise ValueError(f"column {name!r} holds {brief(cell)}: {error}") from None
    if all(number_as_text(cell) in OPEN for cell in cells.values()):
        return NO_LABEL
    if len(cells) > 1 and len({*cells.values()}) == 1:  # a single amount at an edge
        upper = lower
    if lower > upper:
        low, high = (repr(reader.classes[rank - 1].item()) for rank in (lower, upper))
        raise ValueError(
            f"{columns.lower} {low} is above {columns.upper} {high}; swap the two columns, or take "
            "the lower and the higher of each row if they are the labels of two people"
        )
    return lower, upper
