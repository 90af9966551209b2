"""What a calibration promises: nothing learned from nothing, and no trouble with hard streams."""

import numpy as np
import pytest

from ordspan.core import calibration as core
from ordspan.learners import Calibration


def fit(known, *stream):
    """Calibrate on all rows at once, by a ranker with evenly spaced thresholds."""
    return known.fit(*stream, thresholds=np.linspace(-1.0, 1.0, known.n_classes - 1))


def rows(n_rows=400, n_classes=4, seed=0):
    """Scores, and labels of which some are ranges."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=n_rows)
    edges = np.quantile(scores, np.arange(1, n_classes) / n_classes)
    rank = 1 + np.searchsorted(edges, scores + 0.4 * rng.logistic(size=n_rows))
    lower = np.maximum(1, rank - (rng.random(n_rows) < 0.3))
    return scores, lower, rank


def taken(arrays, picked):
    return [array[picked] for array in arrays]


def check_sound(known, scores=(-1e300, -1.0, 0.0, 1.0, 1e300)):
    """Probabilities are some, ranges hold the median, and the state can be one."""
    chance = known.probabilities(scores)
    assert ((chance >= 0.0) & (chance <= 1.0)).all()
    np.testing.assert_allclose(chance.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    medians = known.predict(scores)
    spans = np.array([known.ranges(scores, c) for c in known.coverages])
    assert (spans[:, 0] <= medians).all()
    assert (medians <= spans[:, 1]).all()
    below = np.where(medians > 1, np.cumsum(chance, axis=1)[np.arange(len(scores)), medians - 2], 0)
    assert (below <= 0.5 + 1e-12).all()
    assert (below + chance[np.arange(len(scores)), medians - 1] >= 0.5 - 1e-12).all()
    assert (np.diff(spans[:, 0], axis=0) <= 0).all()
    assert (np.diff(spans[:, 1], axis=0) >= 0).all()
    assert (spans >= 1).all()
    assert (spans <= known.n_classes).all()
    assert core.why_unusable(known.state, known.n_classes) is None


def test_wide_open_labels_and_weights_of_zero_change_nothing():
    stream = rows()
    known = Calibration(4)
    known.observe(*stream)
    before = known.state.tobytes()
    ones = np.ones(400, dtype=np.int64)
    known.observe(stream[0], ones, 4 * ones)
    known.observe_one(0.3, 1, 4)
    known.observe(*stream, np.zeros(400))
    assert known.state.tobytes() == before
    idle = [np.concatenate([array, array]) for array in stream]
    weight = np.repeat([1.0, 0.0], 400)
    fitted = fit(Calibration(4), *stream)
    np.testing.assert_array_equal(fit(Calibration(4), *idle, weight).state, fitted.state)
    idle[1][400:], idle[2][400:] = 1, 4
    np.testing.assert_array_equal(fit(Calibration(4), *idle).state, fitted.state)


def test_a_stream_goes_on_from_a_fit_and_from_a_reach_without_end():
    stream = rows()
    known = fit(Calibration(4), *taken(stream, slice(0, 20)))
    assert known.reach[-1] == np.inf  # 20 rows cannot promise 99 %
    low, high = known.ranges([0.0], 0.99)
    assert (low[0], high[0]) == (1, 4)
    known.observe(*taken(stream, slice(20, 200)))
    for row in zip(*taken(stream, slice(200, None)), strict=True):
        known.observe_one(*row)
    assert np.isfinite(known.reach).all()
    assert known.n_rows == 400
    check_sound(known)


def test_a_stream_ends_close_to_the_fit_of_all_its_rows():
    stream = rows(8000)
    online, batch = Calibration(4), fit(Calibration(4), *stream)
    online.observe(*stream)
    ranks = np.searchsorted(online.medians, stream[0]) + 1
    np.testing.assert_array_equal(online.predict(stream[0]), ranks)
    assert online.slope == pytest.approx(batch.slope, rel=0.1)
    np.testing.assert_allclose(online.cuts, batch.cuts, atol=0.15)


def hard_streams():
    rng = np.random.default_rng(0)
    n = 300
    scores, y = rng.normal(size=n), rng.integers(1, 6, n)
    third = np.where(y == 3, 2, y)
    ones = np.ones(n, dtype=np.int64)
    return {
        "constant scores": (np.full(n, 7.0), y, y),
        "scores of zero": (np.zeros(n), y, y),
        "one grade never seen": (scores, third, third),
        "the ends never seen": (scores, np.clip(y, 2, 4), np.clip(y, 2, 4)),
        "one grade alone": (scores, 3 * ones, 3 * ones),
        "wide open": (scores, ones, 5 * ones),
        "two rows": (scores[:2], y[:2], y[:2]),
        "one row": (scores[:1], y[:1], y[:1]),
        "no rows": (scores[:0], y[:0], y[:0]),
        "huge scores": (scores * 1e300, y, y),
        "huge and small scores": (scores * 10.0 ** rng.integers(-300, 300, n), y, y),
        "scores that explode": (scores * np.where(np.arange(n) < 40, 1e-3, 1e12), y, y),
        "tiny scores": (scores * 1e-300, y, y),
        "separated": (y * 3.0, y, y),
        "upside down": (-y * 3.0, y, y),
        "a thousand ranks": rows(300, 1000),
    }


@pytest.mark.parametrize("name", hard_streams())
@pytest.mark.parametrize("learn", [fit, Calibration.observe])
@pytest.mark.parametrize("labels", ["expected", "contain"])
def test_hard_streams_do_no_harm(name, learn, labels):
    stream = hard_streams()[name]
    known = Calibration(1000 if name == "a thousand ranks" else 5, labels=labels)
    learn(known, *stream)
    check_sound(known)
    learn(known, *stream, np.zeros(stream[0].size))
    check_sound(known)
    weight = 10.0 ** np.random.default_rng(0).integers(-150, 150, stream[0].size)
    learn(known, *stream, weight)
    check_sound(known)


def test_coverage_comes_back_after_a_drift_at_mid_stream():
    first, then = rows(6000), rows(6000, seed=1)
    stream = [np.concatenate(pair) for pair in zip(first, then, strict=True)]
    stream[0][6000:] = 3.0 - 2.0 * stream[0][6000:]
    known, held = Calibration(4), 0
    known.observe(*taken(stream, slice(0, 6000)))
    for start in range(6000, 12000, 10):
        scores, _, rank = taken(stream, slice(start, start + 10))
        low, high = known.ranges(scores, 0.9)
        held += int(((low <= rank) & (rank <= high)).sum())
        known.observe(scores, rank, rank)
    assert held / 6000 == pytest.approx(0.9, abs=0.03)


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_a_new_rank_leaves_the_chances_of_the_others_almost_as_they_were(rank):
    known = Calibration(4)
    known.observe(*rows(2000))
    grown = known.with_rank(rank)
    check_sound(grown)
    if 1 < rank < 5:
        others = np.delete(grown.probabilities([0.0, 1.0]), rank - 1, axis=1)
        np.testing.assert_allclose(others, known.probabilities([0.0, 1.0]), atol=0.01)
    np.testing.assert_array_equal(grown.reach, known.reach)
    scores, lower, upper = rows(2000, seed=1)
    grown.observe(scores, lower + (lower >= rank), upper + (upper >= rank))
    check_sound(grown)
