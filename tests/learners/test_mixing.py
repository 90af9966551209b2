"""Mixing states of learners: sorted stays sorted, and averages stay what they say."""

import numpy as np
import pytest
from examples import graded

from ordspan.core.state import model_view
from ordspan.distributed.training import mix
from ordspan.learners import LinearLearner
from steps import make_learner

X, Y, SPANS = graded(n=300)
CUTS = [70, 71, 200]
SHARES = (np.diff([0, *CUTS, 300]) / 300).tolist()
PIECES = list(zip(np.split(X, CUTS), np.split(SPANS, CUTS), strict=True))


@pytest.mark.parametrize("shares", [SHARES, [0.0, 1.0, 0.0, 0.0]])
def test_the_average_is_over_every_iterate_of_every_learner(shares):
    before = make_learner("PA-I averaged", 4, 4)
    before.learn_many(X[::3], *SPANS[::3].T)
    weights, thresholds = before.n_trials * before.weights, before.n_trials * before.thresholds
    ends = []
    for rows, spans in PIECES:
        one = make_learner("PA-I averaged", 4, 4).restore(before.state)
        for row, (lower, upper) in zip(rows, spans, strict=True):
            one.learn_one(row, lower, upper)
            weights += one.model.weights
            thresholds += one.model.edges[1:-1]
        ends.append(one.state)
    mixed = make_learner("PA-I averaged", 4, 4).restore(mix(before.state, ends, shares))
    np.testing.assert_allclose(mixed.weights, weights / 400, rtol=1e-10)
    np.testing.assert_allclose(mixed.thresholds, thresholds / 400, rtol=1e-10)


def test_mixed_thresholds_stay_sorted_to_the_bit():
    """Also where neighbours are equal or one rounding apart, and shares are awkward."""
    rng = np.random.default_rng(0)

    def some_learner(base):
        state = LinearLearner(1, 8).state
        steps = rng.choice([0.0, np.spacing(abs(base)), 1e-3], size=7)
        model_view(state).edges[1:-1] = np.maximum.accumulate(base + np.cumsum(steps))
        return state

    for _ in range(2000):
        start, *ends = (some_learner(b) for b in rng.standard_normal(rng.integers(3, 9)) * 10)
        share = rng.dirichlet(np.full(len(ends), 0.3))
        edges = model_view(mix(start, ends, share.tolist())).edges
        assert (np.diff(edges[1:-1]) >= 0).all()
        assert edges[[0, -1]].tolist() == [-np.inf, np.inf]
