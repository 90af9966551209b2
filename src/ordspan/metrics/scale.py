"""All grades as one scale: labels, predictions and probabilities as ranks on it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordspan.core.state import Ranks
from ordspan.labels import ranks
from ordspan.labels.grades import check_classes, numbers_of, sorted_grades
from ordspan.wording import shown, warn

CLOSE_TO_ONE = 1e-6  # rounding of float32 probabilities
CLASSES = "with classes=[...], also in make_scorer(metric, classes=[...])"
EVERY_GRADE = f"give every grade from lowest to highest {CLASSES}"


def to_ranks(
    true: Any, predicted: Any, classes: Any, *, ranges: bool = False, distances: bool = True
) -> tuple[Ranks, Ranks, Ranks, Ranks, NDArray[Any]]:
    """Ends of the labels, and of the predictions, as ranks of all grades; and these grades.

    Predictions are grades, or ``ranges``. Unless ``distances`` count, any numbers will do as
    grades: their order is enough.
    """
    (labels, labels_order), (guesses, guesses_order) = map(ranks.read_labels, (true, predicted))
    if ranges and guesses.ndim == 1:
        raise ValueError(
            "predictions must have shape (n, 2), [lower, upper] for each label, as "
            "predict_interval returns them"
        )
    if not ranges and guesses.ndim == 2:
        raise ValueError("predictions must have shape (n,), one grade for each label")
    check_count(labels, len(guesses), "predictions")
    refuse_open(guesses, "prediction {value!r} is not a grade")
    grades, given = scale_of(classes, (labels_order, guesses_order), labels, guesses)
    first, last = ranks.encode(guesses, grades, what="prediction")
    lower, upper = ranks.encode(labels, grades)
    if distances and not given:
        rank_of = _whole_numbers_as_ranks(grades)
        grades = int(float(grades[0])) + np.arange(rank_of[-1])
        lower, upper, first, last = (rank_of[place - 1] for place in (lower, upper, first, last))
    return lower, upper, first, last, grades


def refuse_open(labels: ranks.Labels, why: str) -> None:
    """Raise if any end is None, NaN or infinite."""
    if (opened := ranks.is_open(labels)).any():
        row, *_ = place = np.argwhere(opened)[0]
        raise ValueError(f"row {row}: {why.format(value=labels[tuple(place)])}")


def check_count(labels: ranks.Labels, n_rows: int, what: str) -> None:
    """Refuse missing labels, and more or fewer of them than there are predictions."""
    if len(labels) != n_rows:
        raise ValueError(f"{len(labels)} labels but {n_rows} {what}")
    if n_rows == 0:
        raise ValueError("needs at least one label and its prediction")
    ranks.refuse_missing(labels)


def scale_of(
    classes: Any, orders: Sequence[Any], *parts: ranks.Labels
) -> tuple[NDArray[Any], bool]:
    """All grades from lowest to highest, and whether they are given, or numbers that occur.

    They are given as ``classes``, or as the order of a container.
    """
    order = ranks.common_order(*orders) if classes is None else classes
    if order is not None:
        return check_classes(order), True
    closed = "Or close open ends with intervals()"
    for labels in parts:
        refuse_open(labels, f"end {{value!r}} of the range is open; {EVERY_GRADE}. {closed}")
    grades = [sorted_grades(ranks.distinct(labels), CLASSES) for labels in parts]
    return sorted_grades(np.unique(np.concatenate(grades)), CLASSES), False


def _whole_numbers_as_ranks(grades: NDArray[Any]) -> Ranks:
    """Rank of each of the sorted numbers that occur, if these may be ranks."""
    numbers = np.array(numbers_of(grades), dtype=np.float64)
    lowest, highest = numbers[[0, -1]]
    skipped = int(highest - lowest) + 1 - numbers.size
    if (numbers != np.floor(numbers)).any() or skipped > numbers.size:
        raise ValueError(
            f"cannot tell how many ranks grades {shown(grades)} are apart; {EVERY_GRADE}"
        )
    place = (numbers - lowest).astype(np.int64) + 1
    if skipped:
        gap = int(np.argmax(np.diff(place) > 1))
        warn(
            f"grades {int(numbers[gap])} and {int(numbers[gap + 1])} occur, but none between them; "
            f"they are counted as {place[gap + 1] - place[gap]} ranks apart, which is wrong if "
            f"there is no such grade. To be sure, {EVERY_GRADE}"
        )
    return place


def read_probabilities(
    true: Any, proba: Any, classes: Any
) -> tuple[NDArray[np.float64], Ranks, Ranks]:
    """Probabilities of all grades, (n, K), and the ends of the labels as ranks.

    Each lies between 0 and 1, and they sum to 1. Of two grades the second column is enough.
    """
    labels, own_order = ranks.read_labels(true)
    expected = "probabilities must be numbers of shape (n, K), as predict_proba returns them"
    try:
        given = np.asarray(proba, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{expected}: {error}") from None
    if given.ndim not in (1, 2):
        raise ValueError(f"{expected}, but have shape {given.shape}")
    check_count(labels, len(given), "rows of probabilities")
    grades, known = scale_of(classes, [own_order], labels)
    if grades.size != (2 if given.ndim == 1 else given.shape[1]):
        occur, remedy = ("", "give one column for each grade") if known else (" occur", EVERY_GRADE)
        raise ValueError(
            f"{grades.size} grades{occur}, {shown(grades)}, but the probabilities have shape "
            f"{given.shape}; {remedy}"
        )
    if (wrong := ~((given >= 0.0) & (given <= 1.0))).any():  # NaN is neither
        row, *_ = place = tuple(np.argwhere(wrong)[0].tolist())
        raise ValueError(
            f"row {row}: probability {given[place].item()!r} is not between 0 and 1; give the "
            "output of predict_proba"
        )
    share = np.column_stack([1.0 - given, given]) if given.ndim == 1 else given
    total = share.sum(axis=1)
    if (off := np.abs(total - 1.0) > CLOSE_TO_ONE).any():
        row = int(np.argmax(off))
        raise ValueError(
            f"row {row}: the probabilities {shown(share[row])} sum to {total[row].item()!r}, not "
            "to 1; give those of all grades, or divide them by their sum"
        )
    return share, *ranks.encode(labels, grades)
