"""Labels as people write them, such as "3-5" or "at least 3", read as files read them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ordspan.core.labels import check_classes, is_open, read_column
from ordspan.files.batch import brief, is_number
from ordspan.files.forms import OPEN, readings, tidy
from ordspan.files.grades import LabelReader, classes_of


def parse_intervals(labels: ArrayLike, *, classes: Any = None) -> NDArray[Any]:
    """Build range labels for ``fit`` from one column of labels as people write them.

    Every form that files may use is read: ``4``, ``"3-5"``, ``"at least 3"``, ``"65+"``,
    ``"<=2"``, ``"between 2 and 4"``; the user guide lists them all.

    Parameters
    ----------
    labels : array-like of shape (n,)
        Grades and ranges of grades, as text or numbers. A label that is the name of a grade is
        that grade. A missing label (None, NaN or empty text) becomes the range of all grades.
    classes : array-like, optional
        All grades from lowest to highest. By default the order of an ordered Categorical, or else
        the numbers that occur in the labels; grades that are names must be given.

    Returns
    -------
    ndarray of shape (n, 2)
        The ``y`` to pass to any estimator.

    See Also
    --------
    intervals : Build range labels from two columns, one for each end.

    Examples
    --------
    >>> from ordspan import parse_intervals
    >>> parse_intervals(["1-2", "at least 3", 5, None], classes=[1, 2, 3, 4, 5])
    array([[1, 2],
           [3, 5],
           [5, 5],
           [1, 5]])
    >>> parse_intervals(["18-24", "25-34 or older"], classes=["18-24", "25-34", "35+"])
    array([['18-24', '18-24'],
           ['25-34', '35+']], dtype='<U5')
    """
    values, order = read_column(labels)
    if values.ndim != 1:
        raise ValueError(
            f"labels must be one column, got shape {values.shape}; for two columns, one for each "
            "end, use intervals(lower, upper)"
        )
    missing = is_open(values).tolist()
    texts = ["" if gone else str(v) for v, gone in zip(values.tolist(), missing, strict=True)]
    words = dict.fromkeys(texts)
    given = order if classes is None else classes
    grades = classes_of(words) if given is None else check_classes(given)
    reader = LabelReader(grades)
    spans = {}
    for word in words:
        try:
            spans[word] = reader.interval(word)
        except ValueError as error:
            if tidy(word) not in OPEN:
                raise ValueError(f"row {texts.index(word)}: label {brief(word)}: {error}") from None
            spans[word] = 1, grades.size
    ranks = np.array([spans[text] for text in texts], dtype=np.int64).reshape(-1, 2)
    return grades[ranks - 1]


def can_be_read(label: Any, classes: NDArray[Any]) -> bool:
    """Whether a label is text that means a grade or a range of them.

    >>> can_be_read("1-2", np.array([1, 2, 3])), can_be_read("4", np.array([1, 2, 3]))
    (True, False)
    """
    try:
        return isinstance(label, str) and bool(LabelReader(classes).interval(label))
    except ValueError:
        return False


def refuse_written_ranges(labels: NDArray[Any]) -> None:
    """Raise for the first of some distinct strings that reads as a range of the others.

    Names of bands are no such ranges: 18 and 24, the ends of "18-24", are not labels themselves.
    """
    words = {tidy(word): word for word in labels.tolist()}
    numbers = [float(word) for word in words if is_number(word)]
    for text, label in words.items():
        for ends in readings(text):
            among_labels = all(end in words and end != text for end in ends.values())
            if ends and among_labels and not _beyond(ends, numbers):
                among = " and ".join(repr(words[end]) for end in ends.values())
                raise ValueError(
                    f"label {brief(label)} reads as a range of other labels (here {among}): turn "
                    "the column into ranges with y = ordspan.parse_intervals(y, classes=[...]), "
                    "or, if it is a grade of its own, list it among the estimator's classes=[...]"
                )


def _beyond(ends: dict[str, str], numbers: list[float]) -> bool:
    """Whether an excluded end is the lowest or highest number, as in ">2" beside 0, 1 and 2.

    >>> _beyond({"above": "2"}, [0.0, 1.0, 2.0]), _beyond({"above": "1"}, [0.0, 1.0, 2.0])
    (True, False)
    """
    return any(
        is_number(end) and float(end) == last(numbers)
        for kind, last in (("above", max), ("below", min))
        if (end := ends.get(kind)) is not None
    )
