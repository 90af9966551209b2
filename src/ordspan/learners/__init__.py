"""State that learns: plain arrays, ranks 1..K, no scikit-learn."""

from ordspan.learners.kernel import KernelLearner
from ordspan.learners.linear import Learner, LinearLearner, PerceptronLearner, PRankLearner
from ordspan.learners.rivals import AggregateLearner, MulticlassPALearner

__all__ = [
    "AggregateLearner",
    "KernelLearner",
    "Learner",
    "LinearLearner",
    "MulticlassPALearner",
    "PRankLearner",
    "PerceptronLearner",
]
