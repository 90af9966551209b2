"""The page of the comparison, every number and every sentence made from the table alone."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from itertools import product

import numpy as np

from measuring import machine
from ordspan.experiments.figures import dataset_title
from peers.figure import labels_title
from peers.measure import told
from peers.methods import BY_NAME, METHODS, Method
from peers.plan import Plan
from peers.ranks import by_kind, by_place, ordered, standing
from peers.table import Result
from peers.unseen import UNSEEN
from peers.verdicts import bold, duels, duels_table, verdict

MEASURES = {
    "mae": "Mean absolute error in grades (lower is better)",
    "macro_mae": "Macro MAE, every grade counts the same (lower is better)",
    "kappa": "Quadratic weighted kappa (higher is better)",
    "rps": "Ranked probability score (lower is better)",
}

EIGHT = "The defaults of ordspan were [chosen](defaults.md) on these sets, among others."
HELD_OUT = """
No default of ordspan was chosen on these sets, and the settings were fixed before they were first
looked at. (Another survey with the question of Affairs, `fair`, was among the sets that two
defaults were chosen on.) Words in columns are encoded in the same way for all methods: where they
have an order, as for the colour and clarity of diamonds, by their place in it; otherwise one
column of 0 and 1 for each word but the first."""
PROBABILITIES = """
The ranked probability score (RPS) is the mean absolute error of [probabilities](probabilities.md).
Every method that gives some is measured, on exact labels only ([ours from
ranges](benchmarks-ranges.md)), with the setting that its inner cross-validation chose by distance,
not by this score. Ours come from `CalibratedOrdinal` around the same model, those of XGBoost AFT
from the normal distribution it fits; the constant gives every row the shares of the training
grades."""
SUMMARIES = (
    ("eight", "mae", "The eight sets", EIGHT, "peers"),
    ("unseen", "mae", "Unseen sets", HELD_OUT, "peers-unseen"),
    ("eight", "rps", "Probabilities, the eight sets", PROBABILITIES, "peers-probabilities"),
    ("unseen", "rps", "Probabilities, unseen sets", "", ""),
)
"""Group of data sets, measure, heading, text, and figure of each part of "Who wins"."""


def page(results: list[Result]) -> str:
    """The whole page in Markdown: who wins first, all numbers behind."""
    groups = {group: of_group(results, group) for group in ("eight", "unseen")}
    parts = ["# ordspan and its peers", how(results), gaps(results), "## Who wins"]
    for group, measure, heading, text, image in SUMMARIES:
        if verdicts := summary(groups[group], measure):
            parts += [f"### {heading}", text.strip()]
            parts += [unseen_table(groups[group])] if (group, measure) == ("unseen", "mae") else []
            parts += [verdicts, f"![Mean ranks](images/{image}.png)" if image else ""]
    parts.append("## The best of both sides")
    for group, measure, heading, _, _ in SUMMARIES:
        if found := [
            d for part in by_kind(groups[group], measure).values() for d in duels(part, measure)
        ]:
            parts += [f"### {heading}: every data set", duels_table(found)]
    for group in groups:
        parts += details(group, groups[group])
    parts.append("## Methods and what each may choose from\n\n" + methods_table(results))
    if lost := unfinished(results):
        parts.append("## What did not finish\n\n" + lost)
    return "\n\n".join(part for part in parts if part) + "\n"


def of_group(results: list[Result], group: str) -> list[Result]:
    return [r for r in results if (r.dataset in UNSEEN) == (group == "unseen")]


def summary(results: list[Result], measure: str) -> str:
    return "\n".join(f"- {verdict(part, measure)}" for part in by_kind(results, measure).values())


def details(group: str, results: list[Result]) -> list[str]:
    """Every table of a group of data sets."""
    parts = []
    for kind in sorted({r.labels for r in results}):
        of_kind = [r for r in results if r.labels == kind]
        parts.append(f"## {labels_title(kind).capitalize()}, {group} sets")
        for measure in MEASURES:
            parts += [scores(part, measure) for part in by_kind(of_kind, measure).values()]
    if exact := by_kind(results, "mae").get(0):
        parts.append(f"## Time, {group} sets\n\n{times(exact)}")
    return parts


def unseen_table(results: list[Result]) -> str:
    """What the unseen sets are, and the MAE of the best constant where it was measured."""
    lines = ["| data set | grades | what they are | rows | MAE of a constant | source | licence |"]
    lines.append("|---|---|---|---|---|---|---|")
    constants = {
        r.dataset: f"{r.mae:.3f}" for r in results if r.key[1:] == (0, "exact", "constant")
    }
    sizes = {r.dataset: r.rows for r in results}
    for name, rows in sizes.items():
        table = UNSEEN[name]
        lines.append(
            f"| {dataset_title(name)} | {len(table.grades)} | {table.question} | {rows:,} | "
            f"{constants.get(name, '')} | {table.source} | {table.licence} |"
        )
    return "\n".join(lines)


# ---- how it was measured ---------------------------------------------------------------------


def how(results: list[Result]) -> str:
    sizes = ordered([f"{dataset_title(r.dataset)} {r.rows:,}" for r in results])
    exact = [r.folds for r in results if r.labels == 0]
    ranged = [r.folds for r in results if r.labels > 0]
    folds = " and ".join(
        f"{max(counts)} folds on {what}"
        for counts, what in ((exact, "exact labels"), (ranged, "ranges"))
        if counts
    )
    packages = ", ".join(sorted({r.package for r in results}))
    return f"""Made by `make peers`. Measured {days(results)} with {packages}.
