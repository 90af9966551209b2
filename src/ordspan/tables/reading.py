"""Files as rows ready to learn from: columns, grades, and a position to start from.

Rows to be read again in any order, for several passes or sorted files, are kept on disk.
"""

import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy
from numpy.typing import NDArray

from ordspan.core.state import Ranks
from ordspan.labels.amounts import bands_of
from ordspan.labels.grades import check_classes, check_grades, classes_of
from ordspan.labels.text import LabelReader
from ordspan.tables import profile as profiles
from ordspan.tables.encoder import Encoder, Recipe, matrix_of
from ordspan.tables.files import FileOptions, check_columns, is_svmlight, open_file, sizes_of
from ordspan.tables.formats import CP1252, REPLACED
from ordspan.tables.label_columns import NO_LABEL, LabelColumns
from ordspan.tables.numbers import FLOAT, TEXT, without_codes
from ordspan.tables.rows import BEGINNING, GROUP, LABEL, BadRows, Batch, Cursor, FileError
from ordspan.tables.svmlight import find_extent
from ordspan.tables.text import STDIN
from ordspan.wording import plural

ROWS_AT_ONCE = 1 << 13
"""Rows per batch: enough to amortise Python overhead, few enough for prompt stops."""
VALUES, COLUMNS, ROWS = "values", "columns", "rows"
TYPES = {VALUES: np.dtype(float), COLUMNS: np.dtype(np.int32), ROWS: np.dtype(np.int64)}
MUCH_SPACE = 1e9  # bytes of staged rows that are announced
ROW_SIZE = 4  # where the values of a row begin and end, and two ranks


