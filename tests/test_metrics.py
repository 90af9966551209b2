"""Metrics against scikit-learn on ranks, against `score`, and in cross-validation."""

import re
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from examples import graded
from sklearn import metrics as reference
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, KFold, LeaveOneOut, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ordspan import OrdinalPA
from ordspan.metrics import (
    accuracy,
    inside_interval,
    macro_mean_absolute_error,
    mean_absolute_error,
    quadratic_weighted_kappa,
)

METRICS = [
    mean_absolute_error,
    macro_mean_absolute_error,
    accuracy,
    inside_interval,
    quadratic_weighted_kappa,
]
FOR_INTERVALS = [mean_absolute_error, macro_mean_absolute_error, inside_interval]
WITH_DISTANCE = [mean_absolute_error, macro_mean_absolute_error, quadratic_weighted_kappa]

# none of them sorted, evenly spaced or whole numbers from 1
SCALES = {
    "words": ["poor", "fair", "good", "excellent"],
    "uneven numbers": [10, 20, 50, 55],
    "fractions": [0.5, 1.0, 2.25, 7.0],
    "falling numbers": [4, 3, 2, 1],
    "digits as text": ["1", "2", "10", "20"],
}
scales = pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)


@pytest.fixture(params=[0, 1, 2])
def ranks(request):
    rng = np.random.default_rng(request.param)
    true = rng.integers(1, 7, 200)
    return true, np.clip(true + rng.integers(-2, 3, 200), 1, 6)


def spans_and_guesses(n=200, n_classes=4, seed=0):
    rng = np.random.default_rng(seed)
    lower = rng.integers(1, n_classes + 1, n)
    upper = rng.integers(lower, n_classes + 1)
    return np.column_stack([lower, upper]), rng.integers(1, n_classes + 1, n)


# -- on ranks ------------------------------------------------------------------------------------


def test_exact_metrics_are_those_of_scikit_learn(ranks):
    true, predicted = ranks
    kappa = reference.cohen_kappa_score(true, predicted, weights="quadratic")
    assert quadratic_weighted_kappa(true, predicted) == pytest.approx(kappa, rel=1e-12)
    error = reference.mean_absolute_error(true, predicted)
    assert mean_absolute_error(true, predicted) == pytest.approx(error, rel=1e-12)
    assert accuracy(true, predicted) == reference.accuracy_score(true, predicted)


def test_an_exact_label_is_an_interval_of_width_zero(ranks):
    true, predicted = ranks
    for metric in METRICS:
        assert metric(np.column_stack([true, true]), predicted) == metric(true, predicted)
    assert inside_interval(true, predicted) == accuracy(true, predicted)


def test_macro_error_weighs_every_grade_that_occurs_alike(ranks):
    true, predicted = ranks
    keep = true != 4  # an absent grade does not count
    true, predicted = true[keep], predicted[keep]
    each = [np.abs(predicted[true == k] - k).mean() for k in (1, 2, 3, 5, 6)]
    expected = pytest.approx(np.mean(each), rel=1e-12)
    assert macro_mean_absolute_error(true, predicted) == expected


def test_an_interval_counts_as_a_grade_of_its_own():
    true = [[1, 2], [1, 2], [3, 3], [3, 5]]
    found = macro_mean_absolute_error(true, [1, 3, 1, 5], classes=[1, 2, 3, 4, 5])
    assert found == (0.5 + 2 + 0) / 3


def test_the_error_to_an_interval_is_zero_inside():
    spans, guesses = [[2, 4]] * 5, [1, 2, 3, 4, 6]
    assert mean_absolute_error(spans, guesses, classes=range(1, 7)) == 0.6
    assert inside_interval(spans, guesses) == 0.6


@pytest.mark.parametrize(("true", "expected"), [([2, 2, 2], 1.0), ([1, 2, 3], 0.0)])
def test_kappa_of_a_constant_prediction(true, expected):
    assert quadratic_weighted_kappa(true, [2, 2, 2]) == expected


# -- with classes --------------------------------------------------------------------------------


