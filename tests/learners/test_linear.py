"""Learners: one result for every way of handing over the same rows, and none for bad ones."""

import numpy as np
import pytest
import scipy.sparse as sp

from ordspan.experiments.committee import AggregateLearner
from ordspan.learners import (
    KernelLearner,
    LinearLearner,
    MulticlassPALearner,
    PerceptronLearner,
    PRankLearner,
)
from ordspan.learners.rows import RowValueError

K = 5
D = 6

LEARNERS = {
    "PA": lambda: LinearLearner(D, K, "PA"),
    "PA-I": lambda: LinearLearner(D, K, "PA-I", 0.3),
    "PA-II": lambda: LinearLearner(D, K, "PA-II", 0.3),
    "PA-I averaged": lambda: LinearLearner(D, K, "PA-I", 0.3, average=True),
    "PA-II balanced": lambda: LinearLearner(D, K, "PA-II", 0.3, average=True, balanced=True),
    "PA-I sca": lambda: LinearLearner(D, K, "PA-I", 0.3, solver="sca"),
    "PRank": lambda: PRankLearner(D, K),
    "perceptron": lambda: PerceptronLearner(D, K),
    "MC-PA": lambda: MulticlassPALearner(D, K, "PA"),
    "MC-PA-I": lambda: MulticlassPALearner(D, K, "PA-I", 0.3),
    "MC-PA-II": lambda: MulticlassPALearner(D, K, "PA-II", 0.3),
    "OAP-BPM": lambda: AggregateLearner(D, K, n_members=4, seed=1),
    "kernel": lambda: KernelLearner(D, K, "PA-I", 0.3, average=True, gamma=0.4, budget=30),
}
WITH_VECTORS = ("perceptron", "MC-PA", "MC-PA-I", "MC-PA-II")
each_learner = pytest.mark.parametrize("name", LEARNERS)
each_compiled = pytest.mark.parametrize("name", [*LEARNERS][:-2])
each_with_weights = pytest.mark.parametrize("name", [*LEARNERS][:-1])