Page written {machine()}.

Rows: {", ".join(sizes)}. Larger sets are cut to a random sample with all grades in their shares,
the same for all methods, so that the kernel methods and the likelihood can finish. Rows are split
at random: recordings of one Parkinson patient stand on both sides, which favours methods that can
recognise a patient, as trees and kernels do.

Every method sees the same folds of a stratified cross-validation ({folds}). Within the training
rows of each fold a method chooses among its four settings (see the end) by an inner
{Plan.inner}-fold cross-validation of the mean distance to the held-out labels. *50 % ranges* means
that half of the training labels were made ranges by `ordspan.coarsen`, the paper's recipe; tests
are always on exact labels.

A peer that reads exact labels only is given either the *middles* of the ranges (a half goes up or
down at random; regressors take it as it is) or *only the exact part* of the rows. With 100 %
ranges there is no exact part.

Tables show mean ± standard deviation over the folds, the best in bold. A method that did not finish
a fold within {Plan.cap:g} s of processor time, tuning included, shares the last rank. Time is
processor time of one thread for the final fit with the chosen setting; tuning is not counted, and
imports and compilation happen before, and the calibration of our probabilities is not in it."""


def gaps(results: list[Result]) -> str:
    """Which methods a group of sets has no results of, for each kind of labels."""
    methods = [BY_NAME[name] for name in ordered([r.method for r in results])]
    lines = []
    for group, kind in product(("eight", "unseen"), Plan.labels):
        here = {r.method for r in of_group(results, group) if r.labels == kind}
        wanted = [m.name for m in methods if kind == 0 or not m.baseline]
        if lacking := ", ".join(name for name in wanted if name not in here):
            who = lacking if here else "all methods"
            lines.append(f"- {labels_title(kind)}, {group} sets: {who}")
    return "\n".join(["Not measured yet:", "", *lines]) if lines else ""


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
        "Exact labels: milliseconds to fit the training rows of a fold / to predict its test rows. "
        "Times of different days may come from different machines.",
        "",
        f"| method | {' | '.join(map(dataset_title, datasets))} | measured |",
        "|---" * (len(datasets) + 2) + "|",
    ]
    for title in ordered([result.title for result in results]):
        shown = [time_text(places.get((title, name))) for name in datasets]
        lines.append(
            f"| {title} | {' | '.join(shown)} | {days(r for r in results if r.title == title)} |"
        )
    return "\n".join(lines)


def days(results: Iterable[Result]) -> str:
    """First and last day of the results."""
    found = sorted(result.date for result in results)
    return " to ".join(ordered([found[0], found[-1]]))


def time_text(result: Result | None) -> str:
    if result is None:
        return "not run"
    if result.status != "ok":
        return result.status.partition(":")[0]
    return f"{result.fit_seconds * 1e3:.3g} / {result.predict_seconds * 1e3:.2g}"
