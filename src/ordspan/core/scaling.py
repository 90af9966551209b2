"""Compiled: running mean and spread of features, and rows scaled by them."""

from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordspan.core.compiling import FAST, compiled, without_refcount
from ordspan.core.state import wrong_type

N_STATE_ROWS = 6
COUNT, MEAN, SPREAD, SCALE, LATER_MEAN, LATER_SPREAD = range(N_STATE_ROWS)
"""Rows of a state: number of values, their mean, the sum of their squared deviations, and the
factor for the next rows; mean and spread of the values after FEW_ROWS, up to SURE_ROWS."""

EVERY_ROW, SELDOM = 1024, 64
"""The factor is updated with each of the first EVERY_ROW values of a feature, and with every
SELDOM-th after them: a root for every value would take longer than learning it."""

FEW_ROWS, LIMIT = 5, 8.0
"""After FEW_ROWS values, one more than LIMIT standard deviations away from the mean of those before
it is clipped: one absurd row must not spoil the mean and the spread."""

SURE_ROWS = 16
"""By then the values after FEW_ROWS tell if one of the first, which are not clipped, was absurd."""


def why_unusable(state: NDArray[Any], n_features: int) -> str | None:
    """Why an untrusted array cannot be the state for this many features, or None.

    >>> why_unusable(np.zeros((6, 2)), 3)
    'has shape (6, 2)'
    """
    if state.shape != (N_STATE_ROWS, n_features):
        return f"has shape {state.shape}"
    if fault := wrong_type(state):
        return fault
    if not np.isfinite(state).all() or (state[[COUNT, SPREAD, SCALE, LATER_SPREAD]] < 0.0).any():
        return "has numbers that are not finite, or below 0"
    return None


@compiled(fastmath=FAST)
def learn_dense(state, rows):
    """Update the state row by row; centre and scale each row by the rows up to it, in place.

    A missing number becomes 0, the mean, and is not counted; a constant feature becomes 0. A value
    beyond LIMIT, by the values before it, becomes LIMIT or -LIMIT, and the mean and the spread take
    the clipped value. The first FEW_ROWS values, which are not clipped, are forgotten after
    SURE_ROWS values if one of them was absurd. The spread may be up to SELDOM values old, so values
    are also clipped to the root of the number of values before them: the most that an up-to-date
    spread allows.
    """
    state = without_refcount(state)
    count, mean, spread, scale = state[COUNT], state[MEAN], state[SPREAD], state[SCALE]
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            value, before = np.float64(rows[i, j]), count[j]
            if value != value:
                rows[i, j] = 0.0
                continue
            n = before + 1.0
            if FEW_ROWS < n <= SURE_ROWS:
                learn_later(state, j, value)
            step, clipped = value - mean[j], 0.0
            if n > FEW_ROWS and abs(step) * scale[j] > LIMIT:
                clipped = LIMIT if step > 0.0 else -LIMIT
                step = clipped / scale[j]
                value = mean[j] + step
            count[j] = n
            mean[j] += step / n
            spread[j] += step * (value - mean[j])
            if n <= EVERY_ROW or int(n) % SELDOM == 0:
                scale[j] = sqrt(n / spread[j]) if spread[j] > 0.0 else 0.0
            scaled = (value - mean[j]) * scale[j]
            if scaled * scaled > before:
                scaled = sqrt(before) if scaled > 0.0 else -sqrt(before)
            rows[i, j] = clipped if clipped != 0.0 else scaled
            if n == SURE_ROWS:
                forget_absurd_start(state, j)


@compiled(fastmath=FAST)
def learn_later(state, j, value):
    """Update the mean and the spread of the values of a feature after FEW_ROWS by the next one."""
    step = value - state[LATER_MEAN, j]
    state[LATER_MEAN, j] += step / (state[COUNT, j] + 1.0 - FEW_ROWS)
    state[LATER_SPREAD, j] += step * (value - state[LATER_MEAN, j])


@compiled(fastmath=FAST)
def forget_absurd_start(state, j):
    """Forget the first FEW_ROWS values of a feature if one of them was absurd.

    It was, if the spread exceeds what a single value at LIMIT deviations of the later ones adds.
    """
    later = state[LATER_SPREAD, j] / (1.0 - FEW_ROWS / SURE_ROWS)
    if 0.0 < later * LIMIT * LIMIT < state[SPREAD, j] * SURE_ROWS:
        state[MEAN, j], state[SPREAD, j] = state[LATER_MEAN, j], later
        state[SCALE, j] = sqrt(SURE_ROWS / later)


@compiled(fastmath=FAST)
def scale_dense(state, rows, out):
    """Centre and scale rows by the state; a missing number becomes 0."""
    scale = np.zeros(rows.shape[1])
    for j in range(scale.size):
        if state[SPREAD, j] > 0.0:
            scale[j] = sqrt(state[COUNT, j] / state[SPREAD, j])
    for i in range(rows.shape[0]):
        for j in range(scale.size):
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
    """Whether no absolute value exceeds ``largest``; NaN passes only with ``gaps``."""
    for i in range(rows.shape[0]):
        n_within = n_larger = 0
        for j in range(rows.shape[1]):  # no early exit, so the loop vectorises
            size = abs(np.float64(rows[i, j]))
            n_within += size <= largest
            n_larger += size > largest
        if n_larger or (n_within < rows.shape[1] and not gaps):
            return False
    return True
