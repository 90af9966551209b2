"""Items to grade: the columns to show and to learn from, and the folder that remembers them."""

import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ordspan.commands.jobs import STDIN, AnnotateJob, OpeningJob, options_of
from ordspan.models.atomic import write_atomically
from ordspan.serving.engine import BASE
from ordspan.tables.encoder import Encoder, Recipe
from ordspan.tables.files import is_svmlight, open_file, sizes_of
from ordspan.tables.label_columns import LabelColumns
from ordspan.tables.profile import ColumnChoice, NoFeatureError
from ordspan.tables.reading import RowReader
from ordspan.tables.rows import REFUSE, BadRows, Batch, FileError
from ordspan.wording import brief, shell_list

NAME = "annotate.json"
REMEMBERED = (
    *(one.name for one in fields(OpeningJob)),
    *("classes", "id", "drop", "hide", "text", "question"),
)
"""The options that decide what the items are and what is asked; the others may change."""
NUMBER, TEXT, IMAGE = "number", "text", "image"
IMAGE_FILE = r"(?i)^[^:]*[.](png|jpe?g|gif|webp)$"
"""Names of images, not addresses; SVG is excluded because it can contain scripts."""


class Items:
    """All items of a file, in file order, and the columns to learn from: those of ordspan train.

    Parameters
    ----------
    job : AnnotateJob
        The file, and how its columns are used.
    """

    def __init__(self, job: AnnotateJob) -> None:
        name = job.items or STDIN
        if name == STDIN:
            raise FileError("items are read more than once; use a file, not a pipe")
        sizes_of([name])  # a missing file is refused
        if is_svmlight(name, job.options):
            raise FileError(f"{name}: svmlight files have no columns to show; use a table")
        there = open_file(name, job.options).names
        identity = [] if job.id is None else [job.id]
        unlearned = [*identity, *job.drop, *job.hide]
        reader, whole = _read(job, unlearned, there)
        table = pl.DataFrame([_as_text(whole.table[column]) for column in there])
        shown = [n for n in there if n not in (*identity, *job.hide)]
        # paths of the images, for each image column
        self.images = {n: _image_paths(whole, table[n]) for n in shown if are_images(table[n])}
        if not set(self.images).isdisjoint(reader.recipe.columns):
            reader, whole = _read(job, [*unlearned, *self.images], there)
        if job.id is None:  # the only column that names every row
            likely = [n for n in shown if n in reader.left_out and n not in job.drop]
            identity = [n for n in likely if not _unnamed(table[n]).any()]
        elif (bad := _unnamed(table[job.id])).any():
            row = bad.to_list().index(True)
            raise FileError(
                f"{whole.where(row)}: the {job.id} {brief(table[job.id][row])} is empty or not "
                "unique; choose a column that names every row"
            )
        self.path, self.encoder, self.notes = Path(name), reader.encoder, reader.notes
        self.ids = table[identity[0]].to_list() if len(identity) == 1 else None
        if self.ids is not None:  # the heading of the card
            shown = [n for n in shown if n not in identity or n in self.images] or shown
        self.table = table.select(shown)
        numbers = reader.recipe.numbers
        self.kinds = {
            n: IMAGE if n in self.images else NUMBER if n in numbers else TEXT for n in shown
        }
        # numbers of the recipe for every item, missing ones NaN, and its text columns
        self.X, self.words = whole.X, table.select(reader.recipe.texts)

    def __len__(self) -> int:
        return len(self.X)

    def key(self, item: int) -> str:
        """The id of an item, or its row number from 1."""
        return str(item + 1) if self.ids is None else self.ids[item]

    def name(self, item: int) -> str:
        """The id of an item, or the number of its row."""
        return f"row {item + 1}" if self.ids is None else self.ids[item]

    def cells(self, item: int) -> list[dict[str, str]]:
        """Cells of an item, as shown on the page."""
        return [
            {"name": name, "kind": kind, "value": short_number(cell) if kind == NUMBER else cell}
            for (name, kind), cell in zip(self.kinds.items(), self.table.row(item), strict=True)
        ]

    def values(self, item: int) -> list[Any]:
        """Values of an item in the recipe's columns: numbers (None where missing), then text."""
        numbers = [None if np.isnan(x) else float(x) for x in self.X[item]]
        return [*numbers, *(self.words.row(item) if self.words.width else ())]

    def features(self) -> Any:
        """Features of all items."""
        return self.encoder.features(self.X.copy(), self.words)

    def image(self, item: int, cell: int) -> tuple[bytes, str] | None:
        """Content and type of the image in a cell, or None."""
        column = self.table.columns[cell] if 0 <= cell < self.table.width else ""
        path = self.images[column][item] if column in self.images and 0 <= item < len(self) else ""
        # a file may have been replaced by a link since it was checked
        if not path or os.path.realpath(path) != path or not os.path.isfile(path):
            return None
        kind = Path(path).suffix[1:].lower().replace("jpg", "jpeg")
        return Path(path).read_bytes(), f"image/{kind}"


def can_learn(recipe: Recipe) -> bool:
    """Whether a recipe has features other than the one of items without any."""
    return bool(recipe.numbers or recipe.hashed or recipe.sentences) or any(
        len(words) > 1 for _, words in recipe.words
    )


