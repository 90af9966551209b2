"""Metrics against scikit-learn and their definitions on ranks, against `score`, and as scorers."""

import math
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from examples import graded
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn import metrics as reference
from sklearn.metrics import make_scorer
from sklearn.model_selection import LeaveOneOut, cross_val_score

from ordspan import CalibratedOrdinal, OrdinalPA
from ordspan.metrics import (
    accuracy,
    inside_interval,
    interval_coverage,
    interval_width,
    log_score,
    macro_mean_absolute_error,
    mean_absolute_error,
    quadratic_weighted_kappa,
    ranked_probability_score,
)

FOR_INTERVALS = [mean_absolute_error, macro_mean_absolute_error, inside_interval]
FOR_EXACT = [accuracy, quadratic_weighted_kappa]
METRICS = [*FOR_INTERVALS, *FOR_EXACT]
WITH_DISTANCE = [mean_absolute_error, macro_mean_absolute_error, quadratic_weighted_kappa]

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


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(("first", "dtype"), [(-2, np.int8), (0, np.uint64), (7, object)])
def test_whole_numbers_without_gaps_are_ranks(metric, first, dtype):
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
    for true in (labels, labels.tolist(), pd.DataFrame(columns), pl.DataFrame(columns)):
        for answers in (predicted, predicted.tolist(), pd.Series(predicted), pl.Series(predicted)):
            assert metric(true, answers, classes=scale) == expected


@pytest.mark.parametrize("metric", METRICS)
def test_the_order_of_a_column_counts_for_labels_and_predictions(metric):
    spans, guesses = some_rows(exact=True)
    expected = pytest.approx(by_definition(metric, spans, guesses), **CLOSE)
    true, predicted = np.array(WORDS)[spans[:, 0] - 1], np.array(WORDS)[guesses - 1]
    ordered = pd.CategoricalDtype(WORDS, ordered=True)
    assert metric(pd.Series(true, dtype=ordered), predicted) == expected
    assert metric(true, pd.Series(predicted, dtype=ordered)) == expected


def test_kappa_of_a_constant_prediction():
    assert [quadratic_weighted_kappa(true, [2, 2, 2]) for true in ([2, 2, 2], [1, 2, 3])] == [1, 0]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    ("true", "predicted"),
    [
        (["low", "mid"], ["mid", "mid"]),
        ([1, 2], ["low", "mid"]),
    ],
)
def test_words_are_refused_with_the_way_out(metric, true, predicted):
    with pytest.raises(ValueError, match=r"order of the grades .* is not known.* with classes=\["):
        metric(true, predicted)


@pytest.mark.parametrize("metric", WITH_DISTANCE)
@pytest.mark.parametrize(
    "grades", [[10, 20, 50], [10, 20], [1, 5], [0, 1, 3, 9], [0.5, 1.0], [1.0, 2.5], [-5, 0, 5]]
)
def test_numbers_whose_distance_in_ranks_is_not_known_are_refused(metric, grades):
    with pytest.raises(ValueError, match=r"give every grade .* with classes=.* in make_scorer\("):
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


GRADES = ["low", "mid", "high"]


@pytest.mark.parametrize("metric", FOR_INTERVALS)
@pytest.mark.parametrize(
    ("true", "predicted", "classes", "message"),
    [
        ([1, 2], [1], None, "2 labels but 1 predictions"),
        ([1, 2], [[1, 2], [1, 2]], None, r"predictions must have shape \(n,\)"),
        ([], [], None, "at least one label"),
        ([1, None], [1, 1], [1, 2], "row 1 is None; only a range can have an open end"),
        ([[1, np.inf]], [1], None, r"row 0: end .*inf.* is open; give .*classes=.*intervals\(\)"),
        ([1, 2], [1, np.inf], None, "row 1: prediction .*inf.* is not a grade"),
        ([1, 2], [None, 2], [1, 2], "row 0: prediction None is not a grade"),
        (["low", "low"], ["low", "top"], GRADES, "row 1: prediction 'top' is not one of the"),
    ],
)
def test_bad_labels_are_named(metric, true, predicted, classes, message):
    with pytest.raises(ValueError, match=message):
        metric(true, predicted, classes=classes)


@pytest.mark.parametrize("metric", FOR_EXACT)
def test_metrics_of_exact_labels_refuse_intervals(metric):
    with pytest.raises(ValueError, match="needs exact labels"):
        metric([["low", "mid"]], ["low"], classes=GRADES)


