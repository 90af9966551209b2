"""How good predicted probabilities are, from labels that are exact or ranges."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordspan.core.measures import cumulative_outcomes, ranked_scores, ranks_inside
from ordspan.core.state import Ranks
from ordspan.labels.ranks import encode, read_labels
from ordspan.metrics.scale import (
    ERROR,
    Metric,
    check_count,
    how_to,
    known_order,
    numbers_that_occur,
)
from ordspan.wording import shown

FROM_PROBABILITIES = f"{ERROR}, response_method='predict_proba'"
CLOSE_TO_ONE = 1e-6  # rounding of float32 probabilities


def ranked_probability_score(true: Any, proba: Any, *, classes: Any = None) -> float:
    """Mean squared error of the probabilities of "at most grade k", summed over k.

    The mean absolute error for probabilities: a prediction that is sure of one grade scores its
    distance in ranks, and probability near the true grade costs less than far from it. Smaller is
    better; with K grades, 0 is perfect and K - 1 the worst.

    Parameters
    ----------
    true : array-like of shape (n,) or (n, 2)
        Exact grades, or inclusive ranges ``[lower, upper]`` of them, in any form that ``fit``
        takes. With ``classes``, None and NaN are open ends of ranges.
    proba : array-like of shape (n, K)
        The probability of every grade, from lowest to highest, as ``predict_proba`` of
        `CalibratedOrdinal` returns them. For two grades the probability of the higher one, (n,),
        is enough, as scikit-learn's scorers pass it.
    classes : array-like, optional
        All K grades from lowest to highest. By default, the order is that of an ordered
        Categorical or a polars Enum; numbers are sorted if all K of them occur in ``true``.

    Returns
    -------
    float
        The mean over rows, not divided by K - 1 as in some other libraries.

    Notes
    -----
    With F_k the predicted probability of grade k or lower, and y the rank of the label, a row
    scores the sum over k < K of (F_k - [y <= k])². It is a proper score: the true probabilities
    have the smallest expected score.

    If the label is a range, a row scores the **expected** score of its grades, each weighted by its
    predicted probability within the range:

        sum over k < K of  F_k² - 2 F_k G_k + G_k,   G_k = P(y <= k | lower <= y <= upper).

    If a range has probability 0, all its grades count equally. For an exact label this is the score
    above. For ranges it equals, on average, the score of the unknown true grades if the
    probabilities are right, and if a range says only that the true grade lies inside. Within a
    range, however, the prediction is trusted: a label open at both ends scores the sum of
    F_k (1 - F_k), which measures how unsure the prediction is, not whether it is right. So compare
    models on exact labels, or on ranges with `log_score`.

    Estimators of other libraries sort named grades alphabetically; reorder the columns of their
    probabilities first.

    Examples
    --------
    >>> from ordspan.metrics import ranked_probability_score
    >>> grades = ["low", "mid", "high"]
    >>> ranked_probability_score(["low"], [[0.5, 0.5, 0.0]], classes=grades)
    0.25
    >>> ranked_probability_score(["high"], [[0.5, 0.5, 0.0]], classes=grades)
    1.25
    >>> ranked_probability_score([["low", "mid"]], [[0.5, 0.5, 0.0]], classes=grades)
    0.25

    In cross-validation:

    >>> from sklearn.metrics import make_scorer
    >>> from sklearn.model_selection import cross_val_score
    >>> from ordspan import CalibratedOrdinal, OrdinalPA
    >>> scorer = make_scorer(ranked_probability_score, greater_is_better=False,
    ...                      response_method="predict_proba", classes=grades)
    >>> X = [[-2.0], [2.0], [0.0], [-1.0], [1.0], [-0.9], [0.1], [3.0]]
    >>> y = ["low", "high", "mid", "low", "high", "low", "mid", "high"]
    >>> model = CalibratedOrdinal(OrdinalPA(classes=grades, random_state=0), random_state=0)
    >>> (cross_val_score(model, X, y, scoring=scorer, cv=2) < 0).all()
    np.True_
    """
    metric = Metric("ranked_probability_score", "true, proba", FROM_PROBABILITIES)
    outcomes = cumulative_outcomes(*read_probabilities(metric, true, proba, classes))
    return float(ranked_scores(outcomes.predicted, outcomes.observed).mean())


def log_score(true: Any, proba: Any, *, classes: Any = None) -> float:
    """Mean of minus the logarithm of the probability that the prediction gave to the label.

    Parameters
    ----------
    true, proba, classes :
        As in `ranked_probability_score`.

    Returns
    -------
    float
        Smaller is better, 0 is perfect. Infinite if the prediction gave probability 0 to the label
        of any row, and only then.

    Notes
    -----
    The probability of a range is the sum of those of its grades, so a label open at both ends
    scores 0 whatever the prediction. The score is proper for exact labels, and also for ranges that
    say only that the true grade lies inside: it can compare models on the same labels. Scores on
    labels of different width cannot be compared, since wide ranges are easy to hit.

    Examples
    --------
    >>> from ordspan.metrics import log_score
    >>> round(log_score([1, 2, 3], [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]]), 4)
    0.4621
    >>> log_score([["mid", None]], [[0.0, 0.25, 0.75]], classes=["low", "mid", "high"])
    0.0
    >>> log_score(["low"], [[0.0, 0.25, 0.75]], classes=["low", "mid", "high"])
    inf
    """
    metric = Metric("log_score", "true, proba", FROM_PROBABILITIES)
    share, lower, upper = read_probabilities(metric, true, proba, classes)
    inside = ranks_inside(lower, upper, share.shape[1])
    hit = np.minimum(np.where(inside, share, 0.0).sum(axis=1), 1.0)
    with np.errstate(divide="ignore"):
        return float(0.0 - np.log(hit).mean())


def read_probabilities(
    metric: Metric, true: Any, proba: Any, classes: Any
) -> tuple[NDArray[np.float64], Ranks, Ranks]:
    """Probabilities of all grades, (n, K), and the ends of the labels as ranks."""
    labels, own_order = read_labels(true)
    given = _as_numbers(proba)
    check_count(labels, given.shape[0], "rows of probabilities")
    order = known_order(classes, own_order)
    grades = numbers_that_occur(metric, labels) if order is None else order
    if grades.size != (2 if given.ndim == 1 else given.shape[1]):
        remedy = how_to(metric) if order is None else "give one column for each grade"
        raise ValueError(
            f"{grades.size} grades{' occur' if order is None else ''}, {shown(grades)}, but the "
            f"probabilities have shape {given.shape}; {remedy}"
        )
    share = check_probabilities(given)
    return share, *encode(labels, grades)


def _as_numbers(proba: Any) -> NDArray[np.float64]:
    expected = "probabilities must be numbers of shape (n, K), as predict_proba returns them"
    try:
        given = np.asarray(proba, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{expected}: {error}") from None
    if given.ndim not in (1, 2):
        raise ValueError(f"{expected}, but have shape {given.shape}")
    return given


def check_probabilities(given: NDArray[np.float64]) -> NDArray[np.float64]:
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
