"""Metrics for ordered grades; labels are exact (n,) or intervals (n, 2), as ranks or numbers."""

from ordspan.core.losses import (
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
