"""Simulated annotators: which items to ask about, and are ranges worth more than exact answers?

``make bench`` runs this at full size and writes docs/benchmarks-annotate.md and its picture; the
tests run it at toy size::

    python benchmarks/bench_annotate.py --save docs/benchmarks-annotate.md
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from annotating import (
    DOUBT,
    DOUBTS,
    GUESS,
    HALF,
    KINDS,
    RANDOM,
    RANGE,
    TRUE,
    WAYS,
    WIDEST,
    Change,
    Estimate,
    Found,
    Size,
    asked_changes,
    cost_changes,
    simulate,
)
from measuring import machine
from ordspan.experiments.reproduce import load_datasets

NAMES = ("california", "abalone", "parkinson")
RATIOS = (1.0, 1.5, 2.0)  # cost of an exact answer about an unsure item, in ranges
COLOURS = ("#9ecae1", "#4292c6", "#084594")  # of the ratios

# in words; to be read again when the tables change
READING = """\
- Asking where the predicted range is widest does not teach this model faster. Alone it is clearly
  worse than asking at random in eight of nine comparisons. Half-and-half is about as good as
  random: better in none of nine, worse in one, by 1.5 %. The width of a predicted range depends on
  nothing but the score: it shows where grades are hard to tell apart, not what the model has yet
  to learn.
- Answer for answer, honest ranges are worth as much as best guesses; true grades, which are never
  wrong, have an error 1 to 2 % lower.
- Once an exact answer about an unsure item costs 1.5 times as much as a range, ranges are ahead of
  best guesses at equal cost, mostly while answers are few. Against true grades they are about even
  at 1.5, and ahead on two of three data sets at 2.
- Questions asked at random estimate the error without a clear bias. With the others mixed in, the
  estimate is 8 % too high on California, and about right on the other two. The random half is
  there for this.
