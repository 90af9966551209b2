"""Files as rows ready to learn from: columns, grades, and a position to start from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordspan.labels.forms import number_as_text
from ordspan.labels.text import LabelReader
from ordspan.tables.batch import (
    BEGINNING,
    GROUP,
    LABEL,
    BadRows,
    Batch,
    Cursor,
    Faults,
    FileError,
    RowError,
)
from ordspan.tables.columns import AS_REQUESTED, ColumnChoice, file_notes, make_recipe
from ordspan.tables.features import Recipe, Scale, unusable_rows
from ordspan.tables.label_columns import LabelColumns, read_ranks
from ordspan.tables.labels import known_classes, label_words, labels_of, order_of, plain_labels
from ordspan.tables.limits import FEATURE_BYTES, check_memory
from ordspan.tables.opening import (
    FileOptions,
    check_columns,
    expand,
    is_svmlight,
    open_file,
    sizes_of,
)
from ordspan.tables.ordering import find_sort_key
from ordspan.tables.preview import (
    Preview,
    SparsePreview,
    preview_files,
    preview_sparse,
    raise_fault,
)
from ordspan.tables.svmlight import index_base, survey
from ordspan.tables.text import STDIN
from ordspan.wording import columns_hint, hint


def open_rows(
    paths: Iterable[str | Path],
    options: FileOptions,
    columns: LabelColumns,
    choice: ColumnChoice,
    *,
    classes: Sequence[Any] | None,
    on_bad_row: str,
    group: str | None = None,
    keep: Sequence[str] = (),
    preview: Any = None,
    words: set[str] | None = None,
    pipe: Any = None,
) -> RowReader:
    """The rows of files to learn from, with columns, grades and features found and checked.

    A ``preview`` of the files and the ``words`` of their labels may be available already. A
    ``pipe`` is read instead of standard input.
    """
    files = expand(paths)
    if preview is None:
        sizes_of(files)  # raises if one is missing
    options = count_features(files, options)
    bad = BadRows(on_bad_row)
    if is_svmlight(files[0], options):
        return _open_sparse(files, options, choice, classes, bad, keep, preview, words)
    preview = preview or preview_files(files, options, pipe=pipe)
    taken = [*columns.names(), *([group] if group else [])]
    found = make_recipe(preview, taken, choice, options.decimal)
    grades = None
    if columns.names():
        classes = classes if classes is not None else order_of(preview, columns)
        if preview.whole and classes is None:
            words = label_words(preview, columns)
        try:
            grades = LabelReader(known_classes(classes, files, options, columns, on_bad_row, words))
        except ValueError as error:
            if preview.fault and on_bad_row == "raise":  # perhaps the cause, and an error anyway
                raise RowError(preview.fault) from error
            raise
    reader = RowReader(
        files, options, found.recipe, columns, grades, bad, group, keep, first=preview.reader
    )
    names = [] if choice.features is None else preview.files[0].names
    unused = [name for name in names if name not in taken]
    unused = [name for name in (*unused, *choice.drop) if name not in found.recipe.columns]
    reader.notes = found.notes + _labels_among(found.recipe, grades)
    reader.left_out = found.left_out | dict.fromkeys(unused, AS_REQUESTED)
    reader.decimals = {file.path: file.decimals for file in preview.files}
    if preview.reader is None:
        reader.scale = found.scale
        reader.sorted_by = sorted_by(preview, found.X, found.recipe, grades, columns)
    return reader


def _labels_among(recipe: Recipe, grades: LabelReader | None) -> list[str]:
    """A note on each text column whose values are the grades, perhaps another label."""
    known = set() if grades is None else {number_as_text(c) for c in grades.classes.tolist()}
    return [
        f"column {name!r} holds the grades themselves; if it is another label, leave it out with "
        + columns_hint("drop", name)
        for name, words in recipe.words
        if known and {*words} - {""} == known
    ]


def sorted_by(
    preview: Preview,
    X: NDArray[np.float64],
    recipe: Recipe,
    grades: LabelReader | None,
    columns: LabelColumns,
) -> str:
    """What the rows of a preview are sorted by, or nothing."""
    if grades is None:
        return ""
    lower, upper, faults = read_ranks(grades, labels_of(preview, columns), columns)
    good = np.setdiff1d(np.arange(lower.size), list(faults))
    numbers = [(repr(name), X[good, j]) for j, name in enumerate(recipe.numbers)]
    words = preview.text(recipe.texts)
    codes = [(repr(name), words[name].rank("dense").to_numpy()[good]) for name in recipe.texts]
    return find_sort_key((lower + upper)[good] / 2, numbers, codes)


def order_in_files(reader: RowReader) -> str:
    """What the rows of files are sorted by, or nothing, for a reader with a known recipe.

    Its notes get what the preview finds.
    """
    recipe, columns = reader.recipe, reader.columns
    if recipe.n_sparse:
        return preview_sparse(reader.files, reader.options).sorted_by
    preview = preview_files(reader.files, reader.options)
    preview.check([*recipe.columns, *columns.names()])
    raise_fault(preview)
    names, decimal = [*recipe.numbers, *columns.names()], reader.options.decimal
    for file in preview.files:
        file.read_numbers(names, decimal, recipe.decimals)
        reader.decimals[file.path] = file.decimals
    reader.notes += file_notes(preview, recipe)
    X = np.empty((0, 0))
    if recipe.numbers:
        X = np.column_stack([preview.numbers(name).to_numpy() for name in recipe.numbers])
    return sorted_by(preview, X, recipe, reader.grades, columns)


def _open_sparse(
    files: Sequence[str],
    options: FileOptions,
    choice: ColumnChoice,
    classes: Sequence[Any] | None,
    bad: BadRows,
    keep: Sequence[str],
    preview: SparsePreview | None,
    words: set[str] | None,
) -> RowReader:
    """The rows of svmlight files, whose label and query have fixed places."""
    if choice.features is not None or choice.drop or choice.text or choice.hashed:
        raise ValueError(f"{files[0]}: svmlight rows have no named columns to choose from")
    columns = LabelColumns(LABEL)
    recipe = Recipe(
        n_sparse=options.n_features,
        zero_based=bool(options.zero_based),
        standardise=choice.standardise,
    )
    grades = LabelReader(known_classes(classes, files, options, columns, bad.policy, words))
    reader = RowReader(files, options, recipe, columns, grades, bad, GROUP, keep)
    preview = preview or preview_sparse(files, options)
    reader.scale = Scale(options.n_features)
    reader.scale.state[...] = preview.state
    reader.sorted_by = preview.sorted_by
    return reader


def check_index_base(files: Sequence[str], recipe: Recipe, options: FileOptions) -> None:
    """Refuse svmlight files whose first index differs from that in training."""
    for path in files if recipe.n_sparse else ():
        if not is_svmlight(path, options):
            continue
        extent = survey(path)
        there = 0 if extent.smallest == 0 else 1
        if there == 0 and not recipe.zero_based:
            raise FileError(f"{path}: indices start at 0 here, but at 1 in training")
        if there == 1 and recipe.zero_based and extent.largest == recipe.n_sparse:
            raise FileError(f"{path}: indices start at 1 here, but at 0 in training")


def count_features(files: Sequence[str], options: FileOptions) -> FileOptions:
    """The options with the first index and the number of features of svmlight files.

    What was not given is found by a first pass over the files.
    """
    sparse = [path for path in files if is_svmlight(path, options)]
    if options.n_features:
        fewer = f"; give a smaller {hint('n_features', '--n-features')}"
        check_memory(f"{options.n_features:,} features", FEATURE_BYTES * options.n_features, fewer)
    if options.n_features or not sparse:
        return options
    extents = [survey(path) for path in sparse]
    zero_based, n_features = index_base(sparse, extents, options.zero_based)
    return replace(options, zero_based=zero_based, n_features=n_features)


@dataclass
class RowReader:
    """Reads files in batches, with the features of a recipe and the ranks of the labels."""

    files: Sequence[str]
    options: FileOptions
    recipe: Recipe
    columns: LabelColumns
    grades: LabelReader | None
    bad: BadRows
    group: str | None = None  # column of groups
    keep: Sequence[str] = ()  # columns to keep
    first: Any = None  # the reader of the first file, if it is open already
    scale: Scale | None = None  # of the numbers, if a preview has found it
    sorted_by: str = ""  # what the rows are sorted by, if they are
    decimals: dict[str, dict[str, str]] = field(default_factory=dict)  # by file and column
    notes: list[str] = field(default_factory=list)  # what the user may not expect
    left_out: dict[str, str] = field(default_factory=dict)  # columns, and why

    @cached_property
    def _sizes(self) -> list[int]:
        return sizes_of(self.files)

    def batches(self, begin: Cursor = BEGINNING) -> Iterator[Batch]:
        """Rows from a cursor on, to the end of the files."""
        for number in range(begin.file, len(self.files)):
            at = begin if number == begin.file else Cursor(begin.epoch, number)
            yield from self._file_batches(at)

    def share(self, batch: Batch) -> float | None:
        """How much of the files has been read after a batch; None if that is not known."""
        if STDIN in self.files:
            return None
        number = batch.cursor.file
        done = sum(self._sizes[:number]) + batch.share * self._sizes[number]
        return done / max(1, sum(self._sizes))

    def _file_batches(self, at: Cursor) -> Iterator[Batch]:
        reader = self._open(at.file)
        for batch, faults in reader.batches(self.recipe.numbers, self._texts(reader), at.row):
            if not len(batch) or batch.rows[-1] < at.row:
                continue
            batch, faults = _rows_from(at.row, batch, faults)
            cursor = at._replace(row=int(batch.rows[0]))
            batch = replace(batch, cursor=cursor, skipped=self.bad.count)
            batch, faults = self._checked(batch, faults, reader)
            raises = faults and self.bad.policy == "raise"
            if raises and reader.path == STDIN and (before := batch.part(0, min(faults))):
                yield before  # cannot be read again
            batch = batch.without(faults, self.bad)
            if len(batch):
                yield batch

    def _open(self, number: int) -> Any:
        if number == 0 and self.first is not None:
            reader, self.first = self.first, None
        else:
            reader = open_file(self.files[number], self.options)
        if self.recipe.n_sparse and not reader.sparse:
            raise FileError(f"{reader.path}: svmlight rows are expected here")
        if self.recipe.n_sparse:
            return reader
        reader.find([*self.recipe.numbers, *self._texts(reader)])
        check_columns(reader.path, reader.names, [*self.recipe.numbers, *self._texts(reader)])
        if reader.path in self.decimals:
            reader.decimals = self.decimals[reader.path]
        else:
            names = [*self.recipe.numbers, *self.columns.names()]
            reader.detect_decimals(names, self.recipe.decimals, self.options.decimal)
        return reader

    def _texts(self, reader: Any) -> list[str]:
        """Columns besides X; a column may be used twice, for example as a number and kept."""
        if reader.sparse:
            return [LABEL, GROUP]
        group = [] if self.group is None else [self.group]
        return [*dict.fromkeys([*self.recipe.texts, *self.columns.names(), *group, *self.keep])]

    def _checked(self, batch: Batch, faults: Faults, reader: Any) -> tuple[Batch, Faults]:
        """The batch with the ranks of its labels, and its bad rows."""
        faults = unusable_rows(self.recipe, batch.X) | faults
        if self.grades is not None:
            labels = batch.table
            if not reader.sparse:
                labels = plain_labels(labels, self.columns, reader.decimals)
            lower, upper, wrong = read_ranks(self.grades, labels, self.columns)
            faults = wrong | faults
            batch = replace(batch, lower=lower, upper=upper, classes=self.grades.classes)
        return replace(batch, keep=tuple(self.keep), group_column=self.group), faults


def _rows_from(start: int, batch: Batch, faults: Faults) -> tuple[Batch, Faults]:
    """The rows of a batch from position ``start`` in its file on."""
    before = max(0, start - int(batch.rows[0]))
    if not before:
        return batch, faults
    rest = replace(batch.part(before, len(batch)), done=0)
    return rest, {row - before: fault for row, fault in faults.items() if row >= before}
