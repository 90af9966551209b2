"""Run the paper's experiments in parallel, and write everything that is made from the results.

Finished work is kept, so that a killed run goes on.
"""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Callable, Sequence
from importlib.metadata import version
from itertools import count, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

import ordspan
from ordspan.commands.jobs import ReproduceJob
from ordspan.core.state import Floats
from ordspan.datasets import NAMES, Dataset, DataUnavailable, load_dataset
from ordspan.experiments import protocol
from ordspan.experiments.claims import Claim, make_claims
from ordspan.experiments.figures import make_panels, write_figures
from ordspan.experiments.protocol import (
    FIXED,
    GRID,
    HINDSIGHT_RUNS,
    Curve,
    TrialStream,
    kept_trials,
)
from ordspan.experiments.report import report_page
from ordspan.experiments.results import Results, SummaryRow, load_arrays, table_type, write_table
from ordspan.models.atomic import check_can_write, opened_atomically

BOUNDED = Curve("PA-I")
"""The curve whose theorem bounds the sum of hinge losses; the others bound their squares."""
BLOCK = 5
"""Runs of a task: more would lose more to a kill, fewer would wait more often for the disk."""
StepCallback = Callable[[str, int, int], object]
"""Called as ``progress(what, done, total)`` after each task."""


class Outcome(NamedTuple):
    """The results of a folder, and what was made from them."""

    results: Results
    summary: list[SummaryRow]
    claims: list[Claim]


def reproduce(job: ReproduceJob, progress: StepCallback) -> Outcome:
    """Run the experiments, or only draw them again, and write everything to a folder."""
    if job.report_only is not None:
        return write_outputs(Path(job.report_only))
    for what, names, known in (
        ("data set", job.datasets, NAMES),
        ("algorithm", job.algorithms, protocol.ALGORITHMS + protocol.CITED_ALGORITHMS),
    ):
        for name in names:
            if name not in known:
                raise ValueError(f"unknown {what} {name!r}; choose from {', '.join(known)}")
    out = Path(job.out)
    if out.exists() and not out.is_dir():
        raise NotADirectoryError(f"{out} is a file, not a folder; choose another --out")
    parent = next(folder for folder in (out, *out.parents) if folder.is_dir())
    check_can_write(parent / out.name)  # before there is work to lose
    datasets, unavailable = load_datasets(job.datasets, job.data_dir)
    if not datasets:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in unavailable.items())
        raise LookupError(f"nothing to run. {reasons}")
    out.mkdir(parents=True, exist_ok=True)
    run(job, datasets, unavailable, progress)
    return write_outputs(out)


def load_datasets(
    names: Sequence[str], data_dir: str | None
) -> tuple[list[Dataset], dict[str, str]]:
    """The data sets that are available, and by name how to get the others."""
    datasets, unavailable = [], {}
    for name in dict.fromkeys(names):
        try:
            datasets.append(load_dataset(name, data_dir))
        except DataUnavailable as reason:
            unavailable[name] = f"{reason.reason}; {reason.way_to_get_it}"
    return datasets, unavailable


def write_outputs(folder: Path) -> Outcome:
    """Write summary, figures, claims and page from the table of results of a folder."""
    if not (folder / "results.npz").exists():
        raise FileNotFoundError(f"{folder} has no results.npz; run ordspan reproduce first")
    results = Results.load(folder / "results.npz")
    summary, claims, panels = results.summary(), make_claims(results), make_panels(results)
    write_table(summary, folder / "summary.csv")
    write_table(claims, folder / "claims.csv")
    write_figures(results, panels, folder)
    page = report_page(results, panels, claims, summary)
    (folder / "report.html").write_text(page, encoding="utf-8", newline="\n")
    return Outcome(results, summary, claims)


