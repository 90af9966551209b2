"""The scale of all grades, and labels and predictions as ranks on it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordspan.core.state import Ranks
from ordspan.labels.grades import check_classes, numbers_of, sorted_grades
from ordspan.labels.ranks import (
    Labels,
    common_order,
    distinct,
    encode,
    is_open,
    read_labels,
    refuse_missing,
)
from ordspan.wording import shown, warn


class Metric(NamedTuple):
    """What the messages of a metric need to know about it."""

    name: str
    arguments: str = "true, predicted"
    scorer: str | None = ""  # arguments of make_scorer besides classes; None if it does not work
    measures_distance: bool = True  # otherwise the order is enough


ERROR = ", greater_is_better=False"


class Ranked(NamedTuple):
    """Ends of the labels, and of the predictions, as ranks of all grades."""

    lower: Ranks
    upper: Ranks
    first: Ranks
    last: Ranks
    grades: NDArray[Any]


def to_ranks(
    metric: Metric, true: Any, predicted: Any, classes: Any, *, ranges: bool = False
) -> Ranked:
    """Ranks of labels, and of predicted grades or ``ranges``, on the scale of all grades."""
    (labels, labels_order), (guesses, guesses_order) = read_labels(true), read_labels(predicted)
    _check_rows(labels, guesses, ranges)
    order = known_order(classes, labels_order, guesses_order)
    grades = numbers_that_occur(metric, labels, guesses) if order is None else order
    first, last = encode(guesses, grades, what="prediction")
    ranked = Ranked(*encode(labels, grades), first, last, grades)
    if order is not None or not metric.measures_distance:
        return ranked
    rank_of = _whole_numbers_as_ranks(metric, grades)
    whole = int(float(grades[0])) + np.arange(rank_of[-1])
    lower, upper, first, last = (rank_of[place - 1] for place in ranked[:4])
    return Ranked(lower, upper, first, last, whole)


def _check_rows(labels: Labels, guesses: Labels, ranges: bool) -> None:
    if ranges and guesses.ndim == 1:
        raise ValueError(
            "predictions must have shape (n, 2), [lower, upper] for each label, as "
            "predict_interval returns them"
        )
    if not ranges and guesses.ndim == 2:
        raise ValueError("predictions must have shape (n,), one grade for each label")
    check_count(labels, len(guesses), "predictions")
    if (opened := is_open(guesses)).any():
        row, *_ = place = np.argwhere(opened)[0]
        raise ValueError(f"row {row}: prediction {guesses[tuple(place)]!r} is not a grade")


def check_count(labels: Labels, n_rows: int, what: str) -> None:
    """Refuse missing labels, and more or fewer of them than there are predictions."""
    if len(labels) != n_rows:
        raise ValueError(f"{len(labels)} labels but {n_rows} {what}")
    if n_rows == 0:
        raise ValueError("needs at least one label and its prediction")
    refuse_missing(labels)


def known_order(classes: Any, *orders: NDArray[Any] | None) -> NDArray[Any] | None:
    """The given order of the grades, else that of the containers, else None."""
    order = common_order(*orders) if classes is None else classes
    return None if order is None else check_classes(order)


def numbers_that_occur(metric: Metric, *parts: Labels) -> NDArray[Any]:
    """The distinct grades, sorted; open ends and anything but numbers need ``classes``."""
    for labels in parts:
        if (opened := is_open(labels)).any():
            row, *_ = place = np.argwhere(opened)[0]
            raise ValueError(
                f"row {row}: end {labels[tuple(place)]!r} of the range is open; "
                f"{how_to(metric)}. Or close open ends with intervals()"
            )
    remedy = in_classes(metric)
    grades = [sorted_grades(distinct(labels), remedy) for labels in parts]
    return sorted_grades(np.unique(np.concatenate(grades)), remedy)


def _whole_numbers_as_ranks(metric: Metric, grades: NDArray[Any]) -> Ranks:
    """Rank of each of the sorted numbers that occur, if these may be ranks."""
    numbers = np.array(numbers_of(grades), dtype=np.float64)
    lowest, highest = numbers[[0, -1]]
    skipped = int(highest - lowest) + 1 - numbers.size
    if (numbers != np.floor(numbers)).any() or skipped > numbers.size:
        raise ValueError(
            f"cannot tell how many ranks grades {shown(grades)} are apart; {how_to(metric)}"
        )
    ranks = (numbers - lowest).astype(np.int64) + 1
    if skipped:
        gap = int(np.argmax(np.diff(ranks) > 1))
        warn(
            f"grades {int(numbers[gap])} and {int(numbers[gap + 1])} occur, but none between them; "
            f"they are counted as {ranks[gap + 1] - ranks[gap]} ranks apart, which is wrong if "
            f"there is no such grade. To be sure, {how_to(metric)}"
        )
    return ranks


def how_to(metric: Metric) -> str:
    """Code that gives the scale of all grades."""
    return f"give every grade from lowest to highest {in_classes(metric)}"


def in_classes(metric: Metric) -> str:
    """Where to give the scale of all grades."""
    call = f"in classes=: {metric.name}({metric.arguments}, classes=[...])"
    if metric.scorer is None:
        return call
    scorer = f"make_scorer({metric.name}{metric.scorer}, classes=[...])"
    return f"{call}, or for cross-validation {scorer}"
