"""Wrappers of a ranker in model files: a calibration, a pipeline, or both."""

from __future__ import annotations

from typing import Any

from ordspan.header import Calibrated, Header, from_plain, plain
from ordspan.learners import Calibration
from ordspan.pipelines.describing import Tensors, describe_pipeline
from ordspan.pipelines.rebuilding import rebuild_pipeline
from ordspan.pipelines.values import INSIDE, SizeBudget

CALIBRATED = "CalibratedOrdinal"


def unwrap(model: Any, tensors: Tensors) -> tuple[dict[str, Any], Any, Calibration | None]:
    """Description of everything around the ranker of a model, the ranker, and its calibration."""
    from sklearn.pipeline import Pipeline

    around: dict[str, Any] = {}
    if type(model) is Pipeline:
        around["pipeline"] = describe_pipeline(model, "", tensors)
        model = model.steps[-1][1]
    if type(model).__name__ != CALIBRATED:
        return around, model, None
    around["calibrated"], ranker = _describe_calibrated(model, tensors)
    return around, ranker, model.calibration_


def _describe_calibrated(model: Any, tensors: Tensors) -> tuple[dict[str, Any], Any]:
    """Description of a calibrated estimator, and the ranker inside."""
    from sklearn.frozen import FrozenEstimator
    from sklearn.pipeline import Pipeline
    from sklearn.utils.validation import check_is_fitted

    from ordspan.estimators.calibrated import check_promises

    check_is_fitted(model)
    check_promises(model)
    frozen = isinstance(model.estimator_, FrozenEstimator)
    ranker = model.estimator_.estimator if frozen else model.estimator_
    given = model.get_params(deep=False)
    estimator = "frozen" if frozen else "given"
    if given.pop("estimator") is None:
        estimator = "default"
    parameters = {name: plain(name, value) for name, value in given.items()}
    around: dict[str, Any] = {"parameters": parameters, "estimator": estimator}
    if type(ranker) is Pipeline:
        around["pipeline"] = describe_pipeline(ranker, INSIDE, tensors)
        ranker = ranker.steps[-1][1]
    return around, ranker


def wrap(
    header: Header, model: Any, calibration: Calibration | None, tensors: Tensors, room: int
) -> Any:
    """Rebuild the model of a file around its ranker; consumes all tensors of its transformers."""
    budget = SizeBudget(room)
    if header.calibrated is not None:
        if header.calibrated.pipeline is not None:
            steps = header.calibrated.pipeline
            model = rebuild_pipeline(steps, model, INSIDE, tensors, budget)
        model = _calibrate(header.calibrated, model, calibration, room)
    if header.pipeline is not None:
        model = rebuild_pipeline(header.pipeline, model, "", tensors, budget)
    if tensors:
        raise ValueError(f"it holds {', '.join(tensors)} too")
    return model


def _calibrate(around: Calibrated, estimator: Any, calibration: Any, room: int) -> Any:
    """The calibrated form of a fitted estimator."""
    from sklearn.base import clone
    from sklearn.frozen import FrozenEstimator

    from ordspan.estimators import CalibratedOrdinal

    fitted = FrozenEstimator(estimator) if around.estimator == "frozen" else estimator
    given = {"default": None, "given": clone(estimator), "frozen": fitted}[around.estimator]
    parameters = {name: from_plain(value, room) for name, value in around.parameters.items()}
    if isinstance(parameters.get("coverages"), list):
        parameters["coverages"] = tuple(parameters["coverages"])  # JSON has lists only
    return CalibratedOrdinal(given, **parameters).from_parts(fitted, calibration)
