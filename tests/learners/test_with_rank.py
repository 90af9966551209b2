"""One rank more, later: no other rank's score or prediction changes, and the order holds."""

import itertools

import numpy as np
import pytest

from ordspan.learners import (
    AggregateLearner,
    LinearLearner,
    MulticlassPALearner,
    PerceptronLearner,
    PRankLearner,
)

D, K = 4, 5

LEARNERS = {
    f"{variant}{' balanced' * balanced}{' averaged' * average}": (
        lambda variant=variant, balanced=balanced, average=average: LinearLearner(
            D, K, variant, 0.3, average, balanced=balanced
        )
    )
    for variant, balanced, average in itertools.product(
        ("PA", "PA-I", "PA-II"), (False, True), (False, True)
    )
} | {"PRank": lambda: PRankLearner(D, K)}
each_learner = pytest.mark.parametrize("name", LEARNERS)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, D))
    ranks = np.clip(np.round(2 * X[:, 0] + 3 + 0.5 * rng.normal(size=200)), 1, K).astype(int)
    return X, ranks


def trained(name, data):
    learner = LEARNERS[name]()
    learner.learn_many(*data)
    return learner


@each_learner
@pytest.mark.parametrize("rank", range(1, K + 2))
def test_the_others_keep_their_weights_and_thresholds(name, data, rank):
    learner = trained(name, data)
    before = learner.memory.tobytes()
    grown = learner.with_rank(rank)
    assert grown.n_classes == K + 1
    np.testing.assert_array_equal(grown.weights, learner.weights)
    new = min(rank, K) - 1  # where among the thresholds
    np.testing.assert_array_equal(np.delete(grown.thresholds, new), learner.thresholds)
    assert (np.diff(grown.thresholds) >= 0).all()
    assert (np.diff(grown.model.edges) >= 0).all()
    assert learner.memory.tobytes() == before


@each_learner
@pytest.mark.parametrize("rank", range(2, K + 1))
def test_between_two_ranks_no_prediction_changes(name, data, rank):
    learner = trained(name, data)
    old = learner.predict_many(data[0])
    renumbered = old + (old >= rank)
    np.testing.assert_array_equal(learner.with_rank(rank).predict_many(data[0]), renumbered)


@each_learner
@pytest.mark.parametrize(("rank", "neighbour", "side"), [(1, 0, -1.0), (K + 1, -1, 1.0)])
def test_beyond_the_outermost_it_starts_a_margin_away(name, data, rank, neighbour, side):
    learner = trained(name, data)
    outer = learner.with_rank(rank).thresholds[neighbour]
    assert outer == pytest.approx(learner.thresholds[neighbour] + side, rel=1e-12)


@each_learner
@pytest.mark.parametrize("rank", [1, 3, K + 1])
def test_it_learns_the_new_rank_and_keeps_the_order_to_the_bit(name, data, rank):
    X, ranks = data
    grown = trained(name, data).with_rank(rank)
    with_new = ranks + (ranks >= rank)
    seen = rank in (1, K + 1)
    chosen = X[:, 0] < -1.5 if rank == 1 else X[:, 0] > 1.5
    with_new[chosen & seen] = rank
    for _ in range(5):
        grown.learn_many(X, with_new)
        assert (np.diff(grown.model.edges) >= 0).all()
        assert (np.diff(grown.thresholds) >= 0).all()
    if seen:
        assert (grown.predict_many(X[chosen]) == rank).mean() > 0.5


def test_a_rank_outside_is_refused():
    for rank in (0, K + 2):
        with pytest.raises(ValueError, match=rf"rank {rank} is not in 1\.\.6"):
            PRankLearner(D, K).with_rank(rank)


@pytest.mark.parametrize("kind", [PerceptronLearner, MulticlassPALearner, AggregateLearner])
def test_only_sorted_thresholds_of_one_learner_get_more_ranks(kind):
    assert not hasattr(kind, "with_rank")
