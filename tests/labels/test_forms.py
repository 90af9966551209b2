"""The forms of labels: every form is read as it was written, and as the documentation says."""

import re
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ordspan.labels.forms import FORMS, OPEN, is_number, normalise_label
from ordspan.labels.text import LabelReader

PAGE = Path(__file__).parents[2] / "docs" / "intervals.md"
FIVE = LabelReader(np.arange(1, 6))


def spelled(form):
    """Every spelling of a form, with every choice of the words joined by slashes."""
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


def test_the_table_in_the_documentation_is_true_and_lists_every_form():
    listed = set()
    rows = re.findall(r"^\| (`.*`) \| ([1-5, ]+) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    for forms, grades in rows:
        meaning = int(grades[0]), int(grades[-1])
        for form in re.findall("`(.*?)`", forms):
            assert {FIVE.interval(word) for word in spelled(form)} == {meaning}, form
            listed.add(form)
    assert listed >= {with_ends(form, 2, 4) for form in FORMS}


numbers = st.one_of(st.integers(-20, 20), st.integers(-200, 200).map(lambda n: n / 10))
letters = st.text(st.characters(categories=["Lu", "Ll"]), min_size=1, max_size=6)
spoken = {word for form in SPELLED for word in re.findall(r"\w+", form)}
names = letters.filter(lambda w: not is_number(w) and w not in OPEN and w.lower() not in spoken)
odd_names = st.text("ab-+ ", min_size=1, max_size=5).filter(
    lambda word: word == normalise_label(word)
)
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
        if normalise_label(label) in span[0]:
            ranks = (span[0].index(normalise_label(label)) + 1,) * 2
        with suppress_ambiguous():
            assert grades.interval(label) == ranks, label
