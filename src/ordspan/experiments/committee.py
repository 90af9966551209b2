"""OAP-BPM, a committee of PRanks: a method that the paper cites but does not evaluate."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordspan.core import state as layout
from ordspan.core.compiling import compiled
from ordspan.core.prank import step
from ordspan.core.rows import MAX_SQ_NORM, add_scaled, row_at, score_and_norm
from ordspan.core.state import TRIALS, UPDATES, Floats, Ranks, view
from ordspan.core.walks import rank_score
from ordspan.learners.base import Learner, rank_among

N_MEMBERS = 10
TAU = 0.3
COINS_AT_ONCE = 1024
"""Rows of coins drawn together; changing it changes the coins of a seed."""


@compiled
def show_members(state, coins, size, values, columns, lower, upper):
    """Let the members whose coin came up learn a row; whether any moved, whether all are finite.

    Row 0 of the state is the sum of the members in the rows below it.
    """
    total = view(state[0])
    any_moved = False
    for m in range(coins.size):
        if not coins[m]:
            continue
        own = view(state[m + 1])
        score, _ = score_and_norm(own.weights, values, columns)
        if not abs(score) < inf:
            return any_moved, False
        pull, moved, _ = step(own, 0.0, size, score, 0.0, lower, upper)
        if moved:
            add_scaled(own.weights, pull, values, columns)
            add_scaled(total.weights, pull, values, columns)
            own.counters[UPDATES] += 1.0
            any_moved = True
        own.counters[TRIALS] += 1.0
    if any_moved:
        # recomputed: sums of sorted thresholds, added in the same order, stay sorted to the bit
        total.edges[1:-1] = 0.0
        for m in range(coins.size):
            edges = view(state[m + 1]).edges
            for i in range(1, edges.size - 1):
                total.edges[i] += edges[i]
    return any_moved, True


@compiled
def walk_members(state, rows, order, predicted, coins, first):
    """Train a committee of PRanks on the rows from ``first`` on, until the coins run out.

    Row t of ``coins`` says which members are shown the t-th row that counts. Returns the position
    to continue from, and the first refused row or -1. The committee ranks by the sum of its
    members, which gives the same rank as their average.
    """
    data, columns, starts, lower, upper, weight, width = rows
    model = view(state[0])
    size = model.C
    tossed = 0
    for t in range(first, lower.size):
        i = order[t] if order.size > 0 else t
        if weight.size > 0:
            size = model.C * weight[i]
        if size > 0.0 and tossed == coins.shape[0]:
            return t, -1
        values, cols = row_at(data, columns, starts, width, i)
        score, sq_norm = score_and_norm(model.weights, values, cols)
        if not (sq_norm < MAX_SQ_NORM and abs(score) < inf):
            return t, i
        if predicted.size > 0:
            predicted[i] = rank_score(model, score, lower[i])
        if size <= 0.0:
            continue
        moved, finite = show_members(state, coins[tossed], size, values, cols, lower[i], upper[i])
        if not finite:
            return t, i
        tossed += 1
        model.counters[TRIALS] += 1.0
        model.counters[UPDATES] += moved
    return lower.size, -1


class AggregateLearner(Learner):
    """OAP-BPM (Harrington 2003): the average of PRanks that each see a random part of the stream.

    Each member is shown an example with probability ``tau`` and learns it as PRank does; weights
    and thresholds are the averages over the members, an approximation of the Bayes point. The coins
    of the t-th example depend on the seed and t alone, so results do not depend on the batches, and
    ``state`` is the whole state.

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
    >>> from ordspan.experiments.committee import AggregateLearner
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
        super().__init__(n_features, n_classes, rule=layout.PRANK)
        if n_members < 1:
            raise ValueError(f"n_members must be at least 1, got {n_members}")
        if not 0 < tau <= 1:
            raise ValueError(f"tau must be a probability above 0, got {tau!r}")
        self.n_members = n_members
        self.tau = tau
        self.seed = seed
        # row 0 is the sum of the members in the other rows
        self.state = np.tile(self.state, (n_members + 1, 1))
        self._drawn: tuple[int, NDArray[np.bool_]] | None = None

    @property
    def model(self) -> layout.Model:
        """Named views into the sum of the members."""
        return layout.model_view(np.atleast_2d(self.state)[0])

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

    def learn_one(self, x: NDArray[Any], lower: int, upper: int | None = None) -> int:  # noqa: D102
        with self.unchanged_on_error():  # some members may have moved before one overflows
            return super().learn_one(x, lower, upper)

    def _walk(self, rows: Any, order: Any, predicted: Any, scores_before: Any) -> int:
        done, bad = 0, -1
        while done < rows.lower.size and bad < 0:
            coins = self._coins(self.n_trials)
            done, bad = walk_members(self.state, rows, order, predicted, coins, done)
        return bad

    def latent(self, X: Any, *, feature_names: Any = None) -> Floats:  # noqa: D102
        return self._scores(self.model.weights, self.rows(X), feature_names) / self.n_members

    def predict_many(self, X: Any, *, feature_names: Any = None) -> Ranks:  # noqa: D102
        # compare sums, as in learning: dividing both sides could change ties
        sums = self._scores(self.model.weights, self.rows(X), feature_names)
        return rank_among(self.model.edges[1:-1], sums)