def run(
    job: ReproduceJob,
    datasets: Sequence[Dataset],
    unavailable: dict[str, str] | None = None,
    progress: StepCallback = lambda what, done, total: None,
) -> Results:
    """Run the remaining work, and keep the table of results in ``results.npz`` of ``job.out``.

    The table is the same to the byte for the same settings, whatever ``job.jobs`` is and however
    often the run was interrupted. Until it is written, finished work is kept in a folder beside
    it, named by the settings.

    Parameters
    ----------
    job : ReproduceJob
        What to run.
    datasets : sequence of Dataset
        The data sets to run it on.
    unavailable : dict, optional
        Missing data sets and the reasons, for the report.
    progress : callable, optional
        Called after each task.
    """
    experiments = [Experiment(job, data) for data in datasets]
    settings = {
        "datasets": [data.name for data in datasets],
        "algorithms": [curve.name for curve in experiments[0].curves],
        "fractions": list(job.fractions),
        "runs": job.runs,
        "trials": job.trials,
        "seed": job.seed,
        "grid": list(GRID),
        "rule": protocol.RULE,
        "hindsight_runs": min(job.runs, HINDSIGHT_RUNS),
        "version": ordspan.__version__,
        "versions": {name: version(name) for name in ("numpy", "numba", "scikit-learn", "scipy")},
        "sources": {data.name: data.source for data in datasets},
        "sums": {
            data.name: zlib.crc32(data.ranks.data, zlib.crc32(np.ascontiguousarray(data.X).data))
            for data in datasets
        },
        "n_classes": {data.name: data.n_classes for data in datasets},
        "truth_mae": {data.name: data.truth.mae for data in datasets if data.truth},
    }
    path = Path(job.out, "results.npz")
    if path.exists() and not job.overwrite:
        results = Results.load(path)
        for name, value in settings.items():
            if (earlier := results.settings.get(name)) != value:
                raise ValueError(
                    f"{job.out} holds results with {name} {earlier!r}, not {value!r}; choose "
                    "another folder with --out, or discard them with --overwrite"
                )
        return results
    cells = Path(job.out, f"cells-{zlib.crc32(json.dumps(settings).encode()):08x}")
    cells.mkdir(parents=True, exist_ok=True)
    table = run_tasks(experiments, cells, progress)
    # why a data set is missing may change between runs and affects no result
    settings["unavailable"] = unavailable or {}
    results = Results(table, kept_trials(job.trials), settings)
    results.save(path)
    shutil.rmtree(cells)
    return results


def run_tasks(experiments: list[Experiment], cells: Path, progress: StepCallback) -> NDArray[Any]:
    """Choose every C, run everything with it, and put the results into one table."""
    job = experiments[0].job
    threads = Parallel(n_jobs=job.jobs or -1, prefer="threads", return_as="generator")
    blocks = [range(job.runs)[start : start + BLOCK] for start in range(0, job.runs, BLOCK)]
    done, total = count(1), len(experiments) * (protocol.TUNING_RUNS + len(blocks))

    def kept(name: str, task: Callable[..., NDArray[Any]], *arguments: Any) -> NDArray[Any]:
        """The result of a task, which is kept in a file: an earlier one is read."""
        path = cells / f"{name}.npy"
        if not path.exists():
            array = task(*arguments)
            with opened_atomically(path) as file:
                np.save(file, array)
        return load_arrays(path)

    def finished(tasks: dict[str, tuple[Any, ...]]) -> list[NDArray[Any]]:
        """The results of tasks (function, arguments) by name, in their order."""
        results = threads(delayed(kept)(name, *task) for name, task in tasks.items())
        arrays = []
        for name, array in zip(tasks, results, strict=True):
            arrays.append(array)
            progress(name, next(done), total)
        return arrays

    tables = []
    thresholds = max(one.data.n_classes for one in experiments) - 1
    for one in experiments:
        name = one.data.name
        tuning = {f"{name} C {run}": (one.tuning_run, run) for run in range(protocol.TUNING_RUNS)}
        one.choose_strengths(np.sum(finished(tuning), axis=0))
        sums = finished({f"{name} {block[0]}": (one.error_runs, block) for block in blocks})
        # in this thread: it is Python that would keep the compiled code of others waiting
        paths = kept(f"{name} paths", one.first_paths)
        tables.append(one.table(np.concatenate(sums).swapaxes(0, 1), paths, thresholds))
    return np.concatenate(tables)


