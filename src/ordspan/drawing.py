"""Colours and names that plots share.

Colours are those of Okabe and Ito, which colour-blind readers can distinguish.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

BLUE, ORANGE, GREY, PALE = "#0072B2", "#D55E00", "#7f7f7f", "#b9c2cb"
RANGES = "(ranges)"  # name of the rows that are labelled by a range
FARTHEST_LABEL = 2.5  # largest distance from a threshold to its name, in gaps
LABEL_GAP = 0.045  # smallest distance between two names, as a share of the axis


def label_heights(thresholds: NDArray[np.float64], low: float, high: float) -> dict[int, float]:
    """Height of each threshold's name on the axis; names that do not fit are omitted.

    >>> label_heights(np.array([1.0, 5.0]), 0.0, 10.0)
    {0: 1.0, 1: 5.0}
    """
    gap, heights, step = LABEL_GAP * (high - low), thresholds, 1
    for step in range(1, thresholds.size + 1):
        chosen = thresholds[::step]
        heights = spread(chosen, gap)
        off = np.abs(heights - chosen).max()
        # names may move farther as long as none is omitted
        farthest = gap * (FARTHEST_LABEL if step == 1 else 0.75)
        if off <= farthest and low <= heights[0] and heights[-1] <= high:
            break
    return dict(zip(range(0, thresholds.size, step), heights.tolist(), strict=True))


def spread(values: NDArray[np.float64], gap: float) -> NDArray[np.float64]:
    """Move ascending values as little as necessary to leave a gap between neighbours.

    >>> spread(np.array([0.0, 1.0, 1.0]), 0.5)
    array([0.  , 0.75, 1.25])
    """
    steps = gap * np.arange(values.size)
    return isotonic_regression(values - steps).x + steps
