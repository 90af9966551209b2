"""The scikit-learn API: parameters, validation, classes_, partial_fit."""

from ordspan.estimators.kernel import KernelOrdinalPA
from ordspan.estimators.online import MulticlassPA, MulticlassPerceptron, OrdinalPA, PRank
from ordspan.estimators.svm import OrdinalSVM

__all__ = [
    "KernelOrdinalPA",
    "MulticlassPA",
    "MulticlassPerceptron",
    "OrdinalPA",
    "OrdinalSVM",
    "PRank",
]
