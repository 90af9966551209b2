"""An estimator alone, frozen, in a search, or as the last step of a pipeline."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from ordspan.estimators.base import ThresholdModel


def inside(model: Any) -> Any:
    """What a pipeline, a frozen estimator or a fitted search calls in the end; None for others."""
    if isinstance(model, Pipeline):
        return model.steps[-1][1]
    if isinstance(model, FrozenEstimator):
        return model.estimator
    return getattr(model, "best_estimator_", None)


def layers_of(model: Any) -> list[Any]:
    """A model and the estimators nested in it, down to the ranker.

    >>> from ordspan import PRank
    >>> from sklearn.pipeline import make_pipeline
    >>> [type(part).__name__ for part in layers_of(make_pipeline(PRank()))]
    ['Pipeline', 'PRank']
    """
    layers = []
    while model is not None:
        layers.append(model)
        model = inside(model) or getattr(model, "estimator_", None)
    return layers


def ranker_of(estimator: Any) -> Any:
    """The estimator with a score and thresholds: itself, or the last step of a pipeline.

    >>> from ordspan import PRank
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> ranker_of(make_pipeline(StandardScaler(), PRank()))
    PRank()
    """
    last = layers_of(estimator)[-1]
    if not isinstance(last, ThresholdModel):
        raise TypeError(
            "estimator must be one with a score and thresholds (OrdinalPA, KernelOrdinalPA, "
            f"OrdinalSVM or PRank), alone or as the last step of a Pipeline, got {last!r}"
        )
    return last


HAVING = {"latent": "OrdinalPA()", "predict_interval": "CalibratedOrdinal(OrdinalPA())"}
"""A last step that has the method."""


def _call_last_step(model: Any, method: str, X: Any, *arguments: Any) -> Any:
    """Call a method of the last step that scikit-learn's pipelines do not forward."""
    while (inner := inside(model)) is not None:
        if isinstance(model, Pipeline) and len(model) > 1:
            X = model[:-1].transform(X)
        model = inner
    if not hasattr(model, method):
        raise TypeError(
            f"{type(model).__name__} has no {method} method; use a last step that has one, for "
            f"example {HAVING[method]}"
        )
    return getattr(model, method)(X, *arguments)


def latent(model: Any, X: Any) -> NDArray[np.float64]:
    """Score of every row, through the transformers of a pipeline.

    scikit-learn's Pipeline forwards ``predict`` and similar methods, but not ``latent``.

    Parameters
    ----------
    model : estimator
        A fitted estimator with a score, a Pipeline that ends in one, or a search such as
        GridSearchCV over either.
    X : array-like of shape (n, d)
        Features, as the model takes them.

    Returns
    -------
    ndarray of shape (n,)
        The output of ``latent`` of the last step.

    Examples
    --------
    >>> import ordspan
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X = [[10.0], [20.0], [30.0]]
    >>> model = make_pipeline(StandardScaler(), ordspan.OrdinalPA(random_state=0)).fit(X, [1, 2, 3])
    >>> (ordspan.latent(model, X) > model[-1].thresholds_[0]).tolist()
    [False, True, True]
    """
    return _call_last_step(model, "latent", X)


def predict_interval(model: Any, X: Any, coverage: float = 0.9) -> NDArray[Any]:
    """Range of grades that contains the true one with a given coverage, through a pipeline.

    Parameters
    ----------
    model : estimator
        A fitted `CalibratedOrdinal`, a Pipeline that ends in one, or a search such as
        GridSearchCV over either.
    X : array-like of shape (n, d)
        Features, as the model takes them.
    coverage : float, default=0.9
        One of the ``coverages`` that the model was calibrated for.

    Returns
    -------
    ndarray of shape (n, 2)
        Inclusive ranges ``[lower, upper]`` of grades.

    Examples
    --------
    >>> import numpy as np
    >>> import ordspan
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X = np.random.default_rng(0).normal(10.0, 5.0, size=(300, 1))
    >>> y = np.searchsorted([5.0, 15.0], X[:, 0])
    >>> model = make_pipeline(StandardScaler(), ordspan.CalibratedOrdinal(random_state=0)).fit(X, y)
    >>> ordspan.predict_interval(model, [[0.0], [20.0]])
    array([[0, 0],
           [2, 2]])
    """
    return _call_last_step(model, "predict_interval", X, coverage)


def fit_weighted(estimator: Any, X: Any, y: Any, sample_weight: Any) -> None:
    """Fit an estimator, or a pipeline whose last step takes the weights."""
    path, last = "", estimator
    while isinstance(last, Pipeline):
        name, last = last.steps[-1]
        path += f"{name}__"
    weights = {} if sample_weight is None else {f"{path}sample_weight": sample_weight}
    estimator.fit(X, y, **weights)
