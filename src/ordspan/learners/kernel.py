"""The online learner in dual form: support vectors and their coefficients, on a budget or not."""

from __future__ import annotations

import math
import numbers
from copy import copy
from typing import Any

import numpy as np

from ordspan.core import state as layout
from ordspan.core.dual_walks import (
    COEF,
    CORRECTION,
    INVERSE,
    N_PARTS,
    NORM,
    support_scores,
    walk_support,
)
from ordspan.core.kernels import LANES, LINEAR, POLY, RBF, SIGMOID, Kernel, kernel_norm
from ordspan.core.rows import MAX_SQ_NORM, Rows, row_at
from ordspan.core.state import Floats
from ordspan.learners.base import Learner
from ordspan.learners.linear import DEFAULT_C, MAX_C, VARIANTS, check_rule
from ordspan.learners.rows import RowValueError, count_rows, refusal

KERNELS = {"linear": LINEAR, "rbf": RBF, "poly": POLY, "sigmoid": SIGMOID}
CACHE_LINE = 8
"""Numbers in a cache line."""


def check_kernel(kernel: str, gamma: float, degree: float, coef0: float) -> Kernel:
    """The kernel as compiled code takes it; constants that make it meaningless are refused."""
    if not isinstance(kernel, str) or kernel not in KERNELS:
        raise ValueError(
            f"unknown kernel {kernel!r}; choose one of {', '.join(KERNELS)}; for another kernel, "
            "put scikit-learn's Nystroem(kernel=...) before OrdinalPA in a pipeline"
        )
    for name, value, low in (("gamma", gamma, 0), ("degree", degree, 1), ("coef0", coef0, -MAX_C)):
        fits = isinstance(value, numbers.Real) and low <= value < np.inf
        if not fits or (name == "gamma" and value == 0):
            raise ValueError(f"a kernel needs a finite {name} of at least {low:g}, got {value!r}")
    return Kernel(KERNELS[kernel], float(gamma), float(degree), float(coef0))


# Unaligned, a fit takes 1.05 to 1.1 times as long.
def aligned_zeros(*shape: int) -> Floats:
    """Zeros aligned to a cache line, so that fewer lines are fetched."""
    size = math.prod(shape)
    room = np.zeros(size + CACHE_LINE)
    first = -room.ctypes.data // room.itemsize % CACHE_LINE
    return room[first : first + size].reshape(shape)


