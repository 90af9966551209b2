"""Losses and distances on ranks; labels are intervals (lower, upper)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


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
