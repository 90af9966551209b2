"""Plots of probabilities and ranges, from the summary of an evaluation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordspan.commands.evaluate_plots import rounded
from ordspan.drawing import BLUE, GREY

SHADE = "rgba(0, 114, 178, 0.18)"
MOST_TICKS = 20  # up to this many widths, each has a tick
SHOWN = 0.9
"""The coverage whose ranges are shown in detail, or the nearest that was calibrated."""


def shown_range(ranges: list[dict[str, Any]]) -> dict[str, Any]:
    """The ranges of 90 %, or of the nearest coverage that was calibrated.

    >>> shown_range([{"coverage": 0.5}, {"coverage": 0.95}])
    {'coverage': 0.95}
    """
    return min(ranges, key=lambda found: abs(found["coverage"] - SHOWN))


def _percents(found: list[dict[str, Any]], name: str) -> NDArray[np.float64]:
    return 100 * np.array([row[name] for row in found])


def reliability_plot(bins: list[dict[str, Any]], *, with_ranges: bool) -> dict[str, Any]:
    """Reliability diagram: observed frequency of "at most grade k" by predicted probability."""
    predicted, observed = _percents(bins, "predicted"), _percents(bins, "observed")
    counts = np.array([found["count"] for found in bins])
    lowest, highest = _percents(bins, "at_least"), _percents(bins, "at_most")
    points = {
        "type": "scatter",
        "mode": "lines+markers",
        "name": "observed",
        "x": rounded(predicted, 2),
        "y": rounded(observed, 2),
        "customdata": [
            f"{count:,} probabilities" + (f"; certainly {low:.1f} to {high:.1f} %" * with_ranges)
            for count, low, high in zip(counts.tolist(), lowest, highest, strict=True)
        ],
        "line": {"color": BLUE, "width": 2},
        "marker": {"size": rounded(7 + 11 * np.sqrt(counts / counts.max()), 1), "color": BLUE},
        "hovertemplate": (
            "predicted %{x:.1f} %, observed %{y:.1f} %<br>%{customdata}<extra></extra>"
        ),
    }
    if with_ranges:
        points["error_y"] = {
            "type": "data",
            "symmetric": False,
            "array": rounded(highest - observed, 2),
            "arrayminus": rounded(observed - lowest, 2),
            "color": GREY,
            "thickness": 1.2,
            "width": 4,
        }
    layout = {
        "height": 420,
        "showlegend": False,
        "xaxis": {"title": {"text": "predicted probability, %"}, "range": [-3, 103]},
        "yaxis": {"title": {"text": "observed frequency, %"}, "range": [-3, 103]},
    }
    return {"traces": [_diagonal(0, 100), points], "layout": layout}


def coverage_plot(ranges: list[dict[str, Any]], *, with_ranges: bool) -> dict[str, Any]:
    """Observed coverage of ranges by requested coverage."""
    asked = _percents(ranges, "coverage")
    traces = [_diagonal(float(asked.min()), float(asked.max()))]
    if with_ranges:
        traces += [
            _bound_line(asked, _percents(ranges, "contains"), "contains the label", "none"),
            _bound_line(asked, _percents(ranges, "meets"), "meets the label", "tonexty"),
        ]
    held = {
        "type": "scatter",
        "mode": "lines+markers",
        "name": "expected" if with_ranges else "contains the label",
        "x": rounded(asked, 2),
        "y": rounded(_percents(ranges, "expected"), 2),
        "line": {"color": BLUE, "width": 2},
        "marker": {"size": 9},
        "customdata": rounded(np.array([found["mean_width"] for found in ranges]), 2),
        "hovertemplate": (
            "requested %{x:g} %, observed %{y:.1f} %<br>%{customdata:.2f} grades wide on average"
            "<extra></extra>"
        ),
    }
    layout = {
        "height": 380,
        "showlegend": True,
        "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "traceorder": "normal"},
        "margin": {"t": 34},
        "xaxis": {"title": {"text": "requested coverage, %"}, "tickvals": rounded(asked, 2)},
        "yaxis": {"title": {"text": "observed coverage, %"}},
    }
    return {"traces": [*traces, held], "layout": layout}


def _diagonal(low: float, high: float) -> dict[str, Any]:
    """The line of perfect calibration."""
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "ideal",
        "x": [low, high],
        "y": [low, high],
        "line": {"color": GREY, "width": 1.5, "dash": "dash"},
        "hoverinfo": "skip",
    }


def _bound_line(
    asked: NDArray[np.float64], share: NDArray[np.float64], name: str, fill: str
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": rounded(asked, 2),
        "y": rounded(share, 2),
        "line": {"color": BLUE, "width": 1, "dash": "dot"},
        "fill": fill,
        "fillcolor": SHADE,
        "hovertemplate": f"requested %{{x:g}} %, {name}: %{{y:.1f}} %<extra></extra>",
    }


def width_plot(found: dict[str, Any]) -> dict[str, Any]:
    """Histogram of the widths of ranges at one coverage."""
    counts = np.array(found["widths"])
    grades = np.arange(1, counts.size + 1)
    trace = {
        "type": "bar",
        "x": grades.tolist(),
        "y": rounded(100 * counts / counts.sum(), 2),
        "marker": {"color": BLUE},
        "customdata": [f"{count:,}" for count in counts.tolist()],
        "hovertemplate": "%{x} grades wide: %{customdata} rows, %{y:.1f} %<extra></extra>",
    }
    axis = {"title": {"text": "grades in the range"}, "range": [0.4, counts.size + 0.6]}
    layout = {
        "height": 320,
        "showlegend": False,
        "bargap": 0.25,
        "xaxis": axis | ({"dtick": 1} if counts.size <= MOST_TICKS else {}),
        "yaxis": {"title": {"text": "% of rows"}, "rangemode": "tozero"},
    }
    return {"traces": [trace], "layout": layout}
