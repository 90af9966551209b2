"""Learners: one result for every way of handing over the same rows, and none for bad ones."""

import numpy as np
import pytest
import scipy.sparse as sp

from ordspan.learners import LinearLearner, PRankLearner
from steps import VARIANTS, make_learner, stream

K = 5
D = 6
COMPILED = ["PA-I averaged", "PRank", "perceptron", "MC-PA-I"]
OTHERS = ["PA-II averaged balanced", "PA-I sca", "MC-PA", "MC-PA-II", "kernel"]
each_learner = pytest.mark.parametrize("name", [*VARIANTS, *COMPILED, *OTHERS])
X, LOWER, UPPER = stream(240, D, K, zeros=0.3)


def learned(name, X, lower, upper, **options):
    """Memory and predictions after one pass."""
    learner = make_learner(name, D, K)
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


def with_wide_indices(X):
    csr = sp.csr_array(X)
    csr.indices, csr.indptr = csr.indices.astype(np.int64), csr.indptr.astype(np.int64)
    return csr


def with_halves_backwards(X):
    """Entries from right to left, each as two that are to be added up."""
    csr = sp.csr_array(X[::-1])
    entries = np.repeat(csr.data[::-1] / 2, 2), np.repeat(csr.indices[::-1], 2)
    return sp.csr_array((*entries, 2 * (csr.nnz - csr.indptr[::-1])), shape=X.shape)


STRIDES = {
    "Fortran order": np.asfortranarray,
    "every second row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "every second column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "negative strides": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "list of lists": lambda X: X.tolist(),
    **{dtype: lambda X, dtype=dtype: X.astype(dtype) for dtype in (">f8", "f2", "g", "O")},
}
FORMATS = [sp.csr_matrix, sp.csr_array, sp.csc_array, sp.coo_matrix, sp.lil_array]
SPARSE = [*FORMATS, with_wide_indices, with_halves_backwards]
FORMS = STRIDES | {kind.__name__: kind for kind in SPARSE} | {"float32": lambda X: X.astype("f4")}


@each_learner
@pytest.mark.parametrize("form", FORMS)
def test_the_form_of_the_rows_does_not_matter(name, form):
    """To the bit, whatever the stride; sparse and float32 rows are summed in another order."""
    found = learned(name, FORMS[form](X), LOWER, UPPER)
    assert_same(found, learned(name, X, LOWER, UPPER), 0.0 if form in STRIDES else rounding(name))


@each_learner
@pytest.mark.parametrize("sparse", [False, True])
def test_row_by_row_is_all_at_once_and_returns_the_prediction_just_before(name, sparse):
    learner, predicted = make_learner(name, D, K), []
    if sparse and name == "kernel":
        return  # takes whole rows only
    for x, *label in zip(X, LOWER.tolist(), UPPER.tolist(), strict=True):
        columns = np.flatnonzero(x) if sparse else None
        row = x[columns] if sparse else x
        predicted.append(learner.predict_one(row, columns))
        assert learner.learn_one(row, *label, columns) == predicted[-1]
    assert_same((learner.state, predicted), learned(name, X, LOWER, UPPER), rounding(name))


@each_learner
@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray, sp.csr_array])
def test_an_order_is_a_permutation_of_the_rows_to_the_bit(name, layout):
    rng = np.random.default_rng(4)
    order, weight = rng.permutation(len(X)), rng.integers(0, 3, len(X)) / 2
    permuted = learned(
        name, layout(X[order]), LOWER[order], UPPER[order], sample_weight=weight[order]
    )
    learner = make_learner(name, D, K)
    predicted = learner.learn(learner.rows(layout(X), LOWER, UPPER, weight), order, predict=True)
    assert_same((learner.state, predicted[order]), permuted)


@each_learner
def test_predicting_many_is_predicting_one_by_one(name):
    learner = make_learner(name, D, K)
    learner.learn_many(X, LOWER, UPPER)
    one_by_one = [learner.predict_one(x) for x in X]
    for matrix in (X, np.asfortranarray(X), sp.csr_array(X), X.astype(np.float32)):
        np.testing.assert_array_equal(learner.predict_many(matrix), one_by_one)
    if name == "kernel":
        return
    np.testing.assert_allclose(learner.latent(X), X @ learner.weights.T, rtol=0, atol=1e-12)


@each_learner
def test_weight_one_is_no_weight_and_zero_leaves_the_row_out_to_the_bit(name):
    ones = learned(name, X, LOWER, UPPER, sample_weight=np.ones(len(X)))
    assert_same(ones, learned(name, X, LOWER, UPPER))
    keep = np.random.default_rng(7).random(len(X)) < 0.7
    state, predicted = learned(name, X, LOWER, UPPER, sample_weight=keep.astype(float))
    assert_same((state, predicted[keep]), learned(name, X[keep], LOWER[keep], UPPER[keep]))


@each_learner
def test_a_wide_open_interval_changes_nothing(name):
    learner = make_learner(name, D, K)
    learner.learn_many(X, LOWER, UPPER)
    before = learner.state.tobytes()
    learner.learn_many(X, np.full(len(X), 1), np.full(len(X), K))
    learner.learn_one(X[0], 1, K)
    assert learner.state.tobytes() == before


