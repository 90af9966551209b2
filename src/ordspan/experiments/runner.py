"""Run the experiments in parallel; finished work is kept, so that a killed run goes on."""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from itertools import count, product
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

import ordspan
from ordspan.core.state import Floats
from ordspan.datasets import Dataset
from ordspan.experiments import hindsight, protocol
from ordspan.experiments.hindsight import HINDSIGHT_RUNS
from ordspan.experiments.protocol import GRID, RULE, TUNING_RUNS, Curve
from ordspan.experiments.results import HINDSIGHT, Results, load_arrays, table_type
from ordspan.models.atomic import opened_atomically, write_atomically

BOUNDED = Curve("PA-I")
"""The curve whose theorem bounds the sum of hinge losses; the others bound their squares."""

BLOCK = 5
"""Runs of a task: more would lose more to a kill, fewer would wait more often for the disk."""

StepCallback = Callable[[str, int, int], object]
"""Called as ``progress(what, done, total)`` after each task."""

Strengths = dict[tuple[int, str], float]
"""The chosen C by percentage and curve."""


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
        return protocol.curves(self.algorithms, average=self.average, solver=self.solver)

    def streams(self, data: Dataset, kind: int, run: int) -> Iterator[protocol.TrialStream]:
        """The trials of a run, for each of the percentages."""
        return protocol.streams(data, self.labels, self.seed, kind, run, self.trials)


class OtherSettings(ValueError):  # noqa: N818 - the name describes the problem
    """The folder contains results with other settings."""


