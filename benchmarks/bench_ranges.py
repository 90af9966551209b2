"""Do predicted ranges reach their coverage, are probabilities sharp, and what do they cost?

``make bench`` runs this at full size and writes docs/measured/ranges.md; the tests run it at toy
size. Models learn exact labels or ranges and are tested on the exact grades of other rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import qr

from bench_peers import available
from measuring import Row, command, graded_rows, ratio, table
from ordspan import CalibratedOrdinal, OrdinalPA, OrdinalSVM, coarsen
from ordspan.datasets import Dataset
from ordspan.learners import Calibration, LinearLearner
from ordspan.metrics import interval_coverage, interval_width, ranked_probability_score

COVERAGES = (0.8, 0.9, 0.95)
SHARES = (0.0, 0.75, 1.0)  # of labels that are ranges
CLOSE = 0.02  # allowed deviation of the coverage
LOGISTIC = {"california": 1.03, "abalone": 1.03, "parkinson": 1.03, "mslr": 1.06}
ORDERED = 1.01
TRAINED, MANY = 0.7, 100  # share of training rows; number of features where peers take minutes


NOTE = """\
Models learn 70 % of the rows, with exact labels or the given share of ranges, and are tested on the
exact grades of the others: means of five random splits, two for MSLR. In rows with a width, the
measured value is the share of true grades inside the predicted ranges. OrderedModel has no row for
data sets on which it did not converge, or that have 100 features or more.
"""


class Split(NamedTuple):
    """Training rows, with the labels that the learner is given and the exact ones; test rows."""

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
    """One pass, calibrated along the way."""
    return CalibratedOrdinal(OrdinalPA()).partial_fit(split.X, split.y, classes=split.classes)


def batch(split: Split) -> CalibratedOrdinal:
    """The best fixed ranker, calibrated by five-fold cross-validation."""
    ranker = OrdinalSVM(classes=split.classes)
    return CalibratedOrdinal(ranker, random_state=0).fit(split.X, split.y)


WAYS = {"stream": streamed, "batch": batch}


def coverages(data: Dataset, n_splits: int) -> list[Row]:
    """Share of true grades inside the predicted ranges, and their mean width, over splits."""
    rows = []
    for share, (way, make) in product(SHARES, WAYS.items()):
        found = []  # coverage and width of every split and level
        for split in splits(data, share, n_splits):
            model, known = make(split), {"classes": split.classes}
            ranges = [model.predict_interval(split.X_test, level) for level in COVERAGES]
            held = [interval_coverage(split.y_test, each, **known) for each in ranges]
            found.append([held, [interval_width(each, **known) for each in ranges]])
        for level, held, width in zip(COVERAGES, *np.mean(found, axis=0), strict=True):
            work = f"{data.name}, {100 * share:g} % ranges, {way}, {width:.2f} grades wide"
            target = f"{level:g}\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}{CLOSE:g}"
            rows.append(Row(work, held, target, abs(held - level) <= CLOSE))
    return rows


def logistic(split: Split) -> np.ndarray:
    """mord's all-threshold logistic regression, fitted in batch to the exact labels."""
    from mord import LogisticAT

    return LogisticAT(alpha=1.0).fit(split.X, split.exact).predict_proba(split.X_test)


def ordered(split: Split) -> np.ndarray | None:
    """statsmodels' ordered logit, fitted to the exact labels; None if it does not converge."""
    from statsmodels.miscmodels.ordinal_model import OrderedModel

    # it rejects linearly dependent columns
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
) -> Any:
    """Our RPS as a multiple of theirs, summed over splits; None if theirs failed."""
    mine = other = 0.0
    for split in splits(data, share, n_splits):
        proba = theirs(split)
        if proba is None or not np.isfinite(proba).all():
            return None
        rps = partial(ranked_probability_score, split.y_test, classes=split.classes)
        other += rps(proba)
        mine += rps(ours(split).predict_proba(split.X_test))
    return mine / other


def probabilities(data: Dataset, n_splits: int) -> list[Row]:
    """Probabilities of one pass over ranges, and of a batch fit, against models of exact labels."""
    times, limit = against(data, 0.75, n_splits, streamed, logistic), LOGISTIC.get(data.name, 1.03)
    work = f"{data.name}: RPS of one pass over 75 % ranges / mord.LogisticAT on exact labels"
    rows = [Row.at_most(work, times, limit)]
    # OrderedModel differentiates numerically, one feature at a time
    few_features = data.X.shape[1] < MANY
    times = against(data, 0.0, n_splits, batch, ordered) if few_features else None
    if times is not None:
        work = f"{data.name}: RPS of a batch fit / statsmodels' OrderedModel, both on exact labels"
        rows.append(Row.at_most(work, times, ORDERED))
    return rows


def costs(scale: float) -> list[Row]:
    """Time of a calibrated pass and of ranges, relative to a plain pass and plain predictions."""
    rows = []
    for n_classes, target in ((5, 1.5), (100, 3.0)):
        X, ranks = graded_rows(max(50, round(200_000 * scale)), 136, n_classes)

        def one_pass(calibrated: bool, X: Any = X, ranks: Any = ranks, K: int = n_classes) -> None:
            learner = LinearLearner(136, K, average=True, balanced=True)
            learner.learn_many(X, ranks, calibration=Calibration(K) if calibrated else None)

        times, _ = ratio(partial(one_pass, True), partial(one_pass, False))
        rows.append(Row.at_most(f"calibrated pass / plain pass, K = {n_classes}", times, target))
        model = CalibratedOrdinal().partial_fit(X, ranks, classes=np.arange(1, n_classes + 1))
        times, _ = ratio(partial(model.predict_interval, X), partial(model.predict, X))
        rows.append(Row.at_most(f"predict_interval / predict, K = {n_classes}", times, 2.0))
    return rows


def run(scale: float) -> list[Row]:
    """All rows."""
    n_splits, rows = max(1, round(5 * scale)), []
    for data in available(LOGISTIC, None if scale >= 1 else 200).values():
        few = max(1, n_splits // 2) if data.X.shape[1] >= MANY else n_splits
        rows += coverages(data, few) + probabilities(data, few)
    return rows + costs(scale)


if __name__ == "__main__":
    title = "Probabilities and ranges: coverage, sharpness and cost"
    command(lambda scale: f"{table(run(scale), title)}\n{NOTE}", __doc__.splitlines()[0])
