"""A preview of files before learning: rows spread over them, or all rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ordspan.tables.batch import LARGEST, NUMBER, TEXT, UNTYPED, FileError
from ordspan.tables.dialect import as_numbers, find_decimals, is_empty
from ordspan.tables.features import Scale, as_words
from ordspan.tables.opening import FileOptions, check_columns, open_file
from ordspan.tables.ordering import sparse_order
from ordspan.tables.tables import text_numbers
from ordspan.tables.text import STDIN

PREVIEW_BYTES = 1 << 25
"""Larger files are sampled at places spread over them instead of read completely."""


@dataclass
class FilePreview:
    """Rows spread over a file, or all of them, and what its format says about its columns."""

    path: str
    names: list[str]
    kinds: dict[str, str]
    table: pl.DataFrame
    whole: bool
    delimiter: str = ""
    notes: list[str] = field(default_factory=list)
    fault: str = ""  # of the first bad row
    decimals: dict[str, str] = field(default_factory=dict)  # separators of numbers in text
    orders: dict[str, list[Any]] = field(default_factory=dict)  # of ordered types
    typed: dict[str, pl.Series] = field(default_factory=dict)  # numbers that table has as text
    numbers: dict[str, pl.Series] = field(default_factory=dict)  # columns read as numbers

    def read_numbers(
        self, names: Sequence[str], decimal: str | None, known: Mapping[str, str]
    ) -> None:
        """Read text columns as numbers where possible; a word among them becomes NaN."""
        asked = [name for name in names if self.kinds.get(name) in (TEXT, UNTYPED)]
        plain, separators = find_decimals(
            self.path, self.table, asked, delimiter=self.delimiter, given=decimal, known=known
        )
        self.decimals = text_numbers(plain.columns, self.kinds) | separators
        typed = [self.typed.get(n, self.table[n]) for n in names if self.kinds.get(n) == NUMBER]
        self.numbers = {column.name: column for column in plain}
        self.numbers |= {c.name: c.fill_nan(None) if c.dtype.is_float() else c for c in typed}
        for name, separator in self.decimals.items():
            cells = self.table[name].str.strip_chars()
            values = as_numbers(self.table[name], separator)
            stray = values.is_null() & ~is_empty(cells)
            values = pl.select(pl.when(stray).then(float("nan")).otherwise(values)).to_series()
            self.numbers[name] = values


@dataclass
class Preview:
    """A preview of one file or several."""

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
        """The fault of the first bad row, if there is one."""
        return next((file.fault for file in self.files if file.fault), "")

    def shared(self) -> list[str]:
        """The columns that every file has, in the order of the first file."""
        first, *others = self.files
        everywhere = set(first.names).intersection(*(file.names for file in others))
        return [name for name in first.names if name in everywhere]

    def check(self, needed: Sequence[str]) -> None:
        """Raise if a file lacks a needed column."""
        for file in self.files:
            check_columns(file.path, file.names, needed)

    def text(self, names: Sequence[str]) -> pl.DataFrame:
        """Columns of all files as text."""
        return pl.concat([as_words(file.table, names) for file in self.files])

    def numbers(self, name: str) -> pl.Series:
        """A column of all files as numbers: null where missing, NaN where it is text."""
        parts = [file.numbers[name].cast(pl.Float64()) for file in self.files if file.table.height]
        return pl.concat([part.alias(name) for part in parts])


def preview_files(
    files: Sequence[str], options: FileOptions, size: int = PREVIEW_BYTES, *, pipe: Any = None
) -> Preview:
    """Preview tables; only the first rows of standard input."""
    if files[0] == STDIN:
        reader = open_file(STDIN, options, pipe)
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
    """A preview of svmlight rows: spread of the values present, and their sort order."""

    state: NDArray[np.float64]
    sorted_by: str


def preview_sparse(
    files: Sequence[str], options: FileOptions, size: int = PREVIEW_BYTES
) -> SparsePreview:
    """Preview rows spread over svmlight files."""
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
    """Several previews of svmlight files as one."""
    state = sum((preview.state for preview in previews[1:]), previews[0].state)
    return SparsePreview(
        state, next((preview.sorted_by for preview in previews if preview.sorted_by), "")
    )


def merge_previews(previews: Sequence[Preview]) -> Preview:
    """Several previews as one."""
    return Preview([file for preview in previews for file in preview.files])


def raise_fault(preview: Preview) -> None:
    """Raise if there is no good row."""
    if not any(file.table.height for file in preview.files):
        raise FileError(preview.fault or f"{preview.path}: the file has a header but no rows")