"""


def mean_and_error(values: np.ndarray) -> str:
    return f"{values.mean():.3f} ± {values.std(ddof=1) / np.sqrt(values.size):.3f}"


def markdown(titles: str, rows: list[list[object]]) -> str:
    cells = [titles.split(" | "), ["---"] * len(titles.split(" | ")), *rows]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in cells)


def summary(sets: dict[str, Found], size: Size) -> str:
    """The mean change of every comparison, one row each."""

    def row(work: str, means: list[Change]) -> list[object]:
        lower, higher = (sum(each.clear == side for each in means) for side in (-1, 1))
        return [work, *means, f"lower on {lower}, higher on {higher} of {len(means)}"]

    rows = []
    for kind, way in product(KINDS, (HALF, WIDEST)):
        means = [asked_changes(found, kind, way, size)[-1] for found in sets.values()]
        rows.append(row(f"{way} against random, answers: {kind}", means))
    for kind, ratio in product((GUESS, TRUE), RATIOS):
        means = [cost_changes(found, kind, ratio, DOUBT, size)[-1] for found in sets.values()]
        rows.append(row(f"range against {kind}, ratio {ratio:g}", means))
    return markdown(f"error of | {' | '.join(sets)} | clearly", rows)


def method(sets: dict[str, Found], size: Size) -> list[str]:
    """How it was simulated, in words."""
    unsure, width, wrong = np.mean([found.answers[DOUBT] for found in sets.values()], axis=0)
    return [
        f"Nobody was asked: this is arithmetic on real data. Of each data set, {size.pool} random "
        f"rows are the items to ask about and {size.test} others are held out; {size.seeds} seeds, "
        "the same for every setting. Parkinson is split by recording, not by patient. The error is "
        "the mean absolute error in grades on the held-out items and their true grades. Standard "
        "errors are over seeds: other draws from the same data set, not other data sets.",
        "**The annotator** has a doubt *d* about each item, drawn evenly "
        f"between 0 and {DOUBT:g} grades, and perceives a number drawn evenly from [*y* − *d*, "
        "*y* + *d*], where *y* is the true grade. They know *d*. It has nothing to do with the "
        "features; with people, what is hard for the model may be hard for them too.\n\n"
        "- A *range* is honest: it holds every grade within *d* of what they perceive, so it "
        "always holds the true grade, and no grade that they can rule out. It is a single grade "
        "where only one fits; else the annotator is unsure of the item.\n"
        "- A *best guess* is the grade closest to what they perceive. It may be wrong.\n"
        "- A *true grade* is what they find by looking closer. It is never wrong.\n\n"
        f"They are unsure of {unsure:.0%} of the items; a range holds {width:.2f} grades on "
        f"average; {wrong:.0%} of the best guesses are wrong.",
        "**Cost.** A range costs 1, and so does any answer about an item they are sure of. An "
        "exact answer about an item they are unsure of costs as much as the ratio says: 1, 1.5 or "
        "2. Ratio 1 is the error by number of answers. The ratios are assumptions, not "
        "measurements of people.",
        "**Questions.** *Random*: any item not asked so far. *Widest*: one of those whose "
        "predicted 90 % range is widest, ties broken at random; until some 30 answers all are "
        "equally wide. *Half*: in turns. The model learns each answer at once: "
        "`LinearLearner(average=True, balanced=True)` with `Calibration`, features standardised "
        "by the mean and spread of the pool.",
    ]


def tables(sets: dict[str, Found], size: Size) -> list[str]:
    """Errors by number of answers, changes by way of asking, and by cost."""
    points = " | ".join(map(str, size.points))
    levels, ways, costs = [], [], []
    for name, found in sets.items():
        for kind in KINDS:
            errors = found.curves[kind, RANDOM, DOUBT].at(size.points)
            levels.append([name, kind, *map(mean_and_error, errors.T), f"{found.whole:.3f}"])
        for kind, way in product(KINDS, (HALF, WIDEST)):
            ways.append([name, kind, way, *asked_changes(found, kind, way, size)])
        for kind, ratio in product((GUESS, TRUE), RATIOS):
            costs.append([name, kind, f"{ratio:g}", *cost_changes(found, kind, ratio, DOUBT, size)])
    return [
        "## Error by number of answers",
        "Questions at random; mean ± standard error over seeds. The last column is one pass over "
        "the true grades of the whole pool.",
        markdown(f"data set | answers | {points} | all {size.pool}", levels),
        "## What to ask",
        "Change of the error against random questions after as many answers, paired by seed, ± its "
        "standard error; bold where it is more than two of them from zero, which chance alone does "
        "for one cell in twenty. Above zero, random questions are better. *Mean* is the change of "
        "the mean of all columns.",
        markdown(f"data set | answers | asked | {points} | mean", ways),
        "## Ranges against exact answers at equal cost",
        "Change of the error from exact answers to ranges at the same total cost, questions at "
        "random. Below zero, ranges are better.",
        markdown(f"data set | against | ratio | {points} | mean", costs),
    ]


def doubts_table(sets: dict[str, Found], size: Size) -> list[str]:
    """The comparison at equal cost for annotators who are surer, or less sure."""
    rows = []
    for (name, found), doubt in product(sets.items(), DOUBTS):
        shown = "{:.0%} | {:.2f} | {:.0%}".format(*found.answers[doubt]).split(" | ")
        against = product((GUESS, TRUE), RATIOS)
        means = [cost_changes(found, kind, ratio, doubt, size)[-1] for kind, ratio in against]
        rows.append([name, f"{doubt:g}", *shown, *means])
    heads = [f"{kind}, {ratio:g}" for kind, ratio in product((GUESS, TRUE), RATIOS)]
    return [
        "### If annotators are surer, or less sure",
        "The column *mean* of the table above by the largest doubt, and what the answers are "
        "like: share of items they are unsure of, grades in a range, share of wrong best guesses.",
        markdown(f"data set | doubt | unsure | grades | wrong | {' | '.join(heads)}", rows),
    ]


def estimates_table(sets: dict[str, Found], size: Size) -> list[str]:
    """What the answers say about the error of the model."""
    rows = []
    for name, found in sets.items():
        each = Estimate(*found.estimates.T)
        biases = [Change.between(said, each.left) for said in (each.at_random, each.every)]
        rows.append([name, *map(mean_and_error, each), *biases])
    return [
        "## What the answers say about the error",
        f"Half-and-half with ranges as answers, questions {size.late + 1} to {size.points[-1]}: "
        "mean distance in grades between the answer and what was predicted before it, over the "
        "questions asked at random, the others, and all. *Not asked* is what the random half "
        "should estimate: the same distance over all items not asked so far, each time. The last "
        "columns are the bias against it, bold where it is clear.",
        markdown(
            "data set | random half | widest half | all answers | not asked | not asked, true "
            "grades | held out, true grades | bias of random half | bias of all answers",
            rows,
        ),
        "A distance to a range is never larger than the distance to the true grade inside it: "
        "compare it over time or between models, and do not read it as the error in true grades.",
    ]


def report(sets: dict[str, Found], size: Size, picture: str) -> str:
    """The page."""
    paragraphs = [
        "# Simulated annotators: what to ask, and are ranges worth it?",
        "Made by `python benchmarks/bench_annotate.py --save docs/benchmarks-annotate.md`. "
        + machine(),
        f"![Error by number of answers for three ways of asking, and by cost for ranges, best "
        f"guesses and true grades]({picture})",
        "## What came out",
        READING.rstrip(),
        "Mean change over all columns of the tables below, ± its standard error; bold, and clear, "
        "where it is more than two of them from zero.",
        summary(sets, size),
        "## What was simulated",
        *method(sets, size),
        *tables(sets, size),
        *doubts_table(sets, size),
        *estimates_table(sets, size),
    ]
    return "\n\n".join(paragraphs) + "\n"


def draw_asking(panel: Any, found: Found, size: Size) -> None:
    """Error by number of answers, a line for every way of asking."""
    x = np.arange(size.points[0], size.points[-1] + 1)
    for way, colour in zip(WAYS, ("#0072B2", "#D55E00", "#009E73"), strict=True):
        errors = found.curves[RANGE, way, DOUBT].at(x)
        mean, sem = errors.mean(axis=0), errors.std(axis=0, ddof=1) / np.sqrt(len(errors))
        panel.plot(x, mean, color=colour, label=way)
        panel.fill_between(x, mean - sem, mean + sem, color=colour, alpha=0.2, linewidth=0)


def draw_costs(panel: Any, found: Found, kind: str, size: Size) -> None:
    """Change of the error from exact answers to ranges, by cost, with standard errors."""
    for ratio, colour, shift in zip(RATIOS, COLOURS, (0.94, 1.0, 1.06), strict=True):
        means, errors = 100.0 * np.array(cost_changes(found, kind, ratio, DOUBT, size)[:-1]).T
        label = f"{ratio:g} × a range"
        x = shift * np.array(size.points)
        panel.errorbar(x, means, errors, color=colour, marker="o", markersize=4, label=label)
    panel.axhline(0.0, color="black", linewidth=0.8)


def draw(sets: dict[str, Found], size: Size, path: Path) -> None:
    """One column a data set: ways of asking, then ranges against both kinds of exact answers."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    shape = {"figsize": (3.9 * len(sets), 9.6), "squeeze": False, "layout": "constrained"}
    figure, panels = plt.subplots(3, len(sets), **shape)
    for column, (name, found) in zip(panels.T, sets.items(), strict=True):
        draw_asking(column[0], found, size)
        column[0].set(title=name, xlabel="answers, all of them ranges")
        for panel, kind in zip(column[1:], (GUESS, TRUE), strict=True):
            if panel is not panels[1, 0]:
                panel.sharey(panels[1, 0])
            draw_costs(panel, found, kind, size)
            panel.set_xlabel("cost of all answers, in ranges")
    for panel in panels.flat:
        panel.set_xscale("log")
        panel.set_xticks(size.points, map(str, size.points))
        panel.minorticks_off()
        panel.grid(color="#e5e5e5")
        panel.spines[["top", "right"]].set_visible(False)
    panels[0, 0].set_ylabel("held-out error (grades)")
    panels[0, 0].legend(frameon=False, fontsize=8)
    for row, kind in zip(panels[1:], ("best guesses", "true grades"), strict=True):
        row[0].set_ylabel(f"ranges against {kind} (%)\nbelow 0: ranges are better")
        title = "cost of an exact answer\nabout an unsure item"
        row[-1].legend(frameon=False, fontsize=8, title=title, title_fontsize=8, loc="lower right")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80)
    plt.close(figure)


def main() -> None:
    """Simulate, print the report, and write it and its picture if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=Size().seeds, help="how many, at least 2")
    parser.add_argument("--save", type=Path, help="also write the report to this file")
    options = parser.parse_args()
    size, picture = Size(seeds=options.seeds), "images/annotate.png"
    data, missing = load_datasets(NAMES, None, lambda name: None)
    for name, reason in missing.items():
        print(f"skipped {name}: {reason}")
    with threadpool_limits(limits=1):
        sets = {each.name: simulate(each, size) for each in data}
    text = report(sets, size, picture)
    print(text)
    if options.save:
        draw(sets, size, options.save.parent / picture)
        options.save.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
