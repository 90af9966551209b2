"""The paper's two figures, drawn from a results table alone.

The colours are Okabe and Ito's colour-blind safe palette; dashes and markers distinguish the
algorithms in black and white. Open markers in figure 2 mark the larger fraction.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordspan.experiments.claims import PROPOSED
from ordspan.experiments.summary import cells
from ordspan.experiments.table import Cell, Floats, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLES = {
    "california": "California",
    "abalone": "Abalone",
    "parkinson": "Parkinson",
    "mslr": "MSLR",
    "synthetic": "Synthetic",
}
STABLE_AFTER = 100  # the running averages of the first trials are too noisy to set axis limits
INCHES = (4.2, 3.0)  # of one panel
GREY = "#7f7f7f"


class Look(NamedTuple):
    """How a curve is drawn."""

    color: str
    dash: tuple[float, ...]  # on, off, on, off in points; empty for a solid line
    marker: str
    width: float


LOOKS = {
    "PA": Look("#0072B2", (), "o", 1.6),
    "PA-I": Look("#D55E00", (6, 2), "s", 1.6),
    "PA-II": Look("#009E73", (6, 2, 1.5, 2), "^", 1.6),
    "PRank": Look("#000000", (1.5, 1.5), "D", 1.6),
    "MCP": Look("#CC79A7", (9, 2, 1.5, 2, 1.5, 2), "v", 1.6),
    # rivals: the palette's orange and sky blue, and brown, as its yellow is too pale for lines
    "PRIL": Look("#E69F00", (4, 4), "P", 1.6),
    "MC-PA": Look("#56B4E9", (12, 3), "X", 1.6),
    "MC-PA-I": Look("#56B4E9", (6, 3, 2, 3), "<", 1.6),
    "MC-PA-II": Look("#56B4E9", (2, 3), ">", 1.6),
    "OAP-BPM": Look("#A6761D", (4, 1, 1, 1, 1, 1), "p", 1.6),
}
MARKERS = "os^Dv*PX<>p"
EXTRA_DASHES = {"average": (3.0, 1.5), "sca": (1.0, 1.0)}


def look_of(algorithm: str) -> Look:
    """The style of a curve; an extra curve such as "PA average" is a thinner "PA"."""
    if algorithm in LOOKS:
        return LOOKS[algorithm]
    base, _, extra = algorithm.partition(" ")
    relative = LOOKS.get(base, Look(GREY, (), "*", 1.6))
    return relative._replace(dash=EXTRA_DASHES.get(extra, (4, 1, 1, 1)), width=0.8)


def dataset_title(dataset: str) -> str:
    """The data set as the paper writes it."""
    return TITLES.get(dataset, dataset.capitalize())


def panel_title(dataset: str, labels: int) -> str:
    """Title of a panel of figure 1, as in the paper.

    >>> panel_title("california", 50)
    'California (50% partial labels)'
    """
    kind = f"{labels}% partial" if labels else "exact"
    return f"{dataset_title(dataset)} ({kind} labels)"


def partial_title(dataset: str, fractions: list[int]) -> str:
    """Title of a panel of figure 2, as in the paper."""
    return f"{dataset_title(dataset)} ({' and '.join(f'{f}%' for f in fractions)} partial labels)"


def shown_trials(trials: int, points: int = 300) -> NDArray[np.int64]:
    """At most ``points`` trials, half of them evenly and half logarithmically spaced.

    >>> shown_trials(4)
    array([1, 2, 3, 4])
    """
    if trials <= points:
        return np.arange(1, trials + 1)
    half = points // 2
    spread = np.concatenate([np.linspace(1, trials, half), np.geomspace(1, trials, half)])
    return np.unique(spread.round().astype(np.int64))


def axis_limits(
    curves: list[tuple[Floats, Floats]], skip: int = STABLE_AFTER
) -> tuple[float, float]:
    """Limits that contain every curve and band after ``skip`` trials, with a small margin."""
    # for very short runs, skip the first tenth
    tails = [slice(min(skip, mean.size // 10), None) for mean, _ in curves]
    low = min(float((m - s)[tail].min()) for (m, s), tail in zip(curves, tails, strict=True))
    high = max(float((m + s)[tail].max()) for (m, s), tail in zip(curves, tails, strict=True))
    room = 0.04 * (high - low) or 0.01
    return max(0.0, low - room), high + room


def dataset_cells(results: Results, dataset: str) -> list[Cell]:
    """The cells of one data set in figure 1."""
    return [cell for cell in cells(results) if cell.dataset == dataset]


def partial_cells(results: Results, dataset: str) -> list[Cell]:
    """The cells of one data set in figure 2: algorithm by algorithm, interval labels only."""
    grid = (Cell(dataset, f, a) for a in results.algorithms for f in results.labels)
    return [c for c in grid if c in results and c.labels and c.algorithm in PROPOSED]


def figure1(results: Results, folder: Path) -> list[Path]:
    """Draw the comparison with PRank and MCP: one row per data set, one column per fraction.

    Parameters
    ----------
    results : Results
    folder : Path
        Receives figure1.png, figure1.svg and figure1.pdf.

    Returns
    -------
    list of Path
        The files written; empty if the table has no curves.
    """
    return _save(draw_figure1(results), Path(folder), "figure1") if results.datasets else []


def figure2(results: Results, folder: Path) -> list[Path]:
    """Draw the proposed algorithms' errors against the intervals used, one panel per data set.

    Parameters
    ----------
    results : Results
    folder : Path
        Receives figure2.png, figure2.svg and figure2.pdf.

    Returns
    -------
    list of Path
        The files written; empty if the table has no interval labels.
    """
    some = any(partial_cells(results, dataset) for dataset in results.datasets)
    return _save(draw_figure2(results), Path(folder), "figure2") if some else []


def draw_figure1(results: Results) -> Figure:
    """Figure 1 as a matplotlib figure."""
    figure, axes = _canvas(len(results.datasets), len(results.labels))
    for row, dataset in zip(axes, results.datasets, strict=True):
        curves = {cell: results.curve(cell) for cell in dataset_cells(results, dataset)}
        truth = results.settings.get("truth_mae", {}).get(dataset)
        level = [] if truth is None else [(np.array([truth]), np.zeros(1))]
        limits = axis_limits([*curves.values(), *level])
        for panel, labels in zip(row, results.labels, strict=True):
            if truth is not None:
                panel.axhline(truth, color=GREY, linewidth=0.9, label="true model")
            for cell, curve in curves.items():
                if cell.labels == labels:
                    _draw_curve(panel, curve, look_of(cell.algorithm), label=cell.algorithm)
            _finish(panel, panel_title(dataset, labels), limits, curves)
    _finish_figure(figure, axes, "average MAE", results)
    return figure


def draw_figure2(results: Results) -> Figure:
    """Figure 2 as a matplotlib figure."""
    datasets = [name for name in results.datasets if partial_cells(results, name)]
    figure, axes = _canvas(len(datasets), 1, (6.4, 3.0))
    for panel, dataset in zip(axes[:, 0], datasets, strict=True):
        shown = partial_cells(results, dataset)
        curves = {cell: results.curve(cell, interval=True) for cell in shown}
        fractions = sorted({cell.labels for cell in curves})
        for cell, curve in curves.items():
            name, look = f"{cell.algorithm}, {cell.labels}%", look_of(cell.algorithm)
            _draw_curve(panel, curve, look, label=name, hollow=cell.labels != fractions[0])
        limits = axis_limits(list(curves.values()))
        _finish(panel, partial_title(dataset, fractions), limits, curves)
    _finish_figure(figure, axes, "average MAE against the intervals", results)
    return figure


def _canvas(
    rows: int, columns: int, inches: tuple[float, float] = INCHES
) -> tuple[Figure, NDArray[Any]]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    size = (inches[0] * columns, inches[1] * rows + 0.9)
    figure = Figure(figsize=size)
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False)


def _draw_curve(
    panel: Axes, curve: tuple[Floats, Floats], look: Look, *, label: str, hollow: bool = False
) -> None:
    mean, sem = curve
    trials = shown_trials(mean.size)
    mean, sem = mean[trials - 1], sem[trials - 1]
    if look.width > 1:  # bands of the thin extra curves would hide the main ones
        panel.fill_between(trials, mean - sem, mean + sem, color=look.color, alpha=0.2, lw=0)
    panel.plot(
        trials,
        mean,
        color=look.color,
        linewidth=look.width,
        linestyle=(0, look.dash) if look.dash else "-",
        marker=look.marker,
        markersize=4.5 if look.width > 1 else 3.5,
        markerfacecolor="white" if hollow or look.width < 1 else look.color,
        markevery=_marker_positions(trials, look),
        label=label,
    )


def _marker_positions(trials: NDArray[np.int64], look: Look) -> list[int]:
    """Positions of seven markers, offset by marker so that close curves do not hide them."""
    eighths, halves = MARKERS.index(look.marker) % 8, MARKERS.index(look.marker) // 8
    shift = (eighths + halves / 2) / 8
    places = (np.arange(7) + (0.15 if look.width > 1 else 0.2) + shift) / 7 * trials[-1]
    return np.unique(np.searchsorted(trials, places).clip(max=trials.size - 1)).tolist()


def _finish(
    panel: Axes,
    title: str,
    limits: tuple[float, float],
    curves: dict[Cell, tuple[Floats, Floats]],
) -> None:
    panel.set_title(title, fontsize=10)
    panel.set_ylim(*limits)
    panel.set_xlim(0, max(mean.size for mean, _ in curves.values()))
    panel.grid(True, linewidth=0.4, alpha=0.5)
    panel.spines[["top", "right"]].set_visible(False)
    panel.tick_params(labelsize=8)


def _finish_figure(figure: Figure, axes: NDArray[Any], words: str, results: Results) -> None:
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    for panel in axes[:, 0]:
        panel.set_ylabel(words, fontsize=9)
    for panel in axes[-1]:
        panel.set_xlabel("trials", fontsize=9)
    entries: dict[str, Any] = {}
    for panel in axes.flat:
        handles, names = panel.get_legend_handles_labels()
        entries.update(zip(names, handles, strict=True))
    figure.legend(
        handles=list(entries.values()),
        labels=list(entries),
        loc="outside lower center",
        ncols=_columns(len(entries), 6 if axes.shape[1] > 1 else 3),
        frameon=False,
        fontsize=9,
        handlelength=4,
        title=f"mean of {results.settings.get('runs')} runs, band: ± one standard error",
        title_fontsize=9,
    )
    ConstrainedLayoutEngine(h_pad=0.1, w_pad=0.08).execute(
        figure
    )  # slow, so run once for all formats


def _columns(entries: int, most: int) -> int:
    """Number of legend columns that fills its rows evenly."""
    rows = -(-entries // most)
    return -(-entries // rows)


def _save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write the figure in three formats, without dates, so that files are reproducible."""
    import matplotlib

    undated = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    paths = [folder / f"{name}.{kind}" for kind in undated]
    with matplotlib.rc_context({"svg.hashsalt": "ordspan", "pdf.fonttype": 42}):
        for path, metadata in zip(paths, undated.values(), strict=True):
            figure.savefig(path, dpi=150, metadata=metadata)
    return paths
