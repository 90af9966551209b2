"""Mixing memories: sorted stays sorted, and averages stay what they say."""

import numpy as np
import pytest
from examples import graded

from ordspan.core.state import LOG_COUNT, LOG_SUM, SCALE, model_view
from ordspan.distributed.mixing import mix
from ordspan.learners import LinearLearner, MulticlassPALearner, PerceptronLearner, PRankLearner

CUTS = [70, 71, 200]
X, Y, SPANS = graded(n=300)
MAKERS = [
    lambda: LinearLearner(4, 4),
    lambda: LinearLearner(4, 4, "PA", average=True),
    lambda: LinearLearner(4, 4, "PA-II", average=True, balanced=True),
    lambda: PRankLearner(4, 4),
    lambda: PerceptronLearner(4, 4),
    lambda: MulticlassPALearner(4, 4),
]


def parts(make, start):
    """A learner for each part of the rows, each gone on from the same state."""
    pieces = zip(np.split(X, CUTS), np.split(SPANS, CUTS), strict=True)
    learners = [make().restore(start) for _ in range(len(CUTS) + 1)]
    for learner, (rows, spans) in zip(learners, pieces, strict=True):
        learner.learn_many(rows, *spans.T)
    return learners


def shares():
    return (np.diff([0, *CUTS, 300]) / 300).tolist()


def warm(make):
    learner = make()
    learner.learn_many(X[::3], *SPANS[::3].T)
    return learner.state.copy()


@pytest.mark.parametrize("make", MAKERS)
def test_one_learner_and_learners_that_learned_nothing_need_no_mixing(make):
    start = warm(make)
    end = parts(make, start)[0].state
    np.testing.assert_array_equal(mix(start, [end], [1.0]), end)
    mixed = mix(start, [start, start, start], [0.25, 0.5, 0.25])
    np.testing.assert_allclose(mixed, start, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("make", MAKERS)
def test_last_iterates_are_mixed_by_shares_and_counters_add_up(make):
    start = warm(make)
    learners = parts(make, start)
    mixed = make().restore(mix(start, [one.state for one in learners], shares()))
    for name in ("weights", "edges"):
        each = [s * getattr(o.model, name) for s, o in zip(shares(), learners, strict=True)]
        np.testing.assert_allclose(getattr(mixed.model, name), sum(each), rtol=1e-12)
    before = make().restore(start).model.counters
    summed = before + sum(one.model.counters - before for one in learners)
    np.testing.assert_allclose(mixed.model.counters[:SCALE], summed[:SCALE], rtol=1e-12)
    assert mixed.n_trials == 100 + 300
    if summed[LOG_COUNT]:
        scale = np.exp(summed[LOG_SUM] / summed[LOG_COUNT])
        assert mixed.model.counters[SCALE] == pytest.approx(scale)


@pytest.mark.parametrize("weighting", ["rows", "one alone"])
def test_the_average_is_over_every_iterate_of_every_learner(weighting):
    def make():
        return LinearLearner(4, 4, average=True)

    start = warm(make)
    before = make().restore(start)
    total_weights = before.n_trials * before.weights
    total_thresholds = before.n_trials * before.thresholds
    pieces = zip(np.split(X, CUTS), np.split(SPANS, CUTS), strict=True)
    for rows, spans in pieces:
        one = make().restore(start)
        for row, (lower, upper) in zip(rows, spans, strict=True):
            one.learn_one(row, lower, upper)
            total_weights = total_weights + one.model.weights
            total_thresholds = total_thresholds + one.model.edges[1:-1]
    share = shares() if weighting == "rows" else [0.0, 1.0, 0.0, 0.0]
    mixed = make().restore(mix(start, [one.state for one in parts(make, start)], share))
    np.testing.assert_allclose(mixed.weights, total_weights / 400, rtol=1e-10)
    np.testing.assert_allclose(mixed.thresholds, total_thresholds / 400, rtol=1e-10)


def test_mixed_thresholds_stay_sorted_to_the_bit():
    """Also where neighbours are equal or one rounding apart, and shares are awkward."""
    rng = np.random.default_rng(0)

    def some_learner(base):
        state = LinearLearner(1, 8).state
        steps = rng.choice([0.0, np.spacing(abs(base)), 1e-3], size=7)
        model_view(state).edges[1:-1] = np.maximum.accumulate(base + np.cumsum(steps))
        return state

    for _ in range(2000):
        start, *ends = (some_learner(b) for b in rng.standard_normal(rng.integers(3, 9)) * 10)
        share = rng.dirichlet(np.full(len(ends), 0.3))
        edges = model_view(mix(start, ends, share.tolist())).edges
        assert (np.diff(edges[1:-1]) >= 0).all()
        assert edges[0] == -np.inf
        assert edges[-1] == np.inf
