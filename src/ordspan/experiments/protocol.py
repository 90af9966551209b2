"""The protocol of section 6 of the paper: sampling, learners, and errors along a run."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordspan.core.measures import distance
from ordspan.core.state import Floats, Ranks
from ordspan.datasets import Dataset
from ordspan.datasets.coarsening import coarsen_ranks
from ordspan.experiments.committee import AggregateLearner
from ordspan.learners import (
    Learner,
    LinearLearner,
    MulticlassPALearner,
    PerceptronLearner,
    PRankLearner,
)
from ordspan.learners.linear import VARIANTS

ALGORITHMS = (*VARIANTS, "PRank", "MCP")
MULTICLASS = {f"MC-{variant}": variant for variant in VARIANTS}
CITED_ALGORITHMS = ("PRIL", *MULTICLASS, "OAP-BPM")
"""Algorithms that the paper cites but does not run; PRIL is PRank trained on intervals."""

GRID = (1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
TUNING_RUNS = 10
REPORTED, TUNING = 0, 1  # part of the seeds, so that they never coincide
COINS = 101  # not a percentage, so OAP-BPM's draws differ from those of the intervals
EARLY = 10  # the errors after T / EARLY trials are kept too, for a claim about them

# part of the stored settings: another wording would make existing folders refuse to resume
RULE = (
    f"the C with the smallest mean absolute error to the labels trained on, after all trials, "
    f"averaged over {TUNING_RUNS} tuning runs whose seeds no reported run shares; for each data "
    "set, fraction and algorithm; the smaller C of equals"
)


class Curve(NamedTuple):
    """A curve in the figures: an algorithm, optionally averaged or with the printed search."""

    algorithm: str
    average: bool = False
    solver: str = "exact"

    @property
    def name(self) -> str:
        """Name in tables."""
        if self.average:
            return f"{self.algorithm} average"
        return self.algorithm if self.solver == "exact" else f"{self.algorithm} {self.solver}"

    @property
    def is_tunable(self) -> bool:
        """Whether it has a C to tune."""
        return self.algorithm.removeprefix("MC-") in ("PA-I", "PA-II")

    @property
    def has_thresholds(self) -> bool:
        """Whether it has thresholds."""
        return self.algorithm != "MCP" and self.algorithm not in MULTICLASS

    @property
    def has_losses(self) -> bool:
        """Whether it has one score and thresholds, and thus a hinge loss."""
        return self.algorithm in (*VARIANTS, "PRank", "PRIL")

    @property
    def uses_intervals(self) -> bool:
        """Whether it is trained on the intervals; the others get exact labels."""
        return self.algorithm in (*VARIANTS, "PRIL")

    def learner(
        self, n_features: int, n_classes: int, C: float | None, seed: tuple[int, ...] = (0,)
    ) -> Learner:
        """A new learner; the seed is used by randomised ones."""
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
    """The algorithms in order, then the requested extra curves."""
    plain = [Curve(name) for name in algorithms]
    variants = [name for name in algorithms if name in VARIANTS]
    extra = [Curve(name, average=True) for name in variants] if average else []
    if solver != "exact":
        extra += [Curve(name, solver=solver) for name in variants]
    return plain + extra


class TrialStream(NamedTuple):
    """The trials of one run: rows, exact labels, and the intervals to learn from."""

    X: Floats
    ranks: Ranks
    lower: Ranks
    upper: Ranks
    seed: tuple[int, ...]  # with which the rows were drawn

    def labels(self, curve: Curve) -> tuple[Ranks, Ranks]:
        """Ends of the labels that a curve is trained on."""
        return (self.lower, self.upper) if curve.uses_intervals else (self.ranks, self.ranks)


def streams(
    data: Dataset, labels: tuple[int, ...], seed: int, kind: int, run: int, trials: int
) -> Iterator[TrialStream]:
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
        yield TrialStream(X, ranks, lower[rows], upper[rows], key)


@cache
def kept_trials(trials: int, points: int = 300) -> NDArray[np.int64]:
    """Trials after which results are kept, half of them evenly, half logarithmically spaced.

    >>> kept_trials(4)
    array([1, 2, 3, 4])
    """
    if trials <= points:
        return np.arange(1, trials + 1)
    half = points // 2
    spread = np.concatenate([np.linspace(1, trials, half), np.geomspace(1, trials, half)])
    return np.unique([*spread.round().astype(np.int64), trials // EARLY])


def predictions(learner: Learner, curve: Curve, stream: TrialStream) -> Ranks:
    """Rank predicted for every trial before learning its label."""
    predicted = learner.learn_many(stream.X, *stream.labels(curve), predict=True)
    assert predicted is not None
    return predicted


def error_sums(predicted: Ranks, stream: TrialStream, *used: Ranks) -> NDArray[np.uint32]:
    """Distances to the exact labels and to those ``used``, summed up to each of `kept_trials`."""
    kept = kept_trials(predicted.size) - 1
    both = (stream.ranks, stream.ranks), used
    return np.array([distance(predicted, *ends).cumsum()[kept] for ends in both], dtype=np.uint32)


def thresholds_along(learner: Learner, curve: Curve, stream: TrialStream) -> Floats:
    """Thresholds after each of `kept_trials`, (trials, K - 1)."""
    thresholds, start = [], 0
    lower, upper = stream.labels(curve)
    for stop in kept_trials(lower.size).tolist():
        learner.learn_many(stream.X[start:stop], lower[start:stop], upper[start:stop])
        thresholds.append(learner.thresholds)
        start = stop
    return np.array(thresholds)
