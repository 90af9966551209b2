"""Labels as people write them are ranges, or an error that says what was meant."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest

from ordspan import parse_intervals
from ordspan.labels.text import LabelReader

FIVE = [1, 2, 3, 4, 5]
WRITTEN = ["3-5", "at least 3", "4+", "<=2", "4", "(1,3]", "under 3", "2 to 3", "5"]
MEANT = [[3, 5], [3, 5], [4, 5], [1, 2], [4, 4], [2, 3], [1, 2], [2, 3], [5, 5]]
AGES = ["18-24", "25-34", "35-44", "65+"]


NUMBERED = LabelReader(np.array(FIVE))
NAMED = LabelReader(np.array(["low", "mid-low", "mid", "high"]))
BELOW = LabelReader(np.array([-2, -1, 0, 1]))
LARGE = LabelReader(np.array([9007199254740992, 9007199254740993]))  # equal as floats


# -- parse_intervals -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "column", [list, np.array, pd.Series, pl.Series, lambda words: np.array(words, dtype=object)]
)
def test_written_labels_become_the_ranges_they_mean(column):
    found = parse_intervals(column(WRITTEN), classes=FIVE)
    assert found.dtype == np.int64
    assert found.tolist() == MEANT


GONE = [[1, 1], [1, 3], [3, 3]]


@pytest.mark.parametrize(
    ("labels", "classes", "meant"),
    [
        (["1-2", 4, ">=2", 3.0], None, [[1, 2], [4, 4], [2, 4], [3, 3]]),
        ([2.5, 1], None, [[2.5, 2.5], [1, 1]]),
        ([], FIVE, []),
        (["None", None], ["None", "some"], [["None", "None"], ["None", "some"]]),
        (["25-34", "up to 25-34"], AGES, [["25-34", "25-34"], ["18-24", "25-34"]]),
        (["35-44 or older", "65+"], AGES, [["35-44", "65+"], ["65+", "65+"]]),
        (pd.Categorical(["b", "a"], ["b", "a"], ordered=True), None, [["b", "b"], ["a", "a"]]),
        # a missing label may be any grade
        ([1.0, np.nan, 3.0], None, GONE),
        (["1", None, "3"], None, GONE),
        (pl.Series(["1", None, "3"]), None, GONE),
        (pd.Series(["1", None, "3"], dtype="string"), None, GONE),
        (pd.Series([1, None, 3], dtype="Int64"), None, GONE),
    ]
    + [
        (pd.Series(["1", gone, 3], dtype=object), [1, 2, 3], GONE)
        for gone in (None, np.nan, pd.NA, pd.NaT, "", "NA")
    ],
)
def test_labels_of_any_column_become_ranges_of_its_grades(labels, classes, meant):
    assert parse_intervals(labels, classes=classes).tolist() == meant


@pytest.mark.parametrize(
    ("labels", "classes", "message"),
    [
        (["1", "2", "3-7", "3-7"], FIVE, r"^row 2: label '3-7': grade '7' is not among \[1, 2"),
        (["1", "often"], FIVE, "^row 1: label 'often': grade 'often' is not among"),
        (["1", "2", ">2"], [1, 2], "^row 2: label '>2': no grade among .* lies inside"),
        (["5-3"], FIVE, "^row 0: label '5-3': the lower end .* swap them"),
        (["low", "low-high", "high"], None, r"'low-high'\] is not known: .* with classes="),
        ([[1, 2], [2, 3]], FIVE, r"one column, got shape \(2, 2\); .*intervals\(lower, upper\)"),
        ([], None, "found no grade; list all grades: classes="),
    ],
)
def test_what_cannot_be_read_is_named(labels, classes, message):
    with pytest.raises(ValueError, match=message):
        parse_intervals(labels, classes=classes)


# -- one label -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("grades", "word", "ends"),
    [
        (NUMBERED, "4.0", (4, 4)),
        (NUMBERED, " 3 - 5 ", (3, 5)),
        (NUMBERED, "[4, ]", (4, 5)),
        (NUMBERED, "(-inf, 3.0]", (1, 3)),
        (NUMBERED, "[ 2 ; 4 )", (2, 3)),
        (NUMBERED, "At\u00a0Least 4", (4, 5)),
        (NUMBERED, "3\u2009\u2212\u20095", (3, 5)),
        *((NUMBERED, f"2 {dash} 3", (2, 3)) for dash in "-‐‑‒–—―−"),
        *((NAMED, f"mid{dash}low", (2, 2)) for dash in "-‐‑‒–—―−"),
        (NUMBERED, "<2.5", (1, 2)),
        (NUMBERED, "over 0", (1, 5)),
        (NUMBERED, "[2,9)", (2, 5)),
        (NAMED, "mid-low", (2, 2)),
        (NAMED, "low-mid", (1, 3)),
        (NAMED, "mid-low-high", (2, 4)),
        (NAMED, "low..mid-low", (1, 2)),
        (NAMED, "mid–low", (2, 2)),
        (NAMED, "mid-low or better", (2, 4)),
        (NAMED, ">mid-low", (3, 4)),
        (BELOW, "-2--1", (1, 2)),
        (BELOW, "−2 – −1", (1, 2)),
        (BELOW, "-1..1", (2, 4)),
        (BELOW, ">-2", (2, 4)),
        (BELOW, "-2-1", (1, 4)),
        (LARGE, "9007199254740993", (2, 2)),
    ],
)
def test_grades_may_hold_signs_and_ranges_may_end_between_them(grades, word, ends):
    assert grades.interval(word) == ends


def test_a_known_grade_is_never_a_range():
    letters = LabelReader(np.array(["None", "B", "B+", "above B+", "A"]))
    assert [letters.interval(w) for w in ("B+", "above B+", ">B+")] == [(3, 3), (4, 4), (4, 5)]
    assert letters.interval("[B,above B+]") == (2, 4)
    assert letters.end("None", open_end=5) == 1
    assert LabelReader(np.array(["A", "NA", "B"])).interval("[A,NA]") == (1, 2)
    with pytest.raises(ValueError, match=r"'A\+' is not among .*; did you mean 'A'\?"):
        letters.interval("A+")


def test_a_label_with_two_readings_is_refused():
    with pytest.raises(ValueError, match=r"'a-b-c' may mean \[a,b-c\] or \[a-b,c\]; write one"):
        LabelReader(np.array(["a", "a-b", "b-c", "c"])).interval("a-b-c")


def test_numbers_outside_the_order_are_compared_only_where_the_order_ascends():
    down = LabelReader(np.array([5, 4, 3]))
    assert down.interval(">4") == (3, 3)
    with pytest.raises(ValueError, match=r"3\.5' is not among"):
        down.interval(">3.5")


@pytest.mark.parametrize(
    ("word", "wrong", "meant"),
    [
        ("Low", "Low", "low"),
        (" mid - low", "mid - low", "mid-low"),
        ("lwo", "lwo", "low"),
        ("LOW to High", "LOW", "low"),
        ("low-hgih", "hgih", "high"),
        (">=Mid", "Mid", "mid"),
        ("mid-lo", "mid-lo", "mid-low"),
    ],
)
def test_an_unknown_name_is_an_error_that_proposes_what_was_meant(word, wrong, meant):
    message = rf"grade '{wrong}' is not among \['low', .*\]; did you mean '{meant}'\? If not, write"
    with pytest.raises(ValueError, match=message):
        NAMED.interval(word)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("9", "'9' is not among"),
        ("", "empty"),
        ("5-3", "lower end of '5-3' is above"),
        ("huge", "'huge' is not among"),
        (">=", "'>=' is not among"),
        ("3-7", "grade '7' is not among"),
        ("at least 9", "grade '9' is not among"),
        ("3;5", "'3;5' is not among"),  # two answers, or a range?
        ("3-inf", "'3-inf' is not among"),
        (">5", "no grade among .* lies inside '>5': >=, <=, .* include an end"),
        ("<1", "no grade among .* lies inside '<1': >=, <=, .* include an end; else write"),
        (">9", "no grade among .* lies inside '>9'"),
        ("(3,4)", r"no grade among \[1, 2, 3, 4, 5\] lies inside '\(3,4\)'"),
        ("-" * 5000, "not among"),
    ],
)
def test_an_unknown_grade_is_reported(word, message):
    with pytest.raises(ValueError, match=message):
        NUMBERED.interval(word)


def test_a_message_suggests_ranges_of_the_grades_at_hand():
    grades = LabelReader(np.array(["18-24", "25-34", "35-44", "45-54", "55+"]))
    with pytest.raises(ValueError, match="35' is not among") as caught:
        grades.interval("under 35")
    suggested = re.search(r"such as '(.*)' or '(.*)', or add", str(caught.value)).groups()
    assert suggested == ("up to 25-34", "at least 35-44")
    assert [grades.interval(word) for word in suggested] == [(1, 2), (3, 5)]


def test_a_slash_joins_neighbours_only():
    assert {NUMBERED.interval(word) for word in ("3/4", "3 / 4", "3 or 4")} == {(3, 4)}
    with pytest.raises(ValueError, match="no pair of neighbours"):
        LabelReader(np.arange(1, 11)).interval("4/10")
    assert LabelReader(np.array(["yes/no", "mid", "a/b"])).interval("yes/no to a/b") == (1, 3)
