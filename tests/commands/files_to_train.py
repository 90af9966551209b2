"""The same rows in every format, for tests that train from files."""

import numpy as np
import pyarrow as pa

from tables import write_table

FORMATS = ("csv", "csv.gz", "parquet", "txt", "jsonl")


def make_rows(n_rows, seed=0):
    """Features, and grades 1..4 that follow a noisy score."""
    rng = np.random.default_rng(seed)
    X = rng.normal([0, 5, -3], [1, 10, 0.1], size=(n_rows, 3)).round(3)
    score = X[:, 0] + (X[:, 1] - 5) / 10 + rng.normal(0, 0.5, n_rows)
    return X, np.digitize(score, [-1, 0, 1]) + 1


def write_rows(folder, ending, X, grades, note=0):
    """A file of the rows; its path. With a note of many letters a file has several blocks."""
    path = folder / f"rows.{ending}"
    if ending != "txt":
        columns = {f"x{j}": X[:, j] for j in range(X.shape[1])}
        columns |= {"note": ["x" * note] * len(X)} if note else {}
        return write_table(pa.table(columns | {"grade": grades}), path)
    cells = [" ".join(f"{j}:{x}" for j, x in enumerate(row, 1)) for row in X.tolist()]
    cells = [f"{row} # {'x' * note}" for row in cells] if note else cells
    path.write_text("".join(f"{y} {row}\n" for y, row in zip(grades, cells, strict=True)))
    return path
