"""One cell of the plan measured: tuned on the training rows of each fold, then fitted and timed."""

from __future__ import annotations

import math
import statistics
import time
import warnings
from collections import Counter
from collections.abc import Callable
from datetime import date
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold

from ordspan import CalibratedOrdinal
from ordspan.data import Dataset
from ordspan.metrics import (
    macro_mean_absolute_error,
    mean_absolute_error,
    quadratic_weighted_kappa,
    ranked_probability_score,
)
from peers.adapters import SEED
from peers.methods import BY_NAME, Config, Method
from peers.plan import Cell, Fold, Plan, folds
from peers.table import Result

WARM_UP_ROWS = 60


class Outcome(NamedTuple):
    """What one fold gave."""

    config: Config
    mae: float
    macro_mae: float
    kappa: float
    rps: float
    fit_seconds: float
    predict_seconds: float


def measure(
    cell: Cell, dataset: Dataset, plan: Plan, begin_fold: Callable[[], object] = lambda: None
) -> Result:
    """The row of a cell; ``begin_fold`` is called before each fold, for a watch."""
    method = BY_NAME[cell.method]
    outcomes = []
    with warnings.catch_warnings():
        # peers warn of unfinished descents and each other's future; their results tell enough
        warnings.simplefilter("ignore")
        warm_up(method, dataset)
        for fold in folds(dataset, plan, cell.labels, cell.given):
            begin_fold()
            outcomes.append(one_fold(method, dataset, fold, plan, has_rps(cell)))
    return summary(cell, method, plan, len(dataset.ranks), outcomes)


def has_rps(cell: Cell) -> bool:
    """Whether probabilities are scored: on exact labels, where no peer has to be given middles."""
    return cell.labels == 0 and BY_NAME[cell.method].proba


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


def one_fold(
    method: Method, dataset: Dataset, fold: Fold, plan: Plan, with_rps: bool = False
) -> Outcome:
    config = chosen(method, dataset, fold, plan)
    model = fresh(method, dataset, config)
    fit_seconds = seconds(lambda: model.fit(fold.X, fold.y))
    predict_seconds = seconds(lambda: model.predict(fold.X_test))
    predicted = model.predict(fold.X_test)
    measures = (mean_absolute_error, macro_mean_absolute_error, quadratic_weighted_kappa)
    grades = range(1, dataset.n_classes + 1)
    scores = [score(fold.ranks_test, predicted, classes=grades) for score in measures]
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
    """Processor time of one call in this thread: every method is held to one.

    Under a limit of processor time Linux counts that of the whole process in ticks of
    milliseconds only.
    """
    start = time.thread_time()
    work()
    return time.thread_time() - start


def chosen(method: Method, dataset: Dataset, fold: Fold, plan: Plan) -> Config:
    """The setting with the least distance to held-out labels, exact or intervals."""
    if len(method.grid) == 1:
        return method.grid[0]
    inner = list(KFold(plan.inner).split(fold.X))  # the rows are in random order already
    grades = range(1, dataset.n_classes + 1)

    def error(config: Config) -> float:
        total = 0.0
        for train, test in inner:
            model = fresh(method, dataset, config).fit(fold.X[train], fold.y[train])
            predicted = model.predict(fold.X[test])
            total += mean_absolute_error(fold.y[test], predicted, classes=grades) * len(test)
        return total

    return min(method.grid, key=error)


def summary(cell: Cell, method: Method, plan: Plan, rows: int, outcomes: list[Outcome]) -> Result:
    columns = {name: [getattr(outcome, name) for outcome in outcomes] for name in Outcome._fields}
    means = {name: statistics.fmean(columns[name]) for name in Outcome._fields[1:]}
    spreads = {f"{name}_sd": float(np.std(columns[name])) for name in Outcome._fields[1:5]}
    favourite, _ = Counter(map(told, columns["config"])).most_common(1)[0]
    return Result(
        *cell,
        rows,
        len(outcomes),
        "ok",
        **means,
        **spreads,
        setting=favourite,
        package=f"{method.package} {method.version}",
        date=str(date.today()),
    )


def told(config: Config) -> str:
    """A setting in words.

    >>> told({"balanced": True, "C": 0.1})
    'balanced=True C=0.1'
    """
    return " ".join(f"{name}={value}" for name, value in config.items())


def unfinished(cell: Cell, plan: Plan, rows: int, reason: str) -> Result:
    """The row of a cell that came to nothing."""
    method = BY_NAME[cell.method]
    return Result(
        *cell,
        rows,
        plan.folds(cell.labels),
        reason,
        package=f"{method.package} {method.version}",
        date=str(date.today()),
    )
