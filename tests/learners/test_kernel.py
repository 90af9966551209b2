"""The learner in dual form: the linear learner by another way, the optimum in feature space."""

import numpy as np
import pytest
import quadprog
import scipy.sparse as sp
from sklearn.metrics.pairwise import pairwise_kernels

import naive
from ordspan.core.kernels import RBF, Kernel, kernel_norm, kernel_values
from ordspan.core.rbf import LANES
from ordspan.core.vectors import N_PARTS
from ordspan.learners import KernelLearner, LinearLearner, rows
from ordspan.learners.checks import RowValueError
from ordspan.learners.kernel_values import KERNELS

K, D = 5, 3
VARIANTS = ("PA", "PA-I", "PA-II")
CONSTANTS = {"gamma": 0.4, "degree": 3, "coef0": 1.0}
USED = {
    "linear": (),
    "rbf": ("gamma",),
    "poly": ("gamma", "degree", "coef0"),
    "sigmoid": ("gamma", "coef0"),
}
each_variant = pytest.mark.parametrize("variant", VARIANTS)
averaged_or_not = pytest.mark.parametrize("average", [False, True])


def gram(name, A, B):
    """Values by scikit-learn."""
    return pairwise_kernels(A, B, metric=name, **{key: CONSTANTS[key] for key in USED[name]})


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, D))
    X[rng.random(X.shape) < 0.2] = 0.0
    X[50:55] = 0.0, 0.5, 1.0  # the same row again and again
    lower = rng.integers(1, K + 1, len(X))
    upper = np.where(rng.random(len(X)) < 0.6, lower, rng.integers(lower, K + 1))
    return X, lower, upper


def make(kernel="rbf", variant="PA-I", average=True, **options):
    n_features = options.pop("n_features", D)
    settings = CONSTANTS | options
    return KernelLearner(n_features, K, variant, 0.3, average, kernel=kernel, **settings)


def assert_same_ranker(one, other, X, atol=1e-9):
    np.testing.assert_allclose(one.latent(X), other.latent(X), rtol=0, atol=atol)
    np.testing.assert_allclose(one.thresholds, other.thresholds, rtol=0, atol=atol)


# -- values --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("degree", [1, 3, 2.5])
def test_kernel_values_are_those_of_scikit_learn(name, degree):
    rng = np.random.default_rng(1)
    X, Z = rng.normal(size=(70, D)), rng.normal(size=(20, D))
    options = CONSTANTS | {"degree": degree, "coef0": 40.0 if name == "poly" else 1.0}
    used = {key: options[key] for key in USED[name]}
    expected = pairwise_kernels(Z, X, metric=name, **used)
    kernel = Kernel(KERNELS[name], 0.4, float(degree), options["coef0"])
    learner = KernelLearner(D, K, "PA", kernel=name, **options)
    learner.learn_many(X, rng.integers(1, K + 1, 70))
    n = learner.n_support
    kept = [np.flatnonzero((s == X).all(axis=1))[0] for s in learner.support_vectors]
    values = np.empty(learner.support.dual.shape[1])
    for z, row in zip(Z, expected[:, kept], strict=True):
        kernel_values(kernel, learner.support.vectors, n, z, values)
        np.testing.assert_allclose(values[:n], row, rtol=1e-11, atol=1e-300)
        norm = pairwise_kernels(z[None], z[None], metric=name, **used)[0, 0]
        assert kernel_norm(kernel, z @ z) == pytest.approx(norm, rel=1e-12)


def test_the_exponential_is_right_to_the_last_digits_and_one_at_zero():
    lengths = np.sqrt(
        np.concatenate(
            [[0.0, 708.0, 709.0, 1e9, 1e300], np.random.default_rng(0).gamma(1, 50, 9979)]
        )
    )
    blocks = lengths.reshape(-1, 1, LANES)  # vectors of one feature
    out = np.empty_like(lengths)
    kernel = Kernel(RBF, 0.7, 3.0, 0.0)
    kernel_values(kernel, blocks, out.size, np.zeros(1), out)
    expected = np.exp(np.maximum(-0.7 * lengths**2, -708.0))
    np.testing.assert_allclose(out, expected, rtol=4e-16)
    assert out[0] == 1.0


