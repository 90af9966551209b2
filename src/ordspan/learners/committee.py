"""OAP-BPM, a committee of PRanks: a rival that the paper cites but does not run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordspan.core import memory as layout
from ordspan.core.baselines import walk_members
from ordspan.core.labels import Ranks
from ordspan.core.rows import BAD_LABEL, BAD_ROW, BAD_WIDTH
from ordspan.learners.base import NO_ORDER, NO_RANKS, NO_WEIGHTS, Columns, scores_of
from ordspan.learners.checks import Floats, as_row
from ordspan.learners.linear import PRankLearner

N_MEMBERS = 10
TAU = 0.3
COINS_AT_ONCE = 1024
"""Rows of coins drawn together; another number would be other coins from the same seed."""


class AggregateLearner(PRankLearner):
    """OAP-BPM (Harrington 2003): the average of PRanks that each see a random part of the stream.

    Each member is shown an example with probability ``tau`` and learns it as PRank does; weights
    and thresholds are the averages over the members, an approximation of the Bayes point. The coins
    of the t-th example depend on the seed and t alone, so it does not matter in which portions the
    examples come, and ``memory`` is all that the learner knows.

    Parameters
    ----------
    n_features, n_classes : int
        Length of a row, and the number of ranks K.
    n_members : int
        Number of PRanks; more approximate the Bayes point better and cost more.
    tau : float
        Probability that a member is shown an example, in (0, 1]; smaller values make the members
        differ more.
    seed : int or sequence of int
        Seed of the coins.

    Examples
    --------
    >>> import numpy as np
    >>> from ordspan.learners import AggregateLearner
    >>> learner = AggregateLearner(n_features=1, n_classes=2, n_members=4, tau=0.5, seed=0)
    >>> X = np.tile([[-1.0], [1.0]], (50, 1))
    >>> learner.learn_many(X, np.tile([1, 2], 50))
    >>> learner.predict_many([[-1.0], [1.0]])
    array([1, 2])
    """

    def __init__(
        self,
        n_features: int,
        n_classes: int,
        n_members: int = N_MEMBERS,
        tau: float = TAU,
        seed: int | Sequence[int] = 0,
    ) -> None:
        super().__init__(n_features, n_classes)
        if n_members < 1:
            raise ValueError(f"n_members must be at least 1, got {n_members}")
        if not 0 < tau <= 1:
            raise ValueError(f"tau must be a probability above 0, got {tau!r}")
        self.n_members = n_members
        self.tau = tau
        self.seed = seed
        # row 0 is the sum of the members in the other rows
        self.memory = np.tile(self.memory, (n_members + 1, 1))
        self._drawn: tuple[int, NDArray[np.bool_]] | None = None

    @property
    def model(self) -> layout.Model:
        """Views into the sum of the members, by name."""
        return layout.model_of(self.memory[0])

    @property
    def weights(self) -> Floats:
        """Average of the members' weights."""
        return self.model.weights / self.n_members

    @property
    def thresholds(self) -> Floats:
        """Average of the members' sorted thresholds, sorted too."""
        return self.model.edges[1:-1] / self.n_members

    def _coins(self, trial: int) -> NDArray[np.bool_]:
        """Who is shown the examples from number ``trial`` on, as many as are drawn together."""
        block, row = divmod(trial, COINS_AT_ONCE)
        if self._drawn is None or self._drawn[0] != block:
            parts = np.atleast_1d(self.seed).tolist()
            draws = np.random.default_rng([*parts, block]).random((COINS_AT_ONCE, self.n_members))
            self._drawn = block, draws < self.tau
        return self._drawn[1][row:]

    def _walk(self, *rows: Any) -> int:
        done, n_rows, bad = 0, rows[3].size, -1
        while done < n_rows and bad < 0:
            turn = (*rows, self._coins(self.n_trials), done)
            done, bad = walk_members(self.memory, *turn)
        return bad

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
        """
        row = as_row(x)
        if row.size != self.n_features:
            self._refuse(BAD_WIDTH, row)
        upper = lower if upper is None else upper
        if not 1 <= lower <= upper <= self.n_classes:
            self._refuse(BAD_LABEL, row, lower, upper)
        predicted = self.learn_many(row.reshape(1, -1), [lower], [upper], predict=True)
        assert predicted is not None
        return int(predicted[0])

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
        row = as_row(x)
        rank = self.walks.predict_one(self.memory[0], row)
        if rank <= 0:
            self._refuse(rank, row)
        return rank

    def learn_sparse(self, values: Floats, columns: Columns, lower: int, upper: int) -> int:
        """`learn_one` on the values of some columns, the others being zero.

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
        """
        code = self.walks.predict_sparse(self.memory[0], values, columns)
        if code > 0 and not 1 <= lower <= upper <= self.n_classes:
            code = BAD_LABEL
        if code <= 0:
            self._refuse_sparse(code, values, columns, lower, upper)
        starts, low, high = np.array([0, values.size]), np.array([lower]), np.array([upper])
        rows = (values, columns, starts, low, high, NO_WEIGHTS, NO_ORDER, NO_RANKS)
        with self.unchanged_on_error():
            if self._walk(*rows) >= 0:
                self._refuse_sparse(BAD_ROW, values, columns, lower, upper)
        return code

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
        rank = self.walks.predict_sparse(self.memory[0], values, columns)
        if rank <= 0:
            self._refuse_sparse(rank, values, columns)
        return rank

    def latent(self, X: Any, *, feature_names: Any = None) -> Floats:
        """Average score of every row, (n,).

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Rows, float64 or float32, any stride.
        feature_names : sequence, optional
            Names for the message about a bad value.

        Returns
        -------
        ndarray of shape (n,)
            The scores.
        """
        return self._summed(X, feature_names) / self.n_members

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
        # by sums, as in learning: dividing both sides could split what is equal
        model, summed = self.model, self._summed(X, feature_names)
        return np.searchsorted(model.edges[1:-1], summed, side="right").astype(np.int64) + 1

    def _summed(self, X: Any, feature_names: Any) -> Floats:
        return scores_of(self.model.weights, self._checked(X), feature_names)
