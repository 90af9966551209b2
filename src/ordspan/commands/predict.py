"""Predict grades, scores and margins for files of any size."""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from ordspan.clock import working_time
from ordspan.commands.jobs import PredictJob, Report, no_report
from ordspan.commands.models import notes_on, open_for, read_table_model
from ordspan.commands.outputs import write_tables
from ordspan.commands.stopping import stoppable
from ordspan.core.state import Floats
from ordspan.labels.amounts import range_ends
from ordspan.models.table import TableModel, scored
from ordspan.tables.label_columns import LabelColumns
from ordspan.tables.rows import KEEP, REFUSE, Batch, FileError

ADDED = ("prediction", "rank", "score", "margin")
REASON = "reason"
"""Columns of a prediction, before a range and probabilities, and the last one."""


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
    with stoppable(job) as (stop, pipe):
        with stop.at_any_moment():
            policy = REFUSE if job.on_bad_row == "raise" else KEEP
            reader = open_for(model, job, policy, pipe)
            reader.open(reader.files[0]).patient = False  # answer rows of a pipe as they arrive
            reader.columns, reader.grades = LabelColumns(), None  # labels are not read
            reader.keep = tuple(dict.fromkeys(job.keep))
        begun, rows = working_time(), 0

        def tables() -> Iterator[pl.DataFrame]:
            nonlocal rows
            schema = None
            for batch, score in stop.between(scored(model, reader.batches())):
                table = answers(job, model, batch, score)
                if table.schema != (schema := schema or table.schema):
                    raise FileError(
                        f"{batch.path}: a kept column has another type than in the files before; "
                        "predict the files one by one"
                    )
                yield table
                rows += table.height
                report(rows, None, batch.share)
            if rows == 0:
                raise FileError(
                    f"{reader.files[0]}: no row to predict; does it contain only a header?"
                )

        write_tables(job.out, tables(), ADDED, [job.model, *reader.files], overwrite=job.overwrite)
    return {
        "out": job.out,
        "model": job.model,
        "rows": rows,
        "empty": reader.bad.count,
        "empty_examples": reader.bad.examples,
        "notes": notes_on(model, reader),
        "seconds": round(working_time() - begun, 3),
    }


def answers(job: PredictJob, model: TableModel, batch: Batch, score: Floats) -> pl.DataFrame:
    """The kept columns and the predictions."""
    place: dict[str, Any] = {}
    if job.where:
        path = os.fsencode(batch.path).decode(errors="backslashreplace")  # may not be UTF-8
        place = {"file": pl.repeat(path, len(batch), eager=True), "row": batch.rows}
    grades, calibration = model.classes_.tolist(), model.calibration
    rank = calibration.predict(score)
    edges = np.concatenate([[-np.inf], model.thresholds, [np.inf]])
    margin = np.minimum(score - edges[rank - 1], edges[rank] - score)
    columns = (pl.Series(grades)[rank - 1], rank, score, margin)
    predicted: dict[str, Any] = dict(zip(ADDED, columns, strict=True))
    if job.coverage is not None:
        low, high = calibration.ranges(score, job.coverage)
        lower, upper = map(pl.Series, range_ends(grades))
        predicted |= {"lower": lower[low - 1], "upper": upper[high - 1]}
    if job.proba:
        chances = calibration.probabilities(score).T
        predicted |= {f"P({grade})": chance for grade, chance in zip(grades, chances, strict=True)}
    kept = {column.name: column for column in batch.kept}
    for name in job.keep:
        if name not in kept:
            raise FileError(f"{batch.where(0)}: the rows from here on have no {name!r} to keep")
        if name in {*place, *predicted, REASON}:
            raise ValueError(
                f"cannot keep the column {name!r}: predictions have a column of that name; rename "
                "it in the file, or join it afterwards"
            )
    reasons = pl.Series([batch.faults.get(row) for row in range(len(batch))], dtype=pl.String())
    table = pl.DataFrame(place | kept | predicted | {REASON: reasons})
    good = pl.col(REASON).is_null()
    return table.with_columns(pl.when(good).then(pl.col(name)).alias(name) for name in predicted)
