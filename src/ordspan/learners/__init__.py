"""State that learns: plain arrays, ranks 1..K, no scikit-learn."""

from ordspan.learners.linear import Learner, LinearLearner, PerceptronLearner, PRankLearner

__all__ = ["Learner", "LinearLearner", "PRankLearner", "PerceptronLearner"]
