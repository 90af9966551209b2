"""An evaluation in words and tables, and as one self-contained web page."""

from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

import ordspan
from ordspan.commands.evaluate import Scores, Summary
from ordspan.commands.info import largest_weights
from ordspan.core.measures import distance
from ordspan.core.state import Floats
from ordspan.metrics.ranks import CUTS, OF_EXACT
from ordspan.models.table import TableModel
from ordspan.pages import PALE, figure_svg, fill_template, table_row, terms
from ordspan.wording import as_text, in_words, plural

MEASURES = {
    "mae": ("MAE", "mean distance to the label, in grades; 0 is best"),
    "macro_mae": ("macro MAE", "the same, with equal weight for every grade"),
    "accuracy": ("accuracy", "rows with exactly the right grade"),
    "inside_interval": ("inside the range", "rows whose grade lies within the label"),
    "quadratic_kappa": ("quadratic kappa", "agreement beyond chance: 1 is perfect, 0 is chance"),
    "rps": ("RPS", "ranked probability score: the MAE of probabilities; 0 is best"),
    "log_score": ("log score", "surprise at the label: mean of −ln P(label); 0 is best"),
} | {f"ndcg@{n}": (f"NDCG@{n}", f"first {n} of each query; 1 is the best order") for n in CUTS}
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
N_WEIGHTS = 20
FEW_ROWS = 200  # of fewer rows the margins say too little
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


def compared(mae: float, constant: float, grade: Any) -> str:
    """Compare the MAE of a model with that of a constant prediction.

    >>> compared(0.52, 1.2, 3)
    'MAE 0.5200, against 1.2000 by always predicting 3: 57 % less.'
    >>> compared(1.195, 1.2, 3)
    'The model is hardly better than always predicting 3: MAE 1.1950, against 1.2000.'
    >>> print(compared(1.21, 1.2, "low"))
    The model is no better than always predicting 'low': MAE 1.2100, against 1.2000. By this
    measure it gains nothing from the features.
    """
    always, against = f"always predicting {grade!r}", f"MAE {mae:.4f}, against {constant:.4f}"
    if constant == 0:
        alike = f"These rows cannot tell good models from bad: {always} is never wrong on them."
        return f"{alike} The model's MAE is {mae:.4f}."
    less = 100 * (1 - mae / constant)
    if less <= 0:
        nothing = "By this measure it gains nothing from the features."
        return f"The model is no better than {always}: {against}. {nothing}"
    if less < 1:
        return f"The model is hardly better than {always}: {against}."
    return f"{against} by {always}: {less:.0f} % less."


def measures(summary: Summary) -> list[tuple[str, ...]]:
    """Title, value, best constant, rows and meaning of every measure."""
    chances, queries = summary["probabilities"], summary["ndcg"] or {}
    values = summary | chances | queries
    over = dict.fromkeys(MEASURES, plural(summary["rows"], "row"))
    over |= dict.fromkeys(OF_EXACT, plural(summary["exact_rows"], "exact label"))
    if queries:
        counted = queries["queries"] - queries["queries_without_relevant_rows"]
        over |= dict.fromkeys(queries, f"{counted:,} of {queries['queries']:,} queries")
    best, constants = dict.fromkeys(MEASURES, "–"), chances["best_constant"]
    best |= {n: f"{number(constants[n])} (always the same)" for n in ("rps", "log_score")}
    for name, constant in summary["best_constant"].items():
        if constant is not None:
            grade = "any grade" if constant["grade"] is None else f"always {constant['grade']}"
            best[name] = f"{number(constant['value'])} ({grade})"
    return [
        (title, number(values[name]), best[name], over[name], meaning)
        for name, (title, meaning) in MEASURES.items()
        if name in values
    ]


def verdict(summary: Summary) -> str:
    """A sentence on whether the model beats a constant prediction."""
    constant = summary["best_constant"]["mae"]
    return compared(summary["mae"], constant["value"], constant["grade"])


def number(value: float | None) -> str:
    """A number, or a dash.

    >>> number(0.12345), number(None)
    ('0.1235', '–')
    """
    return "–" if value is None else f"{value:.4f}"


