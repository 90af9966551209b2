"""The committee of PRanks; test_linear.py holds what all learners share."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import naive
from ordspan.experiments.committee import COINS_AT_ONCE, AggregateLearner
from steps import stream

K, D = 5, 4


def coins(seed, n_trials, n_members, tau):
    """Written from the promise: the coins of trial t depend on the seed and t alone."""
    blocks = [
        np.random.default_rng([seed, block]).random((COINS_AT_ONCE, n_members)) < tau
        for block in range(n_trials // COINS_AT_ONCE + 1)
    ]
    return np.concatenate(blocks)


@pytest.mark.parametrize(("n_members", "tau"), [(1, 1.0), (4, 0.3), (8, 0.9), (10, 0.05)])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_the_committee_is_its_slow_twin(n_members, tau, make):
    X, lower, upper = stream(2500, D, K, seed=n_members)
    sizes = np.random.default_rng(2).integers(0, 4, len(X)) / 2
    learner = AggregateLearner(D, K, n_members, tau, seed=7)
    predicted = learner.learn_many(make(X), lower, upper, sample_weight=sizes, predict=True)
    twin = naive.learn_aggregate(X, lower, upper, coins(7, len(X), n_members, tau), K, sizes)
    # a mean over ten members is rounded, so a score on a threshold may fall to either side
    differ = predicted != twin.predicted
    assert differ.mean() < (0.01 if n_members == 10 else 1e-9)
    np.testing.assert_allclose(learner.weights, twin.weights, rtol=0, atol=1e-9)
    np.testing.assert_allclose(learner.thresholds, twin.thresholds, rtol=0, atol=1e-9)
    assert learner.n_updates == twin.n_updates


def test_the_portions_do_not_matter_across_draws_of_coins():
    X, lower, upper = stream(3 * COINS_AT_ONCE, D, K)
    whole, parts = AggregateLearner(D, K, seed=5), AggregateLearner(D, K, seed=5)
    expected = whole.learn_many(X, lower, upper, predict=True)
    ends = [0, 1, 1000, 1030, 2048, 2049, len(X)]
    slices = [slice(a, b) for a, b in pairwise(ends)]
    ranks = [parts.learn_many(X[p], lower[p], upper[p], predict=True) for p in slices]
    np.testing.assert_array_equal(np.concatenate(ranks), expected)
    assert parts.state.tobytes() == whole.state.tobytes()


def test_the_seed_decides_and_may_be_several_numbers():
    X, lower, upper = stream(400, D, K)
    memories = []
    for seed in (0, 1, (1, 2), (1, 2), 1):
        learner = AggregateLearner(D, K, seed=seed)
        learner.learn_many(X, lower, upper)
        memories.append(learner.state.tobytes())
    assert memories[1] == memories[4]
    assert memories[2] == memories[3]
    assert len(set(memories)) == 3


def test_thresholds_stay_sorted_to_the_bit_under_unequal_steps():
    rng = np.random.default_rng(0)
    X, ranks = rng.normal(size=(5000, 2)), rng.integers(1, 21, 5000)
    learner = AggregateLearner(2, 20, n_members=7)
    for start in range(0, 5000, 20):
        part = slice(start, start + 20)
        learner.learn_many(X[part], ranks[part], sample_weight=rng.exponential(size=20))
        assert np.all(np.diff(learner.thresholds) >= 0)
