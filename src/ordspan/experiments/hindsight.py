"""The best fixed ranker in hindsight, and its and the learners' losses along a run."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ordspan.bounds import measure, online_losses, pa_i_repaired_at, summarise_stream
from ordspan.core.measures import hinge_losses
from ordspan.core.state import Floats, Ranks
from ordspan.experiments.protocol import Curve, TrialStream, kept_trials
from ordspan.learners import Learner
from ordspan.learners.batch import solve
from ordspan.learners.rows import make_rows

HINDSIGHT_RUNS = 3
"""Number of first runs per data set and fraction for which the fixed ranker is computed."""
PATH = (0.01, 0.1, 1.0)
"""Values of C of the batch optima that are candidates for the best fixed ranker."""
TOL, SWEEPS = 1e-2, 200


class Fixed(NamedTuple):
    """A ranker that never learns, and its hinge losses on a stream."""

    weights: Floats
    thresholds: Floats
    C: float
    losses: Floats  # (T, K - 1)

    @property
    def total(self) -> float:
        """Cumulative loss after the last trial."""
        return float(self.losses.sum())

    def predictions(self, X: Floats) -> Ranks:
        """Rank of every row: one more than the thresholds that its score reaches."""
        return 1 + np.searchsorted(self.thresholds, X @ self.weights, side="right")


def best_fixed(stream: TrialStream, n_classes: int) -> Fixed:
    """The batch optimum with the smallest cumulative hinge loss on the stream."""
    rankers, optimum = [], None
    rows = make_rows(stream.X, stream.lower, stream.upper)
    for C in PATH:
        optimum = solve(rows, n_classes, C, tol=TOL, max_iter=SWEEPS, start=optimum)
        weights, thresholds = optimum.weights, optimum.thresholds
        losses = hinge_losses(stream.X @ weights, thresholds, stream.lower, stream.upper)
        rankers.append(Fixed(weights, thresholds, C, losses))
    return min(rankers, key=lambda ranker: ranker.total)


def learner_losses(learner: Learner, curve: Curve, stream: TrialStream) -> Floats:
    """Hinge losses (T, K - 1) against the labels trained on, each just before its update."""
    labels = stream.labels(curve)
    if curve.average:
        return _averaged_losses(learner, stream.X, *labels)
    return online_losses(learner, stream.X, *labels)


def _averaged_losses(learner: Learner, X: Floats, lower: Ranks, upper: Ranks) -> Floats:
    """Losses of the averaged iterates, with which an averaged curve predicts."""
    scores, thresholds = np.empty(lower.size), np.empty((lower.size, learner.n_classes - 1))
    labels = zip(lower.tolist(), upper.tolist(), strict=True)
    for t, (row, (bottom, top)) in enumerate(zip(X, labels, strict=True)):
        scores[t] = learner.weights @ row
        thresholds[t] = learner.thresholds
        learner.learn_one(row, bottom, top)
    return hinge_losses(scores, thresholds, lower, upper)


def cumulative(losses: Floats) -> Floats:
    """Sum of the losses up to each of `kept_trials`."""
    return losses.sum(axis=1).cumsum()[kept_trials(len(losses)) - 1]


def bound_along(ranker: Fixed, stream: TrialStream, n_classes: int, C: float) -> Floats:
    """Bound on the cumulative loss of PA-I with this C up to each of `kept_trials`.

    The repaired inequality for any C, on the trials so far, with the ranker as comparator.
    """
    sq_norms = np.square(stream.X).sum(axis=1)
    bounds = []
    for stop in kept_trials(stream.ranks.size).tolist():
        so_far = slice(0, stop)
        labels = stream.lower[so_far], stream.upper[so_far]
        seen = summarise_stream(sq_norms[so_far], *labels, n_classes)
        rival = measure(ranker.weights, ranker.thresholds, ranker.losses[so_far])
        bounds.append(pa_i_repaired_at(seen, rival, C).bound)
    return np.array(bounds)
