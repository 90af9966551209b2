"""Label columns of files: which they are, and the grades in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from numpy.typing import NDArray

from ordspan.labels.grades import (
    ALL_GRADES,
    MAX_LABELS,
    check_classes,
    check_grades,
    classes_of,
)
from ordspan.tables.batch import BadRows, FileError
from ordspan.tables.dialect import as_numbers, is_boolean
from ordspan.tables.label_columns import LabelColumns, encode_column
from ordspan.tables.opening import FileOptions, check_columns, is_svmlight, open_file
from ordspan.tables.preview import Preview
from ordspan.tables.svmlight import survey
from ordspan.tables.tables import text_columns
from ordspan.tables.text import STDIN


def labels_of(preview: Preview, columns: LabelColumns) -> pl.DataFrame:
    """The label columns of the rows of a preview."""
    tables = [f.table.select(columns.names()) for f in preview.files if f.table.height]
    separators = [f.decimals for f in preview.files if f.table.height]
    tables = [plain_labels(t, columns, s) for t, s in zip(tables, separators, strict=True)]
    return pl.concat([text_columns(t, t.columns).cast(pl.String()) for t in tables])


def label_words(preview: Preview, columns: LabelColumns) -> set[str]:
    """All distinct values in the label columns of a preview of whole files."""
    table = labels_of(preview, columns)
    return {word for name in columns.names() for word in encode_column(table, name)[1]}


def plain_labels(
    table: pl.DataFrame, columns: LabelColumns, separators: Mapping[str, str]
) -> pl.DataFrame:
    """Label columns in which formatted numbers become plain numbers; ranges stay."""
    for name in columns.names():
        if name in separators and table[name].dtype == pl.String:
            cells = table[name]
            values = as_numbers(cells, separators[name]).cast(pl.String())
            named = values.is_null() | is_boolean(cells.str.strip_chars())  # true may be a grade
            plain = pl.select(pl.when(named).then(cells).otherwise(values)).to_series()
            table = table.with_columns(plain.alias(name))
    return table


def order_of(preview: Preview, columns: LabelColumns) -> list[Any] | None:
    """The grades from lowest to highest, if a label column has an ordered type."""
    orders = {
        tuple(file.orders[name]): file.path
        for file in preview.files
        for name in columns.names()
        if name in file.orders
    }
    if len(orders) > 1:
        (one, first), (other, second) = list(orders.items())[:2]
        raise FileError(
            f"{first} and {second} have different orders of the grades, {list(one)} and "
            f"{list(other)}; give the right one with " + ALL_GRADES
        )
    return list(next(iter(orders))) if orders else None


def known_classes(
    classes: Sequence[Any] | None,
    files: Sequence[str],
    options: FileOptions,
    columns: LabelColumns,
    on_bad_row: str,
    words: set[str] | None = None,
) -> NDArray[Any]:
    """The grades in the order given, or as found in the label columns.

    Without their ``words`` this takes a pass over these columns.
    """
    if classes is not None:
        check_grades(len(classes), "the order has")
        return check_classes(classes)
    if words is None:
        words = find_words(files, options, columns, BadRows(on_bad_row))
    try:
        return classes_of(words)
    except ValueError as error:
        names = " and ".join(map(repr, columns.names()))
        raise ValueError(f"column {names}: {error}") from None


def find_words(
    files: Sequence[str], options: FileOptions, columns: LabelColumns, bad: BadRows
) -> set[str]:
    """All distinct values in the label columns."""
    words: set[str] = set()
    for path in files:
        if path == STDIN:
            raise ValueError(
                "standard input and other pipes can be read only once: give the grades with "
                + ALL_GRADES
            )
        if is_svmlight(path, options):
            words |= survey(path).grades
            continue
        reader = open_file(path, options)
        check_columns(path, reader.names, columns.names())
        reader.detect_decimals(columns.names(), {}, options.decimal)
        for batch, faults in reader.batches((), columns.names()):
            table = plain_labels(batch.without(faults, bad).table, columns, reader.decimals)
            for name in columns.names():
                words.update(encode_column(table, name)[1])
                check_grades(len(words), f"{path}: column {name!r} has", MAX_LABELS)
    return words
