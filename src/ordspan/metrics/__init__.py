"""Metrics for ordered grades; labels as in ``fit``, exact or ranges, and distances in ranks."""

from typing import Any

import numpy as np

from ordspan.core import measures
from ordspan.metrics.ranks import macro_error
from ordspan.metrics.scale import read_probabilities, to_ranks

__all__ = [
    "accuracy",
    "inside_interval",
    "interval_coverage",
    "interval_width",
    "log_score",
    "macro_mean_absolute_error",
    "mean_absolute_error",
    "quadratic_weighted_kappa",
    "ranked_probability_score",
]


def mean_absolute_error(true: Any, predicted: Any, *, classes: Any = None) -> float:
    """Mean distance in ranks from the prediction to an exact label (n,) or a range (n, 2).

    Minus this is the ``score`` of an estimator with the same grades.

    Parameters
    ----------
    true : array-like of shape (n,) or (n, 2)
        Exact grades, or inclusive ranges ``[lower, upper]`` of them, in any form that ``fit``
        takes. With ``classes``, None and NaN are open ends of ranges.
    predicted : array-like of shape (n,)
        The predicted grades, one for each label.
    classes : array-like, optional
        All grades from lowest to highest. By default, the order is that of an ordered Categorical
        or a polars Enum; whole numbers are ranks themselves. See the notes.

    Returns
    -------
    float
        0 if every prediction equals its label or lies in its range.

    Warns
    -----
    UserWarning
        Without ``classes``, if whole numbers are skipped, at most as many as occur.

    Notes
    -----
    The distance between two grades is the number of steps between them on the scale of all
    grades, so it depends on grades that may not occur in these rows. Give ``classes``
    wherever the grades are anything but whole numbers without gaps.

    Without ``classes``, whole numbers are taken as ranks: 1 and 3 are two ranks apart, also in a
    fold without grade 2. Numbers that do not occur may not be grades at all, so there is a warning
    if any are skipped between the lowest and the highest, and an error if more are skipped than
    occur, as with grades 10, 20 and 50. Fractions and words are refused, too. Each message shows
    the code to write. Half grades of which only 1.0 and 2.0 occur look like ranks: always give
    ``classes`` for them.

    Examples
    --------
    >>> from ordspan.metrics import mean_absolute_error
    >>> mean_absolute_error([1, 2, 3, 4], [1, 3, 3, 2])
    0.75
    >>> mean_absolute_error([[1, 2], [2, 4]], [3, 3])
    0.5
    >>> mean_absolute_error([10, 20, 50], [50, 20, 50], classes=[10, 20, 50])
    0.6666666666666666

    In cross-validation, here with ranges of named grades:

    >>> from sklearn.metrics import make_scorer
    >>> from sklearn.model_selection import cross_val_score
    >>> from ordspan import OrdinalPA
    >>> grades = ["low", "mid", "high"]
    >>> X = [[-2.0], [2.0], [0.0], [-1.0], [1.0], [-0.9]]
    >>> y = [["low", "mid"], ["high", "high"], ["mid", "mid"]]
    >>> y += [["low", "low"], ["mid", "high"], ["mid", "mid"]]
    >>> scorer = make_scorer(mean_absolute_error, greater_is_better=False, classes=grades)
    >>> model = OrdinalPA(classes=grades, random_state=0)
    >>> cross_val_score(model, X, y, scoring=scorer, cv=2).round(2)
    array([-0.  , -0.33])
    """
    lower, upper, ranks, *_ = to_ranks(true, predicted, classes)
    return float(measures.distance(ranks, lower, upper).mean())


def macro_mean_absolute_error(true: Any, predicted: Any, *, classes: Any = None) -> float:
    """Mean over the grades that occur of the mean absolute error within each.

    Rare grades weigh as much as frequent ones. Grades without an example do not count, and a range
    counts as a grade of its own.

    Parameters
    ----------
    true, predicted, classes :
        As in `mean_absolute_error`.

    Returns
    -------
    float
        The mean over grades, 0 if every prediction is right.

    Examples
    --------
    >>> from ordspan.metrics import macro_mean_absolute_error
    >>> macro_mean_absolute_error([1, 1, 1, 5], [1, 1, 1, 3], classes=[1, 2, 3, 4, 5])
    1.0
    """
    lower, upper, ranks, *_ = to_ranks(true, predicted, classes)
    _, group = np.unique(np.column_stack([lower, upper]), axis=0, return_inverse=True)
    return macro_error(group.ravel(), measures.distance(ranks, lower, upper))


