"""One written label as a range of ranks 1..K: a grade, a range of grades, or several ratings."""

import re
from difflib import SequenceMatcher
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordspan.labels import amounts, forms
from ordspan.wording import brief, closest, fold, shown

BETWEEN_RATINGS = "␟"
"""Between the ratings of several people in one label."""
LONGEST_CODE = 40  # characters


def rating_range(spans: Any, span: str = "quartiles") -> tuple[int, int]:
    """The range of some ratings: all, or without the lowest and the highest quarter of them.

    A rating is a range itself, of width zero if it is one grade.

    >>> rating_range([(1, 1), (5, 5), (3, 3), (4, 4)]), rating_range([(1, 1), (3, 4)], "all")
    ((3, 4), (1, 4))
    """
    lower, upper = np.sort(np.asarray(spans), axis=0).T
    left_out = lower.size // 4 if span == "quartiles" else 0
    return int(lower[left_out]), int(upper[-1 - left_out])


def split_ratings(cell: str) -> list[str]:
    """The ratings in a cell of text.

    >>> split_ratings("[1, 2, 2]"), split_ratings("low; mid (ok)"), split_ratings("3")
    (['1', '2', '2'], ['low', 'mid (ok)'], ['3'])
    """
    text = cell.strip()
    if text[:1] + text[-1:] in ("[]", "()"):
        text = text[1:-1]
    return [word.strip().strip("'\"") for word in re.split(r"[,;|]", text)]


