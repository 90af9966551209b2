"""Model files and the data files read for them: opened, continued, not lost by accident."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ordspan.catalog import ESTIMATORS, KERNEL, SVM
from ordspan.commands.jobs import FileJob, LabelledJob, TrainJob
from ordspan.commands.outputs import MODEL, OVERWRITE, check_output
from ordspan.labels.text import LabelReader
from ordspan.learners import Calibration
from ordspan.models.file import ENDING, Header, from_bytes
from ordspan.models.table import TableModel
from ordspan.tables.files import check_columns, expand, identity, is_svmlight, is_utf8
from ordspan.tables.profile import check_index_base
from ordspan.tables.reading import RowReader
from ordspan.tables.rows import GROUP, LABEL, BadRows, FileError
from ordspan.tables.text import STDIN
from ordspan.wording import first_few, hint

RETRAIN = "train a model that includes it"
RESUME = hint("resume=True", "--resume")


def read_model(path: str | Path) -> tuple[Header, Any]:
    """Header and model of a file.

    Parameters
    ----------
    path : path
        A file written by `ordspan.save` or by ``ordspan train``, or a checkpoint of it.
    """
    if Path(path).is_dir() or not Path(path).exists():
        raise FileError(f"{path}: no such model file; ordspan train writes one")
    return from_bytes(Path(path).read_bytes(), str(path))


def ranker_and_calibration(model: Any) -> tuple[Any, Calibration | None]:
    """The ordinal estimator of a model, and what makes probabilities and ranges, if any."""
    if isinstance(model, TableModel):
        return model.estimator, model.calibration
    ranker = getattr(model, "estimator_", model)  # a frozen one has the attributes of its own
    return ranker, getattr(model, "calibration_", None)


def read_table_model(path: str | Path) -> TableModel:
    """Read a model that ``ordspan train`` wrote; other models do not know the columns."""
    header, model = read_model(path)
    if not isinstance(model, TableModel):
        raise FileError(
            f"{path} holds an estimator ({type(model).__name__}) that was saved from Python, "
            "without the columns of a table; give a model that ordspan train wrote, or call "
            "ordspan.load(...).predict(X) in Python"
        )
    several = model.training["settings"]["passes"] > 1
    if several and header.checkpoint is not None and model.kind == ESTIMATORS[KERNEL]:
        raise FileError(
            f"{path} is a checkpoint of a kernel trained in several passes, which calibrates its "
            f"probabilities at the end; finish it with {RESUME}"
        )
    return model


def open_for(model: TableModel, job: FileJob, policy: str, pipe: Any) -> RowReader:
    """A reader of the files of a job on a model.

    Codes for no answer, the sheet and the row of the header are those of the training, and so is
    the encoding, unless a file is UTF-8; how a file is written is given or found again.
    """
    files, then, given, recipe = expand(job.files), model.options, job.options, model.recipe
    options = replace(
        given,
        zero_based=recipe.zero_based,
        n_features=recipe.n_sparse,
        na=tuple(dict.fromkeys((*then.na, *given.na))),
        sheet=given.sheet or then.sheet,
        header_row=given.header_row or then.header_row,
        encoding=given.encoding or (None if any(map(is_utf8, files)) else then.encoding),
    )
    if is_svmlight(files[0], options):
        if not recipe.n_sparse:
            raise FileError(
                f"{files[0]}: svmlight rows have no named columns, but the model was trained on "
                f"columns such as {recipe.columns[0]!r}"
            )
        check_index_base(files, recipe)
    known: Any = {"encoder": model.encoder, "grades": label_reader(model.classes_)}
    return RowReader(files, options, model.columns, BadRows(policy), pipe=pipe, **known)


def name_labels(reader: RowReader, job: LabelledJob, group: str | None = None) -> None:
    """Read labels and queries from the columns named; by default, labels as in training."""
    given, path = job.label_columns, reader.files[0]
    if is_svmlight(path, reader.options):
        if {*given.names(), group} - {None, LABEL, GROUP}:
            raise ValueError(
                f"{path}: svmlight rows start with their grade, perhaps followed by a qid; leave "
                "out the columns of labels and queries"
            )
        reader.columns, group = replace(given, label=LABEL), GROUP
    elif given.names():
        reader.columns = given
    elif not reader.columns.names():
        ends = hint("lower= and upper=", "--lower and --upper")
        columns = first_few(reader.open(path).names, 20)
        way_out = f"give {hint('label=', '--label COLUMN')}, or {ends}"
        raise ValueError(f"{path}: no label: {way_out}; the columns are {columns}")
    elif not reader.recipe.n_sparse:
        name = hint("label=", "--label COLUMN")
        why = f", which held the label in training (name it here with {name}, or the two columns "
        names = reader.open(path).names
        check_columns(path, names, reader.columns.names(), why + "of ranges)")
    reader.group = group


def label_reader(classes: NDArray[Any], remedy: str = f"correct it, or {RETRAIN}") -> LabelReader:
    """Reads labels for a trained model, whose grades are fixed."""
    return LabelReader(classes, owner="the model's ", remedy=remedy)


def notes_on(model: TableModel, reader: RowReader) -> list[str]:
    """How files are written and whether the model was trained on them, whatever their names."""
    known = model.training.get("digests", ())
    names = [p for p in reader.files if known and p != STDIN and identity(p).digest in known]
    notes = [*reader.file_notes, *model.encoder.notes()]
    if names:
        learned = f"the model was trained on {first_few(names, 1)}"
        notes.append(f"{learned}, so expect larger errors on rows that it has not learned")
    return notes


def check_replaced_model(path: Path, job: TrainJob) -> bool:
    """Raise if a model or a checkpoint would be lost, or if there is none to resume.

    Returns whether training goes on from the checkpoint that it will replace. That is refused for
    files: a resumed run would no longer find the model it started from.
    """
    checkpoint, start = path.with_name(path.name + ENDING), Path(job.start or "")
    check_output(checkpoint, (), MODEL, overwrite=True)
    own = checkpoint.exists() and start.exists() and checkpoint.samefile(start)
    if own and not job.is_pipe:
        raise FileError(f"{checkpoint} would be replaced by this training; choose another path")
    if checkpoint.exists() and not (own or job.overwrite or job.resume):
        others = f"{start_hint(checkpoint)} and another output path"
        ways = start_hint(checkpoint) if job.is_pipe else f"{RESUME}, or for other rows {others},"
        raise FileError(
            f"{checkpoint} is left from an interrupted training: {ways} continues it, {OVERWRITE} "
            "starts over"
        )
    if job.resume and not checkpoint.exists():
        what = f"{path} is finished" if path.exists() else "there is nothing to resume"
        start_from = hint("start=", "--from MODEL")
        raise FileError(
            f"there is no checkpoint {checkpoint}, so {what}; leave out {RESUME} to train anew, or "
            f"continue a finished model with {start_from} and another output path"
        )
    check_output(path, (), MODEL, job.overwrite or job.resume)
    return own


def start_hint(path: Path) -> str:
    """How to continue a model or a checkpoint."""
    return hint(f"start={str(path)!r}", f"--from {shlex.quote(str(path))}")


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
    first = reader.open(reader.files[0])
    known = {*base.recipe.columns, *reader.columns.names(), *base.columns.names(), *left_out}
    new = [name for name in first.names if name not in known]
    if new and not base.recipe.n_sparse:
        names = ", ".join(map(repr, new[:8]))
        reader.notes.append(f"{job.start} does not know {names}, which it does not learn from")
    # what a pipe taught about the scale goes on with the next pipe
    reader.learns_scale = job.is_pipe and STDIN in base.training["settings"]["files"]
    if not job.is_pipe:
        reader.find_order()
    reader.notes += reader.file_notes
    return base, reader