def percent(share: float) -> str:
    """A share as a percentage.

    >>> percent(0.1234)
    '12.3 %'
    """
    return f"{100 * share:.1f} %"


def range_table(summary: Summary) -> tuple[list[str], list[list[str]]]:
    """Heads and rows of a table of ranges; one share is enough for exact labels."""
    shares = {"contains": "contains the label"}
    if summary["range_rows"]:
        shares |= {"expected": "expected", "meets": "meets the label"}
    rows = []
    for found in summary["probabilities"]["ranges"]:
        held = [percent(found[name]) for name in shares]
        rows.append([f"{100 * found['coverage']:g} %", *held, f"{found['mean_width']:.2f}"])
    return ["coverage", *shares.values(), "mean width"], rows


def shown_range(ranges: list[dict[str, Any]]) -> Summary:
    """The ranges of 90 %, or of the nearest coverage that was calibrated.

    >>> shown_range([{"coverage": 0.5}, {"coverage": 0.95}])
    {'coverage': 0.95}
    """
    return min(ranges, key=lambda found: abs(found["coverage"] - 0.9))


def describe_files(files: list[str]) -> str:
    """A short description of the files.

    >>> describe_files(["-"]), describe_files(["a.csv", "b.csv", "c.csv"])
    ('standard input', 'a.csv and 2 more files')
    """
    first = "standard input" if files[0] == "-" else files[0]
    return first if len(files) == 1 else f"{first} and {plural(len(files) - 1, 'more file')}"


def page_text(summary: Summary, model: TableModel, sample: Scores, ndcgs: Floats | None) -> str:
    """The page of an evaluation, with a sample of its rows in the plots."""
    names = axis_names(summary["classes"])
    drawn = draw_figures(summary, model, sample, ndcgs)
    weights = largest_weights(model, model.estimator, N_WEIGHTS) or []
    heads, ranges = range_table(summary)
    texts = {
        "title": f"Evaluation of {Path(summary['model']).name}",
        "lead": lead(summary),
        "verdict": verdict(summary),
        "verdict_kind": "good" if summary["better_than_constant"] else "bad",
        "edge": f"{names[0]} | {names[1]}",
        "range_labels": "" if summary["range_rows"] else "hidden",
        "weights_section": "" if weights else "hidden",
        **{f"{name}_section": "" if figure else "hidden" for name, figure in drawn.items()},
    }
    markup = {name: escape(text) for name, text in texts.items()} | {
        "notes": "".join(f'<p class="note">Note: {escape(n)}.</p>\n' for n in summary["notes"]),
        "cards": "".join(cards(summary)),
        "grades": "".join(map(grade_row, summary["by_grade"])),
        "range_heads": "".join(f"<th>{title}</th>" for title in heads),
        "range_rows": "".join(map(table_row, ranges)),
        "weights": "".join(table_row([w["feature"], number(w["weight"])]) for w in weights),
        "made": terms(how_made(summary, sample.size)),
        **drawn,
    }
    page = fill_template(__package__, "evaluate.html", {n: as_text(p) for n, p in markup.items()})
    return page.replace(" %", "\N{NO-BREAK SPACE}%")


