"""Label columns of tables as ranks: each distinct value is read once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from ordspan.core.state import Ranks
from ordspan.labels.amounts import BRACKETS, refuse_points
from ordspan.labels.forms import OPEN, number_as_text
from ordspan.labels.grades import ALL_GRADES
from ordspan.labels.ranks import shared_edge
from ordspan.labels.text import BETWEEN_RATINGS, LabelReader, split_ratings
from ordspan.tables.rows import Faults, FileError
from ordspan.wording import brief, columns_hint

if TYPE_CHECKING:
    import polars as pl

LIST = r"^\s*\[[^],;|]*([,;|][^],;|]*){2,}\]\s*$"  # of three or more; [3,5] is a range
POINT_NUMBER = r"^\s*[-+]?[0-9]+\.[0-9]+\s*$"
COMMA_NUMBER = r"^\s*([-+]?[0-9]+),([0-9]+)\s*$"
THOUSANDS = r"\b([1-9][0-9]{0,2})\.([0-9]{3})(?:\.([0-9]{3}))?(?:\.([0-9]{3}))?\b"
BETWEEN_ENDS = "\x1e"  # between the cells of a label
NO_LABEL = 0  # the rank of a row without a label, which is left out
MAX_KNOWN = 10_000  # labels that are remembered


@dataclass(frozen=True)
class LabelColumns:
    """The label columns: one of grades or ranges, one for each end, or those of several judges.

    While grades are being found, labels may be brackets of amounts, or numbers to cut into parts.
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

    def texts(
        self, table: pl.DataFrame, decimal: str, path: str, edges: Any = None
    ) -> pl.DataFrame:
        """The cells as text with decimal points; the ratings of a row, without gaps, are one label.

        Lists that are no ratings are refused, and so are points that may separate thousands of
        amounts, which have ``edges`` once known.
        """
        import polars as pl

        labels = table.select(pl.col(self.names()).cast(pl.String()).fill_null(""))
        if self.ratings:
            several = labels.width > 1
            rows: Any = labels.iter_rows() if several else map(split_ratings, labels.to_series())
            votes = ([vote for vote in map(str.strip, row) if vote not in OPEN] for row in rows)
            cells = pl.Series(list(map(BETWEEN_RATINGS.join, votes)), dtype=pl.String())
            return pl.DataFrame({", ".join(labels.columns): cells})
        for column in labels:
            lists = column.filter(column.str.contains(LIST))
            if 2 * len(lists) > len(column):
                raise FileError(
                    f"{path}: column {column.name!r} holds lists such as {brief(lists[0])}: if "
                    "these are the ratings of several people, give "
                    f"{columns_hint('ratings', column.name)} instead"
                )
            if decimal == "," and len(odd := column.filter(column.str.contains(POINT_NUMBER))):
                raise FileError(
                    f"{path}: column {column.name!r} holds {odd[0]!r}, but the decimal sign of the "
                    "file is a comma; write the grade with a comma, or without a separator of "
                    "thousands"
                )
        are_amounts = self.brackets or self.parts or edges is not None
        if decimal == ",":  # else 3,456 would be an amount of thousands
            cell = pl.all().str.replace_all(THOUSANDS, "$1$2$3$4") if are_amounts else pl.all()
            return labels.with_columns(cell.str.replace(COMMA_NUMBER, "$1.$2"))
        if are_amounts:
            refuse_points(set().union(*labels.unique()), edges, f"{path}: ")
        return labels

    def count_words(self, frame: pl.DataFrame) -> Counter[str]:
        """How often each label occurs in `texts`, as it is written, without missing ones.

        The two ends of a bracket are counted as the labels "at least" and "under" that amount.
        """
        forms = {self.lower: "at least {}", self.upper: "under {}"} if self.brackets else {}
        if forms and frame.width > 1:  # two equal ends are a single amount, and no edges
            frame = frame.filter(frame.to_series(0) != frame.to_series(1))
        words: Counter[str] = Counter()
        for column in frame:
            for word, count in column.value_counts().iter_rows():
                for vote in word.split(BETWEEN_RATINGS):
                    if (text := number_as_text(vote)) not in OPEN:
                        words[forms.get(column.name, "{}").format(text)] += count
        return words

    def refuse_amounts(self, frame: pl.DataFrame, path: str) -> None:
        """Refuse two columns whose ends look like half-open brackets: never equal, far apart."""
        if self.brackets or self.lower is None or self.upper is None:
            return
        ends = (c.str.strip_chars().cast(float, strict=False).to_numpy() for c in frame)
        if edge := shared_edge(*ends):
            raise FileError(
                f"{path}: {self.lower!r} and {self.upper!r} look like brackets of amounts: {edge}; "
                f"give {BRACKETS}; if they are the lowest and the highest grade, both included, "
                f"give all grades, {ALL_GRADES}"
            )

    def read(
        self, reader: LabelReader, table: pl.DataFrame, decimal: str = ".", path: str = "the table"
    ) -> tuple[Ranks, Ranks, Faults]:
        """Lower and upper ranks of the rows of a table, and the faults of bad ones.

        A row that is bad or has no label has the rank NO_LABEL.
        """
        import polars as pl

        # series, as a query waits for the threads that parse
        cells = (table[name].cast(pl.String()).fill_null("") for name in self.names())
        labels = reduce(lambda one, other: one + BETWEEN_ENDS + other, cells)
        known = reader.known.setdefault(decimal, {})
        codes = labels.cast(pl.Enum([*known]), strict=False)
        if codes.null_count():
            if len(known) > MAX_KNOWN:
                known.clear()
            first = labels.is_first_distinct()
            distinct = self.texts(table.filter(first), decimal, path, reader.edges)
            rows = distinct.iter_rows(named=True)
            for label, texts in zip(labels.filter(first), rows, strict=True):
                known[label] = self._read_cells(reader, texts)
            codes = labels.cast(pl.Enum([*known]))
        places = codes.to_physical().to_numpy()
        ranks = np.array([ranks for ranks, _ in known.values()], dtype=np.int64).reshape(-1, 2)
        wrong = {code: why for code, (_, why) in enumerate(known.values()) if why}
        bad = np.flatnonzero(np.isin(places, list(wrong))).tolist()
        lower, upper = np.ascontiguousarray(ranks[places].T)
        return lower, upper, {row: wrong[places[row]] for row in bad}

    def _read_cells(self, reader: LabelReader, cells: dict[str, str]) -> Any:
        """Ranks of a label, which is one cell, or one for each end; and what is wrong with it."""
        no_label, lower, upper = (NO_LABEL, NO_LABEL), 1, len(reader.classes)
        texts = {name: number_as_text(cell) for name, cell in cells.items()}
        for name, text in texts.items():
            try:
                if name == self.lower:
                    lower = reader.end(text, lower)
                elif name == self.upper:
                    upper = reader.end(text, upper)
                else:
                    return reader.interval(text), ""
            except ValueError as error:
                if text not in OPEN:
                    return no_label, f"column {name!r} holds {brief(cells[name])}: {error}"
        if all(text in OPEN for text in texts.values()):
            return no_label, ""
        if len(texts) > 1 and len({*texts.values()}) == 1:  # a single amount at an edge
            upper = lower
        if lower > upper:
            low, high = (repr(reader.classes[rank - 1].item()) for rank in (lower, upper))
            return no_label, (
                f"{self.lower} {low} is above {self.upper} {high}; swap the two columns, or take "
                "the lower and the higher of each row if they are the labels of two people"
            )
        return (lower, upper), ""
