"""The data sets, their folds, and the errors measured on a fold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from ordspan.core.losses import distance
from ordspan.data import Dataset, synthetic
from ordspan.data.sets import standardise
from ordspan.experiments.reproduce import load_datasets
from peers.plan import INTERVALS, Fold, Plan, folds

PERCENTS = (0, 50, 75)  # of labels that are ranges
DEMOGRAPHY = ["popul", "TVnews", "age", "educ", "income"]


class Size(NamedTuple):
    """How much to run: number and length of streams; draws, rows per draw, and folds per draw."""

    runs: int = 20
    trials: int = 7000
    draws: int = 4
    rows: int = 1000
    splits: int = 5


def available(names: Iterable[str]) -> list[Dataset]:
    """The data sets that can be loaded; the others are reported and skipped."""
    found, missing = load_datasets(list(names), None, lambda name: None)
    for name, reason in missing.items():
        print(f"skipped {name}: {reason}")
    return list(found)


def surveys() -> list[Dataset]:
    """Four questions from two surveys that ship with statsmodels; all are hard to predict."""
    try:
        from statsmodels.datasets import anes96, fair
    except ImportError:
        print("skipped surveys: statsmodels is not installed (pip install 'ordspan[peers]')")
        return []
    couples, voters = fair.load_pandas().data, anes96.load_pandas().data
    return [
        survey("fair, marriage", couples, "rate_marriage"),
        survey("fair, religion", couples, "religious"),
        survey("anes, left-right", voters[[*DEMOGRAPHY, "selfLR"]], "selfLR"),
        survey("anes, party", voters[[*DEMOGRAPHY, "PID"]], "PID"),
    ]


def survey(name: str, answers: Any, question: str) -> Dataset:
    """Predict one answer of a survey from the others."""
    classes, ranks = np.unique(answers[question], return_inverse=True)
    others = answers.drop(columns=question)
    X = standardise(others.to_numpy(dtype=np.float64, copy=True))
    return Dataset(name, X, ranks + 1, len(classes), tuple(others), "statsmodels")


def noisy(n: int = 10_000) -> Dataset:
    """The synthetic stream with three times as much noise as signal."""
    return replace(synthetic(n=n, noise=3.0), name="synthetic, noisy")


def sample(data: Dataset, rows: int, seed: int) -> Dataset:
    """At most this many rows, stratified by grade."""
    if len(data.ranks) <= rows:
        return data
    every = np.arange(len(data.ranks))
    kept, _ = train_test_split(every, train_size=rows, stratify=data.ranks, random_state=seed)
    return replace(data, X=data.X[kept], ranks=data.ranks[kept])


def scaled(fold: Fold) -> Fold:
    """The fold with features standardised on the training rows."""
    scaler = StandardScaler().fit(fold.X)
    return fold._replace(X=scaler.transform(fold.X), X_test=scaler.transform(fold.X_test))


def drawn_folds(data: Dataset, size: Size, percent: int, seeds: Iterable[int]) -> Iterator[Fold]:
    """The folds of one random draw of rows per seed."""
    for seed in seeds:
        plan = Plan(rows=size.rows, splits=size.splits, repeats=1, seed=seed)
        yield from map(scaled, folds(sample(data, size.rows, seed), plan, percent, INTERVALS))


def grades(data: Dataset) -> np.ndarray:
    return np.arange(1, data.n_classes + 1)


def mae(predicted: Any, ranks: np.ndarray) -> float:
    return float(np.abs(predicted - ranks).mean())


def constant_error(data: Dataset, fold: Fold) -> float:
    """Test error of the one grade that is closest to the training labels."""
    best = min(grades(data), key=lambda grade: distance(grade, *fold.y.T).mean())
    return mae(best, fold.ranks_test)
