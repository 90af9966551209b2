"""The online learner in dual form: support vectors and their coefficients, on a budget or not."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ordspan.core import updates
from ordspan.core.labels import check_ranks
from ordspan.core.updates import LANES, N_PARTS, Kernel
from ordspan.learners.kernel_values import (
    DEFAULT_STRATEGY,
    KERNELS,
    PRECOMPUTED,
    KernelFunction,
    ask,
    check_budget,
    check_constants,
    check_kernel,
)
from ordspan.learners.linear import (
    DEFAULT_C,
    NO_ORDER,
    NO_WEIGHTS,
    Floats,
    Learner,
    RowError,
    as_row,
    check_rule,
)
from ordspan.learners.rows import blocks, is_sparse, refusal

VALUES_AT_ONCE = 1 << 20
"""In prediction a function is asked for about so many values in one call."""

CACHE_LINE = 8
"""Numbers that a processor fetches together."""


def room_for(*shape: int) -> Floats:
    """Zeros that start where a line of the processor's cache does: half as many lines to fetch."""
    size = math.prod(shape)
    room = np.zeros(size + CACHE_LINE)
    first = -room.ctypes.data // room.itemsize % CACHE_LINE
    return room[first : first + size].reshape(shape)


class KernelLearner(Learner):
    """Exact PA, PA-I or PA-II in dual form on ranks 1..K; the learner under `KernelOrdinalPA`.

    The score of a row x is the sum over the support vectors s of their coefficients times k(x, s).
    The step is that of `LinearLearner` with k(x, x) in place of the squared norm.

    Parameters
    ----------
    n_features, n_classes : int
        Length of a row (with a precomputed kernel the number of rows to learn from), and the number
        of ranks K.
    variant : {"PA-I", "PA", "PA-II"}
        Which update.
    C : float
        Aggressiveness of PA-I and PA-II; PA has none.
    average : bool
        Predict with the average of all iterates instead of the last.
    kernel : {"rbf", "linear", "poly", "sigmoid", "precomputed"} or callable
        See `KernelOrdinalPA`.
    gamma : float, optional
        Constant of rbf, poly and sigmoid; left out, 1 / n_features.
    degree, coef0 : float
        Constants of poly, and of poly and sigmoid.
    budget : int, optional
        Largest number of support vectors.
    budget_strategy : {"nearest", "simple"}
        How to keep to it; see `KernelOrdinalPA`.

    Examples
    --------
    >>> import numpy as np
    >>> from ordspan.learners import KernelLearner
    >>> learner = KernelLearner(n_features=1, n_classes=2, variant="PA", gamma=1.0)
    >>> learner.learn_one(np.array([1.0]), 1, 1)  # predicted rank 2, then learns rank 1
    2
    >>> learner.support_vectors, learner.dual_coef, learner.thresholds
    (array([[1.]]), array([-0.5]), array([0.5]))
    >>> learner.latent([[1.0], [9.0]]).round(6)  # far away nothing has been learned
    array([-0.5, -0. ])
    """

    def __init__(
        self,
        n_features: int,
        n_classes: int,
        variant: str = "PA-I",
        C: float = DEFAULT_C,
        average: bool = False,
        *,
        kernel: str | KernelFunction = "rbf",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 0.0,
        budget: int | None = None,
        budget_strategy: str = DEFAULT_STRATEGY,
    ) -> None:
        rule = check_rule(variant, C)
        check_kernel(kernel)
        gamma = 1.0 / max(1, n_features) if gamma is None else gamma
        check_constants(gamma, degree, coef0)
        self.kernel = kernel
        self.budget = check_budget(budget, budget_strategy)
        kind = KERNELS.get(kernel, -1) if isinstance(kernel, str) else -1
        self._kernel = Kernel(kind, float(gamma), float(degree), float(coef0))
        self._width = 1 if kernel == PRECOMPUTED else n_features
        super().__init__(
            n_features, n_classes, rule=rule, strength=float(C), average=average, n_weights=0
        )

    # -- what it knows ---------------------------------------------------------------------------

    @property
    def memory(self) -> Floats:
        """All that it knows, as one array: write it back to forget what came later."""
        dual = self._dual[:, : self._n_support]
        return np.concatenate([self._head, dual.ravel(), self._rows().ravel()])

    @memory.setter
    def memory(self, memory: Floats) -> None:
        n_padded = int(memory[updates.CLASSES]) + 1
        head_size = updates.HEADER + n_padded * (1 + int(memory[updates.AVERAGING]))
        rest = memory[head_size:]
        n_support = rest.size // (N_PARTS + self._width)
        dual, rows = np.split(rest, [N_PARTS * n_support])
        self._head = memory[:head_size].copy()
        self._n_support = n_support
        self._vectors = np.zeros((0, self._width, LANES))
        self._dual = np.zeros((N_PARTS, 0))
        self._make_room(-(-n_support // LANES))
        self._dual[:, :n_support] = dual.reshape(N_PARTS, n_support)
        flat = np.zeros((self._vectors.shape[0] * LANES, self._width))
        flat[:n_support] = rows.reshape(n_support, self._width)
        self._vectors[...] = flat.reshape(-1, LANES, self._width).transpose(0, 2, 1)

    def _rows(self) -> Floats:
        """The support vectors, one a row; with a precomputed kernel one more than their numbers."""
        return self._vectors.transpose(0, 2, 1).reshape(-1, self._width)[: self._n_support]

    def _view(self) -> updates.Model:
        return updates.view.py_func(self._head)  # type: ignore[no-untyped-call]

    def restore(self, memory: Floats) -> Self:
        """Take over the memory of a learner of the same kind and shape.

        Parameters
        ----------
        memory : array
            The ``memory`` of the other learner.

        Returns
        -------
        self
            This learner.
        """
        settings = slice(0, updates.METRIC + 1)
        if np.any(memory[settings] != self._head[settings]):
            raise ValueError("the memory belongs to a learner of another kind or shape")
        self.memory = memory
        return self

    def go_on_from(self, other: Learner) -> None:
        """Take over what another learner knows, but learn on by its own rule, C and budget.

        Parameters
        ----------
        other : KernelLearner
            A learner with the same kernel, features and ranks.
        """
        if not isinstance(other, KernelLearner) or self._fixed() != other._fixed():
            raise ValueError(
                "average, kernel, gamma, degree and coef0 cannot change while learning goes on; "
                "call fit to start anew"
            )
        settings = self._head[: updates.CLASSES].copy()
        self.memory = other.memory
        self._head[: updates.CLASSES] = settings

    def _fixed(self) -> tuple[Any, ...]:
        """What cannot change without changing the meaning of the coefficients."""
        head = self._head[updates.CLASSES : updates.METRIC + 1].tolist()
        return self.kernel, self._kernel, self.n_features, head

    def _make_room(self, n_blocks: int) -> None:
        vectors = room_for(n_blocks, self._width, LANES)
        dual = room_for(N_PARTS, n_blocks * LANES)
        vectors[: self._vectors.shape[0]] = self._vectors
        dual[:, : self._dual.shape[1]] = self._dual
        self._vectors, self._dual = vectors, dual

    def _grow(self) -> None:
        """Twice the room for support vectors, but no more than the budget will ever need."""
        n_blocks = 2 * self._vectors.shape[0] + 1
        if self.budget.size:
            most = max(self.budget.size, self._n_support) // LANES + 1  # one is to come
            n_blocks = min(n_blocks, most)
        self._make_room(n_blocks)

    @property
    def n_support(self) -> int:
        """Number of support vectors."""
        return self._n_support

    @property
    def support_vectors(self) -> Floats:
        """The support vectors, (n_support, d); none of its own with a precomputed kernel."""
        return np.empty((0, 0)) if self.kernel == PRECOMPUTED else self._rows().copy()

    @property
    def support(self) -> NDArray[np.intp]:
        """With a precomputed kernel: which of the rows are support vectors."""
        if self.kernel != PRECOMPUTED:
            raise AttributeError("only a precomputed kernel knows its support vectors by number")
        return self._rows()[:, 0].astype(np.intp) - 1

    @property
    def dual_coef(self) -> Floats:
        """The coefficients it predicts with, (n_support,): averages, or the last ones."""
        coef, drift = self._dual[: updates.DRIFT + 1, : self._n_support]
        if self._view().drift.size == 0 or self.n_trials == 0:
            return coef.copy()
        return coef - drift / self.n_trials

    @property
    def weights(self) -> Floats:
        """Weights of the features, (d,), which a linear kernel alone has."""
        if self.kernel != "linear":
            raise AttributeError("only a linear kernel has one weight per feature")
        return self.dual_coef @ self._rows()

    # -- learning --------------------------------------------------------------------------------

    def learn_one(self, x: NDArray[Any], lower: int, upper: int | None = None) -> int:
        """Learn one example with rank in lower..upper.

        Parameters
        ----------
        x : array of shape (d,)
            The example.
        lower, upper : int
            Ends of the interval in ranks 1..K; ``upper`` left out means an exact label.

        Returns
        -------
        int
            The rank predicted before learning.
        """
        row = as_row(x)
        upper = lower if upper is None else upper
        if self.kernel == PRECOMPUTED:
            raise ValueError("a precomputed kernel is learned with learn_many, all rows at once")
        if row.size != self.n_features:
            self._refuse(updates.BAD_WIDTH, row)
        if not 1 <= lower <= upper <= self.n_classes:
            self._refuse(updates.BAD_LABEL, row, lower, upper)
        low, high = check_ranks([lower], [upper], self.n_classes)
        rank = np.empty(1, dtype=np.int64)
        # a single row is refused before anything changes: no copy to go back to is needed
        if self._walk(row, None, None, low, high, NO_WEIGHTS, NO_ORDER, rank) >= 0:
            raise RowError(self._refusal(row.reshape(1, -1), 0, None))
        return int(rank[0])

    def predict_one(self, x: NDArray[Any]) -> int:
        """Rank of one example.

        Parameters
        ----------
        x : array of shape (d,)
            The example.

        Returns
        -------
        int
            The rank.
        """
        return int(self.predict_many(as_row(x).reshape(1, -1))[0])

    def _checked(self, X: Any) -> Any:
        matrix = super()._checked(X)
        if self._kernel.kind < 0 and not is_sparse(matrix):
            matrix = np.ascontiguousarray(matrix)  # one block, whose row numbers are the matrix's
        return matrix

    def _walk(self, *rows: Any) -> int:
        done, n_rows, bad = 0, rows[3].size, -1
        if self.kernel == PRECOMPUTED and n_rows != self.n_features:
            raise ValueError(
                "a precomputed kernel is learned from the square matrix of all rows with all "
                f"rows, got shape {(n_rows, self.n_features)}"
            )
        if self._kernel.kind < 0:
            return self._walk_outside(*rows)
        while done < n_rows and bad < 0:
            if self._n_support == self._dual.shape[1]:
                self._grow()
            scratch = np.empty((4, max(self._dual.shape[1], self._width)))
            state = (self._head, self._vectors, self._dual, scratch, self._n_support)
            turn = (*state, self._kernel, self.budget, *rows, done)
            done, bad, self._n_support = updates.walk_support(*turn)
        return bad

    def _walk_outside(self, *rows: Any) -> int:
        """The walk where kernel values come from Python; the first row refused, or -1."""
        matrix, (lower, upper, weight, order, predicted) = rows[:3], rows[3:]
        model = self._view()
        strength = model.strength
        for i in order if order.size else range(lower.size):
            row, square = self._dense(matrix, i)
            if not square < updates.MAX_SQ_NORM:
                return int(i)
            if self._n_support == self._dual.shape[1]:
                self._grow()
            values = self._values(row, int(i))
            if predicted.size:
                predicted[i] = updates.rank_support(
                    model.padded,
                    model.drift,
                    model.counts[0],
                    self._dual,
                    self._n_support,
                    values,
                    lower[i],
                )
            if weight.size:
                strength = model.strength * weight[i]
            before = self._n_support
            if not self._step(row, square, int(i), values, strength, lower[i], upper[i]):
                return int(i)
            if self.budget.size and self._n_support > before:
                updates.note_closeness(self._dual, self._n_support, values, np.empty(values.size))
                self._keep_budget(values, matrix, int(i))
        return -1

    def _dense(self, matrix: tuple[Any, ...], i: int) -> tuple[Floats, float]:
        """Row i of a block written out, and its squared norm."""
        data, columns, starts = matrix
        row = np.empty(self.n_features)
        if starts is None:
            return row, updates.read_row(data[i * row.size : (i + 1) * row.size], None, row)
        part = slice(starts[i], starts[i + 1])
        return row, updates.read_row(data[part], columns[part], row)

    def _values(self, row: Floats, i: int) -> Floats:
        """Kernel values of a row with the support vectors, and room for one more."""
        values = np.zeros(self._dual.shape[1])
        if self._n_support == 0:
            return values
        if self.kernel == PRECOMPUTED:
            values[: self._n_support] = row[self.support]
        else:
            found = ask(self.kernel, row.reshape(1, -1), self._rows(), i)
            values[: self._n_support] = found[0]
        return values

    def _step(
        self, row: Floats, square: float, i: int, values: Floats, strength: float, *label: int
    ) -> bool:
        """Learn a row whose kernel values are known; whether it was not refused."""
        if self.kernel == PRECOMPUTED:
            norm = row[i]
            row = np.array([i + 1.0])  # a support vector is known by its number, from 1 on
            square = row[0] ** 2 if square > 0.0 else 0.0
        else:
            norm = ask(self.kernel, row.reshape(1, -1), row.reshape(1, -1), i)[0, 0]
        after = updates.support_step(
            self._view(),
            self._vectors,
            self._dual,
            self._n_support,
            row,
            square,
            values,
            norm,
            strength,
            *label,
        )
        if after >= 0:
            self._n_support = after
        return after >= 0

    def _keep_budget(self, values: Floats, matrix: tuple[Any, ...], i: int) -> None:
        """Do without support vectors until the budget holds; ``values`` are those of row i."""
        model, strategy = self._view(), self.budget.strategy
        trials = model.counts[0] if model.drift.size else 0.0
        costs = np.empty(values.size)
        while self._n_support > self.budget.size:
            known_of = (self._dual, self._n_support)
            spare = updates.spare_vector(*known_of, values, strategy, trials, costs)
            nearest, to_nearest = -1, 0.0
            if strategy == updates.NEAREST or trials > 0.0:
                found = self._spare_values(spare, matrix, i)
                nearest, known = updates.nearest_vector(*known_of, spare, found, costs)
                to_nearest = found[nearest]
                if strategy == updates.NEAREST and not known:
                    continue
            turn = (spare, nearest, to_nearest, strategy, trials)
            self._n_support = updates.drop_vector(
                self._vectors, self._dual, self._n_support, values, *turn
            )

    def _spare_values(self, spare: int, matrix: tuple[Any, ...], i: int) -> Floats:
        """Kernel values of a support vector with all of them; asked for when row i is learned."""
        if self.kernel == PRECOMPUTED:
            row, _ = self._dense(matrix, int(self.support[spare]))
            return self._values(row, i)
        return self._values(self._rows()[spare], i)

    def _refusal(self, matrix: Any, row: int, feature_names: Any) -> str:
        x = matrix[[row]].toarray() if is_sparse(matrix) else matrix[[row]].astype(np.float64)
        usual = refusal(matrix, row, feature_names)
        with np.errstate(over="ignore"):
            square = float(np.square(x).sum())
        if not square < updates.MAX_SQ_NORM:
            return usual
        if self.kernel == PRECOMPUTED:
            norm = float(x[0, row])
        elif self._kernel.kind < 0:
            norm = float(ask(self.kernel, x, x, row)[0, 0])
        else:
            norm = updates.kernel_norm(self._kernel, square)
        if norm <= 0.0:
            return (
                f"row {row}: k(x, x) = {norm:g}, but a kernel is above 0 there; choose another "
                "kernel, or other constants (for poly and sigmoid a larger coef0)"
            )
        if not norm < updates.MAX_SQ_NORM:
            return (
                f"row {row}: k(x, x) = {norm:g} is not a finite number below "
                f"{updates.MAX_SQ_NORM:g}; scale the features, or choose another kernel or other "
                "constants"
            )
        return usual

    # -- prediction ------------------------------------------------------------------------------

    def latent(self, X: Any, *, feature_names: Any = None) -> Floats:
        """Score of every row.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Rows.
        feature_names : sequence, optional
            Names for the message about a bad value.

        Returns
        -------
        array of shape (n,)
            The scores.
        """
        matrix, out = self._checked(X), np.zeros(np.shape(X)[0])
        scores = self._scores if self._kernel.kind >= 0 else self._scores_outside
        for block, _ in blocks(matrix, NO_ORDER):
            bad = scores(block.data, block.columns, block.starts, out[block.rows])
            if bad >= 0:
                row = block.rows.start + bad
                raise RowError(refusal(matrix, row, feature_names))
        return out

    def _scores(self, *rows: Any) -> int:
        return updates.support_scores(self.dual_coef, self._vectors, self._kernel, *rows)

    def _scores_outside(self, *rows: Any) -> int:
        """Fill in the scores of the rows of a block, many at once; the first bad row, or -1."""
        matrix, out = rows[:3], rows[3]
        coef, support = self.dual_coef, self._rows()
        at_once = max(1, VALUES_AT_ONCE // max(1, coef.size + self.n_features))
        for start in range(0, out.size, at_once):
            part = range(start, min(start + at_once, out.size))
            dense = [self._dense(matrix, i) for i in part]
            for i, (_, square) in zip(part, dense, strict=True):
                if not square < updates.MAX_SQ_NORM:
                    return i
            X = np.array([row for row, _ in dense])
            if coef.size and self.kernel == PRECOMPUTED:
                out[start : part.stop] = X[:, self.support] @ coef
            elif coef.size:
                out[start : part.stop] = ask(self.kernel, X, support, start) @ coef
        return -1