@dataclass
class RowReader:
    """Reads files in batches, with the numbers of a recipe and the ranks of the labels.

    Recipe and grades are those of a model, or `find_columns` finds them.
    """

    files: Sequence[str]
    options: FileOptions
    columns: LabelColumns
    bad: BadRows
    group: str | None = None  # column of groups
    keep: tuple[str, ...] = ()  # columns to keep
    pipe: Any = None  # read instead of standard input
    encoder: Encoder = field(default_factory=lambda: Encoder(Recipe()))
    grades: LabelReader | None = None
    sorted_by: str = ""  # what neighbouring rows are alike in, if they are
    learns_scale: bool = False  # whether mean and spread are learned from the rows
    unlabelled: int = 0  # rows that were left out, because they have no label
    notes: list[str] = field(default_factory=list)  # what may surprise the user
    left_out: dict[str, str] = field(default_factory=dict)  # columns, and why
    opened: dict[str, Any] = field(default_factory=dict)  # their readers

    @property
    def recipe(self) -> Recipe:
        """How columns become features."""
        return self.encoder.recipe

    def open(self, path: str) -> Any:
        """The reader of one of the files, which can be read several times if it is no pipe."""
        if path not in self.opened:
            self.opened[path] = open_file(path, self.options, self.pipe)
        return self.opened[path]

    def _open_all(self) -> list[Any]:
        return [self.open(path) for path in self.files]

    @property
    def file_notes(self) -> list[str]:
        """How the files that were opened are written, where that is not obvious."""
        many = len(self.files) > 1
        told = [(path, note) for path, file in self.opened.items() for note in file.notes]
        return [f"{note} ({path})" if many else note for path, note in told]

    def find_columns(self, choice: profiles.ColumnChoice, classes: Any = None) -> Self:
        """Find and check columns, features and grades, given or in labels, before any learning."""
        sparse = is_svmlight(self.files[0], self.options)
        for path in self.files:
            if is_svmlight(path, self.options) != sparse:
                raise FileError(f"{path}: svmlight files and tables cannot be mixed; give one kind")
        if sparse:
            self.options = profiles.count_features(self.files, self.options)
            self.columns, self.group = replace(self.columns, label=LABEL), GROUP
        if classes is not None and self.columns.names():
            check_grades(len(classes), "the order has")
            self.grades = LabelReader(check_classes(classes))
        return self._find_sparse(choice) if sparse else self._find_columns(choice)

    def _find_sparse(self, choice: profiles.ColumnChoice) -> Self:
        """Find grades, scale and order of svmlight rows."""
        if any(choice[:4]) or self.options.na:
            raise ValueError(f"{self.files[0]}: svmlight rows have no named columns to choose from")
        if self.grades is None:
            words = Counter(find_extent(self.files).grades)
            self.grades, self.notes = grades_in(words, self.columns, self.files[0])
        size, zero_based = self.options.n_features, bool(self.options.zero_based)
        recipe = Recipe(n_sparse=size, zero_based=zero_based, standardise=choice.standardise)
        self.encoder, self.sorted_by = profiles.profile_sparse(self._open_all(), recipe)
        return self

    def _find_columns(self, choice: profiles.ColumnChoice) -> Self:
        """Find features, grades and order of the rows of tables; all problems are told at once."""
        for file in self._open_all():
            file.words = (*choice.text, *choice.hashed)
        profile = self._profile()
        taken = [*self.columns.names(), *filter(None, [self.group])]
        self.encoder, self.left_out = profile.plan(taken, choice)
        if self.columns.names() and self.grades is None:
            try:
                if order := profile.order():
                    self.grades = LabelReader(check_classes(order))
                else:
                    words = profile.find_words()
                    self.grades, self.notes = grades_in(words, self.columns, profile.path)
            except ValueError as error:
                profile.problems.append(str(error))
        profile.refuse_problems()
        self.notes[:0] = [*self.file_notes, *profile.notes(self.recipe, self.left_out)]
        self.learns_scale = profile.is_pipe
        if self.grades is not None and not profile.is_pipe:
            self.sorted_by = profile.sorted_by(self.recipe, self.grades)
        return self

    def find_order(self) -> None:
        """Find what neighbouring rows are alike in, for a known recipe."""
        assert self.grades is not None
        if self.recipe.n_sparse:
            _, self.sorted_by = profiles.profile_sparse(self._open_all(), self.recipe)
            return
        profile = self._profile()
        for file in profile.files:
            check_columns(file.path, file.names, [*self.recipe.columns, *self.columns.names()])
        self.sorted_by = profile.sorted_by(self.recipe, self.grades)

    def _profile(self) -> profiles.Profile:
        """The profile of the files; a decimal sign that all of them share needs no second look."""
        size, whole = profiles.SAMPLE_BYTES // len(self.files), profiles.WHOLE_BYTES
        size = max(1 << 18, size) if sum(sizes_of(self.files)) > whole else whole
        profile = profiles.Profile(self._open_all(), size, self.columns)
        if len(decimals := {file.decimal for file in profile.files}) == 1:
            self.options = replace(self.options, decimal=decimals.pop())
        return profile

    def label_notes(self) -> list[str]:
        """What reading told about the labels."""
        count, were = self.unlabelled, "were" if self.unlabelled > 1 else "was"
        notes = [f"{plural(count, 'row')} without a label {were} left out"] if count else []
        return notes + ([self.grades.note] if self.grades and self.grades.note else [])

    def batches(self, at: Cursor = BEGINNING, size: int = ROWS_AT_ONCE) -> Iterator[Batch]:
        """Rows from a position on, to the end of the files, at most ``size`` at once."""
        sizes = sizes_of(self.files)
        total = max(1, sum(sizes))
        for number, path in list(enumerate(self.files))[at.file :]:
            reader = self.open(path)
            if self.recipe.n_sparse and not is_svmlight(path, self.options):
                raise FileError(f"{path}: the model needs svmlight rows, as in training")
            named = [*self.columns.names(), *filter(None, [self.group]), *self.keep]
            # a column that is a number and kept too is read as text
            types: dict[str, Any] = dict.fromkeys(self.recipe.numbers, FLOAT)
            types |= dict.fromkeys([*self.recipe.texts, *named], TEXT)
            check_columns(path, reader.names, types)
            start, share = at if number == at.file else Cursor(at.epoch, number), 0.0
            for block in reader.blocks(types, start):
                table = without_codes(block.table, self.options.na)
                kept = block.table.select(n for n in self.keep if n in table.columns)  # or no qid
                block = replace(block, table=table, kept=kept)
                first = int(np.searchsorted(block.rows, start.row, side="right"))
                for begin in range(first, len(block), size):
                    end = min(begin + size, len(block))
                    of_file = share + (block.share - share) * end / len(block)
                    read = (sum(sizes[:number]) + of_file * sizes[number]) / total
                    yield from self._batch(reader, replace(block, share=read or None), begin, end)
                share = block.share

    def _batch(self, reader: Any, block: Batch, begin: int, end: int) -> Iterator[Batch]:
        """Some rows of a block, with their ranks, without bad rows and those without a label."""
        batch = block.only(slice(begin, end))
        broken = {row - begin: why for row, why in block.faults.items() if begin <= row < end}
        X, table, faults = batch.X, batch.table, broken.copy()
        if X is None:
            X = matrix_of(table, self.recipe.numbers, reader.decimal, faults)
        faults = self.encoder.value_faults(X) | faults
        after = block.after._replace(row=int(batch.rows[-1]))
        group = table[self.group].to_numpy() if self.group in table.columns else None
        batch = replace(batch, X=X, after=after, group=group, faults={})
        if self.grades is not None:
            lower, upper, wrong = self.columns.read(self.grades, table, reader.decimal, reader.path)
            # of a row without a label, such as that of a total, cells do not matter
            faults = {row: why for row, why in faults.items() if lower[row] != NO_LABEL}
            faults = faults | wrong | broken
            batch = replace(batch, lower=lower, upper=upper, classes=self.grades.classes)
        # rows of a pipe cannot be read again, so those before a bad one come first
        if self.bad.policy == "raise" and reader.path == STDIN and min(faults, default=0):
            yield from self._batch(reader, block, begin, begin + min(faults))
        batch = self.bad.take_from(batch, faults)
        if batch.lower is not None:
            known = batch.lower != NO_LABEL
            self.unlabelled += int((~known).sum())
            batch = batch if known.all() else batch.only(known)
        if len(batch):
            yield batch