def draw_figures(
    summary: Summary, model: TableModel, sample: Scores, ndcgs: Floats | None
) -> dict[str, str]:
    """The figures by name; empty if there is nothing to show."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    from ordspan.plot import ReliabilityDisplay, ScoreDisplay, panels

    thresholds, names = np.array(summary["thresholds"]), axis_names(summary["classes"])
    found, drawn = summary["probabilities"], dict.fromkeys(ALT, "")

    def add(name: str, height: float, draw: Callable[..., Any], *values: Any) -> None:
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
        tall = min(8.5, 1.5 + 0.525 * len(names))
        add("confusion", tall, panels.confusion_matrix, confusion, names)
        shares, true = ([there[rank] for rank in labelled] for there in (by_grade, names))
        add("errors", min(9.4, 1.2 + 0.35 * len(true)), panels.errors_by_grade, shares, true)
    if sample.size >= FEW_ROWS and thresholds.size:
        margin = np.abs(score[:, np.newaxis] - thresholds).min(axis=1)
        right = distance(model.calibration.predict(score), lower, upper) == 0
        add("margins", 3.5, panels.accuracy_by_margin, margin, right)
    parts = ("count", "predicted", "observed", "at_least", "at_most")
    bins = [np.array([row[name] for row in found["reliability"]]) for name in parts]
    add("reliability", 5.0, ReliabilityDisplay(*bins).plot)
    add("coverage", 4.0, panels.coverage, found["ranges"], summary["range_rows"] > 0)
    add("widths", 3.3, panels.range_widths, shown_range(found["ranges"]))
    if ndcgs is not None:
        add("queries", 3.3, panels.query_histogram, ndcgs[-1][np.isfinite(ndcgs[-1])])
    return drawn


def axis_names(classes: list[Any]) -> list[str]:
    """Grades as axis labels: long ones shortened, unless two would look the same.

    >>> axis_names([1, "satisfactory in part"])
    ['1', 'satisfactor…']
    """
    whole = [as_text(str(grade)) for grade in classes]
    cut = [n if len(n) <= LONGEST_NAME else n[: LONGEST_NAME - 1].rstrip() + "…" for n in whole]
    return cut if len(set(cut)) == len(cut) else whole


def lead(summary: Summary) -> str:
    """The result in one or two sentences."""
    files = describe_files([Path(path).name for path in summary["files"]])
    away = f"{number(summary['mae'])} grades away from the label on average"
    text = f"On {plural(summary['rows'], 'row')} of {files} the predicted grade is {away}."
    if summary["accuracy"] is not None:
        text += f" Of the {plural(summary['exact_rows'], 'row')} with an exact label, "
        text += f"{percent(summary['accuracy'])} get exactly that grade."
    if summary["range_rows"]:
        text += f" {summary['range_rows']:,} labels are ranges: inside one, a grade is not wrong."
    return text


def cards(summary: Summary) -> Iterator[str]:
    """A card for every measure, and one for the ranges shown."""
    rows = measures(summary)
    shown = shown_range(summary["probabilities"]["ranges"])
    level, n_classes = f"{100 * shown['coverage']:g} %", len(summary["classes"])
    wide = f"{shown['mean_width']:.2f} of {n_classes} grades wide on average"
    known = ""
    if summary["range_rows"]:
        ends = (percent(shown[name]) for name in ("contains", "meets"))
        known = f" (by the model's own estimate; the labels show {' to '.join(ends)})"
    meaning = f"rows whose {level} range contains the true grade{known}; ranges are {wide}"
    over = plural(summary["rows"], "row")
    rows.append((f"coverage at {level}", percent(shown["expected"]), "–", over, meaning))
    for row in rows:
        title, value, constant, over, meaning = map(escape, row)
        rival = "" if constant == "–" else f"best constant: {constant}"
        yield (
            f'<div class="card"><span class="name">{title[:1].upper()}{title[1:]}</span>'
            f'<span class="value">{value}</span>'
            f'<span class="constant">{rival}</span>'
            f"<span>{meaning} ({over})</span></div>\n"
        )


def grade_row(row: dict[str, Any]) -> str:
    """Rows, mean error and shares of a true grade, if it occurs."""
    if not row["rows"]:
        return ""
    shares = [percent(row[name]) for name in ("too_low", "right", "too_high")]
    return table_row([str(row["grade"]), f"{row['rows']:,}", number(row["mae"]), *shares])


def how_made(summary: Summary, n_drawn: int) -> dict[str, Any]:
    """Model, files, rows and version behind the numbers of the page."""
    names = ["model", "files", "labels", "group", "exact_rows", "range_rows", "unlabelled_rows"]
    names += ["skipped", "skipped_examples", "thresholds"]
    told = {name.replace("_", " "): in_words(summary[name]) for name in names if summary[name]}
    labels = [n if v is True else f"{n} {in_words(v)}" for n, v in summary["labels"].items()]
    told["labels"] = in_words(labels) or "the first field of a row"
    return told | {"rows in the plots": f"{n_drawn:,}", "ordspan": ordspan.__version__}
