"""Detecting rows that are sorted or come in runs, which have to be shuffled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

N_CHUNKS, CHUNK_ROWS = 32, 10
SORTED_SHARE = 0.03
"""Rows are sorted if chunks of neighbours explain this share of the variance of a column."""
CHANCE = 5 * np.sqrt(2 * N_CHUNKS)
"""Five standard deviations of what chunks of shuffled rows explain by chance, times n."""
RUN_SHARE = 0.2
"""Values come in runs if neighbours agree by this much more than by chance."""
MAX_SPARSE = 20_000
"""svmlight rows with more features than this are not checked for their order."""


def find_sort_key(
    labels: NDArray[Any],
    numbers: Sequence[tuple[str, NDArray[Any]]] = (),
    words: Sequence[tuple[str, NDArray[Any]]] = (),
) -> str:
    """The column by which rows are sorted or in runs; empty if they are shuffled.

    Parameters
    ----------
    labels : array of shape (n,)
        Midpoints of the labels.
    numbers, words : sequences of (name, values of shape (n,))
        Numeric columns, and the codes of text columns.

    Examples
    --------
    >>> find_sort_key(np.repeat([1, 2, 3], 50)), find_sort_key(np.tile([1, 2, 3], 50))
    ('labels', '')
    """
    n_rows = labels.size
    if n_rows < 2 * CHUNK_ROWS:
        return ""
    if in_runs(labels) or (labels == labels[0]).all():
        return "labels"
    least = max(SORTED_SHARE, CHANCE / n_rows)  # chance explains more in small files
    for name, values in [("labels", labels), *numbers, *words]:
        if explained(np.asarray(values, dtype=np.float64)) > least:
            return name
    return next((name for name, values in words if in_runs(values)), "")


def in_runs(values: NDArray[Any]) -> bool:
    """Whether neighbours are equal much more often than by chance."""
    return are_runs(
        np.unique(values, return_counts=True)[1], int((values[1:] == values[:-1]).sum())
    )


def are_runs(counts: NDArray[np.int64], n_alike: int) -> bool:
    """`in_runs` from the counts of the values and the number of equal neighbours."""
    n_rows = max(1, int(counts.sum()))
    by_chance = float(np.square(counts / n_rows).sum())
    return by_chance < 1 and (n_alike / n_rows - by_chance) / (1 - by_chance) > RUN_SHARE


def explained(values: NDArray[np.float64]) -> float:
    """Share of the variance of a column that chunks of neighbours explain, beyond chance.

    >>> round(explained(np.arange(1000.0)), 2)
    1.0
    """
    values = values[np.isfinite(values)]
    n = values.size
    n_chunks = min(N_CHUNKS, n // CHUNK_ROWS)
    if n_chunks < 2 or values.max() == values.min():
        return 0.0
    values = (values - values.mean()) / max(np.abs(values).max(), np.finfo(float).tiny)
    total = np.square(values).sum()
    starts = np.linspace(0, n, n_chunks + 1).astype(int)[:-1]
    between = (np.square(np.add.reduceat(values, starts)) / np.diff([*starts, n])).sum()
    return float(_beyond_chance(between, total, n, n_chunks))


def _beyond_chance(between: Any, total: Any, n: int, n_chunks: int) -> Any:
    """Omega squared of an analysis of variance: the share explained beyond chance."""
    within = np.maximum(total - between, 0.0) / (n - n_chunks)
    return (between - (n_chunks - 1) * within) / np.maximum(total + within, np.finfo(float).tiny)


def sparse_order(rows: Sequence[tuple[Any, NDArray[np.float64]]]) -> str:
    """What svmlight rows are sorted by, or nothing."""
    from scipy.sparse import csr_array, vstack

    if not rows:
        return ""
    grades = np.concatenate([grades for _, grades in rows])
    if found := find_sort_key(grades):
        return found
    n, n_chunks = grades.size, min(N_CHUNKS, grades.size // CHUNK_ROWS)
    if n_chunks < 2 or rows[0][0].shape[1] > MAX_SPARSE:
        return ""
    X = vstack([matrix for matrix, _ in rows], format="csr")
    chunk = np.arange(n) * n_chunks // n
    sums = csr_array((np.ones(n), (chunk, np.arange(n))), shape=(n_chunks, n)) @ X
    mean = np.asarray(X.mean(axis=0)).ravel()
    total = np.asarray(X.multiply(X).sum(axis=0)).ravel() - n * mean**2
    sizes = np.bincount(chunk)[:, None]
    between = (np.square(sums.toarray() - sizes * mean) / sizes).sum(axis=0)
    share = _beyond_chance(between, total, n, n_chunks)
    # ignore a sum of squares that is only rounding
    share[total <= 1e-9 * n * mean**2] = 0.0
    return "a feature" if (share > max(SORTED_SHARE, CHANCE / n)).any() else ""
