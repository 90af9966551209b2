"""Metrics against scikit-learn and their definitions on ranks, against `score`, and as scorers."""

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

from ordspan import OrdinalPA
from ordspan.metrics import (
    accuracy,
    inside_interval,
    macro_mean_absolute_error,
    mean_absolute_error,
    quadratic_weighted_kappa,
)

FOR_INTERVALS = [mean_absolute_error, macro_mean_absolute_error, inside_interval]
FOR_EXACT = [accuracy, quadratic_weighted_kappa]
METRICS = [*FOR_INTERVALS, *FOR_EXACT]
WITH_DISTANCE = [mean_absolute_error, macro_mean_absolute_error, quadratic_weighted_kappa]
ERRORS = [mean_absolute_error, macro_mean_absolute_error]

# none of them sorted, evenly spaced or whole numbers from 1
SCALES = {
    "words": ["poor", "fair", "good", "excellent"],
    "uneven numbers": [10, 20, 50, 55],
    "fractions": [0.5, 1.0, 2.25, 7.0],
    "falling numbers": [4, 3, 2, 1],
    "digits as text": ["1", "2", "10", "20"],
}
WORDS = SCALES["words"]
scales = pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
CLOSE = {"rel": 1e-12}


def by_definition(metric, spans, guesses):
    """The metric of labels [lower, upper] and guesses, all of them ranks, row by row."""
    if metric is quadratic_weighted_kappa:
        kappa = partial(reference.cohen_kappa_score, weights="quadratic", labels=range(1, 7))
        return kappa(spans[:, 0], guesses)
    errors = {}
    for (low, high), guess in zip(spans.tolist(), guesses.tolist(), strict=True):
        nearest = min(abs(rank - guess) for rank in range(low, high + 1))
        errors.setdefault((low, high), []).append(nearest)
    every = np.concatenate(list(errors.values()))
    return {
        mean_absolute_error: every.mean(),
        macro_mean_absolute_error: np.mean([np.mean(group) for group in errors.values()]),
        accuracy: (every == 0).mean(),
        inside_interval: (every == 0).mean(),
    }[metric]


def some_rows(n_classes=4, exact=False, seed=0):
    rng = np.random.default_rng(seed)
    lower = rng.integers(1, n_classes + 1, 200)
    upper = lower if exact else rng.integers(lower, n_classes + 1)
    return np.column_stack([lower, upper]), rng.integers(1, n_classes + 1, 200)


def rows_of(metric, **options):
    return some_rows(exact=metric in FOR_EXACT, **options)


# -- definitions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("first", [-2, 0, 1, 7])
@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.float32, object])
def test_whole_numbers_without_gaps_are_ranks(metric, first, dtype):
    if first < 0 and dtype is np.uint64:
        return
    spans, guesses = rows_of(metric, n_classes=6)
    expected = pytest.approx(by_definition(metric, spans, guesses), **CLOSE)
    labels, predicted = ((values - 1 + first).astype(dtype) for values in (spans, guesses))
    assert metric(labels, predicted) == expected
    if metric in FOR_EXACT:
        assert metric(labels[:, 0], predicted) == expected


@scales
@pytest.mark.parametrize("metric", METRICS)
def test_any_grades_in_any_container_give_the_numbers_of_their_ranks(metric, scale):
    spans, guesses = rows_of(metric)
    expected = pytest.approx(by_definition(metric, spans, guesses), **CLOSE)
    labels, predicted = np.array(scale)[spans - 1], np.array(scale)[guesses - 1]
    columns = {"lower": labels[:, 0], "upper": labels[:, 1]}
    containers = [labels, labels.tolist(), pd.DataFrame(columns), pl.DataFrame(columns)]
    if metric in FOR_EXACT:
        one = labels[:, 0]
        containers += [one.tolist(), pd.Series(one), pl.Series(one), pd.DataFrame({"y": one})]
    for given in containers:
        for answers in (predicted, predicted.tolist(), pd.Series(predicted), pl.Series(predicted)):
            assert metric(given, answers, classes=scale) == expected


@pytest.mark.parametrize("metric", METRICS)
def test_an_ordered_categorical_and_an_enum_carry_their_order(metric):
    spans, guesses = some_rows(exact=True)
    expected = pytest.approx(by_definition(metric, spans, guesses), **CLOSE)
    true, predicted = np.array(WORDS)[spans[:, 0] - 1], np.array(WORDS)[guesses - 1]
    ordered = partial(pd.Categorical, categories=WORDS, ordered=True)
    enum = partial(pl.Series, dtype=pl.Enum(WORDS))
    for wrap in (lambda words: pd.Series(ordered(words)), lambda words: enum(words.tolist())):
        assert metric(wrap(true), predicted) == expected
        assert metric(true, wrap(predicted)) == expected
        assert metric(wrap(true), wrap(predicted)) == expected
    if metric in FOR_INTERVALS:
        frame = pd.DataFrame({"a": ordered(true), "b": ordered(true)})
        assert metric(frame, predicted) == expected


