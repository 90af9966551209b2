"""Labels as people write them are the ranges that the documentation says, or an error that helps.

The table of forms in docs/intervals.md is read here: 2 and 4 stand for the two ends.
"""

import re
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordspan import parse_intervals
from ordspan.labels.forms import FORMS

PAGE = (Path(__file__).parents[2] / "docs" / "intervals.md").read_text("utf-8")
ROWS = re.findall(r"^\| (`.*`) \| ([1-5, ]+) \|$", PAGE, re.MULTILINE)
DOCUMENTED = [
    (form, int(grades[0]), int(grades[-1]))
    for forms, grades in ROWS
    for form in re.findall("`(.*?)`", forms)
]
FIVE = [1, 2, 3, 4, 5]
NAMED = ["low", "mid-low", "mid", "high"]
BELOW = [-2, -1, 0, 1]
AGES = ["18-24", "25-34", "35-44", "65+"]
LARGE = [9007199254740992, 9007199254740993]  # equal as floats


def ranks(words, grades):
    """Lowest and highest rank of each label."""
    rank = {grade: k for k, grade in enumerate(grades, start=1)}
    return [
        (rank[low], rank[high]) for low, high in parse_intervals(words, classes=grades).tolist()
    ]


def spelled(form):
    """Every spelling of a form, with every choice of the words joined by slashes."""
    return [" ".join(words) for words in product(*(part.split("/") for part in form.split(" ")))]


def test_the_table_in_the_documentation_is_true_and_lists_every_form():
    for form, low, high in DOCUMENTED:
        assert set(ranks(spelled(form), FIVE)) == {(low, high)}, form
    listed = {form for form, _, _ in DOCUMENTED}
    assert listed >= {form.format(low=2, above=2, high=4, below=4) for form in FORMS}


def labels(order, lower, upper):
    """A label in every form that names can take, and the ranks that it means."""
    for form, low, high in DOCUMENTED[1:]:  # without the single grade
        for words in spelled(form) if form != "2+" or not isinstance(order[0], str) else ():
            # 2 and 4 are ends that are included, or next to those that are
            ends = {"2": order[lower - 1 - (low == 3)], "4": order[upper - 1 + (high == 3)]}
            span = lower if "2" in words else 1, upper if "4" in words else len(order)
            yield words, ends, span


def fill(words, ends):
    return re.sub("[24]", lambda end: str(ends[end[0]]), words)


numbers = st.one_of(st.integers(-20, 20), st.integers(-200, 200).map(lambda n: n / 10))
letters = st.text(st.characters(categories=["Lu", "Ll"]), min_size=1, max_size=6)
spoken = {word for form, _, _ in DOCUMENTED for word in re.findall(r"[a-z]+", form)}
names = letters.filter(lambda w: w.lower() not in spoken | {"na", "nan", "null", "none", "inf"})
odd_names = st.text("ab-+ ", min_size=1, max_size=5).map(lambda w: " ".join(w.split())).filter(bool)
orders = st.one_of(
    st.lists(numbers, min_size=3, max_size=8, unique=True).map(sorted),
    st.lists(names, min_size=3, max_size=8, unique=True),
)


@st.composite
def spans(draw, orders):
    """Grades, and two ranks with a grade on either side."""
    order = draw(orders)
    lower = draw(st.integers(2, len(order) - 1))
    return order, lower, draw(st.integers(lower, len(order) - 1))


@given(spans(orders), st.sampled_from([str, str.upper, str.title]), st.sampled_from(" \u00a0\t"))
def test_every_form_is_read_as_it_is_written(span, capitals, space):
    words, meant = [], []
    for form, ends, ranks_meant in labels(*span):
        words.append(space + fill(capitals(form).replace(" ", 2 * space), ends))
        meant.append(ranks_meant)
    assert ranks(words, span[0]) == meant


@given(spans(st.lists(odd_names, min_size=3, max_size=6, unique=True)))
def test_names_with_signs_are_read_as_written_or_refused(span):
    for form, ends, meant in labels(*span):
        word = fill(form, ends)
        name = " ".join(re.sub("[–—]", "-", word).split())
        if name in span[0]:
            meant = (span[0].index(name) + 1,) * 2
        try:
            found = ranks([word], span[0])
        except ValueError as error:
            if " may mean " not in str(error):
                raise
        else:
            assert found == [meant], word


GONE = [[1, 1], [1, 3], [3, 3]]  # a missing label may be any grade
NUMBERED = [[3, 3], [1, 2], [4, 7], [0, 0], [2, 7], [0, 7]]  # every number named is a grade