# -- the same ranker by other ways ---------------------------------------------------------------


@each_variant
@averaged_or_not
def test_linear_kernel_is_the_linear_learner(data, variant, average):
    X, lower, upper = data
    dual = make("linear", variant, average)
    primal = LinearLearner(D, K, variant, 0.3, average)
    options = {"sample_weight": np.arange(len(X)) % 3 / 2, "predict": True}
    for _ in range(2):
        ranks = [learner.learn_many(X, lower, upper, **options) for learner in (dual, primal)]
        np.testing.assert_array_equal(*ranks)
        assert_same_ranker(dual, primal, X)
        np.testing.assert_allclose(dual.weights, primal.weights, rtol=0, atol=1e-9)
    assert (dual.n_trials, dual.n_updates) == (primal.n_trials, primal.n_updates)
    one_by_one = [dual.predict_one(x) for x in X]
    np.testing.assert_array_equal(one_by_one, primal.predict_many(X))


@each_variant
@averaged_or_not
@pytest.mark.parametrize("name", KERNELS)
def test_the_compiled_walk_is_its_slow_twin(data, name, variant, average):
    # without the repeated rows, which PA puts on a threshold: rounding decides their rank
    X, lower, upper = (np.delete(part, slice(51, 55), axis=0) for part in data)
    asked = np.random.default_rng(2).normal(size=(30, D))
    strengths = np.full(len(X), 0.3)
    strengths[::7] = 0.0
    expected = naive.learn_kernel(
        gram(name, X, X), lower, upper, variant, strengths, average, K, gram(name, asked, X)
    )
    learner = make(name, variant, average)
    ranks = learner.learn_many(X, lower, upper, sample_weight=strengths / 0.3, predict=True)
    np.testing.assert_array_equal(ranks, expected.predicted)
    np.testing.assert_allclose(learner.latent(asked), expected.scores, rtol=0, atol=1e-8)
    np.testing.assert_allclose(learner.thresholds, expected.thresholds, rtol=0, atol=1e-9)


