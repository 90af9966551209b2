"""Files as rows ready to learn from: columns, grades, and a position to start from.

Rows to be read again in any order, for several passes or sorted files, are kept on disk.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordspan.core.state import Ranks
from ordspan.labels.amounts import EDGES, bands_of
from ordspan.labels.grades import ALL_GRADES, MAX_LABELS, check_classes, check_grades, classes_of
from ordspan.labels.text import LabelReader
from ordspan.tables.encoder import Encoder, Recipe, matrix_of, stack_rows
from ordspan.tables.files import (
    FileOptions,
    check_columns,
    expand,
    is_svmlight,
    open_file,
    sizes_of,
)
from ordspan.tables.formats import CP1252, REPLACED
from ordspan.tables.label_columns import (
    NO_LABEL,
    LabelColumns,
    label_frame,
    label_words,
    read_ranks,
    refuse_amounts,
)
from ordspan.tables.numbers import FLOAT, TEXT
from ordspan.tables.profile import (
    AS_REQUESTED,
    label_notes,
    plan_columns,
    profile_files,
    profile_sparse,
)
from ordspan.tables.rows import (
    BEGINNING,
    GROUP,
    LABEL,
    BadRows,
    Batch,
    Cursor,
    FileError,
    RowError,
    check_features,
)
from ordspan.tables.svmlight import Extent, survey
from ordspan.tables.text import STDIN
from ordspan.wording import closest, hint, join_hints

ROWS_AT_ONCE = 1 << 13
"""Rows per batch: enough to amortise Python overhead, few enough for prompt stops."""
VALUES, COLUMNS, ENDS, RANKS = "values", "columns", "ends", "ranks"
TYPES = {VALUES: np.float64, COLUMNS: np.int32, ENDS: np.int64, RANKS: np.int64}
MAPPED = 1024  # rows read from one mapping; the pages around them are mapped with them


def open_rows(
    paths: Iterable[str | Path],
    options: FileOptions,
    columns: LabelColumns,
    choice: Any,
    classes: Sequence[Any] | None,
    on_bad_row: str,
    group: str | None = None,
    keep: Sequence[str] = (),
    words: Counter[str] | None = None,
    pipe: Any = None,
) -> RowReader:
    """The rows of files to learn from, with columns, grades and features found and checked.

    The ``words`` of the labels may be available already. A ``pipe`` is read instead of standard
    input.
    """
    files = expand(paths)
    sizes_of(files)  # raises if one is missing
    options, bad = count_features(files, options), BadRows(on_bad_row)
    if is_svmlight(files[0], options):
        if choice.features is not None or choice.drop or choice.text or choice.hashed or options.na:
            raise ValueError(f"{files[0]}: svmlight rows have no named columns to choose from")
        if classes is None and words is None:
            words = Counter({*()}.union(*(survey(path).grades for path in files)))
        columns = LabelColumns(LABEL, brackets=columns.brackets, parts=columns.parts)
        labels, notes = read_grades(classes, words, columns)
        state, sorted_by = profile_sparse(files, options)
        n, zero_based = options.n_features, bool(options.zero_based)
        recipe = Recipe(n_sparse=n, zero_based=zero_based, standardise=choice.standardise)
        encoder = Encoder(recipe, state)
        reader = RowReader(files, options, encoder, columns, labels, bad, GROUP, tuple(keep))
        reader.sorted_by, reader.notes = sorted_by, notes
        return reader
    profile = profile_files(files, options, (*choice.text, *choice.hashed), pipe)
    taken = [*columns.names(), *([group] if group else [])]
    _check_codes(profile, options.na)
    encoder, left_out, notes = plan_columns(profile, taken, choice)
    recipe, grades = encoder.recipe, None
    if columns.names():
        if classes is None and not columns.brackets and not columns.parts:
            classes = profile.order(columns, ALL_GRADES)
        if classes is None and words is None:
            words = label_words(profile.labels(columns), columns)
            if not profile.whole and not columns.parts:  # a sample is enough for equal parts
                words = find_words(files, options, columns)
        try:
            grades, label_remarks = read_grades(classes, words, columns)
            notes += label_remarks
            if classes is None and not columns.brackets:
                refuse_amounts(profile.labels(columns), columns, grades.classes)
        except ValueError as error:
            if profile.fault and on_bad_row == "raise":  # perhaps the cause, and an error anyway
                raise RowError(profile.fault) from error
            if not profile.problems:
                raise
            profile.problems.append(str(error))
    profile.refuse_problems()
    unused = [] if choice.features is None else profile.files[0].names
    unused = [name for name in (*unused, *choice.drop) if name not in (*taken, *recipe.columns)]
    reader = RowReader(files, options, encoder, columns, grades, bad, group, tuple(keep))
    reader.notes = notes + label_notes(recipe, grades)
    reader.left_out = left_out | dict.fromkeys(unused, AS_REQUESTED)
    reader.decimals = {file.path: file.decimal for file in profile.files}
    reader.learns_scale = profile.is_pipe
    if profile.is_pipe:
        reader.first = profile.files[0]
    elif grades is not None:
        reader.sorted_by = profile.sorted_by(recipe, grades, columns)
    return reader


def _check_codes(profile: Any, na: Sequence[str]) -> None:
    """Refuse a code for no answer of a column that is not there, but one of a similar name is."""
    for file in profile.files:
        names = [code.rpartition(":")[0] for code in na]
        check_columns(file.path, file.names, [n for n in names if n and closest(n, file.names)])


def order_in_files(reader: RowReader) -> str:
    """What neighbouring rows of files are alike in, or nothing, for a reader with a known recipe.

    Its notes get what a sample shows.
    """
    assert reader.grades is not None
    if reader.recipe.n_sparse:
        return profile_sparse(reader.files, reader.options)[1]
    profile = profile_files(reader.files, reader.options)
    profile.check([*reader.recipe.columns, *reader.columns.names()])
    reader.decimals = {file.path: file.decimal for file in profile.files}
    reader.notes += profile.file_notes()
    return profile.sorted_by(reader.recipe, reader.grades, reader.columns)


def read_grades(
    classes: Any, words: Counter[str] | None, columns: LabelColumns
) -> tuple[LabelReader, list[str]]:
    """The reader of labels with the grades in the order given, or as found in words; and notes."""
    if classes is not None:
        check_grades(len(classes), "the order has")
        return LabelReader(check_classes(classes)), []
    words = words or Counter()
    try:
        if lost := [word for word in words if REPLACED in word]:
            raise ValueError(
                f"the label {lost[0]!r} holds letters that are not UTF-8; give {CP1252}"
            )
        if columns.brackets or columns.parts:
            bands, notes = bands_of(words, columns.parts)
            return LabelReader(bands), notes
        return LabelReader(classes_of(words)), []
    except ValueError as error:
        names = " and ".join(map(repr, columns.names()))
        raise ValueError(f"column {names}: {error}") from None


def find_words(
    files: Sequence[str],
    options: FileOptions,
    columns: LabelColumns,
) -> Counter[str]:
    """All distinct values in the label columns of tables, and how often they occur."""
    words: Counter[str] = Counter()
    for path in files:
        if path == STDIN:
            way_out = EDGES if columns.brackets else ALL_GRADES
            raise ValueError(
                f"standard input and other pipes can be read only once: give the grades, {way_out}"
            )
        reader = open_file(path, options)
        check_columns(path, reader.names, columns.names())
        for block in reader.blocks(dict.fromkeys(columns.names(), TEXT)):
            good = np.setdiff1d(np.arange(len(block)), list(block.faults))
            words.update(label_words(label_frame(block.table[good], columns), columns))
            check_grades(len(words), f"{path}: the label has", MAX_LABELS)
    return words


def check_index_base(files: Sequence[str], recipe: Recipe, options: FileOptions) -> None:
    """Refuse svmlight files whose first index differs from that in training."""
    for path in [path for path in files if recipe.n_sparse and is_svmlight(path, options)]:
        extent, here = survey(path), None
        if extent.smallest == 0 and not recipe.zero_based:
            here = 0
        if extent.smallest and recipe.zero_based and extent.largest == recipe.n_sparse:
            here = 1
        if here is not None:
            raise FileError(
                f"{path}: indices start at {here} here, but at {1 - here} in training; number the "
                "features as in training"
            )


def count_features(
    files: Sequence[str], options: FileOptions, extents: Sequence[Extent] = ()
) -> FileOptions:
    """The options with the first index and the number of features of svmlight files.

    What was not given is found by a first pass over the files, whose results may be given. Indices
    start at 0 if 0 occurs.
    """
    n_features, what = options.n_features, f"{options.n_features:,} features"
    remedies = [f"give a smaller {hint('n_features', '--n-features')}"]
    sparse = [path for path in files if is_svmlight(path, options)]
    if sparse and not n_features:
        extents = extents or [survey(path) for path in sparse]
        zero_based = options.zero_based
        if zero_based is None:
            zero_based = min(extent.smallest for extent in extents) == 0
        path, extent = max(zip(sparse, extents, strict=True), key=lambda pair: pair[1].largest)
        n_features = extent.largest + zero_based
        if n_features < 1:
            raise FileError(f"{path}: no line has a feature, index:value")
        bad = f"treat such lines as bad with {hint('n_features=', '--n-features N')}"
        remedies = ["correct it", "number the features from 1", bad]
        what = f"{path}, row {extent.row}: index {extent.largest} means {n_features:,} features,"
        options = replace(options, zero_based=zero_based, n_features=n_features)
    check_features(what, n_features, join_hints(*remedies))
    return options


@dataclass
class RowReader:
    """Reads files in batches, with the numbers of a recipe and the ranks of the labels."""

    files: Sequence[str]
    options: FileOptions
    encoder: Encoder
    columns: LabelColumns
    grades: LabelReader | None
    bad: BadRows
    group: str | None = None  # column of groups
    keep: tuple[str, ...] = ()  # columns to keep
    first: Any = None  # the reader of the first file, if it is open already
    sorted_by: str = ""  # what neighbouring rows are alike in, if they are
    learns_scale: bool = False  # whether mean and spread are learned from the rows
    unlabelled: int = 0  # rows that were left out, because they have no label
    decimals: dict[str, str] = field(default_factory=dict)  # decimal signs, by file
    notes: list[str] = field(default_factory=list)  # what the user may not expect
    left_out: dict[str, str] = field(default_factory=dict)  # columns, and why

    @property
    def recipe(self) -> Recipe:
        """How columns become features."""
        return self.encoder.recipe

    def label_notes(self) -> list[str]:
        """What reading told about the labels."""
        notes, count = [], self.unlabelled
        if count:
            rows, were = ("rows", "were") if count > 1 else ("row", "was")
            notes.append(f"{count:,} {rows} without a label {were} left out")
        if self.grades is not None and self.grades.note:
            notes.append(self.grades.note)
        return notes

    @cached_property
    def _sizes(self) -> list[int]:
        return sizes_of(self.files)

    def batches(self, at: Cursor = BEGINNING, size: int = ROWS_AT_ONCE) -> Iterator[Batch]:
        """Rows from a position on, to the end of the files, at most so many at once."""
        for number in range(at.file, len(self.files)):
            reader = self._open(number)
            done = at if number == at.file else Cursor(at.epoch, number)
            for block in reader.blocks(self._types(reader), done):
                first = max(0, done.row - int(block.rows[0]) + 1) if len(block) else 0
                for begin in range(first, len(block), size):
                    yield from self._batch(reader, block, begin, begin + size)

    def share(self, batch: Batch) -> float | None:
        """How much of the files has been read after a batch; None if that is not known."""
        if STDIN in self.files:
            return None
        number = batch.after.file
        done = sum(self._sizes[:number]) + batch.share * self._sizes[number]
        return done / max(1, sum(self._sizes))

    def _open(self, number: int) -> Any:
        if number == 0 and self.first is not None:
            reader, self.first = self.first, None
        else:
            path = self.files[number]
            known = replace(self.options, decimal=self.options.decimal or self.decimals.get(path))
            reader = open_file(path, known)
        if self.recipe.n_sparse and not reader.sparse:
            raise FileError(f"{reader.path}: the model needs svmlight rows, as in training")
        check_columns(reader.path, reader.names, self._types(reader))
        return reader

    def _types(self, reader: Any) -> dict[str, Any]:
        """The columns to read; one that is a number and kept too is read as text."""
        if reader.sparse:
            return {}
        group = [] if self.group is None else [self.group]
        texts = [*self.recipe.texts, *self.columns.names(), *group, *self.keep]
        return dict.fromkeys(self.recipe.numbers, FLOAT) | dict.fromkeys(texts, TEXT)

    def _batch(self, reader: Any, block: Batch, begin: int, end: int) -> Iterator[Batch]:
        """Some rows of a block, with their ranks, without bad rows and those without a label."""
        batch = block.only(slice(begin, end))
        faults = {row - begin: why for row, why in block.faults.items() if begin <= row < end}
        X, table = batch.X, batch.table
        if X is None:
            X = matrix_of(table, self.recipe.numbers, reader.decimal, faults)
        faults = self.encoder.value_faults(X) | faults
        after = block.after._replace(row=int(batch.rows[-1]))
        named: Any = {"group_column": self.group, "keep": self.keep, "faults": {}}
        batch = replace(batch, X=X, after=after, **named)
        if self.grades is not None:
            labels = label_frame(table, self.columns, reader.decimal)
            lower, upper, wrong = read_ranks(self.grades, labels, self.columns)
            faults = wrong | faults
            batch = replace(batch, lower=lower, upper=upper, classes=self.grades.classes)
        raises = faults and self.bad.policy == "raise"
        if raises and reader.path == STDIN and min(faults):  # cannot be read again
            before = batch.only(np.arange(min(faults)))
            after = after._replace(row=int(before.rows[-1]))
            yield from self._labelled(replace(before, after=after))
        yield from self._labelled(self.bad.take_from(batch, faults))

    def _labelled(self, batch: Batch) -> Iterator[Batch]:
        """The rows with a label; those without one are counted."""
        if batch.lower is not None and self.bad.policy != "keep":
            known = batch.lower != NO_LABEL
            self.unlabelled += int((~known).sum())
            batch = batch if known.all() else batch.only(known)
        if len(batch):
            yield batch


class Staging:
    """Features and ranks of rows in a folder, written once and then read by row number.

    Dense rows are their values; sparse ones have the columns of their values too, and the place
    where each row ends among them.

    Parameters
    ----------
    folder : Path
        Where to write; the folder belongs to one training, beside its checkpoint.
    n_features : int
        Number of features.
    """

    def __init__(self, folder: Path, n_features: int) -> None:
        self.folder, self.n_features = folder, n_features

    @property
    def _dense(self) -> bool:
        return not (self.folder / COLUMNS).stat().st_size

    @property
    def n_bytes(self) -> int:
        """Size of all rows."""
        return sum((self.folder / name).stat().st_size for name in TYPES)

    @property
    def n_rows(self) -> int:
        """Number of rows on disk."""
        path = self.folder / RANKS
        return path.stat().st_size // (2 * np.dtype(TYPES[RANKS]).itemsize) if path.exists() else 0

    def write(self, batches: Iterable[tuple[Any, Ranks, Ranks, float | None]]) -> None:
        """Write all rows, given as features, lower and upper ranks, and the share that is read.

        Raises before the disk is full.
        """
        self.remove()
        self.folder.mkdir()
        written = n_values = 0
        with ExitStack() as stack:
            files = {n: stack.enter_context(open(self.folder / n, "wb")) for n in TYPES}
            for X, lower, upper, share in batches:
                parts = {RANKS: np.column_stack([lower, upper])}
                if isinstance(X, np.ndarray):
                    parts[VALUES] = X
                else:
                    parts |= {VALUES: X.data, COLUMNS: X.indices, ENDS: X.indptr[1:] + n_values}
                    n_values += X.data.size
                for name, part in parts.items():
                    written += files[name].write(np.ascontiguousarray(part, TYPES[name]).data)
                self._check_space(written, share)
            for file in files.values():
                file.flush()
                os.fsync(file.fileno())

    def _check_space(self, written: int, share: float | None) -> None:
        needed = written / share - written if share else 0.0
        free = shutil.disk_usage(self.folder).free
        if needed > free:
            self.remove()
            raise FileError(
                f"{self.folder.parent}: rows that are read more than once are kept there as "
                f"numbers, which needs {needed / 1e9:,.1f} GB, but only {free / 1e9:,.1f} GB are "
                "free; write the model to another disk, or make one pass over unsorted rows"
            )

    def take(self, rows: NDArray[np.int64]) -> tuple[Any, Ranks, Ranks]:
        """Features, lower and upper ranks of some rows."""
        # mapped for few rows: the system counts what stays mapped as memory of this process
        parts = [self._mapped(rows[i : i + MAPPED]) for i in range(0, rows.size, MAPPED)]
        X, lower, upper = zip(*parts, strict=True)
        return stack_rows(list(X)), np.concatenate(lower), np.concatenate(upper)

    def _mapped(self, rows: NDArray[np.int64]) -> tuple[Any, Ranks, Ranks]:
        names = (VALUES, RANKS) if self._dense else TYPES
        maps = {name: np.memmap(self.folder / name, TYPES[name], "r") for name in names}
        ranks = maps[RANKS].reshape(-1, 2)[rows]
        lower, upper = np.ascontiguousarray(ranks.T)
        if self._dense:
            return maps[VALUES].reshape(-1, self.n_features)[rows], lower, upper
        from scipy.sparse import csr_array

        ends = maps[ENDS]
        last, first = ends[rows], np.where(rows > 0, ends[rows - 1], 0)
        starts = np.concatenate([[0], np.cumsum(last - first)])
        places = np.arange(starts[-1]) + np.repeat(first - starts[:-1], last - first)
        shape = (rows.size, self.n_features)
        X = csr_array((maps[VALUES][places], maps[COLUMNS][places], starts), shape=shape)
        return X, lower, upper

    def remove(self) -> None:
        """Delete the folder of the rows."""
        shutil.rmtree(self.folder, ignore_errors=True)
