"""An estimator with a score and thresholds, alone, frozen, or as the last step of a pipeline."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from ordspan.estimators.base import ThresholdModel


def last_step(estimator: Any) -> Any:
    """The last step of a pipeline, or the estimator itself."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def parts_of(model: Any) -> list[Any]:
    """A model, and what it is around, down to the ranker.

    >>> from ordspan import PRank
    >>> from sklearn.pipeline import make_pipeline
    >>> [type(part).__name__ for part in parts_of(make_pipeline(PRank()))]
    ['Pipeline', 'PRank']
    """
    parts = [model]
    while True:
        outer = parts[-1]
        if isinstance(outer, Pipeline):
            parts.append(last_step(outer))
        elif isinstance(outer, FrozenEstimator):
            parts.append(outer.estimator)
        elif hasattr(outer, "estimator_"):
            parts.append(outer.estimator_)
        else:
            return parts


def ranker_of(estimator: Any) -> Any:
    """The estimator with a score and thresholds: itself, or the last step of a pipeline.

    >>> from ordspan import PRank
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> ranker_of(make_pipeline(StandardScaler(), PRank()))
    PRank()
    """
    inner = estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator
    last = last_step(inner)
    last = last.estimator if isinstance(last, FrozenEstimator) else last
    if not isinstance(last, ThresholdModel):
        raise TypeError(
            "estimator must be one with a score and thresholds (OrdinalPA, KernelOrdinalPA, "
            f"OrdinalSVM or PRank), alone or as the last step of a Pipeline, got {last!r}"
        )
    return last


def latent_of(estimator: Any, X: Any) -> NDArray[np.float64]:
    """Scores of rows, through the transformers of a pipeline."""
    inner = estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator
    if isinstance(inner, Pipeline):
        X = inner[:-1].transform(X) if len(inner) > 1 else X
    return ranker_of(estimator).latent(X)


def fit_weighted(estimator: Any, X: Any, y: Any, sample_weight: Any) -> None:
    """Fit an estimator, or a pipeline whose last step takes the weights."""
    if sample_weight is None:
        estimator.fit(X, y)
    elif isinstance(estimator, Pipeline):
        estimator.fit(X, y, **{f"{estimator.steps[-1][0]}__sample_weight": sample_weight})
    else:
        estimator.fit(X, y, sample_weight=sample_weight)
