"""The scale of all grades: labels, predictions and probabilities on it, or how to give it."""

from __future__ import annotations

from typing import Any

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

CLOSE_TO_ONE = 1e-6  # rounding of float32 probabilities
EVERY_GRADE = "give every grade from lowest to highest"


def code(name: str, arguments: str = "true, predicted", scorer: str | None = "") -> str:
    """Code that gives a metric the scale of all grades, alone and, unless None, as a scorer.

    >>> code("accuracy")
    'in classes=: accuracy(true, predicted, classes=[...]), or for cross-validation
    make_scorer(accuracy, classes=[...])'
    """
    call = f"in classes=: {name}({arguments}, classes=[...])"
    if scorer is None:
        return call
    return f"{call}, or for cross-validation make_scorer({name}{scorer}, classes=[...])"


def to_ranks(
    call: str,
    true: Any,
    predicted: Any,
    classes: Any,
    *,
    ranges: bool = False,
    distances: bool = True,
) -> tuple[Ranks, Ranks, Ranks, Ranks, NDArray[Any]]:
    """Ends of the labels, and of the predictions, as ranks of all grades; and these grades.

    Predictions are grades, or ``ranges``. Unless ``distances`` count, any numbers will do as
    grades: their order is enough. ``call`` is the `code` that messages show.
    """
    (labels, labels_order), (guesses, guesses_order) = read_labels(true), read_labels(predicted)
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
    order = known_order(classes, labels_order, guesses_order)
    grades = numbers_that_occur(call, labels, guesses) if order is None else order
    first, last = encode(guesses, grades, what="prediction")
    lower, upper = encode(labels, grades)
    if order is None and distances:
        rank_of = _whole_numbers_as_ranks(call, grades)
        grades = int(float(grades[0])) + np.arange(rank_of[-1])
        lower, upper, first, last = (rank_of[place - 1] for place in (lower, upper, first, last))
    return lower, upper, first, last, grades


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


def numbers_that_occur(call: str, *parts: Labels) -> NDArray[Any]:
    """The distinct grades, sorted; open ends and anything but numbers need ``classes``."""
    for labels in parts:
        if (opened := is_open(labels)).any():
            row, *_ = place = np.argwhere(opened)[0]
            raise ValueError(
                f"row {row}: end {labels[tuple(place)]!r} of the range is open; "
                f"{EVERY_GRADE} {call}. Or close open ends with intervals()"
            )
    grades = [sorted_grades(distinct(labels), call) for labels in parts]
    return sorted_grades(np.unique(np.concatenate(grades)), call)


def _whole_numbers_as_ranks(call: str, grades: NDArray[Any]) -> Ranks:
    """Rank of each of the sorted numbers that occur, if these may be ranks."""
    numbers = np.array(numbers_of(grades), dtype=np.float64)
    lowest, highest = numbers[[0, -1]]
    skipped = int(highest - lowest) + 1 - numbers.size
    if (numbers != np.floor(numbers)).any() or skipped > numbers.size:
        raise ValueError(
            f"cannot tell how many ranks grades {shown(grades)} are apart; {EVERY_GRADE} {call}"
        )
    ranks = (numbers - lowest).astype(np.int64) + 1
    if skipped:
        gap = int(np.argmax(np.diff(ranks) > 1))
        warn(
            f"grades {int(numbers[gap])} and {int(numbers[gap + 1])} occur, but none between them; "
            f"they are counted as {ranks[gap + 1] - ranks[gap]} ranks apart, which is wrong if "
            f"there is no such grade. To be sure, {EVERY_GRADE} {call}"
        )
    return ranks


def read_probabilities(
    call: str, true: Any, proba: Any, classes: Any
) -> tuple[NDArray[np.float64], Ranks, Ranks]:
    """Probabilities of all grades, (n, K), and the ends of the labels as ranks."""
    labels, own_order = read_labels(true)
    expected = "probabilities must be numbers of shape (n, K), as predict_proba returns them"
    try:
        given = np.asarray(proba, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{expected}: {error}") from None
    if given.ndim not in (1, 2):
        raise ValueError(f"{expected}, but have shape {given.shape}")
    check_count(labels, given.shape[0], "rows of probabilities")
    order = known_order(classes, own_order)
    grades = numbers_that_occur(call, labels) if order is None else order
    if grades.size != (2 if given.ndim == 1 else given.shape[1]):
        remedy = f"{EVERY_GRADE} {call}" if order is None else "give one column for each grade"
        raise ValueError(
            f"{grades.size} grades{' occur' if order is None else ''}, {shown(grades)}, but the "
            f"probabilities have shape {given.shape}; {remedy}"
        )
    return _checked(given), *encode(labels, grades)


def _checked(given: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities of all grades, (n, K), which lie between 0 and 1 and sum to 1."""
    wrong = ~((given >= 0.0) & (given <= 1.0))  # NaN is neither
    if wrong.any():
        place = tuple(np.argwhere(wrong)[0].tolist())
        raise ValueError(
            f"row {place[0]}: probability {given[place].item()!r} is not between 0 and 1; give the "
            "output of predict_proba"
        )
    if given.ndim == 1:
        return np.column_stack([1.0 - given, given])
    total = given.sum(axis=1)
    off = np.abs(total - 1.0) > CLOSE_TO_ONE
    if off.any():
        row = int(np.argmax(off))
        raise ValueError(
            f"row {row}: the probabilities {shown(given[row])} sum to {total[row].item()!r}, not "
            "to 1; give those of all grades, or divide them by their sum"
        )
    return given
