"""Mean ranks over data sets, the Friedman test, and how far apart ranks must be to differ."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, studentized_range

from peers.methods import BY_NAME
from peers.table import Result

LEVEL = 0.05
SHORT = {"mae": "MAE", "macro_mae": "macro MAE", "kappa": "kappa", "rps": "RPS"}


class Standing(NamedTuple):
    """Mean ranks of the methods on the data sets that all of them were run on."""

    titles: list[str]
    mean_ranks: np.ndarray
    datasets: list[str]
    p_value: float
    distance: float
    """Mean ranks closer than this do not differ at the 5 % level (Nemenyi)."""


def by_place(results: list[Result]) -> dict[tuple[str, str], Result]:
    """Results of one kind of labels by method and data set."""
    return {(result.title, result.dataset): result for result in results}


def ordered(names: list[str]) -> list[str]:
    """Each name once, in the order of its first time.

    >>> ordered(["b", "a", "b"])
    ['b', 'a']
    """
    return list(dict.fromkeys(names))


def by_kind(results: list[Result], measure: str) -> dict[int, list[Result]]:
    """The rows that count in a measure, by kind of labels; baselines only by probabilities."""
    found: dict[int, list[Result]] = {}
    for result in sorted(results, key=lambda r: r.labels):
        method = BY_NAME[result.method]
        counts = method.proba if measure == "rps" else not method.baseline
        if counts and (result.status != "ok" or not math.isnan(getattr(result, measure))):
            found.setdefault(result.labels, []).append(result)
    return {kind: rows for kind, rows in found.items() if any(r.status == "ok" for r in rows)}


def standing(results: list[Result], measure: str = "mae") -> Standing:
    """Rank the methods on every data set; one that did not finish shares the last rank."""
    titles = ordered([result.title for result in results])
    places = by_place(results)
    datasets = [
        name
        for name in ordered([result.dataset for result in results])
        if all((title, name) in places for title in titles)
    ]
    sign = -1.0 if measure == "kappa" else 1.0
    values = np.array(
        [[sign * getattr(places[title, name], measure) for title in titles] for name in datasets]
    ).reshape(len(datasets), len(titles))
    ranks = rankdata(np.where(np.isnan(values), np.inf, values), axis=1)
    return Standing(
        titles,
        ranks.mean(axis=0) if datasets else np.full(len(titles), np.nan),
        datasets,
        friedman(ranks),
        critical_distance(len(titles), len(datasets)),
    )


def friedman(ranks: np.ndarray) -> float:
    """Chance of mean ranks this far apart if all methods were alike; NaN with too few of them."""
    if ranks.shape[0] < 2 or ranks.shape[1] < 3 or (np.ptp(ranks, axis=1) == 0).all():
        return math.nan
    return float(friedmanchisquare(*ranks.T).pvalue)


def critical_distance(methods: int, datasets: int) -> float:
    """Nemenyi's critical distance of mean ranks at the 5 % level.

    Demšar (2006) tells q = 2.569 for four methods; 14 data sets:

    >>> round(critical_distance(4, 14), 2)
    1.25
    """
    if methods < 2 or datasets < 1:
        return math.nan
    q = studentized_range.ppf(1 - LEVEL, methods, np.inf) / math.sqrt(2)
    return float(q * math.sqrt(methods * (methods + 1) / (6 * datasets)))
