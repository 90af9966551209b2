"""The grades of a stream, which may grow, and labels as ranks of them."""

from __future__ import annotations

import numbers
from bisect import insort
from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np

from ordspan.labels.grades import sorted_grades
from ordspan.labels.ranks import is_open_value
from ordspan.wording import shown

LIST_THEM = "in classes=[...]"


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
            if end is not None:
                grades = grades.with_grade(end)
        low = 1 if lower is None else grades.ranks[lower]
        high = max(1, len(grades.order)) if upper is None else grades.ranks[upper]
        if low > high:
            raise ValueError(
                f"lower end {lower!r} is above upper end {upper!r}; swap the two ends?"
            )
        return grades, low, high

    def with_grade(self, grade: Any) -> Grades:
        """These grades, and one more if it is new; an error if the user listed all grades."""
        if isinstance(grade, Hashable) and grade in self.ranks:
            return self
        if not isinstance(grade, str | numbers.Real | np.bool_):
            raise ValueError(f"label {grade!r} is not a grade: give a number or a string")
        mixed = self.order and isinstance(grade, str) != isinstance(self.order[0], str)
        if self.given or mixed:
            raise ValueError(
                f"label {grade!r} is not one of the grades {shown(np.asarray(self.order))}; "
                f"list every grade {LIST_THEM}"
            )
        sorted_grades(np.array([*self.order, grade]), LIST_THEM)  # refuses names and measurements
        order = list(self.order)
        insort(order, grade.item() if isinstance(grade, np.generic) else grade, key=float)
        return Grades(order, given=False)


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
