"""The interactive report: a self-contained HTML file made from a results table alone."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import Any

from ordspan.experiments.claims import (
    COMPARABLE,
    METHOD,
    NOT_RUN,
    OUTPERFORMS,
    SENTENCES,
    VERDICTS,
    Claim,
    count_verdicts,
    effect_texts,
    labels_text,
    make_claims,
)
from ordspan.experiments.figures import dataset_title, look_of
from ordspan.experiments.panels import (
    REGRET,
    comparison_panels,
    partial_panels,
    regret_panels,
    trajectories,
)
from ordspan.experiments.summary import SummaryRow, summary_rows
from ordspan.experiments.table import Results
from ordspan.pages import fill_template, script_json, table_row, terms

SIGNS = dict(zip(VERDICTS, "✓✗–", strict=True))


def write_report(results: Results, folder: Path, seconds: float | None = None) -> Path:
    """Write the report as one file that works offline.

    Parameters
    ----------
    results : Results
    folder : Path
        Receives report.html.
    seconds : float, optional
        How long the experiment took, if it was measured.

    Returns
    -------
    Path
        The file written.
    """
    text = fill_template(__package__, "report.html", report_parts(results, seconds))
    path = Path(folder) / "report.html"
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def report_parts(results: Results, seconds: float | None = None) -> dict[str, str]:
    """Values of the template's placeholders, except plotly.js."""
    claims, runs = make_claims(results), results.settings.get("hindsight_runs", 1)
    panels = [*comparison_panels(results), *partial_panels(results), *regret_panels(results)]
    return {
        "lead": _lead(results, claims),
        "toggles": "".join(_toggle(name) for name in results.algorithms),
        "figure1": _figure_html(results, [p for p in panels if p["figure"] == 1]),
        "figure2": _figure_html(results, [p for p in panels if p["figure"] == 2]),
        "regret": _figure_html(results, [p for p in panels if p["figure"] == REGRET]),
        "fixed_runs": "first run" if runs == 1 else f"first {runs} runs",
        "datasets": _option_tags([(name, dataset_title(name)) for name in results.datasets]),
        "fractions": _option_tags([(str(f), labels_text(f)) for f in results.labels]),
        "verdicts": _option_tags([(verdict, verdict) for verdict in VERDICTS]),
        "method": _paragraphs(METHOD),
        "claims": _claims_html(claims, panels),
        "summary": "".join(_summary_html(row) for row in summary_rows(results)),
        "settings": _settings_html(results, seconds),
        "data": script_json({"panels": panels, "trajectories": trajectories(results)}),
    }


def _lead(results: Results, claims: list[Claim]) -> str:
    counts = count_verdicts(claims)
    tested = counts["holds"] + counts["does not hold"]
    names = ", ".join(dataset_title(name) for name in results.datasets)
    return escape(
        f"{results.settings.get('runs')} runs of {results.settings.get('trials')} trials "
        f"on {names}. "
        f"Of the paper's {len(claims)} atomic claims {tested} could be tested here: "
        f"{counts['holds']} hold, {counts['does not hold']} do not."
    )


def _toggle(algorithm: str) -> str:
    look, name = look_of(algorithm), escape(algorithm)
    dashes = " ".join(f"{length:g}" for length in look.dash)
    return (
        f'<label><input type="checkbox" checked data-algorithm="{name}">'
        f'<svg width="34" height="8" aria-hidden="true"><line x1="0" y1="4" x2="34" y2="4" '
        f'stroke="{look.color}" stroke-width="{look.width + 0.6:g}" stroke-dasharray="{dashes}"/>'
        f"</svg>{name}</label>\n"
    )


def _figure_html(results: Results, panels: list[dict[str, Any]]) -> str:
    """One row of panels per data set, or one grid if each has a single panel."""
    boxes = [(panel["dataset"], _panel_html(panel)) for panel in panels]
    if all(panel["figure"] != 1 for panel in panels):
        return f'<div class="grid">{"".join(box for _, box in boxes)}</div>'
    rows = ["".join(box for name, box in boxes if name == dataset) for dataset in results.datasets]
    return "".join(f'<div class="grid">{row}</div>\n' for row in rows)


def _panel_html(panel: dict[str, Any]) -> str:
    data = " ".join(f'data-{key}="{panel[key]}"' for key in ("figure", "dataset", "labels"))
    return (
        f"<figure><figcaption>{escape(panel['title'])}</figcaption>"
        f'<div class="panel" id="{panel["id"]}" {data}></div></figure>\n'
    )


