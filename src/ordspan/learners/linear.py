"""Online learners with one weight per feature: state, and the calls that hand it to the walks."""

from __future__ import annotations

from copy import copy
from typing import Any, NoReturn, Self

import numpy as np
from numba.core.errors import TypingError
from numpy.typing import ArrayLike, NDArray

from ordspan.core import updates
from ordspan.core.labels import Ranks, check_ranks
from ordspan.learners.rows import FLOATS, as_rows, blocks, refusal

VARIANTS = {"PA": updates.HARD, "PA-I": updates.CAPPED, "PA-II": updates.SOFT}
METRICS = {
    "identity": updates.IDENTITY,
    "balanced": updates.BALANCED,
    "diagonal": updates.DIAGONAL,
}
SOLVERS = {"exact": 0, "sca": updates.SCA_HARD - updates.HARD}
DEFAULT_C = 0.1
MAX_C = 1e300

Floats = NDArray[np.float64]
Columns = NDArray[np.int64]
NO_WEIGHTS: Floats = np.empty(0)
NO_ORDER: NDArray[np.intp] = np.empty(0, dtype=np.intp)
NO_RANKS: Ranks = np.empty(0, dtype=np.int64)


compiled_learn_one = updates.learn_one  # one look-up less in the call that has to be short


class RowError(ValueError):
    """A row that cannot be learned or predicted; the learner is as it was before the call."""


def as_row(x: ArrayLike) -> NDArray[Any]:
    """One example as a 1-d float array."""
    row = np.asarray(x)
    if row.ndim != 1:
        raise ValueError(f"one example is a 1-d row, got shape {row.shape}")
    return row if row.dtype in FLOATS else row.astype(np.float64)


def check_rule(variant: str, C: float, solver: str = "exact") -> int:
    """The integer that the compiled code knows a variant by.

    >>> check_rule("PA-II", 1.0)
    2
    """
    for name, value, known in (("variant", variant, VARIANTS), ("solver", solver, SOLVERS)):
        if not isinstance(value, str) or value not in known:
            raise ValueError(f"unknown {name} {value!r}; choose one of {', '.join(known)}")
    try:
        allowed = not isinstance(C, str) and 0 < float(C) <= MAX_C
    except (TypeError, OverflowError):
        allowed = False
    if not allowed:
        raise ValueError(f"C must be a finite number above 0, got {C!r}")
    return VARIANTS[variant] + SOLVERS[solver]


def check_metric(metric: str, solver: str) -> int:
    """The integer that the compiled code knows a metric by."""
    if not isinstance(metric, str) or metric not in METRICS:
        raise ValueError(f"unknown metric {metric!r}; choose one of {', '.join(METRICS)}")
    if metric != "identity" and solver != "exact":
        raise ValueError(f"solver={solver!r} is the printed search, which knows metric='identity'")
    return METRICS[metric]


