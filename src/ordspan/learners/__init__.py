"""Online learners on ranks 1..K: plain arrays, no scikit-learn."""

from ordspan.learners.base import Learner
from ordspan.learners.calibration import Calibration
from ordspan.learners.committee import AggregateLearner
from ordspan.learners.kernel import KernelLearner
from ordspan.learners.linear import LinearLearner, PRankLearner
from ordspan.learners.multiclass import MulticlassPALearner, PerceptronLearner

__all__ = [
    "AggregateLearner",
    "Calibration",
    "KernelLearner",
    "Learner",
    "LinearLearner",
    "MulticlassPALearner",
    "PRankLearner",
    "PerceptronLearner",
]
