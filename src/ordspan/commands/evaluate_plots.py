"""Plots of an evaluation, as plain values for plotly.

Colours are those of Okabe and Ito, which colour-blind readers can distinguish.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordspan.commands.queries import N_NDCG_BINS
from ordspan.commands.tally import RANGE, Tally
from ordspan.drawing import BLUE, GREY, ORANGE, RANGES, label_heights

INK = "#1c2127"
STRIPES = {"size": 7, "solidity": 0.18}
PALE = "#b9c2cb"  # for correct predictions
SCALE = [[0.0, "#f7fafc"], [1.0, "#6fb3dd"]]  # light enough for dark text
FEW_POINTS = 20  # fewer rows are drawn one by one
MOST_CELLS = 12  # largest confusion matrix with text in its cells
N_TENTHS = 10


def score_plot(tally: Tally, names: list[str], thresholds: NDArray[np.float64]) -> dict[str, Any]:
    """Latent score by true grade, with the thresholds drawn in and named."""
    traces = [
        _violin(name, tally.sample.of(rank)["score"], BLUE)
        for rank, name in enumerate(names, start=1)
    ]
    if tally.rows > tally.exact:
        names_shown = [*names, RANGES]
        traces.append(_violin(RANGES, tally.sample.of(RANGE)["score"], GREY))
    else:
        names_shown = names
    low, high = _score_limits(tally, thresholds)
    thin = len(names) > MOST_CELLS
    labels = [f"{a} | {b}" for a, b in pairwise(names)]
    layout = {
        "height": 460,
        "showlegend": False,
        "violingap": 0.15,
        "margin": {"r": 16 + 7 * max(map(len, labels))},
        "xaxis": {
            "title": {"text": "true grade"},
            "type": "category",
            "categoryorder": "array",
            "categoryarray": names_shown,
            "range": [-0.5, len(names_shown) - 0.5],
        },
        "yaxis": {"title": {"text": "latent score"}, "range": [low, high]},
        "shapes": [_threshold_line(value, thin) for value in thresholds.tolist()],
        "annotations": [
            _threshold_name(labels[number], height)
            for number, height in label_heights(thresholds, low, high).items()
        ],
    }
    return {"traces": [t for t in traces if t["y"]], "layout": layout}


def _violin(name: str, scores: NDArray[np.float64], color: str) -> dict[str, Any]:
    return {
        "type": "violin",
        "name": name,
        "x0": name,
        "y": digits(scores),
        "points": "all" if scores.size < FEW_POINTS else False,
        "spanmode": "hard",
        "scalemode": "width",
        "box": {"visible": True, "width": 0.12},
        "line": {"color": color, "width": 1.2},
        "hoverinfo": "y",
    }


def _score_limits(tally: Tally, thresholds: NDArray[np.float64]) -> tuple[float, float]:
    """Axis limits: all thresholds, and every grade without its most extreme 1 %."""
    ends = [thresholds]
    for grade in np.unique(tally.sample.rows["grade"]).tolist():
        ends.append(np.quantile(tally.sample.of(grade)["score"], [0.005, 0.995]))
    values = np.concatenate(ends)
    room = 0.05 * (np.ptp(values) or 1.0)
    return float(values.min() - room), float(values.max() + room)


def _threshold_line(value: float, thin: bool) -> dict[str, Any]:
    return {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": value,
        "y1": value,
        "line": {"color": ORANGE, "width": 0.8 if thin else 1.5, "dash": "dash"},
    }


def _threshold_name(label: str, height: float) -> dict[str, Any]:
    return {
        "text": label,
        "xref": "paper",
        "x": 1,
        "xanchor": "left",
        "xshift": 4,
        "y": height,
        "yanchor": "middle",
        "showarrow": False,
        "font": {"color": "#a34700", "size": 12},
    }


def confusion_plot(confusion: NDArray[np.int64], names: list[str]) -> dict[str, Any]:
    """Counts by true and predicted grade, coloured by their share of the true grade."""
    totals = confusion.sum(axis=1, keepdims=True)
    shares = 100 * confusion / np.maximum(totals, 1)
    counts = [[f"{count:,}" for count in row] for row in confusion.tolist()]
    words = [
        [cell_text(*cell) for cell in zip(*rows, strict=True)]
        for rows in zip(confusion.tolist(), shares.tolist(), strict=True)
    ]
    roomy = len(names) <= MOST_CELLS
    trace = {
        "type": "heatmap",
        "x": names,
        "y": names,
        "z": rounded(shares, 2),
        "text": words,
        "customdata": counts,
        "texttemplate": "%{text}" if roomy else "",
        "textfont": {"color": INK},
        "zmin": 0,
        "zmax": 100,
        "colorscale": SCALE,
        "showscale": not roomy,
        "colorbar": {"ticksuffix": " %", "thickness": 12},
        "xgap": 2,
        "ygap": 2,
        "hovertemplate": (
            "true %{y}, predicted %{x}<br>"
            "%{customdata} rows, %{z:.1f} % of this grade<extra></extra>"
        ),
    }
    axis = {"type": "category", "showgrid": False, "showline": False}
    layout = {
        "height": min(820, 110 + 52 * len(names)),
        "xaxis": {**axis, "title": {"text": "predicted grade"}, "side": "bottom"},
        "yaxis": {**axis, "title": {"text": "true grade"}, "autorange": "reversed"},
    }
    return {"traces": [trace], "layout": layout}


def cell_text(count: int, share: float) -> str:
    """Text of a cell in the confusion matrix: rows, and percent of the true grade.

    >>> cell_text(1234, 28.6), cell_text(3, 0.2), cell_text(0, 0.0)
    ('1,234<br>29 %', '3<br>&lt;1 %', '0')
    """
    if not count:
        return "0"
    return f"{count:,}<br>{f'{share:.0f}' if share >= 0.5 else '&lt;1'} %"


def error_plot(by_grade: list[dict[str, Any]], names: list[str]) -> dict[str, Any]:
    """Shares too low, right and too high of every true grade, as stacked bars."""
    looks = {
        "too_low": ("too low", ORANGE, "\\"),
        "right": ("right", PALE, ""),
        "too_high": ("too high", BLUE, "/"),
    }
    rows = [row["rows"] for row in by_grade]
    traces = [
        {
            "type": "bar",
            "orientation": "h",
            "name": name,
            "y": names,
            "x": [None if row[key] is None else round(100 * row[key], 2) for row in by_grade],
            "customdata": rows,
            "marker": {
                "color": color,
                # stripes distinguish the colours in black and white
                "pattern": {"shape": stripes, "fillmode": "overlay", "fgcolor": "#fff", **STRIPES},
            },
            "hovertemplate": (
                f"grade %{{y}}: %{{x:.1f}} % of %{{customdata:,}} rows {name}<extra></extra>"
            ),
        }
        for key, (name, color, stripes) in looks.items()
    ]
    layout = {
        "height": min(900, 120 + 34 * len(names)),
        "barmode": "stack",
        "bargap": 0.25,
        "showlegend": True,
        "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "traceorder": "normal"},
        "margin": {"t": 34},
        "xaxis": {"title": {"text": "% of the rows of a grade"}, "range": [0, 100]},
        "yaxis": {"title": {"text": "true grade"}, "type": "category", "autorange": "reversed"},
    }
    return {"traces": traces, "layout": layout}


def margin_plot(tally: Tally) -> dict[str, Any] | None:
    """Share of right grades in each tenth of the rows by margin; None for too few rows."""
    rows = np.sort(tally.sample.rows, order=["margin", "key"])
    if rows.size < FEW_POINTS * N_TENTHS:
        return None
    # weights undo the sampling of each grade
    totals = np.concatenate([[tally.rows - tally.exact], tally.confusion.sum(axis=1)])
    drawn = np.bincount(rows["grade"], minlength=totals.size)
    weights = (totals / np.maximum(drawn, 1))[rows["grade"]]
    before = np.cumsum(weights) - weights / 2
    tenth = np.minimum(N_TENTHS - 1, (N_TENTHS * before / weights.sum()).astype(int))
    weight = np.bincount(tenth, weights, N_TENTHS)
    filled_in = weight > 0
    margin = np.bincount(tenth, weights * rows["margin"], N_TENTHS)[filled_in] / weight[filled_in]
    right = np.bincount(tenth, weights * (rows["error"] == 0), N_TENTHS)[filled_in]
    trace = {
        "type": "scatter",
        "mode": "lines+markers",
        "x": digits(margin),
        "y": rounded(100 * right / weight[filled_in], 2),
        "line": {"color": BLUE, "width": 2},
        "marker": {"size": 9},
        "hovertemplate": "margin about %{x:.3g}: %{y:.1f} % right<extra></extra>",
    }
    layout = {
        "height": 340,
        "showlegend": False,
        "xaxis": {"title": {"text": "margin to the nearest threshold"}, "rangemode": "tozero"},
        "yaxis": {"title": {"text": "% of rows right"}, "range": [0, 103]},
    }
    return {"traces": [trace], "layout": layout}


def query_plot(histogram: NDArray[np.int64]) -> dict[str, Any]:
    """How many queries have which NDCG@10."""
    edges = np.arange(N_NDCG_BINS) / N_NDCG_BINS
    trace = {
        "type": "bar",
        "x": rounded(edges + 0.5 / N_NDCG_BINS, 3),
        "y": histogram.tolist(),
        "width": 1 / N_NDCG_BINS,
        "marker": {"color": BLUE, "line": {"color": "#fff", "width": 1}},
        "customdata": [f"{edge:.2f} to {edge + 1 / N_NDCG_BINS:.2f}" for edge in edges],
        "hovertemplate": "%{y:,} queries with NDCG@10 from %{customdata}<extra></extra>",
    }
    layout = {
        "height": 320,
        "showlegend": False,
        "xaxis": {"title": {"text": "NDCG@10 of a query"}, "range": [0, 1], "dtick": 0.2},
        "yaxis": {"title": {"text": "queries"}, "rangemode": "tozero"},
    }
    return {"traces": [trace], "layout": layout}


def digits(values: NDArray[np.float64]) -> list[float]:
    """Round to five significant digits."""
    return [float(f"{value:.5g}") for value in values.tolist()]


def rounded(values: NDArray[np.float64], digits: int) -> list[Any]:
    """Round to a number of decimals."""
    return np.round(values, digits).tolist()
