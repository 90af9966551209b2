"""Amounts as people write them, brackets of amounts, the edges to use, and the bands between them.

A bracket is half-open, and its edges may differ from label to label; it is the range of the bands
that it covers. Names of bands hold their edges, so a list of grades is all that a model remembers.
"""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordspan.core.state import Floats, Ranks
from ordspan.labels import forms
from ordspan.wording import brief, hint

SCALES = {"": 1, "k": 1_000, "thousand": 1_000, "m": 1_000_000, "million": 1_000_000}
CURRENCY = r"(?:[$€£¥]|USD|EUR|GBP)?"
AMOUNT = re.compile(
    rf"([-+]?) ?{CURRENCY} ?([0-9]{{1,3}}(?:[,' ][0-9]{{3}})+|[0-9]+)(\.[0-9]+)?(e[-+]?[0-9]+)?"
    rf" ?({'|'.join(SCALES)})\.? ?{CURRENCY}",
    re.IGNORECASE,
)
THOUSANDS = re.compile(r"(?<![0-9.,'])[1-9][0-9]{0,2}(\.[0-9]{3})+(?![0-9])")
"""A number with points as some languages write them between thousands."""
STARTS = ("low", "above")
BRACKETS = hint("ordspan.brackets, or with files brackets=True", "--brackets")
EDGES = hint("edges=[10_000, 25_000, ...]", "--edges 10k,25k,...")
WIDENED = "brackets that end between two edges are widened to them"
FEW_LABELS = 5
"""An edge at which fewer labels end is left out: its two sides cannot be told apart."""
MAX_BANDS = 60


class Amount(NamedTuple):
    """A written amount, and the smallest step that its digits can express."""

    value: float
    step: float
    scale: int


def read_amount(text: str, scale: int = 1) -> Amount:
    """A number, perhaps with a currency, separators of thousands and k or m.

    An amount without k or m is in units of ``scale``.

    >>> read_amount("$24,999"), read_amount("1.5k")
    (Amount(value=24999.0, step=1.0, scale=1), Amount(value=1500.0, step=100.0, scale=1000))
    """
    match = AMOUNT.fullmatch(text.strip())
    sign, whole, fraction, exponent, suffix = match.groups(default="") if match else [""] * 5
    value = float(sign + re.sub("[,' ]", "", whole) + fraction + exponent or "nan")
    if not np.isfinite(value):
        raise ValueError(f"{brief(text)} is not an amount, such as 25000 or 25k")
    scale = SCALES[suffix.lower()] if suffix else scale
    if scale > 1:
        value = round(value * scale, 6)  # 8.2k is exactly 8,200
    return Amount(value, scale * 10.0 ** -max(0, len(fraction) - 1), scale)


def refuse_points(words: Collection[str], edges: Floats | None, where: str = "") -> None:
    """Refuse a point that may separate thousands, unless edges have fractions.

    Plain numbers are measurements if all have three decimals, or some have more or fewer.

    >>> refuse_points(["3.999", "1.250"], None), refuse_points(["3.999", "0.5", "12"], None)
    (None, None)
    """
    dotted = {word: match[0] for word in words if (match := THOUSANDS.search(word))}
    numbers = set(filter(forms.is_number, words))
    is_measured = numbers.issuperset(word for word in words if re.search("[0-9]", word)) and (
        dotted.keys() >= numbers or any("." in word for word in numbers - dotted.keys())
    )
    if dotted and not is_measured and (edges is None or not np.mod(edges, 1).any()):
        word, number = min(dotted.items())
        raise ValueError(
            f"{where}does the point in {brief(word)} separate thousands? If so, write "
            f"{number.replace('.', '')}, otherwise {number}0"
        )


def read_ends(text: str) -> dict[str, Amount]:
    """The ends of a written bracket, or nothing; a single amount is both ends.

    >>> {kind: end.value for kind, end in read_ends("$40-75k").items()}, read_ends("B")
    ({'low': 40000.0, 'high': 75000.0}, {})
    """
    text = forms.normalise_label(text)
    brackets: list[dict[str, Amount]] = []
    for words in ({"low": text, "high": text}, *forms.readings(text)):
        with suppress(ValueError):
            ends = {kind: read_amount(word) for kind, word in words.items()}
            low, high = ends.get("low"), ends.get("high")
            if low and high and low.scale == 1 and low.value * high.scale <= high.value:
                ends["low"] = read_amount(words["low"], high.scale)
            if ends and ends not in brackets:
                brackets.append(ends)
    return brackets[0] if len(brackets) == 1 else {}