def test_pandas_intervals_are_ranges():
    spans, guesses = some_rows()
    pairs = pd.arrays.IntervalArray.from_arrays(*spans.T, closed="both")
    assert mean_absolute_error(pairs, guesses) == mean_absolute_error(spans, guesses)


def test_given_classes_go_before_those_of_the_container():
    labels = pd.Categorical(["low"], categories=["low", "high"], ordered=True)
    assert mean_absolute_error(labels, ["high"], classes=["low", "mid", "high"]) == 2.0


@pytest.mark.parametrize(("true", "expected"), [([2, 2, 2], 1.0), ([1, 2, 3], 0.0)])
def test_kappa_of_a_constant_prediction(true, expected):
    assert quadratic_weighted_kappa(true, [2, 2, 2]) == expected


@pytest.mark.parametrize("end", [None, np.nan, np.inf, pd.NA])
def test_open_ends_reach_to_the_outer_grades(end):
    grades = ["low", "mid", "high", "top"]
    spans = np.array([["mid", end], [end, "mid"], ["low", "low"]], dtype=object)
    guesses = ["low", "top", "low"]  # 1 below "mid", 2 above it, right
    for labels in (spans, spans.tolist(), pd.DataFrame(spans)):
        assert mean_absolute_error(labels, guesses, classes=grades) == 1.0
        assert inside_interval(labels, guesses, classes=grades) == 1 / 3


# -- without classes -----------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    ("true", "predicted"),
    [
        (["low", "mid"], ["mid", "mid"]),
        ([1, 2], ["low", "mid"]),
        ([["low", "mid"]], ["mid"]),
        (pd.Series(pd.Categorical(["low", "mid"])), ["mid", "mid"]),  # not ordered
        (np.array(["2024-01-01"], dtype="datetime64[D]"), [1]),
    ],
)
def test_words_are_refused_with_code_that_works(metric, true, predicted):
    with pytest.raises(ValueError, match=r"order of the grades .* is not known") as error:
        metric(true, predicted)
    message = str(error.value)
    assert f"{metric.__name__}(true, predicted, classes=[...])" in message
    (scorer,) = re.findall(r"make_scorer\(.*\)", message)
    written = eval(scorer, {"make_scorer": make_scorer, metric.__name__: metric})
    assert written._sign == (-1 if metric in ERRORS else 1)


@pytest.mark.parametrize("metric", METRICS)
def test_numbers_in_strings_are_numbers(metric):
    true, predicted = [8, 9, 10, 11], [9, 9, 11, 8]
    expected = metric(true, predicted)
    assert metric(list(map(str, true)), list(map(str, predicted))) == expected
    with pytest.raises(ValueError, match="row 0: prediction 9 is not one of the grades"):
        metric(list(map(str, true)), predicted)


@pytest.mark.parametrize("metric", WITH_DISTANCE)
@pytest.mark.parametrize(
    "grades", [[10, 20, 50], [10, 20], [1, 5], [0, 1, 3, 9], [0.5, 1.0], [1.0, 2.5], [-5, 0, 5]]
)
def test_numbers_whose_distance_in_ranks_is_not_known_are_refused(metric, grades):
    with pytest.raises(ValueError, match=r"give every grade .* in classes=: .*make_scorer\("):
        metric(grades, grades)


def test_any_numbers_will_do_where_the_order_is_enough():
    for metric in (accuracy, inside_interval):
        assert metric([10, 20, 50], [10, 50, 50]) == 2 / 3
        assert metric([0.5, 1.0], [0.5, 0.5]) == 0.5
    assert inside_interval([[10, 20], [20, 50]], [50, 20]) == 0.5
    assert mean_absolute_error([True, False], [True, True]) == 0.5