@scales
def test_any_grades_give_the_numbers_of_their_ranks(scale):
    spans, guesses = spans_and_guesses()
    words = np.array(scale)
    for metric in FOR_INTERVALS:
        expected = metric(spans, guesses)
        assert metric(words[spans - 1], words[guesses - 1], classes=scale) == expected
    true = spans[:, 0]
    kappa = reference.cohen_kappa_score(true, guesses, weights="quadratic")
    named = partial(np.take, words)
    for metric, expected in (
        (quadratic_weighted_kappa, kappa),
        (mean_absolute_error, reference.mean_absolute_error(true, guesses)),
        (accuracy, reference.accuracy_score(true, guesses)),
    ):
        found = metric(named(true - 1), named(guesses - 1), classes=scale)
        assert found == pytest.approx(expected, rel=1e-12)


@scales
def test_the_error_to_intervals_is_the_count_of_steps_on_the_scale(scale):
    spans, guesses = spans_and_guesses(n=60)
    steps = []
    for (low, high), guess in zip(spans.tolist(), guesses.tolist(), strict=True):
        inside = scale[low - 1 : high]
        steps.append(min(abs(scale.index(grade) - (guess - 1)) for grade in inside))
    words = np.array(scale)
    found = mean_absolute_error(words[spans - 1], words[guesses - 1], classes=scale)
    assert found == pytest.approx(np.mean(steps), rel=1e-12)


def test_a_grade_that_does_not_occur_counts_in_the_distance():
    grades = ["low", "mid", "high"]
    assert mean_absolute_error(["low"], ["high"], classes=grades) == 2.0
    assert mean_absolute_error([10], [50], classes=[10, 20, 50]) == 2.0


@pytest.mark.parametrize("end", [None, np.nan, np.inf, pd.NA])
def test_open_ends_reach_to_the_outer_grades(end):
    grades = ["low", "mid", "high", "top"]
    spans = np.array([["mid", end], [end, "mid"], ["low", "low"]], dtype=object)
    guesses = ["low", "top", "low"]  # 1 below "mid", 2 above it, right
    for labels in (spans, spans.tolist(), pd.DataFrame(spans)):
        assert mean_absolute_error(labels, guesses, classes=grades) == 1.0
        assert inside_interval(labels, guesses, classes=grades) == 1 / 3
    numbers = [[2, end], [end, 2], [1, 1]]
    assert mean_absolute_error(numbers, [1, 4, 1], classes=[1, 2, 3, 4]) == 1.0


def test_containers_give_the_numbers_of_the_array():
    spans, guesses = spans_and_guesses()
    grades = SCALES["words"]
    words, predicted = np.array(grades)[spans - 1], np.array(grades)[guesses - 1]
    columns = {"lower": words[:, 0], "upper": words[:, 1]}
    for labels in (words.tolist(), pd.DataFrame(columns), pl.DataFrame(columns)):
        for answers in (predicted.tolist(), pd.Series(predicted), pl.Series(predicted)):
            for metric in FOR_INTERVALS:
                expected = metric(spans, guesses)
                assert metric(labels, answers, classes=grades) == expected
    exact, answers = words[:, 0], predicted
    for labels in (exact.tolist(), pd.Series(exact), pl.Series(exact), pd.DataFrame({"y": exact})):
        for metric in METRICS:
            expected = metric(spans[:, 0], guesses)
            assert metric(labels, answers, classes=np.array(grades)) == expected
    pairs = pd.arrays.IntervalArray.from_arrays(spans[:, 0], spans[:, 1], closed="both")
    assert mean_absolute_error(pairs, guesses) == mean_absolute_error(spans, guesses)


