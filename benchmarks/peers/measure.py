"""One method on one kind of labels: tuned on the training rows of each fold, fitted and timed."""

from __future__ import annotations

import math
import statistics
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold, RepeatedStratifiedKFold

from ordspan import CalibratedOrdinal, coarsen
from ordspan.datasets import Dataset
from ordspan.metrics import (
    macro_mean_absolute_error,
    mean_absolute_error,
    quadratic_weighted_kappa,
    ranked_probability_score,
)
from peers.adapters import SEED
from peers.methods import BY_NAME, Config, Method
from peers.sets import RangeSet

EXACT, INTERVALS, MIDDLES, EXACT_PART = "exact", "intervals", "middles", "exact part"
"""How a method is given its labels."""
INNER = 2  # folds of the cross-validation that chooses a method's setting
WARM_UP_ROWS = 60


class Cell(NamedTuple):
    """One row of the table: a method on the labels of a data set."""

    dataset: str
    labels: int
    """Per cent of the training labels that are intervals."""
    given: str
    method: str
    recipe: str = "paper"
    """How exact labels were made intervals, see `ordspan.coarsen`; "surveys": people did."""


class Fold(NamedTuple):
    """Rows to train on with their intervals, and rows to test on with theirs, mostly exact."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    ranks_test: np.ndarray


class Outcome(NamedTuple):
    """What one fold gave."""

    config: Config
    mae: float
    macro_mae: float
    kappa: float
    rps: float
    fit_seconds: float
    predict_seconds: float


def folds(dataset: Dataset, cell: Cell, splits: int, repeats: int) -> Iterator[Fold]:
    """The folds, the same for every method; training rows come in random order."""
    splitter = RepeatedStratifiedKFold(n_splits=splits, n_repeats=repeats, random_state=SEED)
    for number, (train, test) in enumerate(splitter.split(dataset.X, dataset.ranks)):
        rng = np.random.default_rng([SEED, number, cell.labels])
        train = rng.permutation(train)
        truth = dataset.ranks[test]
        if isinstance(dataset, RangeSet):
            y, truth = dataset.y[train], dataset.y[test]
        else:
            options = {"classes": range(1, dataset.n_classes + 1), "recipe": cell.recipe}
            y = coarsen(dataset.ranks[train], cell.labels / 100, **options, random_state=rng)
        if cell.given == EXACT_PART:
            exact = y[:, 0] == y[:, 1]
            train, y = train[exact], y[exact]
        yield Fold(dataset.X[train], y, dataset.X[test], truth)


def measure(
    cell: Cell,
    dataset: Dataset,
    splits: int,
    repeats: int,
    begin_fold: Callable[[], object] = lambda: None,
) -> dict[str, Any]:
    """The row of a cell; ``begin_fold`` is called before each fold, for a watch."""
    method = BY_NAME[cell.method]
    outcomes = []
    with warnings.catch_warnings():
        # peers warn of unfinished descents and each other's future; their results tell enough
        warnings.simplefilter("ignore")
        warm_up(method, dataset)
        for fold in folds(dataset, cell, splits, repeats):
            begin_fold()
            # probabilities are scored on exact labels, where no peer has to be given middles
            with_rps = cell.labels == 0 and method.proba
            outcomes.append(one_fold(method, dataset, fold, with_rps))
    columns = {name: [getattr(outcome, name) for outcome in outcomes] for name in Outcome._fields}
    settings = [" ".join(f"{k}={v}" for k, v in config.items()) for config in columns["config"]]
    found = described(cell, dataset, len(outcomes), "ok")
    for name in Outcome._fields[1:]:
        found[name] = statistics.fmean(columns[name])
        if not name.endswith("seconds"):
            found[f"{name}_sd"] = float(np.std(columns[name]))
    return found | {"setting": Counter(settings).most_common(1)[0][0]}


def described(cell: Cell, dataset: Dataset, n_folds: int, status: str) -> dict[str, Any]:
    """What was run, when, and what came of it."""
    method = BY_NAME[cell.method]
    return {
        **cell._asdict(),
        "rows": len(dataset.ranks),
        "folds": n_folds,
        "status": status,
        "package": f"{method.package} {method.version}",
        "date": str(date.today()),
    }


def warm_up(method: Method, dataset: Dataset) -> None:
    """Import and compile what the method needs, on few rows and two features, off the clock."""
    X = dataset.X[:WARM_UP_ROWS, :2]
    ranks = np.arange(len(X)) % dataset.n_classes + 1  # every grade, whatever the rows hold
    few = Fold(X, np.column_stack([ranks, ranks]), X, ranks)
    model = method.make(2, dataset.n_classes, **method.grid[0])
    model.fit(few.X, few.y).predict(X)
    if method.proba:
        probabilities(method, model, dataset, few)


def fresh(method: Method, dataset: Dataset, config: Config) -> Any:
    return method.make(dataset.X.shape[1], dataset.n_classes, **config)


def one_fold(method: Method, dataset: Dataset, fold: Fold, with_rps: bool) -> Outcome:
    config = chosen(method, dataset, fold)
    model = fresh(method, dataset, config)
    fit_seconds = seconds(lambda: model.fit(fold.X, fold.y))
    predict_seconds = seconds(lambda: model.predict(fold.X_test))
    predicted = model.predict(fold.X_test)
    grades = range(1, dataset.n_classes + 1)
    scores = [mean_absolute_error(fold.ranks_test, predicted, classes=grades), math.nan, math.nan]
    if fold.ranks_test.ndim == 1:
        for place, score in enumerate((macro_mean_absolute_error, quadratic_weighted_kappa), 1):
            scores[place] = score(fold.ranks_test, predicted, classes=grades)
    rps = math.nan
    if with_rps:
        chances = probabilities(method, model, dataset, fold)
        rps = ranked_probability_score(fold.ranks_test, chances, classes=grades)
    return Outcome(config, *scores, rps, fit_seconds, predict_seconds)


def probabilities(method: Method, model: Any, dataset: Dataset, fold: Fold) -> np.ndarray:
    """The probability of every grade for the test rows; 0 where the training rows lack a grade.

    Ours come from ``CalibratedOrdinal`` with the same setting, which predicts the same grades.
    """
    if method.ours:
        model = CalibratedOrdinal(clone(model), random_state=SEED).fit(fold.X, fold.y)
    chances = np.zeros((len(fold.X_test), dataset.n_classes))
    chances[:, model.classes_ - 1] = model.predict_proba(fold.X_test)
    return chances


def seconds(work: Callable[[], object]) -> float:
    """Processor time of one call in this thread: every method is held to one."""
    start = time.thread_time()
    work()
    return time.thread_time() - start


def chosen(method: Method, dataset: Dataset, fold: Fold) -> Config:
    """The setting with the least distance to held-out labels, exact or intervals."""
    if len(method.grid) == 1:
        return method.grid[0]
    inner = list(KFold(INNER).split(fold.X))  # the rows are in random order already
    grades = range(1, dataset.n_classes + 1)

    def error(config: Config) -> float:
        total = 0.0
        for train, test in inner:
            model = fresh(method, dataset, config).fit(fold.X[train], fold.y[train])
            predicted = model.predict(fold.X[test])
            total += mean_absolute_error(fold.y[test], predicted, classes=grades) * len(test)
        return total

    return min(method.grid, key=error)