class Learner:
    """An online ranker on ranks 1..K; subclasses choose the rule.

    All that it knows is the one array ``memory``: copy it to remember, write it back to forget.

    Parameters
    ----------
    n_features, n_classes : int
        Length of a row, and the number of ranks K.
    rule : int
        The rule, by the number that the compiled code knows it by.
    strength : float
        C of the passive-aggressive rules, the step size of the others.
    average : bool
        Predict with the average of all iterates instead of the last.
    metric : int
        The metric, by the number that the compiled code knows it by.
    n_weights : int, optional
        How many weights it keeps; left out, one a feature.

    Examples
    --------
    >>> import numpy as np
    >>> from ordspan.learners import LinearLearner
    >>> learner = LinearLearner(n_features=1, n_classes=2)
    >>> before = learner.memory.copy()
    >>> learner.learn_one(np.array([1.0]), 1)
    2
    >>> learner.restore(before).weights
    array([0.])
    """

    def __init__(
        self,
        n_features: int,
        n_classes: int,
        *,
        rule: int,
        strength: float,
        average: bool,
        metric: int = updates.IDENTITY,
        n_weights: int | None = None,
    ) -> None:
        if n_features < 1:
            raise ValueError(f"n_features must be at least 1, got {n_features}")
        if n_classes < 2:
            raise ValueError(f"n_classes must be at least 2, got {n_classes}")
        self.n_features = n_features
        self.n_classes = n_classes
        n_weights = n_features if n_weights is None else n_weights
        self.memory = updates.new_memory(rule, strength, n_weights, n_classes, average, metric)

    def _view(self) -> updates.Model:
        return updates.view.py_func(self.memory)  # type: ignore[no-untyped-call]

    def restore(self, memory: Floats) -> Self:
        """Take over the memory of a learner of the same kind and shape.

        Parameters
        ----------
        memory : ndarray
            A copy of the ``memory`` of this learner, or of one made with the same parameters.

        Returns
        -------
        self
            The learner itself.
        """
        settings = (..., slice(0, updates.METRIC + 1))
        same_shape = memory.shape == self.memory.shape
        if not same_shape or np.any(memory[settings] != self.memory[settings]):
            raise ValueError("the memory belongs to a learner of another kind or shape")
        self.memory[...] = memory
        return self

    def go_on_from(self, other: Learner) -> None:
        """Take over what another learner knows, but learn on by this one's own rule and C.

        Parameters
        ----------
        other : Learner
            A learner with as many features and classes, and the same ``average`` and ``metric``.
        """
        same_shape = self.memory.shape == other.memory.shape
        kept = slice(updates.CLASSES, updates.METRIC + 1)
        if not same_shape or np.any(self.memory[kept] != other.memory[kept]):
            raise ValueError(
                "average and metric cannot change while learning goes on; call fit to start anew"
            )
        self.memory[updates.CLASSES :] = other.memory[updates.CLASSES :]

    def widened(self, n_features: int) -> Self:
        """A learner that goes on from this one with more features; this one stays as it is.

        It is the learner that had all the features from the start and only saw zeros in the new
        ones, which are the last columns: to the bit where the rows are sparse, and up to the order
        of summation where they are dense. It costs one copy of the memory, so a stream whose
        features keep coming should widen to twice what it needs.

        Parameters
        ----------
        n_features : int
            Length of a row from now on.

        Returns
        -------
        Learner
            The wider learner.

        Examples
        --------
        >>> learner = LinearLearner(n_features=1, n_classes=2, variant="PA")
        >>> learner.learn_one(np.array([1.0]), 1)
        2
        >>> learner.widened(3).weights
        array([-0.5,  0. ,  0. ])
        """
        if n_features < self.n_features:
            raise ValueError(
                f"a learner of {self.n_features} features cannot be widened to {n_features}"
            )
        wider = copy(self)
        wider.n_features = n_features
        wider.memory = updates.widened_memory(self.memory, n_features)
        return wider

    def with_rank(self, rank: int) -> Self:
        """A learner that goes on from this one with one rank more, number ``rank`` of 1..K + 1.

        The ranks from there on move up by one. Between two ranks the new one starts with an empty
        band of scores on the threshold between them, so no prediction changes but for the numbers;
        beyond the outermost rank its threshold starts one margin away from the last.

        Parameters
        ----------
        rank : int
            The number that the new rank gets.

        Returns
        -------
        Learner
            The learner of K + 1 ranks.

        Examples
        --------
        >>> learner = LinearLearner(n_features=1, n_classes=2)
        >>> learner.with_rank(3).thresholds
        array([0., 1.])
        """
        if self._view().weights.size > self.n_features:
            raise ValueError("a learner with a vector for each class has no thresholds to add to")
        if self.memory.ndim > 1:
            raise ValueError("the members of a committee must agree on their ranks from the start")
        if not 1 <= rank <= self.n_classes + 1:
            raise ValueError(f"rank {rank} is not in 1..{self.n_classes + 1}")
        grown = copy(self)
        grown.n_classes = self.n_classes + 1
        grown.memory = updates.memory_with_rank(self.memory, rank)
        return grown

    @property
    def n_trials(self) -> int:
        """Examples seen."""
        return int(self._view().counts[0])

    @property
    def n_updates(self) -> int:
        """Examples that moved the parameters."""
        return int(self._view().counts[1])

    @property
    def weights(self) -> Floats:
        """The weights it predicts with: the average of all iterates, or the last one."""
        model = self._view()
        if model.drift.size == 0 or self.n_trials == 0:
            return model.weights.copy()
        return model.weights - model.drift[model.padded.size :] / self.n_trials

    @property
    def thresholds(self) -> Floats:
        """The sorted thresholds it predicts with."""
        model = self._view()
        if model.drift.size == 0 or self.n_trials == 0:
            return model.padded[1:-1].copy()
        average = model.padded[1:-1] - model.drift[1 : model.padded.size - 1] / self.n_trials
        # an average of sorted thresholds is sorted, up to its own rounding
        return np.maximum.accumulate(average)

    def learn_one(self, x: NDArray[Any], lower: int, upper: int | None = None) -> int:
        """Learn one example with rank in lower..upper; returns the rank predicted before.

        Parameters
        ----------
        x : array of shape (d,)
            The row.
        lower, upper : int
            Ends of the label's interval, ranks 1..K; ``upper`` left out means an exact label.

        Returns
        -------
        int
            The rank that was predicted for the row before it was learned.

        Examples
        --------
        >>> LinearLearner(n_features=2, n_classes=3).learn_one(np.array([1.0, 0.0]), 1, 2)
        3
        """
        if x.__class__ is not np.ndarray or x.dtype.char not in "df":
            x = as_row(x)
        if upper is None:
            upper = lower
        try:
            rank = compiled_learn_one(self.memory, x, lower, upper)
        except TypingError:
            row = as_row(x)
            if row is not x:  # another byte order
                return self.learn_one(row, lower, upper)
            raise TypeError(
                f"ranks must be whole numbers, got lower={lower!r}, upper={upper!r}"
            ) from None
        if rank <= 0:
            self._refuse(rank, x, lower, upper)
        return rank

    def predict_one(self, x: NDArray[Any]) -> int:
        """Rank of one example.

        Parameters
        ----------
        x : array of shape (d,)
            The row.

        Returns
        -------
        int
            Its rank, 1..K.
        """
        x = as_row(x)
        rank = updates.predict_one(self.memory, x)
        if rank <= 0:
            self._refuse(rank, x)
        return rank

    def learn_sparse(self, values: Floats, columns: Columns, lower: int, upper: int) -> int:
        """`learn_one` on the values of some columns, the others being zero; it costs their number.

        Parameters
        ----------
        values : array of shape (m,)
            The values that are not zero.
        columns : array of shape (m,)
            Their columns, each named once.
        lower, upper : int
            Ends of the interval in ranks 1..K.

        Returns
        -------
        int
            The rank predicted before learning.

        Examples
        --------
        >>> LinearLearner(9, n_classes=3).learn_sparse(np.array([1.0]), np.array([7]), 1, 2)
        3
        """
        rank = updates.learn_sparse(self.memory, values, columns, lower, upper)
        if rank <= 0:
            self._refuse_sparse(rank, values, columns, lower, upper)
        return rank

    def predict_sparse(self, values: Floats, columns: Columns) -> int:
        """Rank of the example with the given values in some columns and zero in the others.

        Parameters
        ----------
        values : array of shape (m,)
            The values that are not zero.
        columns : array of shape (m,)
            Their columns, each named once.

        Returns
        -------
        int
            The rank.
        """
        rank = updates.predict_sparse(self.memory, values, columns)
        if rank <= 0:
            self._refuse_sparse(rank, values, columns)
        return rank

    def _refuse_sparse(
        self, code: int, values: Floats, columns: Columns, lower: Any = 1, upper: Any = 1
    ) -> NoReturn:
        if code == updates.BAD_WIDTH:
            raise ValueError(
                f"{values.size} values need {values.size} columns in 0..{self.n_features - 1}, "
                f"got {columns.tolist()}"
            )
        self._refuse(code, values, lower, upper)

    def _refuse(self, code: int, x: NDArray[Any], lower: Any = 1, upper: Any = 1) -> NoReturn:
        if code == updates.BAD_LABEL:
            raise ValueError(
                f"label [{lower}, {upper}] is not an interval within 1..{self.n_classes}"
            )
        if code == updates.BAD_WIDTH:
            raise ValueError(f"x has {x.size} features, but the learner has {self.n_features}")
        raise RowError(refusal(x.reshape(1, -1), 0))

    def learn_many(
        self,
        X: Any,
        lower: ArrayLike,
        upper: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        order: NDArray[np.intp] | None = None,
        predict: bool = False,
        feature_names: Any = None,
    ) -> Ranks | None:
        """Learn rows one after the other; a refused row leaves the learner as it was.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Rows, float64 or float32, any stride.
        lower, upper : arrays of shape (n,)
            Ends of the intervals in ranks 1..K; ``upper`` left out means exact labels.
        sample_weight : array of shape (n,), optional
            Scales C (the step size of the baselines) of each row; 0 skips a row.
        order : array of row numbers, optional
            The order in which to learn the rows, each once.
        predict : bool
            Also return the rank predicted for each row before it was learned.
        feature_names : sequence, optional
            Names for the message about a bad value.

        Returns
        -------
        ndarray of shape (n,) or None
            The ranks predicted on the way, if asked for.
        """
        matrix = self._checked(X)
        low, high = check_ranks(lower, lower if upper is None else upper, self.n_classes)
        if low.size != matrix.shape[0]:
            raise ValueError(f"X has {matrix.shape[0]} rows, but there are {low.size} labels")
        weight = NO_WEIGHTS if sample_weight is None else check_weights(sample_weight, low.size)
        turn = NO_ORDER if order is None else check_row_order(order, low.size)
        predicted = np.empty(low.size, dtype=np.int64) if predict else NO_RANKS
        before = self.memory.copy()
        try:
            for block, block_order in blocks(matrix, turn):
                picked = turn[block.rows] if turn.size and not block_order.size else block.rows
                ranks = predicted[picked] if predict else NO_RANKS
                bad = self._walk(
                    block.data,
                    block.columns,
                    block.starts,
                    low[picked],
                    high[picked],
                    weight[picked] if weight.size else NO_WEIGHTS,
                    block_order,
                    ranks,
                )
                if bad >= 0:
                    rows = np.arange(low.size)[picked]
                    raise RowError(self._refusal(matrix, int(rows[bad]), feature_names))
                if predict:
                    predicted[picked] = ranks
        except BaseException:
            self.memory = before
            raise
        return predicted if predict else None

    def _refusal(self, matrix: Any, row: int, feature_names: Any) -> str:
        return refusal(matrix, row, feature_names)

    def _walk(self, *rows: Any) -> int:
        """Learn the rows of a block; the first that was refused, or -1."""
        return updates.walk(self.memory, *rows)

    def _checked(self, X: Any) -> Any:
        matrix = as_rows(X)
        if matrix.shape[1] != self.n_features:
            raise ValueError(
                f"X has {matrix.shape[1]} features, but the learner has {self.n_features}"
            )
        return matrix

    def latent(self, X: Any, *, feature_names: Any = None) -> Floats:
        """Score of every row, (n,); one column per class, (n, K), where there are no thresholds.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Rows, float64 or float32, any stride.
        feature_names : sequence, optional
            Names for the message about a bad value.

        Returns
        -------
        ndarray of shape (n,) or (n, K)
            The scores.
        """
        matrix = self._checked(X)
        return _scores(self.weights, matrix, feature_names)

    def predict_many(self, X: Any, *, feature_names: Any = None) -> Ranks:
        """Rank of every row.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Rows, float64 or float32, any stride.
        feature_names : sequence, optional
            Names for the message about a bad value.

        Returns
        -------
        ndarray of shape (n,)
            Ranks 1..K.
        """
        latent = self.latent(X, feature_names=feature_names)
        return np.searchsorted(self.thresholds, latent, side="right").astype(np.int64) + 1


