"""The panels of the paper's two figures, of the regret and of the thresholds, from the results.

The colours are Okabe and Ito's colour-blind safe palette; dashes and markers distinguish the
algorithms in black and white. Open markers in figure 2 mark the larger fraction.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordspan.core.state import Floats
from ordspan.drawing import GREY
from ordspan.experiments.claims import PROPOSED
from ordspan.experiments.results import HINDSIGHT, Cell, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLES = {"mslr": "MSLR"}
STABLE_AFTER = 100  # the running averages of the first trials are too noisy to set axis limits
LEAST_LOSS = 0.5  # highest lower limit of a logarithmic loss axis: half a margin


class Look(NamedTuple):
    """How a curve is drawn."""

    color: str
    dash: tuple[float, ...]  # on, off, on, off in points; empty for a solid line
    marker: str
    width: float = 1.6

    @property
    def line(self) -> dict[str, Any]:
        """The arguments of a line without markers."""
        style = (0, self.dash) if self.dash else "-"
        return {"color": self.color, "linewidth": self.width, "linestyle": style}


LOOKS = {
    "PA": Look("#0072B2", (), "o"),
    "PA-I": Look("#D55E00", (6, 2), "s"),
    "PA-II": Look("#009E73", (6, 2, 1.5, 2), "^"),
    "PRank": Look("#000000", (1.5, 1.5), "D"),
    "MCP": Look("#CC79A7", (9, 2, 1.5, 2, 1.5, 2), "v"),
    # rivals: the palette's orange and sky blue, and brown, as its yellow is too pale for lines
    "PRIL": Look("#E69F00", (4, 4), "P"),
    "MC-PA": Look("#56B4E9", (12, 3), "X"),
    "MC-PA-I": Look("#56B4E9", (6, 3, 2, 3), "<"),
    "MC-PA-II": Look("#56B4E9", (2, 3), ">"),
    "OAP-BPM": Look("#A6761D", (4, 1, 1, 1, 1, 1), "p"),
}
EXTRA_DASHES = {"average": (3.0, 1.5), "sca": (1.0, 1.0)}
BOUND, FIXED = Look(GREY, (1, 2), ""), Look("#000000", (5, 2), "", 2.4)


def look_of(algorithm: str) -> Look:
    """The style of a curve; an extra curve such as "PA average" is a thinner "PA"."""
    base, _, extra = algorithm.partition(" ")
    look = LOOKS[base]
    return look._replace(dash=EXTRA_DASHES[extra], width=0.8) if extra else look


def dataset_title(dataset: str) -> str:
    """The data set as the paper writes it."""
    return TITLES.get(dataset, dataset.capitalize())


class Panel(NamedTuple):
    """One drawing, in a figure or on the page."""

    name: str  # unique, starts with that of its figure
    dataset: str
    title: str
    draw: Callable[[Axes], None]


def figure1_panels(results: Results) -> list[Panel]:
    """The comparison with PRank and MCP, for each data set and percentage."""
    return [
        Panel(
            f"figure1-{dataset}-{labels}",
            dataset,
            panel_title(dataset, f"{labels}% partial" if labels else "exact"),
            partial(draw_comparison, results=results, dataset=dataset, labels=labels),
        )
        for dataset in results.datasets
        for labels in results.labels
    ]


def figure2_panels(results: Results) -> list[Panel]:
    """The proposed algorithms' errors against the intervals used, for each data set."""
    fractions = [f"{labels}%" for labels in results.labels if labels]
    if not fractions or not set(PROPOSED).intersection(results.algorithms):
        return []
    return [
        Panel(
            f"figure2-{dataset}",
            dataset,
            panel_title(dataset, f"{' and '.join(fractions)} partial"),
            partial(draw_partial, results=results, dataset=dataset),
        )
        for dataset in results.datasets
    ]


def regret_panels(results: Results) -> list[Panel]:
    """Cumulative losses of the first run with the fewest intervals, for each data set."""
    return [
        panel._replace(
            name=f"regret-{panel.dataset}",
            draw=partial(draw_regret, results=results, dataset=panel.dataset),
        )
        for panel in figure1_panels(results)[:: len(results.labels)]
    ]


def threshold_panels(results: Results) -> list[Panel]:
    """Thresholds along the first run with the fewest intervals, for each curve that has them."""
    return [
        Panel(
            f"thresholds-{cell.dataset}-{cell.algorithm.replace(' ', '-')}",
            cell.dataset,
            f"{dataset_title(cell.dataset)}: {cell.algorithm}",
            partial(draw_thresholds, results=results, cell=cell),
        )
        for cell in results.cells
        if cell.labels == results.labels[0] and not np.isnan(results.rows[cell]["thresholds"]).all()
    ]


def panel_title(dataset: str, kind: str) -> str:
    """Title of a panel, as in the paper."""
    return f"{dataset_title(dataset)} ({kind} labels)"


def draw_comparison(panel: Axes, *, results: Results, dataset: str, labels: int) -> None:
    """A panel of figure 1; those of one data set have the same limits."""
    curves = {cell: results.curve(cell) for cell in results.cells if cell.dataset == dataset}
    levels = list(curves.values())
    truth = results.settings["truth_mae"].get(dataset)
    if truth is not None:
        panel.axhline(truth, color=GREY, linewidth=0.9, label="true model")
        levels.append((np.full(results.trials.size, truth), np.zeros(results.trials.size)))
    for cell, curve in curves.items():
        if cell.labels == labels:
            draw_curve(panel, results.trials, *curve, look_of(cell.algorithm), cell.algorithm)
    finish(panel, results.trials, levels, "average MAE")