def short_number(text: str) -> str:
    """A number with at most 4 digits, or as many as it has before the decimal point.

    >>> [short_number(text) for text in ("0.123456", "1234.56", "-98765.4", "7", "2.50", "", "NA")]
    ['0.1235', '1235', '-98765', '7', '2.5', '', 'NA']
    """
    try:
        number = float(text)
    except ValueError:
        return text
    return f"{number:.0f}" if 1000 <= abs(number) < 1e15 else f"{number:.4g}"


def _read(job: AnnotateJob, drop: Sequence[str], there: Sequence[str]) -> tuple[RowReader, Batch]:
    """The reader of the features of the items, and all rows with all columns."""
    choice = ColumnChoice(drop=list(dict.fromkeys(drop)), text=job.text)
    how, bad = (job.options, LabelColumns()), BadRows(REFUSE)
    reader = RowReader([str(job.items)], *how, bad, keep=tuple(there))
    try:
        reader.find_columns(choice)
    except NoFeatureError:
        # a category that hardly any item has, so that the model only learns grade frequencies
        reader.encoder = Encoder(Recipe(words=((there[0], ("",)),)))
    batches = list(reader.batches())
    X = np.concatenate([batch.X for batch in batches])
    table = pl.concat([batch.table for batch in batches], how="vertical_relaxed")
    rows = np.concatenate([batch.rows for batch in batches])
    return reader, Batch(X, table, rows, reader.files[0])


def _as_text(column: pl.Series) -> pl.Series:
    """Cells as text, without spaces around it."""
    if column.dtype.is_nested():
        cells = [None if cell is None else json.dumps(cell, default=str) for cell in column]
        column = pl.Series(column.name, cells, dtype=pl.String())
    return column.cast(pl.String()).fill_null("").str.strip_chars()


def _unnamed(column: pl.Series) -> pl.Series:
    """Which cells do not name their row."""
    return (column == "") | column.is_duplicated()


def are_images(column: pl.Series) -> bool:
    """Whether all cells of a column that are not empty are file names of images.

    >>> are_images(pl.Series(["a.png", ""])), are_images(pl.Series(["a.svg"]))
    (True, False)
    """
    filled = column.filter(column != "")
    return bool(len(filled)) and bool(filled.str.contains(IMAGE_FILE).all())


def _image_paths(whole: Batch, column: pl.Series) -> list[str]:
    """Paths of the images in a column, which must be in the folder of the items."""
    folder = os.path.realpath(Path(whole.path).parent)
    paths = []
    for row, cell in enumerate(column):
        path = os.path.realpath(os.path.join(folder, cell)) if cell and "\0" not in cell else ""
        inside = path.startswith(os.path.join(folder, "")) and os.path.isfile(path)
        if cell and not inside:
            raise FileError(
                f"{whole.where(row)}: the image {brief(cell)} in column {column.name!r} is not a "
                f"file in the folder of the items, {folder}; move it there, or hide the column "
                f"with --hide {shell_list([column.name])}"
            )
        paths.append(path)
    return paths


class Folder(msgspec.Struct, frozen=True):
    """The items of a state folder: their file, its digest, options, and the seed of all draws."""

    items: str
    digest: str
    seed: int
    options: dict[str, Any]


def digest_of(path: str) -> str:
    """Digest of a file, whatever its line ends."""
    return sha256(Path(path).read_bytes().replace(b"\r\n", b"\n")).hexdigest()


def read_folder(path: Path) -> Folder | None:
    """What a state folder remembers; None if it is new."""
    if not (path / NAME).exists():
        if (path / BASE).exists():
            raise FileError(
                f"{path} is a state folder of ordspan serve; choose another with --state"
            )
        return None
    try:
        return msgspec.json.decode((path / NAME).read_bytes(), type=Folder)
    except (msgspec.DecodeError, ValueError) as error:
        raise FileError(f"{path / NAME}: {error}; restore it, or start a new folder") from None


def open_folder(job: AnnotateJob) -> tuple[Folder, Items]:
    """Open the items of a state folder, or create it.

    Options that are not given are read from an existing folder; those given must be equal.
    """
    path, folder = Path(job.state), read_folder(Path(job.state))
    given = {name: getattr(job, name) for name in REMEMBERED}
    given = msgspec.json.decode(msgspec.json.encode(given))  # as they are read again
    if folder is None:
        if job.items is None or not job.classes:
            what = "a file of items" if job.items is None else "--grades lowest,...,highest"
            raise FileError(f"{path} is a new state folder; give {what} to create it")
        items, where = Items(job), os.path.abspath(job.items)
        folder = Folder(where, digest_of(where), secrets.randbits(32), given)
        path.mkdir(parents=True, exist_ok=True)
        write_atomically(path / NAME, msgspec.json.format(msgspec.json.encode(folder)))
        return folder, items
    for name, now in given.items():
        then = folder.options.get(name)
        if now and now != then:
            flag = options_of(AnnotateJob)[name].names[0]
            was = f"with {flag} {brief(then)}" if then else f"without {flag}"
            raise FileError(
                f"{path} was created {was}, so {brief(now)} cannot be given now; leave it out, or "
                "start a new folder with --state"
            )
    job = replace(job, **folder.options, items=job.items or folder.items)
    if not Path(str(job.items)).is_file():
        raise FileError(f"{job.items}, the items of {path}, is missing; give the file again")
    if digest_of(str(job.items)) != folder.digest:
        raise FileError(
            f"{job.items} is not, or no longer, the file that {path} was created with, and answers "
            "belong to its rows; restore that file, or start a new folder with --state (--export "
            "still works)"
        )
    return folder, Items(job)
