"""Section 6 of the paper as functions: what is sampled, who learns from it, what is counted."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordspan.core.labels import Ranks
from ordspan.core.losses import distance
from ordspan.data import Dataset
from ordspan.data.coarsening import coarsen_ranks
from ordspan.learners import (
    AggregateLearner,
    Learner,
    LinearLearner,
    MulticlassPALearner,
    PerceptronLearner,
    PRankLearner,
)
from ordspan.learners.checks import VARIANTS

ALGORITHMS = (*VARIANTS, "PRank", "MCP")
MULTICLASS = {f"MC-{variant}": variant for variant in VARIANTS}
RIVALS = ("PRIL", *MULTICLASS, "OAP-BPM")
"""Algorithms that the paper cites but does not run; PRIL is PRank on the intervals."""

GRID = (1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
TUNING_RUNS = 10
REPORTED, TUNING = 0, 1  # no seed of one is a seed of the other
COINS = 101  # no percentage: the coins of OAP-BPM are not the draws of the intervals
N_TRAJECTORY = 120
"""Points at which the thresholds of the first run are kept."""

RULE = (
    f"the C with the smallest mean absolute error to the labels trained on, after all trials, "
    f"averaged over {TUNING_RUNS} tuning runs whose seeds no reported run shares; for each data "
    "set, fraction and algorithm; the smaller C of equals"
)


class Curve(NamedTuple):
    """A line of the figures: an algorithm, perhaps averaged or by the printed search."""

    algorithm: str
    average: bool = False
    solver: str = "exact"

    @property
    def name(self) -> str:
        """What the tables call it."""
        if self.average:
            return f"{self.algorithm} average"
        return self.algorithm if self.solver == "exact" else f"{self.algorithm} {self.solver}"

    @property
    def has_strength(self) -> bool:
        """Whether there is a C to choose."""
        return self.algorithm.removeprefix("MC-") in ("PA-I", "PA-II")

    @property
    def has_thresholds(self) -> bool:
        """Whether there are thresholds to follow."""
        return self.algorithm != "MCP" and self.algorithm not in MULTICLASS

    @property
    def has_losses(self) -> bool:
        """Whether it has one score and thresholds, so that its hinge loss can be told."""
        return self.algorithm in (*VARIANTS, "PRank", "PRIL")

    @property
    def uses_intervals(self) -> bool:
        """Whether it is trained on the intervals; the others get exact labels."""
        return self.algorithm in (*VARIANTS, "PRIL")

    def learner(
        self, n_features: int, n_classes: int, C: float | None, seed: tuple[int, ...] = (0,)
    ) -> Learner:
        """A fresh learner; the seed is for those that toss coins."""
        if self.algorithm in ("PRank", "PRIL"):
            return PRankLearner(n_features, n_classes)
        if self.algorithm == "OAP-BPM":
            return AggregateLearner(n_features, n_classes, seed=(*seed, COINS))
        if self.algorithm in MULTICLASS:
            variant = MULTICLASS[self.algorithm]
            return MulticlassPALearner(n_features, n_classes, variant, C or 1.0)
        if self.algorithm == "MCP":
            return PerceptronLearner(n_features, n_classes)
        shape = n_features, n_classes
        return LinearLearner(
            *shape, self.algorithm, C or 1.0, self.average, solver=self.solver, balanced=False
        )


def curves(algorithms: tuple[str, ...], *, average: bool, solver: str) -> list[Curve]:
    """The algorithms in their order, then the extra curves asked for."""
    plain = [Curve(name) for name in algorithms]
    variants = [name for name in algorithms if name in VARIANTS]
    extra = [Curve(name, average=True) for name in variants] if average else []
    if solver != "exact":
        extra += [Curve(name, solver=solver) for name in variants]
    return plain + extra


class TrialStream(NamedTuple):
    """The trials of one run: rows, exact labels, and the intervals to learn from."""

    X: NDArray[np.float64]
    ranks: Ranks
    lower: Ranks
    upper: Ranks
    seed: tuple[int, ...]  # what the rows were drawn with

    def part(self, trials: slice) -> TrialStream:
        """Some trials of it."""
        return self._replace(
            X=self.X[trials],
            ranks=self.ranks[trials],
            lower=self.lower[trials],
            upper=self.upper[trials],
        )


def streams(
    data: Dataset, labels: tuple[int, ...], seed: int, kind: int, run: int, trials: int
) -> Iterator[tuple[int, TrialStream]]:
    """The same sampled rows under every percentage of interval labels.

    Rows are drawn with replacement, as in Algorithm 1 ("randomly sample an instance from S"). The
    percentage is of the data set's rows, each of which keeps its interval for the whole run.
    """
    key = (seed, zlib.crc32(data.name.encode()), kind, run)
    rows = np.random.default_rng(key).integers(data.ranks.size, size=trials)
    X, ranks = data.X[rows], data.ranks[rows]
    for percent in labels:
        rng = np.random.default_rng([*key, percent])
        lower, upper = coarsen_ranks(data.ranks, percent / 100, data.n_classes, rng)
        yield percent, TrialStream(X, ranks, lower[rows], upper[rows], key)


def predictions(learner: Learner, curve: Curve, stream: TrialStream) -> Ranks:
    """Rank predicted for every trial before its label was seen."""
    if curve.uses_intervals:
        predicted = learner.learn_many(stream.X, stream.lower, stream.upper, predict=True)
    else:
        predicted = learner.learn_many(stream.X, stream.ranks, predict=True)
    assert predicted is not None
    return predicted


class Outcome(NamedTuple):
    """Errors of every trial, one byte each."""

    errors: NDArray[np.uint8]
    interval_errors: NDArray[np.uint8]


def outcome(predicted: Ranks, curve: Curve, stream: TrialStream) -> Outcome:
    """Distance to the exact label, and to the label it was trained on."""
    errors = distance(predicted, stream.ranks, stream.ranks).astype(np.uint8)
    if not curve.uses_intervals:
        return Outcome(errors, errors)
    return Outcome(errors, distance(predicted, stream.lower, stream.upper).astype(np.uint8))


def trajectory_trials(trials: int) -> NDArray[np.int64]:
    """Trials after which thresholds are kept: dense at first, then ever sparser."""
    points = np.geomspace(1, trials, min(N_TRAJECTORY, trials))
    return np.unique(np.round(points).astype(np.int64))


def followed(learner: Learner, curve: Curve, stream: TrialStream) -> tuple[Ranks, NDArray[Any]]:
    """Predictions as in one pass, and the thresholds after each of `trajectory_trials`."""
    predicted, kept, start = [], [], 0
    for stop in trajectory_trials(stream.ranks.size):
        part = stream.part(slice(start, int(stop)))
        predicted.append(predictions(learner, curve, part))
        kept.append(learner.thresholds)
        start = int(stop)
    return np.concatenate(predicted), np.concatenate(kept)
