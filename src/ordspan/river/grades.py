"""The grades of a stream, which may grow, and labels as ranks of them."""

from __future__ import annotations

from bisect import insort
from collections.abc import Hashable
from numbers import Real
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
    ends = y if isinstance(y, tuple | list) else (y, y)
    if len(ends) != 2:
        raise ValueError(f"a range label is a pair (lower, upper), got {y!r}")
    if ends is not y and is_open_value(y):
        raise ValueError(
            f"label {y!r} is missing; give a range (lower, upper), or leave the example out"
        )
    lower, upper = (None if is_open_value(end) else end for end in ends)
    return lower, upper


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
            if end is not None and not (isinstance(end, Hashable) and end in grades.ranks):
                grades = grades.with_grade(end)
        low = 1 if lower is None else grades.ranks[lower]
        high = max(1, len(grades.order)) if upper is None else grades.ranks[upper]
        if low > high:
            raise ValueError(
                f"lower end {lower!r} is above upper end {upper!r}; swap the two ends?"
            )
        return grades, low, high

    def with_grade(self, grade: Any) -> Grades:
        """These grades and a new one; an error if the user listed all grades."""
        if not isinstance(grade, str | Real | np.bool_):
            raise ValueError(f"label {grade!r} is not a grade: give a number or a string")
        is_other_kind = self.order and isinstance(grade, str) != isinstance(self.order[0], str)
        if self.given or is_other_kind:
            raise ValueError(
                f"label {grade!r} is not one of the grades {shown(np.asarray(self.order))}; "
                f"list every grade {LIST_THEM}"
            )
        sorted_grades(np.array([*self.order, grade]), LIST_THEM)  # refuses names and measurements
        order = list(self.order)
        insort(order, grade.item() if isinstance(grade, np.generic) else grade, key=float)
        return Grades(order, given=False)
