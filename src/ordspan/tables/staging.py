"""Rows as raw numbers on disk, to be read again in any order: several passes, sorted files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordspan.core.state import Ranks
from ordspan.tables.encoder import stack_rows
from ordspan.tables.rows import FileError

VALUES, COLUMNS, ENDS, RANKS = "values", "columns", "ends", "ranks"
TYPES = {VALUES: np.float64, COLUMNS: np.int32, ENDS: np.int64, RANKS: np.int64}

MAPPED = 1024
"""Rows read from one mapping; the pages around them are mapped with them."""


class Staging:
    """Features and ranks of rows in a folder, written once and then read by row number.

    Dense rows are their values; sparse ones have the columns of their values too, and the place
    where each row ends among them.

    Parameters
    ----------
    folder : Path
        Where to write; the folder belongs to one training, beside its checkpoint.
    n_features : int
        Number of features.
    """

    def __init__(self, folder: Path, n_features: int) -> None:
        self.folder, self.n_features = folder, n_features

    @property
    def _dense(self) -> bool:
        return not (self.folder / COLUMNS).stat().st_size

    @property
    def n_bytes(self) -> int:
        """Size of all rows."""
        return sum((self.folder / name).stat().st_size for name in TYPES)

    @property
    def n_rows(self) -> int:
        """Number of rows that are there."""
        path = self.folder / RANKS
        return path.stat().st_size // (2 * np.dtype(TYPES[RANKS]).itemsize) if path.exists() else 0

    def write(self, batches: Iterable[tuple[Any, Ranks, Ranks, float | None]]) -> None:
        """Write all rows, given as features, lower and upper ranks, and the share that is read.

        Raises before the disk is full.
        """
        self.remove()
        self.folder.mkdir()
        files = {name: open(self.folder / name, "wb") for name in TYPES}  # noqa: SIM115
        written = n_values = 0
        try:
            for X, lower, upper, share in batches:
                parts = {RANKS: np.column_stack([lower, upper])}
                if isinstance(X, np.ndarray):
                    parts[VALUES] = X
                else:
                    parts |= {VALUES: X.data, COLUMNS: X.indices, ENDS: X.indptr[1:] + n_values}
                    n_values += X.data.size
                for name, part in parts.items():
                    written += files[name].write(np.ascontiguousarray(part, TYPES[name]).data)
                self._check_space(written, share)
            for file in files.values():
                file.flush()
                os.fsync(file.fileno())
        finally:
            for file in files.values():
                file.close()

    def _check_space(self, written: int, share: float | None) -> None:
        needed = written / share - written if share else 0.0
        free = shutil.disk_usage(self.folder).free
        if needed > free:
            self.remove()
            raise FileError(
                f"{self.folder.parent}: the rows are read more than once, for which they are kept "
                f"there as numbers; {needed / 1e9:,.1f} GB are needed and {free / 1e9:,.1f} GB "
                "free. Write the model to another disk, or make one pass over unsorted rows"
            )

    def take(self, rows: NDArray[np.int64]) -> tuple[Any, Ranks, Ranks]:
        """Features, lower and upper ranks of some rows."""
        # mapped for few rows: the system counts what stays mapped as memory of this process
        parts = [self._mapped(rows[i : i + MAPPED]) for i in range(0, rows.size, MAPPED)]
        X, lower, upper = zip(*parts, strict=True)
        return stack_rows(list(X)), np.concatenate(lower), np.concatenate(upper)

    def _mapped(self, rows: NDArray[np.int64]) -> tuple[Any, Ranks, Ranks]:
        names = (VALUES, RANKS) if self._dense else TYPES
        maps = {name: np.memmap(self.folder / name, TYPES[name], "r") for name in names}
        ranks = maps[RANKS].reshape(-1, 2)[rows]
        lower, upper = np.ascontiguousarray(ranks.T)
        if self._dense:
            return maps[VALUES].reshape(-1, self.n_features)[rows], lower, upper
        from scipy.sparse import csr_array

        ends = maps[ENDS]
        last, first = ends[rows], np.where(rows > 0, ends[rows - 1], 0)
        starts = np.concatenate([[0], np.cumsum(last - first)])
        places = np.arange(starts[-1]) + np.repeat(first - starts[:-1], last - first)
        shape = (rows.size, self.n_features)
        X = csr_array((maps[VALUES][places], maps[COLUMNS][places], starts), shape=shape)
        return X, lower, upper

    def remove(self) -> None:
        """Delete the rows."""
        shutil.rmtree(self.folder, ignore_errors=True)
