"""The data sets that ship with the package, unpacked to the exact numbers of the original files."""

from __future__ import annotations

import json
from importlib import resources
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class PackedTable(NamedTuple):
    """A packed table: names of its columns, values of shape (n, d), and where they came from."""

    names: tuple[str, ...]
    values: NDArray[np.float64]
    source: str


def unpack_table(name: str) -> PackedTable:
    """Unpack a table: integers divided by the unit of their column, rounded as if parsed from text.

    >>> table = unpack_table("abalone")
    >>> table.names[1], table.values[0, 1]
    ('length', np.float64(0.455))
    """
    files = resources.files("ordspan.data") / "files"
    about = json.loads((files / "sources.json").read_text(encoding="utf-8"))[name]
    with (files / f"{name}.npz").open("rb") as file, np.load(file) as packed:
        names = tuple(map(str, packed["names"]))
        values = np.divide(packed["numbers"].T, packed["units"], order="C")
    return PackedTable(
        names, values, f"shipped with ordspan; {about['source']} ({about['licence']})"
    )
