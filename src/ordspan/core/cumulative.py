"""Cumulative probabilities, "at most grade k": what was predicted, and what the labels say."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordspan.core.labels import Ranks
from ordspan.core.memory import Floats


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
