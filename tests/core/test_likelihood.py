"""Probabilities from scores: derivatives, the Newton step and the optimum, by definition."""

from math import inf

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

import naive_calibration as naive
from ordspan.core import calibration as core
from steps import as_both

COVERAGE = np.array([0.5, 0.9])


def state_of(cuts, slope=0.0):
    state = core.new_state(len(cuts) + 1, COVERAGE, contain=False)
    parts = core.parts_view.py_func(state)
    parts.cuts[1:-1], parts.head[core.SLOPE] = cuts, slope
    return state


def labels_of(rng, n_rows, n_classes):
    """Labels of any width but the full one."""
    lower = rng.integers(1, n_classes + 1, n_rows)
    upper = np.where(rng.random(n_rows) < 0.5, lower, rng.integers(lower, n_classes + 1))
    upper = np.where((lower == 1) & (upper == n_classes), 1, upper)
    return lower, upper


def graded(n_rows, n_classes, seed=0, unseen=()):
    """Scores, and the labels of a model whose slope and cuts are not those of the start."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=n_rows) * 3.0 + 1.0
    cuts = np.linspace(-3.0, 3.0, n_classes - 1) if n_classes > 2 else np.zeros(1)
    rank = 1 + np.searchsorted(cuts, 0.7 * scores + rng.logistic(size=n_rows))
    for k in unseen:
        rank[rank == k] = k - 1 if k > 1 else 2
    below, above = rng.integers(0, 2, size=(2, n_rows)) * (rng.random(n_rows) < 0.5)
    lower, upper = np.maximum(1, rank - below), np.minimum(n_classes, rank + above)
    wide = (lower == 1) & (upper == n_classes)
    return scores, np.where(wide, rank, lower), np.where(wide, rank, upper)


def log_chance(cuts, slope, score, lower, upper):
    """Logarithm of the probability of a label."""
    at = np.concatenate([[-inf], cuts, [inf]]) - slope * score
    return naive.log_chance(at[upper], at[lower - 1])


@as_both
@pytest.mark.parametrize("shift", [0.0, 3.0, -30.0, 200.0, -700.0])
@pytest.mark.parametrize("gap", [1e-12, 1e-4, 1.0, 60.0, 900.0])
def test_the_log_probability_of_a_range_is_exact_however_small(form, shift, gap):
    cuts = np.array([-inf, -0.5, gap - 0.5, inf])
    for lower, upper in [(1, 1), (2, 2), (3, 3), (1, 2), (2, 3)]:
        found = form(core.log_probability)(cuts, shift, lower, upper)
        wanted = naive.exact_log_chance(float(cuts[upper]), float(cuts[lower - 1]), shift)
        assert found == pytest.approx(wanted, rel=1e-13, abs=1e-15)
        assert found <= 0.0


@as_both
@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_what_a_label_adds_is_gradient_and_curvature_of_its_log_likelihood(form, n_classes):
    rng = np.random.default_rng(n_classes)
    for lower, upper in {(k, j) for k, j in zip(*labels_of(rng, 40, n_classes), strict=True)}:
        cuts, slope = np.sort(rng.normal(size=n_classes - 1)) * 2.0, rng.exponential()
        score, weight = rng.normal() * 2.0, rng.exponential()
        state = state_of(cuts, slope)
        form(core.accumulate)(core.parts_view.py_func(state), score, lower, upper, weight)
        parts = core.parts_view.py_func(state)

        def value(point, score=score, lower=lower, upper=upper, weight=weight):
            return weight * log_chance(point[:-1], point[-1], score, lower, upper)

        gradient, hessian = naive.derivatives(value, np.append(cuts, slope))
        np.testing.assert_allclose(
            np.append(parts.gradient[1:-1], parts.head[core.SLOPE_GRADIENT]), gradient, atol=1e-6
        )
        curvature = naive.dense_curvature(parts)
        if upper in (lower, n_classes) or lower == 1:
            np.testing.assert_allclose(curvature, -hessian, rtol=1e-5, atol=1e-5)
        else:  # the tie of two cuts that are not neighbours is bounded by the diagonal
            assert np.linalg.eigvalsh(curvature + hessian).min() > -1e-5
        assert not parts.curvature[[0, -1]].any()


def objective(state, slope_ridge, scores, lower, upper, weight):
    """Minus the likelihood with its pulls, by slope and cuts, for a general optimiser."""
    n_classes = int(state[core.N_CLASSES])

    def value(point):
        cuts = np.cumsum(np.append(point[1], np.exp(point[2:])))
        at = np.concatenate([[-inf], cuts, [inf]])
        shift = point[0] * scores
        chance = naive.log_chance(at[upper] - shift, at[lower - 1] - shift)
        pulls = 0.5 * slope_ridge * point[0] ** 2 + 0.5 * core.RIDGE * cuts @ cuts
        narrow = np.log(-np.expm1(-np.diff(cuts))).sum() * min(
            core.PRIOR_ROWS, core.PRIOR_SHARE * weight.sum() / n_classes
        )
        return float(pulls - narrow - weight @ chance)

    return value


@pytest.mark.parametrize("unseen", [(), (2,), (1,), (2, 3), (4,)])
def test_the_fit_is_the_optimum_that_a_general_optimiser_finds(unseen):
    n_classes = 4
    scores, lower, upper = graded(200, n_classes, unseen=unseen)
    weight = np.random.default_rng(1).exponential(size=200)
    weight /= weight.mean()
    state = core.new_state(n_classes, COVERAGE, contain=False)
    core.fit_cuts(state, scores, lower, upper, weight)
    parts = core.parts_view.py_func(state)
    slope_ridge = core.RIDGE * np.average(scores**2, weights=weight)
    value = objective(state, slope_ridge, scores, lower, upper, weight)
    start = np.concatenate([[0.1, -1.0], np.zeros(n_classes - 2)])
    best = minimize(value, start, method="BFGS", options={"gtol": 1e-6})
    cuts = parts.cuts[1:-1]
    ours = np.concatenate([[parts.head[core.SLOPE], cuts[0]], np.log(np.diff(cuts))])
    assert value(ours) <= best.fun + 1e-9
    np.testing.assert_allclose(ours, best.x, atol=2e-3)


def test_two_ranks_are_logistic_regression():
    scores, lower, _ = graded(4000, 2)
    state = core.new_state(2, COVERAGE, contain=False)
    core.fit_cuts(state, scores, lower, lower, np.ones(4000))
    parts = core.parts_view.py_func(state)
    plain = LogisticRegression(C=1e9, tol=1e-10).fit(scores[:, None], lower)
    assert parts.head[core.SLOPE] == pytest.approx(plain.coef_[0, 0], rel=1e-4)
    assert parts.cuts[1] == pytest.approx(-plain.intercept_[0], rel=1e-3)


def test_a_state_that_cannot_be_is_refused():
    good = core.new_state(4, np.array([0.5, 0.8, 0.9, 0.95, 0.99]), contain=False)
    assert core.why_unusable(good, 4) is None
    for name, value, fault in [
        ("cuts", [-inf, 1.0, 0.0, 2.0, inf], "not sorted"),
        ("cuts", [0.0, 1.0, 1.5, 2.0, inf], "not sorted"),
        ("gradient", [0.0, np.nan, 0.0, 0.0, 0.0], "not finite"),
        ("coupling", [0.0, 1.0, 0.0, 0.0, 0.0], "curvatures"),
        ("coupling", [0.0, -1.0, 0.0, 0.0, 0.0], "curvatures"),
        ("coverage", [0.9, 0.5, 0.8, 0.95, 0.99], "coverages"),
        ("reach", [-1.0, 0.0, 0.0, 0.0, 0.0], "reaches"),
        ("bands", [-inf, 1.0, 0.0, 2.0, inf], "not sorted"),
        ("head", [4.0, 0.0, -1.0, *[0.0] * 7], "counts"),
        ("head", [4.0, 0.5, *[0.0] * 8], "counts"),
        ("head", [5.0, *[0.0] * 9], "not for 4 ranks"),
        ("head", [4.0, *[0.0] * 6, 1e250, 0.0, 0.0], "steep"),
    ]:
        bad = good.copy()
        getattr(core.parts_view.py_func(bad), name)[:] = value
        assert fault in core.why_unusable(bad, 4)
    for other in (np.float32, good.dtype.newbyteorder()):
        assert "float64" in core.why_unusable(good.astype(other), 4)