def draw_partial(panel: Axes, *, results: Results, dataset: str) -> None:
    """A panel of figure 2."""
    curves = []
    for algorithm in filter(PROPOSED.__contains__, results.algorithms):
        for number, labels in enumerate(filter(None, results.labels)):
            curve = results.curve(Cell(dataset, labels, algorithm), interval=True)
            name = f"{algorithm}, {labels}%"
            draw_curve(panel, results.trials, *curve, look_of(algorithm), name, hollow=number > 0)
            curves.append(curve)
    finish(panel, results.trials, curves, "average interval MAE")


def draw_regret(panel: Axes, *, results: Results, dataset: str) -> None:
    """The bound, the algorithms, and on top of them the best fixed ranker."""
    names = [*results.algorithms, HINDSIGHT]
    looks = [*map(look_of, results.algorithms), FIXED]
    lines = [("bounds", f"{name} bound", name, BOUND) for name in names]
    lines += [("losses", name, name, look) for name, look in zip(names, looks, strict=True)]
    for column, label, name, look in lines:
        values = results.rows[Cell(dataset, results.labels[0], name)][column]
        shown = values > 0  # neither NaN, nor zero on a logarithmic axis
        if shown.any():
            panel.plot(results.trials[shown], values[shown], label=label, **look.line)
    panel.set(xscale="log", yscale="log", xlabel="trials", ylabel="cumulative loss")
    panel.minorticks_off()
    panel.set_xlim(1, max(2, results.trials[-1]))
    panel.set_ylim(bottom=max(LEAST_LOSS, panel.get_ylim()[0]))
    style(panel)


def draw_thresholds(panel: Axes, *, results: Results, cell: Cell) -> None:
    """The thresholds of one curve."""
    color = look_of(cell.algorithm).color
    panel.plot(results.trials, results.rows[cell]["thresholds"], color=color, linewidth=1.2)
    panel.set(xlabel="trials", ylabel="thresholds", xlim=(0, results.trials[-1]))
    style(panel)


def draw_curve(
    panel: Axes,
    trials: NDArray[np.int64],
    mean: Floats,
    sem: Floats,
    look: Look,
    name: str,
    *,
    hollow: bool = False,
) -> None:
    """A running error with its band and markers."""
    is_main = look.width > 1
    if is_main:  # bands of the thin extra curves would hide the main ones
        panel.fill_between(trials, mean - sem, mean + sem, color=look.color, alpha=0.2, lw=0)
    # seven markers, shifted by algorithm so that close curves do not hide them
    shift = [look.marker for look in LOOKS.values()].index(look.marker) / len(LOOKS)
    places = (np.arange(7) + (0.15 if is_main else 0.2) + shift) / 7 * trials[-1]
    panel.plot(
        trials,
        mean,
        label=name,
        marker=look.marker,
        markersize=4.5 if is_main else 3.5,
        markerfacecolor="white" if hollow or not is_main else look.color,
        markevery=np.unique(np.searchsorted(trials, places).clip(max=trials.size - 1)).tolist(),
        **look.line,
    )


def finish(
    panel: Axes, trials: NDArray[np.int64], curves: list[tuple[Floats, Floats]], words: str
) -> None:
    """Limits that contain every curve and band after the first noisy trials, with a margin."""
    tail = slice(int(np.searchsorted(trials, min(STABLE_AFTER, trials[-1] // 10))), None)
    low = min(float((mean - sem)[tail].min()) for mean, sem in curves)
    high = max(float((mean + sem)[tail].max()) for mean, sem in curves)
    room = 0.04 * (high - low) or 0.01
    panel.set(xlabel="trials", ylabel=words, xlim=(0, trials[-1]))
    panel.set_ylim(max(0.0, low - room), high + room)
    style(panel)


def style(panel: Axes) -> None:
    """What all panels have in common."""
    panel.grid(True, linewidth=0.4, alpha=0.5)
    panel.spines[["top", "right"]].set_visible(False)
    panel.tick_params(labelsize=8)
    for axis in (panel.xaxis, panel.yaxis):
        axis.label.set_fontsize(9)


def one_panel(panel: Panel) -> Figure:
    """A panel as a figure of its own, without a title."""
    from matplotlib.figure import Figure

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
    from matplotlib.figure import Figure

    rows = -(-len(panels) // columns)
    width = 4.2 if columns > 1 else 6.4
    figure = Figure(figsize=(width * columns, 3.0 * rows + 0.9), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    entries: dict[str, Any] = {}
    for panel, place in zip(panels, axes.flat, strict=True):
        panel.draw(place)
        place.set_title(panel.title, fontsize=10)
        place.label_outer(remove_inner_ticks=False)
        handles, names = place.get_legend_handles_labels()
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


def write_figures(results: Results, folder: Path) -> None:
    """The paper's figures as PNG and PDF, without dates, so that files are reproducible."""
    import matplotlib

    for name, panels, columns in (
        ("figure1", figure1_panels(results), len(results.labels)),
        ("figure2", figure2_panels(results), 1),
    ):
        if panels:
            figure = grid(panels, columns, results.settings["runs"])
            figure.savefig(folder / f"{name}.png", dpi=150)
            figure.set_layout_engine("none")  # slow, and done
            with matplotlib.rc_context({"pdf.fonttype": 42}):
                figure.savefig(folder / f"{name}.pdf", metadata={"CreationDate": None})
