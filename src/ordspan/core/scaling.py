"""Compiled: running mean and spread of features, and rows scaled by them."""

from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordspan.core.compiling import FAST, compiled

N_PARTS = 4
COUNT, MEAN, SPREAD, SCALE = range(N_PARTS)
"""Rows of a state: how many values, their mean, the sum of their squared deviations, and what the
next rows are multiplied by."""

EVERY_ROW, SELDOM = 1024, 64
"""The factor is made anew with each of the first rows, and with one row in so many after them: a
root and a division for every value would take longer than to learn it."""


def scale_fault(state: NDArray[Any], n_features: int) -> str | None:
    """Why an array from elsewhere cannot be the state of so many features, or None.

    >>> scale_fault(np.zeros((4, 2)), 3)
    'has shape (4, 2)'
    """
    if state.shape != (N_PARTS, n_features):
        return f"has shape {state.shape}"
    if state.dtype != np.float64 or not state.dtype.isnative:
        return f"is of {state.dtype.str}, not of this machine's float64"
    if not np.isfinite(state).all() or (state[[COUNT, SPREAD, SCALE]] < 0.0).any():
        return "has numbers that are not finite, or below 0"
    return None


@compiled(fastmath=FAST)
def learn_dense(state, rows):
    """Take rows in one after the other; centre and scale each by the rows up to it, in place.

    A feature that has not varied becomes 0. The spread may be that of up to SELDOM rows before; no
    value comes out larger than the root of the number of rows before it, which is the most it
    could be by a spread that counts its own row in.
    """
    mean, spread, scale = state[MEAN], state[SPREAD], state[SCALE]
    n_rows, n_features = rows.shape
    n = state[COUNT, 0]
    for i in range(n_rows):
        most = sqrt(n)
        n += 1.0
        share = 1.0 / n
        if n <= EVERY_ROW or n % SELDOM == 0.0:
            for j in range(n_features):
                value = np.float64(rows[i, j])
                if value != value:  # missing: the mean of the rows before
                    value = mean[j]
                step = value - mean[j]
                mean[j] += step * share
                spread[j] += step * (value - mean[j])
                scale[j] = sqrt(n / spread[j]) if spread[j] > 0.0 else 0.0
                rows[i, j] = (value - mean[j]) * scale[j]
        else:
            for j in range(n_features):
                value = np.float64(rows[i, j])
                if value != value:  # missing: the mean of the rows before
                    value = mean[j]
                step = value - mean[j]
                mean[j] += step * share
                spread[j] += step * (value - mean[j])
                scaled = (value - mean[j]) * scale[j]
                scaled = scaled if scaled < most else most
                rows[i, j] = scaled if scaled > -most else -most
    state[COUNT, :] = n


@compiled(fastmath=FAST)
def scale_dense(state, rows, out):
    """Centre and scale rows by what is known; a missing number becomes 0."""
    n_rows, n_features = rows.shape
    scale = np.zeros(n_features)
    for j in range(n_features):
        if state[SPREAD, j] > 0.0:
            scale[j] = sqrt(state[COUNT, j] / state[SPREAD, j])
    for i in range(n_rows):
        for j in range(n_features):
            value = np.float64(rows[i, j])
            value = value if value == value else state[MEAN, j]  # missing: the mean
            out[i, j] = (value - state[MEAN, j]) * scale[j]


@compiled
def scale_sparse(state, values, columns, learn):
    """Divide the values of sparse rows by the root mean square of their feature, in place."""
    for k in range(values.size):
        j = columns[k]
        if learn:
            state[COUNT, j] += 1.0
            state[SPREAD, j] += values[k] * values[k]
        spread = state[SPREAD, j]
        values[k] *= sqrt(state[COUNT, j] / spread) if spread > 0.0 else 0.0


@compiled
def all_within(rows, largest, gaps):
    """Whether no value is larger than this in size, or not a number unless there may be gaps."""
    n_rows, n_features = rows.shape
    for i in range(n_rows):
        n_within = n_larger = 0
        for j in range(n_features):  # no early exit, so the loop vectorises
            size = abs(np.float64(rows[i, j]))
            n_within += size <= largest
            n_larger += size > largest
        if n_larger or (n_within < n_features and not gaps):
            return False
    return True