def read_bracket(text: str, starts: Collection[float]) -> tuple[float, float]:
    """A written bracket as [low, high), or low = high if it is a single amount.

    Written ends are usually included. The upper edge is the start of another bracket one step
    later; else a start at the same amount; else a round amount one step later.

    >>> read_bracket("$25,000 to $49,999", {50_000.0}), read_bracket("$40-75k", {75_000.0})
    ((25000.0, 50000.0), (40000.0, 75000.0))
    >>> read_bracket("under 18", ()), read_bracket("60+", ()), read_bracket("42", ())
    ((-inf, 18.0), (60.0, inf), (42.0, 42.0))
    """
    ends = read_ends(text)
    if not ends:
        raise ValueError(
            "not a bracket of amounts; write it as '25k to 50k', 'under 25k' or '25k or more'"
        )
    low = next((ends[kind].value for kind in STARTS if kind in ends), -np.inf)
    high = next((ends[kind].value for kind in ("high", "below") if kind in ends), np.inf)
    if low > high:
        raise ValueError(f"the lower end of {brief(text)} is above its upper end; swap them?")
    if "high" in ends and low < high:
        later = round(high + ends["high"].step, 9)
        is_round = round(later / ends["high"].step) % 5 == 0
        if later in starts or (is_round and high not in starts):
            high = later
    return low, high


def is_bracket(text: str) -> bool:
    """Whether a label is a bracket of amounts, and not just a number.

    >>> is_bracket("$25-50k"), is_bracket("25"), is_bracket("low")
    (True, False, False)
    """
    return bool(read_ends(text)) and not AMOUNT.fullmatch(forms.normalise_label(text))


def read_brackets(words: Collection[str]) -> dict[str, tuple[float, float]]:
    """The brackets among the labels of one source.

    The only single amount means "or more" if no other bracket reaches beyond it.

    >>> read_brackets(["0 - 24,999", "25,000 - 49,999", "50000", "none"])
    {'0 - 24,999': (0.0, 25000.0), '25,000 - 49,999': (25000.0, 50000.0), '50000': (50000.0, inf)}
    """
    ends = [end for word in words for end in read_ends(word).items()]
    starts = {amount.value for kind, amount in ends if kind in STARTS}
    spans: dict[str, tuple[float, float]] = {}
    for word in words:
        with suppress(ValueError):
            spans[word] = read_bracket(word, starts)
    edges = {end for low, high in spans.values() if low < high for end in (low, high)}
    singles = {word: low for word, (low, high) in spans.items() if low == high}
    if len(singles) == 1 and edges.issuperset(singles.values()):
        ((word, amount),) = singles.items()
        if amount < max(edges):
            raise ValueError(
                f"{brief(word)} is the only single amount among brackets, and an edge of them: "
                f"write '{word}+' if it means that or more; otherwise choose the edges, {EDGES}"
            )
        spans[word] = amount, np.inf
    return spans


def edge_names(edges: Sequence[float] | Floats) -> list[str]:
    """Edges as they are written in names: with k or m if all of them are large and round.

    >>> edge_names([2500, 1.5e6]), edge_names([1990, 2000]), edge_names([3.4])
    (['2.5k', '1.5m'], ['1990', '2000'], ['3.4'])
    """
    values = np.asarray(edges, dtype=np.float64)
    units = {"": 1}
    if np.abs(values).max() >= 10_000 and (values % 100 == 0).all():
        units = {"m": 1_000_000, "k": 1_000}
    names = []
    for value in values.tolist():
        fits = (u for u, size in units.items() if abs(value) >= size and value * 10 % size == 0)
        unit = next(fits, "")
        names.append(forms.number_as_text(value / units.get(unit, 1)) + unit)
    return names


def band_names(edges: Sequence[float] | Floats) -> list[str]:
    """The grades between edges.

    >>> band_names([10_000, 25_000]), band_names([18, 30])
    (['under 10k', '10k to 25k', '25k or more'], ['under 18', '18 to 30', '30 or more'])
    """
    names = edge_names(edges)
    inner = [f"{low} to {high}" for low, high in pairwise(names)]
    return [f"under {names[0]}", *inner, f"{names[-1]} or more"]


def edges_of(grades: Sequence[Any]) -> Floats | None:
    """The edges of grades that are bands, or None.

    >>> edges_of(["under 10k", "10k to 25k", "25k or more"]), edges_of(["18-29", "30+"])
    (array([10000., 25000.]), None)
    """
    with suppress(ValueError):
        edges = [read_amount(str(grade).partition(" ")[0]).value for grade in grades[1:]]
        if edges and band_names(edges) == list(grades):
            return np.array(edges)
    return None


