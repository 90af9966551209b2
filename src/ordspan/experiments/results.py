"""The table of results, one row per curve, and the summary of it.

Claims, figures and the page are made from the table alone. It is kept in ``results.npz`` with
the trials that it is about and the settings of the experiment.
"""

from __future__ import annotations

import csv
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordspan.core.state import Floats
from ordspan.models.atomic import opened_atomically

HINDSIGHT = "hindsight"
"""The "algorithm" of the best fixed ranker, which the settings do not list."""


def table_type(runs: int, points: int, thresholds: int) -> np.dtype[np.void]:
    """The columns of the table; sums and paths have a value for each of `kept_trials`."""
    return np.dtype(
        [
            ("dataset", "U32"),
            ("labels", np.int64),  # per cent of interval labels
            ("algorithm", "U32"),
            ("C", np.float64),  # NaN if there is none
            ("runs", np.int64),  # the rows of the sums beyond are empty
            ("error_sums", np.uint32, (runs, points)),  # distances to the exact labels so far
            ("interval_error_sums", np.uint32, (runs, points)),  # to the labels trained on
            ("losses", np.float64, points),  # cumulative hinge loss of the first run, or NaN
            ("bounds", np.float64, points),  # the theorem's bound on it, or NaN
            ("thresholds", np.float64, (points, thresholds)),  # of the first run, or NaN
        ]
    )


class Cell(NamedTuple):
    """One curve: a data set, the percentage of ranges, an algorithm."""

    dataset: str
    labels: int
    algorithm: str


class Results:
    """The table of results with its settings.

    Parameters
    ----------
    table : ndarray of `table_type`
        One row per curve, ordered by data set, percentage and algorithm.
    trials : ndarray
        The trials that the columns are about.
    settings : dict
        Those of the experiment.
    """

    def __init__(
        self, table: NDArray[Any], trials: NDArray[np.int64], settings: dict[str, Any]
    ) -> None:
        self.table, self.trials, self.settings = table, trials, settings
        names = (table[name].tolist() for name in Cell._fields)
        self.rows = dict(zip(map(Cell, *names), table, strict=True))
        self.cells = [cell for cell in self.rows if cell.algorithm != HINDSIGHT]
        self.datasets, self.labels, self.algorithms = (
            list(dict.fromkeys(column)) for column in zip(*self.cells, strict=True)
        )

    def save(self, path: Path) -> None:
        """Write the table, its trials and settings; the same results give the same bytes."""
        settings = json.dumps(self.settings, sort_keys=True)
        with opened_atomically(path) as file:
            np.savez(file, table=self.table, trials=self.trials, settings=settings)

    @classmethod
    def load(cls, path: Path) -> Results:
        """Read what `save` has written."""
        try:
            with np.load(path) as file:
                return cls(file["table"], file["trials"], json.loads(str(file["settings"])))
        except (KeyError, IndexError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"{path} is damaged; delete it and run again ({error})") from None

    def running(self, cell: Cell, *, interval: bool = False) -> Floats:
        """Mean absolute error so far of every run, at each of the trials."""
        row = self.rows[cell]
        sums = row["interval_error_sums" if interval else "error_sums"]
        return sums[: row["runs"]] / self.trials

    def final(self, cell: Cell, *, interval: bool = False) -> Floats:
        """Mean absolute error after the last trial of every run."""
        return self.running(cell, interval=interval)[:, -1]

    def curve(self, cell: Cell, *, interval: bool = False) -> tuple[Floats, Floats]:
        """Mean over runs of the running error, and its standard error; 0 with a single run."""
        running = self.running(cell, interval=interval)
        runs, points = running.shape
        spread = running.std(axis=0, ddof=1) if runs > 1 else np.zeros(points)
        return running.mean(axis=0), spread / np.sqrt(runs)

    def summary(self) -> list[dict[str, Any]]:
        """Final errors of every curve; the keys are the columns of summary.csv."""
        rows = []
        for cell in self.cells:
            final, C = self.final(cell), float(self.rows[cell]["C"])
            mae, sem = (float(numbers[-1]) for numbers in self.curve(cell))
            best = self.final(cell._replace(algorithm=HINDSIGHT))
            ratio = final[: best.size].mean() / best.mean() if best.any() else None
            row = {
                "C": None if np.isnan(C) else C,
                "mae": mae,  # against exact labels, mean over runs
                "sem": sem if final.size > 1 else np.nan,  # of one run, 0 would look like certainty
                "interval_mae": float(self.final(cell, interval=True).mean()),  # to labels used
                "trials": int(self.trials[-1]),
                "runs": final.size,
                "hindsight_ratio": ratio,  # mae over that of the best fixed ranker, on its runs
            }
            rows.append(cell._asdict() | row)
        return rows


def write_table(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Write rows with the same keys as a CSV file."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(rows[0])
        for row in rows:
            writer.writerow(f"{v:.9g}" if isinstance(v, float) else v for v in row.values())
