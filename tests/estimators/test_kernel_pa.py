"""KernelOrdinalPA: OrdinalPA with a kernel, in scikit-learn's words."""

import numpy as np
import pytest
import scipy.sparse as sp
from examples import graded
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from ordspan import KernelOrdinalPA, OrdinalPA
from ordspan.learners.checks import RowValueError

X, Y, SPANS = graded(n=200)
CLASSES = [1, 2, 3, 4]
ONE_STEP_IS_NOT_TWO = "a weight scales one step, and one step of twice the size is not two steps"
PRECOMPUTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": ONE_STEP_IS_NOT_TWO,
    "check_sample_weight_equivalence_on_sparse_data": ONE_STEP_IS_NOT_TWO,
    "check_positive_only_tag_during_fit": "its matrix is below 0 on the diagonal: no kernel",
    "check_estimators_nan_inf": "its matrix is not square, which is refused before NaN is seen",
}


def ring(n, seed=0):
    """Grades that grow with the distance from the middle."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, 2))
    return rows, np.searchsorted([0.7, 1.2, 1.8], np.hypot(*rows.T)) + 1


@pytest.mark.parametrize("variant", ["PA", "PA-I", "PA-II"])
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, np.float32])
def test_linear_kernel_is_ordinal_pa(variant, average, form):
    options = {"variant": variant, "C": 0.2, "average": average, "max_iter": 3, "random_state": 0}
    dual = KernelOrdinalPA(kernel="linear", **options).fit(form(X), SPANS)
    primal = OrdinalPA(balanced=False, **options).fit(form(X), SPANS)
    for _ in range(2):
        np.testing.assert_allclose(dual.latent(X), primal.latent(X), rtol=0, atol=1e-9)
        np.testing.assert_allclose(dual.thresholds_, primal.thresholds_, rtol=0, atol=1e-9)
        np.testing.assert_allclose(dual.coef_, primal.coef_, rtol=0, atol=1e-9)
        np.testing.assert_array_equal(dual.predict(X), primal.predict(X))
        for model in (dual, primal):
            model.partial_fit(form(X[::-1]), SPANS[::-1])
    assert dual.n_updates_ == primal.n_updates_


@pytest.mark.filterwarnings("ignore:the order of the grades was not given:UserWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [KernelOrdinalPA(kernel="precomputed", random_state=0)],
    expected_failed_checks=lambda _: PRECOMPUTED_FAILURES,
)
def test_scikit_learns_own_checks_of_a_precomputed_kernel(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "options", [{}, {"budget": 100}, {"budget": 100, "budget_strategy": "simple"}]
)
def test_a_ring_is_learned_where_no_line_could(options):
    rows, grades = ring(1000)
    asked, truth = ring(1000, seed=1)
    linear = OrdinalPA(random_state=0).fit(rows, grades)
    curved = KernelOrdinalPA(C=1.0, gamma=1.0, random_state=0, **options).fit(rows, grades)
    assert -linear.score(asked, truth) > 0.7
    assert -curved.score(asked, truth) < 0.25


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_gamma_is_found_as_svc_finds_it(form):
    for gamma in ("scale", "auto", 0.3):
        model = KernelOrdinalPA(gamma=gamma).fit(form(X), Y)
        assert model.gamma_ == pytest.approx(SVC(gamma=gamma).fit(form(X), Y)._gamma, rel=1e-12)
    alike = np.ones((4, 2)), [1, 2, 1, 2]
    assert KernelOrdinalPA(gamma="scale").fit(*alike).gamma_ == 1.0
    assert KernelOrdinalPA().fit(*alike).gamma_ == 0.25  # as for standardised features


def test_a_gamma_set_anew_is_refused_until_the_next_fit():
    model = KernelOrdinalPA(gamma=0.5).fit(X, Y)
    for gamma in ("scale", "distance", 0.7):
        with pytest.raises(ValueError, match="cannot change during learning"):
            model.set_params(gamma=gamma).partial_fit(X, Y)
    assert model.set_params(gamma="scale").fit(X, Y).partial_fit(X, Y).gamma_ != 0.5


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_the_default_gamma_is_the_inverse_of_the_mean_squared_distance_between_rows(form):
    rows = X + np.arange(X.shape[1])  # how far the features are from 0 does not matter
    model = KernelOrdinalPA().fit(form(rows), Y)
    distances = np.sum((rows[:, None] - rows) ** 2, axis=-1)
    assert model.gamma_ == pytest.approx(1 / distances.mean(), rel=1e-12)


def test_a_precomputed_kernel_is_the_named_one_and_cross_validates():
    gram = rbf_kernel(X, gamma=0.25)
    named = KernelOrdinalPA(gamma=0.25, random_state=0)
    given = KernelOrdinalPA(kernel="precomputed", random_state=0)
    np.testing.assert_allclose(
        cross_val_score(given, gram, Y, cv=3), cross_val_score(named, X, Y, cv=3), atol=1e-12
    )
    given.fit(gram, Y)
    named.fit(X, Y)
    np.testing.assert_allclose(given.latent(gram), named.latent(X), atol=1e-9)
    np.testing.assert_array_equal(X[given.support_], named.support_vectors_)
    assert given.support_vectors_.shape == (0, 0)
    given.partial_fit(gram, Y)  # once more over the same rows
    named.partial_fit(X, Y)
    np.testing.assert_allclose(given.latent(gram), named.latent(X), atol=1e-9)


def test_a_search_over_kernels_runs():
    grid = {"kernel": ["linear", "rbf", "poly"], "budget": [None, 20]}
    search = GridSearchCV(KernelOrdinalPA(random_state=0, max_iter=2), grid, cv=3)
    assert np.isfinite(search.fit(X, Y).best_score_)


def test_fitted_attributes_describe_the_score():
    model = KernelOrdinalPA(random_state=0).fit(X, Y)
    values = rbf_kernel(X, model.support_vectors_, gamma=model.gamma_)
    np.testing.assert_allclose(values @ model.dual_coef_, model.latent(X), atol=1e-10)
    for name in ("coef_", "support_"):
        assert not hasattr(model, name)


BAD = [
    ({"kernel": "cubic"}, "unknown kernel 'cubic'; choose one of linear, rbf"),
    ({"kernel": 3}, "unknown kernel 3"),
    ({"budget": 0}, "budget must be a whole number >= 1"),
    ({"budget_strategy": "random"}, "unknown budget_strategy 'random'"),
    ({"gamma": "wide"}, "gamma must be a number or one of distance, scale, auto, got 'wide'"),
    ({"gamma": -1.0}, "gamma must be a finite number >= 0"),
    ({"gamma": None}, "gamma must be"),
    ({"kernel": "poly", "degree": 0.5}, "degree must be a finite number >= 1"),
    ({"kernel": "poly", "coef0": np.nan}, "coef0 must be"),
    ({"variant": "PA-III"}, "unknown variant"),
    ({"C": 0}, "C must be"),
    ({"kernel": "precomputed"}, r"square matrix.*got shape \(200, 4\)"),
    ({"kernel": "sigmoid", "coef0": -50.0}, r"row 0: k\(x, x\) = -1 must be positive"),
    ({"kernel": lambda A, B: A @ B}, r"called as k\(X, Y\) .* must return the matrix"),
    ({"kernel": lambda A, B: A @ A.T}, "must return an array of numbers of shape"),
    ({"kernel": lambda A, B: A @ B.T * np.nan}, "row 0: the kernel returned nan"),
    ({"kernel": lambda A, B: -(A @ B.T)}, r"row 0: k\(x, x\) = -"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_bad_settings_are_refused_and_the_model_stays_as_it_was(options, message):
    model = KernelOrdinalPA(random_state=0, shuffle=False, **options)
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X, Y, classes=CLASSES)
    assert not [name for name in vars(model) if name.endswith("_")]
    fitted = KernelOrdinalPA(random_state=0, shuffle=False).fit(X, Y)
    before, latent = fitted.learner_.memory, fitted.latent(X)
    fitted.set_params(**options)
    with pytest.raises(ValueError, match=message):
        fitted.fit(X, Y)
    np.testing.assert_array_equal(fitted.learner_.memory, before)
    np.testing.assert_array_equal(fitted.latent(X), latent)


def test_a_bad_row_in_a_stream_leaves_the_model_as_it_was():
    model = KernelOrdinalPA(budget=20).partial_fit(X, Y, classes=CLASSES)
    before = model.learner_.memory
    rows = X.copy()
    rows[150, 2] = np.nan
    with pytest.raises(RowValueError, match="NaN: row 150, column 2"):
        model.partial_fit(rows, Y)
    np.testing.assert_array_equal(model.learner_.memory, before)


def test_parameters_set_anew_count_from_the_next_batch_on():
    model = KernelOrdinalPA().partial_fit(X, Y, classes=CLASSES)
    n_before = model.dual_coef_.size
    model.set_params(C=1.0, budget=30).partial_fit(X + 0.1, Y)
    assert model.dual_coef_.size == 30 < n_before
    for changed in ({"kernel": "linear"}, {"gamma": 9.0}, {"average": False}):
        with pytest.raises(ValueError, match="cannot change during learning"):
            KernelOrdinalPA().partial_fit(X, Y, classes=CLASSES).set_params(**changed).partial_fit(
                X, Y
            )


def test_a_score_that_overflows_is_refused_with_its_row():
    model = KernelOrdinalPA(kernel="precomputed", random_state=0).fit(X @ X.T, Y)
    model.learner_.support.dual[0] = 1e308
    rows = np.array([np.zeros(len(X)), np.full(len(X), 99.0)])
    with pytest.raises(ValueError, match="row 1: the score of the row overflows"):
        model.predict(rows)


@pytest.mark.parametrize("degree", [64, 65, 2**40])
def test_a_polynomial_of_any_degree_takes_the_same_time(degree):
    rows = np.array([[0.0], [1.0], [-1.0]])
    model = KernelOrdinalPA(kernel="poly", degree=degree, gamma=0.5 / degree, coef0=1.0)
    learner = model.fit(rows, [2, 3, 1]).learner_
    expected = np.exp(0.5 * rows @ learner.support_vectors.T) @ learner.dual_coef
    np.testing.assert_allclose(learner.latent(rows), expected, rtol=0.02)