def _scores(weights: Floats, matrix: Any, feature_names: Any) -> Floats:
    out = np.empty(matrix.shape[0])
    for block, _ in blocks(matrix, NO_ORDER):
        part = out[block.rows]
        bad = updates.scores(weights, block.data, block.columns, block.starts, part)
        if bad >= 0:
            raise RowError(refusal(matrix, block.rows.start + bad, feature_names))
    return out


def check_weights(sample_weight: ArrayLike, n_rows: int) -> Floats:
    """Sample weights as floats, finite and not negative."""
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n_rows,):
        raise ValueError(f"sample_weight has shape {weight.shape}, expected ({n_rows},)")
    bad = np.flatnonzero(~((weight >= 0) & np.isfinite(weight)))
    if bad.size:
        raise ValueError(
            f"row {bad[0]}: sample_weight {weight[bad[0]]} is not a finite number >= 0"
        )
    return weight


def check_row_order(order: ArrayLike, n_rows: int) -> NDArray[np.intp]:
    """An order of rows that names each once; a wrong number would read beyond the data."""
    turn = np.asarray(order)
    if turn.shape != (n_rows,) or turn.dtype.kind not in "iu":
        raise ValueError(
            f"order must name each of the {n_rows} rows once, got {turn.dtype} {turn.shape}"
        )
    turn = turn.astype(np.intp, copy=False)
    seen = np.zeros(n_rows, dtype=bool)
    inside = turn[(turn >= 0) & (turn < n_rows)]
    seen[inside] = True
    if inside.size < n_rows or not seen.all():
        raise ValueError(f"order must name each of the {n_rows} rows once")
    return turn


