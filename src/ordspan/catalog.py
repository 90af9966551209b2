"""Learners by their names on the command line, with their default parameters."""

from collections.abc import Mapping
from typing import Any

from ordspan.learners import KernelLearner, Learner, LinearLearner
from ordspan.learners.linear import DEFAULT_C
from ordspan.wording import check_choice

PA, KERNEL, SVM = "pa", "kernel", "svm"
ESTIMATORS = {PA: "OrdinalPA", KERNEL: "KernelOrdinalPA", SVM: "OrdinalSVM"}
"""Learners by name on the command line, with their estimators."""
LEARNERS = {estimator: learner for learner, estimator in ESTIMATORS.items()}
DEFAULTS: dict[str, dict[str, Any]] = {
    PA: {"variant": "PA-I", "C": DEFAULT_C, "average": True, "balanced": True},
    KERNEL: {
        "variant": "PA-I",
        "C": 1.0,
        "average": True,
        "kernel": "rbf",
        "gamma": "distance",
        "degree": 3.0,
        "coef0": 0.0,
        "budget": 500,
    },
    SVM: {"C": 0.1, "loss": "squared_hinge", "tol": 1e-3, "max_iter": 1000},
}
"""Default parameters of each learner, named as in its estimator; kernels have a budget."""


def learner_parameters(learner: str, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """All parameters of a learner: the given ones, and defaults for the others.

    >>> learner_parameters("svm", {"C": 2.0})["C"]
    2.0
    """
    check_choice("learner", learner, DEFAULTS)
    defaults = DEFAULTS[learner]
    for name in chosen:
        if name not in defaults:
            raise ValueError(
                f"the learner {learner} has no parameter {name}; it has {', '.join(defaults)}"
            )
    return defaults | dict(chosen)


def stored_parameters(estimator: str) -> set[str]:
    """Parameters that the model file of an estimator trained from files must have.

    >>> sorted(stored_parameters("OrdinalSVM"))
    ['C', 'classes', 'loss', 'max_iter', 'random_state', 'tol']
    """
    check_choice("estimator", estimator, LEARNERS)
    own = {*DEFAULTS[LEARNERS[estimator]], "classes", "random_state"}
    return own if LEARNERS[estimator] == SVM else own | {"max_iter", "shuffle"}


def make_learner(
    estimator: str, parameters: Mapping[str, Any], n_features: int, n_classes: int
) -> Learner:
    """A new learner for an estimator, without importing scikit-learn."""
    learner = LEARNERS[estimator]
    if learner == SVM:
        return LinearLearner(n_features, n_classes, "PA")
    kind = KernelLearner if learner == KERNEL else LinearLearner
    return kind(n_features, n_classes, **{name: parameters[name] for name in DEFAULTS[learner]})
