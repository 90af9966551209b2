"""Labels of rows on their way to the learner."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ordspan.tables.ordering import are_runs
from ordspan.tables.rows import Batch

FEW_ROWS = 50
"""With fewer rows, runs of one grade mean nothing."""


class Runs:
    """Counts how often a label equals that of the previous row."""

    def __init__(self, n_classes: int) -> None:
        self._counts = np.zeros(n_classes, dtype=np.int64)
        self._same = 0
        self._last = 0

    def add(self, lower: NDArray[np.int64], upper: NDArray[np.int64]) -> None:
        """Add rows in order."""
        middle = (lower + upper) // 2
        self._same += int((np.diff(middle, prepend=self._last) == 0).sum())
        self._counts += np.bincount(middle - 1, minlength=self._counts.size)
        self._last = int(middle[-1])

    def are_long(self) -> bool:
        """Whether neighbours are equal much more often than by chance."""
        return int(self._counts.sum()) >= FEW_ROWS and are_runs(self._counts, self._same)


def ends_of(batches: Sequence[Batch]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Lower and upper ranks of the labels of batches."""
    lower = np.concatenate([b.lower for b in batches if b.lower is not None])
    upper = np.concatenate([b.upper for b in batches if b.upper is not None])
    return lower, upper
