"""Compiled: `Rows`, the record of checked rows, and scores, norms and sums of them."""

from math import inf
from typing import Any, NamedTuple

import numpy as np

from ordspan.core.compiling import FAST, compiled

BAD_ROW = 0  # what a trial returns instead of a rank when it refuses an example

MAX_SQ_NORM = 1e200
"""Rows with a larger squared norm are refused: beyond it products overflow to infinity."""

MIN_SQ_NORM = 1e-200
"""Rows with a smaller squared norm count as zero where only weights move, which would overflow."""


class Rows(NamedTuple):
    """Checked rows with their labels, as every walk takes them."""

    data: Any  # values, one row after the other
    columns: Any  # with starts the arrays of a CSR matrix; both None if rows are dense
    starts: Any
    lower: Any  # ranks 1..K
    upper: Any
    weight: Any  # empty: all weights are 1
    width: int  # number of features


@compiled(forceinline=True)
def row_at(data, columns, starts, width, i):
    """Values and columns of row ``i``; the columns of a dense row are None."""
    if starts is None:
        return data[i * width : (i + 1) * width], None
    return data[starts[i] : starts[i + 1]], columns[starts[i] : starts[i + 1]]


# The test of ``columns`` is decided when a walk is compiled: a dense row costs no branch.
@compiled(fastmath=FAST, forceinline=True)
def score_and_norm(weights, values, columns):
    """Dot product of a row with the weights, and the row's squared norm."""
    score = sq_norm = 0.0
    for j in range(values.size):
        value = np.float64(values[j])
        score += weights[j if columns is None else columns[j]] * value
        sq_norm += value * value
    return score, sq_norm


@compiled(fastmath=FAST, forceinline=True)
def add_scaled(weights, scale, values, columns):
    """Add a multiple of a row to the weights."""
    for j in range(values.size):
        weights[j if columns is None else columns[j]] += scale * np.float64(values[j])


@compiled
def row_fits(values, columns, width):
    """Whether a dense row has ``width`` values, or every column of a sparse row is below it.

    Checked because writing to a column outside would corrupt memory.
    """
    if columns is None:
        return values.size == width
    fits = values.size == columns.size
    for column in columns:
        fits = fits and 0 <= column < width
    return fits


@compiled
def scores(weights, rows, out):
    """Dot product of every row with the weights; returns the first non-finite row, or -1."""
    for i in range(out.size):
        values, cols = row_at(rows.data, rows.columns, rows.starts, rows.width, i)
        out[i], _ = score_and_norm(weights, values, cols)
        if not abs(out[i]) < inf:
            return i
    return -1


@compiled
def sq_norms(rows, out):
    """Squared norm of every row."""
    for i in range(out.size):
        values, _ = row_at(rows.data, rows.columns, rows.starts, rows.width, i)
        _, out[i] = score_and_norm(values, values, None)
