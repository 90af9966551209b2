"""Scores of probabilities against their definitions, grade by grade."""

import math
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from examples import graded
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import make_scorer

from ordspan import CalibratedOrdinal, OrdinalPA
from ordspan.metrics import log_score, mean_absolute_error, ranked_probability_score

SCORES = [ranked_probability_score, log_score]
scores = pytest.mark.parametrize("metric", SCORES)
GRADES = ["poor", "fair", "good", "excellent"]  # not in alphabetical order


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


def some_rows(n_grades=4, n_rows=50, seed=0):
    rng = np.random.default_rng(seed)
    spans = np.sort(rng.integers(1, n_grades + 1, (n_rows, 2)), axis=1)
    return spans, rng.dirichlet(np.ones(n_grades), n_rows)


def classes_of(share):
    return range(1, share.shape[1] + 1)


# -- definitions ---------------------------------------------------------------------------------


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


def test_a_sure_prediction_scores_its_distance_in_ranks():
    true, predicted = np.arange(5).repeat(5), np.tile(np.arange(5), 5)
    found = ranked_probability_score(true, np.eye(5)[predicted])
    assert found == mean_absolute_error(true, predicted)


def test_a_wide_open_label_scores_how_unsure_the_prediction_is():
    share = np.array([[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]])
    at_most = share.cumsum(axis=1)[:, :2]
    expected = (at_most * (1 - at_most)).sum() / 2
    wide = [[None, None]] * 2
    assert ranked_probability_score(wide, share, classes=[1, 2, 3]) == pytest.approx(expected)
    for table in (share, share * (1 + 5e-7)):  # rounded probabilities may sum to more than 1
        found = log_score(wide, np.minimum(table, 1.0), classes=[1, 2, 3])
        assert (found, math.copysign(1.0, found)) == (0.0, 1.0)


def test_tiny_probabilities_are_not_lost_beside_one():
    share = [[1.0, 1e-300, 1e-300]]
    assert log_score([[2, 3]], share, classes=[1, 2, 3]) == pytest.approx(-math.log(2e-300))
    found = ranked_probability_score([[2, 3]], share, classes=[1, 2, 3])
    assert found == pytest.approx(1.5)


@pytest.mark.parametrize("seed", range(5))
def test_ranges_change_nothing_on_average_if_probabilities_are_right(seed):
    share = np.random.default_rng(seed).dirichlet(np.ones(5))
    pieces = [[1, 2], [3, 3], [4, 5]]  # a label is the piece with the true grade in it

    def expected(labels):
        return sum(
            share[low - 1 : high].sum()
            * ranked_probability_score([[low, high]], [share], classes=range(1, 6))
            for low, high in labels
        )

    assert expected(pieces) == pytest.approx(expected([[k, k] for k in range(1, 6)]), rel=1e-12)


@scores
@pytest.mark.parametrize("seed", range(5))
def test_true_probabilities_have_the_best_expected_score(metric, seed):
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(4, 3.0))
    labels = [[1, 2], [3, 3], [4, 4]] if metric is log_score else [[k, k] for k in range(1, 5)]

    def expected(share):
        return sum(
            truth[low - 1 : high].sum() * metric([[low, high]], [share], classes=[1, 2, 3, 4])
            for low, high in labels
        )

    for other in rng.dirichlet(np.ones(4), 30):
        assert expected(truth) <= expected(other) + 1e-12


# -- grades and their order ----------------------------------------------------------------------


@scores
def test_any_grades_give_the_numbers_of_their_ranks(metric):
    spans, share = some_rows()
    expected = metric(spans, share, classes=[1, 2, 3, 4])
    words = np.array(GRADES)[spans - 1]
    columns = {side: words[:, i] for i, side in enumerate(("lower", "upper"))}
    for labels in (words, words.tolist(), pd.DataFrame(columns), pl.DataFrame(columns)):
        for table in (share, share.tolist(), pd.DataFrame(share), pl.DataFrame(share)):
            assert metric(labels, table, classes=GRADES) == pytest.approx(expected, rel=1e-12)
    close = pytest.approx(expected, rel=1e-5)
    assert metric(words, share.astype(np.float32), classes=GRADES) == close


