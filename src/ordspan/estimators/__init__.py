"""The scikit-learn API: parameters, validation, classes_, partial_fit."""

from ordspan.estimators.calibrated import CalibratedOrdinal
from ordspan.estimators.kernel import KernelOrdinalPA
from ordspan.estimators.online import MulticlassPA, MulticlassPerceptron, OrdinalPA, PRank
from ordspan.estimators.svm import OrdinalSVM

__all__ = [
    "CalibratedOrdinal",
    "KernelOrdinalPA",
    "MulticlassPA",
    "MulticlassPerceptron",
    "OrdinalPA",
    "OrdinalSVM",
    "PRank",
]
