"""Write the labels of a state folder as a table for ``ordspan train``."""

import shlex
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from ordspan.commands.models import read_table_model
from ordspan.commands.outputs import STDOUT, write_tables
from ordspan.labels.amounts import range_ends
from ordspan.labels.forms import number_as_text
from ordspan.models.table import TableModel
from ordspan.serving.engine import BASE, LOG
from ordspan.serving.log import LEARN, UNDO, Log
from ordspan.serving.records import FEATURES, RecordReader
from ordspan.tables.profile import ANNOTATED
from ordspan.tables.rows import FileError
from ordspan.wording import shell_list

LABELS = ("key", "lower", "upper")
FORMULA = r"^[=+\-@\t\r]"  # the beginning of a cell that a spreadsheet would run


def export_labels(
    out: str,
    folder: Path,
    *,
    annotated: bool = False,
    inputs: Iterable[str] = (),
    overwrite: bool = False,
) -> tuple[int, TableModel]:
    """Write every label of a state folder that was not undone, in order.

    The columns are key, lower and upper, or for answers of annotators item, lower, upper,
    annotator, seconds and asked_by, followed by the columns of the model as they were learned.

    Parameters
    ----------
    out : str
        A file ending in .csv, .xlsx, .parquet or .jsonl, or "-" for CSV on standard output.
    folder : Path
        The state folder; its service may be running.
    annotated : bool
        Whether it is a folder of ``ordspan annotate``.
    inputs : iterable of str
        Files that must not be overwritten.
    overwrite : bool
        Whether an earlier export may be replaced.

    Returns
    -------
    tuple
        The number of labels, and the initial model of the folder.
    """
    if not (folder / LOG).exists():
        message = "is not a state folder, so there is nothing to export; correct --state"
        raise FileError(f"{folder} {message}")
    with closing(Log(folder / LOG)) as log:
        undone = {event.undoes for event in log.select("kind = ?", UNDO)}
        labels = [event for event in log.select("kind = ?", LEARN) if event.id not in undone]
    if not labels:
        raise FileError(f"{folder}: there are no labels to export yet")
    model = read_table_model(folder / BASE)
    names = ANNOTATED if annotated else LABELS
    columns: dict[str, Any] = {"key": [event.key for event in labels]}
    if annotated:
        notes = [msgspec.json.decode(event.extra) for event in labels]
        columns = {name: [note[name] for note in notes] for name in ANNOTATED[3:]}
        columns["item"] = [note["id"] for note in notes]
    for name, ends in zip(("lower", "upper"), range_ends(model.classes_.tolist()), strict=True):
        columns[name] = [ends[getattr(event, name) - 1] for event in labels]
    table = pl.DataFrame({name: columns[name] for name in names}, strict=False)
    if model.recipe.n_sparse:
        values = pl.DataFrame({FEATURES: [event.values for event in labels]})
    else:
        X, words = RecordReader(model).logged(labels)
        numbers = pl.DataFrame(X, list(model.recipe.numbers)).fill_nan(None)
        values = pl.concat([numbers, words], how="horizontal")
    renamed = {name: f"{name} of the item" for name in values.columns if name in names}
    table = table.hstack(values.rename(renamed))
    if out == STDOUT or out.lower().endswith(".csv"):  # a spreadsheet would run a formula
        texts = pl.col(pl.String())
        runs = texts.str.contains(FORMULA) & texts.cast(pl.Float64(), strict=False).is_null()
        table = table.with_columns(pl.when(runs).then(texts.str.replace("^", "'")).otherwise(texts))
    write_tables(out, [table], names, inputs, overwrite=overwrite)
    return len(labels), model


def train_command(out: str, model: TableModel, text: Sequence[str]) -> str:
    """The command that trains a model from exported answers with the same features.

    It lists all grades, because some may not occur in the answers.
    """
    used = [name for name in text if name in model.recipe.columns]
    text = [f"{name} of the item" if name in ANNOTATED else name for name in used]
    trained = "labels.ordspan" if out == STDOUT else str(Path(out).with_suffix(".ordspan"))
    words = ["ordspan train", shlex.quote(out), "--lower lower --upper upper"]
    words += ["--grades", shell_list(map(number_as_text, model.classes_.tolist()))]
    words += ["--text", shell_list(text)] if text else []
    return " ".join([*words, "--model", shlex.quote(trained)])
