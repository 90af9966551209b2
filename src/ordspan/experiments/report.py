"""The interactive report: one HTML file with everything in it, made from a results table alone."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
from ordspan.experiments.figures import (
    GREY,
    axis_limits,
    dataset_cells,
    dataset_title,
    look_of,
    panel_title,
    partial_cells,
    partial_title,
    shown_trials,
)
from ordspan.experiments.summary import SummaryRow, cells, summary_rows
from ordspan.experiments.table import HINDSIGHT, Cell, Floats, Results
from ordspan.pages import fill_template, script_json, table_row, terms

EARLY_TRIALS = 5  # a logarithmic axis shows the early trials, so its limits must hold them too
TRAJECTORY_POINTS = 150
LEAST_LOSS = 0.5  # where a logarithmic axis of losses begins at the latest: half a margin
REGRET = "regret"
BOUND = {"color": GREY, "width": 2, "dash": "dot"}
FIXED = {"color": "#000000", "width": 3, "dash": "9px,4px"}
SIGNS = dict(zip(VERDICTS, "✓✗–", strict=True))


def write_report(results: Results, folder: Path, seconds: float | None = None) -> Path:
    """Write the report as one file that opens without a network.

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
    """What fills the places of the template, apart from plotly.js."""
    claims = make_claims(results)
    panels = [*comparison_panels(results), *partial_panels(results), *regret_panels(results)]
    return {
        "lead": _lead(results, claims),
        "toggles": "".join(_toggle(name) for name in results.algorithms),
        "figure1": _figure_html(results, [p for p in panels if p["figure"] == 1]),
        "figure2": _figure_html(results, [p for p in panels if p["figure"] == 2]),
        "regret": _figure_html(results, [p for p in panels if p["figure"] == REGRET]),
        "fixed_runs": _fixed_runs(results),
        "datasets": _options([(name, dataset_title(name)) for name in results.datasets]),
        "fractions": _options([(str(f), labels_text(f)) for f in results.labels]),
        "verdicts": _options([(verdict, verdict) for verdict in VERDICTS]),
        "method": _paragraphs(METHOD),
        "claims": _claims_html(claims, panels),
        "summary": "".join(_summary_html(row) for row in summary_rows(results)),
        "settings": _settings_html(results, seconds),
        "data": script_json({"panels": panels, "trajectories": trajectories(results)}),
    }


def comparison_panels(results: Results) -> list[dict[str, Any]]:
    """The panels of figure 1: identity, plotly traces and layout."""
    return [panel for dataset in results.datasets for panel in _dataset_panels(results, dataset)]


def partial_panels(results: Results) -> list[dict[str, Any]]:
    """The panels of figure 2: identity, plotly traces and layout."""
    panels = []
    for dataset in results.datasets:
        curves = {
            cell: results.curve(cell, interval=True) for cell in partial_cells(results, dataset)
        }
        if curves:
            fractions = sorted({cell.labels for cell in curves})
            title = partial_title(dataset, fractions)
            traces = [_partial_trace(cell, curve, fractions) for cell, curve in curves.items()]
            layout = _layout(list(curves.values()), "average MAE against the intervals")
            panels.append(_panel(2, dataset, fractions, title, traces, layout))
    return panels


def regret_panels(results: Results) -> list[dict[str, Any]]:
    """Cumulative losses of the first run, a panel for each data set, with the fewest intervals."""
    panels = []
    for dataset in results.datasets:
        cells_here = dataset_cells(results, dataset)
        labels = min(cell.labels for cell in cells_here)
        traces = _regret_traces(results, [c for c in cells_here if c.labels == labels])
        if traces:
            title = panel_title(dataset, labels)
            panels.append(_panel(REGRET, dataset, [labels], title, traces, _log_layout(traces)))
    return panels


def trajectories(results: Results) -> list[dict[str, Any]]:
    """Thresholds along the first run of every cell that has them, as plotly traces."""
    found = [(cell, results.trajectory(cell)) for cell in cells(results)]
    return [
        {**cell._asdict(), "traces": _threshold_traces(cell.algorithm, *trajectory)}
        for cell, trajectory in found
        if trajectory is not None
    ]


