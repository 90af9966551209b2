"""Run the paper's experiments in parallel, and write everything that is made from the results.

Finished work is kept, so that a killed run goes on.
"""

import json
import shutil
import zlib
from collections.abc import Callable, Sequence
from importlib.metadata import version
from itertools import count, product
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

import ordspan
from ordspan.commands.jobs import ReproduceJob
from ordspan.datasets import Dataset, DataUnavailable, load_dataset
from ordspan.experiments import protocol
from ordspan.experiments.claims import Claim, make_claims
from ordspan.experiments.protocol import FIXED, GRID, HINDSIGHT_RUNS, Curve, kept_trials
from ordspan.experiments.report import make_panels, report_page, write_figures
from ordspan.experiments.results import Results, table_type, write_table
from ordspan.models.atomic import check_can_write, opened_atomically
from ordspan.wording import check_choice

BLOCK = 5
"""Runs of a task: more would lose more to a kill, fewer would wait more often for the disk."""
StepCallback = Callable[[str, int, int], object]
"""Called as ``progress(what, done, total)`` after each task."""


Outcome = tuple[Results, list[dict[str, Any]], list[Claim]]
"""The results of a folder, and the summary and the claims that were made from them."""


def reproduce(job: ReproduceJob, progress: StepCallback) -> Outcome:
    """Run the experiments, or only draw them again, and write everything to a folder."""
    if job.report_only is not None:
        return write_outputs(Path(job.report_only))
    for name in job.algorithms:
        check_choice("algorithm", name, protocol.ALGORITHMS + protocol.CITED_ALGORITHMS)
    out = Path(job.out)
    if out.exists() and not out.is_dir():
        raise NotADirectoryError(f"{out} is a file, not a folder; choose another --out")
    parent = next(folder for folder in (out, *out.parents) if folder.is_dir())
    check_can_write(parent / out.name)  # before there is work to lose
    datasets, unavailable = [], {}
    for name in dict.fromkeys(job.datasets):
        try:
            datasets.append(load_dataset(name, job.data_dir))
        except DataUnavailable as reason:
            unavailable[name] = str(reason)
    if not datasets:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in unavailable.items())
        raise LookupError(f"nothing to run. {reasons}")
    out.mkdir(parents=True, exist_ok=True)
    run(job, datasets, unavailable, progress)
    return write_outputs(out)


