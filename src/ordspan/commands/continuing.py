"""Continue training a finished model on new files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ordspan.catalog import ESTIMATORS, SVM
from ordspan.commands.models import label_reader, options_for, read_table_model
from ordspan.commands.train_job import TrainJob
from ordspan.models.table import TableModel
from ordspan.tables.files import FileOptions, describe_columns, expand, open_file
from ordspan.tables.label_columns import LabelColumns, label_columns
from ordspan.tables.profile import AS_REQUESTED
from ordspan.tables.reading import RowReader, check_index_base, order_in_files
from ordspan.tables.rows import GROUP, BadRows, FileError
from ordspan.tables.text import STDIN
from ordspan.wording import columns_hint, hint


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
    files = expand(job.files)
    options = options_for(base, files, job.options)
    first = open_file(files[0], options, pipe)
    given = label_columns(job.label, job.lower, job.upper)
    columns = given if given.names() else base.columns
    check_index_base(files, base.recipe, options)
    _refuse_unknown(base, job, columns, files, options, first)
    reader = RowReader(
        files,
        options,
        base.encoder,
        columns,
        label_reader(base.classes_),
        BadRows(job.on_bad_row),
        GROUP if base.recipe.n_sparse else None,
        first=first if job.is_pipe else None,
        # what a pipe taught about the scale goes on with the next pipe
        learns_scale=job.is_pipe and STDIN in base.training["settings"]["files"],
    )
    reader.left_out = base.training["left_out"] | dict.fromkeys(job.drop, AS_REQUESTED)
    if job.is_pipe:
        reader.notes += first.notes
    else:
        reader.sorted_by = order_in_files(reader)
    return reader


def _refuse_unknown(
    base: TableModel,
    job: TrainJob,
    columns: LabelColumns,
    files: Sequence[str],
    options: FileOptions,
    first: Any,
) -> None:
    """Refuse unknown columns, and the dropping of columns that the model needs."""
    if used := [name for name in job.drop if name in base.recipe.columns]:
        raise ValueError(
            f"column {used[0]!r} is a feature of {job.start}, so it cannot be left out; train a "
            "new model"
        )
    if base.recipe.n_sparse or first.sparse:
        return
    if missing := [name for name in columns.names() if name not in first.names]:
        raise FileError(
            f"{files[0]}: no column {missing[0]!r}, the label of the model; "
            f"{describe_columns(first.names)}. Name the label with "
            + hint("label=", "--label COLUMN")
        )
    known = {*base.recipe.columns, *columns.names(), *base.columns.names(), *job.drop}
    known |= base.training["left_out"].keys()
    for path in files:
        # a pipe that is already open cannot be opened again
        table = first if path == first.path else open_file(path, options)
        new = [name for name in table.names if name not in known]
        if new:
            raise FileError(
                f"{path}: {job.start} does not know the column{'s' if len(new) > 1 else ''} "
                f"{', '.join(map(repr, new[:8]))}; leave it out with "
                f"{columns_hint('drop', *new)}, or train a new model"
            )
