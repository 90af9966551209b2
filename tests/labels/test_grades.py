"""The order of the grades: listed, or that of whole and half numbers; all else is asked for."""

import re
import shlex

import numpy as np
import pandas as pd
import pytest

from ordspan import OrdinalPA, parse_intervals
from ordspan.labels.grades import grades_hint, read_order

AGES = ["18-24", "25-34", "35-44", "65+"]


def grades_in(labels, classes=None):
    X = np.arange(len(labels), dtype=float)[:, None]
    return OrdinalPA(classes=classes).fit(X, labels).classes_.tolist()


@pytest.mark.parametrize(
    "classes",
    [
        ["low", "mid", "high"],
        np.array(["low", "mid", "high"], dtype=object),
        (3, 2, 1),
        [0.37, 1.22],
        ["1", "1-2", "2"],
        np.array(["2024-01-01", "2024-02-01"], dtype="M8[D]"),
    ],
)
def test_listed_grades_may_be_anything_and_keep_their_order(classes):
    assert grades_in(classes, classes) == np.array(classes).tolist()


def test_orders_are_lists_or_ranges():
    assert read_order('"low, bad",mid').tolist() == ["low, bad", "mid"]
    assert read_order("4..1").tolist() == [4, 3, 2, 1]
    assert read_order("b, a").tolist() == ["b", "a"]
    assert read_order("1,1.3").tolist() == [1.0, 1.3]
    for wrong in ("a,,b", "a,a", "a", "2,1,4,3"):
        with pytest.raises(ValueError):
            read_order(wrong)


@pytest.mark.parametrize(
    "grades", [[1, 2, 3], [1.0, 1.5], ["low, bad", "mid"], ['say "a"', "b"], ["18-24", "25+"]]
)
def test_the_hint_can_be_typed(grades):
    (typed,) = re.findall(r"--grades (.*)\)$", grades_hint(grades))
    (word,) = shlex.split(typed)
    assert read_order(word).tolist() == grades


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


NO_ORDER = (
    r"the order of the grades \[.*\] is not known: give it from lowest to highest with "
    r"classes=\[\.\.\.\] or as an ordered Categorical$"
)


@pytest.mark.parametrize(
    ("labels", "classes", "message"),
    [
        ([1, 2], [1, 2, 2], "lists 2 more than once"),
        ([1, 2], ["a", "b", "a"], "lists 'a' more than once"),
        ([1, 2], (3, 1, 2), r"\[3, 1, 2\] neither rise nor fall; .*lowest.*classes=\[1, 2, 3\]"),
        ([1, 2], [[1, 2]], "1-d list from lowest to highest, got 2-d"),
        ([1, 2], ["a"], "found only the grade 'a' .*; list all grades: classes="),
        ([1, 2], [], "found no grades; list all grades: classes="),
        ([1, 2], [1.0, np.nan], "must be finite"),
        (["low", "high"], None, NO_ORDER),
        ([["low", "mid"], ["mid", "high"]], None, NO_ORDER),
        (["low", "low"], None, NO_ORDER),
        (["1", "2", "many"], None, NO_ORDER),
        (["1", "nan"], None, NO_ORDER),
        (["1", ""], None, "; '' is an empty cell: None is an open end"),
        (pd.Series(pd.Categorical(["low", "high"])), None, NO_ORDER),
        (np.array(["2024-01-01", "2024-02-01"], dtype="datetime64[D]"), None, NO_ORDER),
        (AGES, None, NO_ORDER),
        (["<=50K", ">50K"], None, NO_ORDER),
        (["A", "A-", "B+", "B"], None, NO_ORDER),
        (["pre-school", "school", "post-school"], None, NO_ORDER),
        (["1", "1.0", "2"], None, r"two of the labels \['1', '1.0', '2'\] are the same"),
        ([0.37, 1.22, 2.0], None, "Unknown label type: continuous. Labels like .* look like measu"),
        (["10.37", "1.22", "2"], None, r"\[1.22, 10.37\] look like measurements: .*classes=\["),
        ([[1, 0.37]], None, "look like measurements"),
    ],
)
def test_grades_without_an_order_and_bad_lists_are_refused(labels, classes, message):
    with pytest.raises(ValueError, match=message):
        grades_in(labels, classes)


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


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["1", "2", "x"], "row 2: label 'x'"),
        (["low", "high", "low-high"], r"--grades .*\); 'low-high' is a range of others"),
        (["below average", "average", "above average"], r"'above average' is a range of others"),
        (
            ["low", "high", "-"],
            r"order of .*\['high', 'low'\] is not known.*; '-' \(1 row\).*--na -\)",
        ),
        (
            ["no, I", "yes"],
            r"\['no, I', 'yes'\] is not known.*--grades '\"no, I\",yes'\), put in order",
        ),
        (["25+", "18-24", "other"], r"\['18-24', '25\+', 'other'\] is not known.*--grades"),
        (["25+", "18-24", "unknown"], r"--brackets.*--grades.*'unknown' \(1 row\).*--na unknown"),
        ([*"0123456", "99", "99"], r"^99 \(2 rows\) lies far .*--na COLUMN:99\).*--grades 0,1,2"),
        ([*"12345", "9", "9"], r"^9 \(2 rows\) lies far .*--na COLUMN:9\).*--grades 1,2,3,4,5,9"),
        ([*"012", "-8", "-9", "98"], r"^-9 and -8 and 98 \(3 rows\) lie far"),
        (["$0-$9,999", "$10k+", "?"], r"'\$0-\$9,999' look like brackets.*--brackets.*--na '\?'"),
        (["25+", "18–24", "<18"], r"'<18' look like brackets.*--grades '<18,18-24,25\+'\); if"),
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
        parse_intervals(words)
