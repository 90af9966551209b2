"""Train a model from files of any size, with checkpoints to resume from."""

from __future__ import annotations

import time
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ordspan.atomic import write_atomically
from ordspan.catalog import ESTIMATORS, SVM
from ordspan.checkpoint import sole_writer
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
from ordspan.commands.train_rows import ends_of, portions
from ordspan.commands.train_run import ROWS_AT_ONCE, Run
from ordspan.core.measures import distance
from ordspan.files.batch import FileError
from ordspan.files.features import stack_rows
from ordspan.files.limits import memory_limit
from ordspan.files.opening import expand
from ordspan.modelfile import to_bytes

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
            run = Run(job, path, pipe=StoppablePipe(stop, pipe) if job.is_pipe else None)
        if resume:
            run.resume()
        elif not continued:  # its rows would be lost
            run.checkpoint.remove()
        at_start = run.progress.learned
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
    return run.summary(run.progress.learned - at_start, resume, clock.seconds())


def _learn_all(run: Run, every: Every, stop: Stop, report: TrainReport | None) -> None:
    """Make the remaining passes.

    Write a checkpoint if stopped, and on an error of a pipe, whose rows cannot be read again.
    """
    try:
        for epoch in range(run.progress.cursor.epoch, run.job.passes):
            _one_pass(run, epoch, every, stop, report)
            run.end_pass()
            if run.progress.learned == 0:
                raise FileError(f"{run.files[0]}: no usable row; {run.bad.summary()}")
        run.check_skipped()
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


def _one_pass(run: Run, epoch: int, every: Every, stop: Stop, report: TrainReport | None) -> None:
    """Learn from the cursor to the end of the files, with checkpoints."""
    size = run.buffer or min(every.rows or ROWS_AT_ONCE, ROWS_AT_ONCE)
    rows_then, time_then = run.progress.learned, time.monotonic()
    # a pipe checks itself when all rows received so far are learned
    check = Stop() if run.job.is_pipe else stop
    batches = check.between(run.batches(epoch))
    cut = portions(batches, size, whole=run.buffer > 0, from_pipe=run.job.is_pipe)
    for portion in check.between(cut):
        run.learn(portion)
        since = run.progress.learned - rows_then
        if (every.rows and since >= every.rows) or (
            every.seconds and time.monotonic() - time_then >= every.seconds
        ):
            run.save_checkpoint()
            rows_then, time_then = run.progress.learned, time.monotonic()
        if report is not None:
            report(run.progress.learned, run.progress.running_mae, run.share)
    stop.check()


def fit_at_once(run: Run, stop: Stop, report: TrainReport | None) -> None:
    """Read all rows into memory, if they fit, and find the optimum."""
    from ordspan.estimators import OrdinalSVM
    from ordspan.estimators.calibrated import CalibratedOrdinal

    parts, ends, n_bytes, limit = [], [], 0, memory_limit()
    for batch in stop.between(run.batches(0)):
        kept = batch.only(~run.is_held_out(batch))
        run.progress.good += len(batch)
        if len(kept):
            parts.append(run.features(kept))
            ends.append(ends_of([kept]))
            run.progress.learned += len(kept)
            dense = isinstance(parts[-1], np.ndarray)
            n_bytes += parts[-1].nbytes if dense else 12 * parts[-1].nnz
        run.note_progress(batch)
        needed = 2 * n_bytes / max(run.share or 1.0, 1e-9)  # in parts, then stacked
        if needed > limit:
            raise FileError(
                f"the svm needs all rows in memory, about {needed / 1e9:.1f} GB, but the limit is "
                f"{limit / 1e9:.1f} GB, half of the available memory; use the learner pa, or "
                "fewer rows"
            )
        if report is not None:
            report(run.progress.learned, float("nan"), run.share)
    if not parts:
        raise FileError(f"{run.files[0]}: no usable row; {run.bad.summary()}")
    X, (lower, upper) = (
        stack_rows(parts),
        (np.concatenate(side) for side in zip(*ends, strict=True)),
    )
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
        "bytes": n_bytes,
        "fitted_mae": float(distance(run.learner.predict_many(X), lower, upper).mean()),
    }
    run.progress.skipped = run.bad.count
    run.check_skipped()
