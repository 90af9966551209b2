"""Metrics for ordered grades; labels as in ``fit``, exact or ranges, and distances in ranks."""

from ordspan.metrics.grades import (
    accuracy,
    inside_interval,
    macro_mean_absolute_error,
    mean_absolute_error,
    quadratic_weighted_kappa,
)
from ordspan.metrics.probabilities import log_score, ranked_probability_score
from ordspan.metrics.ranges import interval_coverage, interval_width

__all__ = [
    "accuracy",
    "inside_interval",
    "interval_coverage",
    "interval_width",
    "log_score",
    "macro_mean_absolute_error",
    "mean_absolute_error",
    "quadratic_weighted_kappa",
    "ranked_probability_score",
]
