"""How range labels may be written: one table of forms, parsed without knowing the grades."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from itertools import product
from typing import Any, NamedTuple

from ordspan.files.batch import is_number

FORMS = (
    "{low}-{high}",
    "{low}–{high}",
    "{low}—{high}",
    "{low}..{high}",
    "{low} to/through {high}",
    "from {low} to/through {high}",
    "between {low} and {high}",
    *map("".join, product(("[{low}", "({above}"), (",", ";", ".."), ("{high}]", "{below})"))),
    ">={low}",
    "≥{low}",
    "{low}+",
    "at least {low}",
    "no/not less/fewer than {low}",
    "{low} or/and more/over/above/up/higher/better/older",
    ">{above}",
    "over/above {above}",
    "more/greater/higher/better/older than {above}",
    "<={high}",
    "≤{high}",
    "up to {high}",
    "at most {high}",
    "no/not more than {high}",
    "{high} or/and less/fewer/under/below/lower/worse/younger",
    "<{below}",
    "under/below {below}",
    "less/fewer/lower/worse/younger than {below}",
)
"""How ranges may be written; ``above`` and ``below`` are ends that are not included.

Slashes separate alternative words. The table of label forms in the documentation is generated from
this one.
"""
DASHES = dict.fromkeys(map(ord, "‐‑‒–—―−"), "-")
OPEN = ("", "NA", "NaN", "nan", "null", "None", "inf", "-inf", "+inf")
"""Values of a lower or upper column that mean an open end."""
LONGEST_RANGE = 1000
"""Longer labels are not ranges: text with many dashes could be split in too many ways."""


def plain_word(value: Any) -> str:
    """A cell as text; whole numbers have no decimal point, other numbers have one.

    >>> plain_word(3.0), plain_word(" mid "), plain_word("3.0"), plain_word("1,7")
    ('3', 'mid', '3', '1.7')
    """
    text = "" if value is None else str(value).strip()
    if re.fullmatch(r"[-+]?[0-9]+,[0-9]{1,2}", text):
        text = text.replace(",", ".")
    if re.fullmatch(r"[-+]?[0-9]+", text):
        return str(int(text)) if len(text) < 4000 else text
    if not is_number(text):
        return text
    number = float(text)
    return str(int(number)) if number.is_integer() else repr(number) if number == number else ""


def tidy(word: str) -> str:
    """A plain word with dashes as hyphens and single spaces."""
    return plain_word(" ".join(word.translate(DASHES).split()))


class _Form(NamedTuple):
    """A parsed form: its ends, and the patterns around and between them."""

    ends: list[str]
    around: re.Pattern[str]
    between: re.Pattern[str] | None
    in_brackets: bool


def _compiled(form: str) -> _Form:
    before, *between, after = map(_pattern, re.split(r"\{\w+\}", form))
    # B+ is a grade missing from the order rather than "B or more"
    inner = r"(.*\d ?)" if form == "{low}+" else "(.*)"
    return _Form(
        re.findall(r"\{(\w+)\}", form),
        re.compile(before + inner + after, re.IGNORECASE),
        re.compile(between[0], re.IGNORECASE) if between else None,
        form[0] in "[(",
    )


def _pattern(text: str) -> str:
    words = (map(re.escape, word.split("/")) for word in text.split(" "))
    return " ".join(f"(?:{'|'.join(choices)})" for choices in words)


_FORMS = [_compiled(form) for form in dict.fromkeys(form.translate(DASHES) for form in FORMS)]


def readings(text: str, grades: Container[str] = ()) -> Iterator[dict[str, str]]:
    """Every way to read a tidy label as a range: the text of its ends, without open ones.

    >>> list(readings("-1..1")), list(readings("(2,]"))
    ([{'low': '-1', 'high': '1'}], [{'above': '2'}])
    """
    for form in _FORMS:
        match = form.around.fullmatch(text) if len(text) <= LONGEST_RANGE else None
        for words in _cuts(match[1], form.between) if match else ():
            ends = dict(zip(form.ends, map(tidy, words), strict=True))
            named = {end: w for end, w in ends.items() if w in grades or w not in OPEN}
            if form.in_brackets or named == ends:
                yield named


def _cuts(text: str, between: re.Pattern[str] | None) -> list[tuple[str, ...]]:
    """A text split in two at every match of the pattern, or whole without a pattern."""
    if between is None:
        return [(text,)]
    return [(text[: cut.start()], text[cut.end() :]) for cut in between.finditer(text)]
