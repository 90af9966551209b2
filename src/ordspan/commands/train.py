"""Train a ranker from files of any size, with checkpoints from which it can go on."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordspan.atomic import write_atomically
from ordspan.checkpoint import ENDING, Checkpoint, sole_writer
from ordspan.clock import Clock
from ordspan.commands.models import KnownGrades, options_for, read_table_model
from ordspan.commands.outputs import room_told
from ordspan.commands.stopping import Stop, Stopped
from ordspan.commands.tally import LabelCounts, Tally
from ordspan.core.losses import distance
from ordspan.files.batch import (
    BEGINNING,
    GROUP,
    LABEL,
    SKIPPED_SHARE,
    BadRows,
    Batch,
    Cursor,
    FileError,
)
from ordspan.files.columns import AS_TOLD, Choice
from ordspan.files.features import DEFAULT_HASH_BITS, Scale, Unseen, prepared, stacked
from ordspan.files.grades import LabelColumns
from ordspan.files.opening import (
    FileOptions,
    columns_told,
    expand,
    identity,
    is_sparse,
    open_file,
    sizes_of,
)
from ordspan.files.ordering import are_runs
from ordspan.files.reading import (
    RowReader,
    check_index_base,
    label_columns,
    open_rows,
    order_in_files,
)
from ordspan.files.text import STDIN
from ordspan.learners import Learner
from ordspan.learners.checks import RowError as LearnerRowError
from ordspan.modelfile import to_bytes
from ordspan.tabular import (
    ESTIMATORS,
    KERNEL,
    PA,
    SVM,
    TabularModel,
    learner_parameters,
    make_learner,
    scored,
)
from ordspan.wording import columns_option, option

DEFAULT_SECONDS = 60.0
ROWS_AT_ONCE = 1 << 13
"""Scaled and learned together: many, because each portion costs some of Python's time, and few
enough that a stop or a checkpoint does not wait for long."""

BUFFER_BYTES = 1 << 26
"""Rows that are shuffled together, where a shuffle is needed and its size is not told."""
OF_MODEL = (
    *("order", "features", "text", "hashed", "hash_bits", "standardise", "missing", "learner"),
    "parameters",
)
"""Settings that a finished model decides, where training goes on from one."""
JUDGED_PORTION = 10_000
FEW_ROWS = 50
ENOUGH_PIECES = 8
"""Pieces of a sorted file that a window has to hold for its rows to be mixed."""


@dataclass(frozen=True)
class TrainJob:
    """What to train, from which files: all that the resulting model depends on.

    Parameters
    ----------
    files : sequence of str
        Files and folders, or "-" for standard input.
    label, lower, upper, features, drop, text, hashed, hash_bits, standardise, missing, on_bad_row :
        As in `ordspan.data.stream`.
    order : sequence, optional
        All grades from lowest to highest.
    options : FileOptions
        How to open the files.
    learner : {"pa", "kernel", "svm"}
        Which estimator to train: `ordspan.OrdinalPA`, `ordspan.KernelOrdinalPA` with a budget of
        500 support vectors, or `ordspan.OrdinalSVM`, which needs all rows in memory.
    parameters : dict
        Parameters of that estimator, such as ``{"C": 1.0}``.
    passes : int
        How often to walk over the files.
    shuffle_buffer : int, optional
        Read the parts of the files in random order and shuffle the rows in windows of this many; 0
        keeps the order of the rows. Left out, they are shuffled if they come sorted.
    seed : int
        Seed of the shuffling, and of what is held out.
    hold_out : float
        Share of the rows that are not learned, but predicted at the end.
    allow_skipped : float
        Largest share of bad rows, where they are skipped, with which a model is written.
    start : str, optional
        A model file to go on from: its columns, grades, scaling, learner and parameters are taken.
    """

    files: Sequence[str]
    label: str | None = None
    lower: str | None = None
    upper: str | None = None
    order: Sequence[Any] | None = None
    features: Sequence[str] | None = None
    drop: Sequence[str] = ()
    text: Sequence[str] = ()
    hashed: Sequence[str] = ()
    hash_bits: int = DEFAULT_HASH_BITS
    standardise: bool = True
    missing: str = "mean"
    on_bad_row: str = "raise"
    options: FileOptions = field(default_factory=FileOptions)
    learner: str = PA
    parameters: Mapping[str, Any] = field(default_factory=dict)
    passes: int = 1
    shuffle_buffer: int | None = None
    seed: int = 0
    hold_out: float = 0.0
    allow_skipped: float = SKIPPED_SHARE
    start: str | None = None

    def __post_init__(self) -> None:
        for name, least in (("passes", 1), ("shuffle_buffer", 0), ("seed", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ValueError(f"{name} must be at least {least}, got {value}")
        for name, most in (("hold_out", 0.9), ("allow_skipped", 1.0)):
            if not 0 <= getattr(self, name) <= most:
                raise ValueError(f"{name} must be from 0 to {most}, got {getattr(self, name)}")
        learner_parameters(self.learner, self.parameters)
        if self.start is not None:
            plain = TrainJob(self.files)
            for name in OF_MODEL:
                if (getattr(self, name) or None) != (getattr(plain, name) or None):  # [] is ()
                    raise ValueError(
                        f"{name} cannot be given with start, because the model decides it"
                    )
        if self.is_pipe:
            if self.passes > 1:
                raise ValueError("standard input can be read only once: passes must be 1")
            if self.hold_out:
                raise ValueError("standard input can be read only once: no rows can be held out")

    @property
    def is_pipe(self) -> bool:
        """Whether the rows come from standard input."""
        return STDIN in self.files

    def told(self) -> dict[str, Any]:
        """All settings as plain values, for the model file."""
        told = asdict(self)
        told["order"] = None if self.order is None else [_plain(grade) for grade in self.order]
        if self.start is None:
            told["parameters"] = learner_parameters(self.learner, self.parameters)
        return {k: list(v) if isinstance(v, tuple | list) else v for k, v in told.items()}

    def choice(self) -> Choice:
        """What is said of the columns to learn from."""
        return Choice(
            self.features,
            self.drop,
            self.text,
            self.hashed,
            self.hash_bits,
            self.standardise,
            self.missing,
        )

    def label_columns(self) -> LabelColumns:
        """Where the labels stand."""
        columns = label_columns(self.label, self.lower, self.upper)
        files = expand(self.files)
        sizes_of(files)  # a missing file is refused first
        sparse = is_sparse(files[0], self.options)
        if sparse and columns.names() not in ([], [LABEL]):
            raise ValueError(
                f"{self.files[0]}: svmlight rows have their grade at the beginning of each line; "
                "name no column for it"
            )
        if not columns.names() and not sparse:
            ends = option("--lower and --upper", "lower= and upper=")
            raise ValueError(f"no label: give {option('--label COLUMN', 'label=')}, or {ends}")
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
    good: int = 0  # rows of the first pass, held-out ones too
    skipped: int = 0  # bad rows before the cursor
    bad_rows: list[str] = field(default_factory=list)  # the first of them
    labels: dict[str, list[int]] = field(default_factory=dict)  # counts of grades

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

    def __init__(
        self,
        job: TrainJob,
        out: Path,
        *,
        dask: bool = False,
        look: Any = None,
        words: set[str] | None = None,
    ) -> None:
        self.job, self.out = job, out
        self.base = None if job.start is None else model_to_go_on_from(job.start)
        if self.base is None:
            self.reader = open_rows(
                job.files,
                job.options,
                job.label_columns(),
                job.choice(),
                order=job.order,
                on_bad_row=job.on_bad_row,
                look=look,
                words=words,
            )
        else:
            self.reader = reader_for(self.base, job)
        reader = self.reader
        assert reader.grades is not None
        self.files, self.bad = reader.files, reader.bad
        self.classes, self.scale = (
            reader.grades.classes,
            reader.scale or Scale(reader.recipe.n_scaled),
        )
        self.unseen, self.runs = Unseen(), Runs(self.classes.size)
        self.progress, self.labels = Progress(), LabelCounts(self.classes.size)
        self._choose_order(dask)
        self.kind, self.parameters, self.learner = self._make_learner()
        self.fitted: dict[str, float] = {}
        self.training: dict[str, Any] = {}
        if self.kind == ESTIMATORS[KERNEL]:
            self.fitted["gamma_"] = float(self.parameters["gamma"])
        identities = [identity(path) for path in self.files if path != STDIN]
        identities += [identity(job.start)] if job.start is not None else []
        self.checkpoint = Checkpoint(
            out.with_name(out.name + ENDING), job.told() | {"dask": dask}, identities, begin_anew()
        )
        self.share: float | None = None

    def _choose_order(self, dask: bool) -> None:
        """Decide whether rows are shuffled: as told, or if they come sorted."""
        job, reader = self.job, self.reader
        self.buffer, self.notes = job.shuffle_buffer or 0, list(reader.notes)
        what = reader.sorted_by
        if what and job.shuffle_buffer == 0:
            self.notes.append(f"the rows are sorted by {what}, and learned in that order, as told")
        if what and job.shuffle_buffer is None:
            self.buffer = BUFFER_BYTES // reader.recipe.row_bytes
            where = ", within each file" if dask else ""
            self.notes.append(
                f"the rows are sorted by {what}: they are learned in random order{where}"
            )
        if self.buffer and not job.is_pipe and not dask:
            reader.cut()

    def _make_learner(self) -> tuple[str, dict[str, Any], Learner]:
        """The estimator to be, its parameters, and its learner before it has learned anything."""
        job, n_features = self.job, self.reader.recipe.n_features
        if self.base is not None:
            return self.base.kind, self.base.parameters, self.base.learner
        parameters = learner_parameters(job.learner, job.parameters)
        if job.learner == KERNEL and parameters["gamma"] in ("distance", "scale", "auto"):
            parameters["gamma"] = self._gamma(parameters["gamma"], n_features)
        parameters |= {"classes": self.classes, "random_state": job.seed}
        if job.learner != SVM:
            parameters |= {"max_iter": job.passes, "shuffle": self.buffer > 0}
        kind = ESTIMATORS[job.learner]
        return kind, parameters, make_learner(kind, parameters, n_features, self.classes.size)

    def _gamma(self, rule: str, n_features: int) -> float:
        """The kernel's constant by a rule, from the first rows; of a pipe as if standardised."""
        from ordspan.estimators.kernel import KernelOrdinalPA

        recipe = self.reader.recipe
        # each column counts as one, however many places its words are hashed to
        rows = np.zeros((1, recipe.n_sparse or len(recipe.columns) + len(recipe.gaps)))
        if not self.job.is_pipe:
            self._turn(0)
            policy, self.reader.bad = self.reader.bad, BadRows("skip")
            first = next(portions(self.reader.batches(), ROWS_AT_ONCE, whole=True), None)
            self.reader.bad = policy
            if first is not None:
                parts = [prepared(self.reader.recipe, self.scale, batch) for batch in first]
                rows = stacked(parts)
        return KernelOrdinalPA(gamma=rule)._find_gamma(rows)

    def _turn(self, walk: int) -> None:
        """Put the parts of the files in the order of a pass."""
        if self.buffer:
            n_pieces = len(self.reader.pieces)
            turn = np.random.default_rng([self.job.seed, walk, n_pieces]).permutation(n_pieces)
            self.reader.turn = turn.tolist()

    def batches(self, walk: int) -> Iterator[Batch]:
        """The rows of a pass, from the cursor on."""
        self._turn(walk)
        return self.reader.batches(self.progress.cursor)

    def model(self) -> TabularModel:
        """The model as of now."""
        reader, before = self.reader, {}
        if self.base is not None:
            before = {"rows": self.base.training["rows"], "from": self.job.start}
        training = self.training | {
            "settings": self.job.told(),
            "rows": self.progress.learned + before.get("rows", 0),
            "skipped": self.progress.skipped,
            "mae": self.progress.mae,
            "constant": self.constant(),
            "left_out": reader.left_out,
            "notes": self.notes,
        }
        if before:
            training["from"] = before["from"]
        return TabularModel(
            self.learner,
            self.classes,
            self.parameters,
            reader.recipe,
            self.scale,
            reader.columns,
            reader.options,
            training,
            self.kind,
            self.fitted,
        )

    def constant(self) -> dict[str, Any] | None:
        """The grade that would have been best for every row, and its MAE."""
        if not self.labels.rows:
            return None
        best = self.labels.best_mae()
        assert best.rank is not None
        return {"grade": _plain(self.classes[best.rank - 1]), "mae": best.value}

    def save_checkpoint(self) -> None:
        """Write model and cursor, whole or not at all."""
        self.progress.labels = self.labels.to_dict()
        with room_told(str(self.checkpoint.path)):
            self.checkpoint.write(self.model(), self.progress.told())

    def resume(self) -> None:
        """Go on from the checkpoint."""
        if self.job.is_pipe:
            raise ValueError(
                "standard input cannot be positioned, so training cannot be resumed; the "
                "checkpoint is a model file that can be used as it is"
            )
        found = self.checkpoint.read()
        if found is None:
            raise FileError(nothing_to_resume(self.out, self.checkpoint.path))
        model, progress = found
        self.learner, self.parameters = model.learner, model.parameters
        if not self.reader.scale:
            self.scale = model.scale
        self.progress = Progress.of(progress)
        self.labels = LabelCounts.from_dict(self.progress.labels)
        self.bad.count = self.progress.skipped
        self.bad.examples = list(self.progress.bad_rows)

    def learn(self, batches: Sequence[Batch]) -> None:
        """Learn some rows, and take note of how far that is."""
        progress = self.progress
        if progress.cursor.walk == 0:
            progress.good += sum(map(len, batches))
        kept = [batch.only(~self.is_held_out(batch)) for batch in batches]
        kept = [batch for batch in kept if len(batch)]
        if kept:
            lower, upper = ends_of(kept)
            n_rows = lower.size
            order = None
            if self.buffer:
                seed = [self.job.seed, progress.cursor.walk, progress.rows]
                order = np.random.default_rng(seed).permutation(n_rows)
            rows = stacked([self.features(batch) for batch in kept])
            try:
                predicted = self.learner.learn_many(rows, lower, upper, order=order, predict=True)
            except LearnerRowError as error:
                raise FileError(f"in the rows from {batches[0].where(0)} on, {error}") from None
            assert predicted is not None
            progress.loss += int(distance(predicted, lower, upper).sum())
            progress.rows += n_rows
            progress.learned += n_rows
            self.runs.add(lower, upper)
            self.labels.add(lower, upper)
        self.note_progress(batches[-1])

    def features(self, batch: Batch) -> Any:
        """The features of rows, as the learner wants them."""
        on_the_way = self.reader.scale is None  # a pipe
        return prepared(self.reader.recipe, self.scale, batch, learn=on_the_way, unseen=self.unseen)

    def note_progress(self, last: Batch) -> None:
        """Take note of how far the reading has come."""
        progress = self.progress
        progress.cursor, skipped = last.after()
        if progress.cursor.walk == 0:  # later passes meet the same bad rows again
            progress.skipped = skipped
            progress.bad_rows = self.bad.examples[:skipped]
        share = self.reader.share(last)
        self.share = None if share is None else (progress.cursor.walk + share) / self.job.passes
        if progress.cursor.walk == 0 and progress.good + progress.skipped >= JUDGED_PORTION:
            self.check_skipped()

    def check_skipped(self) -> None:
        """Refuse to make a model of what is left where too many rows are bad."""
        if self.progress.good:
            self.bad.count = self.progress.skipped
            self.bad.check(self.progress.good, self.job.allow_skipped)

    def is_held_out(self, batch: Batch) -> NDArray[np.bool_]:
        """Whether rows are held out, drawn by where they stand and the seed."""
        if not self.job.hold_out:
            return np.zeros(len(batch), dtype=bool)
        piece = self.reader.turn[batch.cursor.piece]
        return drawn(batch.rows, piece, self.job.seed) < self.job.hold_out

    def end_pass(self) -> None:
        """Close a pass over the files."""
        progress = self.progress
        progress.mae = [*progress.mae, progress.running_mae]
        progress.rows = progress.loss = 0
        if progress.cursor.walk == 0:
            progress.skipped = self.bad.count
            progress.bad_rows = list(self.bad.examples)
        progress.cursor = Cursor(progress.cursor.walk + 1)

    def held_out(self) -> dict[str, Any] | None:
        """How well the model grades the rows that were held out."""
        if not self.job.hold_out:
            return None
        self.reader.turn = range(len(self.reader.pieces))
        policy, self.reader.bad = self.reader.bad, BadRows("skip")
        batches = (batch.only(self.is_held_out(batch)) for batch in self.reader.batches())
        tally = Tally(self.classes.size)
        for answer in scored(self.model(), batches):
            tally.add(answer)
        self.reader.bad = policy
        if not tally.rows:
            raise FileError(
                f"{self.files[0]}: holding out {self.job.hold_out:g} of the rows leaves none to "
                "evaluate; hold out a larger share, or give more rows"
            )
        return {"rows": tally.rows} | tally.compared(self.classes.tolist())

    def all_notes(self) -> list[str]:
        """What a user may not expect."""
        notes = [*self.notes, *self.unseen.told()]
        if self.job.is_pipe and self.runs.are_long():
            notes.append(
                "the labels came in long runs of one grade: a model that learns row by row "
                "forgets earlier grades; mix the rows, or give a file instead of a pipe"
            )
        n_rows = self.progress.learned / max(1, len(self.progress.mae))
        if self.reader.sorted_by and 0 < self.buffer < n_rows:
            at_once = len(self.reader.pieces) * self.buffer / n_rows
            if at_once < ENOUGH_PIECES:
                told = "shuffle the file first, or store it unpacked and in many pieces"
                if self.job.shuffle_buffer:
                    told = f"leave {option('--shuffle-buffer', 'shuffle_buffer')} out"
                notes.append(
                    f"the rows are sorted by {self.reader.sorted_by}, and windows of "
                    f"{self.buffer:,} rows are too small to mix them; {told}"
                )
        return notes

    def summary(self, learned: int, resumed: bool, seconds: float) -> dict[str, Any]:
        """What was trained, in plain values."""
        recipe = self.reader.recipe
        return {
            "model": str(self.out),
            "estimator": self.kind,
            "rows": self.progress.learned,
            "passes": self.job.passes,
            "features": recipe.n_features,
            "words": list(recipe.texts),
            "classes": self.classes.tolist(),
            "thresholds": self.learner.thresholds.tolist(),
            "updates": self.learner.n_updates,
            "mae": self.progress.mae,
            "constant": self.constant(),
            "held_out": self.training.get("held_out"),
            "fitted_mae": self.training.get("fitted_mae"),
            "shuffled": self.buffer > 0,
            "left_out": self.reader.left_out,
            "notes": self.all_notes(),
            "read": self.progress.good,
            "skipped": self.progress.skipped,
            "skipped_examples": self.bad.examples,
            "resumed": resumed,
            "seconds": round(seconds, 3),
            "rows_per_second": round(learned / max(seconds, 1e-9)),
        }