LAYOUTS = {
    "Fortran order": np.asfortranarray,
    "negative strides": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "list of lists": lambda X: X.tolist(),
    "CSR": sp.csr_array,
    "CSC": sp.csc_array,
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_layout_of_the_rows_does_not_matter(monkeypatch, data, layout):
    X, lower, upper = data
    expected, learner = make(budget=30), make(budget=30)
    ranks = expected.learn_many(X, lower, upper, predict=True)
    monkeypatch.setattr(rows, "COPY_BYTES", 1000)  # many blocks
    again = learner.learn_many(LAYOUTS[layout](X), lower, upper, predict=True)
    np.testing.assert_array_equal(ranks, again)
    np.testing.assert_allclose(learner.memory, expected.memory, rtol=1e-9, atol=1e-9)
    latent = learner.latent(LAYOUTS[layout](X))
    np.testing.assert_allclose(latent, expected.latent(X), rtol=0, atol=1e-9)


def test_rows_in_float32_one_by_one_or_in_portions_are_all_at_once(data):
    X, lower, upper = data
    X = X.astype(np.float32)
    whole, parts, single = (make(budget=30) for _ in range(3))
    ranks = whole.learn_many(X.astype(np.float64), lower, upper, predict=True)
    for part in (slice(0, 1), slice(1, 90), slice(90, 90), slice(90, 150)):
        parts.learn_many(X[part], lower[part], upper[part])
    one_by_one = []
    for x, low, high in zip(X, lower, upper, strict=True):
        one_by_one.append(single.predict_one(x))
        assert single.learn_one(x, int(low), int(high)) == one_by_one[-1]
    np.testing.assert_array_equal(one_by_one, ranks)
    for other in (parts, single):
        np.testing.assert_allclose(other.memory, whole.memory, rtol=1e-9, atol=1e-9)


def test_one_sparse_example_at_a_time_is_the_dense_one(data):
    X, lower, upper = data
    dense, sparse = make(), make()
    for x, low, high in zip(X[:60], lower.tolist(), upper.tolist(), strict=False):
        columns = np.flatnonzero(x)
        foreseen = sparse.predict_sparse(x[columns], columns)
        rank = sparse.learn_sparse(x[columns], columns, low, high)
        assert rank == foreseen == dense.learn_one(x, low, high)
    np.testing.assert_allclose(sparse.memory, dense.memory, rtol=1e-9, atol=1e-9)
    with pytest.raises(ValueError, match=r"columns in 0\.\.2, got \[3\]"):
        sparse.learn_sparse(np.ones(1), np.array([3]), 1, 1)
    with pytest.raises(RowValueError, match="NaN"):
        sparse.learn_sparse(np.array([np.nan]), np.array([1]), 1, 1)


def test_a_restored_memory_goes_on_to_the_bit(data):
    X, lower, upper = data
    learner = make(budget=40)
    learner.learn_many(X, lower, upper)
    heir = make(budget=40).restore(learner.memory)
    for one in (learner, heir):
        one.learn_many(X[::-1], lower[::-1], upper[::-1])
    assert learner.memory.tobytes() == heir.memory.tobytes()
    with pytest.raises(ValueError, match="another kind"):
        make(variant="PA").restore(learner.memory)


# -- the optimum in feature space ----------------------------------------------------------------


def features(X):
    """All monomials of (x.z + 1)^2, with the roots of its coefficients."""
    first = np.sqrt(2) * X
    squares = X**2
    pairs = np.sqrt(2) * np.column_stack([X[:, 0] * X[:, 1], X[:, 0] * X[:, 2], X[:, 1] * X[:, 2]])
    return np.column_stack([np.ones(len(X)), first, squares, pairs])


def by_quadprog(w, theta, z, lower, upper, variant, C):
    """The step of a variant in the primal, slack variables and all, by a QP solver."""
    below, above = np.arange(1, lower), np.arange(upper, K)
    n, d = below.size + above.size, z.size
    with_slack = variant != "PA"
    size = d + theta.size + n * with_slack
    hessian, linear = np.eye(size), np.concatenate([w, theta, np.zeros(n * with_slack)])
    constraints = np.zeros((size, n))
    for column, i in enumerate([*below, *above]):
        side = 1.0 if i < lower else -1.0
        constraints[:d, column], constraints[d + i - 1, column] = side * z, -side
        if with_slack:
            constraints[d + theta.size + column, column] = 1.0
    bounds = np.ones(n)
    if variant == "PA-I":
        slack = slice(d + theta.size, size)
        hessian[slack, slack] = 1e-9 * np.eye(n)  # the solver wants a definite matrix
        linear[slack] = -C
        constraints = np.column_stack([constraints, np.eye(size)[:, slack]])
        bounds = np.concatenate([bounds, np.zeros(n)])
    elif with_slack:
        hessian[d + theta.size :, d + theta.size :] *= 2 * C
    solved = quadprog.solve_qp(hessian, linear, constraints, bounds)[0]
    return solved[:d], solved[d : d + theta.size]


@each_variant
def test_each_step_is_the_optimum_of_the_quadratic_program_in_feature_space(data, variant):
    X, lower, upper = data
    Z = features(X)
    np.testing.assert_allclose(Z @ Z.T, (X @ X.T + 1) ** 2, atol=1e-12)
    options = {"gamma": 1.0, "degree": 2, "coef0": 1.0}
    learner = make("poly", variant, False, **options)
    for x, z, low, high in zip(X[:60], Z, lower, upper, strict=False):
        w, theta = learner.dual_coef @ features(learner.support_vectors), learner.thresholds
        learner.learn_one(x, int(low), int(high))
        if low > 1 or high < K:
            w, theta = by_quadprog(w, theta, z, low, high, variant, 0.3)
        after = learner.dual_coef @ features(learner.support_vectors)
        tolerance = 1e-6 if variant == "PA-I" else 1e-9
        np.testing.assert_allclose(after, w, rtol=0, atol=tolerance)
        np.testing.assert_allclose(learner.thresholds, theta, rtol=0, atol=tolerance)


# -- support vectors and the budget --------------------------------------------------------------


def test_only_rows_with_a_coefficient_are_kept_and_each_once(data):
    X, lower, upper = data
    for average in (False, True):
        learner = make(average=average)
        for _ in range(3):
            learner.learn_many(X, lower, upper)
        assert learner.dual_coef.all()
        assert len(np.unique(learner.support_vectors, axis=0)) == learner.n_support < len(X)
    easy = make()
    easy.learn_many(X, np.ones(150, dtype=int), np.full(150, K))
    assert easy.n_support == 0
    assert easy.support_vectors.shape == (0, D)
    assert not easy.latent(X).any()


def test_a_coefficient_that_becomes_zero_is_forgotten():
    learner = KernelLearner(1, 2, "PA-I", 0.25, kernel="linear")
    learner.learn_many([[1.0], [2.0]], [1, 1])
    assert learner.n_support == 2
    learner.learn_many([[1.0]], [2])  # C forward, C back
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
    assert learner.support.vectors.nbytes + learner.support.dual.nbytes <= 8 * (D + N_PARTS) * 64
    assert len(np.unique(learner.support_vectors, axis=0)) == 25


@averaged_or_not
def test_a_budget_that_is_never_reached_changes_nothing(data, average):
    X, lower, upper = data
    free, bound = make(average=average), make(average=average, budget=150)
    for learner in (free, bound):
        learner.learn_many(X, lower, upper)
    np.testing.assert_allclose(free.dual_coef, bound.dual_coef, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(free.support_vectors, bound.support_vectors)


@each_variant
def test_the_row_just_learned_stays_where_the_free_step_puts_it(data, variant):
    # the budget is optimal in Wang & Vucetic's sense because of this: see the next test
    X, lower, upper = data
    bound = make(variant=variant, average=False, budget=10)
    free = make(variant=variant, average=False)
    for x, low, high in zip(X, lower, upper, strict=True):
        free.memory = bound.memory
        bound.learn_one(x, int(low), int(high))
        free.learn_one(x, int(low), int(high))
        assert bound.latent([x]) == pytest.approx(free.latent([x]), abs=1e-9)
        np.testing.assert_allclose(bound.thresholds, free.thresholds, rtol=0, atol=1e-12)


@averaged_or_not
def test_the_vector_that_goes_is_replaced_by_its_projection_at_the_least_cost(data, average):
    X, lower, upper = data
    bound, free = make(average=average, budget=10), make(average=average)
    n_dropped = 0
    for x, low, high in zip(X, lower, upper, strict=True):
        free.memory = bound.memory
        bound.learn_one(x, int(low), int(high))
        free.learn_one(x, int(low), int(high))
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


@averaged_or_not
def test_a_budget_ends_and_stays_finite_on_very_long_and_very_short_rows(average):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(300, D)) * 10.0 ** rng.uniform(-90, 90, size=(300, 1))
    learner = KernelLearner(D, K, "PA-I", 0.3, average, kernel="linear", budget=5)
    for x, rank in zip(X, rng.integers(1, K + 1, len(X)), strict=True):
        try:
            learner.learn_one(x, int(rank))
        except RowValueError:  # its score overflows, and it changes nothing
            continue
        assert learner.n_support <= 5
    assert np.isfinite(learner.thresholds).all()


def test_a_smaller_budget_counts_from_the_next_update_on(data):
    X, lower, upper = data
    wide = make(budget=60)
    wide.learn_many(X, lower, upper)
    wide.adopt_settings(make(budget=10))
    wide.learn_many(X + 0.01, lower, upper)
    assert wide.n_support == 10
    assert np.isfinite(wide.latent(X)).all()


def test_learning_goes_on_with_the_same_kernel_only(data):
    X, lower, upper = data
    learner = make()
    learner.learn_many(X, lower, upper)
    before = learner.memory
    for other in (make("poly"), make(gamma=0.5), make(average=False), LinearLearner(D, K)):
        with pytest.raises(ValueError, match="kernel, gamma, degree and coef0 cannot change"):
            learner.adopt_settings(other)
    assert learner.memory.tobytes() == before.tobytes()


# -- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "options", "message"),
    [
        ("sigmoid", {"coef0": -9.0}, r"row 0: k\(x, x\) = -.* a larger coef0"),
        ("poly", {"coef0": -9.0, "gamma": 0.1}, r"row 0: k\(x, x\) = -"),
        ("poly", {"coef0": -9.0, "degree": 2.5, "gamma": 0.1}, r"k\(x, x\) = nan is not a finite"),
        ("poly", {"gamma": 1e150}, r"row 0: k\(x, x\) = inf is not a finite number below 1e\+200"),
    ],
)
def test_a_row_under_which_the_kernel_is_none_is_refused(data, kernel, options, message):
    X, lower, upper = data
    learner = make(kernel, **options)
    before = learner.memory
    for matrix in (X[10:], sp.csr_array(X[10:])):
        with pytest.raises(RowValueError, match=message):
            learner.learn_many(matrix, lower[10:], upper[10:])
    with pytest.raises(RowValueError, match=message):
        learner.learn_one(X[10], 1)
    assert learner.memory.tobytes() == before.tobytes()


