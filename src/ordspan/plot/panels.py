"""Plots of an evaluation, from its summary; each draws on given axes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordspan.core.state import Floats
from ordspan.pages import BLUE, GREY, ORANGE, PALE

MOST_TICKS = 30
CHARACTER, LINE = 0.09, 0.2  # width and height in inches, with the margins of the axes
MOST_STEPS = 200
MIDDLE_BLUE = "#2f95d3"  # stands out from a light and a dark page
MOST_CELLS, LEAST_CELL = 12, 0.6  # of a confusion matrix with text in its cells, inches wide
N_TENTHS, N_NDCG_BINS = 10, 20


def names_of(classes: Any) -> list[str]:
    """Grades as axis labels, in which a dollar sign does not begin a formula."""
    return [str(grade).replace("$", r"\$") for grade in np.asarray(classes).tolist()]


def grade_ticks(axis: Any, names: list[str]) -> None:
    """A tick for each name, or for some of many; upright along an x-axis if they need more room."""
    room = axis.axes.figure.get_size_inches()["xy".index(axis.axis_name)]
    shown = range(0, len(names), -(-len(names) // min(MOST_TICKS, max(1, int(room / LINE)))))
    texts = [names[place] for place in shown]
    axis.set_ticks([*shown], texts)
    # a part of the room is beside the axes
    if axis.axis_name == "x" and CHARACTER * len(" ".join(texts)) > 0.85 * room:
        axis.set_tick_params(rotation=90)


def confusion_matrix(ax: Any, confusion: NDArray[np.int64], names: list[str]) -> None:
    """Rows by true and predicted grade: their number, and percent of the true grade."""
    from matplotlib.colors import LinearSegmentedColormap, PowerNorm, to_rgba

    shares = 100 * confusion / np.maximum(confusion.sum(axis=1, keepdims=True), 1)
    width = ax.figure.get_figwidth() / len(names)
    roomy = len(names) <= MOST_CELLS and width >= LEAST_CELL
    # transparent colours suit a light and a dark page; without numbers, small shares show too
    most = to_rgba(BLUE, 0.75) if roomy else to_rgba(MIDDLE_BLUE)
    colors = LinearSegmentedColormap.from_list("shares", [(*most[:3], 0.0), most])
    norm = PowerNorm(1.0 if roomy else 0.5, 0, 100 if roomy else shares.max())
    image = ax.imshow(shares, cmap=colors, norm=norm, aspect="auto", interpolation="none")
    grade_ticks(ax.xaxis, names_of(names))
    grade_ticks(ax.yaxis, names_of(names))
    ax.set(xlabel="predicted grade", ylabel="true grade")
    ax.grid(visible=False)
    if not roomy:
        ax.figure.colorbar(image, ax=ax, label="% of the true grade")
        return
    for draw in (ax.vlines, ax.hlines):
        draw(np.arange(1, len(names)) - 0.5, -0.5, len(names) - 0.5, color="white", linewidth=2)
    for (row, column), count in np.ndenumerate(confusion):
        words = cell_text(int(count), float(shares[row, column])) if shares[row].any() else ""
        ax.text(column, row, words, ha="center", va="center", fontsize=min(9.0, 11.0 * width))


def cell_text(count: int, share: float) -> str:
    """Text of a cell in the confusion matrix: rows, and percent of the true grade.

    >>> cell_text(1234, 28.6), cell_text(3, 0.2), cell_text(0, 0.0)
    ('1,234\\n29 %', '3\\n<1 %', '0')
    """
    if not count:
        return "0"
    return f"{count:,}\n{f'{share:.0f}' if share >= 0.5 else '<1'} %"


def errors_by_grade(ax: Any, by_grade: list[dict[str, Any]], names: list[str]) -> None:
    """Shares too low, right and too high of every true grade, as stacked bars."""
    left = np.zeros(len(names))
    # stripes distinguish the colours in black and white
    looks = {"too_low": (ORANGE, "\\\\\\\\"), "right": (PALE, ""), "too_high": (BLUE, "////")}
    for key, (color, stripes) in looks.items():
        share = np.array([100 * (row[key] or 0.0) for row in by_grade])
        look = {"facecolor": color, "hatch": stripes, "edgecolor": "white", "linewidth": 0}
        look["label"] = key.replace("_", " ")
        if len(names) > MOST_TICKS:  # steps of very many would make the picture large
            step = "mid" if len(names) <= MOST_STEPS else None
            ax.fill_betweenx(np.arange(len(names)), left, left + share, step=step, **look)
        else:
            ax.barh(np.arange(len(names)), share, 0.75, left, **look)
        left = left + share
    grade_ticks(ax.yaxis, names_of(names))
    ax.invert_yaxis()
    ax.set(xlabel="% of the rows of a grade", ylabel="true grade", xlim=(0, 100))
    where = {"loc": "lower right", "bbox_to_anchor": (1, 1), "ncols": 3, "borderpad": 0}
    ax.legend(**where, columnspacing=1.2, handlelength=1.5, frameon=False)


def accuracy_by_margin(ax: Any, margin: Floats, right: NDArray[np.bool_]) -> None:
    """Share of right grades in each tenth of the rows, from the smallest margins to the largest."""
    tenths = np.array_split(np.argsort(margin, kind="stable"), N_TENTHS)
    x, y = ([values[tenth].mean() for tenth in tenths] for values in (margin, 100 * right))
    ax.plot(x, y, "o-", color=BLUE)
    ax.set(xlabel="margin to the nearest threshold", ylabel="% of rows right")
    ax.set(xlim=(0, None), ylim=(0, 103))


def coverage(ax: Any, ranges: list[dict[str, Any]], with_ranges: bool) -> None:
    """Observed coverage of ranges by requested coverage."""
    asked, contains, expected, meets = (
        100 * np.array([row[name] for row in ranges])
        for name in ("coverage", "contains", "expected", "meets")
    )
    ax.plot(asked[[0, -1]], asked[[0, -1]], "--", color=GREY, label="ideal")
    if with_ranges:
        ax.fill_between(asked, contains, meets, color=BLUE, alpha=0.18, linewidth=0)
        ax.plot(asked, meets, "-.", color=BLUE, linewidth=1, label="meets the label")
        ax.plot(asked, contains, ":", color=BLUE, linewidth=1, label="contains the label")
    name = "expected" if with_ranges else "contains the label"
    ax.plot(asked, expected, "o-", color=BLUE, label=name)
    ax.set_xticks(asked, [f"{level:g}" for level in asked])
    ax.set(xlabel="requested coverage, %", ylabel="observed coverage, %")
    ax.legend(frameon=False)


def range_widths(ax: Any, ranges: dict[str, Any]) -> None:
    """Histogram of the widths of ranges at one coverage."""
    widths, coverage = ranges["widths"], f"{100 * ranges['coverage']:g} %"
    grades, shares = np.arange(1, len(widths) + 1), 100 * np.array(widths) / sum(widths)
    if grades.size > MOST_TICKS:
        ax.stairs(shares, np.arange(0.5, grades.size + 1), fill=True, color=BLUE)
    else:
        ax.bar(grades, shares, 0.75, color=BLUE)
        ax.set_xticks(grades)
    ax.set(xlabel=f"grades in a range of {coverage}", ylabel="% of rows")
    ax.set(xlim=(0.4, grades.size + 0.6))


def query_histogram(ax: Any, values: Floats) -> None:
    """How many queries have which NDCG@10."""
    ax.hist(values, N_NDCG_BINS, range=(0, 1), color=BLUE, edgecolor="white")
    ax.set(xlabel="NDCG@10 of a query", ylabel="queries", xlim=(0, 1))
