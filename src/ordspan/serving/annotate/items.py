"""Items to grade: the columns to show, and the columns to learn from."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from math import floor, log10
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ordspan.tables.encoder import Encoder, Recipe
from ordspan.tables.files import FileOptions, check_columns, is_svmlight, open_file, sizes_of
from ordspan.tables.label_columns import LabelColumns
from ordspan.tables.profile import ColumnChoice, NoFeatureError
from ordspan.tables.reading import RowReader, open_rows
from ordspan.tables.rows import REFUSE, BadRows, Batch, FileError
from ordspan.tables.text import STDIN
from ordspan.wording import brief, shell_list

NUMBER, TEXT, IMAGE = "number", "text", "image"
IMAGE_ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".webp")
"""Image file extensions; SVG is excluded because it can contain scripts."""
IMAGE_KINDS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


class ItemColumns(NamedTuple):
    """Roles of the columns, as chosen by the user."""

    id: str | None = None
    drop: Sequence[str] = ()  # shown, but not learned from
    hide: Sequence[str] = ()  # neither shown nor learned from
    text: Sequence[str] = ()  # text, though the values look like numbers


@dataclass(frozen=True)
class Items:
    """All items of a file, in file order.

    Parameters
    ----------
    path : Path
        The file.
    digest : str
        Digest of the file, whatever its line ends.
    ids : list of str, optional
        Ids of the items, if there is an id column.
    table : polars.DataFrame
        Columns to show, as text.
    kinds : dict
        Kind of each of these columns: number, text or image.
    images : dict
        Paths of the images, for each image column.
    batch : Batch
        Input of the recipe for every item.
    encoder : Encoder
        How the columns become features.
    notes : list of str
        Notes for the user about how columns are used.
    """

    path: Path
    digest: str
    ids: list[str] | None
    table: pl.DataFrame
    kinds: dict[str, str]
    images: dict[str, list[str]]
    batch: Batch
    encoder: Encoder
    notes: list[str]

    def __len__(self) -> int:
        return len(self.batch)

    @property
    def learnable(self) -> bool:
        """Whether there is a column to learn from."""
        return can_learn(self.encoder.recipe)

    def key(self, item: int) -> str:
        """The id of an item, or its row number from 1."""
        return str(item + 1) if self.ids is None else self.ids[item]

    def name(self, item: int) -> str:
        """Name of an item on the page."""
        return f"row {item + 1}" if self.ids is None else self.ids[item]

    def cells(self, item: int) -> list[dict[str, str]]:
        """Cells of an item, as shown on the page."""
        return [
            {"name": name, "kind": kind, "value": short_number(cell) if kind == NUMBER else cell}
            for (name, kind), cell in zip(self.kinds.items(), self.table.row(item), strict=True)
        ]

    def values(self, item: int) -> list[Any]:
        """Values of an item in the recipe's columns: numbers (None where missing), then text."""
        numbers = [None if np.isnan(x) else float(x) for x in self.batch.X[item]]
        return [*numbers, *(self.batch.table.row(item) if self.encoder.recipe.texts else ())]

    def features(self) -> Any:
        """The features of all items, one row each."""
        return self.encoder.features(self.batch.X.copy(), self.batch.table)

    def image(self, item: int, cell: int) -> tuple[str, str] | None:
        """Path and content type of the image in a cell, or None."""
        column = self.table.columns[cell] if 0 <= cell < self.table.width else ""
        path = self.images[column][item] if column in self.images and 0 <= item < len(self) else ""
        # a file may have been replaced by a link since it was checked
        if not path or os.path.realpath(path) != path or not os.path.isfile(path):
            return None
        with open(path, "rb") as file:
            kind = image_kind(file.read(12))
        return None if kind is None else (path, kind)


def can_learn(recipe: Recipe) -> bool:
    """Whether a recipe has features other than the one of items without any."""
    return bool(recipe.numbers or recipe.hashed) or any(len(words) > 1 for _, words in recipe.words)


def short_number(text: str) -> str:
    """A number with at most 4 digits, or as many as it has before the decimal point.

    >>> [short_number(text) for text in ("0.123456", "1234.56", "-98765.4", "7", "2.50", "", "NA")]
    ['0.1235', '1235', '-98765', '7', '2.5', '', 'NA']
    """
    try:
        number = float(text)
        decimals = 3 - floor(log10(abs(number))) if number else 0
    except (ValueError, OverflowError):
        return text
    short = f"{number:.{max(0, decimals)}f}" if decimals < 10 else f"{number:.4g}"
    return short.rstrip("0").rstrip(".") if "." in short and "e" not in short else short


def digest_of(path: str | Path) -> str:
    """Digest of a file, whatever its line ends."""
    return sha256(Path(path).read_bytes().replace(b"\r\n", b"\n")).hexdigest()


def image_kind(head: bytes) -> str | None:
    """Content type of an image, by its first bytes.

    >>> image_kind(b"GIF89a....."), image_kind(b"<svg onload=")
    ('image/gif', None)
    """
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in IMAGE_KINDS.items() if head.startswith(start)), None)


