"""Items to grade: what is shown of each, and what a model can learn from."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import file_digest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ordspan.files.batch import REFUSE, BadRows, Batch, FileError, brief
from ordspan.files.columns import ColumnChoice, NoFeatureError
from ordspan.files.features import Recipe, Scale, as_words, prepare_features
from ordspan.files.grades import LabelColumns
from ordspan.files.opening import FileOptions, check_columns, is_svmlight, open_file, sizes_of
from ordspan.files.reading import RowReader, open_rows
from ordspan.files.text import STDIN
from ordspan.wording import by, columns_option, either

NUMBER, TEXT, IMAGE = "number", "text", "image"
ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".webp")
"""Of pictures; SVG is left out, because it can hold scripts."""
PICTURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


class ItemCell(NamedTuple):
    """One column of an item, as it is shown."""

    name: str
    kind: str
    value: str


class ItemColumns(NamedTuple):
    """What a user says of the columns of the items."""

    id: str | None = None
    drop: Sequence[str] = ()  # shown, but not learned from
    hide: Sequence[str] = ()  # neither shown nor learned from
    text: Sequence[str] = ()  # words, though they look like numbers


@dataclass(frozen=True)
class Items:
    """All items of a file, in its order.

    Parameters
    ----------
    path : Path
        The file.
    digest : str
        Of the bytes of the file.
    ids : list of str, optional
        What each item is called, if the file says that.
    table : polars.DataFrame
        The columns that are shown, as text.
    kinds : dict
        Whether each of them is a number, a text or a picture.
    images : dict
        Where the pictures are, for each column of pictures.
    batch : Batch
        What the recipe needs of every item.
    recipe, scale : Recipe, Scale
        How the columns become features.
    learnable : bool
        Whether a column says anything about an item; otherwise the recipe is an empty one.
    notes : list of str
        What was done to the columns that may not be expected.
    """

    path: Path
    digest: str
    ids: list[str] | None
    table: pl.DataFrame
    kinds: dict[str, str]
    images: dict[str, list[str]]
    batch: Batch
    recipe: Recipe
    scale: Scale
    learnable: bool
    notes: list[str]

    def __len__(self) -> int:
        return len(self.batch)

    def key(self, item: int) -> str:
        """The id of an item, or the number of its row from 1."""
        return str(item + 1) if self.ids is None else self.ids[item]

    def name(self, item: int) -> str:
        """What an item is called on the page."""
        return f"row {item + 1}" if self.ids is None else self.ids[item]

    def cells(self, item: int) -> list[ItemCell]:
        """What is shown of an item."""
        row = self.table.row(item)
        return [ItemCell(n, self.kinds[n], v) for n, v in zip(self.table.columns, row, strict=True)]

    def values(self, item: int) -> list[Any]:
        """What the columns of the recipe hold: numbers (None where missing), then words."""
        numbers = [None if np.isnan(x) else float(x) for x in self.batch.X[item]]
        return [*numbers, *(self.batch.table.row(item) if self.recipe.texts else ())]

    def features(self) -> Any:
        """The features of all items, one row each."""
        return prepare_features(self.recipe, self.scale, self.batch)

    def image(self, item: int, cell: int) -> tuple[str, str] | None:
        """File and content type of the picture in a cell; None where there is none."""
        column = self.table.columns[cell] if 0 <= cell < self.table.width else ""
        path = self.images[column][item] if column in self.images and 0 <= item < len(self) else ""
        # a file may have been replaced by a link since it was checked
        if not path or os.path.realpath(path) != path or not os.path.isfile(path):
            return None
        with open(path, "rb") as file:
            kind = picture_kind(file.read(12))
        return None if kind is None else (path, kind)


def picture_kind(head: bytes) -> str | None:
    """The content type of a picture, by its first bytes.

    >>> picture_kind(b"GIF89a....."), picture_kind(b"<svg onload=")
    ('image/gif', None)
    """
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in PICTURES.items() if head.startswith(start)), None)


def read_items(path: str | Path, options: FileOptions, columns: ItemColumns) -> Items:
    """Read the items of a file, and find out what can be learned from.

    Parameters
    ----------
    path : path
        A table in any format that ``ordspan train`` reads.
    options : FileOptions
        How to open it.
    columns : ItemColumns
        Which columns to show, and which to learn from.
    """
    name = str(path)
    if name == STDIN:
        raise FileError("items are read more than once, so give a file, not a pipe")
    sizes_of([name])  # a missing file is refused
    if is_svmlight(name, options):
        raise FileError(f"{name}: svmlight rows have no columns to show; give a table")
    with open(name, "rb") as file:
        digest = file_digest(file, "sha256").hexdigest()
    there = open_file(name, options).names
    identity = [] if columns.id is None else [columns.id]
    check_columns(name, there, [*identity, *columns.drop, *columns.hide, *columns.text])
    whole = _all_rows(_reader(name, options, Recipe(), keep=there))
    table = pl.DataFrame([_as_text(column) for column in whole.table])
    shown = [n for n in there if n not in (*identity, *columns.hide)]
    images = {n: _image_paths(whole, table[n]) for n in shown if are_images(table[n])}
    unlearned = dict.fromkeys([*identity, *columns.drop, *columns.hide, *images])
    choice = ColumnChoice(drop=[*unlearned], text=columns.text)
    reader, learnable = _feature_reader(name, options, choice, there)
    batch = _all_rows(reader)
    numbers = reader.recipe.numbers
    return Items(
        path=Path(name),
        digest=digest,
        ids=None if columns.id is None else _ids(whole, table[columns.id].str.strip_chars()),
        table=table.select(shown),
        kinds={n: IMAGE if n in images else NUMBER if n in numbers else TEXT for n in shown},
        images=images,
        batch=replace(batch, table=as_words(batch.table, reader.recipe.texts)),
        recipe=reader.recipe,
        scale=reader.scale or Scale(reader.recipe.n_scaled),
        learnable=learnable,
        notes=reader.notes,
    )


def _reader(name: str, options: FileOptions, recipe: Recipe, keep: Sequence[str] = ()) -> RowReader:
    return RowReader([name], options, recipe, LabelColumns(), None, BadRows(REFUSE), keep=keep)


def _feature_reader(
    name: str, options: FileOptions, choice: ColumnChoice, there: Sequence[str]
) -> tuple[RowReader, bool]:
    """A reader of the columns to learn from, as ``ordspan train`` finds them, if there are any."""
    try:
        return open_rows(
            [name], options, LabelColumns(), choice, order=None, on_bad_row=REFUSE
        ), True
    except NoFeatureError:
        # one word that hardly an item has: such a model learns how frequent grades are, no more
        return _reader(name, options, Recipe(words=((there[0], ("",)),))), False


def _all_rows(reader: RowReader) -> Batch:
    """All rows of a file as one batch."""
    batches = list(reader.batches())
    if not batches:
        raise FileError(f"{reader.files[0]}: there is a header, but no item under it")
    tables = [batch.table for batch in batches]
    return replace(
        batches[0],
        X=np.concatenate([batch.X for batch in batches]),
        table=pl.concat(tables, how="vertical_relaxed") if tables[0].width else tables[0],
        lines=np.concatenate([batch.lines for batch in batches]),
        rows=np.concatenate([batch.rows for batch in batches]),
    )


def _as_text(column: pl.Series) -> pl.Series:
    """Cells as they are shown."""
    if column.dtype.is_nested():
        cells = [None if cell is None else json.dumps(cell, default=str) for cell in column]
        column = pl.Series(column.name, cells, dtype=pl.String())
    return column.cast(pl.String()).fill_null("")


def _ids(whole: Batch, ids: pl.Series) -> list[str]:
    """The id of each item; there must be one, and no other item may have it."""
    faults = {
        "is empty; fill it": ids == "",
        "names another item, too; choose a column in which all values differ": ids.is_duplicated(),
    }
    for fault, bad in faults.items():
        if bad.any():
            row = bad.to_list().index(True)
            raise FileError(f"{whole.where(row)}: the {ids.name} {brief(ids[row])} {fault}")
    return ids.to_list()


def are_images(column: pl.Series) -> bool:
    """Whether all filled cells of a column are names of pictures in files.

    >>> are_images(pl.Series(["a.png", ""])), are_images(pl.Series(["a.svg"]))
    (True, False)
    """
    filled = column.filter(column.str.strip_chars() != "").str.strip_chars().str.to_lowercase()
    named = filled.str.contains(rf"({'|'.join(ENDINGS).replace('.', '[.]')})$")
    return bool(len(filled)) and bool((named & ~filled.str.contains("://", literal=True)).all())


def _image_paths(whole: Batch, column: pl.Series) -> list[str]:
    """Where the pictures of a column are; refused where one is outside the folder of the items."""
    folder = os.path.realpath(Path(whole.path).parent)
    paths = []
    for row, cell in enumerate(column.str.strip_chars()):
        path = os.path.realpath(os.path.join(folder, cell)) if cell and "\0" not in cell else ""
        if cell and not path.startswith(os.path.join(folder, "")):
            fault = f"is outside the folder of the items, {folder}"
        elif cell and not os.path.isfile(path):
            fault = f"is no file in {folder}"
        else:
            paths.append(path)
            continue
        way_out = by("leave the column out with", columns_option("hide", column.name))
        told = f"{whole.where(row)}: the picture {brief(cell)} of {column.name!r} {fault}"
        raise FileError(told + either("put it there", way_out))
    return paths