@pytest.mark.parametrize(
    ("labels", "classes", "meant"),
    [
        (["1-2", 4, ">=2", 3.0], None, [[1, 2], [4, 4], [2, 4], [3, 3]]),
        (np.array(["1-2", "4", ">=2"]), None, [[1, 2], [4, 4], [2, 4]]),
        (np.array(["1-2", 4, ">=2"], dtype=object), None, [[1, 2], [4, 4], [2, 4]]),
        ([2.5, 1], None, [[2.5, 2.5], [1, 1]]),
        (["3", "1-2", ">=4", "<=0", "[2,7]", ""], None, NUMBERED),
        (["[1,2]", "3/4"], None, [[1, 2], [3, 4]]),
        (["1", "2", "3-4", ">1", "<3"], None, [[1, 1], [2, 2], [3, 4], [2, 4], [1, 2]]),
        ([], FIVE, []),
        (["None", None], ["None", "some"], [["None", "None"], ["None", "some"]]),
        (["25-34", "up to 25-34"], AGES, [["25-34", "25-34"], ["18-24", "25-34"]]),
        (["35-44 or older", "65+"], AGES, [["35-44", "65+"], ["65+", "65+"]]),
        (pd.Categorical(["b", "a"], ["b", "a"], ordered=True), None, [["b", "b"], ["a", "a"]]),
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
    ("grades", "word", "ends"),
    [
        (FIVE, "4.0", (4, 4)),
        (FIVE, "[4, ]", (4, 5)),
        (FIVE, "(-inf, 3.0]", (1, 3)),
        (FIVE, "[ 2 ; 4 )", (2, 3)),
        (FIVE, "3\u2009\u2212\u20095", (3, 5)),
        *((FIVE, f"2 {dash} 3", (2, 3)) for dash in "-‐‑‒–—―−"),
        *((NAMED, f"mid{dash}low", (2, 2)) for dash in "-‐‑‒–—―−"),
        (FIVE, "<2.5", (1, 2)),
        (FIVE, "over 0", (1, 5)),
        (FIVE, "[2,9)", (2, 5)),
        *((FIVE, word, (3, 4)) for word in ("3/4", "3 / 4", "3 or 4")),
        (NAMED, "low-mid", (1, 3)),
        (NAMED, "mid-low-high", (2, 4)),
        (NAMED, "low..mid-low", (1, 2)),
        (NAMED, "mid-low or better", (2, 4)),
        (NAMED, ">mid-low", (3, 4)),
        (BELOW, "-2--1", (1, 2)),
        (BELOW, "−2 – −1", (1, 2)),
        (BELOW, "-1..1", (2, 4)),
        (BELOW, ">-2", (2, 4)),
        (BELOW, "-2-1", (1, 4)),
        (LARGE, "9007199254740993", (2, 2)),
        ([5, 4, 3], ">4", (3, 3)),
        (["yes/no", "mid", "a/b"], "yes/no to a/b", (1, 3)),
        # a name of a grade is never a range
        (["None", "B", "B+", "above B+", "A"], "B+", (3, 3)),
        (["None", "B", "B+", "above B+", "A"], "above B+", (4, 4)),
        (["None", "B", "B+", "above B+", "A"], ">B+", (4, 5)),
        (["None", "B", "B+", "above B+", "A"], "[B,above B+]", (2, 4)),
        (["A", "NA", "B"], "[A,NA]", (1, 2)),
    ],
)
def test_grades_may_hold_signs_and_ranges_may_end_between_them(grades, word, ends):
    assert ranks([word], grades) == [ends]


def meant(wrong, name):
    return rf"grade '{wrong}' is not among \['low', .*\]; did you mean '{name}'\? If not, write"


@pytest.mark.parametrize(
    ("grades", "words", "message"),
    [
        (NAMED, ["Low"], meant("Low", "low")),
        (NAMED, [" mid - low"], meant("mid - low", "mid-low")),
        (NAMED, ["lwo"], meant("lwo", "low")),
        (NAMED, ["LOW to High"], meant("LOW", "low")),
        (NAMED, ["low-hgih"], meant("hgih", "high")),
        (NAMED, [">=Mid"], meant("Mid", "mid")),
        (NAMED, ["mid-lo"], meant("mid-lo", "mid-low")),
        (FIVE, ["9"], r"'9' is not among.*--na COLUMN:9\)"),
        (FIVE, ["2-"], r"'2-' is not among .*; 2\+ would be read as 2 or more; if it"),
        (FIVE, ["5-3"], "^row 0: label '5-3': the lower end of '5-3' is above .*; swap them"),
        (FIVE, [">="], "'>=' is not among"),
        (FIVE, ["1", "2", "3-7", "3-7"], r"^row 2: label '3-7': grade '7' is not among \[1, 2"),
        (FIVE, ["3;5"], "'3;5' is not among"),  # two answers, or a range?
        (FIVE, ["3-inf"], "'3-inf' is not among"),
        (FIVE, [">5"], "no grade among .* lies inside '>5': >=, <=, .* include an end"),
        (FIVE, ["<1"], "no grade among .* lies inside '<1': >=, <=, .* include an end; else write"),
        (FIVE, ["(3,4)"], r"no grade among \[1, 2, 3, 4, 5\] lies inside '\(3,4\)'"),
        (FIVE, ["2/5"], "not a pair of neighbouring grades"),
        (FIVE, ["-" * 5000], "not among"),
        (
            FIVE,
            ["Don't know"],
            r"not among .*; if it means no answer, leave the row out, in files with na=.* \(--na ",
        ),
        (FIVE, [[1, 2], [2, 3]], r"one column, got shape \(2, 2\); .*intervals\(lower, upper\)"),
        (["B", "A"], ["A+"], r"'A\+' is not among .*; did you mean 'A'"),
        (["a", "a-b", "b-c", "c"], ["a-b-c"], r"may mean \[a,b-c\] or \[a-b,c\]; write one"),
        ([5, 4, 3], [">3.5"], r"3\.5' is not among"),  # where the order descends
        (
            None,
            ["low", "low-high", "high"],
            r"'high', 'low'\] is not known: .* with classes=.*; 'low-high' is a range",
        ),
        (None, [], "found no grades; list all grades: classes="),
    ],
)
def test_what_cannot_be_read_is_named_with_what_may_be_meant(grades, words, message):
    with pytest.raises(ValueError, match=message):
        parse_intervals(words, classes=grades)


def test_a_message_suggests_ranges_of_the_grades_at_hand():
    grades = ["18-24", "25-34", "35-44", "45-54", "55+"]
    with pytest.raises(ValueError, match="35' is not among") as caught:
        parse_intervals(["under 35"], classes=grades)
    suggested = re.search(r"such as '(.*)' or '(.*)', or add", str(caught.value)).groups()
    assert suggested == ("up to 25-34", "at least 35-44")
    assert ranks(suggested, grades) == [(1, 2), (3, 5)]
