"""How far predicted grades are from labels that are exact or ranges."""

from __future__ import annotations

from typing import Any

import numpy as np

from ordspan.core.measures import distance, quadratic_kappa
from ordspan.metrics.ranks import macro_error
from ordspan.metrics.scale import ERROR, Metric, to_ranks


def mean_absolute_error(true: Any, predicted: Any, *, classes: Any = None) -> float:
    """Mean distance in ranks from the prediction to an exact label (n,) or a range (n, 2).

    Minus this is the ``score`` of an estimator with the same grades.

    Parameters
    ----------
    true : array-like of shape (n,) or (n, 2)
        Exact grades, or inclusive ranges ``[lower, upper]`` of them, in any form that ``fit``
        takes. With ``classes``, None and NaN are open ends of ranges.
    predicted : array-like of shape (n,)
        The predicted grades, one for each label.
    classes : array-like, optional
        All grades from lowest to highest. By default, the order is that of an ordered Categorical
        or a polars Enum; whole numbers are ranks themselves. See the notes.

    Returns
    -------
    float
        0 if every prediction equals its label or lies in its range.

    Warns
    -----
    UserWarning
        Without ``classes``, if whole numbers are skipped, at most as many as occur.

    Notes
    -----
    The distance between two grades is the number of steps between them on the scale of all
    grades, so it depends on grades that may not occur in these rows. Give ``classes``
    wherever the grades are anything but whole numbers without gaps.

    Without ``classes``, whole numbers are taken as ranks: 1 and 3 are two ranks apart, also in a
    fold without grade 2. Numbers that do not occur may not be grades at all, so there is a warning
    if any are skipped between the lowest and the highest, and an error if more are skipped than
    occur, as with grades 10, 20 and 50. Fractions and words are refused, too. Each message shows
    the code to write. Half grades of which only 1.0 and 2.0 occur look like ranks: always give
    ``classes`` for them.

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
    metric = Metric("mean_absolute_error", scorer=ERROR)
    lower, upper, ranks, *_ = to_ranks(metric, true, predicted, classes)
    return float(distance(ranks, lower, upper).mean())


def macro_mean_absolute_error(true: Any, predicted: Any, *, classes: Any = None) -> float:
    """Mean over the grades that occur of the mean absolute error within each.

    Rare grades weigh as much as frequent ones. Grades without an example do not count, and a range
    counts as a grade of its own.

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
    metric = Metric("macro_mean_absolute_error", scorer=ERROR)
    lower, upper, ranks, *_ = to_ranks(metric, true, predicted, classes)
    _, group = np.unique(np.column_stack([lower, upper]), axis=0, return_inverse=True)
    return macro_error(group.ravel(), distance(ranks, lower, upper))


def accuracy(true: Any, predicted: Any, *, classes: Any = None) -> float:
    """Share of predictions equal to the exact label.

    Parameters
    ----------
    true : array-like of shape (n,)
        Exact grades; ranges of width zero count as exact.
    predicted : array-like of shape (n,)
        The predicted grades, one for each label.
    classes : array-like, optional
        All grades from lowest to highest; required for words, unless they are an ordered
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
    metric = Metric("accuracy", measures_distance=False)
    lower, upper, ranks, *_ = to_ranks(metric, true, predicted, classes)
    if not np.array_equal(lower, upper):
        raise ValueError("accuracy needs exact labels; for ranges use inside_interval")
    return float((ranks == lower).mean())


def inside_interval(true: Any, predicted: Any, *, classes: Any = None) -> float:
    """Share of predictions that lie inside the label's range.

    Parameters
    ----------
    true : array-like of shape (n,) or (n, 2)
        Exact grades, or inclusive ranges ``[lower, upper]`` of them, in any form that ``fit``
        takes. With ``classes``, None and NaN are open ends of ranges.
    predicted : array-like of shape (n,)
        The predicted grades, one for each label.
    classes : array-like, optional
        All grades from lowest to highest; required for words, unless they are an ordered
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
    metric = Metric("inside_interval", measures_distance=False)
    lower, upper, ranks, *_ = to_ranks(metric, true, predicted, classes)
    return float((distance(ranks, lower, upper) == 0).mean())


def quadratic_weighted_kappa(true: Any, predicted: Any, *, classes: Any = None) -> float:
    """Cohen's kappa with squared rank distances: 1 is perfect, 0 is chance.

    If all labels and predictions are the same grade, agreement is perfect: 1.

    Parameters
    ----------
    true : array-like of shape (n,)
        Exact grades; ranges of width zero count as exact.
    predicted : array-like of shape (n,)
        The predicted grades, one for each label.
    classes : array-like, optional
        All grades from lowest to highest, as in `mean_absolute_error`.

    Returns
    -------
    float
        At most 1; below 0 if agreement is worse than chance.

    Examples
    --------
    >>> from ordspan.metrics import quadratic_weighted_kappa
    >>> quadratic_weighted_kappa([1, 2, 3], [1, 2, 3])
    1.0
    >>> grades = ["low", "mid", "high"]
    >>> quadratic_weighted_kappa(grades, ["high", "mid", "low"], classes=grades)
    -1.0
    """
    metric = Metric("quadratic_weighted_kappa")
    lower, upper, ranks, *_ = to_ranks(metric, true, predicted, classes)
    if not np.array_equal(lower, upper):
        raise ValueError("quadratic_weighted_kappa needs exact labels")
    return quadratic_kappa(lower, ranks)