@scales
@pytest.mark.parametrize("exact", [True, False])
def test_cross_validation_gives_the_score_of_the_estimator(scale, exact):
    X, ranks, spans = graded(n=30)
    y = np.array(scale)[(ranks if exact else spans) - 1]
    model = OrdinalPA(classes=scale, random_state=0, max_iter=2)
    own = cross_val_score(model, X, y, cv=LeaveOneOut())
    assert own.min() < 0
    scorer = make_scorer(mean_absolute_error, greater_is_better=False, classes=scale)
    found = cross_val_score(model, X, y, cv=LeaveOneOut(), scoring=scorer)
    np.testing.assert_allclose(found, own, rtol=1e-12)


# -- probabilities -------------------------------------------------------------------------------


SCORES = [ranked_probability_score, log_score]
scores = pytest.mark.parametrize("metric", SCORES)


def score_of(true, share):
    """The ranked probability score of an exact rank, as it is defined."""
    return sum((sum(share[:k]) - (true <= k)) ** 2 for k in range(1, len(share)))


def expected_score(lower, upper, share):
    """The mean score of the grades of a label, each by its probability."""
    inside = range(lower, upper + 1)
    total = math.fsum(share[k - 1] for k in inside)
    if total == 0.0:
        return sum(score_of(k, share) for k in inside) / len(inside)
    return sum(share[k - 1] / total * score_of(k, share) for k in inside)


@st.composite
def labelled(draw, max_grades=6):
    """Ranges of ranks and probabilities, some of them 0 and some tiny."""
    n_grades, n_rows = draw(st.integers(2, max_grades)), draw(st.integers(1, 5))
    parts = st.one_of(st.just(0.0), st.just(1e-200), st.floats(0.001, 1.0))
    weights = draw(arrays(float, (n_rows, n_grades), elements=parts))
    weights[~(weights >= 0.001).any(axis=1), 0] = 1.0
    ends = draw(arrays(int, (n_rows, 2), elements=st.integers(1, n_grades)))
    return np.sort(ends, axis=1), weights / weights.sum(axis=1, keepdims=True)


def some_chances(n_grades=4, n_rows=50, seed=0):
    rng = np.random.default_rng(seed)
    spans = np.sort(rng.integers(1, n_grades + 1, (n_rows, 2)), axis=1)
    return spans, rng.dirichlet(np.ones(n_grades), n_rows)


def classes_of(share):
    return range(1, share.shape[1] + 1)


@given(labelled())
def test_a_range_scores_the_expected_score_of_its_grades(rows):
    spans, share = rows
    expected = [expected_score(*span, row) for span, row in zip(spans, share, strict=True)]
    found = ranked_probability_score(spans, share, classes=classes_of(share))
    assert found == pytest.approx(np.mean(expected), rel=1e-9, abs=1e-12)
    exact = spans[:, 0]
    expected = [score_of(true, row) for true, row in zip(exact, share, strict=True)]
    found = ranked_probability_score(exact, share, classes=classes_of(share))
    assert found == pytest.approx(np.mean(expected), rel=1e-9, abs=1e-12)


@given(labelled())
def test_the_log_score_is_that_of_the_probability_of_the_range(rows):
    spans, share = rows
    found = log_score(spans, share, classes=classes_of(share))
    hits = [row[low - 1 : high].sum() for (low, high), row in zip(spans, share, strict=True)]
    if min(hits) == 0.0:
        assert found == math.inf
    else:
        expected = np.mean([-math.log(hit) for hit in hits])
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert found >= 0.0


def test_a_wide_open_label_scores_how_unsure_the_prediction_is():
    share = np.array([[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]])
    at_most = share.cumsum(axis=1)[:, :2]
    expected = (at_most * (1 - at_most)).sum() / 2
    wide = [[None, None]] * 2
    assert ranked_probability_score(wide, share, classes=[1, 2, 3]) == pytest.approx(expected)
    for table in (share, share * (1 + 5e-7)):  # rounded probabilities may sum to more than 1
        found = log_score(wide, np.minimum(table, 1.0), classes=[1, 2, 3])
        assert (found, math.copysign(1.0, found)) == (0.0, 1.0)


