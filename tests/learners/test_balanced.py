"""Balanced steps: the exact optimum of the stated problem, and the order of the thresholds."""

import numpy as np
import pytest

from ordspan.core.exact import EVERY_ROW, SELDOM
from ordspan.core.state import LOG_COUNT, LOG_SUM, SCALE
from ordspan.learners import LinearLearner
from steps import VARIANTS, by_quadprog


def stream(n=400, d=6, n_classes=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-1, 1, size=d)
    lower = rng.integers(1, n_classes + 1, size=n)
    upper = np.minimum(n_classes, lower + rng.integers(0, 2, size=n))
    return X, lower, upper


def trained(variant="PA-I", average=False, seed=0, n=60):
    X, lower, upper = stream(seed=seed)
    learner = LinearLearner(6, 5, variant, 0.3, average, balanced=True)
    learner.learn_many(X[:n], lower[:n], upper[:n])
    return learner, X[n:], lower[n:], upper[n:]


def parts(learner):
    """Weights and thresholds as plain copies."""
    return learner.model.weights.copy(), learner.model.edges[1:-1].copy()


def scale_after(learner, sq_norm):
    """Geometric mean of the squared norms of violated trials, this one included."""
    total, count = learner.model.counters[[LOG_SUM, LOG_COUNT]]
    return np.exp((total + np.log(sq_norm)) / (count + 1))


@pytest.mark.parametrize("variant", VARIANTS)
def test_each_step_is_the_optimum_of_its_quadratic_program(variant):
    """1/2 |dw|^2 + |dtheta|^2 / (2 v) + the variant's loss: v takes the place of the 1 in the dual.

    Multipliers m move the weights by their sum and the thresholds by v m.
    """
    C, n_moved = 0.3, 0
    for seed in range(20):
        learner, X, lower, upper = trained(variant, seed=seed)
        for x, low, high in zip(X[:10], lower.tolist(), upper.tolist(), strict=False):
            (w, theta), sq_norm = parts(learner), float(x @ x)
            v = scale_after(learner, sq_norm)
            softness = v + 0.5 / C if variant == "PA-II" else v
            cap = C if variant == "PA-I" else np.inf
            solved = by_quadprog(theta, w @ x, sq_norm, low, high, softness, cap)
            learner.learn_one(x, low, high)
            new_w, new_theta = parts(learner)
            np.testing.assert_allclose(new_theta, theta + v * (solved - theta), rtol=0, atol=1e-9)
            np.testing.assert_allclose(new_w, w + (theta - solved).sum() * x, rtol=0, atol=1e-9)
            n_moved += not np.array_equal(new_theta, theta)
    assert n_moved > 50


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("balanced", [False, True])
def test_thresholds_stay_sorted_to_the_bit(variant, average, balanced):
    X, lower, upper = stream(n=3000, n_classes=40)
    X *= 10.0 ** np.random.default_rng(5).uniform(-3, 3, size=(3000, 1))
    X[::150] = 0.0
    learner = LinearLearner(6, 40, variant, 0.3, average, balanced=balanced)
    for start in range(0, 3000, 20):
        rows = slice(start, start + 20)
        learner.learn_many(X[rows], lower[rows], upper[rows])
        assert (np.diff(learner.thresholds) >= 0).all()
        assert (np.diff(learner.model.edges) >= 0).all()


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("balanced", [False, True])
def test_the_average_is_the_mean_of_the_iterates(variant, balanced):
    X, lower, upper = stream()
    learner = LinearLearner(6, 5, variant, 0.3, True, balanced=balanced)
    weights, thresholds = [], []
    for x, low, high in zip(X, lower.tolist(), upper.tolist(), strict=True):
        learner.learn_one(x, low, high)
        for kept, part in zip((weights, thresholds), parts(learner), strict=True):
            kept.append(part)
    np.testing.assert_allclose(learner.weights, np.mean(weights, axis=0), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(learner.thresholds, np.mean(thresholds, axis=0), rtol=1e-9)


def test_the_scale_is_the_geometric_mean_of_corrected_rows_later_of_one_in_sixteen():
    X, lower, upper = stream(n=3000)
    X[5] = 0.0  # has no length to count
    learner, logs = LinearLearner(6, 5, "PA-I", 0.3, balanced=True), []
    for x, low, high in zip(X, lower.tolist(), upper.tolist(), strict=True):
        number = learner.n_updates
        learner.learn_one(x, low, high)
        if x.any() and learner.n_updates > number and (number < EVERY_ROW or number % SELDOM == 0):
            logs.append(np.log(x @ x))
        assert learner.model.counters[SCALE] == pytest.approx(np.exp(np.mean(logs or [0.0])))
    assert EVERY_ROW < len(logs) < learner.n_updates / 2


def test_balanced_steps_do_not_depend_on_the_unit_of_the_features():
    """Scores, thresholds and predictions are the same when all features are measured in cm."""
    X, lower, upper = stream()
    predicted = [
        LinearLearner(6, 5, "PA", balanced=True).learn_many(unit * X, lower, upper, predict=True)
        for unit in (1.0, 100.0)
    ]
    np.testing.assert_array_equal(*predicted)
