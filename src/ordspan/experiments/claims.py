"""The paper's claims about its experiments, each tested on the results table.

Every sentence of sections 6.3 and 6.4 that makes a claim is listed in claims.toml and split into
one claim per data set, labelling, algorithm and rival. The paper specifies no test and no margin;
ours are described there.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from importlib import resources
from itertools import groupby, product
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from ordspan.core.state import Floats
from ordspan.experiments.protocol import EARLY
from ordspan.experiments.results import Cell, Results

MARGIN = 0.05  # "comparable": within this share of the rival's MAE
CONFIDENCE = 0.95
HOLDS, FAILS, NOT_RUN = "holds", "does not hold", "not run"
VERDICTS = (HOLDS, FAILS, NOT_RUN)

PAPER = tomllib.loads(resources.files(__package__).joinpath("claims.toml").read_text("utf-8"))
METHOD: str = PAPER["method"]
PROPOSED: list[str] = PAPER["algorithms"]


class Claim(NamedTuple):
    """One claim and its verdict.

    The effect is a mean over runs in units of MAE, positive if it favours the proposed
    algorithm; ``low`` and ``high`` bound its confidence interval. All three are None if not run.
    """

    sentence: str
    dataset: str
    labels: int
    algorithm: str
    rival: str
    test: str
    effect: float | None
    low: float | None
    high: float | None
    verdict: str


OUTPERFORMS, COMPARABLE = "outperforms", "comparable"
TRIALS, FRACTION, ALLOWANCE = "falls with trials", "falls with fraction", "wider range"


def make_claims(results: Results) -> list[Claim]:
    """Test every claim of the paper on a results table.

    Parameters
    ----------
    results : Results

    Returns
    -------
    list of Claim
        In the order of the paper. A claim whose cells are missing, have fewer than two runs or
        cannot be paired run by run is "not run".
    """
    claims = []
    for sentence in PAPER["sentence"]:
        about = PAPER | sentence
        names = ("datasets", "labels", "algorithms", "rivals")
        for *cell, rival in product(*(about[name] for name in names)):
            claims.append(_judge(results, about["words"], about["test"], Cell(*cell), rival))
    return claims


def by_sentence(claims: list[Claim]) -> list[list[Claim]]:
    """The claims of each sentence, in the order of the paper."""
    return [list(group) for _, group in groupby(claims, key=lambda claim: claim.sentence)]


def count_verdicts(claims: list[Claim]) -> dict[str, int]:
    """Number of claims that hold, do not hold and were not run."""
    counts = Counter(claim.verdict for claim in claims)
    return {verdict: counts[verdict] for verdict in VERDICTS}


def paired_interval(gains: Floats) -> tuple[float, float, float]:
    """Mean of the paired differences and its t confidence interval.

    >>> paired_interval(np.array([1.0, 1.0, 1.0]))
    (1.0, 1.0, 1.0)
    """
    mean = float(gains.mean())
    error = gains.std(ddof=1) / np.sqrt(gains.size)
    reach = float(stats.t.ppf((1 + CONFIDENCE) / 2, gains.size - 1) * error)
    return mean, mean - reach, mean + reach


def labels_text(labels: int) -> str:
    """Percentage of interval labels as text: "exact" or "50 %"."""
    return f"{labels} %" if labels else "exact"


def _judge(results: Results, sentence: str, test: str, cell: Cell, rival: str) -> Claim:
    """Test one claim; the effect is the mean over runs of how much it gains on its rival."""
    names = (sentence, *cell, rival, test)
    other = cell if test == TRIALS else cell._replace(labels=50)
    if test in (OUTPERFORMS, COMPARABLE):
        other = cell._replace(algorithm=rival)
    if not {cell, other} <= results.rows.keys() or results.rows[cell]["runs"] < 2:
        return Claim(*names, None, None, None, NOT_RUN)
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
    effect, low, high = paired_interval(gains)
    holds = low > 0
    if test == COMPARABLE:
        holds = abs(effect) <= MARGIN * other_final.mean()
    return Claim(*names, effect, low, high, HOLDS if holds else FAILS)


def claims_text(claims: list[Claim], settings: dict[str, Any]) -> str:
    """The claims with their verdicts in Markdown, as in ``claims.md``."""
    sources = {name: settings["sources"][name] for name in settings["datasets"]}
    sources |= {name: f"not available. {why}" for name, why in settings["unavailable"].items()}
    groups = list(enumerate(by_sentence(claims), start=1))
    counts = [
        [f"[{number}](#sentence-{number})", group[0].test, *count_verdicts(group).values()]
        for number, group in groups
    ]
    counts.append(["**all**", "", *count_verdicts(claims).values()])
    parts = [
        "# The paper's claims, tested",
        f"This table: {settings['runs']} runs of {settings['trials']} trials; the paper: 100 runs "
        f"of 7000. The paper gives no C; here: {settings['rule']}.",
        METHOD,
        "## Data",
        "\n".join(f"- {name}: {text}" for name, text in sources.items()),
        "## Count",
        _markdown_table(["sentence", "test", *VERDICTS], counts),
        "Sentence 8 summarises the comparison with PRank and MCP, so its claims repeat tests of "
        "the previous sentences and add combinations that those do not mention.",
        *(_group_text(number, group) for number, group in groups),
    ]
    return "\n\n".join(parts) + "\n"


def _group_text(number: int, group: list[Claim]) -> str:
    ran = sum(claim.verdict != NOT_RUN for claim in group)
    holding = count_verdicts(group)[HOLDS]
    outcome = f"{holding} of {ran} tested claims hold{_failures(group)}" if ran else "not run"
    head = ["data set", "labels", "algorithm", "against", "effect", "95 % interval", "verdict"]
    table = _markdown_table(head, [claim_row(claim) for claim in group])
    title = f"## Sentence {number}\n\n> {group[0].sentence}"
    return f"{title}\n\nTest: {group[0].test}. Outcome: {outcome}.\n\n{table}"


def _failures(group: list[Claim]) -> str:
    """How claims fail: "does not hold" alone could mean undecided or the opposite."""
    failed = [claim for claim in group if claim.verdict == FAILS]
    better = sum(claim.low > 0 for claim in failed if claim.low is not None)
    worse = sum(claim.high < 0 for claim in failed if claim.high is not None)
    parts = [(better, "the proposed algorithm is better than claimed"), (worse, "it is worse")]
    texts = [f"{number} × {words}" for number, words in parts if number]
    return f" (of the others: {', '.join(texts)})" if texts else ""


def claim_row(claim: Claim) -> list[str]:
    """The cells of a claim in a table; dashes for the effect if it was not run."""
    names = [claim.dataset, labels_text(claim.labels), claim.algorithm, claim.rival]
    effect = interval = "–"
    if claim.effect is not None:
        effect, interval = f"{claim.effect:+.4f}", f"{claim.low:+.4f} to {claim.high:+.4f}"
    return [*names, effect, interval, claim.verdict]


def _markdown_table(head: list[str], rows: list[list[Any]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