@scores
def test_any_grades_give_the_scores_of_their_ranks(metric):
    spans, share = some_chances()
    expected = pytest.approx(metric(spans, share, classes=[1, 2, 3, 4]), rel=1e-12)
    words = np.array(WORDS)[spans - 1]
    columns = {side: words[:, i] for i, side in enumerate(("lower", "upper"))}
    for labels in (words, words.tolist(), pd.DataFrame(columns), pl.DataFrame(columns)):
        for table in (share, share.tolist(), pd.DataFrame(share), pl.DataFrame(share)):
            assert metric(labels, table, classes=WORDS) == expected
    ordered = pd.CategoricalDtype(WORDS, ordered=True)
    assert metric(pd.DataFrame(columns).astype(ordered), share) == expected


@scores
@pytest.mark.parametrize("numbers", [[0, 1, 2, 3], [1, 2, 3, 4], [10, 20, 50, 55], [0.5, 1, 2, 7]])
def test_numbers_need_no_classes_if_all_occur(metric, numbers):
    spans, share = some_chances()
    labels = np.array(numbers)[spans - 1]
    assert np.unique(labels).size == 4
    assert metric(labels, share) == metric(spans, share, classes=[1, 2, 3, 4])


@scores
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1, 2, 2], r"2 grades occur, \[1, 2\], but the probabilities have shape \(3, 3\)"),
        ([[1, 2], [3, 4], [1, 1]], "4 grades occur"),
        (["low", "mid", "high"], "order of the grades .* is not known"),
        ([[1, None], [2, 2], [3, 3]], "row 0: end None of the range is open"),
    ],
)
def test_an_unknown_scale_is_refused_with_the_way_out(metric, labels, message):
    with pytest.raises(ValueError, match=rf"{message}.* classes=\["):
        metric(labels, np.full((3, 3), 1 / 3))


@scores
def test_the_probability_of_the_higher_of_two_grades_is_enough(metric):
    share = np.array([0.25, 0.5, 1.0])
    both = np.column_stack([1 - share, share])
    labels = [["no", "yes"], ["yes", "yes"], ["yes", "yes"]]
    expected = metric(labels, both, classes=["no", "yes"])
    assert metric(labels, share, classes=["no", "yes"]) == expected


EVEN = [0.25] * 4


@scores
@pytest.mark.parametrize(
    ("true", "proba", "classes", "message"),
    [
        ([1, 2], [EVEN], [1, 2, 3, 4], "2 labels but 1 rows of probabilities"),
        ([], np.empty((0, 4)), [1, 2, 3, 4], "at least one label"),
        ([1], [EVEN], [1, 2, 3], r"3 grades, \[1, 2, 3\], but .* shape \(1, 4\); give one"),
        ([1], [0.5], [1, 2, 3], r"3 grades, .* shape \(1,\)"),
        ([1], [[EVEN]], [1, 2, 3, 4], r"numbers of shape \(n, K\), .* have shape \(1, 1, 4\)"),
        ([1], [["a", "b"]], [1, 2], r"must be numbers of shape \(n, K\).*'a'"),
        ([1, 1], [[1], [0.5, 0.5]], [1, 2], "must be numbers of shape"),
        ([1, 1], [[0, 1], [-0.5, 1.5]], [1, 2], r"row 1: probability -0\.5 is not between 0 and 1"),
        ([1, 1], [[0, 1], [0, np.nan]], [1, 2], "row 1: probability nan is not between"),
        ([1, 1], [[0, 1], [0, np.inf]], [1, 2], "row 1: probability inf is not between"),
        ([1, 2], [0.5, 2], [1, 2], r"row 1: probability 2\.0 is not between"),  # predicted grades
        ([1, 1], [[0, 1], [0.5, 0.25]], [1, 2], r"row 1: .*\[0\.5, 0\.25\] sum to 0\.75, not"),
        ([[2, 1]], [[0, 1]], [1, 2], "row 0: lower end 2 is above upper end 1"),
    ],
)
def test_bad_probabilities_are_named(metric, true, proba, classes, message):
    with pytest.raises(ValueError, match=message):
        metric(true, proba, classes=classes)


@scores
@pytest.mark.parametrize("n_classes", [2, 4])
def test_every_score_works_as_a_scorer_of_named_grades(metric, n_classes):
    X, _, spans = graded(n=60, n_classes=n_classes)
    scale = WORDS[:n_classes]
    y = np.array(scale)[spans - 1]
    model = CalibratedOrdinal(OrdinalPA(classes=scale, random_state=0), random_state=0).fit(X, y)
    options = {"greater_is_better": False, "response_method": "predict_proba", "classes": scale}
    found = make_scorer(metric, **options)(model, X, y)
    assert found == pytest.approx(-metric(y, model.predict_proba(X), classes=scale), rel=1e-12)