class LabelReader:
    """Reads labels as ranks 1..K of known grades, or as brackets of amounts if these are bands.

    Parameters
    ----------
    classes : ndarray of shape (K,)
        The grades from lowest to highest.
    owner : str
        Whose grades they are, for errors: "the model's ".
    remedy : str, optional
        What to do about an unknown grade; by default, write a range or add it to the order.

    Examples
    --------
    >>> reader = LabelReader(np.array([1, 2, 3, 4, 5]))
    >>> [reader.interval(word) for word in ("4", "3-5", ">=3", "under 3", "(3,5]", "4 or more")]
    [(4, 4), (3, 5), (3, 5), (1, 2), (4, 5), (4, 5)]
    >>> bands = LabelReader(np.array(["under 10k", "10k to 25k", "25k or more"]))
    >>> [bands.interval(word) for word in ("10k to 25k", "$12,000", "over 10k", "$5-20k")]
    [(2, 2), (2, 2), (2, 3), (1, 2)]
    """

    def __init__(self, classes: NDArray[Any], *, owner: str = "", remedy: str = "") -> None:
        self.classes, self._owner = classes, owner
        names = [forms.number_as_text(grade) for grade in classes.tolist()]
        ranks = dict(zip(names, range(1, len(names) + 1), strict=True))
        self._ranks = {forms.normalise_label(name): rank for name, rank in ranks.items()} | ranks
        numbers = [float(name) for name in names if forms.is_number(name)]
        in_order = len(numbers) == len(names) and numbers == sorted(numbers)
        self._numbers = numbers if in_order else None
        low, high = classes[len(names) // 2 - 1 :][:2].tolist()
        self._among = f"among {owner}{shown(classes)}"
        self.edges = amounts.edges_of(names)
        self.note = ""  # on brackets that end between two edges
        # ranks of labels in tables, or what is wrong with one, by decimal sign
        self.known: dict[str, dict[str, tuple[tuple[int, int], str]]] = {}
        self._remedy = remedy or (
            f"write a range such as 'up to {low}' or 'at least {high}', or add it to the order"
        )
        if not remedy and self.edges is None and all(map(amounts.is_bracket, names)):
            self._remedy += f", or give {amounts.BRACKETS} instead if these are brackets of amounts"

    def interval(self, word: str) -> tuple[int, int]:
        """Lowest and highest rank of a label."""
        if BETWEEN_RATINGS in word:
            return rating_range([self.interval(one) for one in word.split(BETWEEN_RATINGS)])
        rank = self._find(word)
        if rank is not None:
            return rank, rank
        text = forms.normalise_label(word)
        if text in forms.OPEN:
            raise ValueError("the label is empty")
        if self.edges is not None and not forms.is_no_answer(text):
            amounts.refuse_points([text], self.edges)
            span = np.array([amounts.read_bracket(text, self.edges)])
            if amounts.is_widened(span, self.edges)[0]:
                self.note = f"{amounts.WIDENED}, such as {text!r}"
            lower, upper = amounts.band_ranks(span, self.edges)
            return int(lower[0]), int(upper[0])
        spans, errors = set(), [([text], self._unknown(word))]
        for ends in forms.readings(text, self._ranks):
            try:
                spans.add(self._span(text, ends))
            except ValueError as error:
                errors.append(([*ends.values()], error))
        if not spans:  # the reading whose words are most like grades was meant
            raise max(errors, key=lambda pair: min(map(self._similarity, pair[0])))[1]
        if len(spans) > 1:
            grades = (self.classes[np.array(span) - 1].tolist() for span in sorted(spans))
            ranges = " or ".join(f"[{low},{high}]" for low, high in grades)
            raise ValueError(f"{brief(text)} may mean {ranges}; write one of these instead")
        return spans.pop()

    def end(self, word: str, open_end: int) -> int:
        """The rank of a cell that holds one end; an empty cell is an open end."""
        rank = self._find(word)
        if rank is None and forms.number_as_text(word) in forms.OPEN:
            return open_end
        if rank is None and self.edges is not None:
            side: Any = "right" if open_end == 1 else "left"
            amount = amounts.read_amount(forms.normalise_label(word))
            return int(np.searchsorted(self.edges, amount.value, side)) + 1
        return self._last_inside("low", word, whole=True)

    def _find(self, word: str) -> int | None:
        return self._ranks.get(
            forms.number_as_text(word), self._ranks.get(forms.normalise_label(word))
        )

    def _span(self, text: str, ends: dict[str, str]) -> tuple[int, int]:
        """Lowest and highest rank between two ends."""
        ranks = {kind: self._last_inside(kind, word) for kind, word in ends.items()}
        lower = ranks.get("low", ranks.get("above", 1))
        upper = ranks.get("high", ranks.get("below", len(self.classes)))
        if lower > upper and ends.keys() == {"low", "high"}:
            order = "" if self._owner else ", or correct the order of the grades"
            raise ValueError(
                f"the lower end of {brief(text)} is above its upper end; swap them{order}"
            )
        if upper - lower > 1 and "".join(text.split()) == "/".join(ends.values()):
            raise ValueError(
                f"{brief(text)} is not a pair of neighbouring grades, and may mean so many out of "
                f"so many; write '{text.partition('/')[0].strip()}', or a range with 'to'"
            )
        if lower > upper:
            raise ValueError(
                f"no grade {self._among} lies inside {brief(text)}: >=, <=, [ and ] include an "
                f"end; else {self._remedy}"
            )
        return lower, upper

    def _last_inside(self, kind: str, word: str, *, whole: bool = False) -> int:
        """The rank of the last included grade at one end, perhaps beyond the outermost grade."""
        rank = self._find(word)
        if rank is not None:
            return rank + (kind == "above") - (kind == "below")
        if kind in ("low", "high") or self._numbers is None or not forms.is_number(word):
            raise self._unknown(word, whole=whole)
        return int(np.searchsorted(self._numbers, float(word))) + (kind == "above")

    def _unknown(self, word: str, *, whole: bool = True) -> ValueError:
        grade = self._nearest(word)
        meant = f"did you mean {grade!r}? If not, " if grade else ""
        may_be_code = self._numbers is not None and not self._owner and len(word) <= LONGEST_CODE
        if whole and (may_be_code or forms.is_no_answer(word)):
            way = "" if self._owner else f", in files with {forms.na_hint([word])}"
            meant = f"if it means no answer, leave the row out{way}; otherwise "
        if word.endswith("-") and forms.is_number(word[:-1]):
            meant = f"{word[:-1]}+ would be read as {word[:-1]} or more; {meant}"
        return ValueError(
            f"grade {brief(word.strip())} is not {self._among}; {meant}{self._remedy}"
        )

    def _nearest(self, word: str) -> str:
        """The named grade that may be meant by a word, or nothing."""
        return "" if self._numbers else closest(word, map(str, self.classes.tolist()))

    def _similarity(self, word: str) -> float:
        """How similar a word is to a grade, from 0 to 1."""
        if word in self._ranks or (self._numbers is not None and forms.is_number(word)):
            return 1.0
        return SequenceMatcher(None, fold(self._nearest(word)), fold(word)).ratio()