def _dataset_panels(results: Results, dataset: str) -> list[dict[str, Any]]:
    curves = {cell: results.curve(cell) for cell in dataset_cells(results, dataset)}
    truth = results.settings.get("truth_mae", {}).get(dataset)
    layout = _layout(list(curves.values()), "average MAE", truth)
    panels = []
    for labels in results.labels:
        traces = [
            _trace(cell.algorithm, cell.algorithm, curve)
            for cell, curve in curves.items()
            if cell.labels == labels
        ]
        if truth is not None:
            traces.append(_truth_trace(truth, max(mean.size for mean, _ in curves.values())))
        title = panel_title(dataset, labels)
        panels.append(_panel(1, dataset, [labels], title, traces, layout))
    return panels


def _regret_traces(results: Results, group: list[Cell]) -> list[dict[str, Any]]:
    """The bound, the algorithms, and on top of them the best fixed ranker."""
    fixed = group[0]._replace(algorithm=HINDSIGHT)
    lines = [
        # the bound is of one algorithm, and is hidden with it
        *((f"bound for {c.algorithm}", c.algorithm, results.bounds(c), BOUND) for c in group),
        *((c.algorithm, c.algorithm, results.losses(c), _line(c.algorithm)) for c in group),
        ("best fixed ranker", HINDSIGHT, results.losses(fixed), FIXED),
    ]
    return [
        _loss_trace(name, algorithm, *along, line)
        for name, algorithm, along, line in lines
        if along is not None
    ]


def _loss_trace(
    name: str, algorithm: str, trials: NDArray[np.int64], losses: Floats, line: dict[str, Any]
) -> dict[str, Any]:
    from plotly import graph_objects as go

    shown = losses > 0.0  # a logarithmic axis has no zero
    return go.Scatter(
        name=name,
        legendgroup=algorithm,
        x=trials[shown].tolist(),
        y=_digits(losses[shown]),
        mode="lines",
        line=line,
        hovertemplate="%{y:.5~g}",
    ).to_plotly_json()


def _log_layout(traces: list[dict[str, Any]]) -> dict[str, Any]:
    """Two logarithmic axes that hold every trace."""
    from plotly import graph_objects as go

    values = [value for trace in traces for value in trace["y"]] or [1.0]
    trials = max((trial for trace in traces for trial in trace["x"]), default=1)
    limits = np.log10([max(LEAST_LOSS, min(values)), max(1.0, *values) * 1.3])
    axis = {"type": "log", "dtick": 1, "exponentformat": "power"}
    return go.Layout(
        xaxis={**axis, "title": {"text": "trials"}, "range": [0, max(np.log10(trials), 0.1)]},
        yaxis={**axis, "title": {"text": "cumulative loss"}, "range": _digits(limits)},
    ).to_plotly_json()


def _panel(
    figure: int | str,
    dataset: str,
    labels: list[int],
    title: str,
    traces: list[dict[str, Any]],
    layout: dict[str, Any],
) -> dict[str, Any]:
    kind = figure if isinstance(figure, str) else f"figure{figure}"
    name = "-".join([kind, dataset, *map(str, labels)])
    return {
        "id": name,
        "figure": figure,
        "dataset": dataset,
        "labels": " ".join(map(str, labels)),
        "title": title,
        "traces": traces,
        "layout": layout,
    }


def _trace(algorithm: str, name: str, curve: tuple[Floats, Floats]) -> dict[str, Any]:
    """A line with the standard error beside every point; the page draws the band from it."""
    from plotly import graph_objects as go

    mean, sem = curve
    trials = shown_trials(mean.size)
    return go.Scatter(
        name=name,
        legendgroup=algorithm,
        x=trials.tolist(),
        y=_digits(mean[trials - 1]),
        customdata=_digits(sem[trials - 1]),
        mode="lines",
        line=_line(algorithm),
        hovertemplate="%{y:.4f} ± %{customdata:.4f}",
    ).to_plotly_json()


