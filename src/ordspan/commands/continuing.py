"""What is there already: models not to overwrite, checkpoints to resume, models to continue."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ordspan.catalog import ESTIMATORS, SVM
from ordspan.commands.jobs import TrainJob
from ordspan.commands.models import name_labels, open_for, read_table_model
from ordspan.commands.outputs import OVERWRITE, check_output
from ordspan.models.file import ENDING, ModelFileError
from ordspan.models.table import TableModel
from ordspan.tables.reading import RowReader
from ordspan.tables.rows import BEGINNING, BadRows, Count, Cursor, FileError
from ordspan.tables.text import STDIN
from ordspan.wording import hint

if TYPE_CHECKING:
    from ordspan.commands.train import Run

RESUME = hint("resume=True", "--resume")
START_OVER = f"use the same settings and files, or start over with {OVERWRITE} and without {RESUME}"
"""What to do if a checkpoint belongs to another training."""


@dataclass
class TrainProgress:
    """State of a run, as stored in a checkpoint."""

    labels: list[list[Count]]  # that start at, end at, and are exactly each grade
    bad: BadRows  # before the cursor
    cursor: Cursor = BEGINNING
    rows: Count = 0  # of this pass
    loss: Count = 0  # sum of errors in this pass, each row predicted before it is learned
    mae: list[float] = field(default_factory=list)  # of every finished pass
    learned: Count = 0  # rows of all passes
    good: Count = 0  # rows of the first pass, held-out ones too
    unlabelled: Count = 0  # rows without a label before the cursor

    @property
    def running_mae(self) -> float:
        """MAE of the current pass so far."""
        return self.loss / max(1, self.rows)

    def end_pass(self) -> None:
        """Start counting the next pass."""
        self.mae = [*self.mae, self.running_mae]
        self.rows = self.loss = 0
        self.cursor = Cursor(self.cursor.epoch + 1)


def is_model(path: Path) -> bool:
    """Whether ordspan wrote a file as a model, perhaps in another version."""
    with path.open("rb") as file:
        return b'"__metadata__":{"ordspan":' in file.read(100)


def check_replaced_model(path: Path, job: TrainJob) -> bool:
    """Raise if a model or a checkpoint would be lost.

    Returns whether training goes on from the checkpoint that it will replace. That is refused for
    files: a resumed run would no longer find the model it started from.
    """
    checkpoint, start = path.with_name(path.name + ENDING), Path(job.start or "")
    check_output(checkpoint, (), "a model", is_model, overwrite=True)
    own = checkpoint.exists() and start.exists() and checkpoint.samefile(start)
    if own and not job.is_pipe:
        raise FileError(
            f"{checkpoint} would be replaced by the checkpoints of this training; choose another "
            "output path"
        )
    if job.overwrite or job.resume:
        return own
    if checkpoint.exists() and not own:
        others = f"{start_hint(checkpoint)} and another output path"
        ways = start_hint(checkpoint) if job.is_pipe else f"{RESUME}, or for other rows {others},"
        raise FileError(
            f"{checkpoint} is left from an interrupted training: {ways} continues it, {OVERWRITE} "
            "starts over"
        )
    if path.exists():
        raise FileError(
            f"{path} already exists: {OVERWRITE} replaces it, {start_hint(path)} and another "
            "output path continues training it"
        )
    return own


def start_hint(path: Path | None) -> str:
    """How to continue a model or a checkpoint."""
    return hint(f"start={str(path)!r}", f"--from {shlex.quote(str(path))}")


def resumed(run: Run) -> tuple[TableModel, TrainProgress]:
    """Model and progress of the checkpoint of a run, which must be of the same training."""
    model, progress = read_checkpoint(run, TableModel, TrainProgress)
    sizes = [len(counts) for counts in progress.labels]
    then = (model.kind, model.recipe, model.classes_.tolist(), sizes)
    classes = run.classes.tolist()
    if then != (run.kind, run.reader.recipe, classes, [len(classes)] * 3):
        raise ModelFileError(
            f"{run.checkpoint.path} has a different learner, different columns or different "
            f"grades; {START_OVER}"
        )
    return model, progress


def read_checkpoint(run: Run, kind: type, progress: Any) -> tuple[Any, Any]:
    """Model and progress of the checkpoint, which must exist."""
    found: tuple[Any, Any] | None = run.checkpoint.read(kind, progress)
    if found is None:
        what = f"{run.out} is finished" if run.out.exists() else "there is nothing to resume"
        raise FileError(
            f"there is no checkpoint {run.checkpoint.path}, so {what}; leave out {RESUME} to "
            f"train anew, or continue a finished model with {hint('start=', '--from MODEL')} and "
            "another output path"
        )
    return found


def open_continued(job: TrainJob, pipe: Any) -> tuple[TableModel, RowReader]:
    """The model to continue from, and a reader of files that ignores columns it does not know."""
    base = read_table_model(str(job.start))
    if base.kind == ESTIMATORS[SVM]:
        raise FileError(
            f"{job.start} holds an OrdinalSVM, which is fitted in one step and cannot be "
            "continued; retrain it on all rows, or start with the learner pa"
        )
    reader = open_for(base, job, job.on_bad_row, pipe)
    name_labels(reader, job)
    reader.left_out = left_out = base.training["left_out"]
    known = {*base.recipe.columns, *reader.columns.names(), *base.columns.names(), *left_out}
    new = [name for name in reader.first.names if name not in known]
    if new and not base.recipe.n_sparse:
        names = ", ".join(map(repr, new[:8]))
        reader.notes.append(f"{job.start} does not know {names}, which it does not learn from")
    # what a pipe taught about the scale goes on with the next pipe
    reader.learns_scale = job.is_pipe and STDIN in base.training["settings"]["files"]
    if job.is_pipe:
        reader.notes += reader.first.notes
    else:
        reader.find_order()
    return base, reader
