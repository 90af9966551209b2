"""The rivals: multiclass PA and the committee of PRanks; test_linear.py holds what all share."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import naive
from ordspan.learners import AggregateLearner, MulticlassPALearner, PRankLearner
from ordspan.learners.checks import RowValueError
from ordspan.learners.committee import COINS_AT_ONCE

K, D = 5, 4


def stream(n_rows=400, seed=0):
    """Rows in eighths (their sums are exact) with exact and interval labels."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n_rows, D)) * 8) / 8
    lower = rng.integers(1, K + 1, n_rows)
    upper = np.where(rng.random(n_rows) < 0.5, lower, rng.integers(lower, K + 1))
    return X, lower, upper


def coins(seed, n_trials, n_members, tau):
    """Written from the promise: the coins of trial t depend on the seed and t alone."""
    blocks = [
        np.random.default_rng([seed, block]).random((COINS_AT_ONCE, n_members)) < tau
        for block in range(n_trials // COINS_AT_ONCE + 1)
    ]
    return np.concatenate(blocks)


# -- multiclass PA -------------------------------------------------------------------------------


def test_after_a_hard_step_the_class_is_ahead_by_one():
    learner = MulticlassPALearner(D, K, "PA")
    for x, low, high in zip(*stream(), strict=True):
        learner.learn_one(x, low, high)
        (scores,) = learner.latent([x])
        outside = np.delete(scores, np.arange(low - 1, high))
        if x.any() and outside.size:
            assert scores[low - 1 : high].max() - outside.max() >= 1 - 1e-12


# -- the committee of PRanks ---------------------------------------------------------------------


def test_one_member_that_is_shown_everything_is_plain_prank_to_the_bit():
    X, lower, upper = stream()  # in eighths: sums are exact in any order
    committee, plain = AggregateLearner(D, K, n_members=1, tau=1.0), PRankLearner(D, K)
    ranks = [one.learn_many(X, lower, upper, predict=True) for one in (committee, plain)]
    np.testing.assert_array_equal(*ranks)
    for row in committee.memory:
        assert row.tobytes() == plain.memory.tobytes()


@pytest.mark.parametrize(("n_members", "tau"), [(1, 0.5), (4, 0.3), (8, 0.9), (10, 0.05)])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_the_committee_is_its_slow_twin(n_members, tau, make):
    X, lower, upper = stream(2500, seed=n_members)
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
    X, lower, upper = stream(3 * COINS_AT_ONCE)
    whole, parts = AggregateLearner(D, K, seed=5), AggregateLearner(D, K, seed=5)
    expected = whole.learn_many(X, lower, upper, predict=True)
    ends = [0, 1, 1000, 1030, 2048, 2049, len(X)]
    slices = [slice(a, b) for a, b in pairwise(ends)]
    ranks = [parts.learn_many(X[p], lower[p], upper[p], predict=True) for p in slices]
    np.testing.assert_array_equal(np.concatenate(ranks), expected)
    assert parts.memory.tobytes() == whole.memory.tobytes()


def test_the_seed_decides_and_may_be_several_numbers():
    X, lower, upper = stream()
    memories = []
    for seed in (0, 1, (1, 2), (1, 2), 1):
        learner = AggregateLearner(D, K, seed=seed)
        learner.learn_many(X, lower, upper)
        memories.append(learner.memory.tobytes())
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


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_members": 0}, "n_members must be at least 1, got 0"),
        ({"tau": 0.0}, "tau must be a probability above 0"),
        ({"tau": 1.5}, "tau must be"),
        ({"tau": np.nan}, "tau must be"),
    ],
)
def test_bad_committee_settings_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        AggregateLearner(D, K, **settings)


def test_a_member_that_overflows_is_refused_and_undone():
    learner = AggregateLearner(1, 2, n_members=2, tau=1.0)
    with pytest.raises(RowValueError, match="row 2: the score of the row overflows"):
        learner.learn_many([[9e99]] * 3, [1, 2, 2], sample_weight=[1.0, 1e150, 1.0])
    assert learner.n_trials == 0
    assert not learner.weights.any()
