"""The grades and their order: listed by the user, or found in labels that are numbers."""

import csv
import re
from collections import Counter
from collections.abc import Collection, Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordspan.labels import forms
from ordspan.labels.amounts import BRACKETS, is_bracket, read_ends
from ordspan.wording import N_SHOWN, brief, hint, plural, shell_list, shown

MAX_GRADES = 1 << 12
"""An evaluation counts every pair of grades, so their number is limited."""
MAX_FOUND = 101
"""More numbers than 0 to 100 are measurements, unless they are listed as grades."""
LONGEST_SCALE = 11
"""Grades on scales that people are asked to answer on, 0 to 10 at most."""
MAX_LABELS = 16 * MAX_GRADES
"""Ranges of grades are labels too."""
ALL_GRADES = hint("classes=[lowest, ..., highest]", "--grades lowest,...,highest")
CUT = hint("cut=5", "--cut 5 for fifths, or --cut 3.4,3.8,4.2")


def check_classes(classes: Any) -> NDArray[Any]:
    """The grades from lowest to highest as a 1-d array of two or more distinct values.

    >>> check_classes(["low", "mid", "high"])
    array(['low', 'mid', 'high'], dtype='<U4')
    """
    order = np.asarray(classes)
    if order.dtype.kind == "O" and all(isinstance(c, str) for c in order.ravel()):
        order = order.astype(str)
    if order.ndim != 1:
        raise ValueError(f"classes must be a 1-d list from lowest to highest, got {order.ndim}-d")
    if order.dtype.kind == "f" and not np.isfinite(order).all():
        raise ValueError(f"classes must be finite, got {shown(order)}")
    unique, counts = np.unique(order, return_counts=True)
    if unique.size < order.size:
        raise ValueError(f"classes lists {unique[counts > 1].tolist()[0]!r} more than once")
    in_order = (order == unique).all() or (order[::-1] == unique).all()
    if order.dtype.kind in "iuf" and not in_order:
        raise ValueError(
            f"the grades {shown(order)} neither rise nor fall; give them from lowest to highest, "
            f"{grades_hint(unique.tolist())}"
        )
    if order.size < 2:
        what = f"only the grade {order.tolist()[0]!r} (1 class)" if order.size else "no grades"
        raise ValueError(f"found {what}; list all grades: {ALL_GRADES}")
    return order


def check_grades(count: int, who: str, most: int = MAX_GRADES) -> None:
    """Raise if there are more grades, or more distinct labels, than can be learned."""
    if count > most:
        what = "grades" if most == MAX_GRADES else "distinct labels"
        raise ValueError(
            f"{who} {count:,} {what}, more than the {most:,} that can be learned; merge "
            f"neighbouring grades, or cut numbers into grades with {CUT}"
        )


def sorted_grades(
    labels: NDArray[Any],
    remedy: str = "with classes=[...] or as an ordered Categorical",
    cut: str = "with y, classes = ordspan.brackets(y, y, edges=[...])",
) -> NDArray[Any]:
    """Distinct labels from lowest to highest, if they are numbers, or strings that spell them.

    Whole and half numbers are grades. Other text has no order, and other numbers look like
    measurements: both are errors, and ``remedy`` and ``cut`` say what to do.

    >>> sorted_grades(np.array(["10", "2", "1.5"]))
    array(['1.5', '2', '10'], dtype='<U3')
    """
    numbers = numbers_of(labels)
    if numbers is None:
        words = sorted(set(map(str, labels[:MAX_GRADES].tolist())))
        # names such as 18-24 are no ranges of others: 18 and 24 are not labels
        ranges = [
            word
            for word in words
            for ends in forms.readings(forms.normalise_label(word))
            if ends and set(words).issuperset(ends.values())
        ]
        names = np.array([word for word in words if word not in ranges])
        if ranges:
            remedy += f"; {ranges[0]!r} is a range of others (read by ordspan.parse_intervals)"
        if "" in words:
            remedy += "; '' is an empty cell: None is an open end"
        raise ValueError(
            f"the order of the grades {shown(names)} is not known: give it from lowest to "
            f"highest {remedy}"
        )
    if (fractions := np.sort(numbers[np.mod(numbers, 0.5) != 0])).size:
        raise ValueError(
            f"Unknown label type: continuous. Labels like {shown(fractions)} look like "
            f"measurements: cut them into grades {cut}, or list the grades from lowest to highest "
            + remedy
        )
    if numbers.size > MAX_FOUND:
        raise ValueError(
            f"the labels are {numbers.size} different numbers, as measurements are: cut them into "
            f"grades {cut}; if each is a grade, list them all {remedy}"
        )
    if np.unique(numbers).size < numbers.size:
        raise ValueError(
            f"two of the labels {shown(labels)} are the same number: write it in one way, or list "
            f"the grades from lowest to highest {remedy}"
        )
    return labels[np.argsort(numbers)]


