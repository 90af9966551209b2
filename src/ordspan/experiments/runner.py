"""Run the experiments in parallel, store finished work, and resume after an interruption."""

from __future__ import annotations

import io
import json
import shutil
import threading
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import ordspan
from ordspan.data import Dataset
from ordspan.experiments import hindsight, protocol
from ordspan.experiments.hindsight import HINDSIGHT_RUNS, Fixed
from ordspan.experiments.protocol import GRID, RULE, TUNING_RUNS, Curve, curves
from ordspan.experiments.table import HINDSIGHT, SCHEMA, read_table, settings_of, with_settings
from ordspan.models.atomic import write_atomically

BOUNDED = Curve("PA-I")
"""The curve whose theorem bounds the sum of hinge losses; the others bound their squares."""

RUNS_A_CELL = 5
"""Runs per task: an interruption loses at most this many per thread."""

StepCallback = Callable[[str, int, int], object]
"""Called as ``progress(what, done, total)`` after each task."""

Strengths = dict[tuple[int, str], float]


@dataclass(frozen=True)
class Plan:
    """What to run."""

    datasets: tuple[Dataset, ...]
    algorithms: tuple[str, ...] = protocol.ALGORITHMS
    labels: tuple[int, ...] = (0, 50, 75)
    runs: int = 100
    trials: int = 7000
    seed: int = 0
    average: bool = False
    solver: str = "exact"

    @property
    def curves(self) -> list[Curve]:
        """The curves of the figures."""
        return curves(self.algorithms, average=self.average, solver=self.solver)


class OtherSettings(ValueError):  # noqa: N818 - the name describes the problem
    """The folder contains results with other settings."""


class RunStopped(Exception):  # noqa: N818
    """The run was asked to stop."""


def settings(plan: Plan, unavailable: dict[str, str]) -> dict[str, Any]:
    """Everything the results depend on, and details for the report."""
    packages = ("numpy", "numba", "scikit-learn", "scipy", "pyarrow")
    return {
        "datasets": [data.name for data in plan.datasets],
        "algorithms": [curve.name for curve in plan.curves],
        "fractions": list(plan.labels),
        "runs": plan.runs,
        "trials": plan.trials,
        "seed": plan.seed,
        "grid": list(GRID),
        "rule": RULE,
        "hindsight_runs": min(plan.runs, HINDSIGHT_RUNS),
        "version": ordspan.__version__,
        "versions": {name: version(name) for name in packages},
        "sources": {data.name: data.source for data in plan.datasets},
        "sums": {data.name: checksum(data) for data in plan.datasets},
        "sizes": {data.name: list(data.X.shape) for data in plan.datasets},
        "n_classes": {data.name: data.n_classes for data in plan.datasets},
        "truth_mae": {data.name: data.truth.mae for data in plan.datasets if data.truth},
        "unavailable": unavailable,
    }


def checksum(data: Dataset) -> int:
    """A checksum of a data set."""
    return zlib.crc32(data.ranks.data, zlib.crc32(np.ascontiguousarray(data.X).data))


def run(
    plan: Plan,
    folder: Path,
    *,
    jobs: int,
    unavailable: dict[str, str] | None = None,
    overwrite: bool = False,
    progress: StepCallback | None = None,
) -> Path:
    """Run the remaining work; returns the path of the results table.

    The table is the same to the byte for the same settings, whatever ``jobs`` is and however
    often the run was interrupted.

    Parameters
    ----------
    plan : Plan
        What to run.
    folder : Path
        Where ``results.parquet`` is written; unfinished work is kept in ``cells`` there.
    jobs : int
        Threads.
    unavailable : dict, optional
        Missing data sets and the reasons, for the report.
    overwrite : bool
        Discard the results of other settings in the folder instead of refusing.
    progress : callable, optional
        Called after each task.
    """
    chosen = settings(plan, unavailable or {})
    result, cells = folder / "results.parquet", folder / "cells"
    if overwrite:
        result.unlink(missing_ok=True)
        shutil.rmtree(cells, ignore_errors=True)
    if result.exists():
        refuse_other(settings_of(read_table(result)), chosen, folder)
        return result
    begin(cells, chosen, folder)
    work = Work(plan, cells, progress)
    with ThreadPoolExecutor(jobs) as pool:
        try:
            work.tune(pool)
            work.measure(pool)
        except BaseException:
            work.stop.set()
            pool.shutdown(cancel_futures=True)
            raise
    write_table(result, with_settings(joined(plan, cells), chosen))
    shutil.rmtree(cells)
    return result


