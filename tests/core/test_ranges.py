"""Probabilities and prediction ranges from scores, by definition, and what they promise."""

from math import inf

import numpy as np
import pytest
from scipy.optimize import minimize

import naive_calibration as naive
from ordspan.core import calibration as core
from steps import as_both

COVERAGES = (0.5, 0.8, 0.9, 0.95, 0.99)


def new_state(n_classes, contain=False):
    return core.new_state(n_classes, np.array(COVERAGES), contain)


def graded(n_rows, n_classes, seed=0, wide=0.2, unseen=()):
    """Scores and labels, of which some are ranges and some wide open."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=n_rows)
    edges = np.quantile(scores, np.arange(1, n_classes) / n_classes)
    rank = 1 + np.searchsorted(edges, scores + 0.4 * rng.logistic(size=n_rows))
    for k in unseen:
        rank[rank == k] = k - 1 if k > 1 else 2
    spread = rng.integers(0, 1 + n_classes // 2, size=(2, n_rows)) * (rng.random(n_rows) < 0.5)
    lower, upper = np.maximum(1, rank - spread[0]), np.minimum(n_classes, rank + spread[1])
    open_label = rng.random(n_rows) < wide
    return scores, np.where(open_label, 1, lower), np.where(open_label, n_classes, upper)


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
    ends = [(a, b) for a in range(1, n_classes + 1) for b in range(a, n_classes + 1)]
    for lower, upper in ends:
        cuts, slope = np.sort(rng.normal(size=n_classes - 1)) * 2.0, rng.exponential()
        score, weight = rng.normal() * 2.0, rng.exponential()
        parts = core.parts_view.py_func(new_state(n_classes))
        parts.cuts[1:-1], parts.head[core.SLOPE] = cuts, slope
        form(core.accumulate)(parts, score, lower, upper, weight)

        def value(point, score=score, lower=lower, upper=upper, weight=weight):
            at = np.concatenate([[-inf], point[:-1], [inf]]) - point[-1] * score
            return weight * naive.log_chance(at[upper], at[lower - 1])

        gradient, hessian = naive.derivatives(value, np.append(cuts, slope))
        found = np.append(parts.gradient[1:-1], parts.head[core.SLOPE_GRADIENT])
        np.testing.assert_allclose(found, gradient, atol=1e-6)
        curvature = naive.dense_curvature(parts)
        if upper in (lower, n_classes) or lower == 1:
            np.testing.assert_allclose(curvature, -hessian, rtol=1e-5, atol=1e-5)
        else:  # the tie of two cuts that are not neighbours is bounded by the diagonal
            assert np.linalg.eigvalsh(curvature + hessian).min() > -1e-5
        assert not parts.curvature[[0, -1]].any()


@pytest.mark.parametrize(
    ("n_classes", "unseen"), [(2, ()), (4, ()), (4, (2,)), (4, (1,)), (4, (2, 3)), (4, (4,))]
)
def test_the_fit_is_the_optimum_that_a_general_optimiser_finds(n_classes, unseen):
    scores, lower, upper = graded(200, n_classes, unseen=unseen)
    weight = np.random.default_rng(1).exponential(size=200)
    weight /= weight.mean()
    state = new_state(n_classes)
    core.fit_cuts(state, scores, lower, upper, weight)
    ridge = core.RIDGE * np.average(scores**2, weights=weight)
    prior = min(core.PRIOR_ROWS, core.PRIOR_SHARE * weight.sum() / n_classes)

    def value(point):
        """Minus the likelihood, with its penalties, by the slope and the gaps between cuts."""
        cuts = np.cumsum(np.append(point[1], np.exp(point[2:])))
        at, shift = np.concatenate([[-inf], cuts, [inf]]), point[0] * scores
        chance = naive.log_chance(at[upper] - shift, at[lower - 1] - shift)
        penalty = 0.5 * ridge * point[0] ** 2 + 0.5 * core.RIDGE * cuts @ cuts
        return penalty - prior * np.log(-np.expm1(-np.diff(cuts))).sum() - weight @ chance

    start = np.concatenate([[0.1, -1.0], np.zeros(n_classes - 2)])
    best = minimize(value, start, method="BFGS", options={"gtol": 1e-6})
    parts = core.parts_view.py_func(state)
    cuts = parts.cuts[1:-1]
    ours = np.concatenate([[parts.head[core.SLOPE], cuts[0]], np.log(np.diff(cuts))])
    assert value(ours) <= best.fun + 1e-9
    np.testing.assert_allclose(ours, best.x, atol=2e-3)


def test_a_state_that_cannot_be_is_refused():
    good = new_state(4)
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


def with_ends(bands):
    return np.pad(bands, ((0, 0), (1, 1)), constant_values=(-inf, inf))


def ranges_of(state, scores):
    """Lowest and highest ranks for every coverage; a larger one has at least the reach."""
    parts = core.parts_view.py_func(state)
    medians = [naive.median_of(parts, score) for score in scores]
    low, high = np.tile(medians, (2, len(COVERAGES), 1))
    for j, reach in enumerate(np.maximum.accumulate(parts.reach)):
        core.widen_ranges(state, reach, np.asarray(scores), low[j], high[j])
    return low, high


@as_both
@pytest.mark.parametrize("contain", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_a_stream_is_its_slow_twin(form, contain, n_classes):
    rows = graded(200, n_classes)
    weight = np.random.default_rng(1).exponential(size=200) * (np.arange(200) % 7 > 0)
    state, twin = (new_state(n_classes, contain) for _ in range(2))
    for each in (state, twin):  # a larger coverage may have the smaller reach for a while
        core.parts_view.py_func(each).reach[:] = [1.0, 0.2, 3.0, 0.0, 2.0]
    medians = np.empty(200, dtype=np.int64)
    form(core.observe)(state, *rows, weight, medians)
    np.testing.assert_array_equal(medians, naive.observe(twin, *rows, weight))
    np.testing.assert_allclose(state, twin, rtol=1e-9, atol=1e-9)
    assert core.why_unusable(state, n_classes) is None


@as_both
@pytest.mark.parametrize("n_classes", [2, 4, 9])
def test_a_range_holds_all_ranks_within_reach_the_median_and_those_between(form, n_classes):
    rng = np.random.default_rng(n_classes)
    state = new_state(n_classes)
    parts = core.parts_view.py_func(state)
    parts.bands[1:-1], parts.head[core.SCORE_FACTOR] = np.sort(rng.normal(size=n_classes - 1)), 2.0
    scores, medians = rng.normal(size=50), rng.integers(1, n_classes + 1, 50)
    for reach in (0.0, 0.3, 2.0, inf):
        low, high = np.tile(medians, (2, 1))
        form(core.widen_ranges)(state, reach, scores, low, high)
        pairs = zip(scores, medians, strict=True)
        found = [naive.find_range(parts.bands, 2.0 * s, reach, median) for s, median in pairs]
        np.testing.assert_array_equal(np.column_stack([low, high]), found)


OPPONENTS = {
    "against": lambda rng, k, low, high: low - 1 if low > 1 else min(high + 1, k),
    "at random": lambda rng, k, low, high: int(rng.integers(1, k + 1)),
    "far away": lambda rng, k, low, high: 1 if (low + high) > k else k,
}
SCORES = {
    "normal": lambda rng, t: rng.normal(),
    "heavy": lambda rng, t: rng.standard_cauchy() ** 3,
    "turning": lambda rng, t: rng.normal() * (-1) ** (t // 50) * 10.0 ** (t // 60 % 3),
    "still": lambda rng, t: 0.0,
}


@pytest.mark.parametrize("contain", [False, True])
@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("opponent", OPPONENTS)
@pytest.mark.parametrize(("kind", "n_classes"), list(zip(SCORES, (5, 30, 3, 2), strict=True)))
def test_whatever_the_stream_misses_exceed_what_was_asked_by_no_more_than_the_theorem_says(
    contain, exact, opponent, kind, n_classes
):
    rng = np.random.default_rng(n_classes)
    state = new_state(n_classes, contain)
    parts = core.parts_view.py_func(state)
    misses, farthest = np.zeros(len(COVERAGES)), 0.0
    for t in range(1, 241):
        score = float(SCORES[kind](rng, t))
        lows, highs = (ends[:, 0] for ends in ranges_of(state, [score]))
        assert (np.diff(lows) <= 0).all()  # nested
        assert (np.diff(highs) >= 0).all()
        assert lows[0] <= naive.median_of(parts, score) <= highs[0]  # and never empty
        rank = OPPONENTS[opponent](rng, n_classes, int(lows[2]), int(highs[2]))
        lower, upper = int(rng.integers(1, rank + 1)), int(rng.integers(rank, n_classes + 1))
        if exact or upper - lower == n_classes - 1:  # which would say nothing
            lower = upper = rank
        for j, reach in enumerate(np.maximum.accumulate(parts.reach)):
            misses[j] += naive.miss_of(parts, score, reach, lower, upper)
        place = parts.head[core.SLOPE] * score
        far = core.distance_to_bands.py_func(parts.cuts, place, lower, upper)
        farthest = max(farthest, far)
        core.observe_one(state, score, lower, upper)
        excess = misses / t - (1 - parts.coverage)
        assert (excess <= (farthest + 1.0) / (t * t**-core.SLOWNESS)).all()
    assert parts.head[core.ROWS] == 240
    assert core.why_unusable(state, n_classes) is None


@as_both
@pytest.mark.parametrize("contain", [False, True])
@pytest.mark.parametrize("n_classes", [2, 6])
def test_the_reach_of_a_batch_is_the_smallest_that_one_more_miss_leaves_allowed(
    form, contain, n_classes
):
    n_rows = 60
    scores, lower, upper = graded(n_rows, n_classes, wide=0.0)
    weight = np.random.default_rng(3).exponential(size=n_rows)
    weight /= weight.mean()
    state = new_state(n_classes, contain)
    core.fit_cuts(state, scores, lower, upper, weight)
    fold = np.arange(n_rows) % 2
    bands = with_ends(np.sort(np.random.default_rng(4).normal(size=(2, n_classes - 1))))
    form(core.fit_reach)(state, bands, fold, scores, lower, upper, weight)
    parts = core.parts_view.py_func(state)
    rows = list(zip(fold, scores, lower, upper, strict=True))

    def risk(reach):
        missed = [
            naive.miss_of(parts._replace(bands=bands[f]), s, reach, low, high)
            for f, s, low, high in rows
        ]
        return (weight @ missed + 1.0) / (n_rows + 1.0)

    assert parts.reach[-1] == inf  # 1 / 61 is more than may be missed
    for reach, coverage in zip(parts.reach[:-1], parts.coverage, strict=False):
        assert risk(reach) <= 1.0 - coverage + 1e-12
        assert reach == 0.0 or risk(reach - 1e-9) > 1.0 - coverage
    assert (np.diff(parts.reach[:-1]) >= 0.0).all()


def test_scores_that_come_in_any_order_are_covered_as_often_as_asked():
    n_rows, n_splits, coverage = 40, 3000, 0.8
    held = 0
    bands = with_ends(np.array([[-1.5, -0.5, 0.3, 1.5]]))  # right or not
    weight, fold = np.ones(n_rows), np.zeros(n_rows, dtype=np.int64)
    for seed in range(n_splits):
        scores, lower, _ = graded(n_rows + 1, 5, seed=seed, wide=0.0)
        state = new_state(5)
        core.fit_cuts(state, scores[:-1], lower[:-1], lower[:-1], weight)
        core.fit_reach(state, bands, fold, scores[:-1], lower[:-1], lower[:-1], weight)
        core.parts_view.py_func(state).bands[:] = bands[0]
        low, high = ranges_of(state, scores[-1:])
        held += bool(low[1, 0] <= lower[-1] <= high[1, 0])
    assert held / n_splits >= coverage - 3.0 * np.sqrt(coverage * (1 - coverage) / n_splits)
