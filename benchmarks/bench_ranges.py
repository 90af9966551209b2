"""Do ranges hold as many true grades as asked, are probabilities sharp, and what do they cost?

``make bench`` runs this at full size and writes docs/benchmarks-ranges.md; the tests run it at toy
size. Models learn exact labels or ranges; they are judged by the exact grades of other rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import qr
from sklearn.frozen import FrozenEstimator

from measuring import Row, command, graded_rows, ratio, table
from ordspan import CalibratedOrdinal, OrdinalPA, OrdinalSVM, coarsen
from ordspan.data import Dataset, load_dataset
from ordspan.experiments.reproduce import PAPER, load_datasets
from ordspan.learners import Calibration, LinearLearner
from ordspan.metrics import interval_coverage, interval_width, ranked_probability_score

COVERAGES = (0.8, 0.9, 0.95)
SHARES = (0.0, 0.75, 1.0)  # of labels that are ranges
CLOSE = 0.02  # how far coverage may be from what was asked
LOGISTIC = {"california": 1.03, "abalone": 1.03, "parkinson": 1.03, "mslr": 1.06}
ORDERED = 1.01
SIZES = {"era": 5.25, "lev": 2.10, "swd": 2.16}
TRAINED, MANY = 0.7, 100  # share of rows to learn; features from which on peers take minutes


NOTE = """\
Models learn 70 % of the rows, with exact labels or with as many ranges as the row says, and are
judged by the exact grades of the others: means of five random splits, two for MSLR. The first
figure of a row with a width is the share of true grades inside the ranges. A set without a row for
OrderedModel is one on which it did not converge, or, from 100 features on, was not run.
"""


class Split(NamedTuple):
    """Rows to learn, with their labels as the learner is given them, and rows to judge by."""

    X: np.ndarray
    y: np.ndarray
    exact: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    classes: np.ndarray


def splits(data: Dataset, share: float, n_splits: int) -> Iterator[Split]:
    """Random splits of a data set; the same rows for every share of ranges."""
    classes = np.arange(1, data.n_classes + 1)
    for seed in range(n_splits):
        turn = np.random.default_rng(seed).permutation(len(data.ranks))
        n_learned = round(TRAINED * len(turn))
        learned, rest = turn[:n_learned], turn[n_learned:]
        exact = data.ranks[learned]
        y = coarsen(exact, share, classes=classes, random_state=seed) if share else exact
        yield Split(data.X[learned], y, exact, data.X[rest], data.ranks[rest], classes)


def streamed(split: Split) -> CalibratedOrdinal:
    """One pass, calibrated on the way."""
    return CalibratedOrdinal(OrdinalPA()).partial_fit(split.X, split.y, classes=split.classes)


def batch(split: Split) -> CalibratedOrdinal:
    """The best fixed ranker, calibrated by five-fold cross-validation."""
    ranker = OrdinalSVM(classes=split.classes)
    return CalibratedOrdinal(ranker, random_state=0).fit(split.X, split.y)


WAYS = {"stream": streamed, "batch": batch}


def coverages(data: Dataset, n_splits: int) -> list[Row]:
    """Share of true grades inside the ranges, mean over splits, and their mean width."""
    rows = []
    for share in SHARES:
        for way, make in WAYS.items():
            found: dict[float, list[tuple[float, float]]] = {level: [] for level in COVERAGES}
            for split in splits(data, share, n_splits):
                model = make(split)
                for level in COVERAGES:
                    ranges = model.predict_interval(split.X_test, level)
                    held = interval_coverage(split.y_test, ranges, classes=split.classes)
                    found[level].append((held, interval_width(ranges, classes=split.classes)))
            for level, results in found.items():
                held, width = np.mean(results, axis=0)
                work = f"{data.name}, {share:.0%} ranges, {way}, {width:.2f} grades wide"
                bar = f"{level:g} ± {CLOSE:g}"
                rows.append(Row(work, held, bar, abs(held - level) <= CLOSE))
    return rows


def rps(proba: np.ndarray, split: Split) -> float:
    """Ranked probability score on the exact grades of the rows to judge by."""
    return ranked_probability_score(split.y_test, proba, classes=split.classes)


def logistic(split: Split) -> np.ndarray:
    """mord's all-threshold logistic regression, fitted in batch to the exact labels."""
    from mord import LogisticAT

    return LogisticAT(alpha=1.0).fit(split.X, split.exact).predict_proba(split.X_test)


def ordered(split: Split) -> np.ndarray | None:
    """statsmodels' ordered logit, fitted to the exact labels; None if it does not converge."""
    from statsmodels.miscmodels.ordinal_model import OrderedModel

    # it refuses columns that add up to a constant
    _, triangle, turn = qr(split.X - split.X.mean(axis=0), mode="economic", pivoting=True)
    length = np.abs(np.diag(triangle))
    varied = np.sort(turn[: np.count_nonzero(length > 1e-8 * length[0])])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = OrderedModel(split.exact, split.X[:, varied], distr="logit")
        fitted = model.fit(method="bfgs", maxiter=500, disp=False)
    if not fitted.mle_retvals["converged"]:
        return None
    return np.asarray(model.predict(fitted.params, exog=split.X_test[:, varied]))


