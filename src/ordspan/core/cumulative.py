"""Cumulative probabilities, "at most grade k": what was predicted, and what the labels say."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ordspan.core.labels import Ranks
from ordspan.core.memory import Floats


class CumulativeOutcomes(NamedTuple):
    """For every row and every k < K, "at most grade k": predicted, and according to the label."""

    predicted: Floats
    observed: Floats  # 0 or 1; the expected value if the label leaves it open
    at_least: Floats  # 1 if it is true of every grade of the label
    at_most: Floats  # 1 if it is true of some grade of the label

    def ranked_scores(self) -> Floats:
        """Ranked probability score of every row: the sum of F² - 2 F G + G, F predicted."""
        spread = self.observed * (1.0 - self.observed)
        return ((self.predicted - self.observed) ** 2 + spread).sum(axis=1)


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
    inside = begun & (rank <= upper[:, np.newaxis])
    within = np.where(inside, probability, 0.0)
    lost = ~within.any(axis=1)  # underflow to 0: all grades of the label count equally
    within[lost] = inside[lost]
    share = np.cumsum(within, axis=1)
    observed = np.where(ended, 1.0, share / share[:, -1:])[:, :-1]
    predicted = np.minimum(1.0, np.cumsum(probability, axis=1)[:, :-1])
    bounds = (known[:, :-1].astype(np.float64) for known in (ended, begun))
    return CumulativeOutcomes(predicted, observed, *bounds)
