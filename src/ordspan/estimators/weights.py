"""Row weights from ``class_weight``."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordspan.core.labels import Ranks, shown

BALANCED = "balanced"
Floats = NDArray[np.float64]


def row_weights(
    class_weight: Any, lower: Ranks, upper: Ranks, classes: NDArray[Any], sample_weight: Any = None
) -> Floats:
    """Weight of every row: the mean weight of the grades in its label.

    Parameters
    ----------
    class_weight : dict or "balanced"
        The weight of each grade, 1 if missing; or weights that give every grade that occurs the
        same total.
    lower, upper : arrays of shape (n,)
        Ends of the labels in ranks 1..K.
    classes : array of shape (K,)
        The grades from lowest to highest.
    sample_weight : array of shape (n,), optional
        Weights of the rows for "balanced".

    Examples
    --------
    >>> low, high, grades = np.array([1, 2, 1]), np.array([1, 2, 2]), np.array(["bad", "good"])
    >>> row_weights({"bad": 3.0}, low, high, grades)
    array([3., 1., 2.])
    """
    if is_balanced(class_weight):
        weight = balanced_weights(lower, upper, classes.size, sample_weight)
    elif isinstance(class_weight, Mapping):
        weight = given_weights(class_weight, classes)
    else:
        raise ValueError(
            f"class_weight must be None, a dict of weights by grade, or 'balanced', got "
            f"{class_weight!r}"
        )
    total = np.append(0.0, np.cumsum(weight))
    mean = (total[upper] - total[lower - 1]) / (upper - lower + 1)
    return np.where(lower == upper, weight[lower - 1], mean)


def is_balanced(class_weight: Any) -> bool:
    """Whether weights depend on how often grades occur."""
    return isinstance(class_weight, str) and class_weight == BALANCED


def refuse_balanced(class_weight: Any, where: str) -> None:
    """Refuse "balanced" if rows come in parts, as grade frequencies are unknown."""
    if is_balanced(class_weight):
        raise ValueError(
            f"class_weight='balanced' needs all rows at once, but {where} sees only some; "
            "use a dict of weights"
        )


def balanced_weights(lower: Ranks, upper: Ranks, n_classes: int, sample_weight: Any) -> Floats:
    """Number of rows / (number of grades that occur * rows of each grade).

    A range counts as an equal part of a row for each of its grades.

    >>> balanced_weights(np.array([1, 1, 1, 2]), np.array([1, 1, 1, 2]), 2, None).round(2)
    array([0.67, 2.  ])
    """
    rows = np.ones(lower.size) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    share = rows / (upper - lower + 1)
    begin = np.bincount(lower - 1, share, n_classes + 1)
    end = np.bincount(upper, share, n_classes + 1)
    occurs = np.cumsum(np.bincount(lower - 1, rows > 0, n_classes + 1))
    occurs -= np.cumsum(np.bincount(upper, rows > 0, n_classes + 1))
    there = occurs[:-1] > 0
    count = np.where(there, np.cumsum(begin - end)[:-1], 1.0)
    return np.where(there, rows.sum() / (there.sum() * count), 1.0)


def given_weights(class_weight: Mapping[Any, Any], classes: NDArray[Any]) -> Floats:
    """Weights of all grades, from a dict of some."""
    weight = np.ones(classes.size)
    rank = {grade: number for number, grade in enumerate(classes.tolist())}
    for grade, value in class_weight.items():
        if grade not in rank:
            raise ValueError(
                f"class_weight names {grade!r}, which is not one of the grades {shown(classes)}"
            )
        if not isinstance(value, numbers.Real) or not 0.0 <= float(value) < np.inf:
            raise ValueError(
                f"class_weight of {grade!r} must be a finite number >= 0, got {value!r}"
            )
        weight[rank[grade]] = value
    return weight
