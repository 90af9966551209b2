"""The same rows in every format, for tests that train from files."""

from importlib import import_module

import numpy as np
import pyarrow as pa

from tables import write_table

FORMATS = ("csv", "csv.gz", "parquet", "txt", "jsonl")
SMALL = {
    "ordspan.tables.text.BLOCK_BYTES": 10_000,
    "ordspan.tables.formats.MAX_ROWS": 300,
    "ordspan.tables.reading.ROWS_AT_ONCE": 300,
}
"""Sizes by which small files have many blocks, parts and windows."""


def read_in_small_parts(setattr=setattr):
    """Read files as if they were large."""
    for name, value in SMALL.items():
        module, _, constant = name.rpartition(".")
        setattr(import_module(module), constant, value)


def make_rows(n_rows, seed=0):
    """Features, and grades 1..4 that follow a noisy score."""
    rng = np.random.default_rng(seed)
    X = rng.normal([0, 5, -3], [1, 10, 0.1], size=(n_rows, 3)).round(3)
    score = X[:, 0] + (X[:, 1] - 5) / 10 + rng.normal(0, 0.5, n_rows)
    return X, np.digitize(score, [-1, 0, 1]) + 1


def write_rows(folder, ending, X, grades):
    """A file of the rows; its path."""
    path = folder / f"rows.{ending}"
    if ending != "txt":
        columns = {f"x{j}": X[:, j] for j in range(X.shape[1])}
        return write_table(pa.table(columns | {"grade": grades}), path)
    cells = [" ".join(f"{j}:{x}" for j, x in enumerate(row, 1)) for row in X.tolist()]
    path.write_text("".join(f"{y} {row}\n" for y, row in zip(grades, cells, strict=True)))
    return path
