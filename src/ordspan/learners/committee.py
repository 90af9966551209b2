"""OAP-BPM, a committee of PRanks: a method that the paper cites but does not evaluate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordspan.core import memory as layout
from ordspan.core.baselines import walk_members
from ordspan.core.labels import Ranks
from ordspan.core.rows import BAD_ROW
from ordspan.learners.checks import Floats
from ordspan.learners.growing import WideningLearner
from ordspan.learners.scoring import rank_among, scores_of
from ordspan.learners.walking import WalkingLearner

N_MEMBERS = 10
TAU = 0.3
COINS_AT_ONCE = 1024
"""Rows of coins drawn together; changing it changes the coins of a seed."""


class AggregateLearner(WalkingLearner, WideningLearner):
    """OAP-BPM (Harrington 2003): the average of PRanks that each see a random part of the stream.

    Each member is shown an example with probability ``tau`` and learns it as PRank does; weights
    and thresholds are the averages over the members, an approximation of the Bayes point. The coins
    of the t-th example depend on the seed and t alone, so results do not depend on the batches, and
    ``memory`` is the whole state.

    Parameters
    ----------
    n_features, n_classes : int
        As in `LinearLearner`.
    n_members : int
        Number of PRanks; more of them approximate the Bayes point better but cost more.
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
        super().__init__(n_features, n_classes, rule=layout.PRANK, C=1.0, average=False)
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
        """Named views into the sum of the members."""
        return layout.model_view(np.atleast_2d(self.memory)[0])

    @property
    def weights(self) -> Floats:
        """Average of the members' weights."""
        return self.model.weights / self.n_members

    @property
    def thresholds(self) -> Floats:
        """Average of the members' sorted thresholds, sorted too."""
        return self.model.edges[1:-1] / self.n_members

    def _coins(self, trial: int) -> NDArray[np.bool_]:
        """Which members are shown the examples from number ``trial`` on, to the end of a draw."""
        block, row = divmod(trial, COINS_AT_ONCE)
        if self._drawn is None or self._drawn[0] != block:
            parts = np.atleast_1d(self.seed).tolist()
            draws = np.random.default_rng([*parts, block]).random((COINS_AT_ONCE, self.n_members))
            self._drawn = block, draws < self.tau
        return self._drawn[1][row:]

    def _walk(self, *rows: Any) -> int:
        done, n_rows, bad = 0, rows[3].size, -1
        while done < n_rows and bad < 0:
            turn = (*rows[:-1], self._coins(self.n_trials), done)
            done, bad = walk_members(self.memory, *turn)
        return bad

    def _learn_one(self, values: Any, columns: Any, lower: int, upper: int) -> int:
        with self._lock:
            before = self._snapshot()
            rank = super()._learn_one(values, columns, lower, upper)
            if rank == BAD_ROW:  # some members may have moved before one overflowed
                self._roll_back(before)
            return rank

    def _predict_one(self, values: Any, columns: Any) -> int:
        rank: int = self.walks.predict_one(self.memory[0], values, columns)
        return rank

    def _latent(self, matrix: Any, feature_names: Any) -> Floats:
        return scores_of(self.model.weights, matrix, feature_names) / self.n_members

    def _ranks(self, matrix: Any, feature_names: Any) -> Ranks:
        # compare sums, as in learning: dividing both sides could change ties
        sums = scores_of(self.model.weights, matrix, feature_names)
        return rank_among(self.model.edges[1:-1], sums)
