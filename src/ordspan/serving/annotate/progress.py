"""Progress of annotation: speed, error, ranges, agreement, and anchoring on guesses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from ordspan.serving.annotate.history import History, Reply
from ordspan.serving.annotate.items import can_learn
from ordspan.serving.log import LEARN
from ordspan.serving.models import COVERAGE
from ordspan.tables.encoder import Recipe

PATIENCE = 40
"""Answers after which the page says why the model is not better than a constant grade."""
FEW_COLUMNS = 3
MOST_POINTS = 200
"""Most points in the error curve; it is thinned beyond that."""


def progress(history: History, recipe: Recipe) -> dict[str, Any]:
    """The numbers of the progress page, as plain values."""
    replies = list(history.replies.values())
    answers = [one for one in replies if one.event.kind == LEARN]
    tests = [one for one in answers if one.tests]
    minutes, per_minute = _speed(replies)
    return {
        "answers": len(answers),
        "skips": len(replies) - len(answers),
        "items": history.answered.size,
        "items_answered": int((history.answered > 0).sum()),
        "minutes": minutes,
        "per_minute": per_minute,
        **_range_shares(answers),
        "error": error_curve([one.event.judged[0] for one in tests]),
        "advice": advice(history, recipe),
        "best_constant": int(history.constant_losses.min()) / len(tests) if tests else None,
        "coverage": _coverage(tests),
        "annotators": _annotators(replies),
        "agreement": _agreement(answers),
        "anchoring": {
            "shown": _anchoring(one for one in answers if one.extra.shown),
            "hidden": _anchoring(one for one in answers if not one.extra.shown),
        },
    }


def advice(history: History, recipe: Recipe) -> str:
    """Why the model does not beat a constant grade after PATIENCE answers, as far as is known."""
    if int(history.answered.sum()) < PATIENCE or history.beats_constant(PATIENCE):
        return ""
    if not can_learn(recipe):
        reason = "There is no column to learn from. Add columns that say something about the grade."
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


def mean(values: Sequence[float]) -> float | None:
    """The mean, or None if there are no values."""
    return float(np.mean(values)) if len(values) else None


def _speed(replies: Sequence[Reply]) -> tuple[float, float | None]:
    """Minutes of work and answers per minute."""
    minutes = sum(one.extra.seconds or 0.0 for one in replies) / 60
    n_answers = sum(one.event.kind == LEARN for one in replies)
    return minutes, n_answers / minutes if minutes else None


def _range_shares(answers: Sequence[Reply]) -> dict[str, float | None]:
    """Share of answers that are ranges, and mean number of grades in an answer."""
    widths = [1 + upper - lower for lower, upper in (one.ends for one in answers)]
    return {"range_share": mean([width > 1 for width in widths]), "mean_width": mean(widths)}


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
    return [
        {
            "answers": int(n[i]),
            "mae": float(mae[i]),
            "low": float(max(0.0, mae[i] - half[i])),
            "high": float(mae[i] + half[i]),
        }
        for i in places
    ]


def _coverage(tests: Iterable[Reply]) -> dict[str, float | None] | None:
    """How often the range predicted before learning contains the answer, or a grade of it."""
    judged = [one.event.judged for one in tests if one.event.low is not None]
    if not judged:
        return None
    _, contains, meets = np.array(judged, dtype=np.float64).mean(axis=0).tolist()
    return {"contains": contains, "meets": meets, "asked": COVERAGE}


def _annotators(replies: Iterable[Reply]) -> list[dict[str, Any]]:
    by_name: dict[str, list[Reply]] = defaultdict(list)
    for one in replies:
        by_name[one.extra.annotator].append(one)
    rows = []
    for name, own in sorted(by_name.items()):
        answers = [one for one in own if one.event.kind == LEARN]
        skips = len(own) - len(answers)
        row = {"name": name, "answers": len(answers), "skips": skips, "per_minute": _speed(own)[1]}
        rows.append(row | _range_shares(answers))
    return rows


def _agreement(answers: Iterable[Reply]) -> dict[str, Any]:
    """Agreement over pairs of annotators who answered the same item."""
    by_item: dict[int, dict[str, tuple[int, int]]] = defaultdict(dict)
    for one in answers:
        by_item[one.extra.item][one.extra.annotator] = one.ends
    several = [list(ends.values()) for ends in by_item.values() if len(ends) > 1]
    pairs = [pair for ends in several for pair in combinations(ends, 2)]
    gaps = [max(0, a[0] - b[1], b[0] - a[1]) for a, b in pairs]
    return {
        "items": len(several),
        "pairs": len(pairs),
        "same": mean([a == b for a, b in pairs]),
        "meet": mean([gap == 0 for gap in gaps]),
        "gap": mean(gaps),
    }


def _anchoring(answers: Iterable[Reply]) -> dict[str, Any]:
    """Mean distance between the midpoints of answer and guess, where there was a guess."""
    distances = [
        abs(sum(one.ends) - guess.lower - guess.upper) / 2
        for one in answers
        if (guess := one.extra.guess) is not None
    ]
    return {"n": len(distances), "distance": mean(distances)}
