"""Measures of predicted ranks, the best constant predictions, and the order within queries.

A row may stand for several: ``counts`` says for how many.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordspan.core.measures import distance, quadratic_kappa, ranked_scores
from ordspan.core.state import Floats, Ranks

OF_EXACT = ("macro_mae", "accuracy", "quadratic_kappa")
"""Measures of exact labels only."""
CUTS = (1, 5, 10)
"""NDCG is measured on the first 1, 5 and 10 rows of each query."""
DISCOUNTS = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(2, max(CUTS) + 2)))])
"""Sum of the discounts of the first 0, 1, 2, ... places."""
GAP, MAX_STEPS = 1e-6, 10_000
"""Tolerance in log score, and step limit, for the best constant probabilities."""


def macro_error(group: Ranks, errors: Ranks, counts: Ranks | None = None) -> float:
    """Mean over the groups that occur of the mean error within each."""
    rows = np.bincount(group, counts)
    losses = np.bincount(group, errors if counts is None else errors * counts)
    return float((losses[rows > 0] / rows[rows > 0]).mean())


def count_labels(lower: Ranks, upper: Ranks, n_classes: int, counts: Ranks | None = None) -> Ranks:
    """How many labels begin at, end at, and are exactly each rank, (3, K)."""
    n, exact = np.ones_like(lower) if counts is None else counts, lower == upper
    kinds = (lower, n), (upper, n), (lower[exact], n[exact])
    return np.array([np.bincount(rank - 1, of, n_classes) for rank, of in kinds]).astype(np.int64)


def nearest_constant(begin: Ranks, end: Ranks) -> tuple[int, float]:
    """The rank with the smallest mean distance to labels, and that distance.

    >>> nearest_constant(np.array([1, 0, 2]), np.array([1, 0, 2]))  # labels 1, 3 and 3
    (3, 0.6666666666666666)
    """
    begin_above = begin.sum() - np.cumsum(begin)
    end_below = np.cumsum(end) - end
    # one rank up: one closer to labels that start above, one farther from those below
    distances = np.cumsum(begin_above[::-1])[::-1] + np.cumsum(end_below)
    place = int(distances.argmin())
    return place + 1, int(distances[place]) / int(begin.sum())


def most_frequent(totals: Ranks, count: int) -> tuple[int, float]:
    """The rank with the largest total, and its share of a count."""
    place = int(totals.argmax())
    return place + 1, int(totals[place]) / count


def against_constants(
    lower: Ranks, upper: Ranks, rank: Ranks, classes: list[Any], counts: Ranks
) -> dict[str, Any]:
    """Every measure of predicted ranks, the best constant grade for each, and which MAE is better.

    Measures of exact labels are None without any. Ties go to the lowest grade; the grade is None if
    all are equally good.

    >>> lower, upper = np.array([1, 2, 3, 3]), np.array([1, 4, 3, 4])
    >>> found = against_constants(lower, upper, lower, ["a", "b", "c", "d"], np.ones(4, dtype=int))
    >>> found["inside_interval"], found["best_constant"]["mae"]
    (1.0, {'grade': 'c', 'value': 0.5})
    """
    errors, exact = distance(rank, lower, upper), lower == upper
    begin, end, same = count_labels(lower, upper, len(classes), counts)
    inside = np.cumsum(begin) - np.cumsum(end) + end
    found = {
        "mae": float(np.average(errors, weights=counts)),
        "inside_interval": float(np.average(errors == 0, weights=counts)),
    }
    best: dict[str, tuple[int | None, float]] = {
        "mae": nearest_constant(begin, end),
        "inside_interval": most_frequent(inside, int(counts.sum())),
    }
    if exact.any():
        true, wrong, n = lower[exact], errors[exact], counts[exact]
        found["macro_mae"] = macro_error(true, wrong, n)
        found["accuracy"] = float(np.average(wrong == 0, weights=n))
        found["quadratic_kappa"] = quadratic_kappa(true, rank[exact], n)
        best["macro_mae"] = nearest_constant(same > 0, same > 0)
        best["accuracy"] = mode = most_frequent(same, int(n.sum()))
        # kappa of a constant is 0 unless all labels are equal
        best["quadratic_kappa"] = mode if mode[1] == 1.0 else (None, 0.0)
    none, better = dict.fromkeys(OF_EXACT), best["mae"][1] > found["mae"]
    constants = {
        name: {"grade": place and classes[place - 1], "value": value}
        for name, (place, value) in best.items()
    }
    return none | found | {"best_constant": none | constants, "better_than_constant": better}


def best_probabilities(lower: Ranks, upper: Ranks, counts: Ranks, n_classes: int) -> dict[str, Any]:
    """The best constant probabilities, and their scores.

    For exact labels these are the shares of the grades. For ranges they are the maximum likelihood
    estimate, found by expectation maximisation; the log score is within GAP of the optimum.

    >>> ranks = np.array([1, 2])
    >>> found = best_probabilities(ranks, ranks, np.array([1, 3]), 2)
    >>> found["probabilities"], found["rps"]
    ([0.25, 0.75], 0.1875)
    """
    (lower, upper), same = np.unique([lower, upper], axis=1, return_inverse=True)
    share = np.bincount(same.ravel(), counts) / counts.sum()
    chance = np.full(n_classes, 1.0 / n_classes)
    for _ in range(MAX_STEPS):
        total = np.append(0.0, np.cumsum(chance))
        of_label = total[upper] - total[lower - 1]
        begin = np.bincount(lower - 1, share / of_label, n_classes + 1)
        end = np.bincount(upper, share / of_label, n_classes + 1)
        gain = np.maximum(0.0, np.cumsum(begin - end)[:-1])
        if gain.max() <= 1.0 + GAP:
            break
        chance = chance * gain
    predicted, observed = np.cumsum(chance)[:-1], np.cumsum(chance * gain)[:-1]
    return {
        "probabilities": chance.tolist(),
        "rps": float(ranked_scores(predicted, observed)),
        "log_score": float(0.0 - share @ np.log(of_label)),
    }


def ndcg(
    query: NDArray[np.int64], score: Floats, rank: Ranks, n_queries: int, n_classes: int
) -> Floats:
    """NDCG of queries 0, 1, ... at each of `CUTS`, (3, n); NaN for a query without a relevant row.

    The gain of a row is 2^(rank-1) - 1, and tied scores share their positions, as in
    scikit-learn's ``ndcg_score``, which takes one query at a time.

    >>> ndcg(np.array([0, 0, 1]), np.array([0.5, 0.1, 0.0]), np.array([3, 1, 1]), 2, 3)[0]
    array([ 1., nan])
    """
    # divided by 2^(K-1), so that it does not overflow
    gain = np.ldexp(1.0, rank - n_classes) - np.ldexp(1.0, 1 - n_classes)
    ideal = _dcg(query, gain, gain, n_queries)
    none = np.full(ideal.shape, np.nan)
    return np.divide(_dcg(query, score, gain, n_queries), ideal, out=none, where=ideal > 0.0)


def _dcg(query: NDArray[np.int64], score: Floats, gain: Floats, n_queries: int) -> Floats:
    """DCG of every query at each cut, rows from the highest score down."""
    order = np.lexsort((-score, query))
    query, score, gain = query[order], score[order], gain[order]
    tied = (query[1:] == query[:-1]) & (score[1:] == score[:-1])
    starts = np.flatnonzero(np.append(True, ~tied)[: query.size])
    size = np.diff(np.append(starts, query.size))
    first = starts - np.searchsorted(query, query[starts])  # place in the query, from 0
    mean_gain = np.add.reduceat(gain, starts) / size
    cuts = np.array(CUTS)[:, np.newaxis]
    discount = DISCOUNTS[np.minimum(first + size, cuts)] - DISCOUNTS[np.minimum(first, cuts)]
    return np.array([np.bincount(query[starts], mean_gain * d, n_queries) for d in discount])
