"""Which items should annotators be asked about, and are ranges worth more than exact answers?

A simulation. ``make bench`` runs it at full size and writes docs/benchmarks-annotate.md and its
figure; the tests run it at toy size::

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
    STRATEGIES,
    TRUE,
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

# written by hand: check it when the tables change
READING = """\
- Asking about the item with the widest predicted range does not make this model learn faster. Used
  alone, it is clearly worse than random questions in eight of nine comparisons. Half-and-half is
  about as good as random: better in none of nine, worse in one, by 1.5 %. The width of a predicted
  range depends on the score alone: it shows where grades are hard to tell apart, not what the model
  has yet to learn.
- Answer for answer, honest ranges are worth as much as best guesses; true grades, which are never
  wrong, give an error 1 to 2 % lower.
- Once an exact answer about an unsure item costs 1.5 times as much as a range, ranges beat best
  guesses at equal cost, mostly while there are few answers. Against true grades they are about even
  at 1.5, and ahead on two of three data sets at 2.
- Random questions estimate the error without a clear bias. With the other questions mixed in, the
  estimate is 8 % too high on California, and about right on the other two. This is what the random
  half is for.
"""


def mean_and_error(values: np.ndarray) -> str:
    return f"{values.mean():.3f} ± {values.std(ddof=1) / np.sqrt(values.size):.3f}"


def markdown(titles: str, rows: list[list[object]]) -> str:
    cells = [titles.split(" | "), ["---"] * len(titles.split(" | ")), *rows]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in cells)


def summary(sets: dict[str, Found], size: Size) -> str:
    """The mean change in each comparison, one row per comparison."""

    def row(comparison: str, means: list[Change]) -> list[object]:
        lower, higher = (sum(each.clear == side for each in means) for side in (-1, 1))
        return [comparison, *means, f"lower on {lower}, higher on {higher} of {len(means)}"]

    rows = []
    for kind, way in product(KINDS, (HALF, WIDEST)):
        means = [asked_changes(found, kind, way, size)[-1] for found in sets.values()]
        rows.append(row(f"{way} compared with random, answers: {kind}", means))
    for kind, ratio in product((GUESS, TRUE), RATIOS):
        means = [cost_changes(found, kind, ratio, DOUBT, size)[-1] for found in sets.values()]
        rows.append(row(f"range compared with {kind}, cost ratio {ratio:g}", means))
    return markdown(f"error of | {' | '.join(sets)} | clearly", rows)


def method(sets: dict[str, Found], size: Size) -> list[str]:
    """How the simulation works, as paragraphs."""
    unsure, width, wrong = np.mean([found.answers[DOUBT] for found in sets.values()], axis=0)
    return [
        f"No people took part: the answers are simulated on real data. From each data set, "
        f"{size.pool} random rows are the items to ask about and {size.test} others are held out; "
        f"the same {size.seeds} seeds are used for every setting. Parkinson is split by recording, "
        "not by patient. The error is the mean absolute error in grades on the held-out items. "
        "Standard errors are over seeds: other draws from the same data set, not other data sets.",
        "**The annotator** has a doubt *d* about each item, uniform between 0 and "
        f"{DOUBT:g} grades, and perceives a number that is uniform on [*y* − *d*, "
        "*y* + *d*], where *y* is the true grade. The annotator knows *d*, which does not depend "
        "on the features; for real people, items that are hard for the model may be hard too.\n\n"
        "- A *range* is honest: it contains every grade within *d* of the perceived number, so it "
        "always contains the true grade, and no grade that can be ruled out. If only one grade "
        "fits, the range is that grade; otherwise the annotator is unsure about the item.\n"
        "- A *best guess* is the grade closest to the perceived number. It may be wrong.\n"
        "- A *true grade* is the result of a closer look. It is never wrong.\n\n"
        f"Annotators are unsure about {unsure:.0%} of the items; a range contains {width:.2f} "
        f"grades on average; {wrong:.0%} of the best guesses are wrong.",
        "**Cost.** A range costs 1, and so does any answer about an item the annotator is sure "
        "about. An exact answer about an unsure item costs as much as the cost ratio: 1, 1.5 or 2. "
        "A ratio of 1 gives the error by number of answers. The ratios are assumptions, not "
        "measurements of people.",
        "**Questions.** *Random*: any item not asked so far. *Widest*: the item with the widest "
        "predicted 90 % range, ties broken at random; up to about 30 answers, all ranges are "
        "equally wide. *Half*: alternate between the two. The model learns each answer "
        "immediately: `LinearLearner(average=True, balanced=True)` with `Calibration`, features "
        "standardised by the mean and spread of the pool.",
    ]


def tables(sets: dict[str, Found], size: Size) -> list[str]:
    """Errors by number of answers, and changes by strategy and by cost."""
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
        "Random questions; mean ± standard error over seeds. The last column is one pass over "
        "the true grades of the whole pool.",
        markdown(f"data set | answers | {points} | all {size.pool}", levels),
        "## Which items to ask about",
        "Change of the error compared with the same number of random questions, paired by seed, "
        "± its standard error; in bold if it is more than two standard errors from zero, which "
        "happens by chance in one cell out of twenty. Above zero, random questions are better. "
        "*Mean* is the change of the mean over all columns.",
        markdown(f"data set | answers | asked | {points} | mean", ways),
        "## Ranges and exact answers at equal cost",
        "Change of the error from exact answers to ranges at the same total cost, with random "
        "questions. Below zero, ranges are better.",
        markdown(f"data set | compared with | cost ratio | {points} | mean", costs),
    ]


def doubts_table(sets: dict[str, Found], size: Size) -> list[str]:
    """The comparison at equal cost for annotators with less or more doubt."""
    rows = []
    for (name, found), doubt in product(sets.items(), DOUBTS):
        shown = "{:.0%} | {:.2f} | {:.0%}".format(*found.answers[doubt]).split(" | ")
        against = product((GUESS, TRUE), RATIOS)
        means = [cost_changes(found, kind, ratio, doubt, size)[-1] for kind, ratio in against]
        rows.append([name, f"{doubt:g}", *shown, *means])
    heads = [f"{kind}, {ratio:g}" for kind, ratio in product((GUESS, TRUE), RATIOS)]
    return [
        "### With less or more doubt",
        "The column *mean* of the table above by the largest doubt, with the share of unsure "
        "items, the mean number of grades in a range, and the share of wrong best guesses.",
        markdown(f"data set | doubt | unsure | grades | wrong | {' | '.join(heads)}", rows),
    ]


def estimates_table(sets: dict[str, Found], size: Size) -> list[str]:
    """How well the answers estimate the error of the model."""
    rows = []
    for name, found in sets.items():
        each = Estimate(*found.estimates.T)
        biases = [Change.between(mean, each.left) for mean in (each.at_random, each.every)]
        rows.append([name, *map(mean_and_error, each), *biases])
    return [
        "## How well the answers estimate the error",
        f"Half-and-half with ranges as answers, questions {size.late + 1} to {size.points[-1]}: "
        "mean distance in grades between the answer and the prediction before it, over the "
        "random questions, the others, and all. *Not asked* is what the random half should "
        "estimate: the same distance over all items not asked so far, averaged over the questions. "
        "The last columns are the bias relative to it, in bold if it is clear.",
        markdown(
            "data set | random half | widest half | all answers | not asked | not asked, true "
            "grades | held out, true grades | bias of random half | bias of all answers",
            rows,
        ),
        "The distance to a range is never larger than the distance to the true grade inside it. "
        "Use it to compare models or to follow one over time, not as the error in true grades.",
    ]


def report(sets: dict[str, Found], size: Size, picture: str) -> str:
    """The page."""
    paragraphs = [
        "# Simulated annotators: which items to ask about, and are ranges worth it?",
        "Made by `python benchmarks/bench_annotate.py --save docs/benchmarks-annotate.md`. "
        + machine(),
        f"![Error by number of answers for three strategies, and by cost for ranges, best "
        f"guesses and true grades]({picture})",
        "## Results",
        READING.rstrip(),
        "Mean change over all columns of the tables below, ± its standard error; a change more "
        "than two standard errors from zero is clear, and in bold.",
        summary(sets, size),
        "## The simulation",
        *method(sets, size),
        *tables(sets, size),
        *doubts_table(sets, size),
        *estimates_table(sets, size),
    ]
    return "\n\n".join(paragraphs) + "\n"


def draw_asking(panel: Any, found: Found, size: Size) -> None:
    """Error by number of answers, one line per strategy."""
    x = np.arange(size.points[0], size.points[-1] + 1)
    for way, colour in zip(STRATEGIES, ("#0072B2", "#D55E00", "#009E73"), strict=True):
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
    """One column per data set: the strategies, then ranges and both kinds of exact answers."""
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
    """Simulate, print the report, and optionally save it with its figure."""
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
