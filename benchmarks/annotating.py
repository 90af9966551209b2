"""Simulated annotators: their answers, the items they are asked about, and what a model learns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from sklearn.preprocessing import StandardScaler

from ordspan.core.losses import distance
from ordspan.data import Dataset
from ordspan.learners import Calibration, LinearLearner
from ordspan.learners.base import rank_among

STRATEGIES = RANDOM, HALF, WIDEST = "random", "half", "widest"
KINDS = RANGE, GUESS, TRUE = "range", "best guess", "true grade"
DOUBT, DOUBTS = 1.5, (0.75, 1.5, 2.5)  # largest doubt about an item, in grades
CLEAR = 2.0  # standard errors
COVERAGE = 0.9  # of the predicted ranges whose width decides which item is next
ROUNDING = 1e-9  # a grade exactly as far away as the doubt still counts as inside

Ends = tuple[np.ndarray, np.ndarray]  # lowest and highest grade of every answer


class Items(NamedTuple):
    """A pool of items to label, the annotator's answer to each, and test items."""

    X: np.ndarray
    ranks: np.ndarray
    answers: dict[str, Ends]
    X_test: np.ndarray
    ranks_test: np.ndarray
    n_classes: int

    @property
    def unsure(self) -> np.ndarray:
        """Whether more than one grade is consistent with what the annotator perceives."""
        lower, upper = self.answers[RANGE]
        return lower < upper


class Run(NamedTuple):
    """The items in the order asked, and the model before the first and after every answer."""

    asked: np.ndarray
    at_random: np.ndarray
    weights: np.ndarray
    thresholds: np.ndarray

    def predicted(self, X: np.ndarray) -> np.ndarray:
        """Grade that each model predicts for each item, (n_answers + 1, n)."""
        scores = self.weights @ X.T
        return 1 + sum(scores >= cut[:, np.newaxis] for cut in self.thresholds.T)

    def errors(self, items: Items) -> np.ndarray:
        """Mean absolute error on the held-out items after every answer."""
        return np.abs(self.predicted(items.X_test)[1:] - items.ranks_test).mean(axis=1)


def perceive(
    ranks: np.ndarray, doubt: np.ndarray, noise: np.ndarray, n_classes: int
) -> dict[str, Ends]:
    """Answers of each kind by an annotator who perceives ``ranks + doubt * noise``.

    The noise lies between -1 and 1, so the true grade is at most ``doubt`` away from what is
    perceived. The range contains all grades that close; the best guess is the closest one.
    """
    seen = ranks + doubt * noise
    lower = np.maximum(1, np.ceil(seen - doubt - ROUNDING)).astype(np.int64)
    upper = np.minimum(n_classes, np.floor(seen + doubt + ROUNDING)).astype(np.int64)
    guess = np.clip(np.rint(seen), 1, n_classes).astype(np.int64)
    return {RANGE: (lower, upper), GUESS: (guess, guess), TRUE: (ranks, ranks)}


