"""What the service does with a model: copy it, predict with it and let it learn."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordspan.models.table import ESTIMATORS, SVM, TableModel
from ordspan.serving.records import batch_of
from ordspan.tables.encoder import Encoder
from ordspan.tables.rows import Batch

COVERAGE = 0.9


class BatchPredictions(NamedTuple):
    """Predictions for a batch of rows, in ranks 1..K."""

    score: NDArray[np.float64]
    rank: NDArray[np.int64]
    low: NDArray[np.int64] | None  # None if the model is not calibrated
    high: NDArray[np.int64] | None

    def ranks(self, row: int) -> tuple[int, int | None, int | None]:
        """Rank and range of a row."""
        if self.low is None or self.high is None:
            return int(self.rank[row]), None, None
        return int(self.rank[row]), int(self.low[row]), int(self.high[row])


def predict_batch(model: TableModel, batch: Batch, coverage: float = COVERAGE) -> BatchPredictions:
    """Score, rank and range of every row of a batch."""
    return predict_features(model, model.encoder.features(batch.X, batch.table), coverage)


def predict_features(
    model: TableModel, features: Any, coverage: float = COVERAGE
) -> BatchPredictions:
    """Score, rank and range of every row of prepared features."""
    found = model.answer(features, coverage)
    return BatchPredictions(found.score, found.rank, found.low, found.high)


def copy_model(model: TableModel) -> TableModel:
    """An independent copy of a model."""
    copied = replace(
        model,
        encoder=Encoder(model.recipe, model.encoder.state.copy()),
        learner=copy(model.learner),
        training=dict(model.training),
        calibration=copy(model.calibration),
    )
    copied.learner.adopt_state(model.learner.state.copy())
    if copied.calibration is not None and model.calibration is not None:
        copied.calibration.state = model.calibration.state.copy()
    return copied


def learn(
    model: TableModel, batch: Batch, lower: NDArray[np.int64], upper: NDArray[np.int64]
) -> None:
    """Learn rows in order; a model that started empty also learns their scale."""
    started_empty = bool(model.training["settings"].get("scaled_on_the_way"))
    online_scale = model.recipe.standardise and started_empty
    before = model.encoder.state.copy() if online_scale else None
    try:
        features = model.encoder.features(batch.X, batch.table, learn=online_scale)
        model.learner.learn_many(features, lower, upper, calibration=model.calibration)
    except BaseException:
        if before is not None:
            model.encoder.state[...] = before
        raise
    model.training["rows"] += len(batch)


def warm_up(model: TableModel) -> None:
    """Compile what predicting and learning need, on a copy, so that no request waits for it."""
    recipe, trial = model.recipe, copy_model(model)
    row: list[Any] = [0.0] * len(recipe.numbers) + [""] * len(recipe.texts)
    batch = batch_of(model.encoder, [[[0, 1.0]] if recipe.n_sparse else row])
    said = predict_batch(trial, batch)
    if trial.calibration is not None:
        trial.calibration.probabilities(said.score)
    if model.kind != ESTIMATORS[SVM]:
        learn(trial, batch, np.array([1]), np.array([1]))
