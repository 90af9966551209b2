"""What is compared: data sets × kinds of labels × methods, and the folds that all of them share."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import RepeatedStratifiedKFold, train_test_split

from ordspan import data
from ordspan.data import Dataset, coarsen
from peers.methods import BY_NAME
from peers.unseen import UNSEEN, load_unseen

EXACT, INTERVALS, MIDDLES, EXACT_PART = "exact", "intervals", "middles", "exact part"
"""How a method is given its labels."""


class Cell(NamedTuple):
    """One row of the table: a method on the labels of a data set."""

    dataset: str
    labels: int
    """Per cent of the training labels that are intervals."""
    given: str
    method: str


@dataclass(frozen=True)
class Plan:
    """What to run.

    Attributes
    ----------
    datasets : tuple of str
        Names, as ``ordspan.data.load_dataset`` takes them, or of ``peers.unseen.UNSEEN``.
    labels : tuple of int
        Per cent of the training labels that are made intervals.
    rows : int
        Most rows taken of a data set, the same for all methods.
    splits, repeats : int
        Folds of the cross-validation, and how often it is repeated on exact labels; interval
        labels see the first repetition.
    inner : int
        Folds of the cross-validation that chooses a method's setting.
    cap : float
        Seconds of processor time that tuning, fit and predictions of one fold may take.
    seed : int
        Seed of rows, folds and intervals.
    methods : tuple of str
        Names of the methods.
    """

    datasets: tuple[str, ...] = (
        "california", "abalone", "parkinson", "mslr", "era", "esl", "lev", "swd", *UNSEEN,
    )  # fmt: skip
    labels: tuple[int, ...] = (0, 50, 75, 100)
    rows: int = 1000
    splits: int = 5
    repeats: int = 2
    inner: int = 2
    cap: float = 10.0
    seed: int = 0
    methods: tuple[str, ...] = tuple(BY_NAME)

    def folds(self, labels: int) -> int:
        """Number of folds that a cell is measured on."""
        return self.splits * (self.repeats if labels == 0 else 1)


QUICK = Plan(rows=200, splits=2, repeats=1)


def cells(plan: Plan) -> list[Cell]:
    """All rows of the table, in its order; a baseline is there for exact labels only."""
    return [
        Cell(dataset, labels, given, method)
        for dataset in plan.datasets
        for labels in plan.labels
        for method in plan.methods
        if labels == 0 or not BY_NAME[method].baseline
        for given in ways(labels, BY_NAME[method].reads_intervals)
    ]


def ways(labels: int, reads_intervals: bool) -> tuple[str, ...]:
    """How a method can be given labels of which so many per cent are intervals.

    Where all are, no exact part is left (but the rows of the lowest and highest rank whose
    interval was cut to that rank), so nobody is trained on it.

    >>> ways(75, reads_intervals=False)
    ('middles', 'exact part')
    """
    if labels == 0:
        return (EXACT,)
    if reads_intervals:
        return (INTERVALS,)
    return (MIDDLES, EXACT_PART) if labels < 100 else (MIDDLES,)


def load(name: str, plan: Plan, data_dir: str | None) -> Dataset:
    """A data set, cut to the rows of the plan with all ranks in their shares."""
    whole = load_unseen(name) if name in UNSEEN else data.load_dataset(name, data_dir)
    if len(whole.ranks) <= plan.rows:
        return whole
    kept, _ = train_test_split(
        np.arange(len(whole.ranks)),
        train_size=plan.rows,
        stratify=whole.ranks,
        random_state=plan.seed,
    )
    return Dataset(
        name, whole.X[kept], whole.ranks[kept], whole.n_classes, whole.feature_names, whole.source
    )


class Fold(NamedTuple):
    """Rows to train on with their intervals, and rows to test on with their exact ranks."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    ranks_test: np.ndarray


def folds(dataset: Dataset, plan: Plan, labels: int, given: str) -> Iterator[Fold]:
    """The folds, the same for every method; training rows come in random order."""
    splitter = RepeatedStratifiedKFold(
        n_splits=plan.splits, n_repeats=plan.repeats, random_state=plan.seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # ESL has ranks with fewer rows than folds
        splits = list(splitter.split(dataset.X, dataset.ranks))[: plan.folds(labels)]
    for number, (train, test) in enumerate(splits):
        rng = np.random.default_rng([plan.seed, number, labels])
        train = rng.permutation(train)
        every = np.arange(1, dataset.n_classes + 1)
        y = coarsen(dataset.ranks[train], labels / 100, classes=every, random_state=rng)
        if given == EXACT_PART:
            exact = y[:, 0] == y[:, 1]
            train, y = train[exact], y[exact]
        yield Fold(dataset.X[train], y, dataset.X[test], dataset.ranks[test])
