"""Damaged Parquet and Arrow files: an error that names the file, or rows of finite numbers."""

from functools import cache
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
from files_to_train import make_rows
from pyarrow import ipc, parquet

from ordspan.data import stream


def attack(rng, folder: Path) -> None:
    """One damaged file, read to its end."""
    ending = str(rng.choice(["parquet", "arrow"]))
    path = folder / f"rows.{ending}"
    path.write_bytes(damaged(rng, whole(ending)))
    try:
        for batch in stream(path, label="grade", classes=[1, 2, 3, 4], on_bad_row="skip"):
            X = batch.X if isinstance(batch.X, np.ndarray) else batch.X.toarray()
            assert np.isfinite(X).all()
            assert ((batch.lower >= 1) & (batch.upper <= 4)).all()
    except ValueError as error:
        if path.name not in str(error):
            raise AssertionError("an error without a place") from error


def damaged(rng, content: bytes) -> bytes:
    """A file with some bytes changed, mostly of the footer, or with a piece cut out."""
    changed = bytearray(content)
    if rng.random() < 0.2:
        place, size = rng.integers(len(changed)), rng.integers(1, 200)
        del changed[place : place + size]
        return bytes(changed)
    for _ in range(rng.integers(1, 6)):
        near_the_end = rng.random() < 0.6
        place = rng.integers(max(0, len(changed) - 900) if near_the_end else 0, len(changed))
        changed[place] = rng.integers(256) if rng.random() < 0.5 else changed[place] ^ 1
    return bytes(changed)


@cache
def whole(ending: str) -> bytes:
    """A file without a fault: numbers with gaps, words and grades, in two pieces."""
    X, grades = make_rows(40)
    words = np.array(["red", "green", "blue"])[np.arange(40) % 3]
    gaps = [None if i % 9 == 4 else x for i, x in enumerate(X[:, 2].tolist())]
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "c": gaps, "word": words, "grade": grades})
    file = BytesIO()
    if ending == "parquet":
        parquet.write_table(table, file, row_group_size=20)
    else:
        with ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=20)
    return file.getvalue()
