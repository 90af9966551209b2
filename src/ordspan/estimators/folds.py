"""Calibration on out-of-fold scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, check_random_state

from ordspan.core.labels import Ranks
from ordspan.estimators.steps import fit_weighted, last_step, latent, ranker_of
from ordspan.learners.calibration import Calibration
from ordspan.learners.scoring import rank_among


class CalibrationRows(NamedTuple):
    """The rows to calibrate on: features, label ends in ranks, weights, and indices in use."""

    X: Any
    lower: Ranks
    upper: Ranks
    weight: NDArray[np.float64]
    rows: Ranks
    classes: NDArray[Any]


def calibrate_on_folds(
    calibration: Calibration,
    new_estimator: Callable[[], Any],
    data: CalibrationRows,
    folds: Sequence[tuple[Ranks, Ranks]],
    n_jobs: int | None,
) -> None:
    """Fit an estimator on each fold, and calibrate on the scores of the rows it has not learned."""
    X, lower, upper, weight, rows, classes = data
    y = classes[lower - 1]
    if (lower != upper).any():
        y = np.column_stack([y, classes[upper - 1]])

    def score_fold(learned: Ranks, rest: Ranks) -> tuple[NDArray[np.float64], ...]:
        model = new_estimator()
        if not isinstance(model, FrozenEstimator):
            if not isinstance(last_step(model), FrozenEstimator):
                last_step(model).set_params(classes=classes)
            fit_weighted(model, _safe_indexing(X, learned), y[learned], weight[learned])
        return latent(model, _safe_indexing(X, rest)), ranker_of(model).thresholds_

    found = Parallel(n_jobs, prefer="threads")(delayed(score_fold)(*fold) for fold in folds)
    scores, predicted = np.full(lower.size, np.nan), np.ones(lower.size, dtype=np.int64)
    fold = np.zeros(lower.size, dtype=np.int64)
    for number, ((_, rest), (some, thresholds)) in enumerate(zip(folds, found, strict=True)):
        scores[rest], predicted[rest] = some, rank_among(thresholds, some)
        fold[rest] = number
    if left_out := rows[np.isnan(scores[rows])].tolist():
        raise ValueError(f"cv never tests row {left_out[0]}; every row must be in a test set")
    seen = (part[rows] for part in (scores, predicted, lower, upper, weight))
    bands = np.array([thresholds for _, thresholds in found])
    calibration.fit(*seen, thresholds=bands, fold=fold[rows])


def make_folds(model: Any, X: Any, middle: Ranks, rows: Ranks) -> list[Any]:
    """Training and test rows of each fold."""
    if isinstance(model.cv, int | np.integer):
        if model.cv < 2:
            raise ValueError(f"cv must be at least 2 folds, got {model.cv!r}")
        if rows.size < 2 and not isinstance(model.estimator, FrozenEstimator):
            raise ValueError(
                "fit needs at least 2 rows with positive weight for out-of-fold scores, got "
                f"n_samples = {rows.size}"
            )
        turn = check_random_state(model.random_state).permutation(rows)
        fold = np.full(middle.size, -1)
        n_folds = min(int(model.cv), rows.size)
        fold[turn[np.argsort(middle[turn], kind="stable")]] = np.arange(rows.size) % n_folds
        return [(rows[fold[rows] != k], rows[fold[rows] == k]) for k in range(n_folds)]
    chosen = np.zeros(middle.size, dtype=bool)
    chosen[rows] = True
    numbers = np.arange(middle.size)
    parts = ((numbers[a], numbers[b]) for a, b in check_cv(model.cv).split(X, middle))
    folds = [(a[chosen[a]], b[chosen[b]]) for a, b in parts]
    return [fold for fold in folds if fold[1].size]
