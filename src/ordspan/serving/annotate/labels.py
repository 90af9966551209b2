"""Export answers as a table for ``ordspan train``."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from ordspan.commands.outputs import STDOUT
from ordspan.labels.forms import number_as_text
from ordspan.serving.annotate.history import Reply
from ordspan.serving.annotate.items import Items, can_learn
from ordspan.serving.export import value_columns, write_labels
from ordspan.serving.log import LEARN
from ordspan.tables.encoder import Recipe
from ordspan.tables.profile import ANNOTATED
from ordspan.tables.rows import FileError
from ordspan.wording import shell_list


def export_answers(
    out: str,
    recipe: Recipe,
    grades: list[Any],
    replies: Iterable[Reply],
    items: Items | None,
    inputs: Iterable[str],
) -> int:
    """Write a row for every answer, in order.

    The columns are item, lower, upper, annotator, seconds and asked_by, followed by the columns
    that the model learns from, as they were learned.

    Parameters
    ----------
    out : str
        A file ending in .csv, .parquet or .jsonl, or "-" for CSV on standard output.
    recipe : Recipe
        The columns that the model learns from.
    grades : list
        Grades from lowest to highest.
    replies : iterable of Reply
        Answers and skips; skips are not written.
    items : Items, optional
        The items; without them, ids are those of the log.
    inputs : iterable of str
        Files that must not be overwritten.

    Returns
    -------
    int
        The number of answers.
    """
    answers = [one for one in replies if one.event.kind == LEARN]
    if not answers:
        raise FileError("there are no answers to export yet")
    ids = [
        items.key(one.extra.item) if items else one.extra.id or str(one.extra.item + 1)
        for one in answers
    ]
    table = pl.DataFrame(
        [
            pl.Series("item", ids),
            pl.Series("lower", [grades[one.ends[0] - 1] for one in answers]),
            pl.Series("upper", [grades[one.ends[1] - 1] for one in answers]),
            pl.Series("annotator", [one.extra.annotator for one in answers]),
            pl.Series("seconds", [one.extra.seconds for one in answers], dtype=pl.Float64()),
            pl.Series("asked_by", [one.extra.asked_by for one in answers]),
        ]
    )
    assert tuple(table.columns) == ANNOTATED
    if can_learn(recipe):
        learned = value_columns(recipe, [one.event for one in answers])
        table = table.hstack(learned.rename({n: _exported(n) for n in learned.columns}))
    write_labels(out, table, inputs)
    return len(answers)


def train_command(out: str, grades: list[Any], recipe: Recipe, text: Sequence[str]) -> str:
    """The command that trains a model from exported answers with the same features.

    It lists all grades, because some may not occur in the answers.
    """
    text = [_exported(name) for name in text if name in recipe.columns]
    model = "labels.ordspan" if out == STDOUT else str(Path(out).with_suffix(".ordspan"))
    words = ["ordspan train", shlex.quote(out), "--lower lower --upper upper"]
    words += ["--grades", shell_list(map(number_as_text, grades))]
    words += ["--text", shell_list(text)] if text else []
    return " ".join([*words, "--model", shlex.quote(model)])


def _exported(name: str) -> str:
    """Name of an item column in the exported table."""
    return f"{name} of the item" if name in ANNOTATED else name
