"""An evaluation as one self-contained web page."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordspan.commands.evaluate import (
    describe_files,
    measures,
    number,
    percent,
    range_table,
    verdict,
)
from ordspan.core.measures import distance
from ordspan.drawing import PALE
from ordspan.learners import LinearLearner
from ordspan.models.table import TableModel
from ordspan.pages import figure_svg, fill_template, table_row, terms
from ordspan.plot import ReliabilityDisplay, ScoreDisplay, panels
from ordspan.wording import as_text

LONGEST_NAME = 12
WIDTHS = {"wide": 9.9, "narrow": 3.5}
"""Widths of each figure in inches; a page shows the one for its window."""
LOOK: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": PALE,
    "grid.alpha": 0.35,
    "hatch.linewidth": 0.6,
}
N_WORDS = 20
FEW_ROWS = 200  # of fewer rows the margins say too little
BIN = ("count", "predicted", "observed", "at_least", "at_most")
SHOWN = 0.9
"""The coverage whose ranges are shown in detail, or the nearest that was calibrated."""

ALT = {
    "scores": "Latent score by true grade, with thresholds",
    "confusion": "Confusion matrix",
    "errors": "Shares too low, right and too high by true grade",
    "margins": "Share of right grades by margin",
    "reliability": "Reliability diagram: observed frequency by predicted probability",
    "coverage": "Observed coverage of ranges by requested coverage",
    "widths": "Share of rows by width of their range",
    "queries": "Histogram of NDCG@10 over queries",
}
"""What each figure of the page shows."""


def page_text(
    summary: dict[str, Any],
    model: TableModel,
    sample: NDArray[Any],
    weight: NDArray[np.float64],
    ndcgs: NDArray[np.float64] | None,
) -> str:
    """The page of an evaluation, with a sample of its rows and their weights in the plots."""
    names = axis_names(summary["classes"])
    drawn = draw_figures(summary, names, model, sample, weight, ndcgs)
    words = heaviest_words(model)
    heads, ranges = range_table(summary)
    queries, chances = summary["ndcg"] or {}, summary["probabilities"]
    shown = shown_range(chances["ranges"]) if chances else {"coverage": 0.0, "mean_width": 0.0}
    parts: dict[str, Any] = {
        "title": f"Evaluation of {Path(summary['model']).name}",
        "lead": lead(summary),
        "verdict": verdict(summary),
        "verdict_kind": "good" if summary["better_than_constant"] else "bad",
        "edge": f"{names[0]} | {names[1]}",
        "lowest": names[0],
        "second": names[1],
        "coverage_shown": f"{100 * shown['coverage']:g} %",
        "mean_width": f"{shown['mean_width']:.2f}",
        "n_grades": len(names),
        "n_queries": f"{queries.get('queries', 0):,}",
        "range_labels": "" if summary["range_rows"] else "hidden",
        "words_section": "" if words else "hidden",
        **{f"{name}_section": "" if name in drawn else "hidden" for name in ALT},
    }
    markup = {
        "notes": "".join(f'<p class="note">Note: {escape(n)}.</p>\n' for n in summary["notes"]),
        "cards": "".join(_card(*map(escape, row)) for row in cards(summary, shown)),
        "grades": "".join(_grade_row(row) for row in summary["by_grade"] if row["rows"]),
        "range_heads": "".join(f"<th>{title}</th>" for title in heads),
        "range_rows": "".join(map(table_row, ranges)),
        "word_rows": "".join(map(table_row, words)),
        "made": terms(how_made(summary, sample.size)),
        **dict.fromkeys(ALT, ""),
        **drawn,
    }
    markup |= {name: escape(str(text)) for name, text in parts.items()}
    return fill_template(__package__, "evaluate.html", {n: as_text(p) for n, p in markup.items()})


def heaviest_words(model: TableModel) -> list[list[str]]:
    """The words of sentences that raise the grade most, and those that lower it, with weights."""
    sentences = model.recipe.sentences
    if not sentences or not isinstance(model.learner, LinearLearner):
        return []
    terms = {f"{name}: {term}" for name, terms in sentences for term in terms}
    weights = dict(zip(model.recipe.feature_names(), model.learner.weights, strict=True))
    ranked = sorted(terms & weights.keys(), key=lambda term: (weights[term], term))
    pairs = list(zip(ranked[::-1], ranked, strict=True))[: min(N_WORDS, len(ranked) // 2)]
    prefix = f"{sentences[0][0]}: " if len(sentences) == 1 else ""
    return [
        [text for term in pair for text in (term.removeprefix(prefix), number(weights[term]))]
        for pair in pairs
    ]


def draw_figures(
    summary: dict[str, Any],
    names: list[str],
    model: TableModel,
    sample: NDArray[Any],
    weight: NDArray[np.float64],
    ndcgs: NDArray[np.float64] | None,
) -> dict[str, str]:
    """The figures by name, without those that have nothing to show."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    thresholds, found, drawn = np.array(summary["thresholds"]), summary["probabilities"], {}

    def add(name: str, height: float, draw: Callable[..., Any], *values: Any) -> None:
        drawn[name] = ""
        for kind, width in WIDTHS.items():
            with rc_context(LOOK):
                figure = Figure(figsize=(width, min(height, 1.2 * width)), layout="constrained")
                draw(figure.subplots(), *values)
                drawn[name] += f'<div class="{kind}">{figure_svg(figure, ALT[name])}</div>'

    score, lower, upper = sample["score"], sample["lower"], sample["upper"]
    add("scores", 4.8, ScoreDisplay(score, lower, upper, thresholds, np.array(names)).plot)
    if summary["exact_rows"]:
        by_grade, confusion = summary["by_grade"], np.array(summary["confusion"])
        labelled = [rank for rank, row in enumerate(by_grade) if row["rows"]]
        true, tall = [names[rank] for rank in labelled], 0.35 * len(labelled)
        draw: Any = panels.confusion_matrix
        add("confusion", min(8.5, 1.5 + 1.5 * tall), draw, confusion[labelled], true, names)
        shares = [by_grade[rank] for rank in labelled]
        add("errors", min(9.4, 1.2 + tall), panels.errors_by_grade, shares, true)
    if sample.size >= FEW_ROWS and thresholds.size:
        margin = np.abs(score[:, np.newaxis] - thresholds).min(axis=1)
        right = distance(model.ranks(score), lower, upper) == 0
        add("margins", 3.5, panels.accuracy_by_margin, margin, right, weight)
    if found is not None:
        bins = [np.array([row[name] for row in found["reliability"]]) for name in BIN]
        add("reliability", 5.0, ReliabilityDisplay(*bins).plot)
        add("coverage", 4.0, panels.coverage, found["ranges"], summary["range_rows"] > 0)
        add("widths", 3.3, panels.range_widths, shown_range(found["ranges"])["widths"])
    if ndcgs is not None:
        add("queries", 3.3, panels.query_histogram, ndcgs[-1][np.isfinite(ndcgs[-1])])
    return drawn


