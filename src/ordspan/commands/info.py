"""Describe a model file in plain values."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordspan.commands.jobs import InfoJob
from ordspan.commands.models import ranker_and_calibration, read_model
from ordspan.commands.train import TrainProgress
from ordspan.learners import Calibration
from ordspan.models.file import CheckpointNote, Rounds
from ordspan.models.table import TableModel
from ordspan.tables.text import STDIN


def info(job: InfoJob) -> dict[str, Any]:
    """Describe a model: kind, parameters, weights, training; None for what it lacks.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from ordspan import OrdinalPA, save
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.ordspan"
    >>> save(OrdinalPA(random_state=0).fit([[0.0], [1.0], [2.0]], [1, 2, 3]), path)
    >>> about = info(InfoJob(path))
    >>> about["estimator"], about["classes"], about["features"], len(about["thresholds"])
    ('OrdinalPA', [1, 2, 3], 1, 2)
    """
    header, model = read_model(job.model)
    note = header.checkpoint
    estimator, calibration = ranker_and_calibration(model)
    # not all estimators have thresholds or support vectors, or count updates
    thresholds, support = (getattr(estimator, n, None) for n in ("thresholds_", "dual_coef_"))
    if calibration is not None:
        thresholds = calibration.medians
    parameters = {n: getattr(v, "values", v) for n, v in header.parameters.items()}
    parameters.pop("classes", None)
    return {
        "model": job.model,
        "kind": "model" if note is None else "checkpoint",
        "bytes": Path(job.model).stat().st_size,
        "format": header.format,
        "estimator": header.estimator,
        "parameters": parameters,
        "classes": estimator.classes_.tolist(),
        "thresholds": None if thresholds is None else finite(thresholds),
        "features": header.n_features,
        "passes": int(estimator.n_iter_),
        "updates": getattr(estimator, "n_updates_", None),
        "support_vectors": None if support is None else int(support.size),
        "fitted": {name.rstrip("_"): value for name, value in header.fitted.items()},
        "calibration": None if calibration is None else describe_calibration(calibration),
        "weights": largest_weights(model, estimator, job.top),
        "columns": describe_columns(model) if isinstance(model, TableModel) else None,
        "training": getattr(model, "training", None),
        "checkpoint": note and describe_checkpoint(model, note, job.model),
    }


def finite(values: NDArray[np.float64]) -> list[float | None]:
    """Numbers, None where they are infinite."""
    return [value if np.isfinite(value) else None for value in values.tolist()]


def describe_calibration(calibration: Calibration) -> dict[str, Any]:
    """How scores become probabilities and ranges.

    P(y <= k) is the logistic function of ``cuts[k] - slope * score``. A range contains all grades
    within the reach of the score; with an infinite reach, None, it contains every grade.
    """
    reaches = zip(calibration.coverages.tolist(), finite(calibration.reach), strict=True)
    return {
        "rows": calibration.n_rows,
        "labels": calibration.labels,
        "slope": calibration.slope,
        "cuts": calibration.cuts.tolist(),
        "reach_unit": calibration.reach_unit,
        "ranges": [{"coverage": coverage, "reach": reach} for coverage, reach in reaches],
    }


def largest_weights(model: Any, estimator: Any, top: int) -> list[dict[str, Any]] | None:
    """Features by the size of their weights, the largest first.

    If every grade has its own weights, the weight is a list with one per grade, and features are
    ordered by the largest of them.
    """
    weights = getattr(estimator, "coef_", None)
    if weights is None:
        return None
    names, scaling = [f"column {j}" for j in range(weights.shape[-1])], None
    size = np.abs(np.atleast_2d(weights)).max(axis=0)
    if isinstance(model, TableModel):
        names, scaling = model.recipe.feature_names(), model.centre_and_factor()
        if model.recipe.sentences:  # hashes without a word go last
            hashes = size[-(2**model.recipe.sentence_bits) :]
            hashes[[name.startswith("word ") for name in names[-hashes.size :]]] = 0.0
    elif hasattr(estimator, "feature_names_in_"):
        names = estimator.feature_names_in_.tolist()
    rows, (centre, factor) = [], scaling or (np.empty(0), np.empty(0))
    for j in np.argsort(-size, kind="stable")[: top or None]:
        mean = spread = None  # of text, and of numbers that are not standardised
        if j < centre.size:
            mean, spread = float(centre[j]), float(1 / factor[j]) if factor[j] > 0 else 0.0
        weight = weights[..., j].tolist()
        rows.append({"feature": names[j], "weight": weight, "mean": mean, "spread": spread})
    return rows


def describe_columns(model: TableModel) -> dict[str, Any]:
    """Columns of a model that ``ordspan train`` wrote."""
    words, sentences = dict(model.recipe.words), list(dict(model.recipe.sentences))
    named = {"label": model.columns.names(), "words": words, "sentences": sentences}
    return asdict(model.recipe) | named


def describe_checkpoint(model: Any, note: CheckpointNote, path: str) -> dict[str, Any]:
    """Progress of an unfinished training."""
    if not isinstance(model, TableModel):  # on Dask
        return {"rounds": len(note.read(Rounds, path)[1])}
    progress = note.read(TrainProgress, path)
    settings = model.training["settings"]
    again = f"--from {path}" if STDIN in settings["files"] else "--resume"
    return {
        "rows": progress.learned,
        "pass": progress.cursor.epoch + 1,
        "passes": settings["passes"],
        "rows_of_pass": progress.rows,
        "mae_of_pass": progress.running_mae,
        "continue_with": f"ordspan train {again}",
    }
