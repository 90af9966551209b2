"""Kernels by name, function or matrix: checks, and values computed in Python."""

from __future__ import annotations

import numbers
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ordspan.core.budget import NEAREST, SIMPLE, Budget
from ordspan.core.kernels import LINEAR, POLY, RBF, SIGMOID

KERNELS = {"linear": LINEAR, "rbf": RBF, "poly": POLY, "sigmoid": SIGMOID}
PRECOMPUTED = "precomputed"
STRATEGIES = {"nearest": NEAREST, "simple": SIMPLE}
DEFAULT_STRATEGY = "nearest"

Floats = NDArray[np.float64]
KernelFunction = Callable[[Floats, Floats], ArrayLike]


def check_kernel(kernel: str | KernelFunction) -> None:
    """Refuse what is neither a known name nor callable."""
    known = (*KERNELS, PRECOMPUTED)
    if not callable(kernel) and not (isinstance(kernel, str) and kernel in known):
        raise ValueError(
            f"unknown kernel {kernel!r}; choose one of {', '.join(known)}, or give a function "
            "k(X, Y) that returns the kernel matrix"
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


def check_budget(budget: int | None, strategy: str) -> Budget | None:
    """A budget as compiled code takes it.

    >>> check_budget(100, "simple")
    Budget(size=100, strategy=0)
    """
    if not isinstance(strategy, str) or strategy not in STRATEGIES:
        raise ValueError(
            f"unknown budget_strategy {strategy!r}; choose one of {', '.join(STRATEGIES)}"
        )
    if budget is None:
        return None
    whole = isinstance(budget, numbers.Integral) and not isinstance(budget, bool)
    if not whole or budget < 1:
        raise ValueError(
            "budget must be a whole number >= 1, or None for any number of support vectors; got "
            f"{budget!r}"
        )
    return Budget(min(int(budget), sys.maxsize), STRATEGIES[strategy])


def call_kernel(kernel: Any, X: Floats, Y: Floats, first: int) -> Floats:
    """Kernel matrix of a user's function, (n_X, n_Y), checked.

    ``first`` is the number of the first row of X, for errors.
    """
    expected = (X.shape[0], Y.shape[0])
    try:
        values = np.asarray(kernel(X, Y))
    except Exception as error:
        error.add_note(
            f"the kernel was called as k(X, Y) with {expected[0]} and {expected[1]} rows; it must "
            "return the matrix of the values of all rows of X with all rows of Y, as X @ Y.T does"
        )
        raise
    if values.shape != expected or values.dtype.kind not in "biuf":
        raise ValueError(
            f"the kernel must return an array of numbers of shape (n_X, n_Y); given {expected[0]} "
            f"and {expected[1]} rows it returned {values.dtype} of shape {values.shape}"
        )
    bad = np.argwhere(~np.isfinite(values))
    if bad.size:
        row = first + int(bad[0, 0])
        value = values[tuple(bad[0])]
        raise ValueError(f"row {row}: the kernel returned {value}; every value must be finite")
    return values.astype(np.float64, copy=False)


class FunctionKernel:
    """A kernel that is a user's function, called row by row in learning."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def vector(self, row: Floats, square: float, number: int) -> tuple[Floats, float]:
        """How a row is stored as a support vector, and its squared norm."""
        return row, square

    def norm(self, row: Floats, number: int) -> float:
        """k(x, x) for row ``number``."""
        return float(self.values(row.reshape(1, -1), row.reshape(1, -1), number)[0, 0])

    def values(self, X: Floats, vectors: Floats, first: int) -> Floats:
        """Kernel values of rows, numbered from ``first`` on, with support vectors."""
        return call_kernel(self.function, X, vectors, first)

    def row_of(self, vector: Floats, dense: Callable[[int], Floats]) -> Floats:
        """The row of a support vector; ``dense`` looks rows up by number."""
        return vector


class PrecomputedKernel(FunctionKernel):
    """A kernel whose values are the rows themselves; vectors are stored as numbers from 1."""

    def __init__(self) -> None:
        super().__init__(None)

    def vector(self, row: Floats, square: float, number: int) -> tuple[Floats, float]:
        """The number, and its square, or 0 for a row of zeros as with other kernels."""
        kept = number + 1.0
        return np.array([kept]), kept**2 if square > 0.0 else 0.0

    def norm(self, row: Floats, number: int) -> float:
        """The row's diagonal entry."""
        return float(row[number])

    def values(self, X: Floats, vectors: Floats, first: int) -> Floats:
        """The columns of the support vectors."""
        return X[:, numbers_of(vectors)]

    def row_of(self, vector: Floats, dense: Callable[[int], Floats]) -> Floats:
        """The row, looked up by its number."""
        return dense(int(numbers_of(vector[None])[0]))


def numbers_of(vectors: Floats) -> NDArray[np.intp]:
    """Row numbers of the support vectors of a precomputed kernel."""
    return vectors[:, 0].astype(np.intp) - 1
