"""Cells of a label column as intervals of ranks, in the forms that forms.py lists."""

from __future__ import annotations

import csv
import io
import re
import shlex
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from difflib import SequenceMatcher
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordspan.core.labels import N_SHOWN, Ranks, check_classes, shown
from ordspan.files.batch import Faults, brief, is_number
from ordspan.files.forms import OPEN, plain_word, readings, tidy
from ordspan.files.limits import check_grades
from ordspan.wording import hint

if TYPE_CHECKING:
    import polars as pl

LARGEST_GRADE = 2.0**63
ALL_GRADES = hint("classes=[lowest, ..., highest]", "--grades lowest,...,highest")
MIN_SIMILARITY = 0.6
"""Similarity from which a grade is suggested in place of an unknown one."""


class LabelColumns(NamedTuple):
    """The label columns: one column of grades or ranges, or one column for each end."""

    label: str | None = None
    lower: str | None = None
    upper: str | None = None

    def names(self) -> list[str]:
        """The columns in use."""
        return [name for name in self if name is not None]


def read_order(text: str) -> NDArray[Any]:
    """Grades from lowest to highest, from a list such as ``low,mid,high`` or a range ``1..5``.

    >>> read_order("0..4")
    array([0, 1, 2, 3, 4])
    >>> read_order("low, mid, high")
    array(['low', 'mid', 'high'], dtype='<U4')
    """
    whole = re.fullmatch(r"\s*([-+]?[0-9]{1,18})\.\.([-+]?[0-9]{1,18})\s*", text)
    if whole:
        first, last = int(whole[1]), int(whole[2])
        check_grades(abs(last - first) + 1, f"the order {text.strip()} has")
        step = 1 if last >= first else -1
        return check_classes(np.arange(first, last + step, step))
    words = [word.strip() for word in next(csv.reader([text], skipinitialspace=True), [])]
    if "" in words or len(words) < 2:
        raise ValueError(
            f"cannot read the order {brief(text)}: separate the grades by commas, from lowest to "
            "highest (quote a name that contains a comma), or write 1..5"
        )
    return check_classes(_typed(words))


def classes_of(words: Iterable[str]) -> NDArray[Any]:
    """Every grade that occurs in labels, sorted; named grades need an order from the user.

    Included ends of ranges are grades. An excluded end is no evidence for a grade, so it has to
    occur elsewhere, as does a grade beyond it.
    """
    words = {tidy(word) for word in words} - set(OPEN)
    numbers = set(filter(_may_be_grade, words))
    check_grades(len(numbers), "the labels have")
    ranges = {word: ends for word in sorted(words) if (ends := _numeric_ends(word))}
    names = words - numbers - ranges.keys()
    if names and not numbers:
        raise ValueError(_ask_for_names(names, words))
    if ranges and not numbers:
        raise ValueError(_ask_for_grades(ranges))
    # a word among numbers is a fault that the reader reports with its line
    inside = {ends[kind] for ends in ranges.values() for kind in ends if kind in ("low", "high")}
    classes = np.sort(_typed([*(numbers | inside)]))
    for word, ends in ranges.items():
        _check_excluded(word, ends, classes)
    if classes.size < 2:
        raise ValueError(
            f"the labels have too few grades, {shown(classes)}; list all of them with {ALL_GRADES}"
        )
    return check_classes(classes)


def _ask_for_names(names: set[str], words: set[str]) -> str:
    """Ask for the order of named grades, or report two spellings of one name."""
    spellings = defaultdict(list)
    for name in sorted(names):
        spellings[_folded(name)].append(name)
    for same in spellings.values():
        if len(same) > 1:
            # the one capitalised like most of the names comes last
            same.sort(key=lambda name: sum(name.istitle() == other.istitle() for other in names))
            return (
                f"grade {same[0]!r} is not among {shown(np.array(sorted(names - {same[0]})))}; "
                f"did you mean {same[-1]!r}? If not, list both in {ALL_GRADES}"
            )
    ranges = {w for w in words if any(words.issuperset(e.values()) for e in readings(w))}
    unless = f"; {min(ranges)!r} is a range of these, unless it is listed too" if ranges else ""
    return (
        f"the grades are names, so their order must be given: {ALL_GRADES} of "
        f"{shown(np.array(sorted(words - ranges)))}{unless}"
    )


def _ask_for_grades(ranges: dict[str, dict[str, str]]) -> str:
    """Ask for the grades where all labels are ranges, with an order that may be meant."""
    lowest = {w: float(ends.get("low", ends.get("above", "-inf"))) for w, ends in ranges.items()}
    return (
        f"every label is a range, such as {min(ranges)!r}: if these are the names of the grades, "
        f"give {grades_hint(sorted(ranges, key=lowest.__getitem__))}; otherwise list every grade, "
        + ALL_GRADES
    )


