"""The results table: a row per data set, fraction, algorithm and run.

A row holds the error of every trial, one byte each, so that every curve, test and figure can be
made from the table alone. The settings are stored in the table's metadata.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

SCHEMA = pa.schema(
    [
        ("dataset", pa.string()),
        ("labels", pa.int32()),  # per cent of interval labels
        ("algorithm", pa.string()),
        ("C", pa.float64()),  # null if the algorithm has none
        ("run", pa.int32()),
        ("trials", pa.int32()),
        ("mae", pa.float64()),  # after the last trial, against exact labels
        ("interval_mae", pa.float64()),  # against the labels it was trained on
        ("errors", pa.binary()),  # distance to the exact label, one byte per trial
        ("interval_errors", pa.binary()),  # distance to the interval used
        ("trajectory_trials", pa.list_(pa.int32())),  # of the first run only
        ("trajectory", pa.list_(pa.float64())),  # thresholds after these trials, concatenated
        ("losses", pa.list_(pa.float64())),  # cumulative hinge loss up to these trials
        ("bounds", pa.list_(pa.float64())),  # the theorem's bound on it, if there is one
    ]
)
SETTINGS = b"ordspan"
HINDSIGHT = "hindsight"
"""The "algorithm" of the rows of the best fixed ranker, which the settings do not list."""

Floats = NDArray[np.float64]


class Cell(NamedTuple):
    """Identifies one curve."""

    dataset: str
    labels: int
    algorithm: str


class DamagedTable(ValueError):  # noqa: N818 - the name describes the problem
    """The file is not a complete results table."""


def with_settings(table: pa.Table, settings: dict[str, Any]) -> pa.Table:
    """The table with the settings of the experiment in its metadata."""
    text = json.dumps(settings, sort_keys=True)
    return table.replace_schema_metadata({SETTINGS: text})


def read_table(path: Path) -> pa.Table:
    """Read a results table; anything else raises `DamagedTable`."""
    try:
        table = pq.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise DamagedTable(f"{path} is not a complete results table: {error}") from None
    if not table.schema.equals(SCHEMA, check_metadata=False):
        raise DamagedTable(f"{path} is a Parquet file, but not an ordspan results table")
    return table


def settings_of(table: pa.Table) -> dict[str, Any]:
    """The settings in the table's metadata."""
    return json.loads((table.schema.metadata or {}).get(SETTINGS, b"{}"))


class Results:
    """Read curves and final errors from a results table.

    Parameters
    ----------
    table : pyarrow.Table
        Written by the runner.
    """

    def __init__(self, table: pa.Table) -> None:
        self.settings = settings_of(table)
        self._rows: dict[Cell, list[dict[str, Any]]] = {}
        for row in sorted(table.to_pylist(), key=lambda row: row["run"]):
            cell = Cell(row["dataset"], row["labels"], row["algorithm"])
            self._rows.setdefault(cell, []).append(row)

    @property
    def datasets(self) -> list[str]:
        """Data sets in the order of the settings."""
        return [name for name in self.settings["datasets"] if self._has("dataset", name)]

    @property
    def labels(self) -> list[int]:
        """Percentages of interval labels, ascending."""
        return sorted({cell.labels for cell in self._rows})

    @property
    def algorithms(self) -> list[str]:
        """Algorithms in the order of the settings."""
        return [name for name in self.settings["algorithms"] if self._has("algorithm", name)]

    def _has(self, field: str, name: str) -> bool:
        return any(getattr(cell, field) == name for cell in self._rows)

    def __contains__(self, cell: tuple[str, int, str]) -> bool:
        return Cell(*cell) in self._rows

    def errors(self, cell: tuple[str, int, str], *, interval: bool = False) -> NDArray[np.uint8]:
        """Error of every trial, (runs, trials)."""
        name = "interval_errors" if interval else "errors"
        rows = [np.frombuffer(row[name], dtype=np.uint8) for row in self._rows[Cell(*cell)]]
        return np.stack(rows)

    def final(self, cell: tuple[str, int, str], *, interval: bool = False) -> Floats:
        """Mean absolute error after the last trial of every run, in the order of the runs."""
        name = "interval_mae" if interval else "mae"
        return np.array([row[name] for row in self._rows[Cell(*cell)]])

    def curve(self, cell: tuple[str, int, str], *, interval: bool = False) -> tuple[Floats, Floats]:
        """Mean over runs of the running MAE after every trial, and its standard error."""
        errors = self.errors(cell, interval=interval)
        runs, trials = errors.shape
        running = np.cumsum(errors, axis=1, dtype=np.float64) / np.arange(1, trials + 1)
        spread = running.std(axis=0, ddof=1) if runs > 1 else np.zeros(trials)
        return running.mean(axis=0), spread / np.sqrt(runs)

    def aggressiveness(self, cell: tuple[str, int, str]) -> float | None:
        """The chosen C, or None if there is none."""
        return self._rows[Cell(*cell)][0]["C"]

    def runs(self, cell: tuple[str, int, str]) -> int:
        """Number of runs."""
        return len(self._rows[Cell(*cell)])

    def trajectory(self, cell: tuple[str, int, str]) -> tuple[NDArray[np.int64], Floats] | None:
        """Trials and thresholds (n, K - 1) along the first run, if there are thresholds."""
        row = self._rows[Cell(*cell)][0]
        trials = np.array(row["trajectory_trials"] or [], dtype=np.int64)
        if not row["trajectory"]:
            return None
        return trials, np.array(row["trajectory"]).reshape(trials.size, -1)

    def losses(self, cell: tuple[str, int, str]) -> tuple[NDArray[np.int64], Floats] | None:
        """Trials and cumulative hinge loss along the first run, if there is a single score."""
        return self._along(cell, "losses")

    def bounds(self, cell: tuple[str, int, str]) -> tuple[NDArray[np.int64], Floats] | None:
        """Trials and the theorem's bound on the cumulative loss, if a theorem gives one."""
        return self._along(cell, "bounds")

    def _along(
        self, cell: tuple[str, int, str], name: str
    ) -> tuple[NDArray[np.int64], Floats] | None:
        row = self._rows.get(Cell(*cell), [{name: None}])[0]
        if not row[name]:
            return None
        return np.array(row["trajectory_trials"], dtype=np.int64), np.array(row[name])

    def hindsight_ratio(self, cell: tuple[str, int, str]) -> float | None:
        """Final MAE over that of the best fixed ranker, both over the runs that have one.

        None if there is no such ranker, or if it makes no error.
        """
        fixed = self._rows.get(Cell(*cell)._replace(algorithm=HINDSIGHT), [])
        shared = {row["run"] for row in fixed}
        online = [row["mae"] for row in self._rows[Cell(*cell)] if row["run"] in shared]
        best = float(np.mean([row["mae"] for row in fixed])) if fixed else 0.0
        return float(np.mean(online)) / best if best > 0.0 else None
