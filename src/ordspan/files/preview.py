"""A look at files before anything is learned: rows spread over them, or all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ordspan.files.batch import LARGEST, NUMBER, TEXT, UNTYPED, FileError
from ordspan.files.dialect import as_numbers, find_decimals, is_empty
from ordspan.files.features import Scale, as_words
from ordspan.files.opening import FileOptions, check_columns, open_file
from ordspan.files.ordering import sparse_order
from ordspan.files.tables import text_numbers
from ordspan.files.text import STDIN

PREVIEW_BYTES = 1 << 25
"""Larger files are not looked at as a whole, but at places spread over them."""


@dataclass
class FilePreview:
    """Rows spread over a file, or all of them, and what its format tells of their columns."""

    path: str
    names: list[str]
    kinds: dict[str, str]
    table: pl.DataFrame
    whole: bool
    delimiter: str = ""
    notes: list[str] = field(default_factory=list)
    fault: str = ""  # of the first bad row
    decimals: dict[str, str] = field(default_factory=dict)  # decimal signs of numbers in words
    orders: dict[str, list[Any]] = field(default_factory=dict)  # of ordered types
    typed: dict[str, pl.Series] = field(default_factory=dict)  # numbers, where table has words
    numbers: dict[str, pl.Series] = field(default_factory=dict)  # columns that were settled

    def settle(self, names: Sequence[str], told: str | None, known: Mapping[str, str]) -> None:
        """Read columns of words as numbers, as far as they are; a word among them becomes NaN."""
        asked = [name for name in names if self.kinds.get(name) in (TEXT, UNTYPED)]
        plain, separators = find_decimals(
            self.path, self.table, asked, delimiter=self.delimiter, told=told, known=known
        )
        self.decimals = text_numbers(plain.columns, self.kinds) | separators
        typed = [self.typed.get(n, self.table[n]) for n in names if self.kinds.get(n) == NUMBER]
        self.numbers = {column.name: column for column in (*typed, *plain)}
        for name, sign in self.decimals.items():
            values, cells = as_numbers(self.table[name], sign), self.table[name].str.strip_chars()
            stray = values.is_null() & ~is_empty(cells)
            values = pl.select(pl.when(stray).then(float("nan")).otherwise(values)).to_series()
            self.numbers[name] = values


@dataclass
class Preview:
    """A look at one file or several."""

    files: list[FilePreview]
    reader: Any = None  # of standard input, which can be read only once

    @property
    def path(self) -> str:
        """The first file."""
        return self.files[0].path

    @property
    def whole(self) -> bool:
        """Whether all rows were seen."""
        return all(file.whole for file in self.files)

    @property
    def fault(self) -> str:
        """What is wrong with the first bad row, if there is one."""
        return next((file.fault for file in self.files if file.fault), "")

    def shared(self) -> list[str]:
        """The columns that every file has, in the order of the first."""
        first, *others = self.files
        everywhere = set(first.names).intersection(*(file.names for file in others))
        return [name for name in first.names if name in everywhere]

    def check(self, needed: Sequence[str]) -> None:
        """Refuse files in which a needed column is missing."""
        for file in self.files:
            check_columns(file.path, file.names, needed)

    def words(self, names: Sequence[str]) -> pl.DataFrame:
        """Some columns of all files as words."""
        return pl.concat([as_words(file.table, names) for file in self.files])

    def numbers(self, name: str) -> pl.Series:
        """A column of all files as numbers: null where it is missing, NaN where it is a word."""
        parts = [file.numbers[name].cast(pl.Float64()) for file in self.files if file.table.height]
        return pl.concat([part.alias(name) for part in parts])


def preview_files(files: Sequence[str], options: FileOptions, size: int = PREVIEW_BYTES) -> Preview:
    """Preview at tables; of standard input at its first rows."""
    if files[0] == STDIN:
        reader = open_file(STDIN, options)
        return Preview([_file_preview(reader, lambda: (reader.head(), False))], reader)
    sizes = [Path(path).stat().st_size for path in files]
    previews = []
    for path, n_bytes in zip(files, sizes, strict=True):
        reader = open_file(path, options)
        share = max(size // 64, round(size * n_bytes / max(1, sum(sizes))))
        previews.append(_file_preview(reader, partial(reader.sample, share)))
    return Preview(previews)


def _file_preview(reader: Any, sample: Callable[[], tuple[pl.DataFrame, bool]]) -> FilePreview:
    kinds = reader.kinds()  # before the rows are read
    table, whole = sample()
    return FilePreview(
        *(reader.path, reader.names, kinds, table, whole),
        *(reader.delimiter, reader.notes, reader.fault),
        orders=reader.orders(),
        typed=reader.typed,
    )


class SparsePreview(NamedTuple):
    """What a look at svmlight rows finds: spread of the values present, and in which order."""

    state: NDArray[np.float64]
    sorted_by: str


def preview_sparse(
    files: Sequence[str], options: FileOptions, size: int = PREVIEW_BYTES
) -> SparsePreview:
    """Preview at rows spread over svmlight files."""
    sizes = [Path(path).stat().st_size for path in files]
    scale, rows = Scale(options.n_features), []
    for path, n_bytes in zip(files, sizes, strict=True):
        share = max(size // 64, round(size * n_bytes / max(1, sum(sizes))))
        for found in open_file(path, options).sample(share):
            found.X.data[~(np.abs(found.X.data) <= LARGEST)] = 0.0
            scale.learn(found.X)
            good = np.isfinite(found.grades)
            rows.append((found.X[good], found.grades[good]))
    return SparsePreview(scale.state, sparse_order(rows))


def merge_sparse_previews(previews: Sequence[SparsePreview]) -> SparsePreview:
    """Looks at several files as one."""
    state = sum((preview.state for preview in previews[1:]), previews[0].state)
    return SparsePreview(
        state, next((preview.sorted_by for preview in previews if preview.sorted_by), "")
    )


def merge_previews(previews: Sequence[Preview]) -> Preview:
    """Looks at several files as one."""
    return Preview([file for preview in previews for file in preview.files])


def raise_fault(preview: Preview) -> None:
    """Refuse files without a good row."""
    if not any(file.table.height for file in preview.files):
        told = f"{preview.path}: there is a header, but no row under it"
        raise FileError(preview.fault or told)
