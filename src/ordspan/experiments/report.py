"""The paper's two figures, and the page of the results: one HTML file that needs no network.

The colours are Okabe and Ito's colour-blind safe palette; dashes and markers distinguish the
algorithms in black and white. Open markers in figure 2 mark the larger fraction.
"""

from collections.abc import Callable
from functools import partial
from html import escape
from itertools import product
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ordspan.core.state import Floats, Ranks
from ordspan.experiments import claims as paper
from ordspan.experiments.claims import PAPER, Claim, count_verdicts
from ordspan.experiments.results import HINDSIGHT, Cell, Results
from ordspan.pages import BLUE, COLORS, GREY, ORANGE, figure_svg, fill_template, table_row, terms
from ordspan.wording import in_words

Band = tuple[Floats, Floats]  # a running error, and its standard error
STABLE_AFTER = 100  # the running averages of the first trials are too noisy to set axis limits
BAND_POINTS = 80  # more would make the page large, and are nowhere to be seen
LEAST_LOSS = 0.5  # highest lower limit of a logarithmic loss axis: half a margin

LOOKS: dict[str, tuple[str, tuple[float, ...], str]] = {  # colour; dashes on, off, ...; marker
    "PA": (BLUE, (), "o"),
    "PA-I": (ORANGE, (6, 2), "s"),
    "PA-II": ("#009E73", (6, 2, 1.5, 2), "^"),
    "PRank": ("#000000", (1.5, 1.5), "D"),
    "MCP": ("#CC79A7", (9, 2, 1.5, 2, 1.5, 2), "v"),
    # rivals: the palette's orange and sky blue; its yellow is too pale for lines
    "PRIL": ("#E69F00", (4, 4), "P"),
    "MC-PA": ("#56B4E9", (12, 3), "X"),
    "MC-PA-I": ("#56B4E9", (6, 3, 2, 3), "<"),
    "MC-PA-II": ("#56B4E9", (2, 3), ">"),
}
MARKERS = [marker for _, _, marker in LOOKS.values()]
SIGNS = dict(zip(paper.VERDICTS, "✓✗–", strict=True))
EXTRA_DASHES = {"average": (3.0, 1.5), "sca": (1.0, 1.0)}
BOUND: dict[str, Any] = {"color": GREY, "linewidth": 1.6, "linestyle": (0, (1, 2))}
FIXED: dict[str, Any] = {"color": "#000000", "linewidth": 2.4, "linestyle": (0, (5, 2))}


def look_of(algorithm: str) -> dict[str, Any]:
    """The arguments of a line; an extra curve such as "PA average" is a thinner "PA"."""
    base, _, extra = algorithm.partition(" ")
    color, dashes, _ = LOOKS[base]
    dashes = EXTRA_DASHES[extra] if extra else dashes
    style = (0, dashes) if dashes else "-"
    return {"color": color, "linewidth": 0.8 if extra else 1.6, "linestyle": style}


def dataset_title(dataset: str) -> str:
    """The data set as the paper writes it."""
    return "MSLR" if dataset == "mslr" else dataset.capitalize()


class Panel(NamedTuple):
    """One drawing, in a figure or on the page."""

    name: str  # unique
    dataset: str
    title: str
    draw_data: Callable[[Axes], None]

    def draw(self, axes: Axes) -> None:
        """Draw it in the style of all panels."""
        self.draw_data(axes)
        axes.set_xlabel("trials", fontsize=9)
        axes.yaxis.label.set_fontsize(9)
        axes.grid(True, linewidth=0.4, alpha=0.5)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8)


Panels = dict[str, list[Panel]]
"""The panels of each figure, by its name."""


def make_panels(results: Results) -> Panels:
    """The panels of each figure.

    Figure 1 has one for each data set and percentage, figure 2 one for each data set, if there are
    ranges. Regret and thresholds are of the first run with the smallest percentage.
    """
    panels: Panels = {name: [] for name in ("figure1", "figure2", "regret", "thresholds")}

    def add(figure: str, dataset: str, key: Any, kind: str, draw: Any, *what: Any) -> None:
        name = "-".join([figure, dataset, *str(key).split()])
        title = f"{dataset_title(dataset)}{kind}"
        panels[figure].append(Panel(name, dataset, title, partial(draw, results, *what)))

    for dataset, labels in product(results.datasets, results.labels):
        kind = f" ({labels}% partial labels)" if labels else " (exact labels)"
        add("figure1", dataset, labels, kind, draw_comparison, dataset, labels)
        if labels == results.labels[0]:
            add("regret", dataset, "", kind, draw_regret, dataset)
    ranges = " and ".join(f"{labels}%" for labels in results.labels if labels)
    if ranges and set(PAPER["algorithms"]).intersection(results.algorithms):
        for dataset in results.datasets:
            add("figure2", dataset, "", f" ({ranges} partial labels)", draw_partial, dataset)
    for cell in results.cells:
        has_thresholds = not np.isnan(results.rows[cell]["thresholds"]).all()
        if cell.labels == results.labels[0] and has_thresholds:
            name = cell.algorithm
            add("thresholds", cell.dataset, name, f": {name}", draw_thresholds, cell)
    return panels