def test_an_ordered_categorical_and_an_enum_carry_their_order():
    spans, guesses = spans_and_guesses()
    grades = SCALES["words"]
    true, predicted = np.array(grades)[spans[:, 0] - 1], np.array(grades)[guesses - 1]
    ordered = partial(pd.Categorical, categories=grades, ordered=True)
    enum = partial(pl.Series, dtype=pl.Enum(grades))
    for metric in METRICS:
        expected = metric(spans[:, 0], guesses)
        for wrap in (lambda words: pd.Series(ordered(words)), lambda words: enum(words.tolist())):
            assert metric(wrap(true), predicted) == expected
            assert metric(true, wrap(predicted)) == expected
            assert metric(wrap(true), wrap(predicted)) == expected
    numbers = pd.Series(pd.Categorical([10, 50], categories=[10, 20, 50], ordered=True))
    assert mean_absolute_error(numbers, [50, 50]) == 1.0
    frame = pd.DataFrame({"a": ordered(["poor"]), "b": ordered(["fair"])})
    assert mean_absolute_error(frame, ["excellent"]) == 2.0


def test_given_classes_go_before_those_of_the_container():
    labels = pd.Categorical(["low"], categories=["low", "high"], ordered=True)
    assert mean_absolute_error(labels, ["high"], classes=["low", "mid", "high"]) == 2.0


# -- without classes -----------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    ("true", "predicted"),
    [
        (["low", "mid"], ["mid", "mid"]),
        ([1, 2], ["low", "mid"]),
        (["low", "mid"], [1, 2]),
        (["1", "2"], ["1", "2"]),
        ([["low", "mid"]], ["mid"]),
        (pd.Series(pd.Categorical(["low", "mid"])), ["mid", "mid"]),  # not ordered
        (np.array(["2024-01-01"], dtype="datetime64[D]"), [1]),
    ],
)
def test_words_are_refused_with_code_that_works(metric, true, predicted):
    with pytest.raises(ValueError, match=r"order of grades like .* is not known") as error:
        metric(true, predicted)
    message = str(error.value)
    assert "searchsorted" not in message
    assert f"{metric.__name__}(true, predicted, classes=[...])" in message
    (scorer,) = re.findall(r"make_scorer\(.*\)", message)
    names = {"make_scorer": make_scorer, metric.__name__: metric}
    written = eval(scorer, names)  # the advice is code
    expected = 1 if metric in (accuracy, inside_interval, quadratic_weighted_kappa) else -1
    assert written._sign == expected


@pytest.mark.parametrize("metric", WITH_DISTANCE)
@pytest.mark.parametrize(
    "grades", [[10, 20, 50], [10, 20], [1, 5], [0, 1, 3, 9], [0.5, 1.0], [1.0, 2.5], [-5, 0, 5]]
)
def test_numbers_whose_distance_in_ranks_is_not_known_are_refused(metric, grades):
    with pytest.raises(ValueError, match=r"give every grade .* in classes=: .*make_scorer\("):
        metric(grades, grades)


@pytest.mark.parametrize("metric", [accuracy, inside_interval])
def test_any_numbers_will_do_where_the_order_is_enough(metric):
    assert metric([10, 20, 50], [10, 50, 50]) == 2 / 3
    assert metric([0.5, 1.0], [0.5, 0.5]) == 0.5
    assert inside_interval([[10, 20], [20, 50]], [50, 20]) == 0.5


@pytest.mark.parametrize("first", [-2, 0, 1, 7])
@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.float32, object])
def test_whole_numbers_without_gaps_are_ranks(ranks, first, dtype):
    if first < 0 and dtype is np.uint64:
        return
    true, predicted = ranks
    shifted = [(values - 1 + first).astype(dtype) for values in (true, predicted)]
    for metric in METRICS:
        assert metric(*shifted) == pytest.approx(metric(true, predicted), rel=1e-12)


def test_true_and_false_are_neighbours():
    assert mean_absolute_error([True, False], [True, True]) == 0.5


