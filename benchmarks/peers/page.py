"""The page of the comparison, every number and every sentence made from the table alone."""

from __future__ import annotations

import math
import statistics
from typing import NamedTuple

import numpy as np

from measuring import machine
from ordspan.experiments.figures import dataset_title
from peers.figure import labels_title
from peers.measure import told
from peers.methods import BY_NAME, METHODS, Method
from peers.plan import Plan
from peers.ranks import by_place, ordered, standing
from peers.table import Result

MEASURES = {
    "mae": "Mean absolute error in grades (lower is better)",
    "macro_mae": "Macro MAE, every grade counts the same (lower is better)",
    "kappa": "Quadratic weighted kappa (higher is better)",
}
DEFAULT = METHODS[0].name


def page(results: list[Result]) -> str:
    """The whole page in Markdown."""
    kinds = sorted({result.labels for result in results})
    of_kind = {kind: [r for r in results if r.labels == kind] for kind in kinds}
    parts = ["# ordspan and its peers", how(results), "![Mean ranks](images/peers.png)"]
    parts.append("## Who wins\n\n" + "\n".join(f"- {verdict(of_kind[kind])}" for kind in kinds))
    parts.append(duels_table([duel for kind in kinds for duel in duels(of_kind[kind])]))
    for kind in kinds:
        parts.append(f"## {labels_title(kind).capitalize()}")
        parts += [scores(of_kind[kind], name) for name in MEASURES]
    parts.append("## Time\n\n" + times(of_kind[kinds[0]]))
    parts.append("## Methods and what each may choose from\n\n" + methods_table(results))
    if lost := unfinished(results):
        parts.append("## What did not finish\n\n" + lost)
    return "\n\n".join(parts) + "\n"


def is_ours(result: Result) -> bool:
    return BY_NAME[result.method].ours


# ---- how it was measured ---------------------------------------------------------------------


def how(results: list[Result]) -> str:
    sizes = ordered([f"{dataset_title(r.dataset)} {r.rows:,}" for r in results])
    exact = [r.folds for r in results if r.labels == 0]
    ranged = [r.folds for r in results if r.labels > 0]
    folds = " and ".join(
        f"{max(counts)} folds on {what} labels"
        for counts, what in ((exact, "exact"), (ranged, "interval"))
        if counts
    )
    packages = ", ".join(sorted({r.package for r in results}))
    days = sorted({r.date for r in results})
    when = " to ".join(ordered([days[0], days[-1]]))
    return f"""Made by `make peers`. Measured {when} with {packages}. Page written {machine()}.

Rows: {", ".join(sizes)}. Larger sets are cut to a random sample with all grades in their shares,
the same for all methods, so that the kernel methods and the likelihood can finish. Rows are split
at random: recordings of one Parkinson patient stand on both sides, which favours methods that can
recognise a patient, as trees and kernels do.

Every method sees the same folds of a stratified cross-validation ({folds}). Within the training
rows of each fold a method chooses among its four settings (see the end) by an inner
{Plan.inner}-fold cross-validation of the mean distance to the held-out labels. Interval labels are
made from the training labels by `ordspan.coarsen`, the paper's recipe; tests are always on exact
labels.

A peer that reads exact labels only is given either the *middles* of the intervals (a half goes up
or down at random; regressors take it as it is) or *only the exact part* of the rows. With 100 %
interval labels there is no exact part.

Tables show mean ± standard deviation over the folds, the best in bold. A method that did not finish
a fold within {Plan.cap:g} s of processor time, tuning included, shares the last rank. Time is
processor time of one thread for the final fit with the chosen setting; tuning is not counted, and
imports and compilation happen before."""


def methods_table(results: list[Result]) -> str:
    lines = ["| method | package | chooses from | most often chosen, exact labels | |"]
    lines.append("|---|---|---|---|---|")
    for method in METHODS:
        rows = [r for r in results if r.method == method.name]
        package = rows[0].package if rows else f"{method.package}: not run here"
        settings = [r.setting for r in rows if r.labels == 0 and r.setting]
        favourite = statistics.mode(settings) if settings else ""
        lines.append(
            f"| {method.name} | {package} | {choices(method)} | {favourite} | {method.note} |"
        )
    return "\n".join(lines)


def choices(method: Method) -> str:
    return "; ".join(told(config) for config in method.grid) if len(method.grid) > 1 else "nothing"


def unfinished(results: list[Result]) -> str:
    """What came to nothing, and why."""
    return "\n".join(
        f"- {dataset_title(r.dataset)}, {labels_title(r.labels)}, {r.title}: {r.status}"
        for r in results
        if r.status != "ok"
    )


# ---- tables ----------------------------------------------------------------------------------


def scores(results: list[Result], measure: str) -> str:
    """A table of one measure: methods down, data sets across, mean rank last."""
    found = standing(results, measure)
    places = by_place(results)
    datasets = ordered([result.dataset for result in results])
    best = {
        name: best_value([r for r in results if r.dataset == name], measure) for name in datasets
    }
    lines = [f"### {MEASURES[measure]}", ""]
    lines.append(f"| method | {' | '.join(map(dataset_title, datasets))} | mean rank |")
    lines.append("|---" * (len(datasets) + 2) + "|")
    top = np.nanmin(found.mean_ranks)
    for title, rank in zip(found.titles, found.mean_ranks, strict=True):
        shown = [score_text(places.get((title, name)), measure, best[name]) for name in datasets]
        lines.append(f"| {title} | {' | '.join(shown)} | {bold(f'{rank:.1f}', rank == top)} |")
    lines += ["", test_text(found.p_value, found.distance)]
    return "\n".join(lines)


