"""Files as rows ready to learn from: which columns, which grades, and from where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ordspan.core.labels import check_classes
from ordspan.files.batch import (
    BEGINNING,
    GROUP,
    LABEL,
    NUMBER,
    TEXT,
    BadRows,
    Batch,
    Cursor,
    Faults,
    FileError,
)
from ordspan.files.features import Recipe, unusable_rows
from ordspan.files.grades import Grades, LabelColumns, classes_of, coded
from ordspan.files.opening import (
    FileOptions,
    check_columns,
    expand,
    is_sparse,
    open_file,
    sizes_of,
)
from ordspan.files.svmlight import index_base, survey
from ordspan.files.text import STDIN


def make_recipe(
    path: str,
    options: FileOptions,
    *,
    taken: Sequence[str] = (),
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    text: Sequence[str] = (),
    hash_bits: int,
    standardise: bool,
) -> tuple[Recipe, Any]:
    """Which columns of a file are features, judged by its beginning; and its reader, to go on.

    Columns in ``taken`` (labels, groups) and ``drop`` are not; those in ``text`` are words.
    """
    reader = open_file(path, options)
    if reader.sparse:
        if features is not None or drop or text:
            raise ValueError(f"{path}: svmlight rows have no named columns to choose from")
        zero_based = bool(options.zero_based)
        return Recipe((), (), hash_bits, options.n_features, zero_based, standardise), reader
    kinds = reader.kinds()
    check_columns(path, reader.names, [*taken, *(features or ()), *drop, *text])
    outside = {*taken, *drop}
    chosen = [n for n in (features or reader.names) if n not in outside]
    if not chosen:
        raise ValueError(f"{path}: no column is left to learn from")
    for name in chosen:
        if name not in text and kinds[name] not in (NUMBER, TEXT):
            raise ValueError(
                f"{path}: column {name!r} holds neither numbers nor words; leave it out with "
                f"--drop {name}, or take it as words with --text {name}"
            )
    words = tuple(n for n in chosen if n in text or kinds[n] == TEXT)
    numbers = tuple(n for n in chosen if n not in words)
    return Recipe(numbers, words, hash_bits, 0, False, standardise), reader


def open_rows(
    paths: Iterable[str | Path],
    options: FileOptions,
    columns: LabelColumns,
    *,
    order: Sequence[Any] | None,
    features: Sequence[str] | None,
    drop: Sequence[str],
    text: Sequence[str],
    hash_bits: int,
    standardise: bool,
    on_bad_row: str,
    group: str | None = None,
    keep: Sequence[str] = (),
) -> RowReader:
    """The rows of files that are to be learned: columns, grades and features found and checked."""
    files = expand(paths)
    sizes_of(files)
    options = count_features(files, options)
    bad = BadRows(on_bad_row)
    if is_sparse(files[0], options):
        columns, group = LabelColumns(LABEL), GROUP
    recipe, first = make_recipe(
        files[0],
        options,
        taken=[*columns.names(), *([group] if group else [])],
        features=features,
        drop=drop,
        text=text,
        hash_bits=hash_bits,
        standardise=standardise,
    )
    grades = None
    if columns.names():
        grades = Grades(known_classes(order, files, options, columns, on_bad_row))
    return RowReader(files, options, recipe, columns, grades, bad, group, keep, first)


def label_columns(label: str | None, lower: str | None, upper: str | None) -> LabelColumns:
    """The label columns that were named, one way or the other."""
    if label is not None and (lower is not None or upper is not None):
        raise ValueError("give either a label column, or columns of lower and upper ends")
    return LabelColumns(label, lower, upper)


def known_classes(
    order: Sequence[Any] | None,
    files: Sequence[str],
    options: FileOptions,
    columns: LabelColumns,
    on_bad_row: str,
) -> NDArray[Any]:
    """The grades in the order that was given, or found by one pass over the label columns."""
    if order is not None:
        return check_classes(order)
    return classes_of(find_words(files, options, columns, BadRows(on_bad_row)))


def find_words(
    files: Sequence[str], options: FileOptions, columns: LabelColumns, bad: BadRows
) -> set[str]:
    """All different words in the label columns."""
    words: set[str] = set()
    for path in files:
        if path == STDIN:
            raise ValueError("standard input can be read only once: give the grades with --order")
        if is_sparse(path, options):
            words |= survey(path).grades
            continue
        reader = open_file(path, options)
        check_columns(path, reader.names, columns.names())
        for batch, faults in reader.batches((), columns.names()):
            for name in columns.names():
                words.update(coded(batch.without(faults, bad).table, name)[1])
    return words


def count_features(files: Sequence[str], options: FileOptions) -> FileOptions:
    """The options with where indices of svmlight files begin, and the number of their features.

    What was not told is found by a first look over the files.
    """
    sparse = [path for path in files if is_sparse(path, options)]
    if options.n_features or not sparse:
        return options
    extents = [survey(path) for path in sparse]
    zero_based, n_features = index_base(sparse[0], extents, options.zero_based)
    return replace(options, zero_based=zero_based, n_features=n_features)


@dataclass
class RowReader:
    """Walks over files and yields their rows, checked, as a recipe and label columns want them."""

    files: Sequence[str]
    options: FileOptions
    recipe: Recipe
    columns: LabelColumns
    grades: Grades | None
    bad: BadRows
    group: str | None = None  # column of groups
    keep: Sequence[str] = ()  # columns to carry along
    first: Any = None  # the reader of the first file, where it is open already

    def __post_init__(self) -> None:
        self._sizes = sizes_of(self.files)

    def batches(self, begin: Cursor = BEGINNING) -> Iterator[Batch]:
        """Rows from a cursor on, to the end of the files."""
        for number in range(begin.file, len(self.files)):
            at = begin if number == begin.file else Cursor(begin.walk, number)
            yield from self._of_file(number, at)

    def share(self, batch: Batch) -> float | None:
        """How much of the files has been read with a batch; None where that cannot be known."""
        if STDIN in self.files:
            return None
        file = batch.cursor.file
        done = sum(self._sizes[:file]) + batch.share * self._sizes[file]
        return done / max(1, sum(self._sizes))

    def _of_file(self, number: int, at: Cursor) -> Iterator[Batch]:
        reader = self._open(number)
        parts = reader.batches(self.recipe.numbers, self._texts(reader), at.row)
        for batch, faults in parts:
            if not len(batch) or batch.rows[-1] < at.row:
                continue
            batch, faults = _from(at.row, batch, faults)
            cursor = Cursor(at.walk, number, int(batch.rows[0]))
            batch = replace(batch, cursor=cursor, skipped=self.bad.count)
            batch = self._checked(batch, faults)
            if len(batch):
                yield batch

    def _open(self, number: int) -> Any:
        if number == 0 and self.first is not None:
            reader, self.first = self.first, None
        else:
            reader = open_file(self.files[number], self.options)
        if self.recipe.n_sparse and not reader.sparse:
            raise FileError(f"{reader.path}: svmlight rows are needed here")
        if self.recipe.n_sparse:
            return reader
        check_columns(reader.path, reader.names, [*self.recipe.numbers, *self._texts(reader)])
        return reader

    def _texts(self, reader: Any) -> list[str]:
        """Columns besides X; a column may serve twice, as a label or a number and kept."""
        if reader.sparse:
            return [LABEL, GROUP]
        group = [] if self.group is None else [self.group]
        return [*dict.fromkeys([*self.recipe.words, *self.columns.names(), *group, *self.keep])]

    def _checked(self, batch: Batch, faults: Faults) -> Batch:
        """The batch with the ranks of its labels, and without its bad rows."""
        faults = unusable_rows(self.recipe, batch.X) | faults
        if self.grades is not None:
            lower, upper, wrong = self.grades.read(batch.table, self.columns)
            faults = wrong | faults
            batch = replace(batch, lower=lower, upper=upper, classes=self.grades.classes)
        batch = replace(batch, keep=tuple(self.keep), group_column=self.group)
        return batch.without(faults, self.bad)


def _from(start: int, batch: Batch, faults: Faults) -> tuple[Batch, Faults]:
    """The rows of a batch from a row of its file on."""
    before = max(0, start - int(batch.rows[0]))
    if not before:
        return batch, faults
    rest = replace(batch.part(before, len(batch)), done=0)
    return rest, {row - before: fault for row, fault in faults.items() if row >= before}