def test_a_fold_without_a_grade_counts_it_and_warns():
    true, predicted = np.array([1, 3, 4, 5, 3]), np.array([3, 1, 5, 5, 4])
    with pytest.warns(
        UserWarning, match=r"1 and 3 occur, .* counted as 2 ranks .*classes="
    ) as seen:
        found = mean_absolute_error(true, predicted)
    assert found == np.abs(true - predicted).mean()
    assert seen[0].filename == __file__
    assert found == mean_absolute_error(true, predicted, classes=[1, 2, 3, 4, 5])
    with pytest.warns(UserWarning, match="none between them"):
        assert mean_absolute_error([1], [3]) == 2.0
    with pytest.warns(UserWarning, match="none between them"):
        found = quadratic_weighted_kappa(true, predicted)
    kappa = reference.cohen_kappa_score(true, predicted, labels=range(1, 6), weights="quadratic")
    assert found == pytest.approx(kappa, rel=1e-12)


# -- bad input -----------------------------------------------------------------------------------

GRADES = ["low", "mid", "high"]


@pytest.mark.parametrize("metric", FOR_INTERVALS)
@pytest.mark.parametrize(
    ("true", "predicted", "classes", "message"),
    [
        ([1, 2], [1], None, "2 labels but 1 predictions"),
        ([[1, 2, 3]], [1], None, r"must have shape \(n,\) or, for ranges, \(n, 2\)"),
        ([1, 2], [[1, 2], [1, 2]], None, r"predictions must have shape \(n,\)"),
        ([], [], None, "at least one label"),
        ([1, np.nan], [1, 1], None, "row 1 is .*nan"),
        ([1, None], [1, 1], [1, 2], "row 1 is None; only a range can have an open end"),
        ([[1, np.inf]], [1], None, r"row 0: end .*inf.* is open; give .*classes=.*intervals\(\)"),
        ([[1, 2], [None, 2]], [1, 2], None, "row 1: end None .* is open"),
        ([1, 2], [1, np.inf], None, "row 1: prediction .*inf.* is not a grade"),
        ([1, 2], [None, 2], [1, 2], "row 0: prediction None is not a grade"),
        ([[2, 2], [3, 1]], [1, 2], None, "row 1: lower end 3 is above upper end 1; swap"),
        ([["high", "low"]], ["low"], GRADES, "row 0: lower end 'high' is above upper end 'low'"),
        (["low", "top"], ["low", "low"], GRADES, r"row 1: label 'top' is not one of .*\['low'"),
        (["low", "low"], ["low", "top"], GRADES, "row 1: prediction 'top' is not one of the"),
        ([["low", "top"]], ["low"], GRADES, "row 0: label 'top' is not one of the grades"),
        ([1], [4], [1, 2, 3], "row 0: prediction 4 is not one of the grades"),
        (["low"], ["low"], ["low", "low"], "lists 'low' more than once"),
        (["low"], ["low"], ["low"], "at least 2 classes"),
    ],
)
def test_bad_labels_are_named(metric, true, predicted, classes, message):
    with pytest.raises(ValueError, match=message):
        metric(true, predicted, classes=classes)


def test_two_different_orders_are_refused():
    up = pd.Categorical(["a"], categories=["a", "b"], ordered=True)
    down = pd.Categorical(["a"], categories=["b", "a"], ordered=True)
    with pytest.raises(ValueError, match=r"different orders: \['a', 'b'\] and \['b', 'a'\]"):
        mean_absolute_error(up, down)


@pytest.mark.parametrize("metric", [accuracy, quadratic_weighted_kappa])
@pytest.mark.parametrize(
    ("true", "predicted", "classes"), [([[1, 2]], [1], None), ([["low", "mid"]], ["low"], GRADES)]
)
def test_metrics_of_exact_labels_refuse_intervals(metric, true, predicted, classes):
    with pytest.raises(ValueError, match="needs exact labels"):
        metric(true, predicted, classes=classes)


# -- with scikit-learn ---------------------------------------------------------------------------


def error_scorer(classes=None):
    return make_scorer(mean_absolute_error, greater_is_better=False, classes=classes)


@scales
@pytest.mark.parametrize("exact", [True, False])
def test_cross_validation_gives_the_score_of_the_estimator(scale, exact):
    X, ranks, spans = graded(n=120)
    y = np.array(scale)[(ranks if exact else spans) - 1]
    model = OrdinalPA(classes=scale, random_state=0, max_iter=2)
    folds = KFold(4, shuffle=True, random_state=0)
    own = cross_val_score(model, X, y, cv=folds)
    assert own.min() < 0
    found = cross_val_score(model, X, y, cv=folds, scoring=error_scorer(scale))
    np.testing.assert_allclose(found, own, rtol=1e-12)