def grades_in(words: Any, columns: LabelColumns, path: str) -> tuple[LabelReader, list[str]]:
    """The grades found in the words of labels, in order, and notes."""
    try:
        if lost := [word for word in words if REPLACED in word]:
            raise ValueError(
                f"the label {lost[0]!r} holds letters that are not UTF-8; give {CP1252}"
            )
        if columns.brackets or columns.parts:
            bands, notes = bands_of(words, columns.parts)
            return LabelReader(bands), notes
        return LabelReader(classes_of(words, columns.names())), []
    except ValueError as error:
        names = columns.names()
        what = f"column{'s' * (len(names) > 1)} {' and '.join(map(repr, names))}"
        raise FileError(f"{path}: {what}: {error}") from None


class Staging:
    """Features and ranks of rows in a folder, written once and then read by row number.

    Of each row it has the values, where they begin and end among those of all rows, and its two
    ranks; of a sparse row also the columns of the values.

    Parameters
    ----------
    folder : Path
        Where to write; the folder belongs to one training, beside its checkpoint.
    recipe : Recipe
        What the features are.
    """

    def __init__(self, folder: Path, recipe: Recipe) -> None:
        self.folder, self.dense, self.n_features = folder, recipe.dense, recipe.n_features

    @property
    def n_bytes(self) -> int:
        """Size of all rows."""
        return sum((self.folder / name).stat().st_size for name in TYPES)

    @property
    def n_rows(self) -> int:
        """Number of rows on disk."""
        path = self.folder / ROWS
        return path.stat().st_size // (ROW_SIZE * TYPES[ROWS].itemsize) if path.exists() else 0

    def write(self, batches: Iterable[tuple[Any, Ranks, Ranks, float | None]]) -> None:
        """Write all rows, given as features, lower and upper ranks, and the share that is read.

        Says how much that will be, if it is much, and raises before the disk is full.
        """
        self.remove()
        self.folder.mkdir()
        written = n_values = 0
        with ExitStack() as stack:
            files = {n: stack.enter_context(open(self.folder / n, "wb")) for n in TYPES}
            for X, lower, upper, share in batches:
                if self.dense:
                    values, columns, starts = X, np.empty(0), X.shape[1] * np.arange(len(X) + 1)
                else:
                    values, columns, starts = X.data, X.indices, X.indptr
                starts = starts.astype(np.int64) + n_values
                rows = np.column_stack([starts[:-1], starts[1:], lower, upper])
                n_values += values.size
                is_first = not written
                for name, part in zip(TYPES, (values, columns, rows), strict=True):
                    written += files[name].write(np.ascontiguousarray(part, TYPES[name]).data)
                total = written / share if share else 0.0
                if is_first and total >= MUCH_SPACE:
                    note = f"about {total / 1e9:,.1f} GB beside the model"
                    print(f"Note: rows are kept on disk while training, {note}.", file=sys.stderr)
                needed, free = total - written, shutil.disk_usage(self.folder).free
                if needed > free:
                    raise FileError(
                        f"{self.folder.parent}: rows that are read more than once are kept there "
                        f"as numbers, which needs {needed / 1e9:,.1f} GB, but only "
                        f"{free / 1e9:,.1f} GB are free; write the model to another disk, or make "
                        "one pass over unsorted rows"
                    )
            for file in files.values():
                file.flush()
                os.fsync(file.fileno())

    def take(self, rows: NDArray[np.int64]) -> tuple[Any, Ranks, Ranks]:
        """Features, lower and upper ranks of some rows."""
        # read, not mapped: what the system maps around a row counts as memory of this process
        first = ROW_SIZE * rows
        numbers = self._read(ROWS, first, first + ROW_SIZE).reshape(-1, ROW_SIZE)
        start, end, lower, upper = np.ascontiguousarray(numbers.T)
        values = self._read(VALUES, start, end)
        if self.dense:
            return values.reshape(-1, self.n_features), lower, upper
        starts = np.concatenate([[0], np.cumsum(end - start)])
        cells = values, self._read(COLUMNS, start, end), starts
        return scipy.sparse.csr_array(cells, shape=(rows.size, self.n_features)), lower, upper

    def _read(self, name: str, start: NDArray[Any], end: NDArray[Any]) -> NDArray[Any]:
        """Numbers of one of the files, from each start to its end."""
        size, parts = TYPES[name].itemsize, []
        breaks = np.flatnonzero(start[1:] != end[:-1])  # what lies side by side is read at once
        first, last = start[np.append(0, breaks + 1)], end[np.append(breaks, -1)]
        with open(self.folder / name, "rb", buffering=0) as file:
            for begin, stop in zip(first.tolist(), last.tolist(), strict=True):
                file.seek(begin * size)
                parts.append(file.read((stop - begin) * size))
        return np.frombuffer(bytearray().join(parts), TYPES[name])

    def remove(self) -> None:
        """Delete the folder of the rows."""
        shutil.rmtree(self.folder, ignore_errors=True)
