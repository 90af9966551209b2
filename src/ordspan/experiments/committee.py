"""OAP-BPM, a committee of PRanks: a method that the paper cites but does not evaluate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ordspan.core.compiling import compiled
from ordspan.core.prank import step
from ordspan.core.rows import add_scaled, score_and_norm
from ordspan.core.state import PRANK, TRIALS, UPDATES, Floats, Ranks, model_view, new_state, view
from ordspan.core.walks import rank_score

COINS_AT_ONCE = 1024
"""Rows of coins drawn together; changing it changes the coins of a seed."""


@compiled
def walk_members(state, X, lower, upper, coins, predicted):
    """Rank each row by the sum of the members, then let those whose coin came up learn it.

    Row 0 of the state is the sum of the members in the rows below it; it gives the same rank as
    their average.
    """
    total = view(state[0])
    for t in range(lower.size):
        score, _ = score_and_norm(total.weights, X[t], None)
        predicted[t] = rank_score(total, score, lower[t])
        any_moved = False
        for m in range(coins.shape[1]):
            if not coins[t, m]:
                continue
            member = view(state[m + 1])
            score, _ = score_and_norm(member.weights, X[t], None)
            pull, moved, _ = step(member, 0.0, member.C, score, 0.0, lower[t], upper[t])
            if moved:
                add_scaled(member.weights, pull, X[t], None)
                add_scaled(total.weights, pull, X[t], None)
                any_moved = True
        if any_moved:
            # recomputed: sums of sorted thresholds, added in the same order, stay sorted to the bit
            total.edges[1:-1] = 0.0
            for m in range(coins.shape[1]):
                edges = view(state[m + 1]).edges
                for i in range(1, edges.size - 1):
                    total.edges[i] += edges[i]
        total.counters[TRIALS] += 1.0
        total.counters[UPDATES] += any_moved


class Committee:
    """OAP-BPM (Harrington 2003): the average of PRanks that each see a random part of the stream.

    Each member is shown an example with probability ``tau`` and learns it as PRank does; weights
    and thresholds are the averages over the members, an approximation of the Bayes point. The coins
    of the t-th example depend on the seed and t alone, so results do not depend on the batches.
    """

    def __init__(
        self,
        n_features: int,
        n_classes: int,
        seed: Sequence[int],
        n_members: int = 10,
        tau: float = 0.3,
    ) -> None:
        self.seed, self.n_members, self.tau = seed, n_members, tau
        state = new_state(PRANK, 1.0, n_features, n_classes, average=False)
        self.state = np.tile(state, (n_members + 1, 1))

    @property
    def weights(self) -> Floats:
        """Average of the members' weights."""
        return model_view(self.state[0]).weights / self.n_members

    @property
    def thresholds(self) -> Floats:
        """Average of the members' sorted thresholds, sorted too."""
        return model_view(self.state[0]).edges[1:-1] / self.n_members

    def learn_many(self, X: Floats, lower: Ranks, upper: Ranks, *, predict: bool = True) -> Ranks:
        """Learn rows one by one; returns the rank of each before it was learned."""
        predicted, start = np.empty_like(lower), int(model_view(self.state[0]).counters[TRIALS])
        walk_members(self.state, X, lower, upper, self._coins(start, lower.size), predicted)
        return predicted

    def _coins(self, start: int, n_rows: int) -> NDArray[np.bool_]:
        """Which members are shown each of the examples from number ``start`` on."""
        first, shape = start // COINS_AT_ONCE, (COINS_AT_ONCE, self.n_members)
        blocks = range(first, (start + n_rows) // COINS_AT_ONCE + 1)
        draws = [np.random.default_rng([*self.seed, block]).random(shape) for block in blocks]
        return np.concatenate(draws)[start - first * COINS_AT_ONCE :][:n_rows] < self.tau
