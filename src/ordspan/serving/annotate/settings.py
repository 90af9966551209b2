"""Settings stored in a state folder, so that a restart continues with the same items."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from ordspan.models.atomic import write_atomically
from ordspan.serving.annotate.items import ItemColumns, Items, digest_of, read_items
from ordspan.serving.engine import BASE
from ordspan.tables.files import FileOptions
from ordspan.tables.rows import FileError
from ordspan.wording import brief

NAME = "annotate.json"
ANOTHER = "give the same or leave it out, or start a new folder with --state"


class ChangedItemsError(FileError):
    """The items of a state folder are gone, or others."""


class FolderSettings(msgspec.Struct, frozen=True):
    """The items and grades of a state folder.

    Parameters
    ----------
    items : str
        Path of the items file.
    digest : str
        Digest of that file.
    grades : list
        Grades from lowest to highest.
    columns : ItemColumns
        Roles of the columns.
    options : FileOptions
        How to read the file.
    seed : int
        Seed of the order of items and the random draws.
    """

    items: str
    digest: str
    grades: list[int | float | str]
    columns: ItemColumns
    options: FileOptions
    seed: int


def read_settings(folder: Path) -> FolderSettings | None:
    """Settings of a state folder; None if it is new."""
    path = folder / NAME
    if not path.exists():
        if (folder / BASE).exists():
            raise FileError(
                f"{folder} is a state folder of ordspan serve; choose another with --state"
            )
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=FolderSettings)
    except (msgspec.DecodeError, ValueError) as error:
        raise FileError(f"{path}: {error}; restore it, or start a new folder") from None


def check_can_export(folder: Path) -> FolderSettings:
    """Settings of a folder to export from; one that was never created is refused."""
    known = read_settings(folder)
    if known is None:
        kind = "a state folder" if folder.exists() else "a folder"
        raise FileError(f"{folder} is not {kind}, so there is nothing to export; correct --state")
    return known


def opened(
    folder: Path,
    path: Path | None,
    grades: Sequence[Any] | None,
    columns: ItemColumns,
    options: FileOptions,
) -> tuple[FolderSettings, Items]:
    """Open the items of a state folder, or create it.

    Arguments that are not given are read from an existing folder; those given must be equal.
    """
    known = read_settings(folder)
    if known is None:
        if path is None or grades is None:
            what = "a file of items" if path is None else "--grades lowest,...,highest"
            raise FileError(f"{folder} is a new state folder; give {what} to create it")
        items = read_items(path, options, columns)
        where, seed = os.path.abspath(path), secrets.randbits(32)
        known = FolderSettings(where, items.digest, list(grades), columns, options, seed)
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / NAME, msgspec.json.format(msgspec.json.encode(known)))
        return known, items
    now = _given(grades and list(grades), columns, options)
    before = _given(known.grades, known.columns, known.options)
    for name, then in before.items():
        if now[name] and now[name] != then:
            was = brief(then) if then else "nothing"
            raise FileError(
                f"{folder} was created with {was} as --{name}, not {brief(now[name])}; {ANOTHER}"
            )
    path = path or Path(known.items)
    if not path.is_file():
        raise ChangedItemsError(f"{path}, the items of {folder}, is missing; give the file again")
    if digest_of(path) != known.digest:
        raise ChangedItemsError(
            f"{path} has changed since {folder} was created, and answers belong to its rows; "
            "restore the file, or start a new folder with --state (--export still works)"
        )
    return known, read_items(path, known.options, known.columns)


def _given(grades: Any, columns: ItemColumns, options: FileOptions) -> dict[str, Any]:
    """Settings by the names of their options."""
    how = {name: getattr(options, name) for name in ("format", "delimiter", "decimal", "encoding")}
    return {"grades": grades} | columns._asdict() | how
