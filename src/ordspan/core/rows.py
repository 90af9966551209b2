"""Compiled: operations on one row of data, dense or sparse.

``columns`` and ``starts`` are None for dense rows and the CSR arrays for sparse ones.
"""

from math import inf

import numpy as np

from ordspan.core.compiling import FAST, compiled

BAD_ROW, BAD_LABEL, BAD_WIDTH = 0, -1, -2
"""What a trial returns instead of a rank when it refuses an example."""

MAX_SQ_NORM = 1e200
"""Rows with a larger squared norm are refused: beyond it products overflow to infinity."""

MIN_SQ_NORM = 1e-200
"""Rows with a smaller one count as zero where only weights can move: these would overflow."""


@compiled(forceinline=True)
def row_at(data, columns, starts, width, i):
    """Values and columns of row ``i``; the columns are None for dense rows."""
    if starts is None:
        return data[i * width : (i + 1) * width], None
    return data[starts[i] : starts[i + 1]], columns[starts[i] : starts[i + 1]]


@compiled(fastmath=FAST, forceinline=True)
def score_and_norm(weights, values, columns):
    """Dot product of a row with the weights, and the row's squared norm."""
    score = 0.0
    sq_norm = 0.0
    if columns is None:
        for j in range(values.size):
            value = np.float64(values[j])
            score += weights[j] * value
            sq_norm += value * value
    else:
        for j in range(values.size):
            value = np.float64(values[j])
            score += weights[columns[j]] * value
            sq_norm += value * value
    return score, sq_norm


@compiled(fastmath=FAST, forceinline=True)
def dot(weights, values, columns):
    """Dot product of a row with the weights."""
    score, _ = score_and_norm(weights, values, columns)
    return score


@compiled(fastmath=FAST, forceinline=True)
def add_scaled(weights, scale, values, columns):
    """Add a multiple of a row to the weights."""
    if columns is None:
        for j in range(values.size):
            weights[j] += scale * np.float64(values[j])
    else:
        for j in range(values.size):
            weights[columns[j]] += scale * np.float64(values[j])


@compiled
def row_fits(values, columns, width):
    """Whether a row has the width, or every value of a sparse row a column inside it.

    Checked because writing to a column outside would corrupt memory.
    """
    if columns is None:
        return values.size == width
    fits = values.size == columns.size
    for column in columns:
        fits = fits and 0 <= column < width
    return fits


@compiled
def scores(weights, data, columns, starts, out):
    """Dot product of every row with the weights; returns the first non-finite row, or -1."""
    for i in range(out.size):
        values, cols = row_at(data, columns, starts, weights.size, i)
        out[i] = dot(weights, values, cols)
        if not abs(out[i]) < inf:
            return i
    return -1


@compiled
def sq_norms(data, columns, starts, width, out):
    """Squared norm of every row."""
    for i in range(out.size):
        values, _ = row_at(data, columns, starts, width, i)
        _, out[i] = score_and_norm(values, values, None)