def _line(algorithm: str) -> dict[str, Any]:
    look = look_of(algorithm)
    return {"color": look.color, "width": look.width + 0.2, "dash": _dash(look.dash)}


def _partial_trace(
    cell: Cell, curve: tuple[Floats, Floats], fractions: list[int]
) -> dict[str, Any]:
    """A line as in figure 1 with circles: filled for the smallest fraction, else open."""
    color = look_of(cell.algorithm).color
    fill = color if cell.labels == fractions[0] else "white"
    marker = {"size": 7, "maxdisplayed": 8, "color": fill, "line": {"color": color, "width": 1.5}}
    trace = _trace(cell.algorithm, f"{cell.algorithm}, {cell.labels}%", curve)
    return {**trace, "mode": "lines+markers", "marker": marker}


def _truth_trace(level: float, trials: int) -> dict[str, Any]:
    from plotly import graph_objects as go

    return go.Scatter(
        name="true model",
        legendgroup="true model",
        x=[1, trials],
        y=[level, level],
        mode="lines",
        line={"color": GREY, "width": 1},
        hovertemplate="%{y:.4f}",
    ).to_plotly_json()


def _threshold_traces(
    algorithm: str, trials: NDArray[np.int64], thresholds: Floats
) -> list[dict[str, Any]]:
    from plotly import graph_objects as go

    kept = shown_trials(trials.size, TRAJECTORY_POINTS) - 1
    return [
        go.Scatter(
            name=f"θ<sub>{number}</sub>",
            x=trials[kept].tolist(),
            y=_digits(column[kept]),
            mode="lines",
            line={"color": look_of(algorithm).color, "width": 1.4},
            hovertemplate="%{y:.4f}",
        ).to_plotly_json()
        for number, column in enumerate(thresholds.T, start=1)
    ]


def _layout(
    curves: list[tuple[Floats, Floats]], words: str, level: float | None = None
) -> dict[str, Any]:
    """Axes of a panel; ``meta`` keeps the limits for a linear and for a logarithmic axis."""
    from plotly import graph_objects as go

    extra = [] if level is None else [(np.array([level]), np.zeros(1))]
    trials = max(mean.size for mean, _ in curves)
    limits = {
        "linear": _digits(np.array(axis_limits([*curves, *extra]))),
        "log": _digits(np.array(axis_limits([*curves, *extra], EARLY_TRIALS))),
    }
    return go.Layout(
        meta=limits,
        xaxis={"title": {"text": "trials"}, "type": "linear", "range": [0, trials]},
        yaxis={"title": {"text": words}, "range": limits["linear"]},
    ).to_plotly_json()


def _digits(values: Floats) -> list[float]:
    return np.round(values, 5).tolist()


def _dash(dash: tuple[float, ...]) -> str:
    return ",".join(f"{length:g}px" for length in dash) or "solid"


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


def _fixed_runs(results: Results) -> str:
    runs = results.settings.get("hindsight_runs", 1)
    return "first run" if runs == 1 else f"first {runs} runs"


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
    """A row of panels for each data set, or one grid where each has a single panel."""
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


def _options(pairs: list[tuple[str, str]]) -> str:
    return "".join(f'<option value="{escape(v)}">{escape(text)}</option>' for v, text in pairs)


def _claims_html(claims: list[Claim], panels: list[dict[str, Any]]) -> str:
    """The claims by sentence, in the order of the paper but those that were not run last."""
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
    """Just enough of Markdown for the words about the tests: paragraphs, one list and bold."""
    bold = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", escape(markdown, quote=False))
    blocks = [
        f"<ul><li>{block[2:].replace(chr(10) + '- ', '</li><li>')}</li></ul>"
        if block.startswith("- ")
        else f"<p>{block}</p>"
        for block in bold.split("\n\n")
    ]
    return "".join(blocks)
