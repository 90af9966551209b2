"""Whole streams: the walks against plain NumPy, and what must hold after any number of steps."""

import numpy as np
import pytest

import naive
from ordspan.core import exact, state
from ordspan.learners import LinearLearner
from steps import MULTICLASS, SEARCHED, VARIANTS, by_quadprog, make_learner, stream

WITH_THRESHOLDS = [*VARIANTS, *(f"{v} sca" for v in SEARCHED), "PRank"]
BALANCED = [f"{v} averaged balanced" for v in VARIANTS]
LEARNERS = [*WITH_THRESHOLDS, "perceptron", *(f"MC-{v}" for v in MULTICLASS)]


def twin(name, *rows, **options):
    rule, _, solver = name.partition(" ")
    return naive.learn_stream(*rows, rule, C=0.5, solver=solver or "exact", n_classes=5, **options)


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_walk_is_the_plain_numpy_stream(name, weighted):
    """Sample weights scale the step of each row."""
    rows = stream(300, 3, 5, scale=0.25)  # short rows, on which SCA-I settles
    weight = np.random.default_rng(3).integers(0, 5, 300) / 2 if weighted else None
    learner, expected = make_learner(name, 3, 5, C=0.5), twin(name, *rows, sample_weight=weight)
    predicted = learner.learn_many(*rows, sample_weight=weight, predict=True)
    np.testing.assert_allclose(learner.weights, expected.weights, rtol=0, atol=1e-9)
    np.testing.assert_allclose(learner.thresholds, expected.thresholds, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(predicted, expected.predicted)
    assert learner.n_updates == expected.n_updates
    is_open = (rows[1] == 1) & (rows[2] == 5)
    assert learner.n_trials == np.count_nonzero(~is_open & (weight > 0 if weighted else True))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("balanced", [False, True])
def test_a_learner_that_averages_predicts_by_the_mean_of_its_iterates(variant, balanced):
    X, lower, upper = stream(300, 3, 5, seed=5)
    learner = LinearLearner(3, 5, variant, 0.5, average=True, balanced=balanced)
    iterates = []
    for x, low, high in zip(X, lower.tolist(), upper.tolist(), strict=True):
        rank = learner.learn_one(x, low, high)
        weights, thresholds = naive.mean(iterates) if iterates else (np.zeros(3), np.zeros(4))
        assert rank == naive.rank(thresholds, weights @ x)
        if (low, high) == (1, 5):
            continue
        iterates.append((learner.model.weights.copy(), learner.model.edges[1:-1].copy()))
    weights, thresholds = naive.mean(iterates)
    np.testing.assert_allclose(learner.weights, weights, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(learner.thresholds, thresholds, rtol=1e-9, atol=1e-12)
    ranks = [naive.rank(thresholds, score) for score in X @ weights]
    np.testing.assert_array_equal(learner.predict_many(X), ranks)


def hard_stream(n_rows, n_features, n_classes, decades=(-6, 6)):
    """Rows whose lengths span many decades, some zero, with labels of every kind."""
    rng = np.random.default_rng(n_classes)
    X = rng.normal(size=(n_rows, n_features)) * 10.0 ** rng.uniform(*decades, size=(n_rows, 1))
    X[rng.random(n_rows) < 0.02] = 0
    lower = rng.integers(1, n_classes + 1, n_rows)
    upper = np.where(rng.random(n_rows) < 0.5, lower, rng.integers(lower, n_classes + 1))
    return X, lower, upper


@pytest.mark.parametrize("name", [*WITH_THRESHOLDS, *BALANCED])
@pytest.mark.parametrize(("n_features", "n_classes"), [(1, 5), (7, 30), (20, 200)])
def test_thresholds_stay_sorted_to_the_bit(name, n_features, n_classes):
    # on long rows the printed SCA runs away to infinity
    decades = (-6, -1) if name in ("PA sca", "PA-II sca") else (-6, 6)
    X, lower, upper = hard_stream(20_000, n_features, n_classes, decades)
    weight = np.random.default_rng(0).exponential(size=20_000)
    learner = make_learner(name, n_features, n_classes, C=0.5)
    for start in range(0, 20_000, 50):  # look often: disorder may heal
        rows = slice(start, start + 50)
        weights = weight[rows] if start % 200 else None
        learner.learn_many(X[rows], lower[rows], upper[rows], sample_weight=weights)
        for edges in (learner.model.edges, learner.thresholds):
            assert np.all(edges[:-1] <= edges[1:])
    assert np.isfinite(learner.thresholds).all()


@pytest.mark.parametrize("variant", VARIANTS)
def test_each_balanced_step_is_the_optimum_of_its_quadratic_program(variant):
    """1/2 |dw|^2 + |dtheta|^2 / (2 v) + the variant's loss: v takes the place of the 1 in the dual.

    Multipliers m move the weights by their sum and the thresholds by v m. v is the geometric mean
    of the squared norms of corrected rows, this one included; later of one in sixteen.
    """
    C, logs = 0.3, []
    X, lower, upper = stream(3000, 6, 5)
    X *= 10.0 ** np.random.default_rng(0).uniform(-1, 1, size=6)
    X[5] = 0.0  # has no length to count
    learner = LinearLearner(6, 5, variant, C, balanced=True)
    for x, low, high in zip(X, lower.tolist(), upper.tolist(), strict=True):
        w, theta = learner.model.weights.copy(), learner.model.edges[1:-1].copy()
        number = learner.n_updates
        learner.learn_one(x, low, high)
        if learner.n_updates == number:
            continue
        if x.any() and (number < exact.EVERY_ROW or number % exact.SELDOM == 0):
            logs.append(np.log(x @ x))
        v = np.exp(np.mean(logs or [0.0]))
        assert learner.model.counters[state.SCALE] == pytest.approx(v)
        softness, cap = naive.softness_and_cap(variant, C)
        solved = by_quadprog(theta, w @ x, x @ x, low, high, softness - 1 + v, cap)
        new = theta + v * (solved - theta)
        np.testing.assert_allclose(learner.model.edges[1:-1], new, rtol=0, atol=1e-9 * v)
        moved = w + (theta - solved).sum() * x
        np.testing.assert_allclose(learner.model.weights, moved, rtol=0, atol=1e-9)
    assert exact.EVERY_ROW < len(logs) < learner.n_updates / 2