def _check_excluded(word: str, ends: dict[str, str], classes: NDArray[Any]) -> None:
    """Refuse an excluded end unless labels show the grades on both sides of it."""
    for kind, step in (("above", 1), ("below", -1)):
        if kind not in ends:
            continue
        end = _typed([ends[kind]]).tolist()[0]
        beyond = (classes - end) * step > 0
        if end not in classes or not beyond.any():
            wanted = {*classes.tolist(), end, end if beyond.any() else end + step}
            raise ValueError(
                f"the labels alone do not show which grades {word!r} means: list every grade, "
                f"such as {grades_hint(sorted(wanted))}"
            )


def grades_hint(grades: Collection[Any]) -> str:
    """How to give the order of the grades.

    >>> grades_hint([1, 2, 3])
    'classes=[1, 2, 3] (--grades 1..3)'
    >>> grades_hint(["<18", "18-24", "25+"])
    "classes=['<18', '18-24', '25+'] (--grades '<18,18-24,25+')"
    """
    values = list(grades)
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(map(plain_word, values[:N_SHOWN]))
    text = shlex.quote(line.getvalue()) + (" ..." if len(values) > N_SHOWN else "")
    if len(values) > 2 and all(not isinstance(a, str) and b - a == 1 for a, b in pairwise(values)):
        text = f"{plain_word(values[0])}..{plain_word(values[-1])}"
    return hint(f"classes={shown(np.array(values))}", f"--grades {text}")


def _numeric_ends(text: str) -> dict[str, str] | None:
    """The ends of a label that is a range of numbers."""
    found = () if is_number(text) else readings(text)
    return next((ends for ends in found if ends and all(map(_may_be_grade, ends.values()))), None)


def _may_be_grade(text: str) -> bool:
    """Whether a label is a number of reasonable size; others are faults of their rows.

    >>> _may_be_grade("3"), _may_be_grade("9" * 5000), _may_be_grade("low")
    (True, False, False)
    """
    return is_number(text) and abs(float(text)) < LARGEST_GRADE


def _folded(word: str) -> str:
    """A word in lower case without spaces."""
    return "".join(word.casefold().split())


def _likeness(a: str, b: str) -> float:
    """Similarity of two words, from 0 to 1; 0 if too low for a suggestion."""
    matcher = SequenceMatcher(None, _folded(a), _folded(b))
    ratio = matcher.ratio() if matcher.real_quick_ratio() >= MIN_SIMILARITY else 0.0
    return ratio if ratio >= MIN_SIMILARITY else 0.0


def _typed(words: list[str]) -> NDArray[Any]:
    """Words as integers or floats if all of them are numbers."""
    for dtype in (np.int64, np.float64):
        try:
            return np.array([dtype(word) for word in words])
        except (ValueError, OverflowError):
            pass
    return np.array(words)


