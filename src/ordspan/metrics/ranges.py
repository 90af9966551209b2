"""How often predicted ranges contain the true grade, and how wide they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from ordspan.metrics.scale import Metric, to_ranks

COUNTS = (None, "contain", "meet")


def interval_coverage(
    true: Any, predicted: Any, *, count: str | None = None, classes: Any = None
) -> float:
    """Share of predicted ranges that contain the true grade.

    Parameters
    ----------
    true : array-like of shape (n,) or (n, 2)
        Exact grades, or, with ``count``, inclusive ranges ``[lower, upper]`` of them, in any form
        that ``fit`` takes. With ``classes``, None and NaN are open ends of ranges.
    predicted : array-like of shape (n, 2)
        The predicted ranges, as ``predict_interval`` of `CalibratedOrdinal` returns them.
    count : {"contain", "meet"}, optional
        Which predicted ranges count if labels are ranges: those that contain the whole label, or
        those that share a grade with it. By default, labels must be exact. See the notes.
    classes : array-like, optional
        All grades from lowest to highest; required for words, unless they are an ordered
        Categorical or a polars Enum.

    Returns
    -------
    float
        From 0 to 1.

    Notes
    -----
    Whether a predicted range contains the true grade is unknown if it contains only some grades of
    a label that is a range. As long as every label contains its true grade,

        coverage with "contain" <= coverage of the true grades <= coverage with "meet",

    whatever the labels and the predictions. For exact labels all three are equal.

    Examples
    --------
    >>> from ordspan.metrics import interval_coverage
    >>> interval_coverage([1, 2, 3, 3], [[1, 2], [2, 2], [1, 3], [1, 2]])
    0.75
    >>> labels, predicted = [[1, 2], [2, 4], [3, 3]], [[1, 3], [3, 4], [1, 2]]
    >>> [round(interval_coverage(labels, predicted, count=c), 2) for c in ("contain", "meet")]
    [0.33, 0.67]

    In cross-validation, here at a coverage of 80 %:

    >>> import numpy as np
    >>> from sklearn.model_selection import cross_val_score
    >>> from ordspan import CalibratedOrdinal
    >>> X = np.random.default_rng(0).normal(size=(300, 1))
    >>> y = np.searchsorted([-1.0, 0.0, 1.0], X[:, 0])
    >>> def covered(model, X, y):
    ...     return interval_coverage(y, model.predict_interval(X, coverage=0.8), classes=range(4))
    >>> (cross_val_score(CalibratedOrdinal(random_state=0), X, y, scoring=covered) >= 0.7).all()
    np.True_
    """
    if count not in COUNTS:
        raise ValueError(f"count must be 'contain', 'meet' or None, got {count!r}")
    metric = Metric(
        "interval_coverage",
        scorer=", response_method=['predict_interval']",
        measures_distance=False,
    )
    lower, upper, first, last, _ = to_ranks(metric, true, predicted, classes, ranges=True)
    if count is None and (lower != upper).any():
        row = int(np.argmax(lower != upper))
        raise ValueError(
            f"row {row}: the label is a range, so its true grade is not known; count='contain' "
            "gives a lower bound of the coverage, count='meet' an upper bound"
        )
    if count == "meet":
        return float(((first <= upper) & (lower <= last)).mean())
    return float(((first <= lower) & (upper <= last)).mean())


def interval_width(predicted: Any, *, classes: Any = None) -> float:
    """Mean number of grades in predicted ranges: 1 if each is a single grade.

    Parameters
    ----------
    predicted : array-like of shape (n, 2)
        The predicted ranges, as ``predict_interval`` of `CalibratedOrdinal` returns them.
    classes : array-like, optional
        All grades from lowest to highest, as in `mean_absolute_error`: by default, whole numbers
        are ranks, and words must be an ordered Categorical or a polars Enum.

    Returns
    -------
    float
        From 1 to the number of grades. At the same coverage, smaller is better.

    Warns
    -----
    UserWarning
        Without ``classes``, if whole numbers are skipped, at most as many as occur.

    Examples
    --------
    >>> from ordspan.metrics import interval_width
    >>> interval_width([[1, 2], [2, 2], [1, 3]])
    2.0
    >>> interval_width([["low", "high"]], classes=["low", "mid", "high"])
    3.0
    """
    metric = Metric("interval_width", "predicted", scorer=None)
    _, _, first, last, _ = to_ranks(metric, predicted, predicted, classes, ranges=True)
    return float((last - first + 1).mean())
