"""The order of the grades: listed, or that of whole and half numbers; all else is asked for."""

import re
import shlex

import numpy as np
import pandas as pd
import pytest

from ordspan.labels.grades import check_classes, classes_of, grades_hint, read_order
from ordspan.labels.ranks import find_classes, read_labels

AGES = ["18-24", "25-34", "35-44", "65+"]


def grades_in(labels, classes=None):
    return find_classes(*read_labels(labels), classes).tolist()


# -- listed grades -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "classes",
    [
        ["low", "mid", "high"],
        np.array(["low", "mid", "high"], dtype=object),
        (3, 1, 2),
        [0.37, 1.22],
        ["1", "1-2", "2"],
    ],
)
def test_listed_grades_may_be_anything_and_keep_their_order(classes):
    assert check_classes(classes).tolist() == list(classes)
    assert grades_in(classes, classes) == list(classes)


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ([1, 2, 2], "lists 2 more than once"),
        (["a", "b", "a"], "lists 'a' more than once"),
        ([[1, 2]], "1-d list from lowest to highest, got 2-d"),
        (["a"], "found only the grade 'a' .*; list all grades: classes="),
        ([], "found no grade; list all grades: classes="),
        ([1.0, np.nan], "must be finite"),
    ],
)
def test_bad_classes_are_named(classes, message):
    with pytest.raises(ValueError, match=message):
        check_classes(classes)


def test_orders_are_lists_or_ranges():
    assert read_order('"low, bad",mid').tolist() == ["low, bad", "mid"]
    assert read_order("0..4").tolist() == [0, 1, 2, 3, 4]
    assert read_order("4..1").tolist() == [4, 3, 2, 1]
    assert read_order("b, a").tolist() == ["b", "a"]
    assert read_order("1,1.3").tolist() == [1.0, 1.3]
    for wrong in ("a,,b", "a,a", "a"):
        with pytest.raises(ValueError):
            read_order(wrong)


@pytest.mark.parametrize(
    "grades", [[1, 2, 3], [1.0, 1.5], ["low, bad", "mid"], ['say "a"', "b"], ["18-24", "25+"]]
)
def test_the_hint_can_be_typed(grades):
    (typed,) = re.findall(r"--grades (.*)\)$", grades_hint(grades))
    (word,) = shlex.split(typed)
    assert read_order(word).tolist() == grades


# -- grades found in labels ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "grades"),
    [
        ([3, 1, 2, 1], [1, 2, 3]),
        ([[1, 4], [2, 2]], [1, 2, 4]),
        ([[3.0, np.inf], [np.nan, 1.0]], [1, 3]),
        ([2, 0.5, 1], [0.5, 1, 2]),
        ([True, False], [False, True]),
        (["10", "2", "1"], ["1", "2", "10"]),
        ([["10", None], ["2", "10"]], ["2", "10"]),
        (["1.5", "-1", "0"], ["-1", "0", "1.5"]),
        ([1, "10", "2"], ["1", "2", "10"]),
    ],
)
def test_whole_and_half_numbers_sort_as_numbers(labels, grades):
    assert grades_in(labels) == grades


@pytest.mark.parametrize(
    "labels",
    [
        ["low", "high"],
        [["low", "mid"], ["mid", "high"]],
        ["low", "low"],
        ["1", "2", "many"],
        ["1", "nan"],
        pd.Series(pd.Categorical(["low", "high"])),
        np.array(["2024-01-01", "2024-02-01"], dtype="datetime64[D]"),
        AGES,
        ["0", "1-2", "3-5", "6+"],
        ["<=50K", ">50K"],
        ["A", "A-", "B+", "B"],
        ["pre-school", "school", "post-school"],
    ],
)
def test_text_and_dates_have_no_order_of_their_own(labels):
    message = (
        r"the order of the grades \[.*\] is not known: give it from lowest to highest with "
        r"classes=\[\.\.\.\] or as an ordered Categorical$"
    )
    with pytest.raises(ValueError, match=message):
        grades_in(labels)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["1", "1.0", "2"], r"two of the labels \['1', '1.0', '2'\] are the same"),
        ([0.37, 1.22, 2.0], r"Unknown label type: continuous. Labels like .* look like measur"),
        (["0.37", "1.22", "2"], r"look like measurements: .*classes=\["),
        ([[1, 0.37]], r"look like measurements"),
    ],
)
def test_numbers_written_twice_and_measurements_are_no_grades(labels, message):
    with pytest.raises(ValueError, match=message):
        grades_in(labels)