class LabelReader:
    """Turns label columns into ranks 1..K; every distinct value is read once.

    >>> grades = LabelReader(np.array([1, 2, 3, 4, 5]))
    >>> [grades.interval(word) for word in ("4", "3-5", ">=3", "under 3", "(3,5]", "4 or more")]
    [(4, 4), (3, 5), (3, 5), (1, 2), (4, 5), (4, 5)]
    """

    owner = ""

    @property
    def remedy(self) -> str:
        """What to do about an unknown grade."""
        low, high = self.classes[[len(self.classes) // 2 - 1, len(self.classes) // 2]].tolist()
        return f"write a range such as 'up to {low}' or 'at least {high}', or add it to the order"

    def __init__(self, classes: NDArray[Any]) -> None:
        self.classes = classes
        names = [plain_word(c) for c in classes.tolist()]
        ranks = dict(zip(names, range(1, len(names) + 1), strict=True))
        self._ranks = {tidy(name): rank for name, rank in ranks.items()} | ranks
        numbers = [float(name) for name in names if is_number(name)]
        in_order = len(numbers) == len(names) and numbers == sorted(numbers)
        self._numbers = numbers if in_order else None

    def rank(self, word: str) -> int:
        """The rank of one grade."""
        rank = self._find(word)
        if rank is None:
            raise self._unknown(word)
        return rank

    def _find(self, word: str) -> int | None:
        return self._ranks.get(plain_word(word), self._ranks.get(tidy(word)))

    def _unknown(self, word: str) -> ValueError:
        likeness, grade = self._nearest(word)
        meant = f"did you mean {grade!r}? If not, " if likeness else ""
        return ValueError(
            f"grade {brief(word.strip())} is not among {self.owner}{shown(self.classes)}; "
            f"{meant}{self.remedy}"
        )

    def _nearest(self, word: str) -> tuple[float, str]:
        """Similarity of a word to the most similar named grade, from 0 to 1, and that grade."""
        names = [] if self._numbers else map(str, self.classes.tolist())
        return max(((_likeness(word, name), name) for name in names), default=(0.0, ""))

    def interval(self, word: str) -> tuple[int, int]:
        """Lowest and highest rank of a label."""
        rank = self._find(word)
        if rank is not None:
            return rank, rank
        text = tidy(word)
        if text in OPEN:
            raise ValueError("the label is empty")
        found, failed = set(), [(self._plausibility([text]), self._unknown(word))]
        for ends in readings(text, self._ranks):
            try:
                found.add(self._span(text, ends))
            except ValueError as error:
                failed.append((self._plausibility(ends.values()), error))
        if not found:
            raise max(failed, key=lambda failure: failure[0])[1]
        if len(found) > 1:
            spans = (self.classes[np.array(span) - 1].tolist() for span in sorted(found))
            ranges = " or ".join(f"[{low},{high}]" for low, high in spans)
            raise ValueError(f"{brief(text)} may mean {ranges}; write one of these instead")
        return found.pop()

    def _plausibility(self, words: Iterable[str]) -> float:
        """How likely the least likely of some words is a grade, from 0 to 1."""
        known = (
            w in self._ranks or (self._numbers is not None and is_number(w)) or self._nearest(w)[0]
            for w in words
        )
        return float(min(known))

    def _span(self, text: str, ends: dict[str, str]) -> tuple[int, int]:
        """Lowest and highest rank between two ends."""
        ranks = {kind: self._last_inside(kind, word) for kind, word in ends.items()}
        lower = ranks.get("low", ranks.get("above", 1))
        upper = ranks.get("high", ranks.get("below", len(self.classes)))
        if lower > upper and ends.keys() == {"low", "high"}:
            raise ValueError(f"the lower end of {brief(text)} is above its upper end; swap them?")
        if lower > upper:
            raise ValueError(
                f"no grade of {shown(self.classes)} lies inside {brief(text)}; [ and ] include "
                "the ends"
            )
        return lower, upper

    def _last_inside(self, kind: str, word: str) -> int:
        """The rank of the last included grade at one end of a range."""
        if kind in ("low", "high"):
            return self.rank(word)
        above, grade = kind == "above", self._find(word)
        if grade is not None:
            rank = grade + 1 if above else grade - 1
        elif self._numbers is not None and is_number(word):
            rank = int(np.searchsorted(self._numbers, float(word))) + above
        else:
            raise self._unknown(word)
        if not 1 <= rank <= len(self.classes):
            hint = f"write {'>=' if above else '<='}{word} if it is included"
            raise ValueError(
                f"no grade is {kind} {brief(word)} among {self.owner}{shown(self.classes)}; "
                f"{self.remedy if grade is None else hint}"
            )
        return rank

    def end(self, word: str, open_end: int) -> int:
        """The rank of a cell that holds one end; an empty cell is an open end."""
        is_open = self._find(word) is None and plain_word(word) in OPEN
        return open_end if is_open else self.rank(word)

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
        both_ways = bool((lower < upper).any())
        way = "take the lower and the higher of each row if they are the labels of two people"
        for row in np.flatnonzero(lower > upper).tolist():
            a, b = (self.classes[end[row] - 1].item() for end in ends)
            faults.setdefault(
                row,
                f"{columns.lower} {a!r} is above {columns.upper} {b!r}; "
                + (way if both_ways else "swap the two columns?"),
            )
        return lower, upper, faults

    def _read_column(
        self, table: pl.DataFrame, name: str, read: Any
    ) -> tuple[Ranks, Ranks, Faults]:
        """Read each distinct value once, then spread the results over the rows."""
        codes, words = encode_column(table, name)
        ends = np.ones((len(words), 2), dtype=np.int64)
        reasons: dict[int, str] = {}
        for i, word in enumerate(words):
            try:
                ends[i] = read(word)
            except ValueError as error:
                reasons[i] = f"column {name!r} holds {brief(word)}: {error}"
        faults = {}
        if reasons:
            rows = np.flatnonzero(np.isin(codes, list(reasons)))
            faults = {int(row): reasons[int(codes[row])] for row in rows}
        return ends[codes, 0], ends[codes, 1], faults


def encode_column(
    table: pl.DataFrame, name: str, read: Callable[[Any], str] = plain_word
) -> tuple[NDArray[np.int64], list[str]]:
    """A column as a code for every row, and the value of every code."""
    import polars as pl

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
