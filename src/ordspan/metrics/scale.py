"""The scale of all grades, and labels and predictions as ranks on it."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordspan.core.labels import (
    Ranks,
    check_classes,
    check_order,
    distinct,
    encode,
    encode_interval,
    is_open,
    shown,
    users_level,
)
from ordspan.estimators.targets import Labels, ends, read_labels, refuse_missing


class Metric(NamedTuple):
    """What the messages of a metric need to know about it."""

    name: str
    arguments: str = "true, predicted"
    scorer: str | None = ""  # arguments of make_scorer besides classes; None if it does not work
    measures_distance: bool = True  # otherwise the order is enough


ERROR = ", greater_is_better=False"


class Ranked(NamedTuple):
    """Ends of the labels, and of the predictions, as ranks."""

    lower: Ranks
    upper: Ranks
    first: Ranks
    last: Ranks


def to_ranks(
    metric: Metric, true: Any, predicted: Any, classes: Any, *, ranges: bool = False
) -> Ranked:
    """Ranks of labels, and of predicted grades or ``ranges``, on the scale of all grades."""
    labels, guesses = read_labels(true), read_labels(predicted)
    _check_rows(labels, guesses, ranges)
    order = known_order(classes, labels, guesses)
    grades = numbers_that_occur(metric, labels, guesses) if order is None else order
    first = encode(guesses.lower, grades, what="prediction")
    last = encode(guesses.upper, grades, what="prediction") if ranges else first
    check_order(first, last, guesses.lower, guesses.upper, "end of the prediction")
    ranked = Ranked(*encode_interval(labels.lower, labels.upper, grades), first, last)
    if order is not None or not metric.measures_distance:
        return ranked
    rank_of = _whole_numbers_as_ranks(metric, grades)
    return Ranked(*(rank_of[place - 1] for place in ranked))


def _check_rows(labels: Labels, guesses: Labels, ranges: bool) -> None:
    if ranges and guesses.lower is guesses.upper:
        raise ValueError(
            "predictions must have shape (n, 2), [lower, upper] for each label, as "
            "predict_interval returns them"
        )
    if not ranges and guesses.lower is not guesses.upper:
        raise ValueError("predictions must have shape (n,), one grade for each label")
    check_count(labels, guesses.lower.size, "predictions")
    for end in ends(guesses):
        if is_open(end).any():
            row = int(np.argmax(is_open(end)))
            raise ValueError(f"row {row}: prediction {end[row]!r} is not a grade")


def check_count(labels: Labels, n_rows: int, what: str) -> None:
    """Refuse missing labels, and more or fewer of them than there are predictions."""
    if labels.lower.size != n_rows:
        raise ValueError(f"{labels.lower.size} labels but {n_rows} {what}")
    if n_rows == 0:
        raise ValueError("needs at least one label and its prediction")
    refuse_missing(labels)


def known_order(classes: Any, *parts: Labels) -> NDArray[Any] | None:
    """The given order of the grades, else that of the containers, else None."""
    if classes is not None:
        return check_classes(classes)
    orders = [part.order for part in parts if part.order is not None]
    if not orders:
        return None
    if not np.array_equal(orders[0], orders[-1]):
        raise ValueError(
            "labels and predictions have different orders: "
            f"{shown(orders[0])} and {shown(orders[-1])}"
        )
    return check_classes(orders[0])


def numbers_that_occur(metric: Metric, *parts: Labels) -> NDArray[Any]:
    """The distinct grades, sorted; open ends and anything but numbers need ``classes``."""
    columns = [end for part in parts for end in ends(part)]
    for end in columns:
        if is_open(end).any():
            row = int(np.argmax(is_open(end)))
            raise ValueError(
                f"row {row}: end {end[row]!r} of the range is open; {how_to(metric)}. "
                "Or close open ends with intervals()"
            )
    for column in columns:
        values = np.array(column.tolist()) if column.dtype == object else column
        if values.dtype.kind not in "biuf":
            word = column.tolist()[0]
            raise ValueError(f"the order of grades like {word!r} is not known; {how_to(metric)}")
    return distinct(*columns)


def _whole_numbers_as_ranks(metric: Metric, grades: NDArray[Any]) -> Ranks:
    """Rank of each of the sorted numbers that occur, if these may be ranks."""
    lowest, highest = int(grades[0]), int(grades[-1])
    skipped = highest - lowest + 1 - grades.size
    if (grades != np.floor(grades)).any() or skipped > grades.size:
        raise ValueError(
            f"cannot tell how many ranks grades {shown(grades)} are apart; {how_to(metric)}"
        )
    ranks = grades.astype(np.int64) - lowest + 1
    if skipped:
        gap = int(np.argmax(np.diff(ranks) > 1))
        warnings.warn(
            f"grades {int(grades[gap])} and {int(grades[gap + 1])} occur, but none between them; "
            f"they are counted as {ranks[gap + 1] - ranks[gap]} ranks apart, which is wrong if "
            f"there is no such grade. To be sure, {how_to(metric)}",
            UserWarning,
            stacklevel=users_level(),
        )
    return ranks


def how_to(metric: Metric) -> str:
    """Code that gives the scale of all grades."""
    call = (
        "give every grade from lowest to highest in classes=: "
        f"{metric.name}({metric.arguments}, classes=[...])"
    )
    if metric.scorer is None:
        return call
    return (
        f"{call}, or for cross-validation make_scorer({metric.name}{metric.scorer}, classes=[...])"
    )
