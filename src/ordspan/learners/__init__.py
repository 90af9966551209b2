"""Learners on ranks 1..K, online and batch: plain arrays, no scikit-learn."""

from ordspan.learners.base import Learner
from ordspan.learners.calibration import Calibration
from ordspan.learners.kernel import KernelLearner
from ordspan.learners.linear import (
    LinearLearner,
    MulticlassPALearner,
    PerceptronLearner,
    PRankLearner,
)

__all__ = [
    "Calibration",
    "KernelLearner",
    "Learner",
    "LinearLearner",
    "MulticlassPALearner",
    "PRankLearner",
    "PerceptronLearner",
]
