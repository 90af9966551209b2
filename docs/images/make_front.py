"""Draws front.png, the picture of the front page: ranges as labels, and what is learned.

Run it from anywhere: python docs/images/make_front.py
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray

from ordspan import OrdinalPA, coarsen
from ordspan.datasets import load_dataset

mpl.use("agg")
import matplotlib.pyplot as plt

GRADES = ("up to $100k", "to $200k", "to $300k", "to $400k", "above $400k")
BLUE, ORANGE, INK, GREY, STEP = "#0072B2", "#D55E00", "#1a1a1a", "#5f5f5f", "#d9d9d9"
DASHES = (0, (4, 3))
SHOWN = (-4.0, 6.0)  # scores
SPACE = 0.24
"""Examples are drawn at least so far apart that each can be seen."""


def apart(scores: NDArray, low: float, high: float) -> NDArray:
    """Examples with scores from low to high, every two at least SPACE apart."""
    chosen: list[int] = []
    for i in np.argsort(scores):
        if low < scores[i] < high and (not chosen or scores[i] - scores[chosen[-1]] >= SPACE):
            chosen.append(int(i))
    return np.array(chosen)


def draw_labels(ax: plt.Axes, scores: NDArray, labels: NDArray, predicted: NDArray) -> None:
    """A bar for a range, a dot for an exact grade; orange where the prediction lies outside."""
    outside = (predicted < labels[:, 0]) | (predicted > labels[:, 1])
    exact = labels[:, 0] == labels[:, 1]
    for missed, colour in ((False, BLUE), (True, ORANGE)):
        bars = ~exact & (outside == missed)
        ax.vlines(
            scores[bars], labels[bars, 0] - 0.18, labels[bars, 1] + 0.18,
            color=colour, linewidth=4.5, capstyle="round", zorder=3,
        )  # fmt: skip
        dots = exact & (outside == missed)
        ax.scatter(scores[dots], labels[dots, 0], s=44, color=colour, linewidth=0, zorder=4)


def draw_ranker(ax: plt.Axes, thresholds: NDArray, edges: tuple[float, float]) -> None:
    """The thresholds, and the staircase of grades between them."""
    bounds = np.array([edges[0], *thresholds, edges[1]])
    ax.hlines(range(1, 6), bounds[:-1], bounds[1:], color=STEP, linewidth=17, zorder=1)
    for i, threshold in enumerate(thresholds, start=1):
        ax.axvline(threshold, color=GREY, linewidth=1.2, linestyle=DASHES, zorder=2)
        ax.text(threshold, 5.62, f"$\\theta_{i}$", ha="center", va="bottom", color=INK, fontsize=13)


def explain(ax: plt.Axes) -> None:
    """One legend, in words."""
    bar = {"linewidth": 4.5, "solid_capstyle": "round"}
    ax.plot([], [], color=BLUE, label="label: a range", **bar)
    ax.scatter([], [], s=44, color=BLUE, label="label: one grade")
    ax.plot([], [], color=ORANGE, label="label missed", **bar)
    ax.plot([], [], color=STEP, linewidth=13, label="predicted grade")
    ax.plot([], [], color=GREY, linewidth=1.2, linestyle=DASHES, label="learned thresholds")
    ax.legend(
        loc="upper center", bbox_to_anchor=(0.45, -0.16), ncols=5, frameon=False, fontsize=11,
        handlelength=1.5, columnspacing=1.8,
    )  # fmt: skip


def main() -> None:
    """Learn from ranges and draw some of the examples along the learned score."""
    data = load_dataset("california")
    labels = coarsen(data.ranks, 0.75, random_state=1)
    model = OrdinalPA(random_state=0).fit(data.X, labels)
    some = np.random.default_rng(0).permutation(len(data.X))[:200]
    shown = some[apart(model.latent(data.X[some]), *SHOWN)]
    scores, predicted = model.latent(data.X[shown]), model.predict(data.X[shown])

    figure, ax = plt.subplots(figsize=(10, 4.6), layout="constrained")
    edges = (scores.min() - 0.4, scores.max() + 0.4)
    draw_ranker(ax, model.thresholds_, edges)
    draw_labels(ax, scores, labels[shown], predicted)
    explain(ax)
    ax.set_xlim(edges)
    ax.set_ylim(0.5, 5.55)
    ax.set_yticks(range(1, 6), GRADES, fontsize=11)
    ax.set_xlabel("learned score  w · x", fontsize=11)
    ax.set_ylabel("median house price", fontsize=11)
    ax.tick_params(length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    figure.savefig(Path(__file__).with_name("front.png"), dpi=140)


if __name__ == "__main__":
    main()
