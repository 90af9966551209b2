"""Words of label columns as intervals of ranks."""

import re

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from ordspan.commands.models import KnownGrades
from ordspan.files.grades import LabelColumns, LabelReader, classes_of, read_order

FIVE = LabelReader(np.arange(1, 6))
NAMED = LabelReader(np.array(["low", "mid-low", "mid", "high"]))
BELOW = LabelReader(np.array([-2, -1, 0, 1]))
LARGE = LabelReader(np.array([9007199254740992, 9007199254740993]))  # equal as floats


@pytest.mark.parametrize(
    ("grades", "word", "ends"),
    [
        (FIVE, "4.0", (4, 4)),
        (FIVE, " 3 - 5 ", (3, 5)),
        (FIVE, "[4, ]", (4, 5)),
        (FIVE, "(-inf, 3.0]", (1, 3)),
        (FIVE, "[ 2 ; 4 )", (2, 3)),
        (FIVE, "At\u00a0Least 4", (4, 5)),
        (FIVE, "3\u2009\u2212\u20095", (3, 5)),
        (FIVE, "<2.5", (1, 2)),
        (FIVE, "over 0", (1, 5)),
        (FIVE, "[2,9)", (2, 5)),
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


@pytest.mark.parametrize("dash", "-‐‑‒–—―−")
def test_every_dash_is_a_hyphen(dash):
    assert FIVE.interval(f"2 {dash} 3") == (2, 3)
    assert NAMED.interval(f"mid{dash}low") == (2, 2)


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


def test_a_model_proposes_what_was_meant_too():
    message = r"'Low' is not among the model's \['low', .*did you mean 'low'\? If not, correct it"
    with pytest.raises(ValueError, match=message):
        KnownGrades(NAMED.classes).interval("Low")


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
        (">5", "no grade is above '5' among .*; write >=5 if it is included"),
        ("<1", "no grade is below '1' among .*; write <=1 if it is included"),
        (">9", "no grade is above '9' among"),
        ("(3,4)", r"no grade of \[1, 2, 3, 4, 5\] lies inside '\(3,4\)'"),
        ("-" * 5000, "not among"),
    ],
)
def test_an_unknown_grade_is_reported(word, message):
    with pytest.raises(ValueError, match=message):
        FIVE.interval(word)


def test_an_empty_end_is_open_and_crossed_ends_are_faults():
    table = pl.DataFrame({"lo": ["2", "", "5", None], "hi": ["3", "2", "4", "x"]})
    lower, upper, faults = FIVE.read(table, LabelColumns(lower="lo", upper="hi"))
    assert (lower[:2].tolist(), upper[:2].tolist()) == ([2, 1], [3, 2])
    assert "lo 5 is above hi 4" in faults[2]
    assert "'x' is not among" in faults[3]
    lower, upper, faults = FIVE.read(table, LabelColumns(lower="lo"))
    assert (lower.tolist(), upper.tolist(), faults) == ([2, 1, 5, 1], [5] * 4, {})


@pytest.mark.parametrize("column", [[1, 2, 5], [1.0, 2.0, 5.0], ["1", "2", "5"]])
def test_a_grade_is_the_same_in_every_type_of_column(column):
    lower, upper, faults = FIVE.read(pl.from_arrow(pa.table({"y": column})), LabelColumns("y"))
    assert (lower.tolist(), upper.tolist(), faults) == ([1, 2, 5], [1, 2, 5], {})


def test_classes_are_all_numbers_that_labels_name():
    assert classes_of(["3", "1-2", ">=4", "<=0", "[2,7]", ""]).tolist() == [0, 1, 2, 3, 4, 7]
    assert classes_of(["1", "2", "3-4", ">1", "<3"]).tolist() == [1, 2, 3, 4]
    assert classes_of(["1", "2.5"]).tolist() == [1.0, 2.5]
    assert classes_of(["1", "2", "?"]).tolist() == [1, 2]  # the reader reports the line of "?"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["low", "high", "low-high", ">=low"], r"classes=.*--grades .* of \['high', 'low'\]"),
        (["below average", "average", "above average"], r"'above average' is a range of these, u"),
        (["25+", "18–24", "<18"], r"give classes=.*--grades '<18,18-24,25\+'\); otherwise"),
        (["25+", "18-24", "unknown"], r"--grades .* of \['18-24', '25\+', 'unknown'\]"),
        (["18-24", "25-34", "35+"], r"every label is a range, such as '18-24': .*--grades"),
        (["Low", "low", "mid"], r"'Low' is not among \['low', 'mid'\]; .* mean 'low'\?"),
        (["Low", "low", "Mid", "High"], r"'low' is not among .*; did you mean 'Low'\?"),
    ],
)
def test_named_grades_need_their_order(words, message):
    with pytest.raises(ValueError, match=message):
        classes_of(words)


@pytest.mark.parametrize(
    ("words", "order"),
    [
        (["1", "2", "4", ">3"], "1..4"),  # is 3 a grade?
        (["1", "2", "3", ">3"], "1..4"),  # what is above 3?
        (["1", "2", "under 1"], "0..2"),
        (["1.5", "2.5", "(1.5,3)"], "1.5,2.5,3"),
    ],
)
def test_an_end_that_is_not_included_invents_no_grade(words, order):
    word = re.escape(words[-1])
    message = rf"do not show which grades '{word}' means: .*classes=\[.* \(--grades {order}\)$"
    with pytest.raises(ValueError, match=message):
        classes_of(words)
    classes = read_order(order)
    assert all(LabelReader(classes).interval(word) for word in words)


def test_brackets_that_are_listed_are_grades():
    ages = LabelReader(read_order("18-24, 25-34, 35+"))
    assert [ages.interval(w) for w in ("25-34", "35+", ">=25-34")] == [(2, 2), (3, 3), (2, 3)]


def test_orders_are_lists_or_ranges():
    assert read_order('"low, bad",mid').tolist() == ["low, bad", "mid"]
    assert read_order("0..4").tolist() == [0, 1, 2, 3, 4]
    assert read_order("b, a").tolist() == ["b", "a"]
    assert read_order("1,2.5").tolist() == [1.0, 2.5]
    for wrong in ("a,,b", "a,a", "a"):
        with pytest.raises(ValueError):
            read_order(wrong)


def test_a_message_suggests_ranges_of_the_grades_at_hand():
    grades = LabelReader(np.array(["18-24", "25-34", "35-44", "45-54", "55+"]))
    with pytest.raises(ValueError, match="35' is not among") as caught:
        grades.interval("under 35")
    suggested = re.search(r"such as '(.*)' or '(.*)', or add", str(caught.value)).groups()
    assert suggested == ("up to 25-34", "at least 35-44")
    assert [grades.interval(word) for word in suggested] == [(1, 2), (3, 5)]


def test_votes_of_two_people_are_not_to_be_swapped():
    grades, columns = LabelReader(np.array([1, 2, 3])), LabelColumns(None, "anna", "ben")
    for ben, way in (([1, 1, 1], "swap the two columns"), ([1, 3, 3], "take the lower and the")):
        _, _, faults = grades.read(pl.DataFrame({"anna": [2, 2, 1], "ben": ben}), columns)
        assert way in faults[0]
