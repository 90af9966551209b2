"""Rows on their way to the learner: cut into portions, held out, and checked for their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ordspan.files.batch import Batch
from ordspan.files.ordering import are_runs

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


def drawn(rows: NDArray[np.int64], piece: int, seed: int) -> NDArray[np.float64]:
    """A pseudo-random number in [0, 1) per row, from its position alone (splitmix64).

    >>> bool(0.49 < drawn(np.arange(100_000), 0, 0).mean() < 0.51)
    True
    """
    with np.errstate(over="ignore"):
        start = np.uint64((seed + 1) * 0x9E3779B97F4A7C15 + piece * 0xD1B54A32D192ED03 & 2**64 - 1)
        x = start + (rows.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (x ^ (x >> np.uint64(31))) / 2.0**64


def portions(
    batches: Iterable[Batch], size: int, *, whole: bool, from_pipe: bool = False
) -> Iterator[list[Batch]]:
    """Cut batches so that no portion has more than ``size`` rows.

    ``whole`` fills each portion to exactly ``size`` rows, except the last. Rows ``from_pipe`` that
    came before an error or an interruption are not dropped: they cannot be read again.
    """
    waiting: list[Batch] = []
    n_waiting = 0
    try:
        for batch in batches:
            begin, n_rows = 0, len(batch)
            while begin < n_rows:
                end = min(n_rows, begin + size - n_waiting)
                waiting.append(batch.part(begin, end))
                n_waiting += end - begin
                begin = end
                if not whole or n_waiting == size:
                    yield waiting
                    waiting, n_waiting = [], 0
    except (Exception, KeyboardInterrupt):
        if waiting and from_pipe:
            yield waiting
        raise
    if waiting:
        yield waiting