class Runs:
    """Counts how often a label is that of the row before it."""

    def __init__(self, n_classes: int) -> None:
        self._counts = np.zeros(n_classes, dtype=np.int64)
        self._same = 0
        self._last = 0

    def add(self, lower: NDArray[np.int64], upper: NDArray[np.int64]) -> None:
        """Take rows in, in their order."""
        middle = (lower + upper) // 2
        self._same += int((np.diff(middle, prepend=self._last) == 0).sum())
        self._counts += np.bincount(middle - 1, minlength=self._counts.size)
        self._last = int(middle[-1])

    def are_long(self) -> bool:
        """Whether neighbours are alike much more often than by chance."""
        return int(self._counts.sum()) >= FEW_ROWS and are_runs(self._counts, self._same)


def ends_of(batches: Sequence[Batch]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Lower and upper ranks of the labels of batches."""
    lower = np.concatenate([b.lower for b in batches if b.lower is not None])
    upper = np.concatenate([b.upper for b in batches if b.upper is not None])
    return lower, upper


def drawn(rows: NDArray[np.int64], piece: int, seed: int) -> NDArray[np.float64]:
    """A number from 0 to 1 for every row, by its place alone (the mixing of splitmix64).

    >>> bool(0.49 < drawn(np.arange(100_000), 0, 0).mean() < 0.51)
    True
    """
    with np.errstate(over="ignore"):
        start = np.uint64((seed + 1) * 0x9E3779B97F4A7C15 + piece * 0xD1B54A32D192ED03 & 2**64 - 1)
        x = start + (rows.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (x ^ (x >> np.uint64(31))) / 2.0**64


def nothing_to_resume(out: Path, checkpoint: Path | None) -> str:
    """What to do where there is no checkpoint to go on from."""
    resume = option("--resume", "resume")
    start = option(f"--from {out}", f"start={str(out)!r}")
    if out.exists():
        return (
            f"there is no checkpoint {checkpoint}: {out} is finished. To go on learning from it "
            f"give {start} and another model to write; to train it anew leave {resume} out "
            f"and give {option('--overwrite', 'overwrite=True')}"
        )
    return (
        f"there is no checkpoint {checkpoint}, so nothing to resume; leave {resume} out to "
        f"begin, or go on from a finished model with {option('--from MODEL', 'start=')}"
    )


def begin_anew() -> str:
    """What to do where a checkpoint is of another training."""
    overwrite, resume = option("--overwrite", "overwrite=True"), option("--resume", "resume")
    return f"use the same settings and files, or begin anew with {overwrite} and without {resume}"


def open_names(path: str, options: FileOptions, first: Any) -> Sequence[str]:
    """The columns of a file; one that is open already cannot be opened again if it is a pipe."""
    names: Sequence[str] = (first if path == first.path else open_file(path, options)).names
    return names


def model_to_go_on_from(path: str) -> TabularModel:
    """The model in a file; one that is fitted at once is refused, because it would forget."""
    model = read_table_model(path)
    if model.kind == ESTIMATORS[SVM]:
        raise FileError(
            f"{path} holds an OrdinalSVM, which is fitted at once and cannot go on; train it anew "
            "from all rows, or begin with the learner pa"
        )
    return model


def reader_for(base: TabularModel, job: TrainJob) -> RowReader:
    """Reads files as a finished model wants them; what it does not know is refused by name."""
    files = expand(job.files)
    options = options_for(base, files, job.options)
    first = open_file(files[0], options)
    told = label_columns(job.label, job.lower, job.upper)
    columns = told if told.names() else base.columns
    check_index_base(files, base.recipe, options)
    if used := [name for name in job.drop if name in base.recipe.columns]:
        raise ValueError(
            f"column {used[0]!r} is a feature of {job.start}, so it cannot be left out; train a "
            "new model"
        )
    if not base.recipe.n_sparse and not first.sparse:
        known = {*base.recipe.columns, *columns.names(), *base.columns.names(), *job.drop}
        known |= base.training["left_out"].keys()
        for name in columns.names():
            if name not in first.names:
                raise FileError(
                    f"{files[0]}: no column {name!r}, the label of the model; name it with "
                    f"{option('--label COLUMN', 'label=')}. {columns_told(first.names)}"
                )
        for path in files:
            new = [n for n in open_names(path, options, first) if n not in known]
            if new:
                raise FileError(
                    f"{path}: {job.start} does not know the column{'s' if len(new) > 1 else ''} "
                    f"{', '.join(map(repr, new[:8]))}; leave it out with "
                    f"{columns_option('drop', *new)}, or train a new model"
                )
    reader = RowReader(
        files,
        options,
        base.recipe,
        columns,
        KnownGrades(base.classes_),
        BadRows(job.on_bad_row),
        GROUP if base.recipe.n_sparse else None,
        first=first if job.is_pipe else None,
        scale=base.scale,
    )
    reader.left_out = base.training["left_out"] | dict.fromkeys(job.drop, AS_TOLD)
    if not job.is_pipe:
        reader.sorted_by = order_in_files(reader)
    return reader


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
        raise FileError(f"{path.parent}: no such folder; make it first, or choose another")
    if path.is_dir():
        raise FileError(f"{path} is a folder; give the name of a file")
    if path.exists() and not path.is_file():
        raise FileError(f"{path} is no ordinary file; give the name of a file")
    for name in inputs:
        if name != STDIN and path.exists() and Path(name).exists() and path.samefile(name):
            raise FileError(f"{path} would overwrite the input of that name; choose another")


def refuse_to_overwrite(path: Path) -> None:
    """Refuse a place where there is a model, or a checkpoint of one."""
    checkpoint = path.with_name(path.name + ENDING)
    anew, start = (
        option("--overwrite", "overwrite=True"),
        option(f"--from {path}", f"start={str(path)!r}"),
    )
    if checkpoint.exists():
        raise FileError(
            f"{checkpoint} is there from a training that was interrupted: "
            f"{option('--resume', 'resume=True')} goes on with it, {anew} begins anew"
        )
    if path.exists():
        raise FileError(
            f"{path} exists already: {anew} replaces it, {start} and another model to write goes "
            "on learning from it"
        )


def train(
    job: TrainJob,
    out: str | Path,
    *,
    every: Every = EVERY_MINUTE,
    resume: bool = False,
    overwrite: bool = False,
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
        Go on from the checkpoint, which must be there; the model is the same to the byte as
        without the interruption.
    overwrite : bool
        Replace a model that is there already.
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
    if resume and job.learner == SVM:
        raise ValueError("the svm is fitted at once and has no checkpoints to resume")
    with sole_writer(path):
        if not (overwrite or resume):
            refuse_to_overwrite(path)
        run = Run(job, path)
        if resume:
            run.resume()
        else:
            run.checkpoint.remove()
        at_start = run.progress.learned
        if run.kind == ESTIMATORS[SVM]:
            fit_at_once(run, stop, report)
        else:
            _learn_all(run, every, stop, report)
        run.check_skipped()
        if (held_out := run.held_out()) is not None:
            run.training["held_out"] = held_out
        with room_told(str(path)):
            write_atomically(path, to_bytes(run.model()))
        run.checkpoint.remove()
    return run.summary(run.progress.learned - at_start, resume, clock.seconds())


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
    size = run.buffer or min(every.rows or ROWS_AT_ONCE, ROWS_AT_ONCE)
    rows_then, time_then = run.progress.learned, time.monotonic()
    for portion in stop.between(portions(run.batches(walk), size, whole=run.buffer > 0)):
        run.learn(portion)
        stop.check()
        since = run.progress.learned - rows_then
        if (every.rows and since >= every.rows) or (
            every.seconds and time.monotonic() - time_then >= every.seconds
        ):
            run.save_checkpoint()
            rows_then, time_then = run.progress.learned, time.monotonic()
        if report is not None:
            report(run.progress.learned, run.progress.running_mae, run.share)


def fit_at_once(run: Run, stop: Stop, report: Report | None) -> None:
    """Read all rows into memory, where they fit, and find the optimum."""
    from ordspan.estimators import OrdinalSVM

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
        needed = 2 * n_bytes / max(run.share or 1.0, 1e-9)  # once in parts, once together
        if needed > limit:
            raise FileError(
                f"the svm needs all rows in memory, about {needed / 1e9:.1f} GB, and may take "
                f"{limit / 1e9:.1f} GB, half of what there is; use the learner pa, or "
                "fewer rows"
            )
        if report is not None:
            report(run.progress.learned, float("nan"), run.share)
    if not parts:
        raise FileError(f"{run.files[0]}: no usable row; {run.bad.told()}")
    X, (lower, upper) = stacked(parts), (np.concatenate(side) for side in zip(*ends, strict=True))
    stop.check()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = OrdinalSVM(**run.parameters)
        model.fit(X, run.classes[np.column_stack([lower, upper]) - 1])
    run.notes += [str(warning.message) for warning in caught]
    run.learner = model.learner_
    run.fitted = {name: getattr(model, name) for name in OrdinalSVM._fitted_numbers}
    run.labels.add(lower, upper)
    run.training |= {
        "sweeps": int(model.n_iter_),
        "bytes": n_bytes,
        "fitted_mae": float(distance(run.learner.predict_many(X), lower, upper).mean()),
    }
    run.progress.skipped = run.bad.count


def memory_limit() -> float:
    """Bytes that rows may take: half of what the machine, or its container, has."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows
        memory = 8 << 30
    with suppress(OSError, ValueError):  # no container, or no limit
        memory = min(memory, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return memory / 2
