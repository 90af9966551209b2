"""Small data whose right answer is obvious, and one of each estimator."""

import numpy as np

from ordspan import KernelOrdinalPA, MulticlassPA, MulticlassPerceptron, OrdinalPA, PRank

ESTIMATORS = [
    OrdinalPA(random_state=0),
    OrdinalPA("PA", average=False, random_state=0),
    OrdinalPA("PA-II", C=1.0, random_state=0),
    OrdinalPA(solver="sca", balanced=False, random_state=0),
    OrdinalPA(balanced=False, random_state=0),
    PRank(random_state=0),
    MulticlassPerceptron(random_state=0),
    MulticlassPA(random_state=0),
    MulticlassPA("PA", random_state=0),
    MulticlassPA("PA-II", C=1.0, random_state=0),
    KernelOrdinalPA(random_state=0),
    KernelOrdinalPA(kernel="poly", coef0=1.0, budget=20, random_state=0),
    KernelOrdinalPA(budget=20, average=False, random_state=0),
]
KINDS = [OrdinalPA, PRank, MulticlassPerceptron, MulticlassPA, KernelOrdinalPA]


def graded(n=300, d=4, n_classes=4, seed=0):
    """Rows whose grade is the quartile of a linear score, and intervals around the grades."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    score = X @ np.arange(1, d + 1)
    y = np.searchsorted(np.quantile(score, np.arange(1, n_classes) / n_classes), score) + 1
    below, above = rng.integers(0, 2, size=(2, n))
    spans = np.column_stack([np.maximum(1, y - below), np.minimum(n_classes, y + above)])
    return X, y, spans


def numbers(model):
    """All that a model has learned."""
    if hasattr(model, "calibration_"):
        return np.append(model.estimator_.learner_.state, model.calibration_.state)
    return model.learner_.state
