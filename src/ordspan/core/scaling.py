"""Compiled: running mean and spread of features, and rows scaled by them."""

from math import sqrt

import numpy as np
from numba import njit

COUNT, MEAN, SPREAD = range(3)

FAST = {"reassoc", "contract", "nsz"}


@njit(cache=True, nogil=True, fastmath=FAST)
def learn_dense(state, rows, out):
    """Take rows in one after the other; centre and scale each by the rows up to and with it.

    A feature that has not varied becomes 0.
    """
    mean, spread = state[MEAN], state[SPREAD]
    n_rows, n_features = rows.shape
    n = state[COUNT, 0]
    for i in range(n_rows):
        n += 1.0
        share = 1.0 / n
        for j in range(n_features):
            value = np.float64(rows[i, j])
            step = value - mean[j]
            centre = mean[j] + step * share
            squares = spread[j] + step * (value - centre)
            mean[j] = centre
            spread[j] = squares
            out[i, j] = (value - centre) * sqrt(n / squares) if squares > 0.0 else 0.0
    state[COUNT, :] = n


@njit(cache=True, nogil=True, fastmath=FAST)
def scale_dense(state, rows, out):
    """Centre and scale rows by what is known."""
    n_rows, n_features = rows.shape
    scale = np.zeros(n_features)
    for j in range(n_features):
        if state[SPREAD, j] > 0.0:
            scale[j] = sqrt(state[COUNT, j] / state[SPREAD, j])
    for i in range(n_rows):
        for j in range(n_features):
            out[i, j] = (np.float64(rows[i, j]) - state[MEAN, j]) * scale[j]


@njit(cache=True, nogil=True)
def scale_sparse(state, values, columns, learn):
    """Divide the values of sparse rows by the root mean square of their feature, in place."""
    for k in range(values.size):
        j = columns[k]
        if learn:
            state[COUNT, j] += 1.0
            state[SPREAD, j] += values[k] * values[k]
        spread = state[SPREAD, j]
        values[k] *= sqrt(state[COUNT, j] / spread) if spread > 0.0 else 0.0


@njit(cache=True, nogil=True)
def all_within(rows, largest):
    """Whether no value is larger than this in size, or not a number."""
    n_rows, n_features = rows.shape
    for i in range(n_rows):
        n_within = 0
        for j in range(n_features):  # no way out of the loop, so that many are compared at once
            n_within += abs(np.float64(rows[i, j])) <= largest
        if n_within < n_features:
            return False
    return True
