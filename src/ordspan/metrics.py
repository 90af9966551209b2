"""Metrics for ordered grades: labels as in ``fit``, exact or intervals, and distances in ranks."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordspan.core.labels import (
    Ranks,
    check_classes,
    distinct,
    encode,
    encode_interval,
    is_open,
    shown,
)
from ordspan.core.losses import distance
from ordspan.estimators.targets import Labels, ends, read_labels, refuse_missing

__all__ = [
    "accuracy",
    "inside_interval",
    "macro_mean_absolute_error",
    "mean_absolute_error",
    "quadratic_weighted_kappa",
]

ERRORS = ("mean_absolute_error", "macro_mean_absolute_error")
MEASURES_DISTANCE = (*ERRORS, "quadratic_weighted_kappa")  # for the others the order is enough


def mean_absolute_error(true: Any, predicted: Any, *, classes: Any = None) -> float:
    """Mean distance in ranks from the prediction to an exact label (n,) or an interval (n, 2).

    Minus this is the ``score`` of an estimator with the same classes.

    Parameters
    ----------
    true : array-like of shape (n,) or (n, 2)
        Exact grades, or inclusive intervals ``[lower, upper]`` of them, in any form that ``fit``
        takes. With ``classes``, None and NaN are open ends of intervals.
    predicted : array-like of shape (n,)
        The predicted grades, one for each label.
    classes : array-like, optional
        All grades from lowest to highest. Left out, the order is that of an ordered Categorical or
        a polars Enum; whole numbers are ranks themselves. See the notes.

    Returns
    -------
    float
        0 if every prediction equals its label or lies in its interval.

    Warns
    -----
    UserWarning
        If ``classes`` is left out and whole numbers are skipped, at most as many as occur.

    Notes
    -----
    The distance between two grades is the number of steps between them on the scale of all
    grades, so it depends on grades that may not occur in the rows at hand. Give ``classes``
    wherever the grades are anything but whole numbers without gaps.

    Without ``classes``, whole numbers are taken as ranks: 1 and 3 are two ranks apart, also in a
    fold without grade 2. Numbers that do not occur may as well be no grades at all, so there is a
    warning where any are skipped between the lowest and the highest, and an error where more are
    skipped than occur, as with grades 10, 20 and 50. Fractions and words are refused, too. Each
    message shows the code to write. Half grades of which only 1.0 and 2.0 occur look like ranks:
    they need ``classes`` most.

    Examples
    --------
    >>> from ordspan.metrics import mean_absolute_error
    >>> mean_absolute_error([1, 2, 3, 4], [1, 3, 3, 2])
    0.75
    >>> mean_absolute_error([[1, 2], [2, 4]], [3, 3])
    0.5
    >>> mean_absolute_error([10, 20, 50], [50, 20, 50], classes=[10, 20, 50])
    0.6666666666666666

    In cross-validation, here with ranges of named grades:

    >>> from sklearn.metrics import make_scorer
    >>> from sklearn.model_selection import cross_val_score
    >>> from ordspan import OrdinalPA
    >>> grades = ["low", "mid", "high"]
    >>> X = [[-2.0], [2.0], [0.0], [-1.0], [1.0], [-0.9]]
    >>> y = [["low", "mid"], ["high", "high"], ["mid", "mid"]]
    >>> y += [["low", "low"], ["mid", "high"], ["mid", "mid"]]
    >>> scorer = make_scorer(mean_absolute_error, greater_is_better=False, classes=grades)
    >>> model = OrdinalPA(classes=grades, random_state=0)
    >>> cross_val_score(model, X, y, scoring=scorer, cv=2).round(2)
    array([-0.  , -0.33])
    """
    lower, upper, ranks = _read("mean_absolute_error", true, predicted, classes)
    return float(distance(ranks, lower, upper).mean())


def macro_mean_absolute_error(true: Any, predicted: Any, *, classes: Any = None) -> float:
    """Mean over the grades that occur of the mean absolute error within each.

    Grades without an example do not count, and an interval counts as a grade of its own: rare
    grades weigh as much as frequent ones.

    Parameters
    ----------
    true, predicted, classes :
        As in `mean_absolute_error`.

    Returns
    -------
    float
        The mean over grades, 0 if every prediction is right.

    Examples
    --------
    >>> from ordspan.metrics import macro_mean_absolute_error
    >>> macro_mean_absolute_error([1, 1, 1, 5], [1, 1, 1, 3], classes=[1, 2, 3, 4, 5])
    1.0
    """
    lower, upper, ranks = _read("macro_mean_absolute_error", true, predicted, classes)
    errors = distance(ranks, lower, upper)
    _, group = np.unique(np.column_stack([lower, upper]), axis=0, return_inverse=True)
    group = group.ravel()
    return float((np.bincount(group, errors) / np.bincount(group)).mean())


def accuracy(true: Any, predicted: Any, *, classes: Any = None) -> float:
    """Share of predictions equal to the exact label.

    Parameters
    ----------
    true : array-like of shape (n,)
        Exact grades; intervals of width zero count as exact.
    predicted : array-like of shape (n,)
        The predicted grades, one for each label.
    classes : array-like, optional
        All grades from lowest to highest; needed for words, unless they are an ordered
        Categorical or a polars Enum.

    Returns
    -------
    float
        From 0 to 1.

    Examples
    --------
    >>> from ordspan.metrics import accuracy
    >>> accuracy([1, 2, 3, 3], [1, 2, 3, 1])
    0.75
    >>> accuracy(["low", "high"], ["low", "mid"], classes=["low", "mid", "high"])
    0.5
    """
    lower, upper, ranks = _read("accuracy", true, predicted, classes)
    if not np.array_equal(lower, upper):
        raise ValueError("accuracy needs exact labels; for intervals use inside_interval")
    return float((ranks == lower).mean())


def inside_interval(true: Any, predicted: Any, *, classes: Any = None) -> float:
    """Share of predictions that lie inside the label's interval.

    Parameters
    ----------
    true : array-like of shape (n,) or (n, 2)
        Exact grades, or inclusive intervals ``[lower, upper]`` of them, in any form that ``fit``
        takes. With ``classes``, None and NaN are open ends of intervals.
    predicted : array-like of shape (n,)
        The predicted grades, one for each label.
    classes : array-like, optional
        All grades from lowest to highest; needed for words, unless they are an ordered
        Categorical or a polars Enum.

    Returns
    -------
    float
        From 0 to 1; the accuracy if all labels are exact.

    Examples
    --------
    >>> from ordspan.metrics import inside_interval
    >>> inside_interval([[1, 2], [2, 4]], [3, 3])
    0.5
    >>> inside_interval([["mid", None]], ["high"], classes=["low", "mid", "high"])
    1.0
    """
    lower, upper, ranks = _read("inside_interval", true, predicted, classes)
    return float((distance(ranks, lower, upper) == 0).mean())


def quadratic_weighted_kappa(true: Any, predicted: Any, *, classes: Any = None) -> float:
    """Cohen's kappa with squared rank distances: 1 is perfect, 0 is chance.

    Where labels and predictions are one and the same constant, agreement is perfect: 1.

    Parameters
    ----------
    true : array-like of shape (n,)
        Exact grades; intervals of width zero count as exact.
    predicted : array-like of shape (n,)
        The predicted grades, one for each label.
    classes : array-like, optional
        All grades from lowest to highest, as in `mean_absolute_error`.

    Returns
    -------
    float
        At most 1; below 0 where agreement is worse than chance.

    Examples
    --------
    >>> from ordspan.metrics import quadratic_weighted_kappa
    >>> quadratic_weighted_kappa([1, 2, 3], [1, 2, 3])
    1.0
    >>> grades = ["low", "mid", "high"]
    >>> quadratic_weighted_kappa(grades, ["high", "mid", "low"], classes=grades)
    -1.0
    """
    lower, upper, ranks = _read("quadratic_weighted_kappa", true, predicted, classes)
    if not np.array_equal(lower, upper):
        raise ValueError("quadratic_weighted_kappa needs exact labels")
    observed = float(((lower - ranks) ** 2).mean())
    # E(t - p)^2 over independent draws = var(t) + var(p) + (mean(t) - mean(p))^2
    by_chance = float(lower.var() + ranks.var() + (lower.mean() - ranks.mean()) ** 2)
    return 1.0 if by_chance == 0.0 else 1.0 - observed / by_chance


class _Ranked(NamedTuple):
    """Ends of the labels, and predictions, as ranks."""

    lower: Ranks
    upper: Ranks
    predicted: Ranks


def _read(metric: str, true: Any, predicted: Any, classes: Any) -> _Ranked:
    """Ranks of labels and predictions on the scale of all grades."""
    labels, guesses = read_labels(true), read_labels(predicted)
    _check_rows(labels, guesses)
    order = _known_order(labels, guesses, classes)
    grades = _numbers_that_occur(metric, labels, guesses) if order is None else order
    ranked = _Ranked(
        *encode_interval(labels.lower, labels.upper, grades),
        encode(guesses.lower, grades, what="prediction"),
    )
    if order is not None or metric not in MEASURES_DISTANCE:
        return ranked
    rank_of = _whole_numbers_as_ranks(metric, grades)
    return _Ranked(*(rank_of[place - 1] for place in ranked))


def _check_rows(labels: Labels, guesses: Labels) -> None:
    if guesses.lower is not guesses.upper:
        raise ValueError("predictions must have shape (n,), one grade for each label")
    if labels.lower.size != guesses.lower.size:
        raise ValueError(f"{labels.lower.size} labels but {guesses.lower.size} predictions")
    if labels.lower.size == 0:
        raise ValueError("needs at least one label")
    refuse_missing(labels)
    missing = is_open(guesses.lower)
    if missing.any():
        row = int(np.argmax(missing))
        raise ValueError(f"row {row}: prediction {guesses.lower[row]!r} is not a grade")


def _known_order(labels: Labels, guesses: Labels, classes: Any) -> NDArray[Any] | None:
    """The given order of the grades, else that of the containers, else None."""
    if classes is not None:
        return check_classes(classes)
    first, second = labels.order, guesses.order
    if first is not None and second is not None and not np.array_equal(first, second):
        raise ValueError(
            f"labels and predictions have different orders: {shown(first)} and {shown(second)}"
        )
    order = second if first is None else first
    return None if order is None else check_classes(order)


def _numbers_that_occur(metric: str, labels: Labels, guesses: Labels) -> NDArray[Any]:
    """The distinct grades, sorted; open ends and anything but numbers need ``classes``."""
    for end in ends(labels):
        if is_open(end).any():
            row = int(np.argmax(is_open(end)))
            raise ValueError(
                f"row {row}: end {end[row]!r} of the interval is open; {_how_to(metric)}. "
                "Or close open ends with intervals()"
            )
    columns = (*ends(labels), guesses.lower)
    for column in columns:
        values = np.array(column.tolist()) if column.dtype == object else column
        if values.dtype.kind not in "biuf":
            word = column.tolist()[0]
            raise ValueError(f"the order of grades like {word!r} is not known; {_how_to(metric)}")
    return distinct(*columns)


def _whole_numbers_as_ranks(metric: str, grades: NDArray[Any]) -> Ranks:
    """Rank of each of the sorted numbers that occur, if they are ranks for all we know."""
    lowest, highest = int(grades[0]), int(grades[-1])
    skipped = highest - lowest + 1 - grades.size
    if (grades != np.floor(grades)).any() or skipped > grades.size:
        raise ValueError(
            f"grades {shown(grades)} do not show how many ranks they are apart; {_how_to(metric)}"
        )
    ranks = grades.astype(np.int64) - lowest + 1
    if skipped:
        gap = int(np.argmax(np.diff(ranks) > 1))
        warnings.warn(
            f"grades {int(grades[gap])} and {int(grades[gap + 1])} occur, but none between them; "
            f"they are counted as {ranks[gap + 1] - ranks[gap]} ranks apart, which is wrong if "
            f"there is no such grade. To be sure, {_how_to(metric)}",
            UserWarning,
            stacklevel=4,
        )
    return ranks


def _how_to(metric: str) -> str:
    sign = ", greater_is_better=False" if metric in ERRORS else ""
    return (
        "give every grade from lowest to highest in classes=: "
        f"{metric}(true, predicted, classes=[...]), or for cross-validation "
        f"make_scorer({metric}{sign}, classes=[...])"
    )
