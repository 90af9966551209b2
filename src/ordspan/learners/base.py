"""The interface of every online learner: learn and predict one row or many."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from copy import copy
from threading import RLock
from typing import Any, NoReturn, Self

import numpy as np
from numba.core.errors import TypingError
from numpy.typing import ArrayLike, NDArray

from ordspan.core import state as layout
from ordspan.core.rows import BAD_ROW, Rows, row_fits, scores
from ordspan.core.state import Floats, Ranks
from ordspan.core.walks import score_one
from ordspan.learners import rows as door
from ordspan.learners.calibration import Calibration

Columns = NDArray[np.int64]


class Locked:
    """An object that one thread at a time may change; copies and pickles have their own lock."""

    @property
    def _lock(self) -> Any:
        """The lock of this process: one that was held during a fork stays held in the child."""
        return vars(self).setdefault(f"_lock_{os.getpid()}", RLock())

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if not name.startswith("_lock_")}

    @contextmanager
    def unchanged_on_error(self) -> Iterator[None]:
        """Restore all attributes if the block raises; other threads wait.

        Yields
        ------
        None
            While the block runs.
        """
        with self._lock:
            before = self._attributes()
            try:
                yield
            except BaseException:
                for name in vars(self).keys() - before.keys():
                    del vars(self)[name]
                vars(self).update(before)
                raise

    def _attributes(self) -> dict[str, Any]:
        return dict(vars(self))


class Learner(Locked):
    """An online ranker on ranks 1..K; subclasses choose the rule.

    Its whole state is the array ``state``: copy it as a snapshot, and `restore` it to go back.

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
    >>> before = learner.state.copy()
    >>> learner.learn_one(np.array([1.0]), 1)
    2
    >>> learner.restore(before).weights
    array([0.])
    """

    walks: Any = None  # core.walks.Walks, compiled for the rule; None: it learns in batches only
    rules: Collection[int] = ()  # allowed in a state from a file
    fixed = "average and balanced"  # settings that cannot change during learning

    def __init__(
        self,
        n_features: int,
        n_classes: int,
        *,
        rule: int,
        C: float = 1.0,
        average: bool = False,
        balanced: bool = False,
        n_weights: int | None = None,
    ) -> None:
        for name, value, least in (("n_features", n_features, 1), ("n_classes", n_classes, 2)):
            if value < least:
                raise ValueError(f"{name} must be at least {least}, got {value}")
        self.n_features = n_features
        self.n_classes = n_classes
        n_weights = n_features if n_weights is None else n_weights
        settings = (float(C), n_weights, n_classes, bool(average), bool(balanced))
        self.adopt_state(layout.new_state(rule, *settings))

    # -- state -----------------------------------------------------------------------------------

    state: Floats

    @property
    def head(self) -> Floats:
        """The part of the state that holds settings, counters and thresholds."""
        return self.state

    @property
    def model(self) -> layout.Model:
        """Named views into the state: the last iterate, without averaging."""
        return layout.model_view(self.head)

    def adopt_state(self, state: Floats) -> None:
        """Use a state, including its rule, without a copy.

        Parameters
        ----------
        state : ndarray
            The ``state`` of a learner with as many features and ranks.
        """
        self.state = state

    def why_unusable(self, state: Any, n_features: int, n_classes: int) -> str | None:
        """Why a learner with these settings and the given shape cannot use a state.

        Parameters
        ----------
        state : ndarray
            An untrusted state.
        n_features, n_classes : int
            The shape of the learner that is to use it.

        Returns
        -------
        str or None
            The reason, to follow the words "its state"; None if the state is valid.

        Examples
        --------
        >>> from ordspan.learners import LinearLearner
        >>> learner = LinearLearner(n_features=1, n_classes=2)
        >>> learner.state[0] = 99
        >>> LinearLearner(n_features=1, n_classes=2).why_unusable(learner.state, 1, 2)
        'follows an unknown rule 99'
        """
        return layout.why_unusable(state, self.head, self.rules, n_features, n_classes)

    def restore(self, state: Floats) -> Self:
        """Copy the state of a learner of the same kind and shape.

        Parameters
        ----------
        state : ndarray
            The ``state`` of this learner, or of one made with the same parameters.

        Returns
        -------
        self
            The learner itself.
        """
        usable = self.why_unusable(state, self.n_features, self.n_classes) is None
        if not (usable and (state[layout.VARIANT] == self.head[layout.VARIANT]).all()):
            raise ValueError("the state belongs to a learner of another kind or shape")
        self.adopt_state(state.copy())
        return self

    def is_compatible(self, other: Learner) -> bool:
        """Whether one learner can continue with the settings of another.

        Parameters
        ----------
        other : Learner
            The other learner.

        Returns
        -------
        bool
            True if they have the same shape and the same ``fixed`` settings.
        """
        shapes = ((type(a), a.n_features, *a.head[layout.SHAPE]) for a in (self, other))
        return len({*shapes}) == 1

    def adopt_settings(self, other: Learner) -> None:
        """Continue with the settings of another learner: its rule, C and, if any, budget.

        Parameters
        ----------
        other : Learner
            A learner with as many features and ranks and the same ``fixed`` settings.
        """
        if not self.is_compatible(other):
            raise ValueError(f"{self.fixed} cannot change during learning; call fit to start over")
        self.head[layout.VARIANT] = other.head[layout.VARIANT]

    def _attributes(self) -> dict[str, Any]:
        return {
            name: value.copy() if isinstance(value, np.ndarray) else value
            for name, value in vars(self).items()
        }

    def with_features(self, n_features: int) -> Self:
        """A learner that continues this one with more features; this one is unchanged.

        It equals a learner that had all the features from the start and only saw zeros in the new
        ones, which are the last columns: to the bit if the rows are sparse. The order of a dense
        sum depends on its length and on the processor, so dense results differ by rounding, about
        1e-15 of the terms. It costs one copy of the state, so a stream that keeps adding features
        should double their number each time.

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
        >>> import numpy as np
        >>> from ordspan.learners import LinearLearner
        >>> learner = LinearLearner(n_features=1, n_classes=2, variant="PA")
        >>> learner.learn_one(np.array([1.0]), 1)
        2
        >>> learner.with_features(3).weights
        array([-0.5,  0. ,  0. ])
        """
        if n_features < self.n_features:
            raise ValueError(
                f"a learner of {self.n_features} features cannot continue with {n_features}"
            )
        self._refuse_dual()
        wider = copy(self)
        wider.n_features = n_features
        wider.state = layout.with_features(self.state, n_features)
        return wider

    def with_rank(self, rank: int) -> Self:
        """A learner that continues this one with one more rank, number ``rank`` of 1..K + 1.

        Higher ranks move up by one. Between two ranks the new one starts with an empty band of
        scores on the threshold between them, so predictions are only renumbered; beyond the
        outermost rank its threshold starts one margin away from the last.

        Parameters
        ----------
        rank : int
            The number of the new rank, from 1 for a new lowest one to K + 1 for a new highest one.

        Returns
        -------
        Learner
            The learner of K + 1 ranks.

        Examples
        --------
        >>> from ordspan.learners import LinearLearner
        >>> LinearLearner(n_features=1, n_classes=2).with_rank(3).thresholds
        array([0., 1.])
        """
        if not 1 <= rank <= self.n_classes + 1:
            raise ValueError(f"rank {rank} is not in 1..{self.n_classes + 1}")
        self._refuse_dual()
        grown = copy(self)
        grown.n_classes = self.n_classes + 1
        grown.state = layout.with_rank(self.state, rank)
        return grown

    @property
    def n_trials(self) -> int:
        """Number of examples so far, whether they changed anything or not."""
        return int(self.model.counters[layout.TRIALS])

    @property
    def n_updates(self) -> int:
        """Examples that moved the parameters."""
        return int(self.model.counters[layout.UPDATES])

    @property
    def weights(self) -> Floats:
        """The weights used in prediction: the average of all iterates, or the last one."""
        model = self.model
        if not (age := layout.age_of.py_func(model)):
            return model.weights.copy()
        return model.weights - model.weight_correction / age

    @property
    def thresholds(self) -> Floats:
        """The sorted thresholds used in prediction."""
        model = self.model
        if not (age := layout.age_of.py_func(model)):
            return model.edges[1:-1].copy()
        # an average of sorted thresholds is sorted, up to its own rounding
        return np.maximum.accumulate(model.edges[1:-1] - model.edge_correction[1:-1] / age)

    # -- one row ---------------------------------------------------------------------------------

    def learn_one(
        self, x: NDArray[Any], lower: int, upper: int | None = None, columns: Columns | None = None
    ) -> int:
        """Learn one example with rank in lower..upper; returns the rank predicted before learning.

        Parameters
        ----------
        x : array of shape (d,), or (m,) with ``columns``
            The row, or the values of a sparse one, which cost no more than their number.
        lower, upper : int
            Ends of the label, ranks 1..K; without ``upper`` the label is exact.
        columns : array of shape (m,), optional
            The columns of a sparse row's values, each at most once.

        Returns
        -------
        int
            The rank predicted for the row before learning it.

        Examples
        --------
        >>> from ordspan.learners import LinearLearner
        >>> LinearLearner(n_features=2, n_classes=3).learn_one(np.array([1.0, 0.0]), 1, 2)
        3
        >>> LinearLearner(9, n_classes=3).learn_one(np.array([1.0]), 1, 2, columns=np.array([7]))
        3
        """
        if x.__class__ is not np.ndarray or x.dtype not in door.FLOATS:
            x = door.as_row(x)
        if upper is None:
            upper = lower
        if self.walks is None:
            self._refuse_dual(columns is not None)
            with self._lock:  # a refused row changes nothing
                row = self.rows(door.as_row(x)[np.newaxis], [lower], [upper])
                ranks = self.learn(row, predict=True)
            return int(ranks[0])  # type: ignore[index]
        try:
            rank: int = self.walks.learn_one(self.state, x, columns, lower, upper)
        except TypingError:
            door.check_ranks([lower], [upper], self.n_classes)
            raise
        if rank == BAD_ROW:
            self._refuse(x, columns, lower, upper)
        return rank

    def predict_one(self, x: NDArray[Any], columns: Columns | None = None) -> int:
        """Rank of one example.

        Parameters
        ----------
        x, columns :
            As in `learn_one`.

        Returns
        -------
        int
            Its rank, 1..K.
        """
        x = door.as_row(x)
        if self.walks is None:
            self._refuse_dual(columns is not None)
            return int(self.predict_many(x[np.newaxis])[0])
        rank: int = self.walks.predict_one(self.state, x, columns)
        if rank == BAD_ROW:
            self._refuse(x, columns)
        return rank

    def latent_one(self, x: Floats, columns: Columns | None = None) -> float:
        """Score of one example, by a learner with weights and thresholds.

        Parameters
        ----------
        x, columns :
            As in `learn_one`.

        Returns
        -------
        float
            The score that decides its rank.
        """
        self._refuse_dual()
        score: float = score_one(self.state, x, columns)
        if not abs(score) < np.inf:
            self._refuse(x, columns)
        return score

    def _refuse_dual(self, needs_columns: bool = True) -> None:
        if self.walks is None and needs_columns:
            raise TypeError(f"{type(self).__name__} keeps no weights by column: use learn_many")

    def _refuse(self, x: Floats, columns: Any, lower: Any = 1, upper: Any = 1) -> NoReturn:
        door.check_ranks([lower], [upper], self.n_classes)
        if row_fits.py_func(x, columns, self.n_features):
            starts = None if columns is None else [0, x.size]
            row = Rows(x, columns, starts, None, None, None, self.n_features)
            raise door.RowValueError(door.refusal(row, 0))
        if columns is None:
            raise ValueError(f"x has {x.size} features, but the learner has {self.n_features}")
        raise ValueError(
            f"{x.size} values need as many columns in 0..{self.n_features - 1}, "
            f"got {columns.tolist()}"
        )

    # -- many rows -------------------------------------------------------------------------------

    def rows(
        self,
        X: Any,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Rows:
        """Rows and labels as `learn` takes them, checked once for any number of passes.

        Parameters
        ----------
        X, lower, upper, sample_weight :
            As in `learn_many`; without labels, rows to predict, or `Rows` of the same width.

        Returns
        -------
        Rows
            The checked rows; values that are not finite are only found when learning.
        """
        rows = X if isinstance(X, Rows) and lower is None else door.make_rows(door.as_matrix(X))
        if rows.width != self.n_features:
            raise ValueError(f"X has {rows.width} features, but the learner has {self.n_features}")
        if lower is None:
            return rows
        low, high = door.check_ranks(lower, lower if upper is None else upper, self.n_classes)
        if low.size != (n_rows := door.count_rows(rows)):
            raise ValueError(
                "Found input variables with inconsistent numbers of samples: X has "
                f"{n_rows} rows, but there are {low.size} labels"
            )
        weight = door.check_weights(sample_weight, low.size)
        return rows._replace(lower=low, upper=high, weight=weight)

    def learn_many(
        self,
        X: Any,
        lower: ArrayLike,
        upper: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        predict: bool = False,
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
        predict : bool
            Also return the rank predicted for each row before it was learned: the median under the
            calibration of that moment, if one is given.
        calibration : Calibration, optional
            Learns from the score of each row before the row is learned.

        Returns
        -------
        ndarray of shape (n,) or None
            The ranks predicted before learning, if ``predict``.
        """
        rows = self.rows(X, lower, upper, sample_weight)
        scores_before = np.empty(0 if calibration is None else rows.lower.size)
        with self.unchanged_on_error():
            predicted = self.learn(rows, predict=predict, scores_before=scores_before)
        if calibration is not None:
            predicted = calibration.observe(scores_before, *rows[3:6], predict)
        return predicted if predict else None

    def learn(
        self,
        rows: Rows,
        order: NDArray[np.intp] = door.NO_ORDER,
        predict: bool = False,
        *,
        feature_names: Any = None,
        scores_before: Floats = door.NO_WEIGHTS,
    ) -> Ranks | None:
        """Learn checked rows one by one; stops at a refused row.

        `learn_many` is safer: it checks the rows, and rolls back if one is refused.

        Parameters
        ----------
        rows : Rows
            What `rows` returned.
        order : array of row numbers, optional
            The order in which to learn the rows, each once; it is not checked.
        predict : bool
            Also return the rank predicted for each row before it was learned.
        feature_names : sequence, optional
            Names to use in an error about a bad value.
        scores_before : array of shape (n,), optional
            Filled with the scores of the rows before they were learned; implies ``predict``.

        Returns
        -------
        ndarray of shape (n,) or None
            As `learn_many`.
        """
        predict = predict or scores_before.size > 0
        predicted = np.empty(rows.lower.size if predict else 0, dtype=np.int64)
        is_open = (rows.lower == 1) & (rows.upper == self.n_classes)
        if is_open.any():  # says nothing, and must not count as a trial of an average
            weight = rows.weight if rows.weight.size else 1.0
            rows = rows._replace(weight=np.where(is_open, 0.0, weight))
        bad = self._walk(rows, order, predicted, scores_before)
        if bad >= 0:
            raise door.RowValueError(self._refusal(rows, bad, feature_names))
        return predicted if predict else None

    def _walk(self, *arguments: Any) -> int:
        """Learn the rows; returns the first refused one, or -1."""
        return int(self.walks.walk(self.state, *arguments))

    def _refusal(self, rows: Rows, row: int, feature_names: Any) -> str:
        return door.refusal(rows, row, feature_names)

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
        return self._scores(self.weights, self.rows(X), feature_names)

    def _scores(self, weights: Floats, rows: Rows, feature_names: Any) -> Floats:
        """Dot product of every row with some weights."""
        out = np.empty(door.count_rows(rows))
        bad = scores(weights, rows, out)
        if bad >= 0:
            raise door.RowValueError(door.refusal(rows, bad, feature_names))
        return out

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
        return rank_among(self.thresholds, self.latent(X, feature_names=feature_names))


def rank_among(thresholds: Floats, scores: Floats) -> Ranks:
    """Rank of every score; a score on a threshold has the rank above."""
    return np.searchsorted(thresholds, scores, side="right").astype(np.int64) + 1


def with_state(make: Callable[..., Any], state: Any, n_features: int, n_classes: int) -> Any:
    """A learner that uses an untrusted state, which is checked before anything is allocated.

    >>> from ordspan.learners import LinearLearner
    >>> with_state(LinearLearner, np.zeros(3), n_features=1, n_classes=2)
    Traceback (most recent call last):
    ValueError: its state has 3 numbers, but 1 features and 2 grades need 14
    """
    if fault := make(1, 2).why_unusable(state, n_features, n_classes):
        raise ValueError(f"its state {fault}")
    learner = make(n_features, n_classes)
    learner.adopt_state(state)  # as is: parameters may have changed since it last learned
    return learner