class Experiment:
    """The runs of one data set."""

    def __init__(self, job: ReproduceJob, data: Dataset) -> None:
        self.job, self.data = job, data
        self.curves = protocol.curves_of(job.algorithms, average=job.average, solver=job.solver)
        self.tunable = [curve for curve in self.curves if curve.is_tunable]
        self.rows = list(product(job.fractions, [*self.curves, FIXED]))
        self.strengths: dict[tuple[int, Curve], float] = {}  # the chosen C

    def streams(self, kind: int, run: int) -> dict[int, TrialStream]:
        """The trials of a run by percentage."""
        job = self.job
        sampled = protocol.streams(self.data, job.fractions, job.seed, kind, run, job.trials)
        return dict(zip(job.fractions, sampled, strict=True))

    def tuning_run(self, run: int) -> NDArray[np.int64]:
        """Total error to the labels trained on, (curves of all percentages, grid)."""
        totals = [
            [protocol.errors_along(self.data, curve, C, stream)[1, -1] for C in GRID]
            for stream in self.streams(protocol.TUNING, run).values()
            for curve in self.tunable
        ]
        return np.array(totals, dtype=np.int64).reshape(-1, len(GRID))

    def choose_strengths(self, errors: NDArray[np.int64]) -> None:
        """Take the C with the fewest errors, the smaller one of equals."""
        best = (GRID[number] for number in errors.argmin(axis=1))
        self.strengths = dict(zip(product(self.job.fractions, self.tunable), best, strict=True))

    def error_runs(self, runs: range) -> NDArray[np.uint32]:
        """Sums of errors, (runs, rows, 2, trials)."""
        return np.array([self.one_run(run) for run in runs])

    def one_run(self, run: int) -> list[NDArray[np.uint32]]:
        """Sums of errors of every row; zeros for the fixed ranker beyond its runs."""
        streams = self.streams(protocol.REPORTED, run)
        sums: dict[tuple[int, Curve], NDArray[np.uint32]] = {}
        for percent, curve in self.rows:
            C = self.strengths.get((percent, curve))
            if curve == FIXED and run >= HINDSIGHT_RUNS:
                sums[percent, curve] = np.zeros_like(sums[percent, self.curves[0]])
            elif curve.uses_intervals or percent == self.job.fractions[0]:
                sums[percent, curve] = protocol.errors_along(self.data, curve, C, streams[percent])
            else:  # exact labels are the same under every percentage
                sums[percent, curve] = sums[self.job.fractions[0], curve]
        return list(sums.values())

    def first_paths(self) -> Floats:
        """Losses, bounds and thresholds along the first run; NaN for what a curve has not."""
        streams, n_classes = self.streams(protocol.REPORTED, 0), self.data.n_classes
        best = {percent: protocol.best_fixed(streams[percent], n_classes) for percent in streams}
        shape = len(self.rows), 1 + n_classes, kept_trials(self.job.trials).size
        paths = np.full(shape, np.nan)
        for path, (percent, curve) in zip(paths, self.rows, strict=True):
            stream, C = streams[percent], self.strengths.get((percent, curve), 1.0)
            if curve == FIXED:
                path[0] = protocol.cumulative(best[percent].losses)
            elif curve.has_losses:
                learner = curve.learner(self.data, C)
                path[0] = protocol.cumulative(protocol.learner_losses(learner, curve, stream))
            if curve == BOUNDED:
                path[1] = protocol.bound_along(best[percent], stream, n_classes, C)
            if curve.has_thresholds:
                learner = curve.learner(self.data, C, stream.seed)
                path[2:] = protocol.thresholds_along(learner, curve, stream).T
        return paths

    def table(self, sums: NDArray[np.uint32], paths: Floats, thresholds: int) -> NDArray[Any]:
        """The rows of the data set."""
        job, columns = self.job, table_type(self.job.runs, sums.shape[-1], thresholds)
        table = np.zeros(len(self.rows), columns)
        table["dataset"] = self.data.name
        for row, (percent, curve) in zip(table, self.rows, strict=True):
            row["labels"], row["algorithm"] = percent, curve.name
            row["C"] = self.strengths.get((percent, curve), np.nan)
            row["runs"] = min(job.runs, HINDSIGHT_RUNS) if curve == FIXED else job.runs
        table["error_sums"], table["interval_error_sums"] = np.moveaxis(sums, 2, 0)
        table["losses"], table["bounds"] = paths[:, 0], paths[:, 1]
        table["thresholds"] = np.nan
        table["thresholds"][..., : self.data.n_classes - 1] = paths[:, 2:].swapaxes(1, 2)
        return table
