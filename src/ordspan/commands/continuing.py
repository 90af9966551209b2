"""What is there already: models not to overwrite, checkpoints to resume, models to continue."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ordspan.catalog import ESTIMATORS, SVM
from ordspan.commands.jobs import TrainJob
from ordspan.commands.models import name_labels, open_for, read_table_model
from ordspan.commands.outputs import check_place, check_replaced
from ordspan.models.atomic import check_can_write
from ordspan.models.file import ENDING, ModelFileError, from_bytes
from ordspan.models.table import TableModel
from ordspan.tables.files import open_file
from ordspan.tables.profile import AS_REQUESTED
from ordspan.tables.reading import RowReader, order_in_files
from ordspan.tables.rows import BEGINNING, GROUP, BadRows, Count, Cursor, FileError
from ordspan.tables.text import STDIN
from ordspan.wording import columns_hint, hint

if TYPE_CHECKING:
    from ordspan.commands.train import Run

OVERWRITE, RESUME = hint("overwrite=True", "--overwrite"), hint("resume=True", "--resume")
START_OVER = f"use the same settings and files, or start over with {OVERWRITE} and without {RESUME}"
"""What to do if a checkpoint belongs to another training."""


@dataclass
class TrainProgress:
    """State of a run, as stored in a checkpoint."""

    labels: list[list[Count]]  # that start at, end at, and are exactly each grade
    cursor: Cursor = BEGINNING
    rows: Count = 0  # of this pass
    loss: Count = 0  # sum of errors in this pass, each row predicted before it is learned
    mae: list[float] = field(default_factory=list)  # of every finished pass
    learned: Count = 0  # rows of all passes
    good: Count = 0  # rows of the first pass, held-out ones too
    skipped: Count = 0  # bad rows before the cursor
    unlabelled: Count = 0  # rows without a label before it
    bad_rows: list[str] = field(default_factory=list)  # the first of them

    @property
    def running_mae(self) -> float:
        """MAE of the current pass so far."""
        return self.loss / max(1, self.rows)

    def end_pass(self) -> None:
        """Start counting the next pass."""
        self.mae = [*self.mae, self.running_mae]
        self.rows = self.loss = 0
        self.cursor = Cursor(self.cursor.epoch + 1)


def check_model_path(path: Path, inputs: Iterable[str]) -> None:
    """Raise if no model can be written here, or if it would overwrite an input."""
    check_place(path, inputs, "would overwrite the input of that name; choose another")
    check_can_write(path.with_name(path.name + ENDING))
    for old in (path, path.with_name(path.name + ENDING)):
        check_replaced(old, "a model", is_model, overwrite=True)


def is_model(path: Path) -> bool:
    """Whether ordspan wrote a file as a model, perhaps in another version."""
    with path.open("rb") as file:
        return b'"__metadata__":{"ordspan":' in file.read(100)


def refuse_to_overwrite(path: Path, *, pipe: bool, continued: bool) -> None:
    """Raise if there is already a model, or a checkpoint that is not ``continued``."""
    checkpoint = path.with_name(path.name + ENDING)
    if checkpoint.exists() and not continued:
        resume = continue_hint(checkpoint, pipe=pipe) if from_pipe(checkpoint) else RESUME
        raise FileError(
            f"{checkpoint} is left from an interrupted training: {resume} continues it, "
            f"{OVERWRITE} starts over"
        )
    if path.exists():
        raise FileError(
            f"{path} already exists: {OVERWRITE} replaces it, {start_hint(path)} and another "
            "output path continues training it"
        )


def is_own_checkpoint(path: Path, job: TrainJob) -> bool:
    """Whether training starts from the checkpoint that it will replace.

    Refused for files: a resumed run would no longer find the model it started from.
    """
    checkpoint = path.with_name(path.name + ENDING)
    if job.start is None or not checkpoint.exists() or not Path(job.start).exists():
        return False
    own = checkpoint.samefile(job.start)
    if own and not job.is_pipe:
        raise FileError(
            f"{checkpoint} would be replaced by the checkpoints of this training; choose another "
            "output path"
        )
    return own


def from_pipe(checkpoint: Path) -> bool:
    """Whether the rows of a checkpoint came from a pipe, which cannot be read again."""
    with suppress(ModelFileError, OSError):
        table = from_bytes(checkpoint.read_bytes(), str(checkpoint))[0].table
        return table is not None and STDIN in table.training["settings"]["files"]
    return False


def continue_hint(checkpoint: Path, *, pipe: bool) -> str:
    """How to continue a checkpoint that cannot be resumed, with rows of a pipe or of files."""
    return start_hint(checkpoint) + ("" if pipe else " and another output path")


def start_hint(path: Path) -> str:
    """How to continue a model or a checkpoint."""
    return hint(f"start={str(path)!r}", f"--from {shlex.quote(str(path))}")


def resumed(run: Run) -> tuple[TableModel, TrainProgress]:
    """Model and progress of the checkpoint of a run, which must be of the same training."""
    path, pipe = run.checkpoint.path, run.job.is_pipe
    assert path is not None
    if pipe or from_pipe(path):
        go_on = f", and continue it with {continue_hint(path, pipe=pipe)}"
        raise ValueError(
            "training from a pipe such as standard input cannot be resumed; leave out "
            + RESUME
            + (go_on if path.exists() else "")
        )
    model, progress = read_checkpoint(run, TableModel, TrainProgress)
    sizes = [len(counts) for counts in progress.labels]
    then = (model.kind, model.recipe, model.classes_.tolist(), sizes)
    classes = run.classes.tolist()
    if then != (run.kind, run.reader.recipe, classes, [len(classes)] * 3):
        raise ModelFileError(
            f"{path} has a different learner, different columns or different grades; {START_OVER}"
        )
    return model, progress


def read_checkpoint(run: Run, kind: type, progress: Any) -> tuple[Any, Any]:
    """Model and progress of the checkpoint, which must exist."""
    found: tuple[Any, Any] | None = run.checkpoint.read(kind, progress)
    if found is not None:
        return found
    missing = f"there is no checkpoint {run.checkpoint.path}"
    if run.out.exists():
        raise FileError(
            f"{missing}: {run.out} is finished. To continue training it, give "
            f"{start_hint(run.out)} and another output path; to retrain it, leave out {RESUME} "
            f"and give {OVERWRITE}"
        )
    raise FileError(
        f"{missing}, so there is nothing to resume; leave out {RESUME} to start, or continue a "
        f"finished model with {hint('start=', '--from MODEL')}"
    )


def model_to_continue(path: str) -> TableModel:
    """Read the model to continue from; an OrdinalSVM cannot be continued."""
    model = read_table_model(path)
    if model.kind == ESTIMATORS[SVM]:
        raise FileError(
            f"{path} holds an OrdinalSVM, which is fitted in one step and cannot be continued; "
            "retrain it on all rows, or start with the learner pa"
        )
    return model


def reader_for(base: TableModel, job: TrainJob, pipe: Any = None) -> RowReader:
    """A reader of files for a finished model; unknown columns are refused."""
    reader = open_for(base, job, BadRows(job.on_bad_row), pipe)
    name_labels(reader, job)
    _refuse_unknown(reader, base, job)
    reader.group = GROUP if base.recipe.n_sparse else None
    # what a pipe taught about the scale goes on with the next pipe
    reader.learns_scale = job.is_pipe and STDIN in base.training["settings"]["files"]
    reader.left_out = base.training["left_out"] | dict.fromkeys(job.drop, AS_REQUESTED)
    if job.is_pipe:
        reader.notes += reader.first.notes
    else:
        reader.first = None
        reader.sorted_by = order_in_files(reader)
    return reader


def _refuse_unknown(reader: RowReader, base: TableModel, job: TrainJob) -> None:
    """Refuse unknown columns, and the dropping of columns that the model needs."""
    first, labels = reader.first, reader.columns.names()
    if used := [name for name in job.drop if name in base.recipe.columns]:
        raise ValueError(
            f"column {used[0]!r} is a feature of {job.start}, so it cannot be left out; train a "
            "new model"
        )
    if base.recipe.n_sparse or first.sparse:
        return
    known = {*base.recipe.columns, *labels, *base.columns.names(), *job.drop}
    known |= base.training["left_out"].keys()
    for path in reader.files:
        # a pipe that is already open cannot be opened again
        table = first if path == first.path else open_file(path, reader.options)
        new = [name for name in table.names if name not in known]
        if new:
            raise FileError(
                f"{path}: {job.start} does not know the column{'s' if len(new) > 1 else ''} "
                f"{', '.join(map(repr, new[:8]))}; give {columns_hint('drop', *new)}, or train a "
                "new model"
            )
