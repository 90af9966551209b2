"""Measures of predictions: losses, distances and agreement of ranks, cumulative probabilities.

Labels are ranges of ranks (lower, upper).
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ordspan.core.state import Floats, Ranks


def shortfalls(
    scores: ArrayLike, thresholds: ArrayLike, lower: ArrayLike, upper: ArrayLike
) -> Floats:
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
) -> Floats:
    """The losses l_1..l_{K-1} of many examples, one row each: the positive `shortfalls`.

    >>> hinge_losses([0.0, 0.0], [0.0, 5.0], lower=[2, 1], upper=[2, 3])
    array([[1., 0.],
           [0., 0.]])
    """
    return np.maximum(0.0, shortfalls(scores, thresholds, lower, upper))


def distance(predicted: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> NDArray[Any]:
    """Ranks between each prediction and its range, 0 inside.

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


# -- probabilities of "at most rank k" ------------------------------------------------------------


class CumulativeOutcomes(NamedTuple):
    """For every row and every k < K, "at most grade k": predicted, and according to the label."""

    predicted: Floats
    observed: Floats  # 0 or 1; the expected value if the label leaves it open
    at_least: Floats  # 1 if it is true of every grade of the label
    at_most: Floats  # 1 if it is true of some grade of the label


def cumulative_outcomes(probability: Floats, lower: Ranks, upper: Ranks) -> CumulativeOutcomes:
    """Cumulative probabilities of the predictions and of the labels.

    >>> known = cumulative_outcomes(np.array([[0.25, 0.25, 0.5]]), np.array([2]), np.array([3]))
    >>> known.predicted, known.observed
    (array([[0.25, 0.5 ]]), array([[0.        , 0.33333333]]))
    >>> known.at_least, known.at_most
    (array([[0., 0.]]), array([[0., 1.]]))
    """
    rank = np.arange(1, probability.shape[1] + 1)
    begun, ended = rank >= lower[:, np.newaxis], rank >= upper[:, np.newaxis]
    inside = ranks_inside(lower, upper, rank.size)
    within = np.where(inside, probability, 0.0)
    lost = ~within.any(axis=1)  # underflow to 0: all grades of the label count equally
    within[lost] = inside[lost]
    share = np.cumsum(within, axis=1)
    observed = np.where(ended, 1.0, share / share[:, -1:])[:, :-1]
    predicted = np.minimum(1.0, np.cumsum(probability, axis=1)[:, :-1])
    bounds = (known[:, :-1].astype(np.float64) for known in (ended, begun))
    return CumulativeOutcomes(predicted, observed, *bounds)


def ranks_inside(lower: Ranks, upper: Ranks, n_classes: int) -> NDArray[np.bool_]:
    """Whether each rank 1..K lies inside each label, (n, K).

    >>> ranks_inside(np.array([1, 2]), np.array([1, 3]), 3)
    array([[ True, False, False],
           [False,  True,  True]])
    """
    rank = np.arange(1, n_classes + 1)
    return (rank >= lower[:, np.newaxis]) & (rank <= upper[:, np.newaxis])


def ranked_scores(predicted: Floats, observed: Floats) -> Floats:
    """Ranked probability score: the sum over k of F² - 2 F G + G, F predicted and G observed.

    >>> ranked_scores(np.array([[0.5, 1.0]]), np.array([[0.0, 1.0]]))
    array([0.25])
    """
    # written without cancellation
    return ((predicted - observed) ** 2 + observed * (1.0 - observed)).sum(axis=-1)


class ReliabilityBins:
    """Cumulative outcomes in bins of equal width by the predicted probability.

    Sums are continued value by value, so they do not depend on how rows are batched.

    >>> bins = ReliabilityBins(10)
    >>> bins.add(cumulative_outcomes(np.array([[0.25, 0.75]]), np.array([1]), np.array([1])))
    >>> bins.counts.tolist(), bins.means.predicted, bins.means.observed
    ([1], array([0.25]), array([1.]))
    """

    def __init__(self, n_bins: int) -> None:
        self._counts = np.zeros(n_bins, dtype=np.int64)
        self._sums = np.zeros((len(CumulativeOutcomes._fields), n_bins))

    def add(self, outcomes: CumulativeOutcomes) -> None:
        """Add the outcomes of some rows."""
        n_bins = self._counts.size
        place = np.minimum(n_bins - 1, (n_bins * outcomes.predicted).astype(np.int64)).ravel()
        self._counts += np.bincount(place, minlength=n_bins)
        place = np.append(np.arange(n_bins), place)  # the sums so far go first
        for sums, values in zip(self._sums, outcomes, strict=True):
            sums[:] = np.bincount(place, np.append(sums, values))

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of probabilities in each bin that is not empty."""
        return self._counts[self._counts > 0]

    @property
    def means(self) -> CumulativeOutcomes:
        """Means over each bin that is not empty."""
        return CumulativeOutcomes(*(self._sums[:, self._counts > 0] / self.counts))
