"""Words of label columns as intervals of ranks."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from ordspan.files.grades import Grades, LabelColumns, classes_of, read_order

FIVE = Grades(np.arange(1, 6))
NAMED = Grades(np.array(["low", "mid-low", "mid", "high"]))


@pytest.mark.parametrize(
    ("word", "ends"),
    [
        ("4", (4, 4)),
        ("4.0", (4, 4)),
        (" 3 - 5 ", (3, 5)),
        ("3–5", (3, 5)),
        ("3..5", (3, 5)),
        (">=3", (3, 5)),
        ("3+", (3, 5)),
        ("<=2", (1, 2)),
        ("[3,5]", (3, 5)),
        ("[,2]", (1, 2)),
        ("[4, ]", (4, 5)),
    ],
)
def test_numbers_and_ranges_of_numbers(word, ends):
    assert FIVE.interval(word) == ends


@pytest.mark.parametrize(
    ("word", "ends"),
    [
        ("mid-low", (2, 2)),
        ("low-mid", (1, 3)),
        ("mid-low-high", (2, 4)),
        (">=mid", (3, 4)),
        ("[low,mid]", (1, 3)),
    ],
)
def test_named_grades_may_hold_the_sign_of_a_range(word, ends):
    assert NAMED.interval(word) == ends


def test_negative_grades_can_be_ranges():
    assert Grades(np.array([-2, -1, 0, 1])).interval("-2--1") == (1, 2)


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("9", "'9' is not among"),
        ("", "empty"),
        ("5-3", "lower end of '5-3' is above"),
        ("huge", "'huge' is not among"),
        (">=", "not among"),
    ],
)
def test_what_is_no_grade_is_told(word, told):
    with pytest.raises(ValueError, match=told):
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
    assert classes_of(["1", "2.5"]).tolist() == [1.0, 2.5]
    assert classes_of(["1", "2", "?"]).tolist() == [1, 2]  # the reader tells the line of "?"


def test_named_grades_need_their_order():
    with pytest.raises(ValueError, match=r"--order .* of \['high', 'low'\]"):
        classes_of(["low", "high", "low-high", ">=low"])


def test_brackets_are_not_taken_for_ranges_of_unknown_grades():
    with pytest.raises(ValueError, match=r"every label is a range, such as '18-24': .* --order"):
        classes_of(["18-24", "25-34", "35+"])
    ages = Grades(read_order("18-24, 25-34, 35+"))
    assert [ages.interval(w) for w in ("25-34", "35+", ">=25-34")] == [(2, 2), (3, 3), (2, 3)]


def test_orders_are_lists_or_ranges():
    assert read_order('"low, bad",mid').tolist() == ["low, bad", "mid"]
    assert read_order("0..4").tolist() == [0, 1, 2, 3, 4]
    assert read_order("b, a").tolist() == ["b", "a"]
    assert read_order("1,2.5").tolist() == [1.0, 2.5]
    for wrong in ("a,,b", "a,a", "a"):
        with pytest.raises(ValueError):
            read_order(wrong)
