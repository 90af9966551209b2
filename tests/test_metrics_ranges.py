"""Coverage and width of predicted ranges, grade by grade."""

import re
from functools import partial

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
from ordspan.metrics import inside_interval, interval_coverage, interval_width

CONTAIN, MEET = (partial(interval_coverage, count=how) for how in ("contain", "meet"))
GRADES = ["poor", "fair", "good", "excellent"]  # not in alphabetical order


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


def some_ranges(n_rows=50, seed=0):
    rng = np.random.default_rng(seed)
    return (np.sort(rng.integers(1, 5, (n_rows, 2)), axis=1) for _ in range(2))


# -- definitions ---------------------------------------------------------------------------------


@given(honest())
def test_coverage_of_the_true_grades_lies_between_contain_and_meet(rows):
    true, labels, predicted = rows
    covered = interval_coverage(true, predicted)
    assert CONTAIN(true, predicted) == MEET(true, predicted) == covered
    assert CONTAIN(labels, predicted) <= covered <= MEET(labels, predicted)
    assert covered == inside_interval(predicted, true)


@given(honest())
def test_coverage_is_the_share_of_ranges_that_contain_or_meet_the_label(rows):
    _, labels, predicted = rows
    pairs = [tuple(map(grades_of, pair)) for pair in zip(labels, predicted, strict=True)]
    assert CONTAIN(labels, predicted) == np.mean([label <= found for label, found in pairs])
    assert MEET(labels, predicted) == np.mean([bool(label & found) for label, found in pairs])


@given(honest())
def test_width_is_the_mean_number_of_grades(rows):
    *_, predicted = rows
    expected = np.mean([len(grades_of(span)) for span in predicted])
    assert interval_width(predicted, classes=range(1, 7)) == pytest.approx(expected, rel=1e-12)


# -- grades and their order ----------------------------------------------------------------------


@pytest.mark.parametrize("scale", [GRADES, [10, 20, 50, 55], [4, 3, 2, 1], [0.5, 1.0, 2.25, 7.0]])
def test_any_grades_give_the_numbers_of_their_ranks(scale):
    labels, predicted = some_ranges()
    named_labels, named = np.array(scale)[labels - 1], np.array(scale)[predicted - 1]
    columns = {side: named[:, i] for i, side in enumerate(("lower", "upper"))}
    for answers in (named, named.tolist(), pd.DataFrame(columns), pl.DataFrame(columns)):
        for coverage in (CONTAIN, MEET):
            found = coverage(named_labels, answers, classes=scale)
            assert found == coverage(labels, predicted)
        assert interval_width(answers, classes=scale) == interval_width(predicted)


def test_coverage_needs_the_order_of_numbers_only_and_width_their_ranks():
    assert interval_coverage([10, 50], [[10, 20], [10, 20]]) == 0.5
    with pytest.raises(ValueError, match=r"interval_width\(predicted, classes=\[\.\.\.\]\)$"):
        interval_width([[10, 20], [10, 50]])
    with pytest.warns(UserWarning, match="none between them; they are counted as 2 ranks") as seen:
        assert interval_width([[1, 3]]) == 3.0
    assert seen[0].filename == __file__


def test_words_are_refused_with_code_that_works():
    with pytest.raises(ValueError, match=r"order of the grades .* is not known") as error:
        interval_coverage(["low"], [["low", "mid"]])
    (scorer,) = re.findall(r"make_scorer\(.*\)", str(error.value))
    names = {"make_scorer": make_scorer, "interval_coverage": interval_coverage}
    assert eval(scorer, names)._sign == 1


# -- bad input -----------------------------------------------------------------------------------


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
        (
            [[1, 2], [2, 1]],
            None,
            "row 1: lower end 2 is above upper end 1; swap the two in this row",
        ),
    ],
)
def test_bad_predictions_are_named(predicted, classes, message):
    with pytest.raises(ValueError, match=message):
        interval_width(predicted, classes=classes)
    with pytest.raises(ValueError, match=message):
        interval_coverage([1] * len(predicted), predicted, classes=classes)


# -- with scikit-learn ---------------------------------------------------------------------------


def test_coverage_works_as_a_scorer():
    X, ranks, spans = graded(n=60)
    names = np.array(GRADES)
    model = CalibratedOrdinal(OrdinalPA(classes=GRADES, random_state=0), random_state=0)
    model.fit(X, names[spans - 1])
    scorer = make_scorer(interval_coverage, response_method=["predict_interval"], classes=GRADES)
    y = names[ranks - 1]
    expected = interval_coverage(y, model.predict_interval(X), classes=GRADES)
    assert 0.5 < expected == scorer(model, X, y)
