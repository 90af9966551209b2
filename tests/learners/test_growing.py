"""More features or one rank more, later: what was learned stays as it was."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from ordspan.learners import KernelLearner, MulticlassPALearner, PerceptronLearner, PRankLearner
from steps import VARIANTS, make_learner

K = 5
NARROW, WIDE = 4, 9
OPTIONS = ("", " balanced", " averaged", " balanced averaged")
WITH_RANKS = [*map("".join, itertools.product(VARIANTS, OPTIONS)), "PRank"]
OTHERS = ["PA-I sca", "PA-I sca averaged", "perceptron", *(f"MC-{v}" for v in VARIANTS)]


# the last columns are zero in the first half; the ranks follow the first column
RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, WIDE))
X[RNG.random(X.shape) < 0.3] = 0
X[:150, NARROW:] = 0
RANKS = np.clip(np.round(2 * X[:, 0] + 3 + 0.5 * RNG.normal(size=300)), 1, K).astype(int)
UPPER = np.where(RNG.random(300) < 0.6, RANKS, RNG.integers(RANKS, K + 1))


@pytest.mark.parametrize("name", [*WITH_RANKS, *OTHERS])
@pytest.mark.parametrize("form", [sp.csr_array, np.asarray])
def test_widened_is_as_if_the_features_had_been_there(name, form):
    """To the bit if the rows are sparse; the order of a dense sum depends on its length."""
    first, second = slice(0, 150), slice(150, 300)
    narrow, full = make_learner(name, NARROW, K), make_learner(name, WIDE, K)
    narrow.learn_many(form(X[first, :NARROW]), RANKS[first], UPPER[first])
    full.learn_many(form(X[first]), RANKS[first], UPPER[first])
    before, grown = narrow.state.tobytes(), narrow.with_features(WIDE)
    for _ in range(2):
        if form is sp.csr_array:
            assert grown.state.tobytes() == full.state.tobytes()
        np.testing.assert_allclose(grown.state, full.state, rtol=1e-9, atol=1e-9)
        rest = form(X[second]), RANKS[second], UPPER[second]
        ranks = [learner.learn_many(*rest, predict=True) for learner in (grown, full)]
        np.testing.assert_array_equal(*ranks)
    assert (grown.n_features, grown.weights.shape) == (WIDE, full.weights.shape)
    assert (narrow.n_features, narrow.state.tobytes()) == (NARROW, before)
    assert not np.shares_memory(narrow.with_features(NARROW).state, narrow.state)
    with pytest.raises(ValueError, match="4 features cannot continue with 3"):
        narrow.with_features(3)


@pytest.mark.parametrize("name", WITH_RANKS)
@pytest.mark.parametrize("rank", range(1, K + 2))
def test_the_other_ranks_keep_their_weights_thresholds_and_predictions(name, rank):
    learner = make_learner(name, WIDE, K)
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
            PRankLearner(NARROW, K).with_rank(rank)
    for kind in (PerceptronLearner, MulticlassPALearner, KernelLearner):
        with pytest.raises(TypeError, match=kind.__name__):
            kind(NARROW, K).with_rank(1)
    with pytest.raises(TypeError, match="KernelLearner keeps no weights by column"):
        KernelLearner(NARROW, K).with_features(WIDE)
