"""Balanced steps: the exact optimum of the stated problem, and the order of the thresholds."""

import numpy as np
import pytest
import quadprog
import scipy.sparse as sp

from ordspan.core.exact import EVERY_ROW, SELDOM
from ordspan.core.memory import LOG_COUNT, LOG_SUM, SCALE
from ordspan.learners import LinearLearner

VARIANTS = ("PA", "PA-I", "PA-II")


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
def test_each_step_satisfies_the_optimality_conditions_of_its_problem(variant):
    C = 0.3
    for seed in range(20):
        learner, X, lower, upper = trained(variant, seed=seed)
        for x, low, high in zip(X[:10], lower, upper, strict=False):
            w, theta = parts(learner)
            sq_norm = float(x @ x)
            v = scale_after(learner, sq_norm)
            learner.learn_one(x, int(low), int(high))
            new_w, new_theta = parts(learner)
            i = np.arange(1, 5)
            signs = np.where(i < low, 1.0, np.where(i >= high, -1.0, 0.0))
            if not (np.maximum(0, 1 + signs * (theta - w @ x)) * signs**2).any():
                np.testing.assert_array_equal(new_w, w)
                continue
            multipliers = signs * (theta - new_theta) / v
            pull = (signs * multipliers).sum()
            np.testing.assert_allclose(new_w - w, pull * x, rtol=1e-7, atol=1e-10)
            rest = signs**2 * (1 + signs * (new_theta - new_w @ x))  # shortfall after the step
            if variant == "PA":
                wanted = np.maximum(0.0, multipliers + rest / v)
            elif variant == "PA-I":
                wanted = np.clip(multipliers + rest / v, 0.0, C)
            else:
                wanted = np.maximum(0.0, 2 * C * rest)
            np.testing.assert_allclose(multipliers, signs**2 * wanted, rtol=1e-7, atol=1e-9)


def test_a_hard_step_is_the_projection_that_a_qp_solver_finds():
    for seed in range(40):
        learner, X, lower, upper = trained("PA", seed=seed)
        x, low, high = X[0], int(lower[0]), int(upper[0])
        w, theta = parts(learner)
        sq_norm = float(x @ x)
        v = scale_after(learner, sq_norm)
        # unknowns: step along x in units of its length, threshold moves in units of sqrt v
        rows = [(i, 1.0) for i in range(low - 1)] + [(i, -1.0) for i in range(high - 1, 4)]
        A = np.zeros((5, len(rows)))
        b = np.zeros(len(rows))
        for k, (i, sign) in enumerate(rows):
            A[0, k] = sign * np.sqrt(sq_norm)
            A[1 + i, k] = -sign * np.sqrt(v)
            b[k] = 1 + sign * (theta[i] - w @ x)
        if not rows or b.max() <= 0:
            continue
        best = quadprog.solve_qp(np.eye(5), np.zeros(5), A, b)[0]
        learner.learn_one(x, low, high)
        new_w, new_theta = parts(learner)
        np.testing.assert_allclose(new_theta, theta + np.sqrt(v) * best[1:], atol=1e-8)
        step = best[0] / np.sqrt(sq_norm)
        np.testing.assert_allclose(new_w, w + step * x, atol=1e-8)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("average", [False, True])
def test_thresholds_stay_sorted_to_the_bit_and_rows_of_any_kind_agree(variant, average):
    X, lower, upper = stream(n=3000, n_classes=12)
    X[rng_rows(3000)] = 0.0

    def learned(rows):
        learner = LinearLearner(6, 12, variant, 0.3, average, balanced=True)
        ranks = learner.learn_many(rows, lower, upper, predict=True)
        assert (np.diff(learner.thresholds) >= 0).all()
        assert (np.diff(learner.model.edges) >= 0).all()
        return learner, ranks

    dense, ranks = learned(X)
    one = LinearLearner(6, 12, variant, 0.3, average, balanced=True)
    labels = zip(X, lower.tolist(), upper.tolist(), strict=True)
    assert [one.learn_one(x, low, high) for x, low, high in labels] == ranks.tolist()
    np.testing.assert_allclose(one.memory, dense.memory, rtol=1e-9, atol=1e-9)
    sparse, _ = learned(sp.csr_array(X))
    np.testing.assert_allclose(sparse.weights, dense.weights, rtol=1e-6, atol=1e-9)


def rng_rows(n):
    return np.random.default_rng(3).integers(n, size=20)


def test_the_average_of_balanced_steps_is_the_mean_of_the_iterates():
    X, lower, upper = stream()
    learner = LinearLearner(6, 5, "PA-I", 0.3, True, balanced=True)
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
