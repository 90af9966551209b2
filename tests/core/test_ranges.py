"""Prediction ranges: what they hold, and how often they may miss, whatever the stream."""

from math import inf

import numpy as np
import pytest

import naive_calibration as naive
from ordspan.core import calibration as core
from ordspan.core import ranges
from ordspan.learners import Calibration
from ordspan.learners.calibration import with_ends

COVERAGES = (0.5, 0.8, 0.9, 0.95, 0.99)
NO_ORDER = np.empty(0, dtype=np.intp)
as_both = pytest.mark.parametrize(
    "form", [lambda f: f, lambda f: f.py_func], ids=["compiled", "plain"]
)


def graded(n_rows, n_classes, seed=0, wide=0.2):
    """Scores, predictions and labels; some labels are ranges and some are wide open."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=n_rows)
    edges = np.quantile(scores, np.arange(1, n_classes) / n_classes)
    rank = 1 + np.searchsorted(edges, scores + 0.4 * rng.logistic(size=n_rows))
    predicted = 1 + np.searchsorted(edges, scores + 0.1 * rng.normal(size=n_rows))
    spread = rng.integers(0, 1 + n_classes // 2, size=(2, n_rows)) * (rng.random(n_rows) < 0.5)
    lower, upper = np.maximum(1, rank - spread[0]), np.minimum(n_classes, rank + spread[1])
    open_label = rng.random(n_rows) < wide
    return scores, predicted, np.where(open_label, 1, lower), np.where(open_label, n_classes, upper)


@as_both
@pytest.mark.parametrize("contain", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_a_stream_is_its_slow_twin(form, contain, n_classes):
    rows = graded(200, n_classes)
    weight = np.random.default_rng(1).exponential(size=200) * (np.arange(200) % 7 > 0)
    state, twin = (core.new_state(n_classes, np.array(COVERAGES), contain) for _ in range(2))
    for each in (state, twin):  # a larger coverage may have the smaller reach for a while
        core.parts_view.py_func(each).reach[:] = [1.0, 0.2, 3.0, 0.0, 2.0]
    form(ranges.observe)(state, *rows, weight, NO_ORDER)
    naive.observe(twin, *rows, weight)
    np.testing.assert_allclose(state, twin, rtol=1e-9, atol=1e-9)
    assert core.state_fault(state, n_classes) is None


@as_both
@pytest.mark.parametrize("n_classes", [2, 4, 9])
def test_a_range_holds_all_ranks_within_reach_the_predicted_one_and_those_between(form, n_classes):
    rng = np.random.default_rng(n_classes)
    state = core.new_state(n_classes, np.array(COVERAGES), False)
    parts = core.parts_view.py_func(state)
    parts.bands[1:-1], parts.head[core.UNIT] = np.sort(rng.normal(size=n_classes - 1)), 2.0
    scores, predicted = rng.normal(size=50), rng.integers(1, n_classes + 1, 50)
    low, high = np.empty((2, 50), dtype=np.int64)
    for reach in (0.0, 0.3, 2.0, inf):
        form(ranges.find_ranges)(state, reach, scores, predicted, low, high)
        pairs = zip(scores, predicted, strict=True)
        found = [naive.find_range(parts.bands, 2.0 * s, reach, p) for s, p in pairs]
        np.testing.assert_array_equal(np.column_stack([low, high]), found)
        for i in range(50):
            held = [
                form(ranges.outside)(parts.bands, 2.0 * scores[i], predicted[i], k) <= reach
                for k in range(1, n_classes + 1)
            ]
            assert held == [low[i] <= k <= high[i] for k in range(1, n_classes + 1)]


# -- the theorem of the stream -------------------------------------------------------------------


def against(rng, n_classes, low, high, t):
    """The label that the range does not hold, if there is one."""
    if low > 1:
        return low - 1
    return high + 1 if high < n_classes else low


def drifting(rng, n_classes, low, high, t):
    return 1 + int((t // 40 + rng.integers(0, 2)) % n_classes)


def constant(rng, n_classes, low, high, t):
    return n_classes


def at_random(rng, n_classes, low, high, t):
    return int(rng.integers(1, n_classes + 1))


def far_away(rng, n_classes, low, high, t):
    return 1 if (low + high) > n_classes else n_classes


SCORES = {
    "normal": lambda rng, t: rng.normal(),
    "heavy": lambda rng, t: rng.standard_cauchy() ** 3,
    "turning": lambda rng, t: rng.normal() * (-1) ** (t // 50) * 10.0 ** (t // 60 % 3),
    "still": lambda rng, t: 0.0,
}


def truth_in(rng, rank, n_classes, exact):
    """An exact label, or a range around it that says something."""
    lower = rank if exact else int(rng.integers(1, rank + 1))
    upper = rank if exact else int(rng.integers(rank, n_classes + 1))
    return (rank, rank) if upper - lower == n_classes - 1 else (lower, upper)


@pytest.mark.parametrize("labels", ["expected", "contain"])
@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("opponent", [against, drifting, constant, at_random, far_away])
@pytest.mark.parametrize(("kind", "n_classes"), list(zip(SCORES, (5, 30, 3, 2), strict=True)))
def test_whatever_the_stream_misses_exceed_what_was_asked_by_no_more_than_the_theorem_says(
    labels, exact, opponent, kind, n_classes
):
    rng = np.random.default_rng(n_classes)
    known = Calibration(n_classes, COVERAGES, labels)
    parts = core.parts_view.py_func(known.state)
    misses, farthest = np.zeros(len(COVERAGES)), 0.0
    score_of = SCORES[kind]
    for t in range(1, 241):
        score, predicted = float(score_of(rng, t)), int(rng.integers(1, n_classes + 1))
        spans = [known.ranges([score], [predicted], c) for c in COVERAGES]
        lows, highs = np.array(spans)[:, :, 0].T
        assert (np.diff(lows) <= 0).all()  # nested
        assert (np.diff(highs) >= 0).all()
        assert (lows <= predicted).all()  # and never empty
        assert (predicted <= highs).all()
        rank = opponent(rng, n_classes, int(lows[2]), int(highs[2]), t)
        lower, upper = truth_in(rng, rank, n_classes, exact)
        for j, reach in enumerate(known.reach):
            misses[j] += naive.miss_of(parts, score, reach, predicted, lower, upper)
        for k in (lower, upper):
            place = known.slope * score
            farthest = max(farthest, ranges.outside.py_func(parts.cuts, place, predicted, k))
        known.observe_one(score, predicted, lower, upper)
        excess = misses / t - (1 - known.coverages)
        assert (excess <= (farthest + 1.0) / (t * t**-ranges.SLOWNESS)).all()
    assert known.n_rows == 240
    assert core.state_fault(known.state, n_classes) is None


def test_the_theorem_is_not_empty():
    """Against labels that are always outside, the reach has to grow, and it does."""
    rng = np.random.default_rng(0)
    known, t = Calibration(9, (0.9,)), 3000
    scores, predicted = rng.normal(size=t), np.full(t, 5)
    known.observe(scores, predicted, *[1 + 8 * (np.arange(t) % 2)] * 2)
    low, high = known.ranges(scores, predicted, 0.9)
    assert ((low == 1) & (high == 9)).mean() > 0.7


# -- the theorem of the batch --------------------------------------------------------------------


@as_both
@pytest.mark.parametrize("contain", [False, True])
@pytest.mark.parametrize("n_classes", [2, 6])
def test_the_reach_of_a_batch_is_the_smallest_that_one_more_miss_leaves_allowed(
    form, contain, n_classes
):
    n_rows = 60
    scores, predicted, lower, upper = graded(n_rows, n_classes, wide=0.0)
    weight = np.random.default_rng(3).exponential(size=n_rows)
    weight /= weight.mean()
    state = core.new_state(n_classes, np.array(COVERAGES), contain)
    core.fit_cuts(state, scores, lower, upper, weight)
    fold = np.arange(n_rows) % 2
    bands = with_ends(np.sort(np.random.default_rng(4).normal(size=(2, n_classes - 1))))
    form(ranges.fit_reach)(state, bands, fold, scores, predicted, lower, upper, weight)
    parts = core.parts_view.py_func(state)
    rows = list(zip(fold, scores, predicted, lower, upper, strict=True))

    def risk(reach):
        missed = [
            naive.miss_of(parts._replace(bands=bands[f]), s, reach, p, low, high)
            for f, s, p, low, high in rows
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
    known = Calibration(5, (coverage,))
    thresholds = [-1.5, -0.5, 0.3, 1.5]  # right or not
    for seed in range(n_splits):
        scores, predicted, lower, _ = graded(n_rows + 1, 5, seed=seed, wide=0.0)
        train = scores[:-1], predicted[:-1], lower[:-1], lower[:-1]
        known.fit(*train, thresholds=thresholds)
        low, high = known.ranges(scores[-1:], predicted[-1:], coverage)
        held += bool(low[0] <= lower[-1] <= high[0])
    assert held / n_splits >= coverage - 3.0 * np.sqrt(coverage * (1 - coverage) / n_splits)


@pytest.mark.parametrize("labels", ["expected", "contain"])
def test_containing_the_label_is_rarer_than_holding_the_truth_and_meeting_it_more_frequent(labels):
    rng = np.random.default_rng(0)
    n_rows, n_classes = 4000, 6
    scores, predicted, rank, _ = graded(n_rows, n_classes, wide=0.0)
    lower = np.maximum(1, rank - rng.integers(0, 3, n_rows))
    upper = np.minimum(n_classes, rank + rng.integers(0, 3, n_rows))
    known = Calibration(n_classes, labels=labels)
    known.observe(scores, predicted, lower, upper)
    for coverage in known.coverages:
        low, high = known.ranges(scores, predicted, coverage)
        contains = ((low <= lower) & (upper <= high)).mean()
        holds = ((low <= rank) & (rank <= high)).mean()
        meets = ((low <= upper) & (lower <= high)).mean()
        assert contains <= holds <= meets
        assert contains < meets or coverage > 0.98
