"""More features later: the learner that had them from the start and only saw zeros in them."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from ordspan.learners import (
    AggregateLearner,
    LinearLearner,
    MulticlassPALearner,
    PerceptronLearner,
    PRankLearner,
)

K = 5
NARROW, WIDE = 4, 9

LEARNERS = {
    f"{variant}{' balanced' * balanced}{' averaged' * average}": (
        lambda d, variant=variant, balanced=balanced, average=average: LinearLearner(
            d, K, variant, 0.3, average, balanced=balanced
        )
    )
    for variant, balanced, average in itertools.product(
        ("PA", "PA-I", "PA-II"), (False, True), (False, True)
    )
} | {
    "PA-I sca": lambda d: LinearLearner(d, K, "PA-I", 0.3, solver="sca"),
    "PA-I sca averaged": lambda d: LinearLearner(d, K, "PA-I", 0.3, True, solver="sca"),
    "PRank": lambda d: PRankLearner(d, K),
    "perceptron": lambda d: PerceptronLearner(d, K),
    "MC-PA": lambda d: MulticlassPALearner(d, K, "PA"),
    "MC-PA-I": lambda d: MulticlassPALearner(d, K, "PA-I", 0.3),
    "MC-PA-II": lambda d: MulticlassPALearner(d, K, "PA-II", 0.3),
    "OAP-BPM": lambda d: AggregateLearner(d, K, n_members=4, seed=1),
}
each_learner = pytest.mark.parametrize("name", LEARNERS)


@pytest.fixture(scope="module")
def data():
    """Rows whose last columns are zero in the first half, and labels of every kind."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, WIDE))
    X[rng.random(X.shape) < 0.3] = 0
    X[:150, NARROW:] = 0
    lower = rng.integers(1, K + 1, len(X))
    upper = np.where(rng.random(len(X)) < 0.6, lower, rng.integers(lower, K + 1))
    return X, lower, upper


def grown_and_full(name, data, as_matrix):
    """One learner that was widened half way, one that had all columns, and what they predicted."""
    X, lower, upper = data
    first, second = slice(0, 150), slice(150, 300)
    grown, full = LEARNERS[name](NARROW), LEARNERS[name](WIDE)
    grown.learn_many(as_matrix(X[first, :NARROW]), lower[first], upper[first])
    full.learn_many(as_matrix(X[first]), lower[first], upper[first])
    grown = grown.widened(WIDE)
    after_widening = grown.memory.copy(), full.memory.copy()
    rest = as_matrix(X[second]), lower[second], upper[second]
    ranks = [learner.learn_many(*rest, predict=True) for learner in (grown, full)]
    return grown, full, after_widening, ranks


@each_learner
def test_widened_is_as_if_the_features_had_been_there_to_the_bit(name, data):
    grown, full, (early_grown, early_full), ranks = grown_and_full(name, data, sp.csr_array)
    assert early_grown.tobytes() == early_full.tobytes()
    assert grown.memory.tobytes() == full.memory.tobytes()
    np.testing.assert_array_equal(*ranks)
    assert (grown.n_features, grown.weights.shape) == (WIDE, full.weights.shape)


@each_learner
def test_dense_rows_agree_up_to_the_order_of_summation(name, data):
    grown, full, _, ranks = grown_and_full(name, data, np.asarray)
    np.testing.assert_array_equal(*ranks)
    np.testing.assert_allclose(grown.memory, full.memory, rtol=1e-9, atol=1e-9)


@each_learner
def test_the_learner_that_was_widened_stays_as_it_was(name, data):
    X, lower, upper = data
    learner = LEARNERS[name](NARROW)
    learner.learn_many(X[:50, :NARROW], lower[:50], upper[:50])
    before = learner.memory.tobytes()
    wider = learner.widened(WIDE)
    wider.learn_many(X[50:], lower[50:], upper[50:])
    assert learner.memory.tobytes() == before
    assert learner.n_features == NARROW
    same = learner.widened(NARROW)
    assert same.memory.tobytes() == before
    assert not np.shares_memory(same.memory, learner.memory)


@each_learner
def test_narrower_is_refused(name):
    with pytest.raises(ValueError, match="4 features cannot be widened to 3"):
        LEARNERS[name](NARROW).widened(3)
