"""Displays: what they draw is what the definitions say, for exact labels and ranges."""

import functools

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from sklearn.calibration import calibration_curve
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from estimators.examples import graded
from ordspan import CalibratedOrdinal, OrdinalPA, plot
from ordspan.plot import ConfusionDistanceDisplay, ReliabilityDisplay, ScoreDisplay, panels

mpl.use("agg")
X, Y, SPANS = graded(200)
LABELS = pytest.mark.parametrize("labels", [Y, SPANS], ids=["exact", "ranges"])


@functools.cache
def fitted():
    calibrated = CalibratedOrdinal(OrdinalPA(random_state=0), random_state=0)
    return make_pipeline(StandardScaler(), calibrated).fit(X, SPANS)


@pytest.fixture(autouse=True)
def no_figure_is_left():
    yield
    pyplot.close("all")


def ends_of(labels):
    return (labels, labels) if labels.ndim == 1 else labels.T


@LABELS
def test_boxes_are_the_quartiles_of_scores_and_lines_the_thresholds(labels):
    display = ScoreDisplay.from_estimator(fitted(), X, labels)
    score = fitted()[-1].latent(fitted()[0].transform(X))
    lower, upper = ends_of(labels)
    exact = lower == upper
    groups = [score[exact & (lower == k)] for k in (1, 2, 3, 4)]
    groups += [] if exact.all() else [score[~exact]]
    for box, group in zip(display.boxes_, groups, strict=True):
        heights = box.get_path().vertices[:, 1]
        np.testing.assert_allclose([heights.min(), heights.max()], np.quantile(group, [0.25, 0.75]))
    drawn = np.concatenate([line.get_ydata() for line in display.ax_.lines])
    for group in groups:
        low, high = np.quantile(group, [0.05, 0.95])
        assert {group[group >= low].min(), group[group <= high].max()} <= {*drawn}  # whiskers
    thresholds = fitted()[-1].estimator_.thresholds_
    np.testing.assert_array_equal(display.line_.get_ydata()[::3], thresholds)
    named = [text.get_text() for text in display.ax_.texts]
    assert named == ["1 | 2", "2 | 3", "3 | 4"]
    ticks = [tick.get_text() for tick in display.ax_.get_xticklabels()]
    assert ticks == ["1", "2", "3", "4", *([] if exact.all() else ["(ranges)"])]


@LABELS
def test_every_row_is_counted_by_its_grade_and_how_far_it_is_off(labels):
    display = ConfusionDistanceDisplay.from_estimator(fitted(), X, labels)
    expected = np.zeros_like(display.counts)
    for low, high, guess in zip(*ends_of(labels), fitted().predict(X), strict=True):
        away = guess - low if guess < low else guess - high if guess > high else 0
        row = low - 1 if low == high else 4
        expected[row, display.distances.tolist().index(away)] += 1
    np.testing.assert_array_equal(display.counts, expected)
    np.testing.assert_allclose(display.shares.sum(axis=1), 1.0)
    np.testing.assert_allclose(display.im_.get_array(), 100 * display.shares)


def test_grades_may_be_words_numbers_with_gaps_or_ordered_categories():
    found = ConfusionDistanceDisplay.from_predictions(["b", "a"], ["c", "a"], classes=[*"abc"])
    assert (found.names, found.counts.tolist()) == ([*"abc"], [[1, 0], [0, 1], [0, 0]])
    ordered = pd.Series(pd.Categorical([*"ba"], categories=[*"abc"], ordered=True))
    again = ConfusionDistanceDisplay.from_predictions(ordered, np.array([*"ca"]))
    assert (again.names, again.counts.tolist()) == (found.names, found.counts.tolist())
    with pytest.warns(UserWarning, match="none between them"):
        numbers = ConfusionDistanceDisplay.from_predictions([3, 5, 6], [6, 5, 6])
    assert (numbers.names, numbers.counts.tolist()[0]) == (["3", "4", "5", "6"], [0, 0, 0, 1])


