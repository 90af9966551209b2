"""The committee of PRanks that the experiments compare with."""

from itertools import pairwise

import numpy as np
import pytest

import naive
from ordspan.experiments.committee import COINS_AT_ONCE, Committee
from ordspan.learners import PRankLearner
from steps import stream

K, D = 5, 4


def coins(seed, n_trials, n_members, tau):
    """Written from the promise: the coins of trial t depend on the seed and t alone."""
    blocks = [
        np.random.default_rng([seed, block]).random((COINS_AT_ONCE, n_members)) < tau
        for block in range(n_trials // COINS_AT_ONCE + 1)
    ]
    return np.concatenate(blocks)


def test_one_member_that_is_shown_everything_is_plain_prank_to_the_bit():
    X, lower, upper = stream(400, D, K)  # in eighths: sums are exact in any order
    committee, plain = Committee(D, K, seed=(0,), n_members=1, tau=1.0), PRankLearner(D, K)
    ranks = [one.learn_many(X, lower, upper, predict=True) for one in (committee, plain)]
    np.testing.assert_array_equal(*ranks)
    np.testing.assert_array_equal(committee.weights, plain.weights)
    np.testing.assert_array_equal(committee.thresholds, plain.thresholds)


@pytest.mark.parametrize(("n_members", "tau"), [(1, 0.5), (4, 0.3), (8, 0.9), (10, 0.05)])
def test_the_committee_is_its_slow_twin(n_members, tau):
    X, lower, upper = stream(2500, D, K, seed=n_members)
    learner = Committee(D, K, (7,), n_members, tau)
    predicted = learner.learn_many(X, lower, upper)
    twin = naive.learn_aggregate(X, lower, upper, coins(7, len(X), n_members, tau), K)
    # a mean over ten members is rounded, so a score on a threshold may fall to either side
    differ = predicted != twin.predicted
    assert differ.mean() < (0.01 if n_members == 10 else 1e-9)
    np.testing.assert_allclose(learner.weights, twin.weights, rtol=0, atol=1e-9)
    np.testing.assert_allclose(learner.thresholds, twin.thresholds, rtol=0, atol=1e-9)
    assert np.all(np.diff(learner.thresholds) >= 0)


def test_the_portions_do_not_matter_across_draws_of_coins():
    X, lower, upper = stream(3 * COINS_AT_ONCE, D, K)
    whole, parts = Committee(D, K, (5,)), Committee(D, K, (5,))
    expected = whole.learn_many(X, lower, upper)
    ends = [0, 1, 1000, 1030, 2048, 2049, len(X)]
    slices = [slice(a, b) for a, b in pairwise(ends)]
    ranks = [parts.learn_many(X[p], lower[p], upper[p]) for p in slices]
    np.testing.assert_array_equal(np.concatenate(ranks), expected)
    assert parts.state.tobytes() == whole.state.tobytes()


def test_the_seed_decides():
    X, lower, upper = stream(400, D, K)
    states = []
    for seed in ((0,), (1,), (1, 2), (1, 2), (1,)):
        learner = Committee(D, K, seed)
        learner.learn_many(X, lower, upper)
        states.append(learner.state.tobytes())
    assert states[1] == states[4]
    assert states[2] == states[3]
    assert len(set(states)) == 3
