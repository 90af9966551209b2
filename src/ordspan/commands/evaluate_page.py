"""An evaluation as one self-contained web page."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ordspan.commands.evaluate_plots import (
    confusion_plot,
    error_plot,
    margin_plot,
    query_plot,
    score_plot,
)
from ordspan.commands.probability_plots import (
    coverage_plot,
    reliability_plot,
    shown_range,
    width_plot,
)
from ordspan.commands.tally import constant_text
from ordspan.pages import fill_template, script_json, table_row, terms
from ordspan.wording import as_text

if TYPE_CHECKING:
    from ordspan.commands.evaluate import Evaluation

LONGEST_NAME = 12


def page_text(evaluation: Evaluation, summary: dict[str, Any]) -> str:
    """The page for an evaluation that has run."""
    from ordspan.commands.evaluate import NO_PROBABILITIES, range_shares, verdict

    tally = evaluation.tally
    names = axis_names(summary["classes"])
    ranges, shares = (summary["probabilities"] or {}).get("ranges", ()), range_shares(summary)
    lowest = [escape(str(grade)) for grade in summary["classes"][:2]]
    plots = {
        "scores": score_plot(tally, names, np.array(summary["thresholds"])),
        "confusion": confusion_plot(tally.confusion, names) if tally.exact else None,
        "errors": error_plot(summary["by_grade"], names) if tally.exact else None,
        "margins": margin_plot(tally),
        **probability_plots(summary),
        "queries": query_plot(evaluation.queries.histogram) if evaluation.queries else None,
    }
    shown = {name: plot for name, plot in plots.items() if plot is not None}
    parts = {
        "title": escape(f"Evaluation of {Path(summary['model']).name}"),
        "lead": escape(lead(summary)),
        "verdict": escape(verdict(summary)),
        "verdict_kind": "good" if summary["better_than_constant"] else "bad",
        "cards": "".join(_card(*card) for card in cards(summary)),
        **{f"{name}_section": _hidden(name not in shown) for name in plots},
        "example": f"“{names[0]} | {names[1]}” separates grades {' and '.join(lowest)}",
        "grades": "".join(_grade_row(row) for row in summary["by_grade"]),
        "width_text": escape(width_text(summary["probabilities"])),
        "range_heads": "".join(f"<th>{escape(title)}</th>" for title in shares.values()),
        "range_rows": "".join(_range_row(found, shares) for found in ranges),
        "no_probabilities": escape(NO_PROBABILITIES),
        "has_probabilities": _hidden(summary["probabilities"] is not None),
        "range_labels": _hidden(not summary["range_rows"]),
        "query_text": escape(query_text(summary["ndcg"])),
        "made": terms(how_made(evaluation, summary)),
    }
    parts = {name: as_text(part) for name, part in parts.items()} | {"data": script_json(shown)}
    return fill_template(__package__, "evaluate.html", parts)


def axis_names(classes: list[Any]) -> list[str]:
    """Grades as axis labels: long ones shortened, unless two would look the same.

    >>> axis_names([1, "satisfactory in part", "a<b"])
    ['1', 'satisfactor…', 'a&lt;b']
    """
    whole = [as_text(str(grade)) for grade in classes]
    cut = [n if len(n) <= LONGEST_NAME else n[: LONGEST_NAME - 1].rstrip() + "…" for n in whole]
    return [escape(n, quote=False) for n in (cut if len(set(cut)) == len(cut) else whole)]


def lead(summary: dict[str, Any]) -> str:
    """The result in one or two sentences."""
    from ordspan.commands.evaluate import describe_files

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


def percent(share: float | None) -> str:
    """A share as a percentage.

    >>> percent(0.1234), percent(None)
    ('12.3 %', '–')
    """
    return "–" if share is None else f"{100 * share:.1f} %"


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


def probability_plots(summary: dict[str, Any]) -> dict[str, Any]:
    """The plots of probabilities and ranges; None for a model without them."""
    found, with_ranges = summary["probabilities"], summary["range_rows"] > 0
    if found is None:
        return dict.fromkeys(("reliability", "coverage", "widths"))
    return {
        "reliability": reliability_plot(found["reliability"], with_ranges=with_ranges),
        "coverage": coverage_plot(found["ranges"], with_ranges=with_ranges),
        "widths": width_plot(shown_range(found["ranges"])),
    }


def width_text(found: dict[str, Any] | None) -> str:
    """How wide ranges are, in a sentence or two."""
    if found is None:
        return ""
    shown = shown_range(found["ranges"])
    return (
        f"Ranges with a coverage of {100 * shown['coverage']:g} % are "
        f"{shown['mean_width']:.2f} grades wide on average. A range of one grade is as sharp as "
        f"possible; one of all {len(shown['widths'])} grades says nothing."
    )


def _range_row(found: dict[str, Any], shares: Iterable[str]) -> str:
    held = [percent(found[name]) for name in shares]
    return table_row([f"{100 * found['coverage']:g} %", *held, f"{found['mean_width']:.2f}"])


def query_text(ndcg: dict[str, Any] | None) -> str:
    """The number of queries, and the rules of NDCG."""
    if ndcg is None:
        return ""
    without = ndcg["queries_without_relevant_rows"]
    text = f"The means are over {ndcg['queries'] - without:,} queries. "
    if without:
        text += f"{without:,} more have no row above the lowest grade, so every order is equally "
        text += "good; they are left out. "
    return text + (
        "The gain of a row is 2^(rank−1)−1, tied scores share their positions, and rows labelled "
        "by a range are left out."
    )


def how_made(evaluation: Evaluation, summary: dict[str, Any]) -> dict[str, Any]:
    """The provenance of the numbers."""
    import ordspan

    label = summary["labels"]
    ends = [f"{end} {label[end]}" for end in ("lower", "upper") if label[end]]
    made = {
        "Model": summary["model"],
        "Files": ", ".join(summary["files"]),
        "Labels": label["label"] or ", ".join(ends),
        "Queries": summary["group"] or "none",
        "Rows": f"{summary['rows']:,}: {summary['exact_rows']:,} with an exact label, "
        f"{summary['range_rows']:,} with a range",
        "Rows skipped": f"{summary['skipped']:,}",
        "Thresholds": ", ".join(f"{value:.5g}" for value in summary["thresholds"]),
        "Rows in the plots": f"up to {evaluation.tally.sample.size:,} of every grade, drawn evenly",
        "ordspan": ordspan.__version__,
    }
    if summary["skipped"]:
        made["Rows skipped"] += f", such as {summary['skipped_examples'][0]}"
    return made
