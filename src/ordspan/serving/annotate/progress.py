"""Progress of annotation: speed, error, ranges, agreement, and anchoring on guesses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from ordspan.serving.annotate.items import can_learn
from ordspan.serving.annotate.session import History, Reply
from ordspan.serving.engine import COVERAGE
from ordspan.serving.log import LEARN
from ordspan.tables.encoder import Recipe

PATIENCE = 40  # answers after which the page says why the model is not better than a constant grade
FEW_COLUMNS = 3
MOST_POINTS = 200  # most points in the error curve; it is thinned beyond that


def progress(history: History, recipe: Recipe) -> dict[str, Any]:
    """The numbers of the progress page, as plain values."""
    replies = list(history.replies.values())
    answers = [one for one in replies if one.event.kind == LEARN]
    tests = [one for one in answers if one.tests]
    by_name: dict[str, list[Reply]] = defaultdict(list)
    for one in replies:
        by_name[one.note.annotator].append(one)
    return _work(replies) | {
        "items": history.answered.size,
        "items_answered": int((history.answered > 0).sum()),
        "minutes": _minutes(replies),
        "error": error_curve([one.distance for one in tests]),
        "advice": advice(history, recipe),
        "best_constant": int(history.constant_losses.min()) / len(tests) if tests else None,
        "coverage": _coverage(tests),
        "annotators": [{"name": name} | _work(own) for name, own in sorted(by_name.items())],
        "agreement": _agreement(answers),
        "anchoring": {
            "shown": _anchoring(one for one in answers if one.note.shown),
            "hidden": _anchoring(one for one in answers if not one.note.shown),
        },
    }


def advice(history: History, recipe: Recipe) -> str:
    """Why the model does not beat a constant grade after PATIENCE answers, as far as is known."""
    if int(history.answered.sum()) < PATIENCE or history.beats_constant(PATIENCE):
        return ""
    if not can_learn(recipe):
        reason = "There is no column to learn from. Add columns that say something about the grade."
    elif recipe.sentences:
        names = " and ".join(dict(recipe.sentences))
        reason = f"It learns from {names} word by word, which takes one or two hundred answers."
    elif recipe.hashed and not recipe.numbers:
        reason = (
            f"It only has texts to learn from ({', '.join(recipe.hashed)}), and knows a text by "
            "the whole cell, not by its words. Add columns with numbers or categories."
        )
    elif len(recipe.columns) < FEW_COLUMNS:
        reason = (
            f"It only learns from {' and '.join(recipe.columns)}. Add columns that say more about "
            "the grade."
        )
    else:
        reason = "Its columns may say little about the grade, or it may need more answers."
    return f"The model is not better than always giving the same grade. {reason}"


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if len(values) else None


def _minutes(replies: Iterable[Reply]) -> float:
    return sum(one.note.seconds or 0.0 for one in replies) / 60


def _work(replies: Collection[Reply]) -> dict[str, Any]:
    """Answers, skips and their speed, the share of ranges, and the mean number of grades."""
    ends = [one.ends for one in replies if one.event.kind == LEARN]
    widths, minutes = [1 + upper - lower for lower, upper in ends], _minutes(replies)
    return {
        "answers": len(ends),
        "skips": len(replies) - len(ends),
        "per_minute": len(ends) / minutes if minutes else None,
        "range_share": _mean([width > 1 for width in widths]),
        "mean_width": _mean(widths),
    }


def error_curve(distances: Sequence[int]) -> list[dict[str, float]]:
    """Mean of the first n distances, n = 1, 2, ..., plus and minus 1.96 standard errors.

    >>> error_curve([0, 1])[-1] == {"answers": 2, "mae": 0.5, "low": 0.0, "high": 0.5 + 1.96 / 2}
    True
    """
    values = np.asarray(distances, dtype=np.float64)
    n = np.arange(1, values.size + 1)
    mae = np.cumsum(values) / n
    variance = np.maximum(0.0, np.cumsum(values**2) - n * mae**2) / np.maximum(1, n - 1)
    half = 1.96 * np.sqrt(variance / n)
    places = np.unique(np.linspace(0, values.size - 1, min(values.size, MOST_POINTS)).astype(int))
    columns = (n, mae, np.maximum(0.0, mae - half), mae + half)
    points = zip(*(column[places].tolist() for column in columns), strict=True)
    return [dict(zip(("answers", "mae", "low", "high"), point, strict=True)) for point in points]


def _coverage(tests: Iterable[Reply]) -> dict[str, float] | None:
    """How often the range predicted before learning contains the answer, or a grade of it."""
    ranges = [(*one.ends, *one.event[8:10]) for one in tests if one.event.low is not None]
    if not ranges:
        return None
    lower, upper, low, high = np.array(ranges, dtype=np.int64).T
    contains, meets = (low <= lower) & (upper <= high), (low <= upper) & (lower <= high)
    return {"contains": float(contains.mean()), "meets": float(meets.mean()), "asked": COVERAGE}


def _agreement(answers: Iterable[Reply]) -> dict[str, Any]:
    """Agreement over pairs of annotators who answered the same item."""
    by_item: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for one in answers:
        by_item[one.note.item].append(one.ends)
    pairs = [pair for ends in by_item.values() for pair in combinations(ends, 2)]
    gaps = [max(0, a[0] - b[1], b[0] - a[1]) for a, b in pairs]
    return {
        "items": sum(len(ends) > 1 for ends in by_item.values()),
        "pairs": len(pairs),
        "same": _mean([a == b for a, b in pairs]),
        "meet": _mean([gap == 0 for gap in gaps]),
        "gap": _mean(gaps),
    }


def _anchoring(answers: Iterable[Reply]) -> dict[str, Any]:
    """Mean distance between the midpoints of answer and guess, where there was a guess."""
    distances = [
        abs(sum(one.ends) - guess.lower - guess.upper) / 2
        for one in answers
        if (guess := one.note.guess) is not None
    ]
    return {"n": len(distances), "distance": _mean(distances)}
