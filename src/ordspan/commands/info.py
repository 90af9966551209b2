"""Describe a model file in plain values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ordspan.commands.continuing import TrainProgress
from ordspan.commands.models import ModelFile, read_model
from ordspan.models.checkpoint import Rounds, progress_in
from ordspan.models.table import TableModel
from ordspan.tables.text import STDIN


def describe_model(path: str | Path, top: int = 20) -> dict[str, Any]:
    """Describe a model: kind, parameters, weights, training; None for what it lacks.

    Parameters
    ----------
    path : path
        A model file or a checkpoint.
    top : int
        Number of largest weights to include; 0 includes all.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from ordspan import OrdinalPA, save
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.ordspan"
    >>> save(OrdinalPA(random_state=0).fit([[0.0], [1.0], [2.0]], [1, 2, 3]), path)
    >>> found = describe_model(path)
    >>> found["estimator"], found["classes"], found["features"], len(found["thresholds"])
    ('OrdinalPA', [1, 2, 3], 1, 2)
    """
    file = read_model(path)
    header = file.header
    found: dict[str, Any] = {
        "model": file.path,
        "kind": "model" if header.checkpoint is None else "checkpoint",
        "bytes": file.size,
        "format": header.format,
        "estimator": header.estimator,
        "parameters": {
            name: getattr(value, "values", value)
            for name, value in header.parameters.items()
            if name != "classes"
        },
    }
    found |= describe_estimator(file.estimator, header.fitted)
    found |= {"calibration": describe_calibration(file), "weights": largest_weights(file, top)}
    return found | describe_table(file.model) | describe_checkpoint(file)


def describe_estimator(estimator: Any, fitted: dict[str, Any]) -> dict[str, Any]:
    """What an estimator has learned; not all have thresholds or count updates."""
    thresholds = getattr(estimator, "thresholds_", None)
    support = getattr(estimator, "dual_coef_", None)
    return {
        "classes": estimator.classes_.tolist(),
        "thresholds": None if thresholds is None else thresholds.tolist(),
        "features": int(estimator.n_features_in_),
        "passes": int(estimator.n_iter_),
        "updates": getattr(estimator, "n_updates_", None),
        "support_vectors": None if support is None else int(support.size),
        "fitted": {name.rstrip("_"): value for name, value in fitted.items()},
    }


def describe_calibration(file: ModelFile) -> dict[str, Any] | None:
    """How scores become probabilities and ranges; None without calibration.

    P(y <= k) is the logistic function of ``cuts[k] - slope * score``. A range contains all grades
    within the reach of the score; with an infinite reach, None, it contains every grade.
    """
    found = file.calibration
    if found is None:
        return None
    return {
        "rows": found.n_rows,
        "labels": found.labels,
        "slope": found.slope,
        "cuts": found.cuts.tolist(),
        "reach_unit": found.reach_unit,
        "ranges": [
            {"coverage": coverage, "reach": reach if np.isfinite(reach) else None}
            for coverage, reach in zip(found.coverages.tolist(), found.reach.tolist(), strict=True)
        ],
    }


def largest_weights(file: ModelFile, top: int) -> list[dict[str, Any]] | None:
    """Features by the size of their weights, the largest first.

    If every grade has its own weights, the weight is a list with one per grade, and features are
    ordered by the largest of them.
    """
    weights = getattr(file.estimator, "coef_", None)
    if weights is None:
        return None
    size = np.abs(np.atleast_2d(weights)).max(axis=0)
    order = np.argsort(-size, kind="stable")[: top or None]
    names = feature_names(file, weights.shape[-1])
    rows = [{"feature": names[j], "weight": weights[..., j].tolist()} for j in order]
    scaling = file.model.centre_and_factor() if isinstance(file.model, TableModel) else None
    if scaling is not None:
        centre, factor = scaling
        for j, row in zip(order, rows, strict=True):
            row |= {"mean": None, "spread": None}  # of hashed text
            if j < centre.size:
                spread = float(1 / factor[j]) if factor[j] > 0 else 0.0
                row |= {"mean": float(centre[j]), "spread": spread}
    return rows


def feature_names(file: ModelFile, n_features: int) -> list[str]:
    """Names of the features: column and value, or column number from 0."""
    if isinstance(file.model, TableModel):
        return file.model.recipe.feature_names()
    names = getattr(file.estimator, "feature_names_in_", None)
    return [f"column {j}" for j in range(n_features)] if names is None else list(map(str, names))


def describe_table(model: Any) -> dict[str, Any]:
    """Columns and training of a model that ``ordspan train`` wrote."""
    if not isinstance(model, TableModel):
        return {"columns": None, "training": None}
    recipe = model.recipe
    columns = {
        "label": model.columns.names(),
        "numbers": list(recipe.numbers),
        "missing_indicators": list(recipe.missing_indicators),
        "words": {name: list(words) for name, words in recipe.words},
        "hashed": list(recipe.hashed),
        "hash_bits": recipe.hash_bits if recipe.hashed else None,
        "svmlight_features": recipe.n_sparse or None,
        "standardised": recipe.standardise,
    }
    return {"columns": columns, "training": model.training}


def describe_checkpoint(file: ModelFile) -> dict[str, Any]:
    """Progress of an unfinished training."""
    note = file.header.checkpoint
    if note is None:
        return {"checkpoint": None}
    if not isinstance(file.model, TableModel):  # on Dask
        return {"checkpoint": {"rounds": len(progress_in(note, Rounds, file.path).rounds)}}
    progress = progress_in(note, TrainProgress, file.path)
    return {
        "checkpoint": {
            "rows": progress.learned,
            "pass": progress.cursor.epoch + 1,
            "passes": file.model.training["settings"]["passes"],
            "rows_of_pass": progress.rows,
            "mae_of_pass": progress.running_mae,
            "from_pipe": STDIN in file.model.training["settings"]["files"],
        }
    }
