"""The page of the results: one HTML file that opens without a network."""

from html import escape
from math import isnan
from typing import Any

from ordspan.experiments import claims as paper
from ordspan.experiments.claims import PAPER, Claim, count_verdicts
from ordspan.experiments.figures import Panel, Panels, dataset_title, look_of, one_panel
from ordspan.experiments.results import Results
from ordspan.pages import figure_svg, fill_template, table_row, terms
from ordspan.wording import in_words

SIGNS = dict(zip(paper.VERDICTS, "✓✗–", strict=True))


def report_page(
    results: Results, panels: Panels, claims: list[Claim], summary: list[dict[str, Any]]
) -> str:
    """The whole page, from the results and what was made from them."""
    settings, counts = results.settings, count_verdicts(claims)
    holding, failing, _ = counts.values()
    names, runs = {panel.name for group in panels.values() for panel in group}, settings["runs"]
    fixed_runs = settings["hindsight_runs"]
    # the sentences of which nothing was run come last
    groups = sorted(
        paper.by_sentence(claims), key=lambda group: {c.verdict for c in group} == {paper.NOT_RUN}
    )
    parts = {
        "lead": (
            f"{runs} runs of {settings['trials']} trials on "
            f"{', '.join(map(dataset_title, results.datasets))}. Of the paper's {len(claims)} "
            f"atomic claims {holding + failing} could be tested here: {holding} hold, {failing} do "
            "not."
        ),
        "legend": "".join(map(_legend_entry, results.algorithms)),
        "fixed_runs": "first run" if fixed_runs == 1 else f"first {fixed_runs} runs",
        "datasets": "".join(
            f'<option value="{name}">{dataset_title(name)}</option>' for name in results.datasets
        ),
        "method": escape(PAPER["method"]),
        "tests": terms(PAPER["tests"]),
        "caveats": escape(PAPER["caveats"]),
        "claims": "".join(_sentence(group, names) for group in groups),
        "summary": "".join(map(_summary_row, summary)),
        "settings": terms(
            {name.replace("_", " "): in_words(value) for name, value in settings.items()}
        ),
    }
    for name, group in panels.items():
        parts[name] = "".join(map(_figure, group))
    return fill_template(__package__, "report.html", parts)


def _figure(panel: Panel) -> str:
    drawn = one_panel(panel)
    alt = f"{panel.title}: {drawn.axes[0].get_ylabel()} over the trials"
    return (
        f'<figure id="{panel.name}" data-dataset="{panel.dataset}"><figcaption>'
        f"{escape(panel.title)}</figcaption>{figure_svg(drawn, alt)}</figure>\n"
    )


def _legend_entry(algorithm: str) -> str:
    look = look_of(algorithm)
    color = "currentColor" if look["color"] == "#000000" else look["color"]
    dashes = "" if look["linestyle"] == "-" else " ".join(f"{n:g}" for n in look["linestyle"][1])
    return (
        '<li><svg width="34" height="8" aria-hidden="true"><path d="M0 4h34" '
        f'stroke="{color}" stroke-width="{look["linewidth"] + 0.6:g}" stroke-dasharray="{dashes}"/>'
        f"</svg>{escape(algorithm)}</li>\n"
    )


def _sentence(group: list[Claim], panels: set[str]) -> str:
    """The claims of a sentence; those that were not run come last."""
    counts = ", ".join(f"{verdict} {n}" for verdict, n in count_verdicts(group).items() if n)
    run_first = sorted(group, key=lambda claim: claim.verdict == paper.NOT_RUN)
    return (
        f'<tbody><tr class="sentence"><th colspan="8" scope="colgroup">“{escape(group[0].sentence)}'
        f"”<small>{group[0].test} – {counts}</small></th></tr>"
        f"{''.join(_claim(claim, panels) for claim in run_first)}</tbody>\n"
    )


def _claim(claim: Claim, panels: set[str]) -> str:
    """A row of the table with a link to the panel that shows its curves."""
    dataset, *texts, verdict = map(escape, paper.claim_row(claim))
    figure, place = 2, f"figure2-{dataset}"
    if claim.test in (paper.OUTPERFORMS, paper.COMPARABLE):
        figure, place = 1, f"figure1-{dataset}-{claim.labels}"
    link = f'<a href="#{place}">figure {figure}</a>' if place in panels else "–"
    cells = [dataset_title(dataset), *texts, link, f"{SIGNS[verdict]} {verdict}"]
    data = f'data-dataset="{dataset}" data-verdict="{verdict}"'
    return f"<tr {data}>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>\n"


def _summary_row(row: dict[str, Any]) -> str:
    forms = {"C": "g", "mae": ".4f", "sem": ".4f", "interval_mae": ".4f", "hindsight_ratio": ".3f"}
    numbers = {
        name: "–" if row[name] is None or isnan(row[name]) else format(row[name], form)
        for name, form in forms.items()
    }
    names = {"dataset": dataset_title(row["dataset"]), "labels": paper.labels_text(row["labels"])}
    texts = map(str, (row | names | numbers).values())
    return table_row(list(texts), f'data-dataset="{row["dataset"]}"')
