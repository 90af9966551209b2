"""What every online learner can do: learn and predict one row or many."""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

import numpy as np
from numba.core.errors import TypingError
from numpy.typing import ArrayLike, NDArray

from ordspan.core.labels import Ranks, check_ranks
from ordspan.core.memory import Floats
from ordspan.core.rows import BAD_LABEL, BAD_ROW, BAD_WIDTH, row_fits, scores
from ordspan.core.walks import is_label
from ordspan.learners.calibration import Calibration
from ordspan.learners.checks import RowValueError, as_row, check_row_order, check_weights
from ordspan.learners.locking import lock_of
from ordspan.learners.rows import as_rows, refusal, row_blocks
from ordspan.learners.state import State

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


class Learner(State):
    """An online ranker on ranks 1..K; subclasses choose the rule.

    All that it knows is the one array ``memory``: copy it to remember, write it back to forget.

    Threads may share a learner if all of them call `learn_many`, which lets one in at a time, or
    all of them `learn_one`. Mixed, updates are lost: a single example waits for no lock, which
    would cost as much as its step. Predictions never wait; see ``partial_fit`` of the estimators.

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
        rank = self._learn_one(values, columns, lower, upper)
        if rank <= 0:
            self._refuse_sparse(rank, values, columns, lower, upper)
        return rank

    def predict_sparse(self, values: Floats, columns: Columns) -> int:
        """Rank of the example with the given values in some columns and zero in the others.

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
        """Learn a row, dense if there are no columns; its rank before, or why it was refused."""
        rank: int = self.walks.learn_one(self.memory, values, columns, lower, upper)
        return rank

    def _predict_one(self, values: Any, columns: Any) -> int:
        """Rank of a row, dense if there are no columns, or why it was refused."""
        rank: int = self.walks.predict_one(self.memory, values, columns)
        return rank

    def _refuse_sparse(
        self, code: int, values: Floats, columns: Columns, lower: Any = 1, upper: Any = 1
    ) -> NoReturn:
        if code == BAD_WIDTH:
            raise ValueError(
                f"{values.size} values need {values.size} columns in 0..{self.n_features - 1}, "
                f"got {columns.tolist()}"
            )
        row = np.zeros(self.n_features)
        row[columns] = values
        self._refuse(code, row, lower, upper)

    def _refuse(self, code: int, x: NDArray[Any], lower: Any = 1, upper: Any = 1) -> NoReturn:
        if code == BAD_LABEL:
            raise ValueError(
                f"label [{lower}, {upper}] is not an interval within 1..{self.n_classes}"
            )
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
        calibration : Calibration, optional
            Learns from the score of each row before the row is learned.

        Returns
        -------
        ndarray of shape (n,) or None
            The ranks predicted on the way, if asked for.
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
        """Rows and labels in the form that `learn` takes, checked once for any number of passes.

        Parameters
        ----------
        X, lower, upper, sample_weight :
            As in `learn_many`.

        Returns
        -------
        Examples
            The checked examples; only values that are not finite are left to be found.
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
        """Learn checked examples one after the other; a refused row ends it half-way.

        `learn_many` is safer: it checks, and goes back if a row is refused.

        Parameters
        ----------
        examples : Examples
            What `examples` returned.
        order, predict, feature_names :
            As in `learn_many`; the order is not checked.
        seen : array of shape (n,), optional
            Filled with the scores that the rows were predicted by, before they were learned; they
            are predicted then.

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


class WalkingLearner(Learner):
    """A learner whose single trials go through its walk over rows."""

    def _learn_one(self, values: Any, columns: Any, lower: int, upper: int) -> int:
        if not row_fits.py_func(values, columns, self.n_features):
            return BAD_WIDTH
        try:
            if not is_label.py_func(lower, upper, self.n_classes):
                return BAD_LABEL
        except ValueError:  # not a number
            return BAD_LABEL
        except TypeError:
            raise whole_ranks_error(lower, upper) from None
        values, starts = as_row(values), None
        if columns is not None:
            columns, starts = np.asarray(columns, dtype=np.int64), np.array([0, values.size])
        low, high = np.array([int(lower)]), np.array([int(upper)])
        rank = np.empty(1, dtype=np.int64)
        rest = (low, high, NO_WEIGHTS, NO_ORDER, rank, NO_WEIGHTS)
        with lock_of(self):
            bad = self._walk(values, columns, starts, *rest)
        return BAD_ROW if bad >= 0 else int(rank[0])


def whole_ranks_error(lower: Any, upper: Any) -> TypeError:
    """The error for ranks that are no numbers."""
    return TypeError(f"ranks must be whole numbers, got lower={lower!r}, upper={upper!r}")


def rank_among(thresholds: Floats, scores: Floats) -> Ranks:
    """Rank of every score; one on a threshold belongs to the rank above."""
    return np.searchsorted(thresholds, scores, side="right").astype(np.int64) + 1


def scores_of(weights: Floats, matrix: Any, feature_names: Any) -> Floats:
    """Dot product of every row of a matrix with the weights."""
    out = np.empty(matrix.shape[0])
    for block, _ in row_blocks(matrix, NO_ORDER):
        part = out[block.rows]
        bad = scores(weights, block.data, block.columns, block.starts, part)
        if bad >= 0:
            raise RowValueError(refusal(matrix, block.rows.start + bad, feature_names))
    return out