def draw_items(data: Dataset, n_pool: int, n_test: int, doubt: float, seed: int) -> Items:
    """Random items; the doubt about each is uniform between 0 and ``doubt`` grades."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(data.ranks))
    pool, test = rows[:n_pool], rows[n_pool : n_pool + n_test]
    doubts, noise = doubt * rng.random(n_pool), rng.uniform(-1.0, 1.0, n_pool)
    answers = perceive(data.ranks[pool], doubts, noise, data.n_classes)
    scaler = StandardScaler().fit(data.X[pool])
    X, X_test = (scaler.transform(data.X[part]) for part in (pool, test))
    return Items(X, data.ranks[pool], answers, X_test, data.ranks[test], data.n_classes)


def new_learner(items: Items) -> LinearLearner:
    """A learner with the settings of `OrdinalPA`."""
    return LinearLearner(items.X.shape[1], items.n_classes, average=True, balanced=True)


def widest(scores: np.ndarray, thresholds: np.ndarray, known: Calibration) -> np.ndarray:
    """Indices of the scores with the widest predicted range."""
    lower, upper = known.ranges(scores, rank_among(thresholds, scores), COVERAGE)
    return np.flatnonzero(upper - lower == (upper - lower).max())


def annotate(items: Items, kind: str, way: str, n_answers: int, seed: int) -> Run:
    """Ask about one item after another; the model learns each answer immediately."""
    rng = np.random.default_rng([seed, 1])  # independent of the draw of the items
    learner, known = new_learner(items), Calibration(items.n_classes)
    lower, upper = items.answers[kind]
    left, asked = np.arange(len(items.X)), np.empty(n_answers, dtype=np.int64)
    at_random = np.full(n_answers, way == RANDOM)
    if way == HALF:
        at_random[::2] = True
    models = [(learner.weights, learner.thresholds)]
    for number in range(n_answers):
        choice = left
        if not at_random[number]:
            weights, thresholds = models[-1]
            choice = left[widest((items.X @ weights)[left], thresholds, known)]
        item = asked[number] = choice[rng.integers(choice.size)]
        row = slice(item, item + 1)
        learner.learn_many(items.X[row], lower[row], upper[row], calibration=known)
        models.append((learner.weights, learner.thresholds))
        left = left[left != item]
    return Run(asked, at_random, *map(np.array, zip(*models, strict=True)))


class Estimate(NamedTuple):
    """Mean distance, in grades, of predictions made before each answer, over all late questions."""

    at_random: float  # to the answers to random questions
    widest: float  # to the answers to the other questions
    every: float  # to all answers
    left: float  # to the answers that the items not asked so far would get
    left_true: float  # to the true grades of those items
    held_out: float  # to the true grades of the held-out items


def estimate(items: Items, kind: str, run: Run, first: int) -> Estimate:
    """Estimates of the error by the answers from question ``first`` on, and the actual error."""
    numbers = np.arange(first, run.asked.size)
    before, at_random = run.predicted(items.X)[numbers], run.at_random[numbers]
    missed = distance(before, *items.answers[kind])
    turn = np.full(len(items.X), run.asked.size)
    turn[run.asked] = np.arange(run.asked.size)
    left = turn >= numbers[:, np.newaxis]
    asked_about = missed[np.arange(numbers.size), run.asked[numbers]]
    true = np.abs(before - items.ranks)
    held_out = np.abs(run.predicted(items.X_test)[numbers] - items.ranks_test)
    means = [np.average(error, axis=1, weights=left).mean() for error in (missed, true)]
    return Estimate(
        asked_about[at_random].mean(),
        asked_about[~at_random].mean(),
        asked_about.mean(),
        *means,
        held_out.mean(),
    )


class Size(NamedTuple):
    """How much to run."""

    seeds: int = 20
    pool: int = 2000
    test: int = 1000
    points: tuple[int, ...] = (25, 50, 100, 200, 400, 800)
    late: int = 100  # answers to skip before estimating the error


class Curves(NamedTuple):
    """By seed and answer: the error after the answer, and whether the annotator was unsure."""

    error: np.ndarray
    unsure: np.ndarray

    def at(self, budgets: Sequence[int], ratio: float = 1.0) -> np.ndarray:
        """Error once the budget is spent, (seeds, budgets)."""
        cost = np.cumsum(np.where(self.unsure, ratio, 1.0), axis=1)
        last = [np.searchsorted(spent, budgets, side="right") - 1 for spent in cost]
        return np.take_along_axis(self.error, np.array(last), axis=1)


class Found(NamedTuple):
    """Results on one data set; curves by kind of answer, strategy and largest doubt."""

    curves: dict[tuple[str, str, float], Curves]
    estimates: np.ndarray  # with ranges and the strategy HALF, one row per seed
    whole: float  # see `whole_pool_error`
    answers: dict[float, np.ndarray]  # by doubt; see `answer_shares`


def answer_shares(items: Items) -> tuple[float, float, float]:
    """Share of unsure items, mean number of grades in a range, and share of wrong best guesses."""
    lower, upper = items.answers[RANGE]
    wrong = np.mean(items.answers[GUESS][0] != items.ranks)
    return float(items.unsure.mean()), float(np.mean(upper - lower + 1)), float(wrong)


def settings() -> list[tuple[str, str, float]]:
    """All strategies at the usual doubt, random questions at the other doubts."""
    usual = list(product(KINDS, STRATEGIES, [DOUBT]))
    return usual + [(kind, RANDOM, doubt) for kind in KINDS for doubt in DOUBTS if doubt != DOUBT]


def whole_pool_error(items: Items) -> float:
    """Error on the held-out items after one pass over the true grades of the whole pool."""
    learner = new_learner(items)
    learner.learn_many(items.X, items.ranks)
    return float(np.abs(learner.predict_many(items.X_test) - items.ranks_test).mean())


def simulate(data: Dataset, size: Size) -> Found:
    """Run every setting on the same draws of items."""
    runs: dict[tuple[str, str, float], list[tuple[np.ndarray, np.ndarray]]] = {}
    answers: dict[float, list[tuple[float, float, float]]] = {doubt: [] for doubt in DOUBTS}
    estimates, whole = [], []
    for seed in range(size.seeds):
        drawn = {doubt: draw_items(data, size.pool, size.test, doubt, seed) for doubt in DOUBTS}
        for doubt, items in drawn.items():
            answers[doubt].append(answer_shares(items))
        for kind, way, doubt in settings():
            items = drawn[doubt]
            run = annotate(items, kind, way, size.points[-1], seed)
            curve = run.errors(items), items.unsure[run.asked]
            runs.setdefault((kind, way, doubt), []).append(curve)
            if (kind, way) == (RANGE, HALF):
                estimates.append(estimate(items, kind, run, size.late))
        whole.append(whole_pool_error(drawn[DOUBT]))
    curves = {key: Curves(*map(np.array, zip(*each, strict=True))) for key, each in runs.items()}
    means = {doubt: np.mean(each, axis=0) for doubt, each in answers.items()}
    return Found(curves, np.array(estimates), float(np.mean(whole)), means)


class Change(NamedTuple):
    """Relative change of a mean error, paired by seed, and its standard error."""

    mean: float
    error: float

    @classmethod
    def between(cls, errors: np.ndarray, base: np.ndarray) -> Change:
        """The change from ``base`` to ``errors``."""
        by = (errors - base) / base.mean()
        return cls(float(by.mean()), float(by.std(ddof=1) / np.sqrt(by.size)))

    @property
    def clear(self) -> int:
        """-1 or 1 where the mean is more than two standard errors from zero, else 0."""
        return int(np.sign(self.mean)) * (abs(self.mean) > CLEAR * self.error)

    def __str__(self) -> str:
        text = f"{self.mean:+.1%} ± {self.error:.1%}"
        return f"**{text}**" if self.clear else text


def changes(errors: np.ndarray, base: np.ndarray) -> list[Change]:
    """The change in every column, and in their mean."""
    pairs = [*zip(errors.T, base.T, strict=True), (errors.mean(axis=1), base.mean(axis=1))]
    return [Change.between(*pair) for pair in pairs]


def asked_changes(found: Found, kind: str, way: str, size: Size) -> list[Change]:
    """Change from random questions to a strategy, by number of answers."""
    errors, base = (found.curves[kind, each, DOUBT].at(size.points) for each in (way, RANDOM))
    return changes(errors, base)


def cost_changes(found: Found, kind: str, ratio: float, doubt: float, size: Size) -> list[Change]:
    """Change from exact answers to ranges, with random questions, by cost."""
    ranges, exact = (found.curves[each, RANDOM, doubt] for each in (RANGE, kind))
    return changes(ranges.at(size.points), exact.at(size.points, ratio))
