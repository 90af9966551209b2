"""The learner in dual form: its slow twin, the optimum in feature space, and the budget.

test_linear.py holds what it shares with the other learners.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import pairwise_kernels

import naive
from ordspan.learners import KernelLearner
from steps import VARIANTS, by_quadprog

K, D = 5, 3
KERNELS = {
    "linear": {},
    "rbf": {"gamma": 0.4},
    "poly": {"gamma": 0.4, "degree": 3, "coef0": 1.0},
    "sigmoid": {"gamma": 0.4, "coef0": 1.0},
}
each_variant = pytest.mark.parametrize("variant", VARIANTS)
averaged_or_not = pytest.mark.parametrize("average", [False, True])


def gram(name, A, B):
    """Values by scikit-learn."""
    return pairwise_kernels(A, B, metric=name, **KERNELS[name])


RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, D))
X[RNG.random(X.shape) < 0.2] = 0.0
X[50:55] = 0.0, 0.5, 1.0  # the same row again and again
LOWER = RNG.integers(1, K + 1, len(X))
UPPER = np.where(RNG.random(len(X)) < 0.6, LOWER, RNG.integers(LOWER, K + 1))


def make(kernel="rbf", variant="PA-I", average=True, **options):
    return KernelLearner(D, K, variant, 0.3, average, kernel=kernel, **(KERNELS[kernel] | options))


@pytest.mark.parametrize("degree", [1, 3, 2.5])
def test_powers_are_scikit_learns(degree):
    rng = np.random.default_rng(1)
    asked, constants = rng.normal(size=(20, D)), {"degree": degree, "gamma": 0.4, "coef0": 40.0}
    learner = make("poly", **constants)
    learner.learn_many(rng.normal(size=(70, D)), rng.integers(1, K + 1, 70))
    values = pairwise_kernels(asked, learner.support_vectors, metric="poly", **constants)
    size = np.abs(values) @ np.abs(learner.dual_coef)
    assert np.abs(learner.latent(asked) - values @ learner.dual_coef).max() <= 1e-11 * size.max()


def test_the_exponential_is_right_to_the_last_digits_and_one_at_zero():
    learner = KernelLearner(1, 2, "PA-I", 0.5, gamma=0.7)
    learner.learn_many([[0.0]], [1])  # one vector, at zero, with the coefficient -1/2
    lengths = np.sqrt([0.0, 708.0, 709.0, *np.random.default_rng(0).gamma(1, 50, 9979)])
    expected = np.exp(np.maximum(-0.7 * lengths**2, -708.0))
    np.testing.assert_allclose(learner.latent(lengths[:, None]), -0.5 * expected, rtol=4e-16)
    assert learner.latent([[0.0]]) == [-0.5]
    assert learner.latent([[1e9]])[0] == pytest.approx(0, abs=1e-300)


@each_variant
@averaged_or_not
@pytest.mark.parametrize("name", KERNELS)
def test_the_compiled_walk_is_its_slow_twin(name, variant, average):
    # without the repeated rows, which PA puts on a threshold: rounding decides their rank
    once = np.delete(np.arange(150), slice(51, 55))
    rows, lower, upper = X[once], LOWER[once], UPPER[once]
    asked = np.random.default_rng(2).normal(size=(30, D))
    weight = np.arange(len(rows)) % 4 / 2
    settings = variant, 0.3 * weight, average, K
    values = gram(name, rows, rows)
    shown = values, np.eye(len(rows)), np.diag(values)
    expected = naive.learn_thresholds(*shown, lower, upper, *settings)
    learner = make(name, variant, average)
    ranks = learner.learn_many(rows, lower, upper, sample_weight=weight, predict=True)
    np.testing.assert_array_equal(ranks, expected.predicted)
    scores = gram(name, asked, rows) @ expected.weights
    np.testing.assert_allclose(learner.latent(asked), scores, rtol=0, atol=1e-8)
    np.testing.assert_allclose(learner.thresholds, expected.thresholds, rtol=0, atol=1e-9)
    is_open = (lower == 1) & (upper == K)
    counts = np.count_nonzero(weight * ~is_open), expected.n_updates
    assert (learner.n_trials, learner.n_updates) == counts
    if name == "linear":
        weights = expected.weights @ rows
        np.testing.assert_allclose(learner.weights, weights, rtol=0, atol=1e-9)


@each_variant
@pytest.mark.parametrize("name", ["rbf", "poly"])
def test_each_step_is_the_optimum_of_the_quadratic_program_in_feature_space(name, variant):
    learner = make(name, variant, average=False)
    for i in range(60):
        before, theta, new = learner.latent(X), learner.thresholds, learner.thresholds
        values, low, high = gram(name, X, X[i : i + 1])[:, 0], int(LOWER[i]), int(UPPER[i])
        if low > 1 or high < K:
            limits = naive.softness_and_cap(variant, 0.3)
            new = by_quadprog(theta, before[i], values[i], low, high, *limits)
        learner.learn_one(X[i], low, high)
        np.testing.assert_allclose(learner.thresholds, new, rtol=0, atol=1e-9)
        pull = (theta - new).sum()
        np.testing.assert_allclose(learner.latent(X), before + pull * values, rtol=0, atol=1e-9)


def test_only_rows_with_a_coefficient_are_kept_and_each_once():
    for average in (False, True):
        learner = make(average=average)
        for _ in range(3):
            learner.learn_many(X, LOWER, UPPER)
        assert learner.dual_coef.all()
        assert len(np.unique(learner.support_vectors, axis=0)) == learner.n_support < len(X)


def test_a_coefficient_that_becomes_zero_is_forgotten():
    learner = KernelLearner(1, 2, "PA-I", 0.25, kernel="linear")
    learner.learn_many([[1.0], [2.0]], [1, 1])
    assert learner.n_support == 2
    learner.learn_many([[1.0]], [2])  # C forward, C back
    np.testing.assert_array_equal(learner.support_vectors, [[2.0]])
    learner.support_vectors[:] = 9.0  # a copy: the learner keeps its own
    np.testing.assert_array_equal(learner.support_vectors, [[2.0]])


@averaged_or_not
@each_variant
def test_a_budget_holds_and_thresholds_stay_sorted_to_the_bit(average, variant):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(1500, D)) * 10.0 ** rng.uniform(-2, 1, size=(1500, 1))
    lower = rng.integers(1, 101, len(X))
    learner = KernelLearner(D, 100, variant, 0.3, average, budget=25)
    for start in range(0, len(X), 50):
        learner.learn_many(X[start : start + 50], lower[start : start + 50])
        assert learner.n_support <= 25
        assert np.all(np.diff(learner.thresholds) >= 0)
        assert np.all(np.diff(learner.model.edges) >= 0)
    assert learner.n_support == 25
    assert learner.vectors.nbytes + learner.dual.nbytes <= 8 * 64 * (D + 8)
    assert len(np.unique(learner.support_vectors, axis=0)) == 25


@each_variant
@averaged_or_not
def test_the_vector_that_goes_is_replaced_by_its_projection_at_the_least_cost(average, variant):
    # the row just learned is projected onto, so its score stays where the free step puts it: the
    # budget is optimal in Wang & Vucetic's sense
    bound, free = make("rbf", variant, average, budget=10), make("rbf", variant, average)
    n_dropped = 0
    for x, low, high in zip(X, LOWER, UPPER, strict=True):
        free.state = bound.state
        bound.learn_one(x, int(low), int(high))
        free.learn_one(x, int(low), int(high))
        np.testing.assert_allclose(bound.thresholds, free.thresholds, rtol=0, atol=1e-12)
        assert bound.latent([x]) == pytest.approx(free.latent([x]), abs=1e-9)
        if free.n_support <= 10:
            continue
        S, alpha = free.support_vectors, free.dual_coef
        values, newest = gram("rbf", S, S), 10
        close = values**2 / np.diag(values) - 2 * np.eye(11)
        costs = alpha[:newest] ** 2 * (1 - close.max(axis=1)[:newest])
        spare = np.argmin(costs)
        onto = [newest, np.argmax(close[spare, :newest])]
        expected = naive.project_out(values, alpha, spare, onto)
        asked = gram("rbf", X, S) @ expected
        np.testing.assert_allclose(bound.latent(X), asked, rtol=0, atol=1e-8)
        n_dropped += 1
    assert n_dropped > 50


@pytest.mark.parametrize(
    ("kernel", "options", "message"),
    [
        ("sigmoid", {"coef0": -9.0}, r"row 0: k\(x, x\) = -.* a larger coef0"),
        ("poly", {"coef0": -9.0, "gamma": 0.1}, r"row 0: k\(x, x\) = -"),
        ("poly", {"coef0": -9.0, "degree": 2.5, "gamma": 0.1}, r"k\(x, x\) = nan must be positive"),
        ("poly", {"gamma": 1e150}, r"row 0: k\(x, x\) = inf must be positive and below 1e\+200"),
    ],
)
def test_a_row_under_which_the_kernel_is_none_is_refused(kernel, options, message):
    learner = make(kernel, **options)
    before = learner.state
    for matrix in (X[10:], sp.csr_array(X[10:])):
        with pytest.raises(ValueError, match=message):
            learner.learn_many(matrix, LOWER[10:], UPPER[10:])
    with pytest.raises(ValueError, match=message):
        learner.learn_one(X[10], 1)
    assert learner.state.tobytes() == before.tobytes()


def test_a_row_of_zeros_has_no_direction_but_a_label():
    # k(x, x) = 0 is right there, and OrdinalPA moves the thresholds too
    for kernel in ("linear", "poly"):
        learner = KernelLearner(2, 3, "PA", kernel=kernel)
        learner.learn_one(np.zeros(2), 1)
        assert learner.n_support == 0
        assert learner.thresholds.tolist() == [1.0, 1.0]