class Support:
    """Support vectors, and the coefficients and norms of each, with room to grow.

    Parameters
    ----------
    rows : array of shape (n, d)
        The vectors.
    dual : array of shape (N_PARTS, n)
        What is known about each, in the parts that core.dual_walks names.
    """

    def __init__(self, rows: Floats, dual: Floats) -> None:
        self.size, self.width = rows.shape
        self.vectors = aligned_zeros(0, self.width, LANES)  # block by block, feature by feature
        self.dual = aligned_zeros(N_PARTS, 0)
        self.make_room(-(-self.size // LANES))
        for i, row in enumerate(rows):
            self.vectors[i // LANES, :, i % LANES] = row
        self.dual[:, : self.size] = dual

    @property
    def rows(self) -> Floats:
        """The support vectors, one per row."""
        return self.vectors.transpose(0, 2, 1).reshape(-1, self.width)[: self.size]

    @property
    def used(self) -> Floats:
        """The used columns of ``dual``, (N_PARTS, size)."""
        return self.dual[:, : self.size]

    def make_room(self, n_blocks: int) -> None:
        """Enlarge the arrays to a number of blocks."""
        vectors = aligned_zeros(n_blocks, self.width, LANES)
        dual = aligned_zeros(N_PARTS, n_blocks * LANES)
        vectors[: self.vectors.shape[0]] = self.vectors
        dual[:, : self.dual.shape[1]] = self.dual
        self.vectors, self.dual = vectors, dual

    def grow_if_full(self, budget: int | None) -> None:
        """Double a full capacity, up to what a budget can need."""
        if self.size == self.dual.shape[1]:
            n_blocks = 2 * self.vectors.shape[0] + 1
            if budget is not None:
                n_blocks = min(n_blocks, max(budget, self.size) // LANES + 1)  # and the next one
            self.make_room(n_blocks)


class KernelLearner(Learner):
    """Exact PA, PA-I or PA-II in dual form on ranks 1..K: the fast core of `KernelOrdinalPA`.

    The score of a row x is the sum over the support vectors s of their coefficients times k(x, s).
    The step is that of `LinearLearner` with k(x, x) in place of the squared norm.

    Parameters
    ----------
    n_features, n_classes : int
        Length of a row, and the number of ranks K.
    variant, C, average :
        As in `LinearLearner`.
    kernel : {"rbf", "linear", "poly", "sigmoid"}
        See `KernelOrdinalPA`.
    gamma : float, optional
        Constant of rbf, poly and sigmoid; by default, 1 / n_features.
    degree, coef0 : float
        Constants of poly, and of poly and sigmoid.
    budget : int, optional
        Largest number of support vectors; see `KernelOrdinalPA`.

    Examples
    --------
    >>> from ordspan.learners import KernelLearner
    >>> learner = KernelLearner(n_features=1, n_classes=2, variant="PA", gamma=1.0)
    >>> learner.learn_many([[1.0]], [1])
    >>> learner.support_vectors, learner.dual_coef, learner.thresholds
    (array([[1.]]), array([-0.5]), array([0.5]))
    >>> learner.latent([[1.0], [9.0]]).round(6)  # far away nothing has been learned
    array([-0.5, -0. ])
    """

    rules = VARIANTS.values()
    fixed = "average, kernel, gamma, degree and coef0"

    def __init__(
        self,
        n_features: int,
        n_classes: int,
        variant: str = "PA-I",
        C: float = DEFAULT_C,
        average: bool = False,
        *,
        kernel: str = "rbf",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 0.0,
        budget: int | None = None,
    ) -> None:
        rule = check_rule(variant, C)
        gamma = 1.0 / max(1, n_features) if gamma is None else gamma
        self.kernel = check_kernel(kernel, gamma, degree, coef0)
        whole = isinstance(budget, numbers.Integral) and not isinstance(budget, bool)
        if budget is not None and not (whole and 0 < budget < 2**63):
            raise ValueError(f"budget must be a whole number >= 1, or None for any; got {budget!r}")
        self.budget = budget
        super().__init__(n_features, n_classes, rule=rule, C=C, average=average, n_weights=0)

    # -- state -----------------------------------------------------------------------------------

    @property
    def head(self) -> Floats:
        """The part of the state that holds settings, counters and thresholds."""
        return self._head

    @property
    def state(self) -> Floats:
        """The whole state as one array; a copy, so assign it to change the learner."""
        return np.concatenate([self._head, self.support.used.ravel(), self.support.rows.ravel()])

    @state.setter
    def state(self, state: Floats) -> None:
        size = layout.head_size(state)
        self._head, rest = state[:size].copy(), state[size:]
        n_used = N_PARTS * (rest.size // (N_PARTS + self.n_features))
        self.support = Support(
            rest[n_used:].reshape(-1, self.n_features), rest[:n_used].reshape(N_PARTS, -1)
        )

    def why_unusable(self, state: Any, n_features: int, n_classes: int) -> str | None:  # noqa: D102
        if state.ndim != 1:
            return f"has {state.ndim} dimensions"
        size = layout.state_size(layout.HARD, 0, n_classes, bool(self._head[layout.AVERAGING]))
        fault = layout.why_unusable(state[:size], self._head, self.rules, 0, n_classes)
        if fault is not None:
            return fault
        rest = state[size:]
        n_support, left = divmod(rest.size, N_PARTS + n_features)
        if left:
            return f"has {rest.size} numbers for support vectors of {N_PARTS + n_features} each"
        used = rest[: N_PARTS * n_support].reshape(N_PARTS, -1)
        if not np.isfinite(rest).all() or (used[[NORM, INVERSE]] <= 0.0).any():
            return "has support vectors that are not finite, or of length 0"
        return None

    def is_compatible(self, other: Learner) -> bool:  # noqa: D102
        return super().is_compatible(other) and self.kernel == getattr(other, "kernel", None)

    def adopt_settings(self, other: Learner) -> None:  # noqa: D102
        super().adopt_settings(other)
        self.budget = getattr(other, "budget", None)

    def _snapshot(self) -> Any:
        support = copy(self.support)
        support.vectors, support.dual = support.vectors.copy(), support.dual.copy()
        return self._head.copy(), self.budget, support

    def _roll_back(self, before: Any) -> None:
        self._head, self.budget, self.support = before

    @property
    def n_support(self) -> int:
        """Number of support vectors."""
        return self.support.size

    @property
    def support_vectors(self) -> Floats:
        """The support vectors, (n_support, d)."""
        return self.support.rows.copy()

    @property
    def dual_coef(self) -> Floats:
        """The coefficients used in prediction, (n_support,): averages, or the last ones."""
        coef, correction = self.support.used[[COEF, CORRECTION]]
        age = layout.age_of.py_func(self.model)
        return coef - correction / age if age else coef

    @property
    def weights(self) -> Floats:
        """Weights of the features, (d,); for a linear kernel only."""
        if self.kernel.kind != LINEAR:
            raise AttributeError("only a linear kernel has one weight per feature")
        return self.dual_coef @ self.support.rows

    # -- learning and prediction -------------------------------------------------------------------

    def _walk(self, rows: Rows, *arguments: Any) -> int:
        support, done, bad = self.support, 0, -1
        while done < rows.lower.size and bad < 0:
            support.grow_if_full(self.budget)
            scratch = np.empty((4, max(support.dual.shape[1], support.width)))
            state = (self._head, support.vectors, support.dual, scratch, support.size)
            done, bad, support.size = walk_support(
                *state, self.kernel, self.budget, rows, *arguments, done
            )
        return bad

    def latent(self, X: Any, *, feature_names: Any = None) -> Floats:  # noqa: D102
        rows = self.rows(X)
        out = np.zeros(count_rows(rows))
        coef, vectors = self.dual_coef, self.support.vectors
        coef = coef[: vectors.shape[0] * LANES]  # another thread may be learning
        bad = support_scores(coef, vectors, self.kernel, rows, out)
        if bad >= 0:
            raise RowValueError(refusal(rows, bad, feature_names))
        return out

    def _refusal(self, rows: Rows, row: int, feature_names: Any) -> str:
        usual = refusal(rows, row, feature_names)
        values, _ = row_at.py_func(*rows[:3], rows.width, row)
        with np.errstate(over="ignore"):
            sq_norm = float(np.square(values, dtype=np.float64).sum())
        norm = kernel_norm(self.kernel, sq_norm) if sq_norm < MAX_SQ_NORM else 1.0
        if not 0.0 < norm < MAX_SQ_NORM:
            return (
                f"row {row}: k(x, x) = {norm:g} must be positive and below {MAX_SQ_NORM:g}; scale "
                "the features, or choose another kernel or other constants (for poly and sigmoid a "
                "larger coef0)"
            )
        return usual
