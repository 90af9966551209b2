"""Helpers of the displays: axes to draw on, and the names of grades along them."""

from __future__ import annotations

from typing import Any

import numpy as np

MOST_TICKS = 30
CHARACTER = 0.09  # width in inches, with the margins of the axes


def axes_of(ax: Any, caller: str, *, figsize: tuple[float, float] | None = None) -> Any:
    """The axes to draw on; new ones if there are none."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(f"{caller} needs matplotlib: pip install 'ordspan[plot]'") from error
    return pyplot.subplots(figsize=figsize, layout="constrained")[1]


def names_of(classes: Any) -> list[str]:
    """Grades as axis labels, in which a dollar sign does not begin a formula."""
    return [str(grade).replace("$", r"\$") for grade in np.asarray(classes).tolist()]


def grade_ticks(axis: Any, names: list[str]) -> None:
    """A tick for each name, or for some of many; upright along an x-axis if they need more room."""
    shown = range(0, len(names), -(-len(names) // MOST_TICKS))
    axis.set_ticks([*shown], [names[place] for place in shown])
    needed = CHARACTER * sum(1 + len(names[place]) for place in shown)
    if axis.axis_name == "x" and needed > axis.axes.figure.get_figwidth():
        axis.set_tick_params(rotation=90)
