"""The protocol of section 6 of the paper: sampling, learners, errors and losses along a run."""

import zlib
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordspan.bounds import measure, online_losses, pa_i_repaired, summarise_stream
from ordspan.commands.jobs import ReproduceJob
from ordspan.core.measures import distance, hinge_losses
from ordspan.core.state import Floats, Ranks
from ordspan.datasets import Dataset
from ordspan.datasets.coarsening import coarsen_ranks
from ordspan.experiments.results import HINDSIGHT
from ordspan.learners import LinearLearner, MulticlassPALearner, PerceptronLearner, PRankLearner
from ordspan.learners.base import rank_among
from ordspan.learners.batch import Optimum, solve
from ordspan.learners.linear import CLASSES, VARIANTS, variants_with
from ordspan.learners.rows import make_rows

ALGORITHMS = (*VARIANTS, "PRank", "MCP")
MULTICLASS = {f"MC-{variant}": variant for variant in variants_with(CLASSES)}
CITED_ALGORITHMS = ("PRIL", *MULTICLASS)
"""Algorithms that the paper cites but does not run; PRIL is PRank trained on intervals."""

GRID = (1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
TUNING_RUNS = 10
REPORTED, TUNING = 0, 1  # part of the seeds, so that they never coincide
EARLY = 10  # the errors after T / EARLY trials are kept too, for a claim about them

# part of the stored settings: another wording would make existing folders refuse to resume
RULE = (
    f"the C with the smallest mean absolute error to the labels trained on, after all trials, "
    f"averaged over {TUNING_RUNS} tuning runs whose seeds no reported run shares; for each data "
    "set, fraction and algorithm; the smaller C of equals"
)


HINDSIGHT_RUNS = 3
"""The fixed ranker is computed for the first runs of a data set and fraction, this many."""
PATH = (0.01, 0.1, 1.0)
"""Values of C of the batch optima that are candidates for the best fixed ranker."""
TOL, SWEEPS = 1e-2, 200


class Curve(NamedTuple):
    """A curve in the figures: an algorithm, optionally averaged or with the printed search."""

    algorithm: str
    average: bool = False
    solver: str = "exact"

    @property
    def name(self) -> str:
        """The algorithm, with what differs from the paper's: PA-I average, PA sca."""
        extra = "average" if self.average else self.solver.removeprefix("exact")
        return f"{self.algorithm} {extra}".rstrip()

    @property
    def is_tunable(self) -> bool:
        """Whether it has a C to tune."""
        return self.algorithm.removeprefix("MC-") in ("PA-I", "PA-II")

    @property
    def has_thresholds(self) -> bool:
        """Whether it learns one score and thresholds, and thus has a hinge loss."""
        return self != FIXED and not self.algorithm.startswith("MC")

    @property
    def uses_intervals(self) -> bool:
        """Whether it is trained on the intervals; the others get exact labels."""
        return self.algorithm in (*VARIANTS, "PRIL", HINDSIGHT)

    def learner(self, data: Dataset, C: float | None) -> Any:
        """An untrained learner for a data set."""
        shape, C = (data.X.shape[1], data.n_classes), C or 1.0
        if self.algorithm in VARIANTS:
            return LinearLearner(*shape, self.algorithm, C, self.average, solver=self.solver)
        if self.algorithm in MULTICLASS:
            return MulticlassPALearner(*shape, MULTICLASS[self.algorithm], C)
        return (PerceptronLearner if self.algorithm == "MCP" else PRankLearner)(*shape)


def curves_of(job: ReproduceJob) -> list[Curve]:
    """The algorithms in order, then the requested extra curves."""
    variants = [name for name in job.algorithms if name in VARIANTS]
    averaged = [Curve(name, average=True) for name in variants if job.average]
    printed = [] if job.solver == "exact" else variants_with(job.solver)
    searched = [Curve(name, solver=job.solver) for name in variants if name in printed]
    return [*map(Curve, job.algorithms), *averaged, *searched]


FIXED = Curve(HINDSIGHT)
"""The best fixed ranker in hindsight, which knows all labels in advance."""


class TrialStream(NamedTuple):
    """The trials of one run: rows, exact labels, and the intervals to learn from."""

    X: Floats
    ranks: Ranks
    lower: Ranks
    upper: Ranks

    def labels(self, curve: Curve) -> tuple[Ranks, Ranks]:
        """Ends of the labels that a curve is trained on."""
        return (self.lower, self.upper) if curve.uses_intervals else (self.ranks, self.ranks)


def streams(job: ReproduceJob, data: Dataset, kind: int, run: int) -> dict[int, TrialStream]:
    """The same sampled rows under every percentage of interval labels.

    Rows are drawn with replacement, as in Algorithm 1 ("randomly sample an instance from S"). The
    percentage is of the data set's rows, each of which keeps its interval for the whole run.
    """
    key = (job.seed, zlib.crc32(data.name.encode()), kind, run)
    rows = np.random.default_rng(key).integers(data.ranks.size, size=job.trials)
    X, ranks, sampled = data.X[rows], data.ranks[rows], {}
    for percent in job.fractions:
        rng = np.random.default_rng([*key, percent])
        lower, upper = coarsen_ranks(data.ranks, percent / 100, data.n_classes, rng)
        sampled[percent] = TrialStream(X, ranks, lower[rows], upper[rows])
    return sampled


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


def errors_along(
    data: Dataset, curve: Curve, C: float | None, stream: TrialStream
) -> NDArray[np.uint32]:
    """Distances to the exact labels and to those trained on, summed up to each of `kept_trials`.

    Every trial is predicted before its label is learned.
    """
    used = stream.labels(curve)
    if curve == FIXED:
        best, _ = best_fixed(stream, data.n_classes)
        predicted = rank_among(best.thresholds, stream.X @ best.weights)
    else:
        predicted = curve.learner(data, C).learn_many(stream.X, *used, predict=True)
    kept, both = kept_trials(predicted.size) - 1, ((stream.ranks, stream.ranks), used)
    return np.array([distance(predicted, *ends).cumsum()[kept] for ends in both], dtype=np.uint32)


def thresholds_along(learner: Any, curve: Curve, stream: TrialStream) -> Floats:
    """Thresholds after each of `kept_trials`, (trials, K - 1)."""
    thresholds, start = [], 0
    for stop in kept_trials(stream.ranks.size).tolist():
        lower, upper = (ends[start:stop] for ends in stream.labels(curve))
        learner.learn_many(stream.X[start:stop], lower, upper)
        thresholds.append(learner.thresholds)
        start = stop
    return np.array(thresholds)


def best_fixed(stream: TrialStream, n_classes: int) -> tuple[Optimum, Floats]:
    """The batch optimum with the smallest cumulative hinge loss, and its losses (T, K - 1)."""
    rankers, optimum = [], None
    rows = make_rows(stream.X, stream.lower, stream.upper)
    for C in PATH:
        optimum = solve(rows, n_classes, C, tol=TOL, max_iter=SWEEPS, start=optimum)
        scores = stream.X @ optimum.weights
        losses = hinge_losses(scores, optimum.thresholds, stream.lower, stream.upper)
        rankers.append((optimum, losses))
    return min(rankers, key=lambda ranker: ranker[1].sum())


def learner_losses(learner: Any, curve: Curve, stream: TrialStream) -> Floats:
    """Hinge losses (T, K - 1) against the labels trained on, each just before its update."""
    lower, upper = stream.labels(curve)
    if not curve.average:
        return online_losses(learner, stream.X, lower, upper)
    # an averaged curve loses what the average of its iterates loses
    scores, thresholds = np.empty(lower.size), np.empty((lower.size, learner.n_classes - 1))
    for t, row in enumerate(stream.X):
        scores[t], thresholds[t] = learner.weights @ row, learner.thresholds
        learner.learn_one(row, int(lower[t]), int(upper[t]))
    return hinge_losses(scores, thresholds, lower, upper)


def cumulative(losses: Floats) -> Floats:
    """Sum of the losses up to each of `kept_trials`."""
    return losses.sum(axis=1).cumsum()[kept_trials(len(losses)) - 1]


def bound_along(
    ranker: Optimum, losses: Floats, stream: TrialStream, n_classes: int, C: float
) -> Floats:
    """Bound on the cumulative loss of PA-I with this C up to each of `kept_trials`.

    The repaired inequality for any C, on the trials so far, with the ranker as comparator.
    """
    sq_norms, bounds = np.square(stream.X).sum(axis=1), []
    for stop in kept_trials(stream.ranks.size).tolist():
        labels = stream.lower[:stop], stream.upper[:stop]
        trials = summarise_stream(sq_norms[:stop], *labels, n_classes)
        rival = measure(ranker.weights, ranker.thresholds, losses[:stop])
        bounds.append(pa_i_repaired(trials, rival, C).bound)
    return np.array(bounds)