def best_value(results: list[Result], measure: str) -> float:
    values = [getattr(r, measure) for r in results if r.status == "ok"]
    if not values:
        return math.nan
    return max(values) if measure == "kappa" else min(values)


def score_text(result: Result | None, measure: str, best: float) -> str:
    if result is None:
        return "not run"
    if result.status != "ok":
        return result.status.partition(":")[0]
    value, spread = getattr(result, measure), getattr(result, f"{measure}_sd")
    return bold(f"{value:.3f}", f"{value:.3f}" == f"{best:.3f}") + f" ± {spread:.3f}"


def bold(text: str, really: bool) -> str:
    return f"**{text}**" if really else text


def test_text(p_value: float, distance: float) -> str:
    if math.isnan(p_value):
        return "Too few data sets or methods for a Friedman test."
    return (
        f"Friedman test: p = {p_value:.2g}. Mean ranks closer than {distance:.1f} do not differ "
        "at the 5 % level (Nemenyi)."
    )


def times(results: list[Result]) -> str:
    """Milliseconds of fit and of predictions on exact labels."""
    places = by_place(results)
    datasets = ordered([result.dataset for result in results])
    lines = [
        "Exact labels: milliseconds to fit the training rows of a fold / to predict its test rows.",
        "",
        f"| method | {' | '.join(map(dataset_title, datasets))} |",
        "|---" * (len(datasets) + 1) + "|",
    ]
    for title in ordered([result.title for result in results]):
        shown = [time_text(places.get((title, name))) for name in datasets]
        lines.append(f"| {title} | {' | '.join(shown)} |")
    return "\n".join(lines)


def time_text(result: Result | None) -> str:
    if result is None:
        return "not run"
    if result.status != "ok":
        return result.status.partition(":")[0]
    return f"{result.fit_seconds * 1e3:.3g} / {result.predict_seconds * 1e3:.2g}"


# ---- sentences -------------------------------------------------------------------------------


class Duel(NamedTuple):
    """The best of ordspan and the best of the peers on one data set, by MAE."""

    ours: Result
    theirs: Result

    @property
    def winner(self) -> str:
        """Who has the lower MAE, as the table shows it."""
        ours, theirs = (round(result.mae, 3) for result in self)
        return "peer" if theirs < ours else "ordspan" if ours < theirs else "level"

    @property
    def near(self) -> bool:
        """Whether the two are less than one standard deviation over the folds apart."""
        return abs(self.theirs.mae - self.ours.mae) < max(self.theirs.mae_sd, self.ours.mae_sd)


def duels(results: list[Result]) -> list[Duel]:
    """Of every data set where both sides have a result."""
    found = []
    for name in ordered([result.dataset for result in results]):
        here = [r for r in results if r.dataset == name and r.status == "ok"]
        sides = [[r for r in here if is_ours(r) == own] for own in (True, False)]
        if all(sides):
            found.append(Duel(*(min(side, key=lambda r: r.mae) for side in sides)))
    return found


def verdict(results: list[Result]) -> str:
    """How often a peer has the lowest MAE, and where the defaults of OrdinalPA stand."""
    found = duels(results)
    won = {side: [d for d in found if d.winner == side] for side in ("peer", "ordspan", "level")}
    clear = {side: sum(not duel.near for duel in won[side]) for side in won}
    kind = labels_title(results[0].labels).capitalize()
    level = f", and they are level on {len(won['level'])}" if won["level"] else ""
    return (
        f"**{kind}**: a peer has the lowest MAE on {len(won['peer'])} of {len(found)} data sets "
        f"({clear['peer']} by more than a standard deviation over the folds), ordspan on "
        f"{len(won['ordspan'])} ({clear['ordspan']} by more than that){level}. "
        f"{standing_text(results)}"
    )


def duels_table(found: list[Duel]) -> str:
    """The best of both sides on every data set, the lower in bold."""
    lines = ["| labels | data set | best peer | MAE | best of ordspan | MAE | |"]
    lines.append("|---|---|---|---|---|---|---|")
    for duel in found:
        ours, theirs = duel
        who = "level" if duel.winner == "level" else f"{duel.winner} wins"
        near = ", within one standard deviation" if duel.near and who != "level" else ""
        lines.append(
            f"| {labels_title(ours.labels)} | {dataset_title(ours.dataset)} | {theirs.title} | "
            f"{bold(f'{theirs.mae:.3f}', duel.winner != 'ordspan')} | {ours.title} | "
            f"{bold(f'{ours.mae:.3f}', duel.winner != 'peer')} | {who}{near} |"
        )
    return "\n".join(lines)


def standing_text(results: list[Result]) -> str:
    """The best mean rank, and the place of OrdinalPA untuned."""
    found = standing(results)
    if not found.datasets:
        return "No data set has all methods."
    order = [found.titles[i] for i in np.argsort(found.mean_ranks, kind="stable")]
    text = f"Best mean rank of {len(order)}: {order[0]}, {found.mean_ranks.min():.1f}"
    if DEFAULT not in order:
        return text + "."
    rank = found.mean_ranks[found.titles.index(DEFAULT)]
    place = order.index(DEFAULT) + 1
    return f"{text}. {DEFAULT}: {rank:.1f}, which is place {place}{speed(results)}."


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
