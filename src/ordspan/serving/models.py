"""What the service does with a model: copy it, and let it learn."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from ordspan.core.scaling import LIMIT
from ordspan.core.state import Ranks
from ordspan.models.table import ESTIMATORS, SVM, TableModel
from ordspan.serving.records import RecordReader, example_record
from ordspan.tables.encoder import Encoder

COVERAGE = 0.9


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


def encode(model: TableModel, X: Any, table: Any) -> tuple[Any, Any]:
    """Features of rows to learn, and which of their numbers were clipped.

    A model that started empty learns the scale of the numbers from these rows; others have a fixed
    scale, and clip nothing.
    """
    if not (model.recipe.standardise and model.training["settings"].get("scaled_on_the_way")):
        return model.encoder.features(X, table), None
    scaled = X.copy()
    features = model.encoder.features(scaled, table, learn=True)
    return features, np.abs(scaled) == LIMIT


def learn(model: TableModel, features: Any, lower: Ranks, upper: Ranks) -> tuple[Ranks, ...]:
    """Learn rows in order; if it raises, the model is spoilt.

    Returns what was predicted: the ranks, and if the model is calibrated the ends of the ranges.

    Each row is predicted by what the rows before it taught; the width of its range is that of the
    calibration before the first row.
    """
    rows, calibration = model.learner.rows(features, lower, upper), model.calibration
    model.training["rows"] += lower.size
    if calibration is None:
        rank = model.learner.learn(rows, predict=True)
        assert rank is not None
        return (rank,)
    scores = np.empty(lower.size)
    model.learner.learn(rows, scores_before=scores)
    low, high = calibration.ranges(scores, COVERAGE)
    rank = calibration.observe(scores, rows.lower, rows.upper, predict=True)
    assert rank is not None
    return rank, np.minimum(low, rank), np.maximum(high, rank)


def warm_up(model: TableModel) -> None:
    """Compile what predicting and learning need, on a copy, so that no request waits for it."""
    recipe, trial = model.recipe, copy_model(model)
    values = [(0, 1.0)] if recipe.n_sparse else list(example_record(recipe).values())
    X, table = RecordReader(model).arrays(model.encoder, [values])
    answer = trial.answer(trial.encoder.features(X.copy(), table), COVERAGE)
    if trial.calibration is not None:
        trial.calibration.probabilities(answer.score)
    if model.kind != ESTIMATORS[SVM]:
        learn(trial, encode(trial, X, table)[0], np.array([1]), np.array([1]))
