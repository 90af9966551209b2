"""The grades of a stream, which may grow, and labels as ranks."""

from __future__ import annotations

import numbers
import warnings
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

import numpy as np

from ordspan.core.labels import is_open_value, shown, users_level


def label_ends(y: Any) -> tuple[Any, Any]:
    """Lower and upper end of a label, None for an open end.

    >>> label_ends("mid"), label_ends((3, None))
    (('mid', 'mid'), (3, None))
    """
    if isinstance(y, tuple | list):
        if len(y) != 2:
            raise ValueError(f"a range label is a pair (lower, upper), got {y!r}")
        lower, upper = (None if is_open_value(end) else end for end in y)
        return lower, upper
    if is_open_value(y):
        raise ValueError(
            f"label {y!r} is missing; give a range (lower, upper), or leave the example out"
        )
    return y, y


class Grades:
    """The grades from lowest to highest and their ranks 1..K; immutable.

    Parameters
    ----------
    order : list
        The grades from lowest to highest.
    given : bool
        Whether the user listed them: then no other grade is accepted.
    """

    def __init__(self, order: list[Any], given: bool) -> None:
        self.order = order
        self.given = given
        self.ranks = {grade: rank for rank, grade in enumerate(order, start=1)}

    def read(self, y: Any) -> tuple[Grades, int, int]:
        """Lowest and highest rank of a label, and the grades with those that it adds."""
        try:
            rank = self.ranks[y]
            return self, rank, rank
        except (KeyError, TypeError):  # a range, a new grade or a mistake
            lower, upper = label_ends(y)
        grades = self
        for end in (lower, upper):
            if end is not None and not grades.has(end):
                grades = grades.with_grade(end)
        low = 1 if lower is None else grades.ranks[lower]
        high = max(1, len(grades.order)) if upper is None else grades.ranks[upper]
        if low > high:
            raise ValueError(
                f"lower end {lower!r} is above upper end {upper!r}; swap the two ends?"
            )
        return grades, low, high

    def has(self, label: Any) -> bool:
        """Whether a label is one of the grades."""
        try:
            return label in self.ranks
        except TypeError:
            raise ValueError(f"label {label!r} is not a grade: give a number or a string") from None

    def with_grade(self, grade: Any) -> Grades:
        """These grades and one more; an error if the user listed all grades."""
        if self.given:
            raise ValueError(
                f"label {grade!r} is not one of the grades {shown(np.asarray(self.order))}; "
                "list every grade in classes=[...]"
            )
        check_new_grade(grade, self.order)
        grade = grade.item() if isinstance(grade, np.generic) else grade
        at = bisect_left(self.order, grade)
        return Grades([*self.order[:at], grade, *self.order[at:]], given=False)


def check_new_grade(grade: Any, known: list[Any]) -> None:
    """Refuse a grade that cannot be sorted among the known ones; warn if strings are sorted."""
    is_word = isinstance(grade, str)
    if not is_word and not isinstance(grade, numbers.Real | np.bool_):
        raise ValueError(f"label {grade!r} is not a grade: give a number or a string")
    if not is_word and grade != int(grade):
        raise ValueError(
            f"label {grade!r} looks like a measurement; bin it into grades, or list the grades in "
            "classes=[...]"
        )
    if known and is_word != isinstance(known[0], str):
        raise ValueError(
            f"label {grade!r} cannot be ordered among {shown(np.asarray(known))}; "
            "list every grade in classes=[...]"
        )
    if is_word and len(known) == 1:
        warnings.warn(
            f"the order of the grades was not given, so they are sorted: {known[0]!r} and "
            f"{grade!r} are the first two; give it from lowest to highest with classes=[...]",
            UserWarning,
            stacklevel=users_level(),
        )


def new_ranks(before: Grades, after: Grades) -> list[int]:
    """Ranks of the grades that were not known before, lowest first."""
    if after is before:
        return []
    return [rank for grade, rank in after.ranks.items() if grade not in before.ranks]


def runs(labels: list[Any], grades: Grades) -> Iterator[tuple[slice, list[int], list[int], Grades]]:
    """Rows in as few runs as possible, each with its ranks and the grades at its first row."""
    start = 0
    low: list[int] = []
    high: list[int] = []
    for i, label in enumerate(labels):
        try:
            grown, lowest, highest = grades.read(label)
        except ValueError as reason:
            raise ValueError(f"row {i}: {reason}") from None
        if grown is not grades and i > start:
            yield slice(start, i), low, high, grades
            start, low, high = i, [], []
        grades = grown
        low.append(lowest)
        high.append(highest)
    if low:
        yield slice(start, len(labels)), low, high, grades