def numbers_of(labels: NDArray[Any]) -> NDArray[Any] | None:
    """Labels as numbers, integers if all of them are whole; None if one is no finite number.

    >>> numbers_of(np.array(["1", "2"])), numbers_of(np.array(["1", "B"]))
    (array([1, 2]), None)
    """
    if labels.dtype.kind in "biuf":
        return labels
    if labels.dtype.kind != "U" or not all(map(forms.is_number, labels.tolist())):
        return None
    try:
        return labels.astype(np.int64)
    except (ValueError, OverflowError):
        numbers = labels.astype(np.float64)
        return numbers if np.isfinite(numbers).all() else None


def classes_of(words: Iterable[str], columns: Collection[str] = ("COLUMN",)) -> NDArray[Any]:
    """Every grade that occurs in labels, sorted; named grades need an order from the user.

    Included ends of ranges are grades, and no codes for no answer. An excluded end is no evidence
    for a grade, so it has to occur elsewhere, as does a grade beyond it.
    """
    counts = Counter(words)
    written = {word: forms.normalise_label(word) for word in counts}
    words = {text for word, text in written.items() if not forms.is_no_answer(word)} - set(
        forms.OPEN
    )
    numbers = set(filter(_may_be_grade, words))
    check_grades(len(numbers), "the labels have")
    ranges = {word: ends for word in sorted(words) if (ends := _numeric_ends(word))}
    names = set(filter(is_bracket, words - numbers - ranges.keys()))
    # [1,2] and 1/2 are of grades
    brackets = names.union(word for word in ranges if not re.fullmatch(r"\[.*\]|.*/.*", word))
    problems = []
    if brackets and (brackets == words or (names and len(brackets) > len(words) / 2)):
        in_order = sorted(brackets, key=lambda word: [*read_ends(word).values()])
        problems.append(
            f"labels such as {in_order[0]!r} look like brackets of amounts: give {BRACKETS}; if "
            f"they are the names of the grades, give {grades_hint(in_order)}; if they are ranges "
            f"of grades, list every grade, {ALL_GRADES}"
        )
    # a word among numbers is a fault that the reader reports with its line
    included = {ends[kind] for ends in ranges.values() for kind in ends if kind in ("low", "high")}
    grade_words = numbers | included if numbers or ranges.keys() == words else words
    with_comma = any("," in word for word in grade_words)
    listed = f"{grades_hint(sorted(grade_words))}, put in order" if with_comma else ALL_GRADES
    try:
        labels = sorted_grades(np.array(sorted(grade_words)), f"with {listed}", f"with {CUT}")
    except ValueError as error:
        problems = problems or [str(error)]
    if no_answer := forms.about_no_answer(counts):
        problems.append(f"{no_answer}, or list all grades, {ALL_GRADES}")
    if problems:
        raise ValueError("; ".join(problems))
    grades = check_classes(numbers_of(labels))
    codes = far_from_others(grades)
    if far := [text for text in map(forms.number_as_text, codes.tolist()) if text not in included]:
        rows = plural(sum(n for word, n in counts.items() if written[word] in far), "row")
        others = np.setdiff1d(grades, codes)
        raise ValueError(
            f"{' and '.join(far)} ({rows}) {'lie' if far[1:] else 'lies'} far from the other "
            f"grades, {shown(others)}: if that means no answer, give {forms.na_hint(far, columns)}"
            f"; if not, give {grades_hint(grades.tolist())}"
        )
    outermost = {"above": grades[-1], "below": grades[0]}
    for word, ends in ranges.items():
        is_beyond = any(float(ends.get(kind, "nan")) == end for kind, end in outermost.items())
        if is_beyond or not grade_words.issuperset(ends.values()):
            raise ValueError(
                f"the labels do not show which grades {word!r} means: list all, {ALL_GRADES}"
            )
    return grades