def draw_comparison(results: Results, dataset: str, labels: int, panel: Axes) -> None:
    """A panel of figure 1; those of one data set have the same limits."""
    curves = {cell: results.curve(cell) for cell in results.cells if cell.dataset == dataset}
    levels = list(curves.values())
    truth = results.settings["truth_mae"].get(dataset)
    if truth is not None:
        panel.axhline(truth, color=GREY, linewidth=0.9, label="true model")
        levels.append((np.full(results.trials.size, truth), np.zeros(results.trials.size)))
    for cell, curve in curves.items():
        if cell.labels == labels:
            draw_curve(panel, results.trials, curve, cell.algorithm, cell.algorithm)
    set_limits(panel, results.trials, levels, "average MAE")


def draw_partial(results: Results, dataset: str, panel: Axes) -> None:
    """Draw a panel of figure 2: the errors on ranges, by share of ranges."""
    curves = []
    for algorithm in filter(PAPER["algorithms"].__contains__, results.algorithms):
        for number, labels in enumerate(filter(None, results.labels)):
            curve = results.curve(Cell(dataset, labels, algorithm), interval=True)
            label = f"{algorithm}, {labels}%"
            draw_curve(panel, results.trials, curve, algorithm, label, hollow=number > 0)
            curves.append(curve)
    set_limits(panel, results.trials, curves, "average interval MAE")


def draw_regret(results: Results, dataset: str, panel: Axes) -> None:
    """The bound, the algorithms, and on top of them the best fixed ranker."""
    lines = [("bounds", name, f"{name} bound", BOUND) for name in results.algorithms]
    lines += [("losses", name, name, look_of(name)) for name in results.algorithms]
    for column, name, label, look in [*lines, ("losses", HINDSIGHT, HINDSIGHT, FIXED)]:
        values = results.rows[Cell(dataset, results.labels[0], name)][column]
        shown = values > 0  # neither NaN, nor zero on a logarithmic axis
        if shown.any():
            panel.plot(results.trials[shown], values[shown], label=label, **look)
    panel.set(xscale="log", yscale="log", ylabel="cumulative loss")
    panel.minorticks_off()
    panel.set_xlim(1, max(2, results.trials[-1]))
    panel.set_ylim(bottom=max(LEAST_LOSS, panel.get_ylim()[0]))


def draw_thresholds(results: Results, cell: Cell, panel: Axes) -> None:
    """Draw the thresholds behind one curve, along its trials."""
    color = look_of(cell.algorithm)["color"]
    panel.plot(results.trials, results.rows[cell]["thresholds"], color=color, linewidth=1.2)
    panel.set(ylabel="thresholds", xlim=(0, results.trials[-1]))