def begin(cells: Path, chosen: dict[str, Any], folder: Path) -> None:
    """Create the folder for unfinished work, or resume an existing one."""
    note = cells / "settings.json"
    if note.exists():
        refuse_other(json.loads(note.read_text(encoding="utf-8")), chosen, folder)
        return
    cells.mkdir(parents=True, exist_ok=True)
    write_atomically(note, json.dumps(chosen, sort_keys=True).encode())


def refuse_other(found: dict[str, Any], chosen: dict[str, Any], folder: Path) -> None:
    """Refuse to mix with or discard results of other settings."""
    chosen = json.loads(json.dumps(chosen))
    for name, value in chosen.items():
        # the reason a data set is missing may change between runs and affects no result
        if name != "unavailable" and found.get(name) != value:
            raise OtherSettings(
                f"{folder} holds results with {name} {found.get(name)!r}, not {value!r}; choose "
                "another folder with --out, or discard them with --overwrite"
            )


class Work:
    """The tasks of a plan, each run once and stored in its own file."""

    def __init__(self, plan: Plan, cells: Path, progress: StepCallback | None) -> None:
        self.plan = plan
        self.cells = cells
        self.stop = threading.Event()
        self.strengths: dict[str, Strengths] = {}
        self._progress = progress or (lambda what, done, total: None)
        self._done = 0
        tuned = any(curve.is_tunable for curve in plan.curves)
        self._total = len(plan.datasets) * (TUNING_RUNS * tuned + len(self._blocks()))

    def _blocks(self) -> list[range]:
        runs = self.plan.runs
        return [range(a, min(a + RUNS_A_CELL, runs)) for a in range(0, runs, RUNS_A_CELL)]

    def _step(self, what: str) -> None:
        self._done += 1
        self._progress(what, self._done, self._total)

    def _path(self, data: Dataset, block: range) -> Path:
        return self.cells / f"{data.name}-{block.start:06d}.parquet"

    def tune(self, pool: ThreadPoolExecutor) -> None:
        """Tune every C, or read stored values."""
        for data in self.plan.datasets:
            note = self.cells / f"{data.name}-strengths.json"
            if note.exists():
                found = json.loads(note.read_text(encoding="utf-8"))
                for _ in range(TUNING_RUNS if found else 0):
                    self._step(f"{data.name}: C already chosen")
            else:
                found = self._tuned(pool, data)
                write_atomically(note, json.dumps(found).encode())
            self.strengths[data.name] = {(percent, name): C for percent, name, C in found}

    def _tuned(self, pool: ThreadPoolExecutor, data: Dataset) -> list[tuple[int, str, float]]:
        tunable = [curve for curve in self.plan.curves if curve.is_tunable]
        if not tunable:
            return []
        tasks = [pool.submit(self._tuning_run, data, tunable, run) for run in range(TUNING_RUNS)]
        for _ in finished(tasks):
            self._step(f"{data.name}: choosing C")
        errors = sum(task.result() for task in tasks)  # in the order of the runs
        return [
            (percent, curve.name, GRID[int(np.argmin(errors[i, j]))])
            for i, percent in enumerate(self.plan.labels)
            for j, curve in enumerate(tunable)
        ]

    def _tuning_run(self, data: Dataset, tunable: list[Curve], run: int) -> Any:
        """Total error to the labels trained on, (fractions, curves, grid)."""
        plan = self.plan
        totals = np.zeros((len(plan.labels), len(tunable), len(GRID)), dtype=np.int64)
        sampled = protocol.streams(data, plan.labels, plan.seed, protocol.TUNING, run, plan.trials)
        for i, (_, stream) in enumerate(sampled):
            for j, curve in enumerate(tunable):
                for k, C in enumerate(GRID):
                    self._check_stop()
                    learner = curve.learner(data.X.shape[1], data.n_classes, C)
                    predicted = protocol.predictions(learner, curve, stream)
                    totals[i, j, k] = protocol.outcome(predicted, curve, stream)[1].sum()
        return totals

    def measure(self, pool: ThreadPoolExecutor) -> None:
        """Run every block that is not stored yet."""
        tasks = {}
        for data in self.plan.datasets:
            for block in self._blocks():
                if self._path(data, block).exists():
                    self._step(f"{data.name}: already done")
                else:
                    tasks[pool.submit(self._measure_block, data, block)] = data.name
        for task in finished(list(tasks)):
            self._step(f"{tasks[task]}: running")

    def _measure_block(self, data: Dataset, block: range) -> None:
        rows = [row for run in block for row in self._rows_of_run(data, run)]
        write_table(self._path(data, block), pa.Table.from_pylist(rows, schema=SCHEMA))

    def _rows_of_run(self, data: Dataset, run: int) -> Iterator[dict[str, Any]]:
        plan = self.plan
        baseline: dict[str, dict[str, Any]] = {}
        sampled = protocol.streams(
            data, plan.labels, plan.seed, protocol.REPORTED, run, plan.trials
        )
        for percent, stream in sampled:
            best = hindsight.best_fixed(stream, data.n_classes) if run < HINDSIGHT_RUNS else None
            for curve in plan.curves:
                self._check_stop()
                if curve.uses_intervals:
                    row = self._row(data, percent, curve, run, stream)
                    if curve == BOUNDED and run == 0 and best is not None:
                        row["bounds"] = hindsight.bound_along(
                            best, stream, data.n_classes, row["C"]
                        )
                    yield row
                else:  # exact labels: the same under every percentage
                    if curve.name not in baseline:
                        baseline[curve.name] = self._row(data, percent, curve, run, stream)
                    yield baseline[curve.name] | {"labels": percent}
            if best is not None:
                yield fixed_row(data.name, percent, run, stream, best)

    def _row(
        self, data: Dataset, percent: int, curve: Curve, run: int, stream: protocol.TrialStream
    ) -> dict[str, Any]:
        C = self.strengths[data.name].get((percent, curve.name))
        fresh = partial(curve.learner, data.X.shape[1], data.n_classes, C, stream.seed)
        along: dict[str, Any] = {}
        if run == 0 and curve.has_thresholds:
            predicted, along["trajectory"] = protocol.followed(fresh(), curve, stream)
            along["trajectory_trials"] = protocol.trajectory_trials(stream.ranks.size)
        else:
            predicted = protocol.predictions(fresh(), curve, stream)
        if run == 0 and curve.has_losses:
            along["losses"] = hindsight.cumulative(hindsight.learner_losses(fresh(), curve, stream))
        row = {"dataset": data.name, "labels": percent, "algorithm": curve.name, "C": C}
        return {**row, "run": run, **counted(protocol.outcome(predicted, curve, stream)), **along}

    def _check_stop(self) -> None:
        if self.stop.is_set():
            raise RunStopped


