"""Progress of a training run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ordspan.tables.rows import BEGINNING, Count, Cursor


@dataclass
class TrainProgress:
    """State of a run, as stored in a checkpoint."""

    cursor: Cursor = BEGINNING
    rows: Count = 0  # of this pass
    loss: Count = 0  # sum of errors in this pass, each row predicted before it is learned
    mae: list[float] = field(default_factory=list)  # of every finished pass
    learned: Count = 0  # rows of all passes
    good: Count = 0  # rows of the first pass, held-out ones too
    skipped: Count = 0  # bad rows before the cursor
    unlabelled: Count = 0  # rows without a label before it
    bad_rows: list[str] = field(default_factory=list)  # the first of them
    labels: dict[str, list[Count]] = field(default_factory=dict)  # counts of grades

    @property
    def running_mae(self) -> float:
        """MAE of the current pass so far."""
        return self.loss / max(1, self.rows)


TrainReport = Callable[[int, float, float | None], None]
"""Callback with the rows learned, the MAE of this pass, and the share done, if known."""