def read_items(path: str | Path, options: FileOptions, columns: ItemColumns) -> Items:
    """Read the items of a file and choose the columns to learn from.

    Parameters
    ----------
    path : path
        A table in any format that ``ordspan train`` reads.
    options : FileOptions
        How to read it.
    columns : ItemColumns
        Which columns to show, and which to learn from.
    """
    name = str(path)
    if name == STDIN:
        raise FileError("items are read more than once; use a file, not a pipe")
    sizes_of([name])  # a missing file is refused
    if is_svmlight(name, options):
        raise FileError(f"{name}: svmlight files have no columns to show; use a table")
    there = open_file(name, options).names
    identity = [] if columns.id is None else [columns.id]
    check_columns(name, there, [*identity, *columns.drop, *columns.hide, *columns.text])
    whole = _all_rows(_reader(name, options, Recipe(), keep=there))
    table = pl.DataFrame([_as_text(column) for column in whole.table])
    shown = [n for n in there if n not in (*identity, *columns.hide)]
    images = {n: _image_paths(whole, table[n]) for n in shown if are_images(table[n])}
    unlearned = dict.fromkeys([*identity, *columns.drop, *columns.hide, *images])
    choice = ColumnChoice(drop=[*unlearned], text=columns.text)
    reader = _feature_reader(name, options, choice, there)
    batch = _all_rows(reader)
    numbers, texts = reader.recipe.numbers, pl.col(reader.recipe.texts)
    words = texts.cast(pl.String()).fill_null("").str.strip_chars()
    ids = None if columns.id is None else _ids(whole, table[columns.id].str.strip_chars())
    likely = [
        n for n in shown if n in reader.left_out and n not in columns.drop and is_id(table[n])
    ]
    if columns.id is None and len(likely) == 1:
        ids = table[likely[0]].str.strip_chars().to_list()
    return Items(
        path=Path(name),
        digest=digest_of(name),
        ids=ids,
        table=table.select(shown),
        kinds={n: IMAGE if n in images else NUMBER if n in numbers else TEXT for n in shown},
        images=images,
        batch=replace(batch, table=batch.table.select(words)),
        encoder=reader.encoder,
        notes=reader.notes,
    )


def is_id(column: pl.Series) -> bool:
    """Whether every cell of a column names its row.

    >>> is_id(pl.Series(["a1", "a2"])), is_id(pl.Series(["a1", "a1"])), is_id(pl.Series(["a", ""]))
    (True, False, False)
    """
    cells = column.str.strip_chars()
    return not (cells == "").any() and not cells.is_duplicated().any()


def _reader(name: str, options: FileOptions, recipe: Recipe, keep: Sequence[str] = ()) -> RowReader:
    encoder, keep = Encoder(recipe), tuple(keep)
    return RowReader([name], options, encoder, LabelColumns(), None, BadRows(REFUSE), keep=keep)


def _feature_reader(
    name: str, options: FileOptions, choice: ColumnChoice, there: Sequence[str]
) -> RowReader:
    """A reader of the columns ``ordspan train`` would learn from."""
    try:
        return open_rows([name], options, LabelColumns(), choice, classes=None, on_bad_row=REFUSE)
    except NoFeatureError:
        # a category that hardly any item has, so that the model only learns grade frequencies
        return _reader(name, options, Recipe(words=((there[0], ("",)),)))


def _all_rows(reader: RowReader) -> Batch:
    """All rows of a file as one batch."""
    batches = list(reader.batches())
    if not batches:
        raise FileError(f"{reader.files[0]}: the file has a header, but no rows")
    tables = [batch.table for batch in batches]
    return replace(
        batches[0],
        X=np.concatenate([batch.X for batch in batches]),
        table=pl.concat(tables, how="vertical_relaxed") if tables[0].width else tables[0],
        rows=np.concatenate([batch.rows for batch in batches]),
    )


def _as_text(column: pl.Series) -> pl.Series:
    """Cells as text."""
    if column.dtype.is_nested():
        cells = [None if cell is None else json.dumps(cell, default=str) for cell in column]
        column = pl.Series(column.name, cells, dtype=pl.String())
    return column.cast(pl.String()).fill_null("")


def _ids(whole: Batch, ids: pl.Series) -> list[str]:
    """The ids of all items, checked to be unique and not empty."""
    faults = {
        "is empty; fill it in": ids == "",
        "is not unique; choose a column with unique values": ids.is_duplicated(),
    }
    for fault, bad in faults.items():
        if bad.any():
            row = bad.to_list().index(True)
            raise FileError(f"{whole.where(row)}: the {ids.name} {brief(ids[row])} {fault}")
    return ids.to_list()


def are_images(column: pl.Series) -> bool:
    """Whether all cells of a column that are not empty are file names of images.

    >>> are_images(pl.Series(["a.png", ""])), are_images(pl.Series(["a.svg"]))
    (True, False)
    """
    filled = column.filter(column.str.strip_chars() != "").str.strip_chars().str.to_lowercase()
    named = filled.str.contains(rf"({'|'.join(IMAGE_ENDINGS).replace('.', '[.]')})$")
    return bool(len(filled)) and bool((named & ~filled.str.contains("://", literal=True)).all())


def _image_paths(whole: Batch, column: pl.Series) -> list[str]:
    """Paths of the images in a column, which must be in the folder of the items."""
    folder = os.path.realpath(Path(whole.path).parent)
    paths = []
    for row, cell in enumerate(column.str.strip_chars()):
        path = os.path.realpath(os.path.join(folder, cell)) if cell and "\0" not in cell else ""
        if cell and not path.startswith(os.path.join(folder, "")):
            fault = f"is outside the folder of the items, {folder}"
        elif cell and not os.path.isfile(path):
            fault = f"does not exist in {folder}"
        else:
            paths.append(path)
            continue
        reason = f"{whole.where(row)}: the image {brief(cell)} in column {column.name!r} {fault}"
        hide = f"--hide {shell_list([column.name])}"
        raise FileError(f"{reason}; move it there, or hide the column with {hide}")
    return paths
