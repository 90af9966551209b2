"""What plots share, whatever draws them.

Colours are Okabe and Ito's, which colour-blind readers can tell apart.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#7f7f7f"
FARTHEST_LABEL = 2.5  # gaps from a threshold to its name
LABEL_GAP = 0.045  # of the axis between the names of two thresholds, so that both can be read


def label_heights(thresholds: NDArray[np.float64], low: float, high: float) -> dict[int, float]:
    """Which thresholds are named, and where on the axis: all that can stand near their lines.

    >>> label_heights(np.array([1.0, 5.0]), 0.0, 10.0)
    {0: 1.0, 1: 5.0}
    """
    gap = LABEL_GAP * (high - low)
    for step in range(1, thresholds.size + 1):
        chosen = thresholds[::step]
        heights = spread(chosen, gap)
        off = np.abs(heights - chosen).max()
        # few may move farther than many, of which some can go without
        farthest = gap * (FARTHEST_LABEL if step == 1 else 0.75)
        if off <= farthest and low <= heights[0] and heights[-1] <= high:
            break
    return dict(zip(range(0, thresholds.size, step), heights.tolist(), strict=True))


def spread(values: NDArray[np.float64], gap: float) -> NDArray[np.float64]:
    """Ascending values moved as little as need be for a gap between neighbours.

    >>> spread(np.array([0.0, 1.0, 1.0]), 0.5)
    array([0.  , 0.75, 1.25])
    """
    blocks: list[list[float]] = []  # values that stand side by side, less their place in the row
    steps = gap * np.arange(values.size)
    for value in (values - steps).tolist():
        blocks.append([value])
        while len(blocks) > 1 and np.mean(blocks[-2]) > np.mean(blocks[-1]):
            last = blocks.pop()
            blocks[-1] += last
    level = [np.mean(block) for block in blocks for _ in block]
    return np.array(level) + steps