def shown_range(ranges: list[dict[str, Any]]) -> dict[str, Any]:
    """The ranges of 90 %, or of the nearest coverage that was calibrated.

    >>> shown_range([{"coverage": 0.5}, {"coverage": 0.95}])
    {'coverage': 0.95}
    """
    return min(ranges, key=lambda found: abs(found["coverage"] - SHOWN))


def axis_names(classes: list[Any]) -> list[str]:
    """Grades as axis labels: long ones shortened, unless two would look the same.

    >>> axis_names([1, "satisfactory in part"])
    ['1', 'satisfactor…']
    """
    whole = [as_text(str(grade)) for grade in classes]
    cut = [n if len(n) <= LONGEST_NAME else n[: LONGEST_NAME - 1].rstrip() + "…" for n in whole]
    return cut if len(set(cut)) == len(cut) else whole


def lead(summary: dict[str, Any]) -> str:
    """The result in one or two sentences."""
    files = describe_files([Path(path).name for path in summary["files"]])
    text = (
        f"On {summary['rows']:,} rows of {files} the predicted grade is "
        f"{summary['mae']:.3f} grades away from the label on average."
    )
    if summary["accuracy"] is not None:
        text += f" Of the {summary['exact_rows']:,} rows with an exact label, "
        text += f"{percent(summary['accuracy'])} get exactly that grade."
    if summary["range_rows"]:
        text += f" {summary['range_rows']:,} labels are ranges: inside one, a grade is not wrong."
    return text


def cards(summary: dict[str, Any], shown: dict[str, Any]) -> list[tuple[str, ...]]:
    """Title, value, best constant and meaning of every measure, and of the ranges shown."""
    found: list[tuple[str, ...]] = []
    for title, value, constant, rows, meaning in measures(summary, page=True):
        limited = rows.endswith("labels") and summary["range_rows"]
        found.append((title, value, constant, f"{meaning} ({rows})" if limited else meaning))
    if "widths" in shown:
        level = f"{100 * shown['coverage']:g} %"
        wide = f"{shown['mean_width']:.2f} of {len(shown['widths'])} grades wide on average"
        meaning = f"rows whose {level} range contains the true grade; ranges are {wide}"
        found.append((f"coverage at {level}", percent(shown["expected"]), "–", meaning))
    return found


def _card(name: str, value: str, constant: str, meaning: str) -> str:
    return (
        f'<div class="card"><span class="name">{name[:1].upper()}{name[1:]}</span>'
        f'<span class="value">{value}</span>'
        f'<span class="constant">best constant: {constant}</span><span>{meaning}</span></div>\n'
    )


def _grade_row(row: dict[str, Any]) -> str:
    shares = [percent(row[name]) for name in ("too_low", "right", "too_high")]
    return table_row([str(row["grade"]), f"{row['rows']:,}", number(row["mae"]), *shares])


def how_made(summary: dict[str, Any], n_drawn: int) -> dict[str, Any]:
    """The provenance of the numbers."""
    import ordspan

    label = summary["labels"]
    ends = [f"{end} {label[end]}" for end in ("lower", "upper") if label[end]]
    made = {
        "Model": summary["model"],
        "Files": ", ".join(summary["files"]),
        "Labels": label["label"] or ", ".join([*ends, *label["ratings"]]),
        "Queries": summary["group"] or "none",
        "Rows": f"{summary['rows']:,}: {summary['exact_rows']:,} with an exact label, "
        f"{summary['range_rows']:,} with a range",
        "Rows skipped": f"{summary['skipped']:,}",
        "Rows without a label": f"{summary['unlabelled_rows']:,}",
        "Thresholds": ", ".join(f"{value:.5g}" for value in summary["thresholds"]),
        "Rows in the plots": f"{n_drawn:,}, about equally many of every grade that has as many",
        "ordspan": ordspan.__version__,
    }
    if summary["skipped"]:
        made["Rows skipped"] += f", such as {summary['skipped_examples'][0]}"
    return made
