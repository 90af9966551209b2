"""Ranges made from exact labels, as in section 6.2 of the paper."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ordspan.core.state import Ranks
from ordspan.labels.ranks import encode, find_classes, read_labels
from ordspan.wording import check_choice

OFFSETS = {
    # [y-1, y], [y, y+1], [y-1, y] again as printed, [y-2, y], [y, y+2], [y-2, y+2]
    "paper": ((-1, 0), (0, 1), (-1, 0), (-2, 0), (0, 2), (-2, 2)),
    # assumes the repeated interval is a misprint for [y-1, y+1]
    "symmetric": ((-1, 0), (0, 1), (-1, 1), (-2, 0), (0, 2), (-2, 2)),
}


def coarsen_ranks(
    ranks: Ranks,
    fraction: float,
    n_classes: int,
    rng: np.random.Generator,
    recipe: str = "paper",
) -> tuple[Ranks, Ranks]:
    """Widen a random fraction of exact ranks to one of six ranges each, clipped to 1..K."""
    check_choice("recipe", recipe, OFFSETS)
    if not 0 <= fraction <= 1:
        raise ValueError(f"fraction must be between 0 and 1, got {fraction!r}")
    ranges = np.array(OFFSETS[recipe])
    lower, upper = ranks.copy(), ranks.copy()
    chosen = rng.permutation(ranks.size)[: round(fraction * ranks.size)]
    offsets = ranges[rng.integers(len(ranges), size=chosen.size)]
    lower[chosen] = np.maximum(1, ranks[chosen] + offsets[:, 0])
    upper[chosen] = np.minimum(n_classes, ranks[chosen] + offsets[:, 1])
    return lower, upper


def coarsen(
    y: ArrayLike,
    fraction: float,
    *,
    classes: Any = None,
    recipe: str = "paper",
    random_state: int | np.random.Generator | None = None,
) -> NDArray[Any]:
    """Turn a random fraction of exact labels into ranges, as in the paper's experiments.

    Parameters
    ----------
    y : array-like of shape (n,)
        Exact labels.
    fraction : float
        Share of the rows to coarsen, 0 to 1; exactly ``round(fraction * n)`` rows are drawn.
    classes : array-like, optional
        All grades from lowest to highest; by default those of an ordered Categorical, or else
        the sorted numbers that occur.
    recipe : {"paper", "symmetric"}
        The six ranges to draw from uniformly, clipped to the grades: as printed, where
        [y-1, y] appears twice, or with [y-1, y+1] instead of the second one.
    random_state : int, numpy Generator or None
        Seed.

    Returns
    -------
    ndarray of shape (n, 2)
        Ranges that contain the exact labels.

    Examples
    --------
    >>> from ordspan import coarsen
    >>> coarsen([1, 2, 3, 4, 5], 0.4, random_state=1)  # 5 drew [5, 6], clipped to [5, 5]
    array([[1, 3],
           [2, 2],
           [3, 3],
           [4, 4],
           [5, 5]])
    """
    labels, known_order = read_labels(y)
    if labels.ndim != 1:
        raise ValueError(f"y must be 1-d exact labels, but has shape {labels.shape}")
    order = find_classes(labels, known_order, classes)
    rng = np.random.default_rng(random_state)
    ends = coarsen_ranks(encode(labels, order)[0], fraction, order.size, rng, recipe)
    return np.column_stack([order[ranks - 1] for ranks in ends])
