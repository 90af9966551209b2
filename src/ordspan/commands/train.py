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
from ordspan.commands.outputs import room_told
from ordspan.commands.stopping import Stop, Stopped
from ordspan.core.losses import distance
from ordspan.data.files.chunks import BadRows
from ordspan.data.files.features import DEFAULT_HASH_BITS, Scale, with_words
from ordspan.data.files.grades import Grades, LabelColumns
from ordspan.data.files.lines import STDIN, FileError
from ordspan.data.files.reading import (
    BEGINNING,
    FileOptions,
    Piece,
    Position,
    RowReader,
    count_features,
    expand,
    make_recipe,
    share_read,
    sizes_of,
)
from ordspan.data.files.streams import is_sparse, known_classes, label_columns
from ordspan.data.files.svmlight_file import LABEL
from ordspan.estimators import OrdinalPA
from ordspan.learners import Learner
from ordspan.learners.checks import DEFAULT_C
from ordspan.learners.checks import RowError as LearnerRowError
from ordspan.modelfile import checked_header, from_bytes, to_bytes
from ordspan.tabular import TabularModel

CHECKPOINT_ENDING = ".checkpoint"
DEFAULT_SECONDS = 60.0
ROWS_AT_ONCE = 1 << 13
"""Scaled and learned together: many, because each portion costs some of Python's time, and few
enough that a stop or a checkpoint does not wait for long."""


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

    def estimator(self, classes: NDArray[Any]) -> OrdinalPA:
        """The estimator to be, not fitted yet."""
        return OrdinalPA(
            self.variant,
            self.C,
            average=self.average,
            balanced=self.balanced,
            max_iter=self.passes,
            shuffle=self.shuffle_buffer > 0,
            classes=classes,
            random_state=self.seed,
        )


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


@dataclass
class Progress:
    """How far a run has come."""

    position: Position = BEGINNING
    rows: int = 0  # of this pass
    loss: int = 0  # sum of distances of this pass, predicted before learning
    mae: list[float] = field(default_factory=list)  # of every finished pass
    learned: int = 0  # rows of all passes
    skipped: int = 0  # bad rows before the position
    bad_rows: list[str] = field(default_factory=list)  # the first of them

    def told(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self) | {"position": list(self.position)}

    @classmethod
    def of(cls, told: dict[str, Any]) -> Progress:
        """What `told` told."""
        return cls(**told | {"position": Position(*told["position"])})

    @property
    def running_mae(self) -> float:
        """Mean distance of this pass so far."""
        return self.loss / max(1, self.rows)


Report = Callable[[int, float, float | None], None]
"""Called with the rows learned, the MAE of this pass, and the share of the work, if known."""


