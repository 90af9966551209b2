"""Words of a label column as intervals of ranks: ``4``, ``3-5``, ``>=3``, ``<=2``, ``[3,5]``."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordspan.core.labels import Ranks, check_classes, shown
from ordspan.files.batch import Faults, is_number

if TYPE_CHECKING:
    import polars as pl

NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
DASHES = "-–"
FROM_TO = re.compile(rf"\s*({NUMBER})\s*(?:-|–|\.\.)\s*({NUMBER})\s*")
BRACKETS = re.compile(r"\s*\[(.*),(.*)\]\s*")
AT_LEAST = re.compile(r"\s*>=\s*(.+)|\s*(.+?)\s*\+\s*")
AT_MOST = re.compile(r"\s*<=\s*(.+)")
OPEN = ("", "NA", "NaN", "nan", "null", "None", "inf", "-inf", "+inf")
"""What stands in a lower or upper column where that end is open."""


class LabelColumns(NamedTuple):
    """Where the label stands: one column of grades or ranges, or one column for each end."""

    label: str | None = None
    lower: str | None = None
    upper: str | None = None

    def names(self) -> list[str]:
        """The columns it takes."""
        return [name for name in self if name is not None]


def plain_word(value: Any) -> str:
    """A cell as text, whole numbers without their point.

    >>> plain_word(3.0), plain_word(" mid "), plain_word("3.0")
    ('3', 'mid', '3')
    """
    text = "" if value is None else str(value).strip()
    if re.fullmatch(r"[-+]?[0-9]+", text):
        return str(int(text)) if len(text) < 4000 else text
    if not is_number(text):
        return text
    number = float(text)
    return str(int(number)) if number.is_integer() else repr(number) if number == number else ""


def read_order(text: str) -> NDArray[Any]:
    """Classes from lowest to highest, from a list such as ``low,mid,high`` or a range ``1..5``.

    >>> read_order("0..4")
    array([0, 1, 2, 3, 4])
    >>> read_order("low, mid, high")
    array(['low', 'mid', 'high'], dtype='<U4')
    """
    whole = re.fullmatch(r"\s*([-+]?\d+)\.\.([-+]?\d+)\s*", text)
    if whole:
        return check_classes(np.arange(int(whole[1]), int(whole[2]) + 1))
    words = [word.strip() for word in next(csv.reader([text], skipinitialspace=True), [])]
    if "" in words or len(words) < 2:
        raise ValueError(
            f"the order {text!r} is not understood: separate the grades by commas, from lowest to "
            "highest (quotes protect a comma in a name), or write 1..5"
        )
    return check_classes(_typed(words))


def classes_of(words: Iterable[str]) -> NDArray[Any]:
    """Every grade that occurs in labels, sorted; named grades need an order given by the user."""
    words = {plain_word(word) for word in words} - set(OPEN)
    found = {end for word in words for end in _ends_named(word)}
    if words and found.isdisjoint(words):
        raise ValueError(
            f"every label is a range, such as {min(words)!r}: if these are the names of grades, "
            "or if some grade is no end of a range, tell them with --order lowest,...,highest"
        )
    numbers = sorted(filter(is_number, found))
    if found and not numbers:
        names = [word for word in sorted(found) if not _splits(word, found)]
        raise ValueError(
            f"the grades are named, so their order must be told: --order lowest,...,highest of "
            f"{shown(np.array(names))}"
        )
    # a word among numbers is a fault that the reader tells with its line
    classes = np.sort(_typed(numbers))
    if classes.size < 2:
        raise ValueError(
            f"the labels show too few grades, {shown(classes)}; name all of them with "
            "--order lowest,...,highest"
        )
    return check_classes(classes)


def _splits(word: str, known: set[str]) -> bool:
    """Whether a word such as low-mid is a range of other known words."""
    cuts = (i for i, letter in enumerate(word) if letter in DASHES)
    return any(word[:i].strip() in known and word[i + 1 :].strip() in known for i in cuts)


def _ends_named(word: str) -> list[str]:
    """The grades that a label names."""
    text = plain_word(word)
    if text in OPEN:
        return []
    if match := FROM_TO.fullmatch(text) or BRACKETS.fullmatch(text):
        return [plain_word(end) for end in match.groups() if end.strip()]
    if match := AT_LEAST.fullmatch(text) or AT_MOST.fullmatch(text):
        return [plain_word(next(end for end in match.groups() if end))]
    return [text]


def _typed(words: list[str]) -> NDArray[Any]:
    """Words as whole numbers or numbers where all of them are."""
    for dtype in (int, float):
        try:
            return np.array([dtype(word) for word in words])
        except ValueError:
            pass
    return np.array(words)


class Grades:
    """Turns label columns into ranks 1..K; every different word is read once.

    >>> grades = Grades(np.array([1, 2, 3, 4, 5]))
    >>> [grades.interval(word) for word in ("4", "3-5", ">=3", "<=2", "[3,5]", "4+")]
    [(4, 4), (3, 5), (3, 5), (1, 2), (3, 5), (4, 5)]
    """

    def __init__(self, classes: NDArray[Any]) -> None:
        self.classes = classes
        self._ranks = {plain_word(c): rank for rank, c in enumerate(classes.tolist(), start=1)}

    def rank(self, word: str) -> int:
        """The rank of one grade."""
        rank = self._ranks.get(plain_word(word))
        if rank is None:
            raise ValueError(
                f"grade {word.strip()!r} is not among {shown(self.classes)}; add it to the order, "
                "or write a range as 3-5, >=3, <=2 or [3,5]"
            )
        return rank

    def interval(self, word: str) -> tuple[int, int]:
        """Lowest and highest rank of a label."""
        text = plain_word(word)
        if text in self._ranks:
            return self._ranks[text], self._ranks[text]
        if text in OPEN:
            raise ValueError("the label is empty")
        ends = self._ends(text)
        if ends[0] > ends[1]:
            raise ValueError(f"the lower end of {text!r} is above its upper end")
        return ends

    def _ends(self, text: str) -> tuple[int, int]:
        if match := FROM_TO.fullmatch(text):
            return self.rank(match[1]), self.rank(match[2])
        if match := BRACKETS.fullmatch(text):
            return self.end(match[1], 1), self.end(match[2], len(self.classes))
        if match := AT_LEAST.fullmatch(text):
            return self.rank(match[1] or match[2]), len(self.classes)
        if match := AT_MOST.fullmatch(text):
            return 1, self.rank(match[1])
        for cut in (i for i, letter in enumerate(text) if letter in DASHES):
            low, high = plain_word(text[:cut]), plain_word(text[cut + 1 :])
            if low in self._ranks and high in self._ranks:
                return self._ranks[low], self._ranks[high]
        rank = self.rank(text)
        return rank, rank

    def end(self, word: str, open_end: int) -> int:
        """The rank of a cell that holds one end; an empty cell is an open end."""
        return open_end if plain_word(word) in OPEN else self.rank(word)

    def read(self, table: pl.DataFrame, columns: LabelColumns) -> tuple[Ranks, Ranks, Faults]:
        """Lower and upper ranks of every row, and the faults of the rows that have none."""
        if columns.label is not None:
            return self._read_column(table, columns.label, self.interval)
        last = len(self.classes)
        faults = Faults()
        ends = []
        for name, open_end in ((columns.lower, 1), (columns.upper, last)):
            if name is None:
                ends.append(np.full(table.height, open_end, dtype=np.int64))
                continue

            def both(word: str, open_end: int = open_end) -> tuple[int, int]:
                rank = self.end(word, open_end)
                return rank, rank

            rank, _, wrong = self._read_column(table, name, both)
            faults |= wrong
            ends.append(rank)
        lower, upper = ends
        for row in np.flatnonzero(lower > upper).tolist():
            a, b = (self.classes[end[row] - 1].item() for end in ends)
            faults.setdefault(
                row,
                f"{columns.lower} {a!r} is above {columns.upper} {b!r}; swap the two columns?",
            )
        return lower, upper, faults

    def _read_column(
        self, table: pl.DataFrame, name: str, read: Any
    ) -> tuple[Ranks, Ranks, Faults]:
        """Read each different word once, then spread the answers over the rows."""
        codes, words = coded(table, name)
        ends = np.ones((len(words), 2), dtype=np.int64)
        reasons: dict[int, str] = {}
        for i, word in enumerate(words):
            try:
                ends[i] = read(word)
            except ValueError as error:
                reasons[i] = f"column {name!r} holds {word!r}: {error}"
        faults = {}
        if reasons:
            rows = np.flatnonzero(np.isin(codes, list(reasons)))
            faults = {int(row): reasons[int(codes[row])] for row in rows}
        return ends[codes, 0], ends[codes, 1], faults


def coded(
    table: pl.DataFrame, name: str, read: Callable[[Any], str] = plain_word
) -> tuple[NDArray[np.int64], list[str]]:
    """A column as a code for every row and the words the codes stand for."""
    import polars as pl

    column = table[name]
    if column.dtype.is_nested():
        raise ValueError(f"column {name!r} holds {column.dtype}, no plain values")
    if column.dtype == pl.String and not column.null_count():
        words = column.unique(maintain_order=True)
        codes = column.cast(pl.Enum(words)).to_physical().to_numpy()
        return codes.astype(np.int64), [read(word) for word in words]
    known: dict[Any, int] = {}
    numbered = [known.setdefault(value, len(known)) for value in column]
    return np.array(numbered, dtype=np.int64), [read(value) for value in known]