def test_a_row_of_zeros_has_no_direction_but_a_label():
    # k(x, x) = 0 is right there, and OrdinalPA moves the thresholds too
    for kernel in ("linear", "poly"):
        learner = KernelLearner(2, 3, "PA", kernel=kernel)
        learner.learn_one(np.zeros(2), 1)
        assert learner.n_support == 0
        assert learner.thresholds.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize(
    ("value", "message"),
    [(np.nan, "NaN: row 60, column 1"), (np.inf, "infinity.*row 60"), (1e160, "row 60.*overflow")],
)
def test_a_bad_value_is_named_and_changes_nothing(data, kernel, value, message):
    X, lower, upper = data
    X = X.copy()
    X[60, 1] = value
    learner = make(kernel)
    learner.learn_many(X[:50], lower[:50], upper[:50])
    before = learner.memory
    for matrix in (X, sp.csr_array(X)):
        with pytest.raises(RowValueError, match=message):
            learner.learn_many(matrix, lower, upper)
        with pytest.raises(RowValueError, match=message):
            learner.latent(matrix)
    with pytest.raises(RowValueError, match=message.replace("60", "0")):
        learner.learn_one(X[60], 1)
    assert learner.memory.tobytes() == before.tobytes()


def test_one_example_is_checked_like_many():
    learner = make()
    for x, label, message in (
        (np.zeros(2), (1, 1), "x has 2 features, but the learner has 3"),
        (np.zeros(3), (2, 1), r"\[2, 1\] is not a range within 1..5"),
        (np.zeros(3), (1, 6), r"\[1, 6\] is not a range"),
        (np.zeros(3), (1.5, 2), r"\[1.5, 2\] is not a range"),
        (np.zeros((1, 3)), (1, 1), "1-d row"),
    ):
        with pytest.raises(ValueError, match=message):
            learner.learn_one(x, *label)
    with pytest.raises(AttributeError, match="only a linear kernel"):
        _ = learner.weights


def test_one_example_in_another_byte_order_or_with_float_ranks_is_the_same():
    learners = [make() for _ in range(3)]
    x, columns = np.array([1.0, 2.0, 3.0]), np.arange(3)
    learners[0].learn_one(x, 2)
    learners[1].learn_one(x.astype(">f8"), 2.0, np.float64(2))
    learners[2].learn_sparse(x.astype(">f8"), columns.astype(">i8"), 2, 2)
    for other in learners[1:]:
        np.testing.assert_array_equal(other.memory, learners[0].memory)
    csr = sp.csr_array(x[None])
    csr.indices = csr.indices.astype(">i4")
    learners[1].learn_many(csr, [2])
    learners[0].learn_many(x[None], [2])
    np.testing.assert_allclose(learners[1].memory, learners[0].memory, rtol=1e-12)
    with pytest.raises(ValueError, match="not a range"):
        learners[0].learn_one(x, np.nan)
    with pytest.raises(TypeError, match="ranks must be whole numbers, got lower=None"):
        learners[0].learn_one(x, None)