def against(
    data: Dataset, share: float, n_splits: int, ours: Callable[[Split], Any], theirs: Callable
) -> float | None:
    """RPS of ours as a multiple of theirs, sums over splits; None where theirs has none."""
    mine = other = 0.0
    for split in splits(data, share, n_splits):
        proba = theirs(split)
        if proba is None or not np.isfinite(proba).all():
            return None
        other += rps(proba, split)
        mine += rps(ours(split).predict_proba(split.X_test), split)
    return mine / other


def probabilities(data: Dataset, n_splits: int) -> list[Row]:
    """Probabilities of one pass over ranges and of a batch, against models of exact labels."""
    rows = []
    stream = against(data, 0.75, n_splits, streamed, logistic)
    assert stream is not None
    rows.append(
        Row.at_most(
            f"{data.name}: RPS of one pass over 75 % ranges / mord.LogisticAT on exact labels",
            stream,
            LOGISTIC.get(data.name, 1.03),
        )
    )
    whole = None
    if data.X.shape[1] < MANY:  # its derivatives are found by differences, one feature at a time
        whole = against(data, 0.0, n_splits, batch, ordered)
    if whole is not None:
        work = f"{data.name}: RPS of a batch / statsmodels' OrderedModel, both on exact labels"
        rows.append(Row.at_most(work, whole, ORDERED))
    return rows


def sizes(name: str, n_splits: int) -> Row:
    """Mean size of ranges at 90 %, 60 % of the rows to train, 20 to calibrate, 20 to judge by."""
    data = load_dataset(name)
    classes, found, held = np.arange(1, data.n_classes + 1), [], []
    for seed in range(n_splits):
        turn = np.random.default_rng(seed).permutation(len(data.ranks))
        train, middle, test = np.split(turn, [len(turn) * 6 // 10, len(turn) * 8 // 10])
        ranker = OrdinalSVM(classes=classes).fit(data.X[train], data.ranks[train])
        model = CalibratedOrdinal(FrozenEstimator(ranker)).fit(data.X[middle], data.ranks[middle])
        ranges = model.predict_interval(data.X[test], 0.9)
        found.append(interval_width(ranges, classes=classes))
        held.append(interval_coverage(data.ranks[test], ranges, classes=classes))
    work = f"{name}: mean size at 90 % asked, {np.mean(held):.3f} held, {n_splits} splits"
    return Row.at_most(work, float(np.mean(found)), SIZES[name], " grades")


def costs(scale: float) -> list[Row]:
    """Time of a calibrated pass and of ranges, against a plain pass and plain predictions."""
    rows = []
    for n_classes, bar in ((5, 1.5), (100, 3.0)):
        X, ranks = graded_rows(max(50, round(200_000 * scale)), 136, n_classes)

        def learner(K: int = n_classes) -> LinearLearner:
            return LinearLearner(136, K, average=True, balanced=True)

        examples = learner().examples(X, ranks)

        def calibrated(examples: Any = examples, make: Any = learner, K: int = n_classes) -> None:
            seen, calibration = np.empty(len(examples.lower)), Calibration(K)
            predicted = make().learn(examples, seen=seen)
            calibration.observe(seen, predicted, *examples[1:])

        def plain(examples: Any = examples, make: Any = learner) -> None:
            make().learn(examples)

        measured, _ = ratio(calibrated, plain)
        rows.append(Row.at_most(f"calibrated pass / plain pass, K = {n_classes}", measured, bar))
        model = CalibratedOrdinal().partial_fit(X, ranks, classes=np.arange(1, n_classes + 1))
        measured, _ = ratio(
            lambda m=model, X=X: m.predict_interval(X), lambda m=model, X=X: m.predict(X)
        )
        rows.append(Row.at_most(f"predict_interval / predict, K = {n_classes}", measured, 2.0))
    return rows


def run(scale: float) -> list[Row]:
    """Every figure."""
    n_splits = max(1, round(5 * scale))
    found, missing = load_datasets(list(PAPER), None, lambda name: None)
    for name, reason in missing.items():
        print(f"skipped {name}: {reason}")
    sets = [cut(data, scale) for data in found]
    rows = []
    for data in sets:
        few = max(1, n_splits // 2) if data.X.shape[1] >= MANY else n_splits
        rows += coverages(data, few) + probabilities(data, few)
    rows += [sizes(name, max(2, round(50 * scale))) for name in SIZES]
    return rows + costs(scale)


def cut(data: Dataset, scale: float) -> Dataset:
    """All rows, or a few for a try."""
    if scale >= 1.0:
        return data
    kept = max(200, round(scale * len(data.ranks)))
    return replace(data, X=data.X[:kept], ranks=data.ranks[:kept])


def report(scale: float) -> str:
    """All figures as one table."""
    found = table(run(scale), "Probabilities and ranges: coverage, sharpness and cost")
    return f"{found}\n{NOTE}"


if __name__ == "__main__":
    command(report, __doc__.splitlines()[0])
