"""The rank plot: mean rank of every method for each kind of labels, from the table alone."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from ordspan.atomic import write_atomically
from peers.methods import BY_NAME
from peers.ranks import SHORT, Standing, by_kind, standing
from peers.table import Result
from peers.unseen import UNSEEN

OURS, NATIVE, MIDDLES, EXACT_PART = "#D55E00", "#0072B2", "#56B4E9", "#999999"


def labels_title(labels: int) -> str:
    """Kind of labels in words.

    >>> labels_title(75)
    '75 % ranges'
    """
    return f"{labels} % ranges" if labels else "exact labels"


def look(title: str) -> tuple[str, str]:
    """Colour and marker of a method."""
    name, _, given = title.partition(" · ")
    if BY_NAME[name].ours:
        return OURS, "o"
    return {"middles": (MIDDLES, "^"), "exact part": (EXACT_PART, "v")}.get(given, (NATIVE, "s"))


def draw(groups: list[list[Result]], path: Path, measure: str = "mae") -> None:
    """Write the figure of one measure, a panel for each kind of labels; none without results."""
    from matplotlib.figure import Figure

    panels = [rows for results in groups for rows in by_kind(results, measure).values()]
    if not panels:
        return
    standings = [standing(rows, measure) for rows in panels]
    columns = min(2, len(panels))
    parts = [
        range(start, min(start + columns, len(panels))) for start in range(0, len(panels), columns)
    ]
    heights = [max(4, *(len(standings[i].titles) for i in part)) + 4 for part in parts]
    figure = Figure(figsize=(5.6 * columns, 0.21 * sum(heights)), layout="constrained")
    axes = figure.subplots(len(parts), columns, squeeze=False, height_ratios=heights).ravel()
    for ax, rows, found in zip(axes, panels, standings, strict=False):
        panel(ax, found, labels_title(rows[0].labels), SHORT[measure])
    for ax in axes[len(panels) :]:
        ax.remove()
    shown = {look(title) for found in standings for title in found.titles}
    figure.legend(
        handles=legend(shown),
        loc="outside lower center",
        ncols=1 + columns,
        frameon=False,
        fontsize=9,
    )
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=130, metadata={"Software": None})
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, content.getvalue())


def panel(ax: Any, found: Standing, title: str, measure: str) -> None:
    """One kind of labels: best method on top, a bar of the critical distance from the best."""
    order = np.argsort(found.mean_ranks, kind="stable")
    best = found.mean_ranks[order[0]]
    ax.axvspan(best, best + found.distance, color="#000000", alpha=0.07, lw=0)
    for place, i in enumerate(order):
        color, marker = look(found.titles[i])
        ax.plot([best, found.mean_ranks[i]], [place, place], color=color, lw=0.8, alpha=0.5)
        ax.plot(found.mean_ranks[i], place, marker, color=color, ms=6)
    ax.set_yticks(range(len(order)), [found.titles[i] for i in order], fontsize=8)
    for tick, i in zip(ax.get_yticklabels(), order, strict=True):
        tick.set_fontweight("bold" if look(found.titles[i])[0] == OURS else "normal")
    ax.set_ylim(len(order) - 0.4, -0.6)
    ax.set_xlim(0.5, len(order) + 0.5)
    sets = "unseen sets" if set(found.datasets) <= set(UNSEEN) else "data sets"
    ax.set_title(f"{title}, {len(found.datasets)} {sets}", fontsize=10, loc="left")
    ax.set_xlabel(f"mean rank by {measure} (1 is best)", fontsize=8)
    ax.tick_params(axis="x", labelsize=8)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def legend(shown: set[tuple[str, str]]) -> list[Any]:
    """What the marks mean that are shown."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    marks = (
        (OURS, "o", "ordspan"),
        (NATIVE, "s", "peer, labels as they are"),
        (MIDDLES, "^", "peer on the middles of ranges"),
        (EXACT_PART, "v", "peer on the exact part only"),
    )
    lines = [
        Line2D([], [], color=c, marker=m, ls="", label=text)
        for c, m, text in marks
        if (c, m) in shown
    ]
    band = Patch(
        color="#000000", alpha=0.07, lw=0, label="not different from the best (Nemenyi, 5 %)"
    )
    return [*lines, band]
