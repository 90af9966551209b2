"""Helpers of the displays: axes to draw on, and labels as ranks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordspan.core.state import Ranks
from ordspan.labels.ranks import encode, read_labels
from ordspan.metrics.scale import Metric, check_count, known_order, numbers_that_occur


class TrueRanks(NamedTuple):
    """Labels as ranks of all grades."""

    lower: Ranks
    upper: Ranks
    classes: NDArray[Any]


def read_truth(name: str, arguments: str, true: Any, n_rows: int, classes: Any) -> TrueRanks:
    """Labels as ranks, checked to match the number of predictions."""
    labels, own_order = read_labels(true)
    check_count(labels, n_rows, "predictions")
    order = known_order(classes, own_order)
    if order is None:
        order = numbers_that_occur(Metric(name, arguments, None), labels)
    return TrueRanks(*encode(labels, order), order)


def axes_of(ax: Any, caller: str, *, figsize: tuple[float, float] | None = None) -> Any:
    """The axes to draw on; new ones if there are none."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(f"{caller} needs matplotlib: pip install 'ordspan[plot]'") from error
    return pyplot.subplots(figsize=figsize, layout="constrained")[1]


def names_of(classes: NDArray[Any]) -> list[str]:
    """Grades as axis labels."""
    return [str(grade) for grade in np.asarray(classes).tolist()]