@pytest.fixture(scope="module")
def data():
    """Rows that float32 holds exactly, a third of them zeros, and labels of every kind."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(240, D)) * 64) / 64
    X[rng.random(X.shape) < 0.3] = 0
    lower = rng.integers(1, K + 1, len(X))
    upper = np.where(rng.random(len(X)) < 0.6, lower, rng.integers(lower, K + 1))
    return X, lower, upper


def learned(name, X, lower, upper, **options):
    """Memory and predictions after one pass."""
    learner = LEARNERS[name]()
    predicted = learner.learn_many(X, lower, upper, predict=True, **options)
    return learner.state, predicted


def assert_same(one, other, atol=0.0):
    """Equal to the bit, or within a tolerance where sums may be ordered in another way."""
    np.testing.assert_array_equal(one[1], other[1])
    if atol == 0:
        assert one[0].tobytes() == other[0].tobytes()
    else:
        np.testing.assert_allclose(one[0][1:], other[0][1:], rtol=0, atol=atol)


def rounding(name):
    """What sums in another order may change: more, where a budget projects vectors."""
    return 1e-9 if name == "kernel" else 1e-12


# -- one result ----------------------------------------------------------------------------------

STRIDES = {
    "Fortran order": np.asfortranarray,
    "every second row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "every second column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "negative strides": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "list of lists": lambda X: X.tolist(),
    "big-endian": lambda X: X.astype(">f8"),
}


@each_learner
@pytest.mark.parametrize("layout", STRIDES)
def test_the_stride_does_not_matter_to_the_bit(data, name, layout):
    X, lower, upper = data
    expected = learned(name, X, lower, upper)
    assert_same(learned(name, STRIDES[layout](X), lower, upper), expected)


@each_learner
def test_row_by_row_is_all_at_once_and_returns_the_prediction_just_before(data, name):
    X, lower, upper = data
    learner, predicted = LEARNERS[name](), []
    for x, low, high in zip(X, lower, upper, strict=True):
        predicted.append(learner.predict_one(x))
        assert learner.learn_one(x, low, high) == predicted[-1]
    assert_same((learner.state, predicted), learned(name, X, lower, upper), rounding(name))


@each_learner
def test_blocks_are_all_at_once_to_the_bit(data, name):
    X, lower, upper = data
    learner = LEARNERS[name]()
    parts = [slice(0, 1), slice(1, 100), slice(100, 100), slice(100, 240)]
    predicted = [learner.learn_many(X[p], lower[p], upper[p], predict=True) for p in parts]
    assert_same((learner.state, np.concatenate(predicted)), learned(name, X, lower, upper))


def with_wide_indices(X):
    csr = sp.csr_array(X)
    csr.indices, csr.indptr = csr.indices.astype(np.int64), csr.indptr.astype(np.int64)
    return csr


SPARSE = [sp.csr_matrix, sp.csr_array, sp.csc_array, sp.coo_matrix, sp.lil_array, with_wide_indices]


@each_learner
@pytest.mark.parametrize("make", SPARSE)
def test_sparse_is_dense(data, name, make):
    X, lower, upper = data
    expected = learned(name, X, lower, upper)
    assert_same(learned(name, make(X), lower, upper), expected, rounding(name))


@each_learner
def test_float32_rows_are_their_own_values_in_float64(name):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, D)).astype(np.float32)
    ranks = rng.integers(1, K + 1, 200)
    expected = learned(name, X.astype(np.float64), ranks, ranks)
    assert_same(learned(name, X, ranks, ranks), expected, rounding(name))
    learner = LEARNERS[name]()
    predicted = [learner.learn_one(x, int(rank)) for x, rank in zip(X, ranks, strict=True)]
    assert_same((learner.state, predicted), expected, rounding(name))


@each_learner
@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray, sp.csr_array])
def test_an_order_is_a_permutation_of_the_rows_to_the_bit(data, name, layout):
    X, lower, upper = data
    rng = np.random.default_rng(4)
    order, weight = rng.permutation(len(X)), rng.integers(0, 3, len(X)) / 2
    permuted = learned(
        name, layout(X[order]), lower[order], upper[order], sample_weight=weight[order]
    )
    state, predicted = learned(name, layout(X), lower, upper, sample_weight=weight, order=order)
    assert_same((state, predicted[order]), permuted)


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sp.csr_array])
@pytest.mark.parametrize("name", ["PA-II", "PA-I averaged", "PA-II balanced", "PRank", "kernel"])
def test_scores_before_learning_are_those_that_predict(data, name, form):
    X, lower, upper = (part[:40] for part in data)
    order, scores = np.random.default_rng(0).permutation(40), np.empty(40)
    learner, twin = LEARNERS[name](), LEARNERS[name]()
    rows = learner.rows(form(X), lower, upper)
    predicted = learner.learn(rows, order=order, scores_before=scores)
    for i in order:
        np.testing.assert_allclose(scores[i], twin.latent(X[[i]])[0], rtol=1e-9, atol=1e-12)
        assert predicted[i] == twin.predict_one(X[i])
        twin.learn_one(X[i], lower[i], upper[i])


@each_learner
def test_predicting_many_is_predicting_one_by_one(data, name):
    X, lower, upper = data
    learner = LEARNERS[name]()
    learner.learn_many(X, lower, upper)
    one_by_one = [learner.predict_one(x) for x in X]
    for matrix in (X, np.asfortranarray(X), sp.csr_array(X), X.astype(np.float32)):
        np.testing.assert_array_equal(learner.predict_many(matrix), one_by_one)
    if name == "kernel":
        return
    latent = learner.latent(X)
    assert latent.shape == ((len(X), K) if name in WITH_VECTORS else (len(X),))
    np.testing.assert_allclose(latent, X @ learner.weights.T, rtol=0, atol=1e-12)


def test_averaged_thresholds_stay_sorted_to_the_bit():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(20_000, 3)) * 10.0 ** rng.uniform(-3, 3, size=(20_000, 1))
    lower = rng.integers(1, 101, len(X))
    learner = LinearLearner(3, 100, "PA-I", 0.3, average=True)
    for start in range(0, len(X), 100):
        learner.learn_many(X[start : start + 100], lower[start : start + 100])
        assert np.all(np.diff(learner.thresholds) >= 0)


@each_with_weights
def test_a_new_learner_knows_nothing_and_shows_copies(name):
    learner = LEARNERS[name]()
    before = learner.state.tobytes()
    assert learner.n_trials == learner.n_updates == 0
    assert not learner.weights.any()
    assert learner.thresholds.tolist() == [0] * (K - 1)
    learner.weights[...] = 1
    learner.thresholds[...] = 1
    assert learner.state.tobytes() == before


# -- sample weights ------------------------------------------------------------------------------


@each_learner
def test_weight_one_is_no_weight_and_zero_leaves_the_row_out_to_the_bit(data, name):
    X, lower, upper = data
    ones = learned(name, X, lower, upper, sample_weight=np.ones(len(X)))
    assert_same(ones, learned(name, X, lower, upper))
    keep = np.random.default_rng(7).random(len(X)) < 0.7
    state, predicted = learned(name, X, lower, upper, sample_weight=keep.astype(float))
    assert_same((state, predicted[keep]), learned(name, X[keep], lower[keep], upper[keep]))


# -- theorems ------------------------------------------------------------------------------------


@each_learner
def test_a_wide_open_interval_changes_nothing(data, name):
    X, lower, upper = data
    learner = LEARNERS[name]()
    learner.learn_many(X, lower, upper)
    weights, thresholds = learner.model.weights.copy(), learner.model.edges.copy()
    learner.learn_many(X, np.full(len(X), 1), np.full(len(X), K))
    assert learner.model.weights.tobytes() == weights.tobytes()
    assert learner.model.edges.tobytes() == thresholds.tobytes()
    assert learner.n_trials == 2 * len(X)


@pytest.mark.parametrize("name", [name for name in LEARNERS if name != "OAP-BPM"])
def test_the_state_is_all_that_a_learner_knows(data, name):
    X, lower, upper = data
    learner, heir = LEARNERS[name](), LEARNERS[name]()
    learner.learn_many(X[:100], lower[:100], upper[:100])
    heir.restore(learner.state)
    for one in (learner, heir):
        one.learn_many(X[100:], lower[100:], upper[100:])
    assert learner.state.tobytes() == heir.state.tobytes()


@pytest.mark.parametrize("kind", [LinearLearner, KernelLearner])
def test_a_strange_state_is_refused(kind):
    others = [kind(D, K, "PA"), kind(D, K, C=0.2), kind(D, K + 1), kind(D, K, average=True)]
    for other in [*others, LinearLearner(D + 1, K), LinearLearner(D - 1, K + 1)]:
        with pytest.raises(ValueError, match="another kind or shape"):
            kind(D, K).restore(other.state)


# -- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [0, -1.0, np.nan, np.inf, 10**400, "1", None, [1.0]])
@pytest.mark.parametrize("variant", ["PA", "PA-I", "PA-II"])
def test_c_is_a_finite_number_above_zero(variant, C):
    with pytest.raises(ValueError, match="C must be a finite number above 0, got"):
        LinearLearner(D, K, variant, C)


@pytest.mark.parametrize(
    ("n_features", "n_classes", "what"), [(0, 3, "n_features"), (3, 1, "n_cl")]
)
def test_shapes_have_a_least_size(n_features, n_classes, what):
    learners = LinearLearner, PRankLearner, PerceptronLearner, MulticlassPALearner, AggregateLearner
    for make in learners:
        with pytest.raises(ValueError, match=f"{what}.* must be at least"):
            make(n_features, n_classes)


COMPILED = ["PA-I averaged", "PRank", "perceptron", "MC-PA-I"]


@pytest.fixture(params=[*COMPILED, "kernel"])
def veteran(request, data):
    """A learner with something to lose, which it must not."""
    learner = LEARNERS[request.param]()
    learner.learn_many(*data)
    before = learner.state.tobytes()
    yield learner
    assert learner.state.tobytes() == before


BLOCKED = [np.ascontiguousarray, np.asfortranarray, sp.csr_array]


@pytest.mark.parametrize("layout", BLOCKED, ids=["C", "Fortran", "sparse"])
@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, r"contains NaN: row 200, column 2 \('c'\)"),
        (-np.inf, r"contains infinity \(inf\): row 200, column 2 \('c'\)"),
        (1e120, r"row 200: values as large as 1e\+120 \(column 2\) overflow"),
    ],
)
def test_a_bad_row_after_many_good_ones_is_named_and_undone(
    veteran, data, layout, ordered, value, message
):
    X, lower, upper = data
    X = X.copy()
    X[200, 2] = value
    order = np.random.default_rng(9).permutation(len(X)) if ordered else None
    with pytest.raises(RowValueError, match=message):
        veteran.learn_many(layout(X), lower, upper, order=order, feature_names=list("abcdef"))


@pytest.mark.parametrize("layout", BLOCKED, ids=["C", "Fortran", "sparse"])
def test_a_bad_row_cannot_be_predicted_either(veteran, data, layout):
    X = data[0].copy()
    X[200, 2] = np.nan
    with pytest.raises(RowValueError, match="contains NaN: row 200, column 2"):
        veteran.predict_many(layout(X))


def ranks_with(row, value):
    ranks = np.full(240, 2.0)
    ranks[row] = value
    return ranks


TWOS = np.full(240, 2)


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        (ranks_with(7, 3), TWOS, r"row 7: ranks 3 to 2 are not a range within 1\.\.5; swap"),
        (ranks_with(7, 0), TWOS, r"row 7: ranks 0 to 2 are not a range within 1\.\.5$"),
        (TWOS, ranks_with(7, 6), r"row 7: ranks 2 to 6 are not a range within 1\.\.5$"),
        (ranks_with(7, 1.5), TWOS, r"row 7: lower rank 1\.5 is not a whole number"),
        (ranks_with(7, np.nan), TWOS, "row 7: lower rank nan is not a whole number"),
        (TWOS[:9], TWOS[:9], "X has 240 rows, but there are 9 labels"),
        (TWOS, TWOS[:9], "lower has 240 ranks, but upper has 9"),
    ],
)
def test_bad_labels_are_named_and_nothing_is_learned(veteran, data, lower, upper, message):
    with pytest.raises(ValueError, match=message):
        veteran.learn_many(data[0], lower, upper)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones((240, D + 1)), "X has 7 features, but the learner has 6"),
        (sp.csr_array(np.ones((240, D - 1))), "X has 5 features, but the learner has 6"),
        (np.ones(D), "2-d matrix.*got 1-d"),
        (np.ones((2, 3, 4)), "2-d matrix.*got 3-d"),
        (np.array([["a"] * D] * 240), "could not convert string to float"),
        (np.ones((240, D)) * 1j, "complex"),
    ],
)
def test_a_matrix_of_the_wrong_shape_is_refused(veteran, X, message):
    with pytest.raises(ValueError, match=message):
        veteran.learn_many(X, TWOS)
    with pytest.raises(ValueError, match=message):
        veteran.predict_many(X)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (ranks_with(7, -1), r"row 7: sample_weight -1\.0 is not a finite number >= 0"),
        (ranks_with(7, np.nan), "row 7: sample_weight nan"),
        (ranks_with(7, np.inf), "row 7: sample_weight inf"),
        (np.ones(9), r"sample_weight has shape \(9,\), expected \(240,\)"),
        (np.ones((240, 1)), r"sample_weight has shape \(240, 1\)"),
    ],
)
def test_bad_sample_weights_are_named(veteran, data, weight, message):
    with pytest.raises(ValueError, match=message):
        veteran.learn_many(data[0], TWOS, sample_weight=weight)


@pytest.mark.parametrize(
    ("x", "lower", "upper", "message"),
    [
        (np.ones(D), 0, 1, r"label \[0, 1\] is not a range within 1\.\.5"),
        (np.ones(D), 3, 2, r"label \[3, 2\]"),
        (np.ones(D), 1, 6, r"label \[1, 6\]"),
        (np.ones(D), 1.5, 2, r"label \[1\.5, 2\]"),
        (np.ones(D + 1), 1, 1, "x has 7 features, but the learner has 6"),
        ([1.0], 1, 1, "x has 1 features"),
        (np.array([0, 0, np.nan, 0, 0, 0]), 1, 1, "contains NaN: row 0, column 2"),
        ([0, 0, 0, np.inf, 0, 0], 1, 1, r"contains infinity \(inf\): row 0, column 3"),
        (np.full(D, 1e101), 1, 1, r"values as large as 1e\+101"),
        ([[1.0] * D], 1, 1, r"one example is a 1-d row, got shape \(1, 6\)"),
    ],
)
@pytest.mark.parametrize("veteran", COMPILED, indirect=True)
def test_one_bad_example_is_refused_and_named(veteran, x, lower, upper, message):
    with pytest.raises(ValueError, match=message):
        veteran.learn_one(x, lower, upper)
    if (lower, upper) == (1, 1):
        with pytest.raises(ValueError, match=message):
            veteran.predict_one(x)


@pytest.mark.parametrize("lower", ["1", None])
def test_a_rank_of_the_wrong_type_is_a_type_error(lower):
    with pytest.raises(TypeError, match="ranks must be whole numbers, got lower="):
        LinearLearner(D, K).learn_one(np.ones(D), lower)


@pytest.mark.parametrize("kind", [LinearLearner, KernelLearner])
def test_one_example_may_be_any_list_of_numbers(data, kind):
    x, expected = data[0][0], kind(D, K)
    expected.learn_one(x, 2)
    for given in (x.tolist(), tuple(x), x.astype(np.float32), x.astype(">f8")):
        learner = kind(D, K)
        learner.learn_one(given, 2.0, np.float64(2))
        np.testing.assert_allclose(learner.state[1:], expected.state[1:], rtol=0, atol=1e-14)


@pytest.mark.parametrize("order", [[0, -1], [0, 2], [0], [0, 0], [0.0, 1.0], [[0, 1]]])
def test_an_order_that_does_not_name_each_row_once_is_refused(order):
    with pytest.raises(ValueError, match="order must name each of the 2 rows once"):
        LinearLearner(D, K).learn_many(np.ones((2, D)), [1, 2], order=np.array(order))


@pytest.mark.parametrize(
    "learner", [PRankLearner(1, 2), AggregateLearner(1, 2, n_members=2, tau=1.0)]
)
def test_a_score_that_overflows_is_refused_not_read_beyond_the_thresholds(learner):
    weight = [1.0, 1e150, 1.0]
    with pytest.raises(RowValueError, match="row 2: the score of the row overflows"):
        learner.learn_many([[9e99]] * 3, [1, 2, 2], sample_weight=weight, predict=True)
    assert not learner.n_trials
    assert not learner.weights.any()


# -- one sparse example --------------------------------------------------------------------------


@each_compiled
def test_one_sparse_example_at_a_time_is_csr(data, name):
    X, lower, upper = data
    learner, predicted = LEARNERS[name](), []
    for x, low, high in zip(X, lower.tolist(), upper.tolist(), strict=True):
        columns = np.flatnonzero(x)
        foreseen = learner.predict_sparse(x[columns], columns)
        predicted.append(learner.learn_sparse(x[columns], columns, low, high))
        assert foreseen == predicted[-1]
    assert_same((learner.state, predicted), learned(name, sp.csr_array(X), lower, upper), 1e-12)


@each_compiled
@pytest.mark.parametrize(
    ("values", "columns", "label", "reason"),
    [
        ([1.0], [D], (1, 1), r"columns in 0\.\.5, got \[6\]"),
        ([1.0], [-1], (1, 1), r"columns in 0\.\.5, got \[-1\]"),
        ([1.0, 2.0], [1], (1, 1), "2 values need as many columns"),
        ([np.nan], [1], (1, 1), "NaN"),
        ([np.inf], [1], (1, 1), "infinity"),
        ([1e150], [1], (1, 1), "overflow"),
        ([1.0], [1], (0, 1), "not a range"),
        ([1.0], [1], (2, 1), "not a range"),
        ([1.0], [1], (1, K + 1), "not a range"),
    ],
)
def test_a_bad_sparse_example_changes_nothing(name, values, columns, label, reason):
    learner = LEARNERS[name]()
    learner.learn_sparse(np.ones(2), np.array([0, 1]), 4, 4)
    before = learner.state.tobytes()
    x, where = np.array(values), np.array(columns)
    with pytest.raises(ValueError, match=reason):
        learner.learn_sparse(x, where, *label)
    if label == (1, 1):
        with pytest.raises(ValueError, match=reason):
            learner.predict_sparse(x, where)
    assert learner.state.tobytes() == before
