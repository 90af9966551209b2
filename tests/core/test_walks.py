"""Whole streams: the walks against plain NumPy, and what must hold after any number of steps."""

import numpy as np
import pytest

import naive
from ordspan.learners import LinearLearner, MulticlassPALearner, PerceptronLearner, PRankLearner
from steps import VARIANTS, stream

LEARNERS = {
    **{v: lambda *shape, v=v: LinearLearner(*shape, v, 0.5) for v in VARIANTS},
    **{f"{v} sca": lambda *s, v=v: LinearLearner(*s, v, 0.5, solver="sca") for v in VARIANTS},
    "PRank": PRankLearner,
    "perceptron": PerceptronLearner,
    **{f"MC-{v}": lambda *shape, v=v: MulticlassPALearner(*shape, v, 0.5) for v in VARIANTS},
}
WITH_THRESHOLDS = [name for name in LEARNERS if name != "perceptron" and "MC-" not in name]


def twin(name, *rows, **options):
    rule, _, solver = name.partition(" ")
    return naive.learn_stream(*rows, rule, C=0.5, solver=solver or "exact", n_classes=5, **options)


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_walk_is_the_plain_numpy_stream(name, weighted):
    """Sample weights scale the step of each row."""
    rows = stream(300, 3, 5, scale=0.25)  # short rows, on which SCA-I settles
    weight = np.random.default_rng(3).integers(0, 5, 300) / 2 if weighted else None
    learner, expected = LEARNERS[name](3, 5), twin(name, *rows, sample_weight=weight)
    predicted = learner.learn_many(*rows, sample_weight=weight, predict=True)
    np.testing.assert_allclose(learner.weights, expected.weights, rtol=0, atol=1e-9)
    np.testing.assert_allclose(learner.thresholds, expected.thresholds, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(predicted, expected.predicted)
    assert learner.n_updates == expected.n_updates
    assert learner.n_trials == (np.count_nonzero(weight) if weighted else 300)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_learner_that_averages_predicts_by_the_mean_of_its_iterates(name):
    X, *labels = stream(300, 3, 5, seed=5)
    learner = LinearLearner(3, 5, name, 0.5, average=True)
    expected = twin(name, X, *labels, average=True)
    predicted = learner.learn_many(X, *labels, predict=True)
    np.testing.assert_array_equal(predicted, expected.predicted)
    scores = X @ expected.weights
    np.testing.assert_allclose(learner.latent(X), scores, rtol=1e-9, atol=1e-12)
    ranks = [naive.rank(expected.thresholds, score) for score in scores]
    np.testing.assert_array_equal(learner.predict_many(X), ranks)


def hard_stream(n_rows, n_features, n_classes, decades=(-6, 6)):
    """Rows whose lengths span many decades, some zero, with labels of every kind."""
    rng = np.random.default_rng(n_classes)
    X = rng.normal(size=(n_rows, n_features)) * 10.0 ** rng.uniform(*decades, size=(n_rows, 1))
    X[rng.random(n_rows) < 0.02] = 0
    lower = rng.integers(1, n_classes + 1, n_rows)
    upper = np.where(rng.random(n_rows) < 0.5, lower, rng.integers(lower, n_classes + 1))
    return X, lower, upper


@pytest.mark.parametrize("name", WITH_THRESHOLDS)
@pytest.mark.parametrize(("n_features", "n_classes"), [(1, 5), (7, 30), (20, 200)])
def test_thresholds_stay_sorted_to_the_bit(name, n_features, n_classes):
    # on long rows the printed SCA runs away to infinity
    decades = (-6, -1) if name in ("PA sca", "PA-II sca") else (-6, 6)
    X, lower, upper = hard_stream(20_000, n_features, n_classes, decades)
    weight = np.random.default_rng(0).exponential(size=20_000)
    learner = LEARNERS[name](n_features, n_classes)
    for start in range(0, 20_000, 50):  # look often: disorder may heal
        rows = slice(start, start + 50)
        weights = weight[rows] if start % 200 else None
        learner.learn_many(X[rows], lower[rows], upper[rows], sample_weight=weights)
        edges = learner.model.edges
        assert np.all(edges[:-1] <= edges[1:])
    assert np.isfinite(learner.thresholds).all()