class Run:
    """One training run: reader, learner and scale, and how far they have come."""

    def __init__(self, job: TrainJob, out: Path) -> None:
        self.job = job
        self.out = out
        self.files, columns = self.files_and_columns(job)
        self.sizes = sizes_of(self.files)
        options = count_features(self.files, job.options)
        recipe, first = make_recipe(
            self.files[0],
            options,
            taken=columns.names(),
            features=job.features,
            drop=job.drop,
            text=job.text,
            hash_bits=job.hash_bits,
            standardise=job.standardise,
        )
        classes = known_classes(job.order, self.files, options, columns, job.on_bad_row)
        self.bad = BadRows(job.on_bad_row)
        self.reader = RowReader(
            self.files, options, recipe, columns, Grades(classes), self.bad, first=first
        )
        self.scale = Scale(recipe.n_scaled)
        self.classes = classes
        self.learner: Learner = job.estimator(classes)._make_learner(
            recipe.n_features, classes.size
        )
        self.progress = Progress()

    @staticmethod
    def files_and_columns(job: TrainJob) -> tuple[list[str], LabelColumns]:
        """The files of a job, and where their labels stand."""
        files = expand(job.files)
        columns = label_columns(job.label, job.lower, job.upper)
        if is_sparse(files[0], job.options):
            columns = LabelColumns(LABEL)
        if not columns.names():
            raise ValueError("no label: give --label COLUMN, or --lower and --upper")
        return files, columns

    @property
    def fingerprint(self) -> list[list[Any]]:
        """By which a checkpoint knows the files again."""
        return [[name, size] for name, size in zip(self.files, self.sizes, strict=True)]

    @property
    def checkpoint(self) -> Path:
        """Where checkpoints are written."""
        return self.out.with_name(self.out.name + CHECKPOINT_ENDING)

    def model(self) -> TabularModel:
        """The model as of now."""
        estimator = self.job.estimator(self.classes)
        estimator.from_learner(self.learner, self.classes, n_iter=self.job.passes)
        training = {
            "settings": self.job.told(),
            "rows": self.progress.learned,
            "skipped": self.progress.skipped,
            "mae": self.progress.mae,
        }
        reader = self.reader
        return TabularModel(
            estimator, reader.recipe, self.scale, reader.columns, reader.options, training
        )

    def save_checkpoint(self) -> None:
        """Write model and position, whole or not at all."""
        note = {"progress": self.progress.told(), "files": self.fingerprint}
        with room_told(str(self.checkpoint)):
            write_atomically(self.checkpoint, to_bytes(self.model(), checkpoint=note))

    def resume(self) -> bool:
        """Go on from the checkpoint, if there is one."""
        if STDIN in self.files:
            raise ValueError(
                "standard input cannot be positioned, so --resume cannot go on; "
                "the checkpoint is a model file that can be used as it is"
            )
        if not self.checkpoint.exists():
            return False
        name = str(self.checkpoint)
        content = self.checkpoint.read_bytes()
        header = checked_header(content, name)
        if "checkpoint" not in header:
            raise ValueError(f"{name} is a model, but not a checkpoint")
        self._check_same(header)
        model = from_bytes(content, name)
        self.learner = model.estimator.learner_
        self.scale = model.scale
        self.progress = Progress.of(header["checkpoint"]["progress"])
        self.bad.count = self.progress.skipped
        self.bad.examples = list(self.progress.bad_rows)
        return True

    def _check_same(self, header: dict[str, Any]) -> None:
        """Refuse a checkpoint of other settings or files."""
        before, now = header["table"]["training"]["settings"], self.job.told()
        for name, value in now.items():
            if before.get(name) != value:
                raise ValueError(
                    f"{self.checkpoint} was made with {name} = {before.get(name)!r}, not "
                    f"{value!r}; use the same settings, or leave --resume out to begin anew"
                )
        then = header["checkpoint"]["files"]
        if then != self.fingerprint:
            changed = [name for name, size in self.fingerprint if [name, size] not in then]
            gone = [name for name, _ in then if name not in self.files]
            raise ValueError(
                f"{[*changed, *gone, 'the order of the files'][0]} has changed since "
                f"{self.checkpoint} was written; leave --resume out to begin anew"
            )

    def learn(self, pieces: Sequence[Piece], order: NDArray[np.intp] | None) -> None:
        """Learn some rows, in the given order, and take note of how far that is."""
        X, lower, upper = self._prepared(pieces)
        try:
            predicted = self.learner.learn_many(X, lower, upper, order=order, predict=True)
        except LearnerRowError as error:
            first = pieces[0].chunk.where(0)
            raise FileError(f"in the rows from {first} on, {error}") from None
        assert predicted is not None
        last, progress = pieces[-1], self.progress
        progress.loss += int(distance(predicted, lower, upper).sum())
        progress.rows += lower.size
        progress.learned += lower.size
        progress.position, progress.skipped = last.after(), last.skipped
        progress.bad_rows = self.bad.examples[: last.skipped]

    def _prepared(self, pieces: Sequence[Piece]) -> tuple[Any, Any, Any]:
        parts = []
        for piece in pieces:
            matrix = piece.matrix
            if self.job.standardise:
                first_pass = self.progress.position.walk == 0
                matrix = self.scale.learn(matrix) if first_pass else self.scale.apply(matrix)
            parts.append(with_words(self.reader.recipe, matrix, piece.chunk.table))
        return (
            stacked(parts),
            np.concatenate([piece.lower for piece in pieces if piece.lower is not None]),
            np.concatenate([piece.upper for piece in pieces if piece.upper is not None]),
        )

    def end_pass(self) -> None:
        """Close a pass over the files."""
        progress = self.progress
        progress.mae = [*progress.mae, progress.running_mae]
        progress.rows = progress.loss = 0
        progress.skipped = self.bad.count
        progress.bad_rows = list(self.bad.examples)
        progress.position = Position(progress.position.walk + 1)

    def share(self) -> float | None:
        """How much of the work is done; None where the sizes are not known."""
        position = self.progress.position
        share = share_read(self.files, self.sizes, position)
        return None if share is None else (position.walk + share) / self.job.passes

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


def stacked(parts: list[Any]) -> Any:
    """Dense or CSR rows, one part below the other."""
    if len(parts) == 1:
        return parts[0]
    if hasattr(parts[0], "indptr"):
        from scipy.sparse import vstack

        return vstack(parts, format="csr")
    return np.concatenate(parts)


def portions(pieces: Iterable[Piece], size: int, *, whole: bool) -> Iterator[list[Piece]]:
    """Cut pieces so that no portion has more than ``size`` rows.

    ``whole`` fills each portion to exactly ``size`` rows, except the last.
    """
    waiting: list[Piece] = []
    n_waiting = 0
    for piece in pieces:
        begin, n_rows = 0, len(piece.chunk)
        while begin < n_rows:
            end = min(n_rows, begin + size - n_waiting)
            waiting.append(piece.rows(begin, end))
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
    path, stop = Path(out), stop or Stop()
    check_model_path(path, expand(job.files))
    begun = time.perf_counter()
    run = Run(job, path)
    resumed = run.resume() if resume else False
    at_start = run.progress.learned
    try:
        for walk in range(run.progress.position.walk, job.passes):
            _one_pass(run, walk, every, stop, report)
            run.end_pass()
            if run.progress.learned == 0:
                raise FileError(f"{run.files[0]}: no usable row; {run.bad.told()}")
    except Stopped:
        run.save_checkpoint()
        raise
    with room_told(str(path)):
        write_atomically(path, to_bytes(run.model()))
    run.checkpoint.unlink(missing_ok=True)
    seconds = time.perf_counter() - begun
    return run.summary(run.progress.learned - at_start, resumed, seconds)


def _one_pass(run: Run, walk: int, every: Every, stop: Stop, report: Report | None) -> None:
    """Learn from the position to the end of the files, with checkpoints."""
    buffer = run.job.shuffle_buffer
    size = buffer or min(every.rows or ROWS_AT_ONCE, ROWS_AT_ONCE)
    rows_then, time_then = run.progress.learned, time.monotonic()
    pieces = run.reader.pieces(run.progress.position)
    for portion in stop.between(portions(pieces, size, whole=buffer > 0)):
        order = None
        if buffer:
            n_rows = sum(len(piece.chunk) for piece in portion)
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
            report(run.progress.learned, run.progress.running_mae, run.share())
