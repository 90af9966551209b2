"""The online learner in dual form: support vectors and their coefficients, on a budget or not."""

import math
import numbers
from typing import Any

import numpy as np

from ordspan.core import dual_walks
from ordspan.core import state as layout
from ordspan.core.kernels import LANES, LINEAR, POLY, RBF, SIGMOID, Kernel, kernel_norm
from ordspan.core.rows import MAX_SQ_NORM, Rows, row_at
from ordspan.core.state import Floats
from ordspan.learners.base import Learner
from ordspan.learners.linear import DEFAULT_C, EXACT_STEP, MAX_C, VARIANTS, check_rule
from ordspan.learners.rows import RowValueError, count_rows, refusal

KERNELS = {"linear": LINEAR, "rbf": RBF, "poly": POLY, "sigmoid": SIGMOID}
CACHE_LINE = 8  # numbers in a cache line


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
def enlarged(values: Floats, *shape: int) -> Floats:
    """A copy filled up with zeros; aligned to a cache line, so that fewer lines are fetched."""
    size = math.prod(shape)
    room = np.zeros(size + CACHE_LINE)
    first = -room.ctypes.data // room.itemsize % CACHE_LINE
    larger = room[first : first + size].reshape(shape)
    larger[tuple(map(slice, values.shape))] = values
    return larger


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

    rules = tuple(rule[EXACT_STEP] for rule in VARIANTS.values())
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
        used = self.dual[:, : self.n_support]
        return np.concatenate([self._head, used.ravel(), self.support_vectors.ravel()])

    @state.setter
    def state(self, state: Floats) -> None:
        size = layout.state_size(layout.HARD, 0, self.n_classes, bool(state[layout.AVERAGING]))
        self._head, rest = state[:size].copy(), state[size:]
        self.n_support = rest.size // (dual_walks.N_PARTS + self.n_features)
        used, rows = np.split(rest, [dual_walks.N_PARTS * self.n_support])
        n_blocks = -(-self.n_support // LANES)
        self.dual = enlarged(
            used.reshape(dual_walks.N_PARTS, -1), dual_walks.N_PARTS, n_blocks * LANES
        )
        rows = enlarged(rows.reshape(-1, self.n_features), n_blocks * LANES, self.n_features)
        blocks = rows.reshape(n_blocks, LANES, self.n_features).transpose(0, 2, 1)
        self.vectors = enlarged(blocks, *blocks.shape)

    def why_unusable(self, state: Any, n_features: int, n_classes: int) -> str | None:  # noqa: D102
        if state.ndim != 1:
            return f"has {state.ndim} dimensions"
        size = layout.state_size(layout.HARD, 0, n_classes, bool(self._head[layout.AVERAGING]))
        fault = layout.why_unusable(state[:size], self._head, self.rules, 0, n_classes)
        if fault is not None:
            return fault
        rest = state[size:]
        n_support, left = divmod(rest.size, dual_walks.N_PARTS + n_features)
        if left:
            size = dual_walks.N_PARTS + n_features
            return f"has {rest.size} numbers for support vectors of {size} each"
        used = rest[: dual_walks.N_PARTS * n_support].reshape(dual_walks.N_PARTS, -1)
        if (
            not np.isfinite(rest).all()
            or (used[[dual_walks.NORM, dual_walks.INVERSE]] <= 0.0).any()
        ):
            return "has support vectors that are not finite, or of length 0"
        return None

    def is_compatible(self, other: Learner) -> bool:  # noqa: D102
        return super().is_compatible(other) and self.kernel == getattr(other, "kernel", None)

    def adopt_settings(self, other: Learner) -> None:  # noqa: D102
        super().adopt_settings(other)
        self.budget = getattr(other, "budget", None)

    @property
    def support_vectors(self) -> Floats:
        """The support vectors, (n_support, d)."""
        rows = np.array(self.vectors.transpose(0, 2, 1), order="C")  # never a view
        return rows.reshape(-1, self.n_features)[: self.n_support]

    @property
    def dual_coef(self) -> Floats:
        """The coefficients used in prediction, (n_support,): averages, or the last ones."""
        coef, correction = self.dual[[dual_walks.COEF, dual_walks.CORRECTION], : self.n_support]
        age = layout.age_of.py_func(self.model)
        return coef - correction / age if age else coef

    @property
    def weights(self) -> Floats:
        """Weights of the features, (d,); for a linear kernel only."""
        if self.kernel.kind != LINEAR:
            raise AttributeError("only a linear kernel has one weight per feature")
        return self.dual_coef @ self.support_vectors

    # -- learning and prediction -------------------------------------------------------------------

    def _walk(self, rows: Rows, *arguments: Any) -> int:
        done, bad = 0, -1
        while done < rows.lower.size and bad < 0:
            if self.n_support == self.dual.shape[1]:
                n_blocks = 2 * self.vectors.shape[0] + 1
                if self.budget is not None:  # room for that many, and the next one
                    n_blocks = min(n_blocks, max(self.budget, self.n_support) // LANES + 1)
                self.vectors = enlarged(self.vectors, n_blocks, self.n_features, LANES)
                self.dual = enlarged(self.dual, dual_walks.N_PARTS, n_blocks * LANES)
            scratch = np.empty((dual_walks.N_SCRATCH, max(self.dual.shape[1], self.n_features)))
            support = dual_walks.Support(self.kernel, self.vectors, self.dual, scratch)
            progress = done, self.n_support
            (done, self.n_support), bad = dual_walks.walk_support(
                self._head, support, self.budget, progress, rows, *arguments
            )
        return bad

    def latent(self, X: Any, *, feature_names: Any = None) -> Floats:  # noqa: D102
        rows = self.rows(X)
        out = np.zeros(count_rows(rows))
        coef, vectors = self.dual_coef, self.vectors
        coef = coef[: vectors.shape[0] * LANES]  # another thread may be learning
        bad = dual_walks.support_scores(coef, vectors, self.kernel, rows, out)
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