def _option_tags(pairs: list[tuple[str, str]]) -> str:
    return "".join(f'<option value="{escape(v)}">{escape(text)}</option>' for v, text in pairs)


def _claims_html(claims: list[Claim], panels: list[dict[str, Any]]) -> str:
    """The claims by sentence, in the order of the paper; those not run come last."""
    groups = [[claim for claim in claims if claim.sentence == s.words] for s in SENTENCES]
    groups.sort(key=lambda group: all(claim.verdict == NOT_RUN for claim in group))
    return "".join(_sentence_html(group, panels) for group in groups)


def _sentence_html(group: list[Claim], panels: list[dict[str, Any]]) -> str:
    counts = ", ".join(f"{verdict} {n}" for verdict, n in count_verdicts(group).items() if n)
    head = (
        f'<tr class="sentence"><th colspan="8" scope="colgroup">“{escape(group[0].sentence)}”'
        f"<small>{escape(group[0].test)} – {counts}</small></th></tr>"
    )
    run_first = sorted(group, key=lambda claim: claim.verdict == NOT_RUN)
    return f"<tbody>{head}{''.join(_claim_html(claim, panels) for claim in run_first)}</tbody>\n"


def _claim_html(claim: Claim, panels: list[dict[str, Any]]) -> str:
    names = [dataset_title(claim.dataset), labels_text(claim.labels), claim.algorithm, claim.rival]
    cells = [escape(text) for text in (*names, *effect_texts(claim))]
    cells += [_panel_link(claim, panels), f"{SIGNS[claim.verdict]} {claim.verdict}"]
    data = f'data-dataset="{claim.dataset}" data-verdict="{claim.verdict}"'
    return f"<tr {data}>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>\n"


def _panel_link(claim: Claim, panels: list[dict[str, Any]]) -> str:
    """A link to the panel that shows the claim's curves; a dash if there is none."""
    figure = 1 if claim.test in (OUTPERFORMS, COMPARABLE) else 2
    for panel in panels:
        here = panel["figure"] == figure and panel["dataset"] == claim.dataset
        if here and str(claim.labels) in panel["labels"].split():
            return f'<a href="#{panel["id"]}">figure {figure}</a>'
    return "–"


def _summary_html(row: SummaryRow) -> str:
    floats = [f"{value:.4f}".replace("nan", "–") for value in (row.mae, row.sem, row.interval_mae)]
    strength = "–" if row.C is None else f"{row.C:g}"
    names = [dataset_title(row.dataset), labels_text(row.labels), row.algorithm, strength]
    ratio = "–" if row.hindsight_ratio is None else f"{row.hindsight_ratio:.3f}"
    texts = [*names, *floats, str(row.trials), str(row.runs), ratio]
    return table_row(texts, f'data-dataset="{row.dataset}"')


def _settings_html(results: Results, seconds: float | None) -> str:
    settings = results.settings
    taken = "not measured" if seconds is None else f"{seconds:.1f}"
    plain = {
        "Seconds taken": taken,
        "Runs": settings.get("runs"),
        "Trials": settings.get("trials"),
        "Seed": settings.get("seed"),
        "How C was chosen": settings.get("rule"),
        "Grid of C": ", ".join(f"{value:g}" for value in settings.get("grid", [])),
        "ordspan": settings.get("version"),
    }
    versions = settings.get("versions", {})
    plain["Packages"] = ", ".join(f"{name} {version}" for name, version in versions.items())
    grades = settings.get("n_classes", {})
    words = settings.get("sources", {})
    sources = {
        dataset_title(name): words[name] + (f" ({grades[name]} grades)" if name in grades else "")
        for name in results.datasets
        if name in words
    }
    absent = {dataset_title(name): why for name, why in settings.get("unavailable", {}).items()}
    return (
        f"<h3>Settings</h3>{terms(plain)}<h3>Data sets</h3>{terms(sources)}"
        f"<h3>Data sets that were not available</h3>{terms(absent) or '<p>None.</p>'}"
    )


def _paragraphs(markdown: str) -> str:
    """Convert the Markdown used in `METHOD` to HTML: paragraphs, one list and bold."""
    bold = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", escape(markdown, quote=False))
    blocks = [
        f"<ul><li>{block[2:].replace(chr(10) + '- ', '</li><li>')}</li></ul>"
        if block.startswith("- ")
        else f"<p>{block}</p>"
        for block in bold.split("\n\n")
    ]
    return "".join(blocks)
