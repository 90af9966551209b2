"""The scikit-learn face: parameters, validation, classes_, partial_fit."""

from ordspan.estimators.online import MulticlassPA, MulticlassPerceptron, OrdinalPA, PRank
from ordspan.estimators.svm import OrdinalSVM

__all__ = ["MulticlassPA", "MulticlassPerceptron", "OrdinalPA", "OrdinalSVM", "PRank"]
