"""The forms of labels: the table in the documentation, and every form read as it was written.

Run as a script, this file writes the table anew.
"""

import re
from collections import defaultdict
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ordspan.files.batch import is_number
from ordspan.files.forms import FORMS, OPEN, tidy
from ordspan.files.grades import LabelReader

PAGE = Path(__file__).parents[2] / "docs" / "intervals.md"
BEGIN, END = "<!-- table made by tests/files/test_forms.py -->\n\n", "\n<!-- end of table -->"
FIVE = LabelReader(np.arange(1, 6))


def spelled(form):
    """Every spelling of a form, as words joined by slashes can stand for each other."""
    return [" ".join(words) for words in product(*(part.split("/") for part in form.split(" ")))]


SPELLED = [spelling for form in FORMS for spelling in spelled(form)]


@contextmanager
def suppress_ambiguous():
    try:
        yield
    except ValueError as error:
        if "may mean" not in str(error):
            raise


def with_ends(form, lower, upper):
    return form.format(low=lower, above=lower, high=upper, below=upper)


def table():
    rows = defaultdict(list)
    for form in ("{low}", *FORMS):
        example = with_ends(form, 2, 4)
        (meaning,) = {FIVE.interval(word) for word in spelled(example)}
        rows[tuple(re.findall(r"\w+(?=\})", form)), meaning].append(f"`{example}`")
    lines = [
        f"| {', '.join(forms)} | {', '.join(map(str, range(low, high + 1)))} |"
        for (_, (low, high)), forms in rows.items()
    ]
    return "\n".join(["| label | grades, of 1 to 5 |", "|---|---|", *lines, ""])


def page_with_table():
    before, rest = PAGE.read_text("utf-8").split(BEGIN)
    return before + BEGIN + table() + END + rest.split(END)[1]


def test_the_documentation_lists_every_form():
    same = PAGE.read_text("utf-8") == page_with_table()
    assert same, "the table is out of date: run python tests/files/test_forms.py"


numbers = st.one_of(st.integers(-20, 20), st.integers(-200, 200).map(lambda n: n / 10))
letters = st.text(st.characters(categories=["Lu", "Ll"]), min_size=1, max_size=6)
spoken = {word for form in SPELLED for word in re.findall(r"\w+", form)}
names = letters.filter(lambda w: not is_number(w) and w not in OPEN and w.lower() not in spoken)
odd_names = st.text("ab-+ ", min_size=1, max_size=5).filter(lambda word: word == tidy(word))
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


def labels(order, lower, upper):
    """A label in every form that names can take, and the ranks that it means."""
    ends = {
        "low": order[lower - 1],
        "above": order[lower - 2],
        "high": order[upper - 1],
        "below": order[upper],
    }
    for form in SPELLED:
        kinds = set(re.findall(r"\w+(?=\})", form))
        span = (
            lower if kinds & {"low", "above"} else 1,
            upper if kinds & {"high", "below"} else len(order),
        )
        if form != "{low}+" or not isinstance(order[0], str):
            yield form, ends, span


@given(spans(orders), st.sampled_from([str, str.upper, str.title]), st.sampled_from(" \u00a0\t"))
def test_every_form_is_read_as_it_is_written(span, capitals, space):
    grades = LabelReader(np.array(span[0]))
    for form, ends, ranks in labels(*span):
        form = re.sub(r"\w+(?![\w}])", lambda word: capitals(word[0]), form)
        label = space + form.replace(" ", 2 * space).format(**ends)
        assert grades.interval(label) == ranks, label


@given(spans(st.lists(odd_names, min_size=3, max_size=6, unique=True)))
def test_names_with_signs_are_read_as_written_or_refused(span):
    grades = LabelReader(np.array(span[0]))
    for form, ends, ranks in labels(*span):
        label = form.format(**ends)
        if tidy(label) in span[0]:
            ranks = (span[0].index(tidy(label)) + 1,) * 2
        with suppress_ambiguous():
            assert grades.interval(label) == ranks, label


if __name__ == "__main__":
    PAGE.write_text(page_with_table(), "utf-8")
