"""The page of the results: one HTML file that opens without a network."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import Any

from ordspan.experiments import figures
from ordspan.experiments.claims import (
    COMPARABLE,
    METHOD,
    NOT_RUN,
    OUTPERFORMS,
    VERDICTS,
    Claim,
    by_sentence,
    claim_row,
    count_verdicts,
    labels_text,
)
from ordspan.experiments.figures import Panel, dataset_title, look_of, one_panel
from ordspan.experiments.results import Results, SummaryRow
from ordspan.pages import figure_svg, fill_template, table_row, terms

SIGNS = dict(zip(VERDICTS, "✓✗–", strict=True))
SHOWS = {
    "figure1": "average error over the trials",
    "figure2": "average error against the intervals over the trials",
    "regret": "cumulative losses over the trials, and the bound on them",
    "thresholds": "the thresholds over the trials",
}


def report_page(
    results: Results, claims: list[Claim], summary: list[SummaryRow], seconds: float | None = None
) -> str:
    """The whole page.

    Parameters
    ----------
    results : Results
        For the figures and the settings.
    claims, summary : list
        What was made from the results.
    seconds : float, optional
        How long the experiment took, if it was measured.
    """
    panels = [
        *figures.figure1_panels(results),
        *figures.figure2_panels(results),
        *figures.regret_panels(results),
        *figures.threshold_panels(results),
    ]
    parts = {
        figure: "".join(_panel(panel) for panel in panels if panel.name.startswith(f"{figure}-"))
        for figure in SHOWS
    }
    counts, runs = count_verdicts(claims), results.settings["hindsight_runs"]
    lead = (
        f"{results.settings['runs']} runs of {results.settings['trials']} trials on "
        f"{', '.join(map(dataset_title, results.datasets))}. Of the paper's {len(claims)} atomic "
        f"claims {counts['holds'] + counts['does not hold']} could be tested here: "
        f"{counts['holds']} hold, {counts['does not hold']} do not."
    )
    names = {panel.name for panel in panels}
    # the sentences of which nothing was run come last
    groups = sorted(by_sentence(claims), key=lambda group: {c.verdict for c in group} == {NOT_RUN})
    parts |= {
        "lead": escape(lead),
        "legend": "".join(map(_legend_entry, results.algorithms)),
        "fixed_runs": "first run" if runs == 1 else f"first {runs} runs",
        "datasets": _options((name, dataset_title(name)) for name in results.datasets),
        "verdicts": _options(zip(VERDICTS, VERDICTS, strict=True)),
        "method": _paragraphs(METHOD),
        "claims": "".join(_sentence(group, names) for group in groups),
        "summary": "".join(map(_summary_row, summary)),
        "settings": _settings(results.settings, seconds),
    }
    return fill_template(__package__, "report.html", parts)


def _panel(panel: Panel) -> str:
    alt = f"{panel.title}: {SHOWS[panel.name.partition('-')[0]]}"
    return (
        f'<figure id="{panel.name}" data-dataset="{panel.dataset}"><figcaption>'
        f"{escape(panel.title)}</figcaption>{figure_svg(one_panel(panel), alt)}</figure>\n"
    )


def _legend_entry(algorithm: str) -> str:
    look = look_of(algorithm)
    color = "currentColor" if look.color == "#000000" else look.color
    dashes = " ".join(f"{length:g}" for length in look.dash)
    return (
        '<li><svg width="34" height="8" aria-hidden="true"><path d="M0 4h34" '
        f'stroke="{color}" stroke-width="{look.width + 0.6:g}" stroke-dasharray="{dashes}"/>'
        f"</svg>{escape(algorithm)}</li>\n"
    )


def _options(pairs: Iterable[tuple[str, str]]) -> str:
    return "".join(f'<option value="{value}">{escape(text)}</option>' for value, text in pairs)


def _sentence(group: list[Claim], panels: set[str]) -> str:
    """The claims of a sentence; those that were not run come last."""
    counts = ", ".join(f"{verdict} {n}" for verdict, n in count_verdicts(group).items() if n)
    head = (
        f'<tr class="sentence"><th colspan="8" scope="colgroup">“{escape(group[0].sentence)}”'
        f"<small>{group[0].test} – {counts}</small></th></tr>"
    )
    run_first = sorted(group, key=lambda claim: claim.verdict == NOT_RUN)
    return f"<tbody>{head}{''.join(_claim(claim, panels) for claim in run_first)}</tbody>\n"


def _claim(claim: Claim, panels: set[str]) -> str:
    """A row of the table with a link to the panel that shows its curves."""
    dataset, *texts, verdict = map(escape, claim_row(claim))
    figure, place = 2, f"figure2-{dataset}"
    if claim.test in (OUTPERFORMS, COMPARABLE):
        figure, place = 1, f"figure1-{dataset}-{claim.labels}"
    link = f'<a href="#{place}">figure {figure}</a>' if place in panels else "–"
    cells = [dataset_title(dataset), *texts, link, f"{SIGNS[verdict]} {verdict}"]
    data = f'data-dataset="{dataset}" data-verdict="{verdict}"'
    return f"<tr {data}>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>\n"


def _summary_row(row: SummaryRow) -> str:
    numbers = [f"{value:.4f}".replace("nan", "–") for value in (row.mae, row.sem, row.interval_mae)]
    strength = "–" if row.C is None else f"{row.C:g}"
    ratio = "–" if row.hindsight_ratio is None else f"{row.hindsight_ratio:.3f}"
    names = [dataset_title(row.dataset), labels_text(row.labels), row.algorithm, strength]
    texts = [*names, *numbers, str(row.trials), str(row.runs), ratio]
    return table_row(texts, f'data-dataset="{row.dataset}"')


def _settings(settings: dict[str, Any], seconds: float | None) -> str:
    plain = {
        "Seconds taken": "not measured" if seconds is None else f"{seconds:.1f}",
        "Runs": settings["runs"],
        "Trials": settings["trials"],
        "Seed": settings["seed"],
        "How C was chosen": settings["rule"],
        "Grid of C": ", ".join(f"{value:g}" for value in settings["grid"]),
        "ordspan": settings["version"],
        "Packages": ", ".join(f"{name} {text}" for name, text in settings["versions"].items()),
    }
    sources = {
        dataset_title(name): f"{settings['sources'][name]} ({settings['n_classes'][name]} grades)"
        for name in settings["datasets"]
    }
    absent = {dataset_title(name): why for name, why in settings["unavailable"].items()}
    return (
        f"<h3>Settings</h3>{terms(plain)}<h3>Data sets</h3>{terms(sources)}"
        f"<h3>Data sets that were not available</h3>{terms(absent) or '<p>None.</p>'}"
    )


def _paragraphs(markdown: str) -> str:
    """Convert the Markdown used in `METHOD` to HTML: paragraphs, one list and bold."""
    bold = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", escape(markdown, quote=False))
    return "".join(
        f"<ul><li>{block[2:].replace(chr(10) + '- ', '</li><li>')}</li></ul>"
        if block.startswith("- ")
        else f"<p>{block}</p>"
        for block in bold.split("\n\n")
    )
