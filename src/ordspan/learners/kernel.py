"""The online learner in dual form: support vectors and their coefficients, on a budget or not."""

from __future__ import annotations

from typing import Any

import numpy as np

from ordspan.core import memory as layout
from ordspan.core.dual_walks import LabelledRows, support_scores, walk_support
from ordspan.core.kernels import Kernel, kernel_norm
from ordspan.core.rbf import LANES
from ordspan.core.rows import BAD_WIDTH, MAX_SQ_NORM, row_fits
from ordspan.core.vectors import COEF, CORRECTION, INVERSE, N_PARTS, NORM
from ordspan.learners.checks import DEFAULT_C, VARIANTS, Floats, RowValueError, check_rule
from ordspan.learners.kernel_values import KERNELS, check_budget, check_constants, check_kernel
from ordspan.learners.rows import NO_ORDER, is_sparse, refusal, row_blocks
from ordspan.learners.state import State
from ordspan.learners.support import Support
from ordspan.learners.walking import WalkingLearner


class KernelLearner(WalkingLearner):
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
        check_kernel(kernel)
        gamma = 1.0 / max(1, n_features) if gamma is None else gamma
        check_constants(gamma, degree, coef0)
        self.kernel = kernel
        self.budget = check_budget(budget)
        self._kernel = Kernel(KERNELS[kernel], float(gamma), float(degree), float(coef0))
        self.support = Support(n_features)
        super().__init__(n_features, n_classes, rule=rule, C=float(C), average=average, n_weights=0)

    # -- state -----------------------------------------------------------------------------------

    @property
    def memory(self) -> Floats:
        """The whole state as one array; a copy, so assign it to change the learner."""
        return np.concatenate([self._head, self.support.known.ravel(), self.support.rows.ravel()])

    @memory.setter
    def memory(self, memory: Floats) -> None:
        size, width = layout.head_size(memory), self.support.width
        rest = memory[size:]
        n_known = N_PARTS * (rest.size // (N_PARTS + width))
        self._head = memory[:size].copy()
        self.support = Support(width)  # a copy of this learner may have the old one
        self.support.fill(rest[:n_known].reshape(N_PARTS, -1), rest[n_known:].reshape(-1, width))

    def _fault_in(self, memory: Floats, n_features: int, n_classes: int) -> str | None:
        if memory.ndim != 1:
            return f"has {memory.ndim} dimensions"
        size = layout.memory_size(layout.HARD, 0, n_classes, bool(self._head[layout.AVERAGING]))
        head, rest = memory[:size], memory[size:]
        fault = layout.memory_fault(head, self._head, self.rules, 0, n_classes)
        if fault is not None:
            return fault
        n_support, left = divmod(rest.size, N_PARTS + n_features)
        if left:
            return f"has {rest.size} numbers for support vectors of {N_PARTS + n_features} each"
        known = rest[: N_PARTS * n_support].reshape(N_PARTS, -1)
        if not np.isfinite(rest).all() or (known[[NORM, INVERSE]] <= 0.0).any():
            return "has support vectors that are not finite, or of length 0"
        return None

    @property
    def model(self) -> layout.Model:
        """Named views into thresholds and counters; there are no weights."""
        return layout.model_view(self._head)

    def _fits(self, memory: Floats) -> bool:
        fits = self.fault_in(memory, self.n_features, self.n_classes) is None
        return fits and layout.same_settings(memory, self._head)

    def _same_space(self, other: State) -> bool:
        if not isinstance(other, KernelLearner):
            return False
        mine, theirs = ((one.kernel, one._kernel, one.n_features) for one in (self, other))
        return mine == theirs and layout.same_settings(self._head, other._head, rule_too=False)

    def _take_rule(self, other: Any) -> None:
        layout.take_rule(self._head, other._head)
        self.budget = other.budget

    def _snapshot(self) -> Any:
        return self._head.copy(), self.budget, self.support.snapshot()

    def _roll_back(self, before: Any) -> None:
        self._head, self.budget, support = before
        self.support.roll_back(support)

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
        coef, correction = self.support.known[[COEF, CORRECTION]]
        if self.model.edge_correction.size == 0 or self.n_trials == 0:
            return coef
        return coef - correction / self.n_trials

    @property
    def weights(self) -> Floats:
        """Weights of the features, (d,); for a linear kernel only."""
        if self.kernel != "linear":
            raise AttributeError("only a linear kernel has one weight per feature")
        return self.dual_coef @ self.support.rows

    # -- learning --------------------------------------------------------------------------------

    def _predict_one(self, values: Any, columns: Any) -> int:
        if not row_fits.py_func(values, columns, self.n_features):
            return BAD_WIDTH
        row = np.zeros((1, self.n_features))
        row[0, slice(None) if columns is None else columns] = values
        return int(self.predict_many(row)[0])

    def _walk(self, *rows: Any) -> int:
        examples = LabelledRows(*rows)
        n_rows = examples.lower.size
        support, done, bad = self.support, 0, -1
        while done < n_rows and bad < 0:
            if support.is_full:
                support.grow(self.budget)
            scratch = np.empty((4, max(support.dual.shape[1], support.width)))
            state = (self._head, support.vectors, support.dual, scratch, support.size)
            turn = (*state, self._kernel, self.budget, examples, done)
            done, bad, support.size = walk_support(*turn)
        return bad

    def _refusal(self, matrix: Any, row: int, feature_names: Any) -> str:
        x = matrix[[row]].toarray() if is_sparse(matrix) else matrix[[row]].astype(np.float64)
        usual = refusal(matrix, row, feature_names)
        with np.errstate(over="ignore"):
            square = float(np.square(x).sum())
        if not square < MAX_SQ_NORM:
            return usual
        norm = kernel_norm(self._kernel, square)
        if norm <= 0.0:
            return (
                f"row {row}: k(x, x) = {norm:g} must be positive; choose another kernel, or other "
                "constants (for poly and sigmoid a larger coef0)"
            )
        if not norm < MAX_SQ_NORM:
            return (
                f"row {row}: k(x, x) = {norm:g} is not a finite number below "
                f"{MAX_SQ_NORM:g}; scale the features, or choose another kernel or other "
                "constants"
            )
        return usual

    # -- prediction ------------------------------------------------------------------------------

    def _latent(self, matrix: Any, feature_names: Any) -> Floats:
        out = np.zeros(matrix.shape[0])
        coef, vectors = self.dual_coef, self.support.vectors
        coef = coef[: vectors.shape[0] * LANES]  # another thread may be learning
        for block, _ in row_blocks(matrix, NO_ORDER):
            rows = (block.data, block.columns, block.starts, out[block.rows])
            bad = support_scores(coef, vectors, self._kernel, *rows)
            if bad >= 0:
                raise RowValueError(refusal(matrix, block.rows.start + bad, feature_names))
        return out