def range_ends(grades: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """How to write a range from one grade to another: of bands, by their outer edges.

    >>> range_ends(["under 10k", "10k to 25k", "25k or more"])
    ([None, '10k', '25k'], ['10k', '25k', None])
    >>> range_ends(["low", "high"])
    (['low', 'high'], ['low', 'high'])
    """
    edges = edges_of(grades)
    if edges is None:
        return list(grades), list(grades)
    names = edge_names(edges)
    return [None, *names], [*names, None]


def band_ranks(spans: Floats, edges: Floats) -> tuple[Ranks, Ranks]:
    """Lowest and highest rank of the bands that brackets touch.

    >>> band_ranks(np.array([[10, 25], [12, 25], [-np.inf, np.inf], [10, 10]]), np.array([10, 25]))
    (array([2, 2, 1, 2]), array([2, 2, 3, 2]))
    """
    low, high = spans.T
    lower = np.searchsorted(edges, low, "right") + 1
    return lower, np.maximum(lower, np.searchsorted(edges, high, "left") + 1)


def is_widened(spans: Floats, edges: Floats) -> NDArray[np.bool_]:
    """Whether brackets end between two edges, so that their bands reach farther than they do.

    >>> is_widened(np.array([[10, 25], [12, 25], [0, 10]]), np.array([10, 25]))
    array([False,  True, False])
    """
    (low, high), (low_is_edge, high_is_edge) = spans.T, np.isin(spans, edges).T
    between = (~low_is_edge & (low > edges[0])) | (~high_is_edge & (high < edges[-1]))
    return between & (low < high)


def check_edges(edges: Any) -> Floats:
    """Edges as sorted numbers, from numbers or text such as 10k.

    >>> check_edges(["10k", 2500])
    array([ 2500., 10000.])
    """
    values = np.unique([read_amount(forms.number_as_text(edge)).value for edge in edges])
    if not 0 < values.size < MAX_BANDS:
        raise ValueError(
            f"{values.size:,} edges make {values.size + 1:,} bands, but 2 to {MAX_BANDS} can be "
            f"learned; choose the edges: {EDGES}"
        )
    return values


def find_edges(spans: Floats, counts: NDArray[np.int64]) -> tuple[Floats, list[str]]:
    """The edges to learn among those of brackets, and notes on those used and left out.

    Each bracket occurs ``counts`` times. An outermost edge beyond which no label lies separates
    nothing; edges of fewer than FEW_LABELS labels are left out.
    """
    low, high = spans.T
    is_range = low < high
    ends = np.concatenate([low[is_range], high[is_range]])
    edges, index = np.unique(ends, return_inverse=True)
    n_labels = np.bincount(index, np.tile(counts[is_range], 2), edges.size).astype(np.int64)
    # a single amount lies below an edge only if it is smaller
    first = np.where(is_range, high, np.nextafter(low, np.inf)).min(initial=np.inf)
    inside = np.isfinite(edges) & (edges >= first) & (edges <= low.max(initial=-np.inf))
    edges, n_labels = edges[inside], n_labels[inside]
    frequent = n_labels >= FEW_LABELS
    if not frequent.any():
        raise ValueError(
            f"no amount separates {FEW_LABELS} labels or more from others; choose the edges, "
            + EDGES
        )
    labelled = zip(edge_names(edges), n_labels.tolist(), strict=True)
    listed = np.array([f"{name} ({n:,})" for name, n in labelled])
    notes = ["edges, with the labels at each: " + ", ".join(listed[frequent])]
    if not frequent.all():
        notes.append(
            f"edges of fewer than {FEW_LABELS} labels are left out, and brackets that end there "
            f"widen to the next edge: {', '.join(listed[~frequent])}; to choose, give {EDGES}"
        )
    return check_edges(edges[frequent]), notes


def bands_of(words: Counter[str], parts: int = 0) -> tuple[NDArray[Any], list[str]]:
    """The bands of written brackets, each with its count, or of numbers cut into equal parts.

    >>> bands_of(Counter({"under 18": 9, "18-29": 9, "30+": 9}))[0].tolist()
    ['under 18', '18 to 30', '30 or more']
    >>> bands_of(Counter(map(str, range(100))), parts=4)[0].tolist()
    ['under 25', '25 to 50', '50 to 75', '75 or more']
    """
    if no_answer := forms.about_no_answer(words):
        raise ValueError(no_answer)
    if not (spans := read_brackets(words)):
        raise ValueError(
            f"no label is a bracket of amounts, such as 25k to 50k: {min(words)!r} ..."
        )
    values = np.array([*spans.values()], dtype=np.float64).reshape(-1, 2)
    counts = np.array([words[word] for word in spans], dtype=np.int64)
    if not parts:
        edges, notes = find_edges(values, counts)
        return np.array(band_names(edges)), notes
    order = np.argsort(values[:, 0])
    amounts, below = values[order, 0], np.cumsum(counts[order]) - counts[order]
    at = np.searchsorted(below, np.arange(1, parts) * counts.sum() / parts)
    edges = np.unique(amounts[at[at < amounts.size]])
    part = np.searchsorted(edges, amounts, "right")
    for digits in range(3, 18):  # the fewest that keep every label in its part
        short = np.array([float(f"{edge:.{digits}g}") for edge in edges])
        if np.array_equal(np.searchsorted(short, amounts, "right"), part):
            edges = short
            break
    if not edges.size:
        raise ValueError(f"the labels cannot be cut into {parts} parts; give values to cut at")
    return np.array(band_names(check_edges(edges))), []