def settings(plan: Plan, unavailable: dict[str, str]) -> dict[str, Any]:
    """Everything the results depend on, and details for the report."""
    packages = ("numpy", "numba", "scikit-learn", "scipy")
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
    progress: StepCallback = lambda what, done, total: None,
) -> Results:
    """Run the remaining work, and keep the table of results in ``results.npz``.

    The table is the same to the byte for the same settings, whatever ``jobs`` is and however
    often the run was interrupted.

    Parameters
    ----------
    plan : Plan
        What to run.
    folder : Path
        Where ``results.npz`` is written; until then, finished work is kept in ``cells`` there.
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
    path, cells = folder / "results.npz", folder / "cells"
    if overwrite:
        path.unlink(missing_ok=True)
        shutil.rmtree(cells, ignore_errors=True)
    if path.exists():
        results = Results.load(path)
        refuse_other(results.settings, chosen, folder)
        return results
    note = cells / "settings.json"
    if note.exists():
        refuse_other(json.loads(note.read_text(encoding="utf-8")), chosen, folder)
    else:
        cells.mkdir(parents=True, exist_ok=True)
        write_atomically(note, json.dumps(chosen).encode())
    table = run_tasks(plan, cells, jobs, progress)
    results = Results(table, protocol.kept_trials(plan.trials), chosen)
    results.save(path)
    shutil.rmtree(cells)
    return results


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


def run_tasks(plan: Plan, cells: Path, jobs: int, progress: StepCallback) -> NDArray[Any]:
    """Choose every C, run everything with it, and put the results into one table."""
    threads = Parallel(n_jobs=jobs, prefer="threads", return_as="generator")
    blocks = [range(plan.runs)[start : start + BLOCK] for start in range(0, plan.runs, BLOCK)]
    done, total = count(1), len(plan.datasets) * (TUNING_RUNS + len(blocks))

    def finished(*tasks: tuple[Any, ...]) -> list[NDArray[Any]]:
        """The results of tasks (name, function, arguments) in their order."""
        results = []
        for array in threads(delayed(kept)(*task) for task in tasks):
            results.append(array)
            progress(tasks[len(results) - 1][0], next(done), total)
        return results

    def kept(name: str, task: Callable[..., NDArray[Any]], *arguments: Any) -> NDArray[Any]:
        """The result of a task, which is kept in a file: an earlier one is read."""
        path = cells / f"{name}.npy"
        if not path.exists():
            array = task(plan, *arguments)
            with opened_atomically(path) as file:
                np.save(file, array)
        return load_arrays(path)

    tables = []
    for data in plan.datasets:
        tuning = ((f"{data.name} C {run}", tuning_run, data, run) for run in range(TUNING_RUNS))
        chosen = best_strengths(plan, np.sum(finished(*tuning), axis=0))
        runs = ((f"{data.name} {block[0]}", run_sums, data, chosen, block) for block in blocks)
        sums = np.concatenate(finished(*runs)).swapaxes(0, 1)
        # in this thread: it is Python that would keep the compiled code of others waiting
        paths = kept(f"{data.name} paths", first_paths, data, chosen)
        tables.append(data_table(plan, data, chosen, paths, sums))
    return np.concatenate(tables)


def tuning_run(plan: Plan, data: Dataset, run: int) -> NDArray[Any]:
    """Total error to the labels trained on, (percentages, curves, grid)."""
    curves = [curve for curve in plan.curves if curve.is_tunable]
    totals = [
        [[one_curve(data, curve, C, stream)[1, -1] for C in GRID] for curve in curves]
        for stream in plan.streams(data, protocol.TUNING, run)
    ]
    return np.array(totals, dtype=np.int64).reshape(len(plan.labels), -1, len(GRID))


def one_curve(
    data: Dataset, curve: Curve, C: float | None, stream: protocol.TrialStream
) -> NDArray[np.uint32]:
    """The sums of the errors of a curve on a stream."""
    learner = curve.learner(data.X.shape[1], data.n_classes, C, stream.seed)
    predicted = protocol.predictions(learner, curve, stream)
    return protocol.error_sums(predicted, stream, *stream.labels(curve))


def best_strengths(plan: Plan, errors: NDArray[Any]) -> Strengths:
    """The C with the fewest errors, by percentage and curve; the smaller one of equals."""
    names = [curve.name for curve in plan.curves if curve.is_tunable]
    best = (GRID[number] for number in errors.argmin(axis=-1).ravel())
    return dict(zip(product(plan.labels, names), best, strict=True))


def run_sums(plan: Plan, data: Dataset, chosen: Strengths, runs: range) -> NDArray[np.uint32]:
    """Sums of errors, (runs, curves of all percentages, 2, trials)."""
    return np.array([one_run(plan, data, chosen, run) for run in runs])


def one_run(plan: Plan, data: Dataset, chosen: Strengths, run: int) -> list[NDArray[np.uint32]]:
    """Sums of errors of the curves, and last of the fixed ranker, for each of the percentages."""
    rows = []
    exact: dict[Curve, NDArray[np.uint32]] = {}  # the same under every percentage
    sampled = plan.streams(data, protocol.REPORTED, run)
    for percent, stream in zip(plan.labels, sampled, strict=True):
        for curve in plan.curves:
            if curve not in exact:
                sums = one_curve(data, curve, chosen.get((percent, curve.name)), stream)
                if not curve.uses_intervals:
                    exact[curve] = sums
            rows.append(exact.get(curve, sums))
        fixed = np.zeros_like(sums)
        if run < HINDSIGHT_RUNS:
            predicted = hindsight.best_fixed(stream, data.n_classes).predictions(stream.X)
            fixed = protocol.error_sums(predicted, stream, stream.lower, stream.upper)
        rows.append(fixed)
    return rows


def first_paths(plan: Plan, data: Dataset, chosen: Strengths) -> Floats:
    """Losses, bounds and thresholds along the first run; NaN for what a curve has not."""
    rows = []
    n_trials = protocol.kept_trials(plan.trials).size
    sampled = plan.streams(data, protocol.REPORTED, 0)
    for percent, stream in zip(plan.labels, sampled, strict=True):
        best = hindsight.best_fixed(stream, data.n_classes)
        for curve in plan.curves:
            row = np.full((1 + data.n_classes, n_trials), np.nan)
            C = chosen.get((percent, curve.name), 1.0)
            new = partial(curve.learner, data.X.shape[1], data.n_classes, C, stream.seed)
            if curve.has_losses:
                row[0] = hindsight.cumulative(hindsight.learner_losses(new(), curve, stream))
            if curve == BOUNDED:
                row[1] = hindsight.bound_along(best, stream, data.n_classes, C)
            if curve.has_thresholds:
                row[2:] = protocol.thresholds_along(new(), curve, stream).T
            rows.append(row)
        rows.append(np.full_like(row, np.nan))
        rows[-1][0] = hindsight.cumulative(best.losses)
    return np.array(rows)


def data_table(
    plan: Plan, data: Dataset, chosen: Strengths, paths: Floats, sums: NDArray[np.uint32]
) -> NDArray[Any]:
    """The rows of one data set."""
    names = list(product(plan.labels, [*(curve.name for curve in plan.curves), HINDSIGHT]))
    most_grades = max(each.n_classes for each in plan.datasets)
    table = np.zeros(len(names), table_type(plan.runs, sums.shape[-1], most_grades - 1))
    table["dataset"] = data.name
    table["labels"], table["algorithm"] = zip(*names, strict=True)
    table["C"] = [chosen.get(name, np.nan) for name in names]
    is_fixed = table["algorithm"] == HINDSIGHT
    table["runs"] = np.where(is_fixed, min(plan.runs, HINDSIGHT_RUNS), plan.runs)
    table["error_sums"], table["interval_error_sums"] = np.moveaxis(sums, 2, 0)
    table["losses"], table["bounds"] = paths[:, 0], paths[:, 1]
    table["thresholds"] = np.nan
    table["thresholds"][..., : data.n_classes - 1] = paths[:, 2:].swapaxes(1, 2)
    return table
