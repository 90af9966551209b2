"""Predict grades, scores and margins for files of any size."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ordspan.clock import Clock
from ordspan.commands.jobs import PredictJob, Report, no_report
from ordspan.commands.models import open_for, read_table_model, trained_on
from ordspan.commands.outputs import opened_output
from ordspan.commands.stopping import stoppable
from ordspan.labels.amounts import range_ends
from ordspan.models.table import Answer, TableModel, scored
from ordspan.tables.encoder import Recipe
from ordspan.tables.files import closest, describe_columns, no_columns
from ordspan.tables.label_columns import LabelColumns
from ordspan.tables.reading import RowReader
from ordspan.tables.rows import KEEP, REFUSE, BadRows, Batch, FileError
from ordspan.wording import hint

if TYPE_CHECKING:
    import polars as pl

ADDED = ("prediction", "rank", "score", "margin")
"""Columns of a prediction, before a range, probabilities and the reason."""
RANGE, REASON = ("lower", "upper"), "reason"
PLACE = ("file", "row")
"""Columns with the location of a row."""


def predict(job: PredictJob, *, report: Report = no_report) -> dict[str, Any]:
    """Write a grade, a rank, a score and a margin for every row, in the order of the rows.

    These cells are empty for a row that cannot be predicted; ``reason`` says why. If it is
    stopped, no file is written.

    Parameters
    ----------
    job : PredictJob
        What to predict, and where to write it.
    report : callable, optional
        Called after each batch of rows.

    Returns
    -------
    dict
        A summary in plain values.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from ordspan.commands.jobs import PredictJob, TrainJob
    >>> from ordspan.commands.train import train
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> rows = "1,low\\n2,low\\n8,high\\n9,high\\n" * 50
    >>> _ = (folder / "a.csv").write_text("size,grade\\n" + rows)
    >>> grades = ["low", "high"]
    >>> _ = train(TrainJob(folder / "a.csv", folder / "model", label="grade", classes=grades))
    >>> _ = (folder / "new.csv").write_text("id,size\\nx,9\\ny,1\\n")
    >>> job = PredictJob([folder / "new.csv"], folder / "model", folder / "out.csv", keep=["id"])
    >>> predict(job)["rows"]
    2
    >>> [line.split(",")[:3] for line in (folder / "out.csv").read_text().split()]
    [['id', 'prediction', 'rank'], ['x', 'high', '2'], ['y', 'low', '1']]
    """
    model = read_table_model(job.model)
    check_asked(job, model)
    with stoppable(job) as (stop, pipe):
        with stop.at_any_moment():
            reader = make_reader(job, model, pipe)
        clock, rows = Clock(), 0
        inputs = [job.model, *reader.files]
        with opened_output(job.out, inputs, columns=ADDED, overwrite=job.overwrite) as write:
            for table, share in stop.between(answer_tables(job, model, reader)):
                write(table)
                rows += table.height
                report(rows, None, share)
            if rows == 0:
                raise FileError(
                    f"{reader.files[0]}: no row to predict; does it contain only a header?"
                )
    return {
        "out": job.out,
        "model": job.model,
        "rows": rows,
        "empty": reader.bad.count,
        "empty_examples": reader.bad.examples,
        "notes": [*trained_on(model, reader.files), *model.encoder.unseen.messages()],
        "seconds": round(clock.seconds(), 3),
    }


def check_asked(job: PredictJob, model: TableModel) -> None:
    """Raise if the model has no such range or probabilities, or a kept column would clash."""
    if job.coverage is not None:
        model.needed_calibration().level(job.coverage)
    own = [*(PLACE if job.where else ()), *ADDED, *(RANGE if job.coverage else ()), REASON]
    if job.proba:
        model.needed_calibration()
        own += proba_names(model)
    if clash := [name for name in job.keep if name in own]:
        raise ValueError(
            f"cannot keep the column {clash[0]!r}: predictions have a column of that name; "
            "rename it in the file, or join it afterwards"
        )


def proba_names(model: TableModel) -> list[str]:
    """Names of the probability columns, such as P(high)."""
    return [f"P({grade})" for grade in model.classes_.tolist()]


def make_reader(job: PredictJob, model: TableModel, pipe: Any) -> RowReader:
    """A reader of the rows to predict."""
    bad = BadRows(REFUSE if job.on_bad_row == "raise" else KEEP)
    reader = open_for(model, job, bad, pipe)
    reader.first.patient = False  # predict rows of a pipe as they arrive
    check_needed(reader.first, model.recipe, job)
    reader.columns, reader.grades = LabelColumns(), None  # labels are not read
    reader.keep = tuple(dict.fromkeys(job.keep))
    return reader


def check_needed(reader: Any, recipe: Recipe, job: PredictJob) -> None:
    """Raise if a file lacks columns of the model or columns to keep."""
    needed = () if recipe.n_sparse else recipe.columns
    keep = hint("keep=", "--keep")
    for names, who in ((needed, f"the model {job.model} needs"), (job.keep, f"{keep} asks for")):
        missing = [name for name in names if name not in reader.names]
        if missing:
            close = closest(missing[0], reader.names)
            meant = "did you mean" if names is job.keep else "was it renamed to"
            raise FileError(
                f"{reader.path}: {no_columns(missing)}, which {who}; "
                + describe_columns(reader.names)
                + (close and f"; {meant} {close!r}?")
            )


def answer_tables(
    job: PredictJob, model: TableModel, reader: RowReader
) -> Iterator[tuple[pl.DataFrame, float | None]]:
    """The tables to write, all with the schema of the first, and the share of the files read."""
    import polars as pl

    classes = pl.Series(model.classes_.tolist())
    schema = None
    for batch, answer in scored(model, reader.batches(), job.coverage):
        table = answers(job, model, classes, batch, answer)
        schema = schema or table.schema
        yield as_schema(table, schema, batch), reader.share(batch)


def answers(
    job: PredictJob, model: TableModel, classes: pl.Series, batch: Batch, answer: Answer
) -> pl.DataFrame:
    """The kept columns and the predictions."""
    import polars as pl

    for name in job.keep:
        if name not in batch.table.columns:
            raise FileError(f"{batch.where(0)}: the rows from here on have no {name!r} to keep")
    place: dict[str, Any] = {}
    if job.where:
        name = os.fsencode(batch.path).decode(errors="backslashreplace")  # may not be UTF-8
        place = {"file": pl.Series([name]).new_from_index(0, len(batch)), "row": batch.rows}
    reasons = pl.Series([batch.faults.get(row) for row in range(len(batch))], dtype=pl.String())
    basic = (classes[answer.rank - 1], answer.rank, answer.score, answer.margin)
    predicted: dict[str, Any] = dict(zip(ADDED, basic, strict=True))
    if job.coverage is not None:
        ends: Any = (answer.low, answer.high)
        names = range_ends(model.classes_.tolist())
        predicted |= {
            name: pl.Series(grades)[ranks - 1]
            for name, grades, ranks in zip(RANGE, names, ends, strict=True)
        }
    if job.proba:
        chances = model.needed_calibration().probabilities(answer.score)
        predicted |= dict(zip(proba_names(model), chances.T, strict=True))
    kept = {column.name: column for column in batch.kept}
    table = pl.DataFrame(place | kept | predicted | {REASON: reasons})
    if not batch.faults:
        return table
    good = pl.col(REASON).is_null()
    return table.with_columns(pl.when(good).then(pl.col(name)).alias(name) for name in predicted)


def as_schema(table: pl.DataFrame, schema: pl.Schema, batch: Batch) -> pl.DataFrame:
    """Cast a table to the schema of the first; kept columns may differ in type between files."""
    import polars as pl

    if table.schema == schema:
        return table
    try:
        cast = table.cast(schema)
        if not cast.cast(table.schema).equals(table):
            raise ValueError("some values do not fit into it")
    except (pl.exceptions.PolarsError, ValueError) as error:
        raise FileError(
            f"{batch.path}: a kept column has another type than in the files before ({error}); "
            "predict the files one by one"
        ) from None
    return cast
