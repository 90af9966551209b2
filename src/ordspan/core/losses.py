"""Losses and distances on ranks; labels are intervals (lower, upper)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ordspan.core.labels import Ranks


def shortfalls(
    scores: ArrayLike, thresholds: ArrayLike, lower: ArrayLike, upper: ArrayLike
) -> NDArray[np.float64]:
    """How far each threshold is from clearing the margin of 1; minus infinity inside the label.

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


def quadratic_kappa(true: Ranks, predicted: Ranks, counts: Ranks | None = None) -> float:
    """Cohen's kappa with squared distances, of pairs of ranks that occur once or ``counts`` times.

    scikit-learn's takes pairs only, not the counts that files are read into, and is NaN if all
    ranks are equal; here agreement is perfect then.

    >>> quadratic_kappa(np.array([1, 2, 3]), np.array([1, 2, 2]), counts=np.array([5, 5, 5]))
    0.6666666666666666
    """
    mean = partial(np.average, weights=counts)
    t, p = mean(true), mean(predicted)
    # E(t - p)^2 over independent draws = var(t) + var(p) + (mean(t) - mean(p))^2
    by_chance = mean((true - t) ** 2) + mean((predicted - p) ** 2) + (t - p) ** 2
    observed = mean((true - predicted) ** 2)
    return 1.0 if by_chance == 0.0 else float(1.0 - observed / by_chance)