@LABELS
def test_points_are_the_shares_that_came_true_in_their_bins(labels):
    display = ReliabilityDisplay.from_estimator(fitted(), X, labels)
    np.testing.assert_array_equal(display.line_.get_xdata(), display.predicted)
    at_most = np.cumsum(fitted().predict_proba(X), axis=1)[:, :-1].clip(max=1.0)
    assert display.counts.sum() == at_most.size
    for end, name in zip(ends_of(labels), ("at_most", "at_least"), strict=True):
        happened = end[:, np.newaxis] <= [1, 2, 3]
        share, predicted = calibration_curve(happened.ravel(), at_most.ravel(), n_bins=10)
        np.testing.assert_allclose(getattr(display, name), share)
        np.testing.assert_allclose(display.predicted, predicted)
    assert (display.at_least <= display.observed).all()
    assert (display.observed <= display.at_most).all()
    assert len(display.ax_.containers) == int(labels.ndim == 2)  # bars of what is certain


@pytest.mark.parametrize(("thresholds", "least"), [(np.zeros(3), 3), (np.linspace(-9, 9, 29), 6)])
def test_names_of_thresholds_keep_their_distance_and_order(thresholds, least):
    n_classes = thresholds.size + 1
    ranks = np.arange(1, n_classes + 1)
    score = np.linspace(-10, 10, n_classes)
    display = ScoreDisplay.from_predictions(ranks, score, thresholds, classes=ranks)
    heights = np.array([text.xy[1] for text in display.ax_.texts])
    assert heights.size >= least
    low, high = display.ax_.get_ylim()
    assert (np.diff(heights) >= 0.045 * (high - low) - 1e-9).all()


def test_a_display_draws_on_given_axes():
    _, ax = pyplot.subplots()
    for name in plot.__all__:
        display = getattr(plot, name).from_estimator(fitted(), X, Y, ax=ax)
        assert display.ax_ is ax
        assert display.figure_ is ax.figure
        assert display.plot().ax_ is not ax


def test_what_does_not_fit_together_is_refused():
    with pytest.raises(ValueError, match="4 grades need 3 thresholds, got 1"):
        ScoreDisplay.from_predictions(Y, np.zeros(200), [0.0])
    with pytest.raises(ValueError, match="200 labels but 3 predictions"):
        ScoreDisplay.from_predictions(Y, np.zeros(3), [0.0, 1.0, 2.0])
    with pytest.raises(ValueError, match="n_bins must be"):
        ReliabilityDisplay.from_estimator(fitted(), X, Y, n_bins=0)


def test_each_tenth_of_the_rows_has_a_point_by_its_margin():
    random = np.random.default_rng(0)
    margin, right = random.random(500), random.random(500) < 0.6
    _, ax = pyplot.subplots()
    panels.accuracy_by_margin(ax, margin, right)
    (line,) = ax.lines
    order = np.argsort(margin).reshape(10, 50)
    np.testing.assert_allclose(line.get_xdata(), margin[order].mean(axis=1))
    np.testing.assert_allclose(line.get_ydata(), 100 * right[order].mean(axis=1))


@pytest.mark.parametrize("with_ranges", [False, True])
def test_lines_of_coverage_are_the_shares_found(with_ranges):
    names = ("coverage", "contains", "expected", "meets")
    ranges = [
        dict(zip(names, row, strict=True)) for row in ((0.5, 0.4, 0.5, 0.6), (0.9, 0.8, 0.9, 1))
    ]
    _, ax = pyplot.subplots()
    panels.coverage(ax, ranges, with_ranges)
    drawn = {line.get_label(): line.get_ydata().tolist() for line in ax.lines}
    expected = {"ideal": [50, 90], "expected": [50, 90], "meets the label": [60, 100]}
    expected |= {"contains the label": [40, 80]}
    if not with_ranges:
        expected = {"ideal": [50, 90], "contains the label": [50, 90]}
    assert drawn == expected
