"""The batch optimum against LIBLINEAR, and its certificate against the truth."""

import numpy as np
import pytest
import scipy.sparse as sp
from examples import graded
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

import naive
from ordspan import OrdinalSVM

rng = np.random.default_rng(5)
X, Y, SPANS = graded(n=250, d=3)
NOISY = np.clip(SPANS + rng.integers(-1, 2, size=(250, 1)), 1, 4)
POWER = {"hinge": 1, "squared_hinge": 2}


def objective(model, spans, loss):
    """The printed objective, term by term."""
    total = 0.0
    for x, (lower, upper) in zip(X, spans, strict=True):
        losses = naive.losses(model.thresholds_, model.coef_ @ x, lower, upper)
        total += (losses ** POWER[loss]).sum()
    norms = model.coef_ @ model.coef_ + model.thresholds_ @ model.thresholds_
    return 0.5 * norms + model.C * total


def liblinear(spans, loss, C):
    """One binary problem with a copy of a row for each of its required thresholds."""
    rows, signs = [], []
    for x, (lower, upper) in zip(X, spans, strict=True):
        for i in [*range(1, lower), *range(upper, 4)]:
            rows.append(np.concatenate([x, -np.eye(3)[i - 1]]))
            signs.append(1 if i < lower else -1)
    signs = np.array(signs)
    model = LinearSVC(loss=loss, C=C, fit_intercept=False, dual=True, tol=1e-10, max_iter=2_000_000)
    v = model.fit(rows, signs).coef_[0]
    slack = np.maximum(0, 1 - signs * (np.array(rows) @ v)) ** POWER[loss]
    return 0.5 * v @ v + C * slack.sum(), v


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("loss", POWER)
@pytest.mark.parametrize("C", [1e-3, 0.03, 1.0])
@pytest.mark.parametrize("exact", [True, False])
def test_the_optimum_is_liblinears_on_the_replicated_problem(loss, C, exact):
    spans = np.column_stack([NOISY[:, 0], NOISY[:, 0]]) if exact else NOISY
    model = OrdinalSVM(C, loss=loss, tol=1e-7, max_iter=100_000, classes=[1, 2, 3, 4])
    model.fit(X, spans)
    value = objective(model, spans, loss)
    truth, v = liblinear(spans, loss, C)
    assert model.primal_value_ == pytest.approx(value, rel=1e-10)
    assert value == pytest.approx(truth, rel=1e-6)
    assert model.dual_value_ <= truth * (1 + 1e-9)
    np.testing.assert_allclose(np.r_[model.coef_, model.thresholds_], v, atol=2e-2)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("loss", POWER)
def test_the_gap_is_never_negative_and_bounds_the_distance_to_the_optimum(loss):
    def solved(**options):
        return OrdinalSVM(0.5, loss=loss, classes=[1, 2, 3, 4], **options).fit(X, NOISY)

    best = solved(tol=1e-9, max_iter=200_000).primal_value_
    for max_iter in (1, 2, 5, 20, 100):
        some = solved(tol=1e-15, max_iter=max_iter)
        assert some.duality_gap_ >= -1e-12
        assert some.primal_value_ - best <= some.duality_gap_ * some.primal_value_ + 1e-9
        assert some.dual_value_ <= best * (1 + 1e-8)
        assert (np.diff(some.thresholds_) >= 0).all()


@pytest.mark.parametrize("loss", POWER)
def test_sparse_rows_float32_and_strides_give_the_same_optimum(loss):
    exact = OrdinalSVM(loss=loss, tol=1e-9, max_iter=100_000, classes=[1, 2, 3, 4])
    expected = clone(exact).fit(X, NOISY).coef_
    for rows in (sp.csr_array(X), np.repeat(X, 2, axis=0)[::2], X.astype(np.float32)):
        np.testing.assert_allclose(clone(exact).fit(rows, NOISY).coef_, expected, atol=1e-4)


def test_a_c_too_large_ends_with_the_gap_and_a_usable_model():
    with pytest.warns(ConvergenceWarning, match=r"max_iter=5 sweeps at a relative duality gap of"):
        model = OrdinalSVM(1e6, max_iter=5).fit(X, NOISY)
    assert model.duality_gap_ > model.tol
    assert model.n_iter_ == 5
    assert np.isfinite(model.coef_).all()
    assert (np.diff(model.thresholds_) >= 0).all()


def test_one_grade_for_all_rows_comes_with_a_warning_and_the_way_out():
    noise = np.random.default_rng(1)
    rows = noise.normal(size=(600, 3))
    grades = np.searchsorted([-1.0, 1.0], 0.3 * rows[:, 0] + noise.logistic(size=600)) + 1
    with pytest.warns(UserWarning, match=r"the same grade, 2, .*loss='squared_hinge', a larger C"):
        model = OrdinalSVM(loss="hinge").fit(rows, grades)
    assert set(model.predict(rows)) == {2}
    assert len(set(OrdinalSVM().fit(rows, grades).predict(rows))) == 3
    with pytest.warns(UserWarning, match=r"try a larger C"):
        OrdinalSVM().fit(1e-6 * rows, grades)
    OrdinalSVM(classes=[1, 2, 3]).fit(X, np.tile([1, 2], (len(X), 1)))  # every label allows it
