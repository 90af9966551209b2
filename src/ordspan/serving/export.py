"""Write the labels of a state folder as a table for ``ordspan train``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

import msgspec
import polars as pl

from ordspan.commands.models import read_table_model
from ordspan.commands.outputs import STDOUT, opened_output
from ordspan.models.table import TableModel
from ordspan.serving.engine import BASE, LOG
from ordspan.serving.log import LEARN, Event, Log
from ordspan.serving.records import as_word
from ordspan.tables.encoder import Recipe
from ordspan.tables.rows import FileError

FORMULA = r"^[=+\-@\t\r]"
"""The beginning of a cell that a spreadsheet would run."""


def read_state(folder: Path) -> tuple[TableModel, list[Event]]:
    """The initial model of a state folder, and all events of its log; a service may be running."""
    if not (folder / LOG).exists():
        raise FileError(f"{folder} holds no labels, so there is nothing to export; correct --state")
    with closing(Log(folder / LOG)) as log:
        return read_table_model(folder / BASE), list(log.read())


def export_labels(out: str, folder: Path) -> int:
    """Write every label of a service that was not undone, in order; returns their number.

    The columns are key, lower and upper, followed by the columns of the model; rows of a model of
    svmlight files are pairs of index, from 0, and value.
    """
    model, events = read_state(folder)
    undone = {event.undoes for event in events}
    labels = [event for event in events if event.kind == LEARN and event.id not in undone]
    if not labels:
        raise FileError(f"{folder}: there are no labels to export yet")
    grades = model.classes_.tolist()
    ends = {"lower": [event.lower for event in labels], "upper": [event.upper for event in labels]}
    table = pl.DataFrame(
        [
            pl.Series("key", [event.key for event in labels], dtype=pl.String()),
            *(pl.Series(n, [grades[rank - 1] for rank in r if rank]) for n, r in ends.items()),
        ]
    )
    write_labels(out, table.hstack(value_columns(model.recipe, labels)), [str(folder / BASE)])
    return len(labels)


def value_columns(recipe: Recipe, events: Sequence[Event]) -> pl.DataFrame:
    """The values of events as the columns of a model."""
    if recipe.n_sparse:
        return pl.DataFrame({"features": [event.values for event in events]})
    rows = [msgspec.json.decode(event.values) for event in events]
    columns = list(zip(*rows, strict=True))
    n = len(recipe.numbers)
    numbers = zip(recipe.numbers, columns[:n], strict=True)
    texts = zip(recipe.texts, columns[n:], strict=True)
    return pl.DataFrame(
        [pl.Series(name, cells, dtype=pl.Float64()) for name, cells in numbers]
        + [pl.Series(name, map(as_word, cells), dtype=pl.String()) for name, cells in texts]
    )


def write_labels(out: str, table: pl.DataFrame, inputs: Iterable[str]) -> None:
    """Write a table; in CSV, a text that a spreadsheet would run gets an apostrophe."""
    if out == STDOUT or out.lower().endswith(".csv"):
        texts = pl.col(pl.String())
        runs = texts.str.contains(FORMULA) & texts.cast(pl.Float64(), strict=False).is_null()
        table = table.with_columns(pl.when(runs).then(texts.str.replace("^", "'")).otherwise(texts))
    with opened_output(out, inputs) as output:
        output.write(table)
