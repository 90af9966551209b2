"""Metrics for ordered grades: labels as in ``fit``, exact or intervals, and distances in ranks."""

from ordspan.metrics.grades import (
    accuracy,
    inside_interval,
    macro_mean_absolute_error,
    mean_absolute_error,
    quadratic_weighted_kappa,
)

__all__ = [
    "accuracy",
    "inside_interval",
    "macro_mean_absolute_error",
    "mean_absolute_error",
    "quadratic_weighted_kappa",
]