@pytest.mark.parametrize("metric", WITH_DISTANCE)
def test_a_fold_without_a_grade_counts_it_and_warns(metric):
    true, predicted = np.array([1, 3, 4, 5, 3]), np.array([3, 1, 5, 5, 4])
    with pytest.warns(
        UserWarning, match=r"1 and 3 occur, .* counted as 2 ranks .*classes="
    ) as seen:
        found = metric(true, predicted)
    assert seen[0].filename == __file__
    expected = by_definition(metric, np.column_stack([true, true]), predicted)
    assert found == pytest.approx(expected, **CLOSE)
    assert found == metric(true, predicted, classes=[1, 2, 3, 4, 5])


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
        ([1, 2], [1, np.inf], None, "row 1: prediction .*inf.* is not a grade"),
        ([1, 2], [None, 2], [1, 2], "row 0: prediction None is not a grade"),
        ([[2, 2], [3, 1]], [1, 2], None, "row 1: lower end 3 is above upper end 1; swap"),
        ([["high", "low"]], ["low"], GRADES, "row 0: lower end 'high' is above upper end 'low'"),
        (["low", "top"], ["low", "low"], GRADES, r"row 1: label 'top' is not one of .*\['low'"),
        (["low", "low"], ["low", "top"], GRADES, "row 1: prediction 'top' is not one of the"),
        ([["low", "top"]], ["low"], GRADES, "row 0: label 'top' is not one of the grades"),
        (["low"], ["low"], ["low", "low"], "lists 'low' more than once"),
        (["low"], ["low"], ["low"], "found only the grade"),
    ],
)
def test_bad_labels_are_named(metric, true, predicted, classes, message):
    with pytest.raises(ValueError, match=message):
        metric(true, predicted, classes=classes)


def test_two_different_orders_are_refused():
    up = pd.Categorical(["a"], categories=["a", "b"], ordered=True)
    down = pd.Categorical(["a"], categories=["b", "a"], ordered=True)
    with pytest.raises(ValueError, match=r"differ in order: \['a', 'b'\] and \['b', 'a'\]"):
        mean_absolute_error(up, down)


@pytest.mark.parametrize("metric", FOR_EXACT)
def test_metrics_of_exact_labels_refuse_intervals(metric):
    for true, predicted, classes in ([[1, 2]], [1], None), ([["low", "mid"]], ["low"], GRADES):
        with pytest.raises(ValueError, match="needs exact labels"):
            metric(true, predicted, classes=classes)


# -- with scikit-learn ---------------------------------------------------------------------------


def error_scorer(classes=None):
    return make_scorer(mean_absolute_error, greater_is_better=False, classes=classes)


@scales
@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize(
    ("folds", "n"), [(KFold(4, shuffle=True, random_state=0), 120), (LeaveOneOut(), 30)]
)
def test_cross_validation_gives_the_score_of_the_estimator(scale, exact, folds, n):
    X, ranks, spans = graded(n=n)
    y = np.array(scale)[(ranks if exact else spans) - 1]
    model = OrdinalPA(classes=scale, random_state=0, max_iter=2)
    own = cross_val_score(model, X, y, cv=folds)
    assert own.min() < 0
    found = cross_val_score(model, X, y, cv=folds, scoring=error_scorer(scale))
    np.testing.assert_allclose(found, own, rtol=1e-12)


def test_a_search_by_the_metric_is_the_search_by_the_score():
    X, _, spans = graded(n=90)
    y = np.array(WORDS)[spans - 1]
    model = OrdinalPA(classes=WORDS, random_state=0)
    grid = {"C": [0.001, 0.1], "max_iter": [1, 3]}
    own = GridSearchCV(model, grid, cv=3).fit(X, y)
    found = GridSearchCV(model, grid, cv=3, scoring=error_scorer(WORDS)).fit(X, y)
    means = [search.cv_results_["mean_test_score"] for search in (found, own)]
    np.testing.assert_allclose(*means, rtol=1e-12)
    assert found.best_params_ == own.best_params_


@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_works_as_a_scorer_of_named_grades(metric):
    X, ranks, _ = graded(n=90)
    named, plain = (OrdinalPA(classes=c, random_state=0) for c in (WORDS, [1, 2, 3, 4]))
    validated = partial(cross_val_score, cv=KFold(3, shuffle=True, random_state=0))
    words = np.array(WORDS)[ranks - 1]
    found = validated(named, X, words, scoring=make_scorer(metric, classes=WORDS))
    expected = validated(plain, X, ranks, scoring=make_scorer(metric))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_an_ordered_categorical_needs_no_classes_in_cross_validation():
    X, ranks, spans = graded(n=90)
    ordered = partial(pd.Categorical, categories=WORDS, ordered=True)
    words = np.array(WORDS)
    model = OrdinalPA(random_state=0)
    frame = pd.DataFrame({side: ordered(words[spans[:, i] - 1]) for i, side in enumerate("ab")})
    for y in (pd.Series(ordered(words[ranks - 1])), frame):
        own = cross_val_score(model, X, y, cv=3)
        found = cross_val_score(model, X, y, cv=3, scoring=error_scorer())
        np.testing.assert_allclose(found, own, rtol=1e-12)