class LinearLearner(Learner):
    """Exact PA, PA-I or PA-II on ranks 1..K: the thin fast path under `OrdinalPA`.

    Parameters
    ----------
    n_features, n_classes : int
        Length of a row, and the number of ranks K.
    variant : {"PA-I", "PA", "PA-II"}
        Which update.
    C : float
        Aggressiveness of PA-I and PA-II; PA has none.
    average : bool
        Predict with the average of all iterates instead of the last.
    solver : {"exact", "sca"}
        "sca" is the paper's printed search, which often misses the optimum; for comparison.
    metric : {"identity", "balanced", "diagonal"}
        In which metric steps are short; see `OrdinalPA`.

    Examples
    --------
    >>> import numpy as np
    >>> from ordspan.learners import LinearLearner
    >>> learner = LinearLearner(n_features=1, n_classes=2, variant="PA")
    >>> learner.learn_one(np.array([1.0]), 1, 1)  # predicted rank 2, then learns rank 1
    2
    >>> learner.predict_one(np.array([1.0]))
    1
    >>> learner.weights, learner.thresholds
    (array([-0.5]), array([0.5]))
    """

    def __init__(
        self,
        n_features: int,
        n_classes: int,
        variant: str = "PA-I",
        C: float = DEFAULT_C,
        average: bool = False,
        *,
        solver: str = "exact",
        metric: str = "identity",
    ) -> None:
        rule = check_rule(variant, C, solver)
        super().__init__(
            n_features,
            n_classes,
            rule=rule,
            strength=float(C),
            average=average,
            metric=check_metric(metric, solver),
        )


