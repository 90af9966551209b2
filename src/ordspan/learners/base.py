"""What every online learner has: state in one array, and the calls that hand it to the walks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np
from numba.core.errors import TypingError
from numpy.typing import ArrayLike, NDArray

from ordspan.core import memory as layout
from ordspan.core.labels import Ranks, check_ranks
from ordspan.core.rows import BAD_LABEL, BAD_WIDTH, scores
from ordspan.core.walks import Walks
from ordspan.learners.checks import Floats, RowError, as_row, check_row_order, check_weights
from ordspan.learners.rows import as_rows, blocks, refusal

Columns = NDArray[np.int64]
NO_WEIGHTS: Floats = np.empty(0)
NO_ORDER: NDArray[np.intp] = np.empty(0, dtype=np.intp)
NO_RANKS: Ranks = np.empty(0, dtype=np.int64)


class Examples(NamedTuple):
    """Rows and labels that a learner has checked."""

    matrix: Any
    lower: Ranks
    upper: Ranks
    weight: Floats  # empty: all weights are 1


class Learner:
    """An online ranker on ranks 1..K; subclasses choose the rule.

    All that it knows is the one array ``memory``: copy it to remember, write it back to forget.

    Parameters
    ----------
    n_features, n_classes : int
        Length of a row, and the number of ranks K.
    rule : int
        The rule, by the number that the compiled code knows it by.
    C : float
        C of the passive-aggressive rules, the step size of the others.
    average : bool
        Predict with the average of all iterates instead of the last.
    balanced : bool
        Measure the thresholds on the scale of the scores; see `OrdinalPA`.
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

    walks: Walks  # compiled for the rule

    def __init__(
        self,
        n_features: int,
        n_classes: int,
        *,
        rule: int,
        C: float,
        average: bool,
        balanced: bool = False,
        n_weights: int | None = None,
    ) -> None:
        if n_features < 1:
            raise ValueError(f"n_features must be at least 1, got {n_features}")
        if n_classes < 2:
            raise ValueError(f"n_classes must be at least 2, got {n_classes}")
        self.n_features = n_features
        self.n_classes = n_classes
        n_weights = n_features if n_weights is None else n_weights
        self.memory = layout.new_memory(rule, C, n_weights, n_classes, average, balanced)

    @property
    def model(self) -> layout.Model:
        """Views into the memory, by name: what the last iterate is, without averaging."""
        return layout.model_of(self.memory)

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
        same_shape = memory.shape == self.memory.shape
        if not same_shape or not layout.same_settings(memory, self.memory):
            raise ValueError("the memory belongs to a learner of another kind or shape")
        self.memory[...] = memory
        return self

    def go_on_by(self, other: Learner) -> None:
        """Learn on by the rule and C of another learner.

        Parameters
        ----------
        other : Learner
            A learner with as many features and classes, and the same ``average`` and
            ``balanced``.
        """
        same_shape = self.memory.shape == other.memory.shape
        if not same_shape or not layout.same_settings(self.memory, other.memory, rule_too=False):
            raise ValueError(
                "average and balanced cannot change while learning goes on; call fit to start anew"
            )
        layout.take_rule(self.memory, other.memory)

    @contextmanager
    def unchanged_on_error(self) -> Iterator[None]:
        """Give the learner back all that it knew when the block raises."""
        before = self._snapshot()
        try:
            yield
        except BaseException:
            self._roll_back(before)
            raise

    def _snapshot(self) -> Any:
        return self.memory.copy()

    def _roll_back(self, before: Any) -> None:
        self.memory = before

    def widened(self, n_features: int) -> Self:
        """A learner that goes on from this one with more features; this one stays as it is.

        It is the learner that had all the features from the start and only saw zeros in the new
        ones, which are the last columns: to the bit where the rows are sparse. Dense sums are added
        in an order that depends on their length and on the processor, so there the two differ by
        rounding, about 1e-15 of the numbers added. It costs one copy of the memory, so a stream
        whose features keep coming should widen to twice what it needs.

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
        >>> from ordspan.learners import LinearLearner
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
        wider.memory = layout.widened_memory(self.memory, n_features)
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
        >>> from ordspan.learners import LinearLearner
        >>> learner = LinearLearner(n_features=1, n_classes=2)
        >>> learner.with_rank(3).thresholds
        array([0., 1.])
        """
        if self.model.weights.size > self.n_features:
            raise ValueError("a learner with a vector for each class has no thresholds to add to")
        if self.memory.ndim > 1:
            raise ValueError("the members of a committee must agree on their ranks from the start")
        if not 1 <= rank <= self.n_classes + 1:
            raise ValueError(f"rank {rank} is not in 1..{self.n_classes + 1}")
        grown = copy(self)
        grown.n_classes = self.n_classes + 1
        grown.memory = layout.memory_with_rank(self.memory, rank)
        return grown

    @property
    def n_trials(self) -> int:
        """Examples seen."""
        return int(self.model.counters[layout.TRIALS])

    @property
    def n_updates(self) -> int:
        """Examples that moved the parameters."""
        return int(self.model.counters[layout.UPDATES])

    @property
    def weights(self) -> Floats:
        """The weights it predicts with: the average of all iterates, or the last one."""
        model = self.model
        if model.average_correction.size == 0 or self.n_trials == 0:
            return model.weights.copy()
        return model.weights - model.average_correction[model.edges.size :] / self.n_trials

    @property
    def thresholds(self) -> Floats:
        """The sorted thresholds it predicts with."""
        model = self.model
        if model.average_correction.size == 0 or self.n_trials == 0:
            return model.edges[1:-1].copy()
        average = (
            model.edges[1:-1] - model.average_correction[1 : model.edges.size - 1] / self.n_trials
        )
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
        >>> from ordspan.learners import LinearLearner
        >>> LinearLearner(n_features=2, n_classes=3).learn_one(np.array([1.0, 0.0]), 1, 2)
        3
        """
        if x.__class__ is not np.ndarray or x.dtype.char not in "df":
            x = as_row(x)
        if upper is None:
            upper = lower
        try:
            rank = self.walks.learn_one(self.memory, x, lower, upper)
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
        rank = self.walks.predict_one(self.memory, x)
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
        >>> from ordspan.learners import LinearLearner
        >>> LinearLearner(9, n_classes=3).learn_sparse(np.array([1.0]), np.array([7]), 1, 2)
        3
        """
        rank = self.walks.learn_sparse(self.memory, values, columns, lower, upper)
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
        rank = self.walks.predict_sparse(self.memory, values, columns)
        if rank <= 0:
            self._refuse_sparse(rank, values, columns)
        return rank

    def _refuse_sparse(
        self, code: int, values: Floats, columns: Columns, lower: Any = 1, upper: Any = 1
    ) -> NoReturn:
        if code == BAD_WIDTH:
            raise ValueError(
                f"{values.size} values need {values.size} columns in 0..{self.n_features - 1}, "
                f"got {columns.tolist()}"
            )
        self._refuse(code, values, lower, upper)

    def _refuse(self, code: int, x: NDArray[Any], lower: Any = 1, upper: Any = 1) -> NoReturn:
        if code == BAD_LABEL:
            raise ValueError(
                f"label [{lower}, {upper}] is not an interval within 1..{self.n_classes}"
            )
        if code == BAD_WIDTH:
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
        examples = self.examples(X, lower, upper, sample_weight)
        turn = None if order is None else check_row_order(order, examples.lower.size)
        with self.unchanged_on_error():
            return self.learn(examples, order=turn, predict=predict, feature_names=feature_names)

    def examples(
        self,
        X: Any,
        lower: ArrayLike,
        upper: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Examples:
        """Rows and labels in the form that `learn` takes, checked once for any number of passes.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Rows, float64 or float32, any stride.
        lower, upper : arrays of shape (n,)
            Ends of the intervals in ranks 1..K; ``upper`` left out means exact labels.
        sample_weight : array of shape (n,), optional
            Scales C (the step size of the baselines) of each row; 0 skips a row.

        Returns
        -------
        Examples
            The checked examples; only values that are not finite are left to be found.
        """
        matrix = self._checked(X)
        low, high = check_ranks(lower, lower if upper is None else upper, self.n_classes)
        if low.size != matrix.shape[0]:
            raise ValueError(f"X has {matrix.shape[0]} rows, but there are {low.size} labels")
        weight = NO_WEIGHTS if sample_weight is None else check_weights(sample_weight, low.size)
        return Examples(matrix, low, high, weight)

    def learn(
        self,
        examples: Examples,
        *,
        order: NDArray[np.intp] | None = None,
        predict: bool = False,
        feature_names: Any = None,
    ) -> Ranks | None:
        """Learn checked examples one after the other; a refused row ends it half-way.

        `learn_many` is safer: it checks, and goes back if a row is refused.

        Parameters
        ----------
        examples : Examples
            What `examples` returned.
        order : array of row numbers, optional
            The order in which to learn the rows, each once; not checked.
        predict : bool
            Also return the rank predicted for each row before it was learned.
        feature_names : sequence, optional
            Names for the message about a bad value.

        Returns
        -------
        ndarray of shape (n,) or None
            The ranks predicted on the way, if asked for.
        """
        matrix, low, high, weight = examples
        turn = NO_ORDER if order is None else order
        predicted = np.empty(low.size, dtype=np.int64) if predict else NO_RANKS
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
        return predicted if predict else None

    def _refusal(self, matrix: Any, row: int, feature_names: Any) -> str:
        return refusal(matrix, row, feature_names)

    def _walk(self, *rows: Any) -> int:
        """Learn the rows of a block; the first that was refused, or -1."""
        bad: int = self.walks.walk(self.memory, *rows)
        return bad

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
        return scores_of(self.weights, matrix, feature_names)

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


def scores_of(weights: Floats, matrix: Any, feature_names: Any) -> Floats:
    """Dot product of every row of a matrix with the weights."""
    out = np.empty(matrix.shape[0])
    for block, _ in blocks(matrix, NO_ORDER):
        part = out[block.rows]
        bad = scores(weights, block.data, block.columns, block.starts, part)
        if bad >= 0:
            raise RowError(refusal(matrix, block.rows.start + bad, feature_names))
    return out