@pytest.mark.parametrize(
    ("make", "message"),
    [(lambda C=C: LinearLearner(D, K, "PA", C), "C must be a finite number above 0, got")
     for C in (0, -1.0, np.nan, np.inf, 10**400, "1", None, [1.0])]
    + [(lambda name=name, shape=shape: make_learner(name, *shape), f"{what}.* must be at least")
       for name in ("PA", "PRank", "perceptron", "MC-PA")
       for shape, what in (((0, 3), "n_features"), ((3, 1), "n_cl"))],
)  # fmt: skip
def test_a_learner_that_cannot_be_made_says_why(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.fixture(params=[*COMPILED, "kernel"])
def veteran(request):
    """A learner with something to lose, which it must not."""
    learner = make_learner(request.param, D, K)
    learner.learn_many(X, LOWER, UPPER)
    before = learner.state.tobytes()
    yield learner
    assert learner.state.tobytes() == before


@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray, sp.csr_array])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, r"contains NaN: row 200, column 2"),
        (-np.inf, r"contains infinity \(inf\): row 200, column 2"),
        (1e120, r"row 200: values as large as 1e\+120 \(column 2\) overflow"),
    ],
)
def test_a_bad_row_after_many_good_ones_is_named_and_undone(veteran, layout, value, message):
    bad = X.copy()
    bad[200, 2] = value
    with pytest.raises(ValueError, match=message):
        veteran.learn_many(layout(bad), LOWER, UPPER)
    if np.isnan(value):
        with pytest.raises(ValueError, match="row 200"):
            veteran.predict_many(layout(bad))


TWOS = np.full(240, 2)


def with_row_7(value):
    return np.where(np.arange(240) == 7, value, 2.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lower": with_row_7(3)}, r"row 7: ranks 3 to 2 are not a range within 1\.\.5; swap"),
        ({"lower": with_row_7(0)}, r"row 7: ranks 0 to 2 are not a range within 1\.\.5$"),
        ({"upper": with_row_7(6)}, r"row 7: ranks 2 to 6 are not a range within 1\.\.5$"),
        ({"lower": with_row_7(1.5)}, r"row 7: lower rank 1\.5 is not a whole number"),
        ({"lower": with_row_7(np.nan)}, "row 7: lower rank nan is not a whole number"),
        ({"lower": TWOS[:9], "upper": TWOS[:9]}, "X has 240 rows, but there are 9 labels"),
        ({"upper": TWOS[:9]}, "lower has 240 ranks, but upper has 9"),
        ({"X": np.ones((240, D + 1))}, "X has 7 features, but the learner has 6"),
        ({"X": sp.csr_array(np.ones((240, D - 1)))}, "X has 5 features, but the learner has 6"),
        ({"X": np.ones(D)}, "2-d matrix.*got 1-d"),
        ({"X": np.array([["a"] * D] * 240)}, "could not convert string to float"),
        ({"X": np.ones((240, D)) * 1j}, "complex"),
        ({"sample_weight": with_row_7(-1)}, r"row 7: sample_weight -1 is not a number from 0"),
        ({"sample_weight": with_row_7(np.nan)}, "row 7: sample_weight nan"),
        ({"sample_weight": np.ones(9)}, r"sample_weight has shape \(9,\) .*expected \(240,\)"),
    ],
)
def test_a_bad_batch_is_named_and_nothing_is_learned(veteran, change, message):
    with pytest.raises(ValueError, match=message):
        veteran.learn_many(**{"X": X, "lower": TWOS, "upper": TWOS} | change)
    if "X" in change:
        with pytest.raises(ValueError, match=message):
            veteran.predict_many(change["X"])


ONES = np.ones(D)


@pytest.mark.parametrize(
    ("row", "label", "message"),
    [
        ((ONES,), (0, 1), r"ranks 0 to 1 are not a range within 1\.\.5"),
        ((ONES,), (3, 2), "ranks 3 to 2 are not a range"),
        ((ONES,), (1, 6), "ranks 1 to 6 are not a range"),
        ((ONES,), (1.5, 2), r"lower rank 1\.5 is not a whole number"),
        ((ONES,), ("1", 1), "lower must hold whole numbers"),
        ((ONES,), (None, 1), "lower must hold whole numbers"),
        ((np.ones(D + 1),), (1, 1), "x has 7 features, but the learner has 6"),
        (([1.0],), (1, 1), "x has 1 features"),
        ((np.array([0, 0, np.nan, 0, 0, 0]),), (1, 1), "contains NaN: row 0, column 2"),
        (([0, 0, 0, np.inf, 0, 0],), (1, 1), r"contains infinity \(inf\): row 0, column 3"),
        ((np.full(D, 1e101),), (1, 1), r"values as large as 1e\+101"),
        (([[1.0] * D],), (1, 1), r"one example is a 1-d row, got shape \(1, 6\)"),
        ((np.ones(1), np.array([D])), (1, 1), r"columns in 0\.\.5, got \[6\]"),
        ((np.ones(1), np.array([-1])), (1, 1), r"columns in 0\.\.5, got \[-1\]"),
        ((np.ones(2), np.array([1])), (1, 1), "2 values need as many columns"),
        ((np.array([np.nan]), np.array([1])), (1, 1), "NaN"),
        ((np.array([1e150]), np.array([1])), (1, 1), "overflow"),
        ((np.ones(1), np.array([1])), (2, 1), "not a range"),
    ],
)
@pytest.mark.parametrize("veteran", COMPILED, indirect=True)
def test_one_bad_example_is_refused_and_named(veteran, row, label, message):
    x, *columns = row
    with pytest.raises((ValueError, TypeError), match=message):
        veteran.learn_one(x, *label, *columns)
    if label == (1, 1):
        with pytest.raises(ValueError, match=message):
            veteran.predict_one(*row)


def test_a_score_that_overflows_is_refused_not_read_beyond_the_thresholds():
    learner = PRankLearner(1, 2)
    with pytest.raises(ValueError, match="row 2: the score of the row overflows"):
        learner.learn_many([[9e99]] * 3, [1, 2, 2], sample_weight=[1.0, 1e150, 1.0], predict=True)
    assert not learner.n_trials
    assert not learner.weights.any()