class PRankLearner(Learner):
    """PRank (Crammer & Singer 2001) on ranks 1..K.

    On an interval label only the required thresholds are moved.

    Parameters
    ----------
    n_features, n_classes : int
        Length of a row, and the number of ranks K.

    Examples
    --------
    >>> import numpy as np
    >>> from ordspan.learners import PRankLearner
    >>> learner = PRankLearner(n_features=1, n_classes=3)
    >>> learner.learn_one(np.array([1.0]), 1)  # predicted rank 3: two thresholds too few above it
    3
    >>> learner.weights, learner.thresholds
    (array([-2.]), array([1., 1.]))
    """

    def __init__(self, n_features: int, n_classes: int) -> None:
        super().__init__(n_features, n_classes, rule=updates.PRANK, strength=1.0, average=False)


class VectorLearner(Learner):
    """A learner with one weight vector per class and no thresholds; the highest score wins."""

    @property
    def weights(self) -> Floats:
        """One vector per class, (K, d)."""
        return self._view().weights.reshape(self.n_classes, self.n_features).copy()

    def latent(self, X: Any, *, feature_names: Any = None) -> Floats:
        """Score of every row for every class, (n, K).

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Rows, float64 or float32, any stride.
        feature_names : sequence, optional
            Names for the message about a bad value.

        Returns
        -------
        ndarray of shape (n, K)
            The scores.
        """
        matrix = self._checked(X)
        return np.column_stack([_scores(w, matrix, feature_names) for w in self.weights])

    def predict_many(self, X: Any, *, feature_names: Any = None) -> Ranks:
        """Class with the highest score, the lowest of equals.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Rows, float64 or float32, any stride.
        feature_names : sequence, optional
            Names for the message about a bad value.

        Returns
        -------
        ndarray of shape (n,)
            Ranks 1..K.
        """
        return np.argmax(self.latent(X, feature_names=feature_names), axis=1).astype(np.int64) + 1


class PerceptronLearner(VectorLearner):
    """Multiclass perceptron with the max-score update (Crammer & Singer 2003) on ranks 1..K.

    On an interval label the best class inside is preferred to the best class outside.

    Parameters
    ----------
    n_features, n_classes : int
        Length of a row, and the number of ranks K.

    Examples
    --------
    >>> import numpy as np
    >>> from ordspan.learners import PerceptronLearner
    >>> learner = PerceptronLearner(n_features=1, n_classes=3)
    >>> learner.learn_one(np.array([1.0]), 2)  # all scores are equal: predicts the lowest class
    1
    >>> learner.weights.ravel()  # its class up, the one predicted down
    array([-1.,  1.,  0.])
    """

    def __init__(self, n_features: int, n_classes: int) -> None:
        super().__init__(
            n_features, n_classes, rule=updates.PERCEPTRON, strength=1.0, average=False
        )
