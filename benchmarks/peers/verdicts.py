"""Who wins: the best of both sides on every data set, and sentences made from the table alone."""

from __future__ import annotations

import statistics
from typing import NamedTuple

import numpy as np

from ordspan.experiments.figures import dataset_title
from peers.figure import labels_title
from peers.methods import BY_NAME, METHODS
from peers.ranks import SHORT, ordered, standing
from peers.table import Result

DEFAULT = METHODS[0].name


def is_ours(result: Result) -> bool:
    return BY_NAME[result.method].ours


def bold(text: str, really: bool) -> str:
    return f"**{text}**" if really else text


class Duel(NamedTuple):
    """The best of ordspan and the best of the peers on one data set, by a measure to minimise."""

    ours: Result
    theirs: Result
    measure: str

    @property
    def values(self) -> tuple[float, float]:
        """Of ordspan and of the peer, as the table shows them."""
        ours, theirs = (round(getattr(side, self.measure), 3) for side in self[:2])
        return ours, theirs

    @property
    def winner(self) -> str:
        """Who has the lower value."""
        ours, theirs = self.values
        return "peer" if theirs < ours else "ordspan" if ours < theirs else "level"

    @property
    def near(self) -> bool:
        """Whether the two are less than one standard deviation over the folds apart."""
        ours, theirs = (getattr(side, self.measure) for side in self[:2])
        return abs(theirs - ours) < max(getattr(s, f"{self.measure}_sd") for s in self[:2])


def duels(results: list[Result], measure: str = "mae") -> list[Duel]:
    """Of every data set where both sides have a result."""
    found = []
    for name in ordered([result.dataset for result in results]):
        here = [r for r in results if r.dataset == name and r.status == "ok"]
        sides = [[r for r in here if is_ours(r) == own] for own in (True, False)]
        if all(sides):
            best = [min(side, key=lambda r: getattr(r, measure)) for side in sides]
            found.append(Duel(best[0], best[1], measure))
    return found


def verdict(results: list[Result], measure: str = "mae") -> str:
    """How often a peer has the lowest value, and where the defaults of OrdinalPA stand."""
    found = duels(results, measure)
    won = {side: [d for d in found if d.winner == side] for side in ("peer", "ordspan", "level")}
    clear = {side: sum(not duel.near for duel in won[side]) for side in won}
    kind = labels_title(results[0].labels).capitalize()
    level = f", and they are level on {len(won['level'])}" if won["level"] else ""
    return (
        f"**{kind}**: a peer has the lowest {SHORT[measure]} on {len(won['peer'])} of "
        f"{len(found)} data sets ({clear['peer']} by more than a standard deviation over the "
        f"folds), ordspan on {len(won['ordspan'])} ({clear['ordspan']} by more than that){level}. "
        f"{standing_text(results, measure)}"
    )


def duels_table(found: list[Duel]) -> str:
    """The best of both sides on every data set, the lower in bold."""
    name = SHORT[found[0].measure]
    lines = [f"| labels | data set | best peer | {name} | best of ordspan | {name} | |"]
    lines.append("|---|---|---|---|---|---|---|")
    for duel in found:
        ours, theirs, _ = duel
        our_value, their_value = duel.values
        who = "level" if duel.winner == "level" else f"{duel.winner} wins"
        near = ", within one standard deviation" if duel.near and who != "level" else ""
        lines.append(
            f"| {labels_title(ours.labels)} | {dataset_title(ours.dataset)} | {theirs.title} | "
            f"{bold(f'{their_value:.3f}', duel.winner != 'ordspan')} | {ours.title} | "
            f"{bold(f'{our_value:.3f}', duel.winner != 'peer')} | {who}{near} |"
        )
    return "\n".join(lines)


def standing_text(results: list[Result], measure: str) -> str:
    """The best mean rank, and the place of OrdinalPA untuned."""
    found = standing(results, measure)
    if not found.datasets:
        return "No data set has all methods."
    order = [found.titles[i] for i in np.argsort(found.mean_ranks, kind="stable")]
    text = f"Best mean rank of {len(order)}: {order[0]}, {found.mean_ranks.min():.1f}"
    if DEFAULT not in order:
        return text + "."
    rank = found.mean_ranks[found.titles.index(DEFAULT)]
    place = order.index(DEFAULT) + 1
    time = speed(results) if measure == "mae" else ""
    return f"{text}. {DEFAULT}: {rank:.1f}, which is place {place}{time}."


def speed(results: list[Result]) -> str:
    """How much longer the median peer takes to fit than OrdinalPA at its defaults."""
    base = {r.dataset: r.fit_seconds for r in results if r.title == DEFAULT and r.status == "ok"}
    ratios = [
        r.fit_seconds / base[r.dataset]
        for r in results
        if not is_ours(r) and r.status == "ok" and r.dataset in base
    ]
    if not ratios:
        return ""
    return f", and the median peer takes {statistics.median(ratios):.3g} times as long to fit"
