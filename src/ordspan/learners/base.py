"""The interface of every online learner: learn and predict one row or many."""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

import numpy as np
from numba.core.errors import TypingError
from numpy.typing import ArrayLike, NDArray

from ordspan.core.labels import Ranks, check_ranks
from ordspan.core.memory import Floats
from ordspan.core.rows import BAD_LABEL, BAD_WIDTH
from ordspan.learners.calibration import Calibration
from ordspan.learners.checks import RowValueError, as_row, check_row_order, check_weights
from ordspan.learners.rows import NO_ORDER, NO_WEIGHTS, as_rows, refusal, row_blocks
from ordspan.learners.scoring import rank_among, scores_of
from ordspan.learners.state import State

Columns = NDArray[np.int64]
NO_RANKS: Ranks = np.empty(0, dtype=np.int64)


class Examples(NamedTuple):
    """Rows and labels that a learner has checked."""

    matrix: Any
    lower: Ranks
    upper: Ranks
    weight: Floats  # empty: all weights are 1


class Learner(State):
    """An online ranker on ranks 1..K; subclasses choose the rule.

    Its whole state is the array ``memory``: copy it as a snapshot, and `restore` it to go back.

    Threads may share a learner if they all use `learn_many`, which takes a lock, or all use
    `learn_one`. Mixing the two loses updates: `learn_one` takes no lock, because that would cost as
    much as the step itself. Predictions never wait; see ``partial_fit`` of the estimators.

    Parameters
    ----------
    n_features, n_classes : int
        Length of a row, and the number of ranks K.
    rule : int
        The number of the rule in compiled code.
    C : float
        Aggressiveness of the passive-aggressive rules, step size of the others.
    average : bool
        Predict with the average of all iterates instead of the last.
    balanced : bool
        Measure the thresholds on the scale of the scores; see `OrdinalPA`.
    n_weights : int, optional
        Number of weights; by default, one per feature.

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

    def learn_one(self, x: NDArray[Any], lower: int, upper: int | None = None) -> int:
        """Learn one example with rank in lower..upper; returns the rank predicted before learning.

        Parameters
        ----------
        x : array of shape (d,)
            The row.
        lower, upper : int
            Ends of the label, ranks 1..K; without ``upper`` the label is exact.

        Returns
        -------
        int
            The rank predicted for the row before learning it.

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
            rank = self._learn_one(x, None, lower, upper)
        except TypingError:
            row = as_row(x)
            if row is not x:  # another byte order
                return self.learn_one(row, lower, upper)
            raise whole_ranks_error(lower, upper) from None
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
        rank = self._predict_one(x, None)
        if rank <= 0:
            self._refuse(rank, x)
        return rank

    def learn_sparse(self, values: Floats, columns: Columns, lower: int, upper: int) -> int:
        """`learn_one` for a sparse row; the cost depends on the number of values only.

        Parameters
        ----------
        values : array of shape (m,)
            The values that are not zero.
        columns : array of shape (m,)
            Their columns, each at most once.
        lower, upper : int
            Ends of the label, ranks 1..K.

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
        rank = self._learn_one(values, columns, lower, upper)
        if rank <= 0:
            self._refuse_sparse(rank, values, columns, lower, upper)
        return rank

    def predict_sparse(self, values: Floats, columns: Columns) -> int:
        """Rank of a sparse row.

        Parameters
        ----------
        values, columns : arrays of shape (m,)
            As in `learn_sparse`.

        Returns
        -------
        int
            The rank.
        """
        rank = self._predict_one(values, columns)
        if rank <= 0:
            self._refuse_sparse(rank, values, columns)
        return rank

    def _learn_one(self, values: Any, columns: Any, lower: int, upper: int) -> int:
        """Learn a row (dense if columns is None); its rank before learning, or an error code."""
        rank: int = self.walks.learn_one(self.memory, values, columns, lower, upper)
        return rank

    def _predict_one(self, values: Any, columns: Any) -> int:
        """Rank of a row (dense if columns is None), or an error code."""
        rank: int = self.walks.predict_one(self.memory, values, columns)
        return rank

    def _refuse_sparse(
        self, code: int, values: Floats, columns: Columns, lower: Any = 1, upper: Any = 1
    ) -> NoReturn:
        if code == BAD_WIDTH:
            raise ValueError(
                f"{values.size} values need as many columns in 0..{self.n_features - 1}, "
                f"got {columns.tolist()}"
            )
        row = np.zeros(self.n_features)
        row[columns] = values
        self._refuse(code, row, lower, upper)

    def _refuse(self, code: int, x: NDArray[Any], lower: Any = 1, upper: Any = 1) -> NoReturn:
        if code == BAD_LABEL:
            raise ValueError(f"label [{lower}, {upper}] is not a range within 1..{self.n_classes}")
        if code == BAD_WIDTH:
            raise ValueError(f"x has {x.size} features, but the learner has {self.n_features}")
        raise RowValueError(self._refusal(x.reshape(1, -1), 0, None))

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
        calibration: Calibration | None = None,
    ) -> Ranks | None:
        """Learn rows one by one; if a row is refused, the learner is unchanged.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Rows, float64 or float32, any stride.
        lower, upper : arrays of shape (n,)
            Ends of the labels, ranks 1..K; without ``upper`` the labels are exact.
        sample_weight : array of shape (n,), optional
            Scales C (the step size of the baselines) for each row; 0 skips a row.
        order : array of row numbers, optional
            The order in which to learn the rows, each once.
        predict : bool
            Also return the rank predicted for each row before it was learned.
        feature_names : sequence, optional
            Names to use in an error about a bad value.
        calibration : Calibration, optional
            Learns from the score of each row before the row is learned.

        Returns
        -------
        ndarray of shape (n,) or None
            The ranks predicted before learning, if ``predict``.
        """
        examples = self.examples(X, lower, upper, sample_weight)
        turn = None if order is None else check_row_order(order, examples.lower.size)
        seen = np.empty(0 if calibration is None else examples.lower.size)
        with self.unchanged_on_error():
            predicted = self.learn(
                examples, order=turn, predict=predict, feature_names=feature_names, seen=seen
            )
        if calibration is not None and predicted is not None:
            calibration.observe(seen, predicted, *examples[1:], turn)
        return predicted if predict else None

    def examples(
        self,
        X: Any,
        lower: ArrayLike,
        upper: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Examples:
        """Rows and labels as `learn` takes them, checked once for any number of passes.

        Parameters
        ----------
        X, lower, upper, sample_weight :
            As in `learn_many`.

        Returns
        -------
        Examples
            The checked examples; non-finite values are only found when learning.
        """
        matrix = self._checked(X)
        low, high = check_ranks(lower, lower if upper is None else upper, self.n_classes)
        if low.size != matrix.shape[0]:
            raise ValueError(
                "Found input variables with inconsistent numbers of samples: X has "
                f"{matrix.shape[0]} rows, but there are {low.size} labels"
            )
        weight = NO_WEIGHTS if sample_weight is None else check_weights(sample_weight, low.size)
        return Examples(matrix, low, high, weight)

    def learn(
        self,
        examples: Examples,
        *,
        order: NDArray[np.intp] | None = None,
        predict: bool = False,
        feature_names: Any = None,
        seen: Floats = NO_WEIGHTS,
    ) -> Ranks | None:
        """Learn checked examples one by one; stops at a refused row.

        `learn_many` is safer: it checks the rows, and rolls back if one is refused.

        Parameters
        ----------
        examples : Examples
            What `examples` returned.
        order, predict, feature_names :
            As in `learn_many`; the order is not checked.
        seen : array of shape (n,), optional
            Filled with the scores of the rows before they were learned; implies ``predict``.

        Returns
        -------
        ndarray of shape (n,) or None
            As `learn_many`.
        """
        matrix, low, high, weight = examples
        turn = NO_ORDER if order is None else order
        predict = predict or seen.size > 0
        predicted = np.empty(low.size, dtype=np.int64) if predict else NO_RANKS
        for block, block_order in row_blocks(matrix, turn):
            picked = turn[block.rows] if turn.size and not block_order.size else block.rows
            ranks = predicted[picked] if predict else NO_RANKS
            shown = seen[picked] if seen.size else NO_WEIGHTS
            bad = self._walk(
                block.data,
                block.columns,
                block.starts,
                low[picked],
                high[picked],
                weight[picked] if weight.size else NO_WEIGHTS,
                block_order,
                ranks,
                shown,
            )
            if bad >= 0:
                rows = np.arange(low.size)[picked]
                raise RowValueError(self._refusal(matrix, int(rows[bad]), feature_names))
            if predict:
                predicted[picked] = ranks
            if seen.size:
                seen[picked] = shown
        return predicted if predict else None

    def _refusal(self, matrix: Any, row: int, feature_names: Any) -> str:
        return refusal(matrix, row, feature_names)

    def _walk(self, *rows: Any) -> int:
        """Learn the rows of a block; returns the first refused one, or -1."""
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
        """Score of every row, (n,); one column per class, (n, K), if there are no thresholds.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Rows, float64 or float32, any stride.
        feature_names : sequence, optional
            Names to use in an error about a bad value.

        Returns
        -------
        ndarray of shape (n,) or (n, K)
            The scores.
        """
        return self._latent(self._checked(X), feature_names)

    def _latent(self, matrix: Any, feature_names: Any) -> Floats:
        return scores_of(self.weights, matrix, feature_names)

    def predict_many(self, X: Any, *, feature_names: Any = None) -> Ranks:
        """Rank of every row.

        Parameters
        ----------
        X, feature_names :
            As in `latent`.

        Returns
        -------
        ndarray of shape (n,)
            Ranks 1..K.
        """
        return self._ranks(self._checked(X), feature_names)

    def _ranks(self, matrix: Any, feature_names: Any) -> Ranks:
        return rank_among(self.thresholds, self._latent(matrix, feature_names))


def whole_ranks_error(lower: Any, upper: Any) -> TypeError:
    """The error for ranks that are not numbers."""
    return TypeError(f"ranks must be whole numbers, got lower={lower!r}, upper={upper!r}")
