"""An evaluation as one self-contained web page."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordspan.commands.evaluate import (
    NO_PROBABILITIES,
    constant_text,
    describe_files,
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
    heads, ranges = range_table(summary)
    shown = {"coverage": 0.0, "mean_width": 0.0}
    if summary["probabilities"]:
        shown = shown_range(summary["probabilities"]["ranges"])
    drawn = draw_figures(summary, names, model, sample, weight, ndcgs)
    words = heaviest_words(model)
    parts = {
        "title": f"Evaluation of {Path(summary['model']).name}",
        "lead": lead(summary),
        "verdict": verdict(summary),
        "verdict_kind": "good" if summary["better_than_constant"] else "bad",
        "example": f"“{names[0]} | {names[1]}” separates grades "
        + " and ".join(map(str, summary["classes"][:2])),
        "coverage_shown": f"{100 * shown['coverage']:g} %",
        "mean_width": f"{shown['mean_width']:.2f}",
        "n_grades": str(len(names)),
        "no_probabilities": NO_PROBABILITIES,
        "query_text": query_text(summary["ndcg"]) if summary["ndcg"] else "",
    }
    markup = {
        "notes": "".join(f'<p class="note">Note: {escape(n)}.</p>\n' for n in summary["notes"]),
        "cards": "".join(_card(*card) for card in cards(summary)),
        "grades": "".join(_grade_row(row) for row in summary["by_grade"]),
        "range_heads": "".join(f"<th>{escape(title)}</th>" for title in heads),
        "range_rows": "".join(map(table_row, ranges)),
        "has_probabilities": _hidden(summary["probabilities"] is not None),
        "range_labels": _hidden(not summary["range_rows"]),
        "word_rows": "".join(map(table_row, words)),
        "words_section": _hidden(not words),
        "made": terms(how_made(summary, sample.size)),
        **{name: drawn.get(name, "") for name in ALT},
        **{f"{name}_section": _hidden(name not in drawn) for name in ALT},
    }
    markup |= {name: escape(text) for name, text in parts.items()}
    whole = {name: as_text(part) for name, part in markup.items()}
    return fill_template(__package__, "evaluate.html", whole)


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
        [text for term in pair for text in (term.removeprefix(prefix), _number(weights[term]))]
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
        tall, confusion = 0.35 * len(names), np.array(summary["confusion"])
        add("confusion", min(8.5, 1.1 + 1.5 * tall), panels.confusion_matrix, confusion, names)
        add("errors", min(9.4, 1.2 + tall), panels.errors_by_grade, summary["by_grade"], names)
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


def cards(summary: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Name, value, best constant and meaning of every measure."""
    exact = "" if not summary["range_rows"] else f" ({summary['exact_rows']:,} exact labels)"
    measures = {
        "mae": ("MAE", _number, "mean distance to the label, in grades; 0 is best"),
        "macro_mae": ("Macro MAE", _number, f"the same, with equal weight for every grade{exact}"),
        "accuracy": ("Accuracy", percent, f"rows with exactly the right grade{exact}"),
        "inside_interval": ("Inside", percent, "rows whose grade lies within the label"),
        "quadratic_kappa": (
            "Quadratic kappa",
            _number,
            f"agreement beyond chance: 1 is perfect, 0 is chance{exact}",
        ),
    }
    found = [
        (title, shown(summary[name]), constant_text(summary["best_constant"][name], shown), meaning)
        for name, (title, shown, meaning) in measures.items()
    ]
    if summary["probabilities"]:
        found += probability_cards(summary["probabilities"])
    for cut in (1, 5, 10) if summary["ndcg"] else ():
        value = _number(summary["ndcg"][f"ndcg@{cut}"])
        found.append((f"NDCG@{cut}", value, "–", f"first {cut} of each query; 1 is the best order"))
    return found


def probability_cards(found: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Name, value, best constant and meaning of the measures of probabilities and ranges."""
    best, shown = found["best_constant"], shown_range(found["ranges"])
    cards = [
        (title, _number(found[name]), f"{best[name]:.3f} (the same for every row)", meaning)
        for name, title, meaning in (
            ("rps", "RPS", "ranked probability score: the MAE of probabilities; 0 is best"),
            ("log_score", "Log score", "surprise at the label: mean of −ln P(label); 0 is best"),
        )
    ]
    asked = f"{100 * shown['coverage']:g} %"
    held = f"rows whose {asked} range contains the true grade"
    if shown["contains"] < shown["meets"]:
        low, high = (percent(shown[name]) for name in ("contains", "meets"))
        held = f"{held}: expected, and certainly {low} to {high}"
    wide = f"mean number of grades in these ranges, of {len(shown['widths'])}"
    return [
        *cards,
        (f"Coverage at {asked}", percent(shown["expected"]), "–", held),
        (f"Width at {asked}", f"{shown['mean_width']:.2f}", "–", wide),
    ]


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _card(name: str, value: str, constant: str, meaning: str) -> str:
    return (
        f'<div class="card"><span class="name">{escape(name)}</span>'
        f'<span class="value">{escape(value)}</span>'
        f'<span class="constant">best constant: {escape(constant)}</span>'
        f"<span>{escape(meaning)}</span></div>\n"
    )


def _hidden(hidden: bool) -> str:
    return "hidden" if hidden else ""


def _grade_row(row: dict[str, Any]) -> str:
    shares = [percent(row[name]) for name in ("too_low", "right", "too_high")]
    return table_row([str(row["grade"]), f"{row['rows']:,}", _number(row["mae"]), *shares])


def query_text(ndcg: dict[str, Any]) -> str:
    """The number of queries that count."""
    without = ndcg["queries_without_relevant_rows"]
    text = f"The means are over {ndcg['queries'] - without:,} queries."
    if without:
        text += f" {without:,} more have no row above the lowest grade, so every order is equally "
        text += "good; they are left out."
    return text


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
