"""How labels may be written: a table of the forms of ranges, and cells as plain text."""

import re
from collections import Counter
from collections.abc import Collection, Container, Iterator
from itertools import product
from typing import Any

from ordspan.wording import columns_hint, plural

FORMS = (
    "{low}-{high}",
    "{low}..{high}",
    "{low} to/through {high}",
    "from {low} to/through {high}",
    "between {low} and {high}",
    "{low} or {high}",
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

Slashes separate alternative words. The table of label forms in docs/intervals.md is compared with
this one. ``3/4`` is a form too, of neighbours only, since 4/10 may mean 4 out of 10.
"""
DASHES = dict.fromkeys(map(ord, "‐‑‒–—―−"), "-")
OPEN = ("", "NA", "NaN", "nan", "null", "None", "inf", "-inf", "+inf")
"""Values of a lower or upper column that mean an open end."""
NO_ANSWER = re.compile(
    r"-{1,5}|\?{1,5}|n/a|(i )?(prefer|choose|decline|refuse).* (not|answer|say)\b.*|refused"
    r"|(i )?(do not|don'?t|dont|can'?t|cannot) (know|say|remember)|not (sure|applicable|answered)"
    r"|no (answer|response|opinion|reply)|unsure|unknown|undecided|missing|skipped"
    r"|(ich )?wei(ß|ss) (es )?nicht|keine (angabe|antwort|meinung)|k\.a\."
    r"|(je )?ne sais pas|sans (réponse|opinion|avis)|no (lo )?sé|no (sabe|contesta)|sin respuesta",
    re.IGNORECASE,
)
LONGEST_RANGE = 1000
"""Longer labels are not ranges: text with many dashes could be split in too many ways."""


def is_number(text: Any) -> bool:
    """Whether a cell can be read as a number.

    >>> is_number("1e3"), is_number("3-5"), is_number("1_000")
    (True, False, False)
    """
    try:
        float(text)
    except (TypeError, ValueError, OverflowError):
        return False
    # Python alone also accepts 1_000 and digits of other scripts
    return not isinstance(text, str) or (text.isascii() and "_" not in text)


def number_as_text(value: Any) -> str:
    """A cell as text; whole numbers have no decimal point, other numbers have one.

    >>> number_as_text(3.0), number_as_text(" mid "), number_as_text("3.0"), number_as_text("1,7")
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


def is_no_answer(word: str) -> bool:
    """Whether a label says that there is no answer.

    >>> is_no_answer("Prefer not to answer"), is_no_answer("weiß nicht"), is_no_answer("mid")
    (True, True, False)
    """
    return NO_ANSWER.fullmatch(normalise_label(word).replace("’", "'")) is not None


def na_hint(words: Collection[str], columns: Collection[str] = ("COLUMN",)) -> str:
    """The setting that leaves out words in columns of labels; numbers mean more in others.

    >>> na_hint(["-"]), na_hint(["99"], ["grade"])
    ("na=['-'] (--na -)", "na=['grade:99'] (--na grade:99)")
    """
    in_columns = [f"{column}:{word}" for column in columns for word in words]
    return columns_hint("na", *(in_columns if any(map(is_number, words)) else words))


def about_no_answer(counts: Counter[str]) -> str:
    """What to do about words that say that there is no answer, if there are any."""
    words = [word for word in counts if is_no_answer(word)]
    listed = ", ".join(f"{word!r} ({plural(counts[word], 'row')})" for word in words)
    return f"{listed}: leave such rows out, in files with {na_hint(words)}" if words else ""


def normalise_label(word: str) -> str:
    """A plain word with dashes as hyphens and single spaces."""
    return number_as_text(" ".join(word.translate(DASHES).split()))


def _compiled(form: str) -> tuple[list[str], re.Pattern[str], re.Pattern[str], bool]:
    """The ends of a form, the patterns around and between them, and whether they may be open."""
    before, *between, after = map(_pattern, re.split(r"\{\w+\}", form))
    # B+ is a grade missing from the order rather than "B or more"
    inner = r"(.*\d[km]? ?)" if form == "{low}+" else "(.*)"
    around = re.compile(before + inner + after, re.IGNORECASE)
    # with one end only, nothing is left behind the cut
    cut = re.compile(between[0] if between else r"\Z", re.IGNORECASE)
    return re.findall(r"\{(\w+)\}", form), around, cut, form[0] in "[("


def _pattern(text: str) -> str:
    words = (map(re.escape, word.split("/")) for word in text.split(" "))
    return " ".join(f"(?:{'|'.join(choices)})" for choices in words)


_FORMS = [*map(_compiled, FORMS)]
_FORMS.append((["low", "high"], re.compile("(.*)"), re.compile(" ?/ ?"), False))


def readings(text: str, grades: Container[str] = ()) -> Iterator[dict[str, str]]:
    """Every way to read a normalised label as a range: the text of its ends, without open ones.

    >>> list(readings("-1..1")), list(readings("(2,]"))
    ([{'low': '-1', 'high': '1'}], [{'above': '2'}])
    """
    for ends, around, between, may_be_open in _FORMS if len(text) <= LONGEST_RANGE else ():
        match = around.fullmatch(text)
        if match is None:
            continue
        for cut in between.finditer(match[1]):
            parts = match[1][: cut.start()], match[1][cut.end() :]
            words = dict(zip(ends, map(normalise_label, parts), strict=False))
            closed = {end: w for end, w in words.items() if w in grades or w not in OPEN}
            if may_be_open or closed == words:
                yield closed