def draw_curve(
    panel: Axes, trials: Ranks, curve: Band, algorithm: str, label: str, *, hollow: bool = False
) -> None:
    """A running error with its band and markers."""
    (mean, sem), look = curve, look_of(algorithm)
    is_extra, marker = " " in algorithm, LOOKS[algorithm.partition(" ")[0]][2]
    if not is_extra:  # bands of the thin extra curves would hide the main ones
        some = np.unique(trials * BAND_POINTS // trials[-1], return_index=True)[1]
        ends = (mean - sem)[some], (mean + sem)[some]
        panel.fill_between(trials[some], *ends, color=look["color"], alpha=0.2, lw=0)
    # seven markers, shifted by algorithm so that close curves do not hide them
    shift = MARKERS.index(marker) / 10 + (0.2 if is_extra else 0.15)
    places = np.searchsorted(trials, (np.arange(7) + shift) / 7 * trials[-1])
    panel.plot(
        trials,
        mean,
        label=label,
        marker=marker,
        markersize=3.5 if is_extra else 4.5,
        markerfacecolor="white" if hollow or is_extra else look["color"],
        markevery=np.unique(places.clip(max=trials.size - 1)).tolist(),
        **look,
    )


def set_limits(panel: Axes, trials: Ranks, curves: list[Band], ylabel: str) -> None:
    """Limits that contain every curve and band after the first noisy trials, with a margin."""
    tail = slice(int(np.searchsorted(trials, min(STABLE_AFTER, trials[-1] // 10))), None)
    low = min(float((mean - sem)[tail].min()) for mean, sem in curves)
    high = max(float((mean + sem)[tail].max()) for mean, sem in curves)
    room = 0.04 * (high - low) or 0.01
    panel.set(ylabel=ylabel, xlim=(0, trials[-1]), ylim=(max(0.0, low - room), high + room))


def one_panel(panel: Panel) -> Figure:
    """A panel as a figure of its own, without a title."""
    figure = Figure(figsize=(3.5, 2.5))
    # finding the margins would take as long as drawing
    figure.subplots_adjust(left=0.18, right=0.95, bottom=0.17, top=0.97)
    axes = figure.subplots()
    panel.draw(axes)
    if axes.get_xscale() == "linear":
        axes.locator_params(nbins=5)  # a tick takes a millisecond to draw
    return figure


def grid(panels: list[Panel], columns: int, runs: int) -> Figure:
    """Panels with their titles in one figure with one legend."""
    rows, width = -(-len(panels) // columns), 4.2 if columns > 1 else 6.4
    figure = Figure(figsize=(width * columns, 3.0 * rows + 0.9), layout="constrained")
    entries: dict[str, Any] = {}
    for panel, axes in zip(panels, figure.subplots(rows, columns, squeeze=False).flat, strict=True):
        panel.draw(axes)
        axes.set_title(panel.title, fontsize=10)
        axes.label_outer(remove_inner_ticks=False)
        handles, names = axes.get_legend_handles_labels()
        entries |= dict(zip(names, handles, strict=True))
    legend_rows = -(-len(entries) // (6 if columns > 1 else 3))
    figure.legend(
        handles=list(entries.values()),
        labels=list(entries),
        loc="outside lower center",
        ncols=-(-len(entries) // legend_rows),
        frameon=False,
        fontsize=9,
        handlelength=4,
        title=f"mean of {runs} runs, band: ± one standard error",
        title_fontsize=9,
    )
    return figure


def write_figures(results: Results, panels: Panels, folder: Path) -> None:
    """The paper's figures as PNG and PDF, without dates, so that files are reproducible."""
    for name, columns in (("figure1", len(results.labels)), ("figure2", 1)):
        if panels[name]:
            figure = grid(panels[name], columns, results.settings["runs"])
            figure.savefig(folder / f"{name}.png", dpi=150)
            figure.set_layout_engine("none")  # slow, and done
            with matplotlib.rc_context({"pdf.fonttype": 42}):
                figure.savefig(folder / f"{name}.pdf", metadata={"CreationDate": None})


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
    told = {n: in_words(v).replace("=", " ") for n, v in settings.items() if n != "sums"}
    told["grades"] = told.pop("n_classes", "")
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
        "settings": terms({n.replace("_", " "): text for n, text in told.items() if text}),
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
    name = COLORS.get(look["color"])
    color = f"var(--{name})" if name else look["color"]
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
        '<tbody><tr class="sentence"><th colspan="7" scope="colgroup"><div>'
        f"“{escape(group[0].sentence)}”<small>{group[0].test} – {counts}</small></div></th></tr>"
        f"{''.join(_claim(claim, panels) for claim in run_first)}</tbody>\n"
    )


def _claim(claim: Claim, panels: set[str]) -> str:
    """A row of the table with a link to the panel that shows its curves."""
    dataset, labels, name, rival, *effect, verdict = map(escape, paper.claim_row(claim))
    figure, place = 2, f"figure2-{dataset}"
    if claim.test in (paper.OUTPERFORMS, paper.COMPARABLE):
        figure, place = 1, f"figure1-{dataset}-{claim.labels}"
    link = f'<a href="#{place}">figure {figure}</a>' if place in panels else "–"
    cells = [dataset_title(dataset), labels, f"{name} against {rival}", *effect, link]
    cells.append(f"{SIGNS[verdict]} {verdict}")
    data = f'data-dataset="{dataset}" data-verdict="{verdict}"'
    return f"<tr {data}>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>\n"


def _summary_row(row: dict[str, Any]) -> str:
    forms = {"C": "g", "mae": ".4f", "sem": ".4f", "interval_mae": ".4f", "hindsight_ratio": ".3f"}
    numbers = {
        name: "–" if row[name] is None or isnan(row[name]) else format(row[name], form)
        for name, form in forms.items()
    }
    names = {"dataset": dataset_title(row["dataset"]), "labels": paper.labels_text(row["labels"])}
    shown = row | names | numbers
    shown["C"] = shown.pop("C")  # last
    return table_row([*map(str, shown.values())], f'data-dataset="{row["dataset"]}"')