# -- predicted ranges ----------------------------------------------------------------------------


CONTAIN, MEET = (partial(interval_coverage, count=how) for how in ("contain", "meet"))


@st.composite
def honest(draw, n_grades=6):
    """True ranks, labels that hold them, and predicted ranges."""
    n_rows = draw(st.integers(1, 8))
    triples = draw(arrays(int, (n_rows, 3), elements=st.integers(1, n_grades)))
    true = np.sort(triples, axis=1)
    ends = draw(arrays(int, (n_rows, 2), elements=st.integers(1, n_grades)))
    return true[:, 1], true[:, [0, 2]], np.sort(ends, axis=1)


def grades_of(span):
    return set(range(span[0], span[1] + 1))


@given(honest())
def test_coverage_of_the_true_grades_lies_between_contain_and_meet(rows):
    true, labels, predicted = rows
    covered = interval_coverage(true, predicted)
    assert CONTAIN(true, predicted) == MEET(true, predicted) == covered
    assert CONTAIN(labels, predicted) <= covered <= MEET(labels, predicted)
    assert covered == inside_interval(predicted, true)
    pairs = [tuple(map(grades_of, pair)) for pair in zip(labels, predicted, strict=True)]
    assert CONTAIN(labels, predicted) == np.mean([label <= found for label, found in pairs])
    assert MEET(labels, predicted) == np.mean([bool(label & found) for label, found in pairs])
    width = np.mean([len(found) for _, found in pairs])
    assert interval_width(predicted, classes=range(1, 7)) == pytest.approx(width, rel=1e-12)


@pytest.mark.parametrize("scale", [WORDS, [10, 20, 50, 55], [4, 3, 2, 1], [0.5, 1.0, 2.25, 7.0]])
def test_any_grades_give_the_coverage_and_width_of_their_ranks(scale):
    rng = np.random.default_rng(0)
    labels, predicted = np.sort(rng.integers(1, 5, (2, 50, 2)), axis=2)
    named_labels, named = np.array(scale)[labels - 1], np.array(scale)[predicted - 1]
    columns = {side: named[:, i] for i, side in enumerate(("lower", "upper"))}
    for answers in (named, named.tolist(), pd.DataFrame(columns), pl.DataFrame(columns)):
        for coverage in (CONTAIN, MEET):
            found = coverage(named_labels, answers, classes=scale)
            assert found == coverage(labels, predicted)
        assert interval_width(answers, classes=scale) == interval_width(predicted)


def test_coverage_needs_the_order_of_numbers_only_and_width_their_ranks():
    assert interval_coverage([10, 50], [[10, 20], [10, 20]]) == 0.5
    with pytest.raises(ValueError, match=r"how many ranks .* classes=\["):
        interval_width([[10, 20], [10, 50]])
    with pytest.warns(UserWarning, match="none between them; they are counted as 2 ranks") as seen:
        assert interval_width([[1, 3]]) == 3.0
    assert seen[0].filename == __file__


def test_ranges_as_labels_need_a_choice():
    with pytest.raises(ValueError, match=r"row 1: the label is a range.*'contain'.*lower.*'meet'"):
        interval_coverage([[1, 1], [1, 2]], [[1, 1], [1, 1]])
    with pytest.raises(ValueError, match="count must be 'contain', 'meet' or None, got 'expected'"):
        interval_coverage([1], [[1, 1]], count="expected")


@pytest.mark.parametrize(
    ("predicted", "classes", "message"),
    [
        ([1, 2], None, r"must have shape \(n, 2\), .* as predict_interval returns them"),
        ([[1, 2, 3], [1, 2, 3]], None, r"shape \(n,\) or, for ranges, \(n, 2\)"),
        (np.empty((0, 2)), None, "at least one label"),
        ([[1, 2], [1, np.nan]], None, "row 1: prediction .*nan.* is not a grade"),
        ([[1, 2], [None, 2]], [1, 2], "row 1: prediction None is not a grade"),
        ([[1, 2], [1, 4]], [1, 2, 3], "row 1: prediction 4 is not one of the grades"),
        ([[1, 2], [2, 1]], None, "row 1: lower end 2 is above upper end 1; swap the two col"),
    ],
)
def test_bad_predictions_are_named(predicted, classes, message):
    with pytest.raises(ValueError, match=message):
        interval_width(predicted, classes=classes)
    with pytest.raises(ValueError, match=message):
        interval_coverage([1] * len(predicted), predicted, classes=classes)
