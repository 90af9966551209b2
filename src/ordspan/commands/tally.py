"""Counts of labels, and what is said of a model beside the best constant prediction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ordspan.core.state import Ranks
from ordspan.metrics.ranks import count_labels


class LabelCounts:
    """How many labels start at, end at, and are exactly each grade.

    Parameters
    ----------
    n_classes : int
        Number of grades.
    """

    def __init__(self, n_classes: int) -> None:
        self.lower, self.upper, self.exact = np.zeros((3, n_classes), dtype=np.int64)

    @property
    def rows(self) -> int:
        """Number of labels."""
        return int(self.lower.sum())

    def add(self, lower: Ranks, upper: Ranks) -> None:
        """Count the labels of some rows."""
        self._add(*count_labels(lower, upper, None, self.lower.size))

    def merge(self, other: LabelCounts) -> None:
        """Add the counts of another instance."""
        self._add(other.lower, other.upper, other.exact)

    def _add(self, lower: Ranks, upper: Ranks, exact: Ranks) -> None:
        self.lower += lower
        self.upper += upper
        self.exact += exact

    def to_dict(self) -> dict[str, list[int]]:
        """The counts as plain values."""
        return {name: counts.tolist() for name, counts in vars(self).items()}

    @classmethod
    def from_dict(cls, counts: dict[str, list[int]]) -> LabelCounts:
        """The inverse of `to_dict`."""
        labels = cls(len(counts["lower"]))
        for name in vars(labels):
            setattr(labels, name, np.array(counts[name], dtype=np.int64))
        return labels


def compared(mae: float, constant: float, grade: Any) -> str:
    """Compare the MAE of a model with that of a constant prediction.

    >>> compared(0.52, 1.2, 3)
    'MAE 0.5200, against 1.2000 by always predicting 3: 57 % less.'
    >>> compared(1.195, 1.2, 3)
    'The model is hardly better than always predicting 3: MAE 1.1950, against 1.2000.'
    >>> print(compared(1.21, 1.2, "low"))
    The model is no better than always predicting 'low': MAE 1.2100, against 1.2000. By this
    measure it gains nothing from the features.
    """
    always = f"always predicting {grade!r}"
    if constant == 0:
        return (
            f"These rows cannot tell good models from bad: {always} is never wrong on them. "
            f"The model's MAE is {mae:.4f}."
        )
    if mae >= constant:
        return (
            f"The model is no better than {always}: MAE {mae:.4f}, against {constant:.4f}. By this "
            "measure it gains nothing from the features."
        )
    less = 100 * (1 - mae / constant)
    if less < 1:
        return f"The model is hardly better than {always}: MAE {mae:.4f}, against {constant:.4f}."
    return f"MAE {mae:.4f}, against {constant:.4f} by {always}: {less:.0f} % less."


def constant_text(constant: dict[str, Any] | None, shown: Callable[[float], str]) -> str:
    """The best constant by a measure, and the grade that it is.

    >>> constant_text({"grade": 3, "value": 1.25}, str)
    '1.25 (always 3)'
    """
    if constant is None:
        return "–"
    grade = constant["grade"]
    return f"{shown(constant['value'])} ({'any grade' if grade is None else f'always {grade}'})"
