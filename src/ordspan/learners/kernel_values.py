"""Checks of kernels, their constants and the budget."""

from __future__ import annotations

import numbers
import sys

import numpy as np

from ordspan.core.kernels import LINEAR, POLY, RBF, SIGMOID

KERNELS = {"linear": LINEAR, "rbf": RBF, "poly": POLY, "sigmoid": SIGMOID}


def check_kernel(kernel: str) -> None:
    """Refuse a kernel without a known name."""
    if not isinstance(kernel, str) or kernel not in KERNELS:
        raise ValueError(
            f"unknown kernel {kernel!r}; choose one of {', '.join(KERNELS)}; for another kernel, "
            "put scikit-learn's Nystroem(kernel=...) before OrdinalPA in a pipeline"
        )


def check_constants(gamma: float, degree: float, coef0: float) -> None:
    """Refuse constants that make a kernel meaningless."""
    for name, value, least in (
        ("gamma", gamma, 0.0),
        ("degree", degree, 1.0),
        ("coef0", coef0, -np.inf),
    ):
        real = isinstance(value, numbers.Real) and not isinstance(value, bool)
        if not real or not least <= value < np.inf or value == -np.inf:
            raise ValueError(f"{name} must be a finite number >= {least:g}, got {value!r}")
    if gamma == 0:
        raise ValueError("gamma must be above 0, got 0: all kernel values would be the same")


def check_budget(budget: int | None) -> int | None:
    """The largest number of support vectors as compiled code takes it; None for any number."""
    if budget is None:
        return None
    whole = isinstance(budget, numbers.Integral) and not isinstance(budget, bool)
    if not whole or budget < 1:
        raise ValueError(
            "budget must be a whole number >= 1, or None for any number of support vectors; got "
            f"{budget!r}"
        )
    return min(int(budget), sys.maxsize)