@scores
def test_an_ordered_categorical_and_an_enum_carry_their_order(metric):
    spans, share = some_rows()
    words = np.array(GRADES)[spans[:, 0] - 1]
    expected = metric(words, share, classes=GRADES)
    ordered = pd.Series(pd.Categorical(words, categories=GRADES, ordered=True))
    assert metric(ordered, share) == expected
    assert metric(pl.Series(words.tolist(), dtype=pl.Enum(GRADES)), share) == expected


@scores
@pytest.mark.parametrize("numbers", [[0, 1, 2, 3], [1, 2, 3, 4], [10, 20, 50, 55], [0.5, 1, 2, 7]])
def test_numbers_need_no_classes_if_all_occur(metric, numbers):
    spans, share = some_rows()
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
def test_an_unknown_scale_is_refused_with_code_that_works(metric, labels, message):
    with pytest.raises(ValueError, match=message) as error:
        metric(labels, np.full((3, 3), 1 / 3))
    assert f"{metric.__name__}(true, proba, classes=[...])" in str(error.value)
    (scorer,) = re.findall(r"make_scorer\(.*?\]\)", str(error.value))
    written = eval(scorer, {"make_scorer": make_scorer, metric.__name__: metric})
    assert written._sign == -1
    assert written._response_method == "predict_proba"


@scores
def test_the_probability_of_the_higher_of_two_grades_is_enough(metric):
    share = np.array([0.25, 0.5, 1.0])
    both = np.column_stack([1 - share, share])
    labels = [["no", "yes"], ["yes", "yes"], ["yes", "yes"]]
    expected = metric(labels, both, classes=["no", "yes"])
    assert metric(labels, share, classes=["no", "yes"]) == expected


# -- bad input -----------------------------------------------------------------------------------

EVEN = [0.25] * 4


@scores
@pytest.mark.parametrize(
    ("true", "proba", "classes", "message"),
    [
        ([1, 2], [EVEN], [1, 2, 3, 4], "2 labels but 1 rows of probabilities"),
        ([], np.empty((0, 4)), [1, 2, 3, 4], "at least one label"),
        (
            [1],
            [EVEN],
            [1, 2, 3],
            r"3 grades, \[1, 2, 3\], but .* shape \(1, 4\); give one column",
        ),
        ([1], [0.5], [1, 2, 3], r"3 grades, .* shape \(1,\)"),
        ([1], [[EVEN]], [1, 2, 3, 4], r"numbers of shape \(n, K\), .* have shape \(1, 1, 4\)"),
        ([1], [["a", "b"]], [1, 2], r"must be numbers of shape \(n, K\).*'a'"),
        ([1, 1], [[1], [0.5, 0.5]], [1, 2], "must be numbers of shape"),
        ([1, 1], [[0, 1], [-0.5, 1.5]], [1, 2], r"row 1: probability -0\.5 is not between 0 and 1"),
        ([1, 1], [[0, 1], [0, np.nan]], [1, 2], "row 1: probability nan is not between"),
        ([1, 1], [[0, 1], [0, np.inf]], [1, 2], "row 1: probability inf is not between"),
        ([1, 2], [0.5, 2], [1, 2], r"row 1: probability 2\.0 is not between"),  # predicted grades
        ([1, 1], [[0, 1], [0.5, 0.25]], [1, 2], r"row 1: .*\[0\.5, 0\.25\] sum to 0\.75, not"),
        ([1, None], [[0, 1], [0, 1]], [1, 2], "row 1 is None"),
        (["low"], [[0, 1]], ["a", "b"], "row 0: label 'low' is not one of the grades"),
        ([[2, 1]], [[0, 1]], [1, 2], "row 0: lower end 2 is above upper end 1"),
    ],
)
def test_bad_input_is_named(metric, true, proba, classes, message):
    with pytest.raises(ValueError, match=message):
        metric(true, proba, classes=classes)


# -- with scikit-learn ---------------------------------------------------------------------------


@scores
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("exact", [True, False])
def test_every_score_works_as_a_scorer_of_named_grades(metric, n_classes, exact):
    X, ranks, spans = graded(n=60, n_classes=n_classes)
    scale = GRADES[:n_classes]
    y = np.array(scale)[(ranks if exact else spans) - 1]
    model = CalibratedOrdinal(OrdinalPA(classes=scale, random_state=0), random_state=0).fit(X, y)
    options = {"greater_is_better": False, "response_method": "predict_proba", "classes": scale}
    found = make_scorer(metric, **options)(model, X, y)
    expected = -metric(y, model.predict_proba(X), classes=scale)
    assert found == pytest.approx(expected, rel=1e-12)
