"""The paper's claims about its experiments, each tested on the results table.

Every sentence of sections 6.3 and 6.4 that makes a claim is listed in claims.toml and split into
one claim per data set, labelling, algorithm and rival. The paper specifies no test and no margin;
ours are described there.
"""

import tomllib
from importlib import resources
from itertools import groupby, product
from typing import NamedTuple

import numpy as np
from scipy import stats

from ordspan.experiments.protocol import EARLY
from ordspan.experiments.results import Cell, Results

MARGIN = 0.05  # "comparable": within this share of the rival's MAE
CONFIDENCE = 0.95
HOLDS, FAILS, NOT_RUN = VERDICTS = ("holds", "does not hold", "not run")
PAPER = tomllib.loads(resources.files(__package__).joinpath("claims.toml").read_text("utf-8"))
OUTPERFORMS, COMPARABLE, TRIALS, FRACTION, ALLOWANCE = PAPER["tests"]


class Claim(NamedTuple):
    """One claim and its verdict; the fields are the columns of claims.csv.

    The effect is a mean over runs in units of MAE, positive if it favours the proposed
    algorithm; ``low`` and ``high`` bound its confidence interval. All three are None if not run.
    """

    sentence: str
    dataset: str
    labels: int
    algorithm: str
    rival: str
    test: str
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    verdict: str = NOT_RUN


def make_claims(results: Results) -> list[Claim]:
    """Test every claim of the paper on a results table, in the order of the paper.

    A claim whose cells are missing, have fewer than two runs or cannot be paired run by run is
    "not run".
    """
    claims = []
    for sentence in PAPER["sentence"]:
        about = PAPER | sentence
        names = ("datasets", "labels", "algorithms", "rivals")
        for dataset, labels, name, rival in product(*(about[name] for name in names)):
            claim = Claim(about["words"], dataset, labels, name, rival, about["test"])
            claims.append(_judge(results, claim))
    return claims


def _judge(results: Results, claim: Claim) -> Claim:
    """Test one claim; the effect is the mean over runs of how much it gains on its rival."""
    test, cell = claim.test, Cell(claim.dataset, claim.labels, claim.algorithm)
    other = cell if test == TRIALS else cell._replace(labels=50)
    if test in (OUTPERFORMS, COMPARABLE):
        other = cell._replace(algorithm=claim.rival)
    if not {cell, other} <= results.rows.keys() or results.rows[cell]["runs"] < 2:
        return claim
    final, other_final = results.final(cell), results.final(other)
    interval, other_interval = (results.final(each, interval=True) for each in (cell, other))
    if test == TRIALS:
        early = np.searchsorted(results.trials, max(1, results.trials[-1] // EARLY))
        gains = results.running(cell, interval=True)[:, early] - interval
    elif test == FRACTION:
        gains = other_interval - interval
    elif test == ALLOWANCE:
        gains = (final - interval) - (other_final - other_interval)
    else:
        gains = other_final - final
    effect, error = float(gains.mean()), gains.std(ddof=1) / np.sqrt(gains.size)
    reach = float(stats.t.ppf((1 + CONFIDENCE) / 2, gains.size - 1) * error)
    holds = effect - reach > 0
    if test == COMPARABLE:
        holds = abs(effect) <= MARGIN * other_final.mean()
    return Claim(*claim[:6], effect, effect - reach, effect + reach, HOLDS if holds else FAILS)


def by_sentence(claims: list[Claim]) -> list[list[Claim]]:
    """The claims of each sentence, in the order of the paper."""
    return [list(group) for _, group in groupby(claims, key=lambda claim: claim.sentence)]


def count_verdicts(claims: list[Claim]) -> dict[str, int]:
    """Number of claims that hold, do not hold and were not run."""
    verdicts = [claim.verdict for claim in claims]
    return {verdict: verdicts.count(verdict) for verdict in VERDICTS}


def claim_row(claim: Claim) -> list[str]:
    """The cells of a claim in a table; dashes for the effect if it was not run."""
    effect = interval = "–"
    if claim.effect is not None:
        effect, interval = f"{claim.effect:+.4f}", f"{claim.low:+.4f} to {claim.high:+.4f}"
    names = [claim.dataset, labels_text(claim.labels), claim.algorithm, claim.rival]
    return [*names, effect, interval, claim.verdict]


def labels_text(labels: int) -> str:
    """Percentage of interval labels as text: "exact" or "50 %"."""
    return f"{labels} %" if labels else "exact"