def accuracy(true: Any, predicted: Any, *, classes: Any = None) -> float:
    """Share of predictions equal to the exact label.

    Parameters
    ----------
    true : array-like of shape (n,)
        Exact grades; a range ``[k, k]`` counts as exact.
    predicted : array-like of shape (n,)
        The predicted grades, one for each label.
    classes : array-like, optional
        All grades from lowest to highest; required for words, unless they are an ordered
        Categorical or a polars Enum.

    Returns
    -------
    float
        From 0 to 1.

    Examples
    --------
    >>> from ordspan.metrics import accuracy
    >>> accuracy([1, 2, 3, 3], [1, 2, 3, 1])
    0.75
    >>> accuracy(["low", "high"], ["low", "mid"], classes=["low", "mid", "high"])
    0.5
    """
    lower, upper, ranks, *_ = to_ranks(true, predicted, classes, distances=False)
    if not np.array_equal(lower, upper):
        raise ValueError("accuracy needs exact labels; for ranges use inside_interval")
    return float((ranks == lower).mean())


def inside_interval(true: Any, predicted: Any, *, classes: Any = None) -> float:
    """Share of predictions that lie inside the label's range.

    Parameters
    ----------
    true : array-like of shape (n,) or (n, 2)
        Exact grades, or inclusive ranges ``[lower, upper]`` of them, in any form that ``fit``
        takes. With ``classes``, None and NaN are open ends of ranges.
    predicted : array-like of shape (n,)
        The predicted grades, one for each label.
    classes : array-like, optional
        All grades from lowest to highest; required for words, unless they are an ordered
        Categorical or a polars Enum.

    Returns
    -------
    float
        From 0 to 1; the accuracy if all labels are exact.

    Examples
    --------
    >>> from ordspan.metrics import inside_interval
    >>> inside_interval([[1, 2], [2, 4]], [3, 3])
    0.5
    >>> inside_interval([["mid", None]], ["high"], classes=["low", "mid", "high"])
    1.0
    """
    lower, upper, ranks, *_ = to_ranks(true, predicted, classes, distances=False)
    return float((measures.distance(ranks, lower, upper) == 0).mean())


def quadratic_weighted_kappa(true: Any, predicted: Any, *, classes: Any = None) -> float:
    """Cohen's kappa with squared rank distances: 1 is perfect, 0 is chance.

    If all labels and predictions are the same grade, agreement is perfect: 1.

    Parameters
    ----------
    true : array-like of shape (n,)
        Exact grades; a range ``[k, k]`` counts as exact.
    predicted : array-like of shape (n,)
        The predicted grades, one for each label.
    classes : array-like, optional
        All grades from lowest to highest, as in `mean_absolute_error`.

    Returns
    -------
    float
        At most 1; below 0 if agreement is worse than chance.

    Examples
    --------
    >>> from ordspan.metrics import quadratic_weighted_kappa
    >>> quadratic_weighted_kappa([1, 2, 3], [1, 2, 3])
    1.0
    >>> grades = ["low", "mid", "high"]
    >>> quadratic_weighted_kappa(grades, ["high", "mid", "low"], classes=grades)
    -1.0
    """
    lower, upper, ranks, *_ = to_ranks(true, predicted, classes)
    if not np.array_equal(lower, upper):
        raise ValueError("quadratic_weighted_kappa needs exact labels")
    return measures.quadratic_kappa(lower, ranks)


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
    >>> model = CalibratedOrdinal(OrdinalPA(classes=grades, random_state=0), cv=2, random_state=0)
    >>> (cross_val_score(model, X, y, scoring=scorer, cv=2) < 0).all()
    np.True_
    """
    outcomes = measures.cumulative_outcomes(*read_probabilities(true, proba, classes))
    return float(measures.ranked_scores(outcomes.predicted, outcomes.observed).mean())


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
    share, lower, upper = read_probabilities(true, proba, classes)
    inside = measures.ranks_inside(lower, upper, share.shape[1])
    hit = np.minimum(np.where(inside, share, 0.0).sum(axis=1), 1.0)
    with np.errstate(divide="ignore"):
        return float(0.0 - np.log(hit).mean())


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
    if count not in (None, "contain", "meet"):
        raise ValueError(f"count must be 'contain', 'meet' or None, got {count!r}")
    lower, upper, first, last, _ = to_ranks(true, predicted, classes, ranges=True, distances=False)
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
    _, _, first, last, _ = to_ranks(predicted, predicted, classes, ranges=True)
    return float((last - first + 1).mean())
