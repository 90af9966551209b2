"""Train a ranker from files of any size, with checkpoints from which it can go on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordspan.atomic import write_atomically
from ordspan.checkpoint import ENDING, Checkpoint, sole_writer
from ordspan.clock import Clock
from ordspan.commands.outputs import room_told
from ordspan.commands.stopping import Stop, Stopped
from ordspan.core.losses import distance
from ordspan.files.batch import BEGINNING, Batch, Cursor, FileError
from ordspan.files.features import DEFAULT_HASH_BITS, Scale, prepared, stacked
from ordspan.files.grades import LabelColumns
from ordspan.files.opening import FileOptions, expand, identity, is_sparse
from ordspan.files.reading import label_columns, open_rows
from ordspan.files.text import STDIN
from ordspan.learners.checks import DEFAULT_C
from ordspan.learners.checks import RowError as LearnerRowError
from ordspan.modelfile import to_bytes
from ordspan.tabular import TabularModel, make_learner

DEFAULT_SECONDS = 60.0
ROWS_AT_ONCE = 1 << 13
"""Scaled and learned together: many, because each portion costs some of Python's time, and few
enough that a stop or a checkpoint does not wait for long."""

BEGIN_ANEW = "use the same settings and files, or leave --resume out to begin anew"


@dataclass(frozen=True)
class TrainJob:
    """What to train, from which files: all that the resulting model depends on.

    Parameters
    ----------
    files : sequence of str
        Files and folders, or "-" for standard input.
    label, lower, upper, features, drop, text, hash_bits, standardise, on_bad_row :
        As in `ordspan.data.stream`.
    order : sequence, optional
        All grades from lowest to highest.
    options : FileOptions
        How to open the files.
    variant, C, average, balanced :
        Parameters of `ordspan.OrdinalPA`.
    passes : int
        How often to walk over the files.
    shuffle_buffer : int
        Shuffle the rows within windows of this many; 0 keeps their order.
    seed : int
        Seed of the shuffling.
    """

    files: Sequence[str]
    label: str | None = None
    lower: str | None = None
    upper: str | None = None
    order: Sequence[Any] | None = None
    features: Sequence[str] | None = None
    drop: Sequence[str] = ()
    text: Sequence[str] = ()
    hash_bits: int = DEFAULT_HASH_BITS
    standardise: bool = True
    on_bad_row: str = "raise"
    options: FileOptions = field(default_factory=FileOptions)
    variant: str = "PA-I"
    C: float = DEFAULT_C
    average: bool = True
    balanced: bool = True
    passes: int = 1
    shuffle_buffer: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("passes", 1), ("shuffle_buffer", 0), ("seed", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}")
        if self.passes > 1 and STDIN in self.files:
            raise ValueError("standard input can be read only once: passes must be 1")

    def told(self) -> dict[str, Any]:
        """All settings as plain values, for the model file."""
        told = asdict(self)
        told["order"] = None if self.order is None else [_plain(grade) for grade in self.order]
        return {k: list(v) if isinstance(v, tuple | list) else v for k, v in told.items()}

    def parameters(self, classes: NDArray[Any]) -> dict[str, Any]:
        """Parameters of the estimator to be."""
        return {
            "variant": self.variant,
            "C": self.C,
            "average": self.average,
            "balanced": self.balanced,
            "max_iter": self.passes,
            "shuffle": self.shuffle_buffer > 0,
            "classes": classes,
            "random_state": self.seed,
        }

    def label_columns(self) -> LabelColumns:
        """Where the labels stand."""
        columns = label_columns(self.label, self.lower, self.upper)
        if not columns.names() and not is_sparse(expand(self.files)[0], self.options):
            raise ValueError("no label: give --label COLUMN, or --lower and --upper")
        return columns


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


@dataclass
class Progress:
    """How far a run has come."""

    cursor: Cursor = BEGINNING
    rows: int = 0  # of this pass
    loss: int = 0  # sum of distances of this pass, predicted before learning
    mae: list[float] = field(default_factory=list)  # of every finished pass
    learned: int = 0  # rows of all passes
    skipped: int = 0  # bad rows before the cursor
    bad_rows: list[str] = field(default_factory=list)  # the first of them

    def told(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self) | {"cursor": list(self.cursor)}

    @classmethod
    def of(cls, told: dict[str, Any]) -> Progress:
        """What `told` told."""
        return cls(**told | {"cursor": Cursor(*told["cursor"])})

    @property
    def running_mae(self) -> float:
        """Mean distance of this pass so far."""
        return self.loss / max(1, self.rows)


Report = Callable[[int, float, float | None], None]
"""Called with the rows learned, the MAE of this pass, and the share of the work, if known."""


class Run:
    """One training run: reader, learner and scale, and how far they have come."""

    def __init__(self, job: TrainJob, out: Path, *, dask: bool = False) -> None:
        self.job = job
        self.out = out
        self.reader = open_rows(
            job.files,
            job.options,
            job.label_columns(),
            order=job.order,
            features=job.features,
            drop=job.drop,
            text=job.text,
            hash_bits=job.hash_bits,
            standardise=job.standardise,
            on_bad_row=job.on_bad_row,
        )
        assert self.reader.grades is not None
        self.files, self.bad = self.reader.files, self.reader.bad
        self.classes = self.reader.grades.classes
        recipe = self.reader.recipe
        self.scale = Scale(recipe.n_scaled)
        self.learner = make_learner(
            job.parameters(self.classes), recipe.n_features, self.classes.size
        )
        self.progress = Progress()
        self.checkpoint = Checkpoint(
            out.with_name(out.name + ENDING),
            job.told() | {"dask": dask},
            [identity(path) for path in self.files if path != STDIN],
            BEGIN_ANEW,
        )
        self.share: float | None = None

    def model(self) -> TabularModel:
        """The model as of now."""
        training = {
            "settings": self.job.told(),
            "rows": self.progress.learned,
            "skipped": self.progress.skipped,
            "mae": self.progress.mae,
        }
        reader = self.reader
        return TabularModel(
            self.learner,
            self.classes,
            self.job.parameters(self.classes),
            reader.recipe,
            self.scale,
            reader.columns,
            reader.options,
            training,
        )

    def save_checkpoint(self) -> None:
        """Write model and cursor, whole or not at all."""
        with room_told(str(self.checkpoint.path)):
            self.checkpoint.write(self.model(), self.progress.told())

    def resume(self) -> bool:
        """Go on from the checkpoint, if there is one."""
        if STDIN in self.files:
            raise ValueError(
                "standard input cannot be positioned, so --resume cannot go on; "
                "the checkpoint is a model file that can be used as it is"
            )
        found = self.checkpoint.read()
        if found is None:
            return False
        model, progress = found
        self.learner, self.scale = model.learner, model.scale
        self.progress = Progress.of(progress)
        self.bad.count = self.progress.skipped
        self.bad.examples = list(self.progress.bad_rows)
        return True

    def learn(self, batches: Sequence[Batch], order: NDArray[np.intp] | None) -> None:
        """Learn some rows, in the given order, and take note of how far that is."""
        first_pass = self.progress.cursor.walk == 0
        scale = self.scale if self.job.standardise else None
        parts = [prepared(self.reader.recipe, scale, b, learn=first_pass) for b in batches]
        lower = np.concatenate([b.lower for b in batches if b.lower is not None])
        upper = np.concatenate([b.upper for b in batches if b.upper is not None])
        try:
            predicted = self.learner.learn_many(
                stacked(parts), lower, upper, order=order, predict=True
            )
        except LearnerRowError as error:
            raise FileError(f"in the rows from {batches[0].where(0)} on, {error}") from None
        assert predicted is not None
        progress = self.progress
        progress.loss += int(distance(predicted, lower, upper).sum())
        progress.rows += lower.size
        progress.learned += lower.size
        progress.cursor, progress.skipped = batches[-1].after()
        progress.bad_rows = self.bad.examples[: progress.skipped]
        share = self.reader.share(batches[-1])
        self.share = None if share is None else (progress.cursor.walk + share) / self.job.passes

    def end_pass(self) -> None:
        """Close a pass over the files."""
        progress = self.progress
        progress.mae = [*progress.mae, progress.running_mae]
        progress.rows = progress.loss = 0
        progress.skipped = self.bad.count
        progress.bad_rows = list(self.bad.examples)
        progress.cursor = Cursor(progress.cursor.walk + 1)

    def summary(self, learned: int, resumed: bool, seconds: float) -> dict[str, Any]:
        """What was trained, in plain values."""
        recipe = self.reader.recipe
        return {
            "model": str(self.out),
            "rows": self.progress.learned,
            "passes": self.job.passes,
            "features": recipe.n_features,
            "words": list(recipe.words),
            "classes": self.classes.tolist(),
            "thresholds": self.learner.thresholds.tolist(),
            "updates": self.learner.n_updates,
            "mae": self.progress.mae,
            "skipped": self.progress.skipped,
            "skipped_examples": self.bad.examples,
            "resumed": resumed,
            "seconds": round(seconds, 3),
            "rows_per_second": round(learned / max(seconds, 1e-9)),
        }


def portions(batches: Iterable[Batch], size: int, *, whole: bool) -> Iterator[list[Batch]]:
    """Cut batches so that no portion has more than ``size`` rows.

    ``whole`` fills each portion to exactly ``size`` rows, except the last.
    """
    waiting: list[Batch] = []
    n_waiting = 0
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
    if waiting:
        yield waiting


@dataclass(frozen=True)
class Every:
    """How often to write a checkpoint: after so many rows, or seconds; 0 means not for that."""

    rows: int = 0
    seconds: float = DEFAULT_SECONDS


EVERY_MINUTE = Every()


def check_model_path(path: Path, inputs: Iterable[str] = ()) -> None:
    """Refuse a place where no model can be written, or where something else would be lost."""
    if not path.resolve().parent.is_dir():
        raise FileError(f"{path.parent}: no such folder; make it first, or choose another --model")
    if path.is_dir():
        raise FileError(f"{path} is a folder; give the name of a file")
    if path.exists() and not path.is_file():
        raise FileError(f"{path} is no ordinary file; give the name of a file")
    for name in inputs:
        if name != STDIN and path.exists() and Path(name).exists() and path.samefile(name):
            raise FileError(f"--model {path} would overwrite the input {name}; choose another name")


def train(
    job: TrainJob,
    out: str | Path,
    *,
    every: Every = EVERY_MINUTE,
    resume: bool = False,
    stop: Stop | None = None,
    report: Report | None = None,
) -> dict[str, Any]:
    """Train from files and write the model; a stop writes a checkpoint and raises `Stopped`.

    Parameters
    ----------
    job : TrainJob
        What to train.
    out : path
        Where to write the model.
    every : Every
        How often to write a checkpoint, ``out`` with the ending .checkpoint.
    resume : bool
        Go on from the checkpoint, if there is one; the model is the same to the byte as without
        the interruption.
    stop : Stop, optional
        Asks the run to end soon.
    report : callable, optional
        Called after each portion of rows.

    Returns
    -------
    dict
        A summary in plain values.
    """
    path, stop, clock = Path(out), stop or Stop(), Clock()
    check_model_path(path, expand(job.files))
    with sole_writer(path):
        run = Run(job, path)
        resumed = run.resume() if resume else False
        at_start = run.progress.learned
        _learn_all(run, every, stop, report)
        with room_told(str(path)):
            write_atomically(path, to_bytes(run.model()))
        run.checkpoint.remove()
    return run.summary(run.progress.learned - at_start, resumed, clock.seconds())


def _learn_all(run: Run, every: Every, stop: Stop, report: Report | None) -> None:
    """Learn what is left of all passes; a stop leaves a checkpoint."""
    try:
        for walk in range(run.progress.cursor.walk, run.job.passes):
            _one_pass(run, walk, every, stop, report)
            run.end_pass()
            if run.progress.learned == 0:
                raise FileError(f"{run.files[0]}: no usable row; {run.bad.told()}")
    except Stopped:
        run.save_checkpoint()
        raise


def _one_pass(run: Run, walk: int, every: Every, stop: Stop, report: Report | None) -> None:
    """Learn from the cursor to the end of the files, with checkpoints."""
    buffer = run.job.shuffle_buffer
    size = buffer or min(every.rows or ROWS_AT_ONCE, ROWS_AT_ONCE)
    rows_then, time_then = run.progress.learned, time.monotonic()
    batches = run.reader.batches(run.progress.cursor)
    for portion in stop.between(portions(batches, size, whole=buffer > 0)):
        order = None
        if buffer:
            n_rows = sum(map(len, portion))
            order = np.random.default_rng([run.job.seed, walk, run.progress.rows]).permutation(
                n_rows
            )
        run.learn(portion, order)
        stop.check()
        since = run.progress.learned - rows_then
        if (every.rows and since >= every.rows) or (
            every.seconds and time.monotonic() - time_then >= every.seconds
        ):
            run.save_checkpoint()
            rows_then, time_then = run.progress.learned, time.monotonic()
        if report is not None:
            report(run.progress.learned, run.progress.running_mae, run.share)