def test_grades_10_20_50_are_one_rank_apart():
    X, ranks, spans = graded(n_classes=3)
    scale = np.array([10, 20, 50])
    for labels in (scale[ranks - 1], scale[spans - 1]):
        model = OrdinalPA(random_state=0).fit(X[:100], labels[:100])
        found = mean_absolute_error(labels, model.predict(X), classes=[10, 20, 50])
        assert 0 < found == pytest.approx(-model.score(X, labels), rel=1e-12)
    pipeline = make_pipeline(StandardScaler(), OrdinalPA(random_state=0))
    own = cross_val_score(pipeline, X, scale[ranks - 1], cv=3)
    found = cross_val_score(pipeline, X, scale[ranks - 1], cv=3, scoring=error_scorer([10, 20, 50]))
    np.testing.assert_allclose(found, own, rtol=1e-12)


@scales
@pytest.mark.parametrize("exact", [True, False])
def test_a_search_by_the_metric_is_the_search_by_the_score(scale, exact):
    X, ranks, spans = graded(n=90)
    y = np.array(scale)[(ranks if exact else spans) - 1]
    model = OrdinalPA(classes=scale, random_state=0)
    grid = {"C": [0.001, 0.1], "max_iter": [1, 3]}
    own = GridSearchCV(model, grid, cv=3).fit(X, y)
    found = GridSearchCV(model, grid, cv=3, scoring=error_scorer(scale)).fit(X, y)
    means = [search.cv_results_["mean_test_score"] for search in (found, own)]
    np.testing.assert_allclose(*means, rtol=1e-12)
    assert found.best_params_ == own.best_params_
    assert found.score(X, y) == pytest.approx(own.score(X, y), rel=1e-12)


@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_works_as_a_scorer_of_named_grades(metric):
    X, ranks, _ = graded(n=90)
    scale = SCALES["words"]
    y = np.array(scale)[ranks - 1]
    scorers = {"named": make_scorer(metric, classes=scale), "ranks": make_scorer(metric)}
    named, plain = (OrdinalPA(classes=c, random_state=0) for c in (scale, [1, 2, 3, 4]))
    folds = KFold(3, shuffle=True, random_state=0)
    found = cross_val_score(named, X, y, cv=folds, scoring=scorers["named"])
    expected = cross_val_score(plain, X, ranks, cv=folds, scoring=scorers["ranks"])
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_an_ordered_categorical_needs_no_classes_in_cross_validation():
    X, ranks, spans = graded(n=90)
    scale = SCALES["words"]
    ordered = partial(pd.Categorical, categories=scale, ordered=True)
    words = np.array(scale)
    model = OrdinalPA(random_state=0)
    frame = pd.DataFrame({side: ordered(words[spans[:, i] - 1]) for i, side in enumerate("ab")})
    for y in (pd.Series(ordered(words[ranks - 1])), frame):
        own = cross_val_score(model, X, y, cv=3)
        found = cross_val_score(model, X, y, cv=3, scoring=error_scorer())
        np.testing.assert_allclose(found, own, rtol=1e-12)


def test_folds_of_one_row_have_the_distance_of_the_whole_scale():
    X, ranks, _ = graded(n=30)
    y = np.array([10, 20, 50, 55])[ranks - 1]
    model = OrdinalPA(classes=[10, 20, 50, 55], random_state=0, max_iter=1, average=False)
    scorer = error_scorer([10, 20, 50, 55])
    found = cross_val_score(model, X, y, cv=LeaveOneOut(), scoring=scorer)
    assert set(found.tolist()) <= {0.0, -1.0, -2.0, -3.0}
    np.testing.assert_array_equal(found, cross_val_score(model, X, y, cv=LeaveOneOut()))