def far_from_others(grades: NDArray[Any]) -> NDArray[Any]:
    """Codes among sorted numbers: farther from the others than these are from each other.

    On a short scale without gaps, such as 1 to 5, three steps are far.

    >>> far_from_others(np.array([0, 1, 2, 98, 99])), far_from_others(np.array([1, 2, 4]))
    (array([98, 99]), array([], dtype=int64))
    >>> far_from_others(np.array([1, 2, 3, 4, 5, 9]))
    array([9])
    """
    others = grades
    while others.size > 2:
        gaps = np.diff(others)
        larger = max(np.split(others, [np.argmax(gaps) + 1]), key=len)
        span = larger[-1] - larger[0]
        is_scale = 3 <= larger.size <= LONGEST_SCALE and span == larger.size - 1
        if larger.size < 2 or gaps.max() <= (2 if is_scale else max(span, 2)):
            break
        others = larger
    return np.setdiff1d(grades, others)


def _may_be_grade(text: str) -> bool:
    """Whether a label is a number of reasonable size; others are faults of their rows.

    >>> _may_be_grade("3"), _may_be_grade("9" * 5000), _may_be_grade("low")
    (True, False, False)
    """
    return forms.is_number(text) and abs(float(text)) < 2.0**63


def _numeric_ends(text: str) -> dict[str, str] | None:
    """The ends of a label that is a range of numbers."""
    ranges = () if forms.is_number(text) else forms.readings(text)
    return next((ends for ends in ranges if ends and all(map(_may_be_grade, ends.values()))), None)


def read_order(text: str) -> NDArray[Any]:
    """Grades from lowest to highest, from a list such as ``low,mid,high`` or a range ``1..5``.

    >>> read_order("0..4")
    array([0, 1, 2, 3, 4])
    >>> read_order("low, mid, high")
    array(['low', 'mid', 'high'], dtype='<U4')
    """
    whole = re.fullmatch(r"\s*([-+]?[0-9]{1,18})\.\.([-+]?[0-9]{1,18})\s*", text)
    if whole:
        first, last = int(whole[1]), int(whole[2])
        check_grades(abs(last - first) + 1, f"the order {text.strip()} has")
        step = 1 if last >= first else -1
        return check_classes(np.arange(first, last + step, step))
    words = [word.strip() for word in next(csv.reader([text], skipinitialspace=True), [])]
    if "" in words or len(words) < 2:
        raise ValueError(
            f"cannot read the order {brief(text)}: separate the grades by commas, from lowest to "
            "highest (in a shell, quote the list if a name has a space; quote a name that contains "
            "a comma), or write 1..5"
        )
    numbers = numbers_of(np.array(words))
    return check_classes(words if numbers is None else numbers)


def grades_hint(grades: Collection[Any]) -> str:
    """How to give the order of the grades.

    >>> grades_hint([1, 2, 3])
    'classes=[1, 2, 3] (--grades 1..3)'
    >>> grades_hint(["<18", "18-24", "25+"])
    "classes=['<18', '18-24', '25+'] (--grades '<18,18-24,25+')"
    """
    values = list(grades)
    text = shell_list(map(forms.number_as_text, values[:N_SHOWN]))
    text += " ..." if len(values) > N_SHOWN else ""
    if len(values) > 2 and all(not isinstance(a, str) and b - a == 1 for a, b in pairwise(values)):
        text = f"{forms.number_as_text(values[0])}..{forms.number_as_text(values[-1])}"
    return hint(f"classes={shown(np.array(values))}", f"--grades {text}")