@pytest.mark.parametrize(
    ("labels", "label"),
    [
        (["1", "2", "1-2"], "1-2"),
        ([1, 2, "1–2"], "1–2"),
        (["1", "2", "3", "at least 3"], "at least 3"),
        (["1", "2", "1+"], "1+"),
        (["low", "high", "low-high"], "low-high"),
        (["A", "B", "C", "better than C"], "better than C"),
        ([*AGES, "35-44 or older"], "35-44 or older"),
    ],
)
def test_a_range_of_other_labels_is_no_grade_unless_it_is_listed(labels, label):
    with pytest.raises(ValueError) as error:
        grades_in(labels)
    assert f"; {label!r} is a range of others (read by ordspan.parse_intervals)" in str(error.value)
    words = list(map(str, labels))
    assert grades_in(words, words) == words  # the user's word counts
    assert grades_in(pd.Series(pd.Categorical(words, categories=words, ordered=True))) == words


# -- grades found in written labels --------------------------------------------------------------


def test_grades_are_all_numbers_that_labels_name():
    assert classes_of(["3", "1-2", ">=4", "<=0", "[2,7]", ""]).tolist() == [0, 1, 2, 3, 4, 7]
    assert classes_of(["1", "2", "3-4", ">1", "<3"]).tolist() == [1, 2, 3, 4]
    assert classes_of(["1", "2.5"]).tolist() == [1.0, 2.5]
    assert classes_of(["1", "2", "x"]).tolist() == [1, 2]  # the reader reports the line of "x"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["low", "high", "low-high"], r"--grades .*\); 'low-high' is a range of others"),
        (["below average", "average", "above average"], r"'above average' is a range of others"),
        (["Low", "low", "mid"], r"order of the grades \['Low', 'low', 'mid'\] is not known"),
        (["25+", "18-24", "other"], r"\['18-24', '25\+', 'other'\] is not known.*--grades"),
        (["25+", "18-24", "unknown"], r"--brackets.*--grades.*'unknown' \(1 row\).*--na unknown"),
        (["1", "2", "-", "-"], r"^'-' \(2 rows\): leave such rows out with na=\['-'\] \(--na -\)"),
        ([*"0123456", "99", "99"], r"^99 \(2 rows\) lies farther .*--na 99\).*--grades 0,1,2"),
        ([*"012", "-8", "-9", "98"], r"^-9 and -8 and 98 \(3 rows\) lies farther"),
        (["$0-$9,999", "$10k+", "?"], r"'\$0-\$9,999' look like brackets.*--brackets.*--na '\?'"),
        (["25+", "18–24", "<18"], r"give classes=.*--grades '<18,18-24,25\+'\); if"),
        (["18-24", "25-34", "35+"], r"such as '18-24' look like brackets of amounts: .*--grades"),
        (["1", "2", "4", ">3"], r"do not show which grades '>3' means: .*--grades"),  # is 3 one?
        (["1", "2", "3", ">3"], "do not show which grades '>3' means"),  # what is above 3?
        (["1", "2", "under 1"], "do not show which grades 'under 1' means"),
        (["1.5", "2.5", "(1.5,3)"], r"do not show which grades '\(1.5,3\)' means"),
        (["1", "2", "1.37"], r"Labels like \[1.37\] look like measurements.*--grades"),
        (["1", "1-2.2"], r"Labels like \[2.2\] look like measurements.*--grades"),
        (["3", ""], "found only the grade 3 .*; list all grades: .*--grades"),
    ],
)
def test_what_labels_do_not_show_is_asked_for(words, message):
    with pytest.raises(ValueError, match=message):
        classes_of(words)
