"""Labels as people write them are ranges for `parse_intervals`, and never grades by accident."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from ordspan import OrdinalPA, parse_intervals
from ordspan.estimators.targets import find_classes, read_labels
from ordspan.files.grades import LabelColumns, LabelReader

FIVE = [1, 2, 3, 4, 5]
WRITTEN = ["3-5", "at least 3", "4+", "<=2", "4", "(1,3]", "under 3", "2 to 3", "5"]
MEANT = [[3, 5], [3, 5], [4, 5], [1, 2], [4, 4], [2, 3], [1, 2], [2, 3], [5, 5]]
AGES = ["18-24", "25-34", "35-44", "65+"]


def grades(labels, given=None):
    return find_classes(read_labels(labels), given)


# -- parse_intervals -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "column", [list, np.array, pd.Series, pl.Series, lambda words: np.array(words, dtype=object)]
)
def test_written_labels_become_the_ranges_they_mean(column):
    found = parse_intervals(column(WRITTEN), classes=FIVE)
    assert found.dtype == np.int64
    assert found.tolist() == MEANT


def test_files_read_the_same_ranges():
    table = pl.DataFrame({"y": WRITTEN})
    ranks = LabelReader(np.array(FIVE)).read(table, LabelColumns("y"))[:2]
    np.testing.assert_array_equal(parse_intervals(WRITTEN, classes=FIVE), np.column_stack(ranks))


def test_without_classes_the_numbers_that_occur_are_the_grades():
    assert parse_intervals(["1-2", 4, ">=2", 3.0]).tolist() == [[1, 2], [4, 4], [2, 4], [3, 3]]
    assert parse_intervals([2.5, 1]).tolist() == [[2.5, 2.5], [1, 1]]


@pytest.mark.parametrize("gone", [None, np.nan, pd.NA, pd.NaT, "", "NA"])
def test_a_missing_label_may_be_any_grade(gone):
    column = pd.Series(["2", gone, 3], dtype=object)
    assert parse_intervals(column, classes=FIVE).tolist() == [[2, 2], [1, 5], [3, 3]]


def test_missing_values_of_typed_columns_may_be_any_grade():
    for column in (
        [1.0, np.nan, 3.0],
        ["1", None, "3"],
        pl.Series(["1", None, "3"]),
        pd.Series(["1", None, "3"], dtype="string"),
        pd.Series([1, None, 3], dtype="Int64"),
    ):
        assert parse_intervals(column).tolist() == [[1, 1], [1, 3], [3, 3]]


def test_a_named_grade_is_itself_and_bands_can_be_ends():
    found = parse_intervals(["25-34", "up to 25-34", "35-44 or older"], classes=AGES)
    assert found.tolist() == [["25-34"] * 2, ["18-24", "25-34"], ["35-44", "65+"]]
    assert parse_intervals(["None", None], classes=["None", "some"]).tolist() == [
        ["None", "None"],
        ["None", "some"],
    ]


def test_the_order_of_a_categorical_is_kept():
    column = pd.Categorical(["mid", "low"], categories=["low", "mid", "high"], ordered=True)
    assert parse_intervals(column).tolist() == [["mid", "mid"], ["low", "low"]]


@pytest.mark.parametrize(
    ("labels", "classes", "message"),
    [
        (["1", "2", "3-7", "3-7"], FIVE, r"^row 2: label '3-7': grade '7' is not among \[1, 2"),
        (["1", "often"], FIVE, "^row 1: label 'often': grade 'often' is not among"),
        (["5-3"], FIVE, "^row 0: label '5-3': the lower end .* swap them"),
        (["low", "low-high", "high"], None, r"order must be given: classes=.*\['high', 'low'\]"),
        ([[1, 2], [2, 3]], FIVE, r"one column, got shape \(2, 2\); .*intervals\(lower, upper\)"),
        ([], None, r"too few grades, \[\]"),
    ],
)
def test_what_cannot_be_read_is_named(labels, classes, message):
    with pytest.raises(ValueError, match=message):
        parse_intervals(labels, classes=classes)


def test_no_labels_are_no_error_if_the_grades_are_given():
    assert parse_intervals([], classes=FIVE).shape == (0, 2)


# -- estimators ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "label", "ends"),
    [
        (["1", "2", "1-2"], "1-2", "'1' and '2'"),
        ([1, 2, "1–2"], "1–2", "'1' and '2'"),
        (["1", "2", "3", "at least 3"], "at least 3", "'3'"),
        (["1", "2", "1+"], "1\\+", "'1'"),
        (["1", "2", "3", ">1"], ">1", "'1'"),
        (["low", "high", "low-high"], "low-high", "'low' and 'high'"),
        (["A", "B", "C", "better than C"], "better than C", "'C'"),
        ([*AGES, "35-44 or older"], "35-44 or older", "'35-44'"),
    ],
)
def test_a_range_of_other_labels_is_no_grade(labels, label, ends):
    message = rf"label '{label}' reads as a range of other labels \(here {ends}\): .*"
    with pytest.raises(ValueError, match=message + r"parse_intervals\(y, .* classes="):
        grades(labels)
    assert grades(labels, labels).size == len(labels)  # the user's word counts
    order = pd.CategoricalDtype(list(map(str, labels)), ordered=True)
    assert grades(pd.Series(list(map(str, labels)), dtype=order)).size == len(labels)


@pytest.mark.filterwarnings("ignore:the order of the grades was not given")
@pytest.mark.parametrize(
    "labels",
    [
        AGES,
        ["0", "1-2", "3-5", "6+"],
        ["0", "1", "2", ">2"],
        ["<1", "1", "2"],
        ["<=50K", ">50K"],
        ["NO", "<30", ">30"],
        ["A", "A-", "B+", "B"],
        ["1", "1-", "2", "2-"],
        ["pre-school", "school", "post-school"],
        ["1st-4th", "5th-6th", "9th"],
        ["-1", "1", "-2", "2"],
        ["1.5", "2.5", "-", "[,]"],
    ],
)
def test_grades_that_only_look_like_ranges_stay_grades(labels):
    assert sorted(grades(labels)) == sorted(labels)


def test_an_estimator_says_how_to_read_text():
    X = np.arange(6.0)[:, None]
    text = ["1-2", "1", "2", "3", "at least 2", "3"]
    with pytest.raises(ValueError, match=r"label '1-2' .*parse_intervals"):
        OrdinalPA().fit(X, text)
    model = OrdinalPA(classes=[1, 2, 3], random_state=0)
    advice = r"row 0: label '1-2' is not one of the grades \[1, 2, 3\]; .*parse_intervals\(y"
    with pytest.raises(ValueError, match=advice):
        model.fit(X, text)
    model.fit(X, parse_intervals(text, classes=[1, 2, 3]))
    for learn_or_score in (model.partial_fit, model.score):
        with pytest.raises(ValueError, match=advice):
            learn_or_score(X, text)
    with pytest.raises(ValueError, match=r"'often' is not one of .* list every grade in classes"):
        OrdinalPA(classes=[1, 2, 3]).fit(X, ["often"] * 6)
    with pytest.raises(ValueError, match=r"'1-2' is not one of .* list every grade in classes"):
        OrdinalPA(classes=["1", "2", "3"]).fit(X, [["1-2", "3"]] * 6)  # an end, not a label
