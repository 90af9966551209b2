"""The scikit-learn face: parameters, validation, classes_, partial_fit."""

from ordspan.estimators.online import MulticlassPerceptron, OrdinalPA, PRank

__all__ = ["MulticlassPerceptron", "OrdinalPA", "PRank"]
