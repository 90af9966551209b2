"""Train a model from files of any size, with checkpoints to resume from."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ordspan.catalog import ESTIMATORS, SVM
from ordspan.clock import Clock
from ordspan.commands.model_path import (
    check_model_path,
    continue_hint,
    is_own_checkpoint,
    refuse_to_overwrite,
)
from ordspan.commands.outputs import report_full_disk
from ordspan.commands.stopping import Stop, StoppablePipe, Stopped
from ordspan.commands.train_job import TrainJob
from ordspan.commands.train_progress import TrainReport
from ordspan.commands.train_run import Run
from ordspan.core.measures import distance
from ordspan.models.atomic import write_atomically
from ordspan.models.checkpoint import sole_writer
from ordspan.models.file import to_bytes
from ordspan.tables.files import expand
from ordspan.tables.reading import ROWS_AT_ONCE
from ordspan.tables.rows import Cursor, FileError, memory_limit

DEFAULT_SECONDS = 60.0


@dataclass(frozen=True)
class Every:
    """How often to write a checkpoint: rows or seconds between two; 0 disables either."""

    rows: int = 0
    seconds: float = DEFAULT_SECONDS


EVERY_MINUTE = Every()


def train(
    job: TrainJob,
    out: str | Path,
    *,
    every: Every = EVERY_MINUTE,
    resume: bool = False,
    overwrite: bool = False,
    stop: Stop | None = None,
    pipe: BinaryIO | None = None,
    report: TrainReport | None = None,
) -> dict[str, Any]:
    """Train from files and write the model; if stopped, write a checkpoint and raise `Stopped`.

    Parameters
    ----------
    job : TrainJob
        What to train.
    out : path
        Where to write the model.
    every : Every
        How often to write a checkpoint, named ``out`` plus .checkpoint.
    resume : bool
        Resume from the checkpoint, which must exist; the model is byte for byte the same as
        without the interruption.
    overwrite : bool
        Replace an existing model.
    stop : Stop, optional
        Requests an early end.
    pipe : binary file, optional
        Read instead of standard input.
    report : callable, optional
        Called after each portion of rows.

    Returns
    -------
    dict
        A summary in plain values.
    """
    path, stop, clock = Path(out), stop or Stop(), Clock()
    check_model_path(path, expand(job.files))
    if resume and job.learner == SVM:
        raise ValueError(
            "the svm is fitted in one step and has no checkpoints; train without resuming"
        )
    with sole_writer(path):
        continued = is_own_checkpoint(path, job.start, pipe=job.is_pipe)
        if not (overwrite or resume):
            refuse_to_overwrite(path, pipe=job.is_pipe, continued=continued)
        with stop.at_any_moment():
            source = StoppablePipe(stop, pipe) if job.is_pipe else None
            run = Run(job, path, pipe=source, resume=resume)
        if resume:
            run.resume()
        elif not continued:  # its rows would be lost
            run.checkpoint.remove()
        at_start = run.progress.learned
        if run.staged:
            stage(run, stop)
        if run.kind == ESTIMATORS[SVM]:
            fit_at_once(run, stop, report)
        else:
            _learn_all(run, every, stop, report)
        if job.hold_out:
            try:
                with stop.at_any_moment():
                    run.training["held_out"] = run.held_out()
            except Stopped:
                if job.learner != SVM:
                    run.save_checkpoint()
                raise
        with report_full_disk(str(path)):
            write_atomically(path, to_bytes(run.model()))
        run.checkpoint.remove()
        run.staging.remove()
    return run.summary(run.progress.learned - at_start, resume, clock.seconds())


def _learn_all(run: Run, every: Every, stop: Stop, report: TrainReport | None) -> None:
    """Make the remaining passes.

    Write a checkpoint if stopped, and on an error of a pipe, whose rows cannot be read again.
    """
    saved, size = Saved(run, every), min(every.rows or ROWS_AT_ONCE, ROWS_AT_ONCE)
    try:
        for epoch in range(run.progress.cursor.epoch, run.job.passes):
            for _ in _one_pass(run, epoch, size, stop):
                saved.save_if_due()
                if report is not None:
                    report(run.progress.learned, run.progress.running_mae, run.share)
            stop.check()
            run.end_pass()
            if run.progress.learned == 0:
                raise FileError(f"{run.files[0]}: no usable row; {run.bad.summary()}")
        run.check_skipped()
        if run.staged:
            run.calibrate()
    except Stopped:
        if run.progress.learned or not run.job.is_pipe:
            run.save_checkpoint()
        raise
    except Exception as error:
        if run.job.is_pipe and run.progress.learned and (path := run.checkpoint.path):
            with suppress(OSError, FileError):  # report the first error
                run.save_checkpoint()
                error.add_note(
                    f"{path} holds the model after {run.progress.learned:,} rows of this pipe; "
                    f"continue it with {continue_hint(path, pipe=True)}"
                )
        raise


class Saved:
    """When the last checkpoint was written."""

    def __init__(self, run: Run, every: Every) -> None:
        self._run, self._every = run, every
        self._rows, self._time = run.progress.learned, time.monotonic()

    def save_if_due(self) -> None:
        """Write a checkpoint after so many rows or seconds."""
        rows, seconds = self._run.progress.learned - self._rows, time.monotonic() - self._time
        due = self._every.rows and rows >= self._every.rows
        if due or (self._every.seconds and seconds >= self._every.seconds):
            self._run.save_checkpoint()
            self._rows, self._time = self._run.progress.learned, time.monotonic()


def stage(run: Run, stop: Stop) -> None:
    """Keep the rows of the files as numbers, to read them in any order."""
    try:
        with report_full_disk(str(run.staging.folder)):
            run.stage(stop)
    except BaseException:
        run.staging.remove()
        raise


def _one_pass(run: Run, epoch: int, size: int, stop: Stop) -> Iterator[None]:
    """Learn from the cursor to the end of a pass, so many rows at a time."""
    if not run.staged:
        # a pipe checks itself when all rows received so far are learned
        check = Stop() if run.job.is_pipe else stop
        for batch in check.between(run.reader.batches(run.progress.cursor, size)):
            run.learn_batch(batch)
            yield
        return
    order = run.order(epoch)
    for begin in stop.between(range(run.progress.cursor.row, order.size, size)):
        rows = order[begin : begin + size]
        run.learn(*run.staging.take(rows), f"row {rows[0] + 1} of the files")
        run.progress.cursor = Cursor(epoch, row=begin + rows.size)
        run.share = (epoch + (begin + rows.size) / order.size) / run.job.passes
        yield


def fit_at_once(run: Run, stop: Stop, report: TrainReport | None) -> None:
    """Read all rows into memory, if they fit, and find the optimum."""
    from ordspan.estimators import OrdinalSVM
    from ordspan.estimators.calibrated import CalibratedOrdinal

    needed, limit = 2.0 * run.staging.n_bytes, memory_limit()
    if needed > limit:
        raise FileError(
            f"the svm needs all rows in memory, about {needed / 1e9:.1f} GB, but the limit is "
            f"{limit / 1e9:.1f} GB, half of the available memory; use the learner pa, or "
            "fewer rows"
        )
    X, lower, upper = run.staging.take(run.rows)
    run.progress.learned = lower.size
    if report is not None:
        report(run.progress.learned, float("nan"), 1.0)
    stop.check()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        calibrated = CalibratedOrdinal(OrdinalSVM(**run.parameters), random_state=run.job.seed)
        calibrated.fit(X, run.classes[np.column_stack([lower, upper]) - 1])
    run.notes += list(dict.fromkeys(str(warning.message) for warning in caught))
    model, run.calibration = calibrated.estimator_, calibrated.calibration_
    run.learner = model.learner_
    run.fitted = {name: getattr(model, name) for name in OrdinalSVM._fitted_numbers}
    run.labels.add(lower, upper)
    run.training |= {
        "sweeps": int(model.n_iter_),
        "bytes": run.staging.n_bytes,
        "fitted_mae": float(distance(run.learner.predict_many(X), lower, upper).mean()),
    }
