"""One rank more, later: what was learned stays as it was. test_river.py adds features."""

import itertools

import numpy as np
import pytest

from ordspan.learners import KernelLearner, MulticlassPALearner, PerceptronLearner, PRankLearner
from steps import VARIANTS, make_learner

K, D = 5, 9
OPTIONS = ("", " balanced", " averaged", " balanced averaged")
WITH_RANKS = [*map("".join, itertools.product(VARIANTS, OPTIONS)), "PRank"]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, D))
RANKS = np.clip(np.round(2 * X[:, 0] + 3 + 0.5 * RNG.normal(size=300)), 1, K).astype(int)


@pytest.mark.parametrize("name", WITH_RANKS)
@pytest.mark.parametrize("rank", range(1, K + 2))
def test_the_other_ranks_keep_their_weights_thresholds_and_predictions(name, rank):
    learner = make_learner(name, D, K)
    learner.learn_many(X, RANKS)
    before, old = learner.state.tobytes(), learner.predict_many(X)
    grown = learner.with_rank(rank)
    assert grown.n_classes == K + 1
    np.testing.assert_array_equal(grown.weights, learner.weights)
    new = min(rank, K) - 1  # where among the thresholds
    np.testing.assert_array_equal(np.delete(grown.thresholds, new), learner.thresholds)
    if 1 < rank <= K:
        np.testing.assert_array_equal(grown.predict_many(X), old + (old >= rank))
    else:  # beyond the outermost it starts a margin away
        outer, side = (0, -1.0) if rank == 1 else (-1, 1.0)
        assert grown.thresholds[outer] == pytest.approx(learner.thresholds[outer] + side, rel=1e-12)
    assert learner.state.tobytes() == before
    with_new = RANKS + (rank <= RANKS)
    chosen = X[:, 0] < -1.5 if rank == 1 else X[:, 0] > 1.5
    if rank in (1, K + 1):
        with_new[chosen] = rank
    for _ in range(5):
        grown.learn_many(X, with_new)
        assert (np.diff(grown.model.edges) >= 0).all()
        assert (np.diff(grown.thresholds) >= 0).all()
    if rank in (1, K + 1):
        assert (grown.predict_many(X[chosen]) == rank).mean() > 0.5


def test_what_cannot_grow_is_refused():
    for rank in (0, K + 2):
        with pytest.raises(ValueError, match=rf"rank {rank} is not in 1\.\.6"):
            PRankLearner(D, K).with_rank(rank)
    for kind in (PerceptronLearner, MulticlassPALearner, KernelLearner):
        with pytest.raises(TypeError, match=kind.__name__):
            kind(D, K).with_rank(1)
    with pytest.raises(TypeError, match="KernelLearner keeps no weights by column"):
        KernelLearner(D, K).with_features(D + 1)