def write_outputs(folder: Path) -> Outcome:
    """Write summary, figures, claims and page from the table of results of a folder."""
    if not (folder / "results.npz").exists():
        raise FileNotFoundError(f"{folder} has no results.npz; run ordspan reproduce first")
    results = Results.load(folder / "results.npz")
    summary, claims, panels = results.summary(), make_claims(results), make_panels(results)
    write_table(summary, folder / "summary.csv")
    write_table([claim._asdict() for claim in claims], folder / "claims.csv")
    write_figures(results, panels, folder)
    page = report_page(results, panels, claims, summary)
    (folder / "report.html").write_text(page, encoding="utf-8", newline="\n")
    return results, summary, claims


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
    settings = {
        "datasets": [data.name for data in datasets],
        "algorithms": [curve.name for curve in protocol.curves_of(job)],
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
            data.name: zlib.crc32(data.ranks.data, zlib.crc32(data.X.data)) for data in datasets
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
    table = run_tasks(job, datasets, cells, progress)
    # why a data set is missing may change between runs and affects no result
    settings["unavailable"] = unavailable or {}
    results = Results(table, kept_trials(job.trials), settings)
    results.save(path)
    shutil.rmtree(cells)
    return results


def run_tasks(
    job: ReproduceJob, datasets: Sequence[Dataset], cells: Path, progress: StepCallback
) -> NDArray[Any]:
    """Choose every C, run everything with it, and put the results into one table."""
    threads = Parallel(n_jobs=job.jobs or -1, prefer="threads", return_as="generator")
    blocks = [range(job.runs)[start : start + BLOCK] for start in range(0, job.runs, BLOCK)]
    done, total = count(1), len(datasets) * (protocol.TUNING_RUNS + len(blocks))

    def kept(name: str, task: Callable[..., NDArray[Any]], *arguments: Any) -> NDArray[Any]:
        """The result of a task, which is kept in a file: an earlier one is read."""
        path = cells / f"{name}.npy"
        try:
            return np.load(path)
        except (OSError, EOFError, ValueError):  # not there yet, or damaged
            array = task(*arguments)
        with opened_atomically(path) as file:
            np.save(file, array)
        return array

    def finished(tasks: dict[str, tuple[Any, ...]]) -> list[NDArray[Any]]:
        """The results of tasks (function, arguments) by name, in their order."""
        results = threads(delayed(kept)(name, *task) for name, task in tasks.items())
        arrays = []
        for name, array in zip(tasks, results, strict=True):
            arrays.append(array)
            progress(name, next(done), total)
        return arrays

    tables = []
    n_thresholds = max(data.n_classes for data in datasets) - 1
    for data in datasets:
        one, name = Experiment(job, data), data.name
        tuning = {f"{name} C {run}": (one.tuning_run, run) for run in range(protocol.TUNING_RUNS)}
        best = np.sum(finished(tuning), axis=0).argmin(axis=1)  # the smaller C of equals
        tuned = product(job.fractions, one.tunable)
        one.strengths = {key: GRID[number] for key, number in zip(tuned, best, strict=True)}
        sums = finished({f"{name} {block[0]}": (one.error_runs, block) for block in blocks})
        # in this thread: it runs Python, whose lock would hold up the compiled code of others
        table = kept(f"{name} table", one.table_without_errors, n_thresholds)
        table["error_sums"], table["interval_error_sums"] = np.vstack(sums).transpose(2, 1, 0, 3)
        tables.append(table)
    return np.concatenate(tables)


class Experiment:
    """The runs of one data set."""

    def __init__(self, job: ReproduceJob, data: Dataset) -> None:
        self.job, self.data = job, data
        self.curves = protocol.curves_of(job)
        self.tunable = [curve for curve in self.curves if curve.is_tunable]
        self.rows = list(product(job.fractions, [*self.curves, FIXED]))
        self.strengths: dict[tuple[int, Curve], float] = {}  # the chosen C

    def tuning_run(self, run: int) -> NDArray[np.int64]:
        """Total error to the labels trained on, (curves of all percentages, grid)."""
        totals = [
            [protocol.errors_along(self.data, curve, C, stream)[1, -1] for C in GRID]
            for stream in protocol.streams(self.job, self.data, protocol.TUNING, run).values()
            for curve in self.tunable
        ]
        return np.array(totals, dtype=np.int64).reshape(-1, len(GRID))

    def error_runs(self, runs: range) -> NDArray[np.uint32]:
        """Sums of errors, (runs, rows, 2, trials); zeros for the fixed ranker beyond its runs."""
        n_rows, n_kept = len(self.rows), kept_trials(self.job.trials).size
        sums = np.zeros((len(runs), n_rows, 2, n_kept), dtype=np.uint32)
        for sums_of_run, run in zip(sums, runs, strict=True):
            streams = protocol.streams(self.job, self.data, protocol.REPORTED, run)
            for number, (percent, curve) in enumerate(self.rows):
                C = self.strengths.get((percent, curve))
                if not curve.uses_intervals and percent != self.job.fractions[0]:
                    # exact labels are the same under every percentage
                    sums_of_run[number] = sums_of_run[number % (len(self.curves) + 1)]
                elif curve != FIXED or run < HINDSIGHT_RUNS:
                    stream = streams[percent]
                    sums_of_run[number] = protocol.errors_along(self.data, curve, C, stream)
        return sums

    def table_without_errors(self, n_thresholds: int) -> NDArray[Any]:
        """The rows of the data set with the first run's losses, bounds and thresholds."""
        job, n_classes = self.job, self.data.n_classes
        columns = table_type(job.runs, kept_trials(job.trials).size, n_thresholds)
        table = np.zeros(len(self.rows), columns)
        for column in ("losses", "bounds", "thresholds"):
            table[column] = np.nan  # where a curve has none
        streams = protocol.streams(job, self.data, protocol.REPORTED, 0)
        fixed = {percent: protocol.best_fixed(streams[percent], n_classes) for percent in streams}
        for row, (percent, curve) in zip(table, self.rows, strict=True):
            stream, C = streams[percent], self.strengths.get((percent, curve))
            row["dataset"], row["labels"], row["algorithm"] = self.data.name, percent, curve.name
            row["C"] = np.nan if C is None else C
            row["runs"] = min(job.runs, HINDSIGHT_RUNS) if curve == FIXED else job.runs
            if curve == FIXED:
                row["losses"] = protocol.cumulative(fixed[percent][1])
            elif curve.has_thresholds:
                losses = protocol.learner_losses(curve.learner(self.data, C), curve, stream)
                row["losses"] = protocol.cumulative(losses)
                path = protocol.thresholds_along(curve.learner(self.data, C), curve, stream)
                row["thresholds"][:, : n_classes - 1] = path
            if curve.name == "PA-I" and C is not None:
                # its theorem bounds the sum of hinge losses, those of the others their squares
                row["bounds"] = protocol.bound_along(*fixed[percent], stream, n_classes, C)
        return table
