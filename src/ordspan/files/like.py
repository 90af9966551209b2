"""Other files with the columns, encoding, scale and grades of rows that are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ordspan.files.batch import GROUP, BadRows, FileError
from ordspan.files.columns import ColumnChoice
from ordspan.files.features import Scale
from ordspan.files.grades import LabelColumns, LabelReader
from ordspan.files.opening import FileOptions, check_columns, open_file, options_like
from ordspan.files.reading import RowReader, check_index_base, order_in_files
from ordspan.files.text import STDIN

UNSET = ColumnChoice(standardise=False)
"""The settings of `ordspan.data.stream` if none is given."""


class SameGrades(LabelReader):
    """Reads labels by the grades of another stream."""

    owner = "the grades of the stream given as like, "

    @property
    def remedy(self) -> str:
        """What to do about an unknown grade."""
        return "correct it, or list it in the classes of that stream"


def check_agrees(
    like: RowReader,
    chosen: ColumnChoice,
    columns: LabelColumns,
    choice: ColumnChoice,
    classes: Sequence[Any] | None,
) -> None:
    """Refuse settings that differ from those of another reader, made with the ``chosen`` ones."""
    pairs = [*zip(ColumnChoice._fields, choice, UNSET, chosen, strict=True)]
    known = None if like.grades is None else like.grades.classes.tolist()
    pairs.append(("classes", classes, None, known))
    pairs += zip(columns._fields, columns, LabelColumns(), like.columns, strict=True)
    for name, given, unset, theirs in pairs:
        if _plain(given) not in (_plain(unset), _plain(theirs)):
            raise ValueError(
                f"{name}={given!r} differs from {theirs!r} in the stream given as like; leave it "
                "out, or read without like"
            )


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int) else list(value)


def _columns_in(
    files: Sequence[str], options: FileOptions, first: Sequence[str], columns: LabelColumns
) -> LabelColumns:
    """The label columns if all files have them, none if no file has one."""
    have = [not set(columns.names()).isdisjoint(first)]
    have += [not set(columns.names()).isdisjoint(open_file(f, options).names) for f in files[1:]]
    if all(have) or not columns.names():
        return columns
    if any(have):
        with_, without = files[have.index(True)], files[have.index(False)]
        raise FileError(
            f"{with_} has labels, {without} has none; read them apart, or give label= to require "
            "labels in all"
        )
    return LabelColumns()


def reader_like(
    like: RowReader,
    scale: Scale,
    files: Sequence[str],
    given: FileOptions,
    *,
    labelled: bool,
    on_bad_row: str,
    group: str | None,
    keep: Sequence[str],
) -> RowReader:
    """A reader of other files; without ``labelled``, they may lack the label column."""
    recipe, columns = like.recipe, like.columns
    options = options_like(like.options, recipe, files, given)
    check_index_base(files, recipe, options)
    first = open_file(files[0], options)
    if not recipe.n_sparse:
        if not first.sparse:
            first.find([*recipe.columns, *columns.names()])
        check_columns(first.path, first.names, recipe.columns)
        if not labelled:
            columns = _columns_in(files, options, first.names, columns)
    reader = RowReader(
        files,
        options,
        recipe,
        columns,
        SameGrades(like.grades.classes) if like.grades and columns.names() else None,
        BadRows(on_bad_row),
        GROUP if recipe.n_sparse else group,
        keep,
        first=first,
        scale=scale,
    )
    if files[0] != STDIN and reader.grades is not None:
        reader.sorted_by = order_in_files(reader)
    return reader
