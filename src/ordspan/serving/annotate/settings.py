"""What a state folder remembers of its items, so that a restart goes on with the same."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from ordspan.atomic import write_atomically
from ordspan.files.batch import FileError, brief
from ordspan.files.opening import FileOptions
from ordspan.serving.annotate.items import ItemColumns, Items, read_items
from ordspan.serving.engine import BASE

NAME = "annotate.json"
ANOTHER = "give the same or leave it out, or begin another folder with --state"


class FolderSettings(msgspec.Struct, frozen=True):
    """The items and grades of a state folder.

    Parameters
    ----------
    items : str
        Where the file of the items is.
    digest : str
        Of its bytes.
    grades : list
        From lowest to highest.
    columns : ItemColumns
        Which columns name the items, are shown, and are learned from.
    options : FileOptions
        How to open the file.
    seed : int
        Of the order of the items, and of the coins.
    """

    items: str
    digest: str
    grades: list[int | float | str]
    columns: ItemColumns
    options: FileOptions
    seed: int


def read_settings(folder: Path) -> FolderSettings | None:
    """What a state folder was begun with; None where it is new."""
    path = folder / NAME
    if not path.exists():
        if (folder / BASE).exists():
            raise FileError(f"{folder} is the state of ordspan serve; choose another with --state")
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=FolderSettings)
    except (msgspec.DecodeError, ValueError) as error:
        raise FileError(f"{path}: {error}; restore it, or begin another folder") from None


def opened(
    folder: Path,
    path: Path | None,
    grades: Sequence[Any] | None,
    columns: ItemColumns,
    options: FileOptions,
) -> tuple[FolderSettings, Items]:
    """The items of a state folder, which is begun where it is new.

    What was not given is as it was when the folder was begun; what is given must be the same.
    """
    known = read_settings(folder)
    if known is None:
        if path is None or grades is None:
            what = "a file of items" if path is None else "--grades lowest,...,highest"
            raise FileError(f"{folder} is a new state folder; give {what} to begin it with")
        items = read_items(path, options, columns)
        where, seed = os.path.abspath(path), secrets.randbits(32)
        known = FolderSettings(where, items.digest, list(grades), columns, options, seed)
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / NAME, msgspec.json.format(msgspec.json.encode(known)))
        return known, items
    _check_given(folder, "grades", grades and list(grades), known.grades)
    for name, given in columns._asdict().items():
        _check_given(folder, name, given, getattr(known.columns, name))
    if path is None and not Path(known.items).is_file():
        raise FileError(f"{known.items}, the items of {folder}, is gone; give the file again")
    items = read_items(path or Path(known.items), known.options, known.columns)
    if items.digest != known.digest:
        raise FileError(
            f"{items.path} has another content than when {folder} was begun, and answers belong "
            "to its rows; restore the file, or begin another folder with --state"
        )
    return known, items


def _check_given(folder: Path, name: str, given: Any, then: Any) -> None:
    """Refuse what is given and is not as it was."""
    if given and given != then:
        was = brief(then) if then else "nothing"
        raise FileError(f"{folder} was begun with {was} as --{name}, not {brief(given)}; {ANOTHER}")
