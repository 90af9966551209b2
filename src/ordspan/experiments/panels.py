"""The panels of the interactive report: plotly traces and layouts from a results table."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordspan.experiments.figures import (
    GREY,
    axis_limits,
    dataset_cells,
    look_of,
    panel_title,
    partial_cells,
    partial_title,
    shown_trials,
)
from ordspan.experiments.summary import cells
from ordspan.experiments.table import HINDSIGHT, Cell, Floats, Results

EARLY_TRIALS = 5  # a logarithmic axis shows early trials, so its limits include them
TRAJECTORY_POINTS = 150
LEAST_LOSS = 0.5  # highest lower limit of a logarithmic loss axis: half a margin
REGRET = "regret"
BOUND = {"color": GREY, "width": 2, "dash": "dot"}
FIXED = {"color": "#000000", "width": 3, "dash": "9px,4px"}


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
    """Cumulative losses of the first run with the fewest intervals, one panel per data set."""
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
        # the bound is for one algorithm, and is hidden with it
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

    shown = losses > 0.0  # zero cannot be shown on a logarithmic axis
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
    """Two logarithmic axes that contain every trace."""
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
    """A line with the standard error of every point, from which the page draws the band."""
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
    dash = ",".join(f"{length:g}px" for length in look.dash) or "solid"
    return {"color": look.color, "width": look.width + 0.2, "dash": dash}


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
