"""Losses and metrics on ranks; labels are exact (1-d) or intervals (lower, upper)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def shortfalls(
    scores: ArrayLike, thresholds: ArrayLike, lower: ArrayLike, upper: ArrayLike
) -> NDArray[np.float64]:
    """By how much each threshold misses the margin of 1, signed; minus infinity inside the label.

    Parameters
    ----------
    scores : array of shape (T,)
    thresholds : array of shape (K-1,), or (T, K-1) where they change from row to row
    lower, upper : ranks of shape (T,)

    Examples
    --------
    >>> shortfalls([0.0, 0.0], [0.0, 5.0], lower=[2, 1], upper=[2, 3])
    array([[  1.,  -4.],
           [-inf, -inf]])
    """
    theta = np.asarray(thresholds, dtype=float)
    low, high = (np.asarray(v).reshape(-1, 1) for v in (lower, upper))
    i = np.arange(1, theta.shape[-1] + 1)
    above = theta - np.asarray(scores, dtype=float).reshape(-1, 1)
    return np.where(i < low, 1.0 + above, np.where(i >= high, 1.0 - above, -np.inf))


def hinge_losses(
    scores: ArrayLike, thresholds: ArrayLike, lower: ArrayLike, upper: ArrayLike
) -> NDArray[np.float64]:
    """The losses l_1..l_{K-1} of many examples, one row each: the positive `shortfalls`.

    >>> hinge_losses([0.0, 0.0], [0.0, 5.0], lower=[2, 1], upper=[2, 3])
    array([[1., 0.],
           [0., 0.]])
    """
    return np.maximum(0.0, shortfalls(scores, thresholds, lower, upper))


def distance(predicted: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> NDArray[Any]:
    """Ranks between each prediction and its interval, 0 inside.

    >>> distance([1, 3, 5], [2, 2, 2], [4, 4, 4])
    array([1, 0, 1])
    """
    p, low, high = (np.asarray(v) for v in (predicted, lower, upper))
    return np.maximum(0, np.maximum(low - p, p - high))


def mean_absolute_error(true: ArrayLike, predicted: ArrayLike) -> float:
    """Mean distance in ranks from the prediction to an exact label (n,) or an interval (n, 2).

    Parameters
    ----------
    true : array-like of shape (n,) or (n, 2)
        Exact ranks or numbers, or inclusive intervals of them.
    predicted : array-like of shape (n,)
        Predictions on the same scale.

    Returns
    -------
    float
        0 if every prediction equals its label or lies in its interval.

    Examples
    --------
    >>> from ordspan.metrics import mean_absolute_error
    >>> mean_absolute_error([1, 2, 3], [1, 3, 5])
    1.0
    >>> mean_absolute_error([[1, 2], [2, 4]], [3, 3])
    0.5
    """
    lower, upper, ranks = _ends(true, predicted)
    return float(distance(ranks, lower, upper).mean())


def macro_mean_absolute_error(true: ArrayLike, predicted: ArrayLike) -> float:
    """Mean over the classes that occur of the mean absolute error within each.

    Classes without an example do not count, and an interval counts as a class of its own: rare
    grades weigh as much as frequent ones.

    Parameters
    ----------
    true, predicted :
        As in `mean_absolute_error`.

    Returns
    -------
    float
        The mean over classes, 0 if every prediction is right.

    Examples
    --------
    >>> from ordspan.metrics import macro_mean_absolute_error
    >>> macro_mean_absolute_error([1, 1, 1, 5], [1, 1, 1, 3])
    1.0
    """
    lower, upper, ranks = _ends(true, predicted)
    errors = distance(ranks, lower, upper)
    _, group = np.unique(np.column_stack([lower, upper]), axis=0, return_inverse=True)
    group = group.ravel()
    return float((np.bincount(group, errors) / np.bincount(group)).mean())


def accuracy(true: ArrayLike, predicted: ArrayLike) -> float:
    """Share of predictions equal to the exact label.

    Parameters
    ----------
    true : array-like of shape (n,)
        Exact ranks or numbers; intervals of width zero count as exact.
    predicted : array-like of shape (n,)
        Predictions on the same scale.

    Returns
    -------
    float
        From 0 to 1.

    Examples
    --------
    >>> from ordspan.metrics import accuracy
    >>> accuracy([1, 2, 3, 3], [1, 2, 3, 1])
    0.75
    """
    lower, upper, ranks = _ends(true, predicted)
    if not np.array_equal(lower, upper):
        raise ValueError("accuracy needs exact labels; for intervals use inside_interval")
    return float((ranks == lower).mean())


def inside_interval(true: ArrayLike, predicted: ArrayLike) -> float:
    """Share of predictions that lie inside the label's interval.

    Parameters
    ----------
    true : array-like of shape (n,) or (n, 2)
        Ranks, numbers or inclusive intervals of them.
    predicted : array-like of shape (n,)
        Ranks or numbers, one for each label.

    Returns
    -------
    float
        From 0 to 1; the accuracy if all labels are exact.

    Examples
    --------
    >>> from ordspan.metrics import inside_interval
    >>> inside_interval([[1, 2], [2, 4]], [3, 3])
    0.5
    """
    lower, upper, ranks = _ends(true, predicted)
    return float((distance(ranks, lower, upper) == 0).mean())


def quadratic_weighted_kappa(true: ArrayLike, predicted: ArrayLike) -> float:
    """Cohen's kappa with squared rank distances: 1 is perfect, 0 is chance.

    Where labels and predictions are one and the same constant, agreement is perfect: 1.

    Parameters
    ----------
    true, predicted :
        As in `accuracy`.

    Returns
    -------
    float
        At most 1; below 0 where agreement is worse than chance.

    Examples
    --------
    >>> from ordspan.metrics import quadratic_weighted_kappa
    >>> quadratic_weighted_kappa([1, 2, 3], [1, 2, 3])
    1.0
    >>> quadratic_weighted_kappa([1, 2, 3], [3, 2, 1])
    -1.0
    """
    lower, upper, ranks = _ends(true, predicted)
    if not np.array_equal(lower, upper):
        raise ValueError("quadratic_weighted_kappa needs exact labels")
    observed = float(((lower - ranks) ** 2).mean())
    # E(t - p)^2 over independent draws = var(t) + var(p) + (mean(t) - mean(p))^2
    by_chance = float(lower.var() + ranks.var() + (lower.mean() - ranks.mean()) ** 2)
    return 1.0 if by_chance == 0.0 else 1.0 - observed / by_chance


def _ends(
    true: ArrayLike, predicted: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    try:
        label = np.asarray(true, dtype=np.float64)
        ranks = np.asarray(predicted, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "metrics work on ranks or numeric grades; encode named grades first, for example "
            "with numpy.searchsorted on classes_"
        ) from error
    if label.ndim == 2 and label.shape[1] == 2:
        lower, upper = label[:, 0], label[:, 1]
    elif label.ndim == 1:
        lower = upper = label
    else:
        raise ValueError(f"labels must have shape (n,) or (n, 2), not {label.shape}")
    if ranks.shape != lower.shape:
        raise ValueError(f"{lower.size} labels but predictions of shape {ranks.shape}")
    if lower.size == 0:
        raise ValueError("needs at least one label")
    if not (np.isfinite(label).all() and np.isfinite(ranks).all()):
        raise ValueError("labels and predictions must be finite; close open ends with intervals()")
    return lower, upper, ranks