def fixed_row(
    dataset: str, percent: int, run: int, stream: protocol.TrialStream, best: Fixed
) -> dict[str, Any]:
    """The row of the best fixed ranker."""
    row = {"dataset": dataset, "labels": percent, "algorithm": HINDSIGHT, "C": best.C, "run": run}
    if run == 0:
        row["trajectory_trials"] = protocol.trajectory_trials(stream.ranks.size)
        row["losses"] = hindsight.cumulative(best.losses)
    return {**row, **counted(hindsight.fixed_outcome(best, stream))}


def counted(outcome: protocol.Outcome) -> dict[str, Any]:
    """Error columns of a row."""
    errors, interval_errors = outcome
    return {
        "trials": errors.size,
        "mae": float(errors.mean()),
        "interval_mae": float(interval_errors.mean()),
        "errors": errors.tobytes(),
        "interval_errors": interval_errors.tobytes(),
    }


def finished(tasks: list[Future[Any]]) -> Iterator[Future[Any]]:
    """Tasks as they finish; polls, so that Ctrl-C works."""
    waiting = set(tasks)
    while waiting:
        done, waiting = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
        for task in done:
            task.result()
            yield task


def joined(plan: Plan, cells: Path) -> pa.Table:
    """All cells as one table, in the order of the plan."""
    table = pa.concat_tables(read_table(path) for path in sorted(cells.glob("*.parquet")))
    places: dict[str, Callable[[Any], int]] = {
        "dataset": [data.name for data in plan.datasets].index,
        "labels": int,
        "algorithm": [*(curve.name for curve in plan.curves), HINDSIGHT].index,
        "run": int,
    }
    keys = [[place(value) for value in table[name].to_pylist()] for name, place in places.items()]
    return table.take(np.lexsort(keys[::-1])).combine_chunks()


def write_table(path: Path, table: pa.Table) -> None:
    """Write a table atomically."""
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    write_atomically(path, buffer.getvalue())
