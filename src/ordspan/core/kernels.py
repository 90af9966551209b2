"""Compiled: kernel values of a row with the support vectors.

These are stored in blocks, feature by feature, so that one loop computes a whole block.
"""

from math import tanh
from typing import NamedTuple

import numpy as np

from ordspan.core.compiling import FAST, compiled
from ordspan.core.rows import score_and_norm

LANES = 64
"""Support vectors are stored in blocks of this size, feature by feature, to be vectorised."""

LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 0.693145751953125, 1.42860682030941723212e-06
ROUND = 6755399441055744.0
"""1.5 times 2^52: adding it to a number and subtracting it again rounds to the nearest integer."""

EXP_SERIES = (
    2.5100375832561234e-08, 2.7620075879983367e-07, 2.7557268480310024e-06, 2.4801521322368692e-05,
    0.00019841269863040545, 0.0013888888917196719, 0.008333333333330065, 0.041666666666624164,
    0.16666666666666669, 0.5, 1.0, 1.0,
)  # fmt: skip
"""exp(r) = 1 + r + r^2 q(r), where q is exact at the ten Chebyshev nodes of -ln 2 / 2..ln 2 / 2.

Its relative error is below 4e-17; a Taylor polynomial needs two more terms for that."""

LOWEST_EXPONENT = -708.0
"""Lower exponents are raised to this, exp of which is 3e-308: the result stays a normal number."""

LINEAR, RBF, POLY, SIGMOID = range(4)


class Kernel(NamedTuple):
    """Which kernel, and its constants as scikit-learn names them."""

    kind: int
    gamma: float
    degree: float
    coef0: float


# Four features at a time, instead of one, halve the time of a value at 30 features.
@compiled(fastmath={"contract"}, forceinline=True)
def squared_distances(block, row, out):
    """Write |s - row|^2 to ``out`` for every vector s of a block."""
    for lane in range(LANES):  # a slice of a size that is not known is slower
        out[lane] = 0.0
    whole = row.size // 4 * 4
    for j in range(0, whole, 4):
        for lane in range(LANES):
            a, b = block[j, lane] - row[j], block[j + 1, lane] - row[j + 1]
            c, d = block[j + 2, lane] - row[j + 2], block[j + 3, lane] - row[j + 3]
            out[lane] += (a * a + b * b) + (c * c + d * d)
    for j in range(whole, row.size):
        for lane in range(LANES):
            a = block[j, lane] - row[j]
            out[lane] += a * a


# The loop vectorises, unlike one that calls exp: a fit with 8 features takes a third of the time.
# Sums must not be reordered, because ROUND would cancel.
@compiled(fastmath={"contract"}, forceinline=True)
def rbf_values(block, row, gamma, out):
    """Write exp(-gamma |s - row|^2) to ``out`` for every vector s of a block.

    Exactly 1 for the row itself, right to about one unit in the last place. The whole block is
    computed even if it is not full. exp(v) = 2^n exp(r), where r is at most ln 2 / 2 in size and
    has a polynomial; n is added to the bits of the exponent.
    """
    values = out[:LANES]
    bits = values.view(np.int64)
    squared_distances(block, row, values)
    for lane in range(LANES):
        power = -gamma * values[lane]
        power = power if power > LOWEST_EXPONENT else LOWEST_EXPONENT
        n = (power * LOG2_E + ROUND) - ROUND
        r = (power - n * LN2_HIGH) - n * LN2_LOW
        series = EXP_SERIES[0]
        for coefficient in EXP_SERIES[1:]:
            series = series * r + coefficient
        values[lane] = series
        bits[lane] += np.int64(np.int32(n)) << 52


@compiled(fastmath=FAST)
def add_products(block, row, out):
    """Dot product of a row with the first vectors of a block."""
    out[:] = 0.0
    for j in range(row.size):
        line, value = block[j], row[j]
        for lane in range(out.size):
            out[lane] += line[lane] * value


@compiled
def kernel_from_dot(kernel, product):
    """Kernel value of two rows whose dot product is known; not for rbf, which needs more."""
    if kernel.kind == LINEAR:
        return product
    inner = kernel.gamma * product + kernel.coef0
    if kernel.kind == SIGMOID:
        return tanh(inner)
    whole = np.int64(kernel.degree)  # a whole power is computed by products, which is faster
    return inner**whole if whole == kernel.degree else inner**kernel.degree


@compiled(inline="always")
def kernel_norm(kernel, sq_norm):
    """k(x, x) of a row whose squared norm is known."""
    return 1.0 if kernel.kind == RBF else kernel_from_dot(kernel, sq_norm)


@compiled(forceinline=True)
def kernel_values(kernel, vectors, n_support, row, values):
    """k(row, s) for every support vector s; entries beyond them may be overwritten too."""
    for b in range((n_support + LANES - 1) // LANES):
        start = b * LANES
        if kernel.kind == RBF:
            rbf_values(vectors[b], row, kernel.gamma, values[start:])
        else:
            out = values[start : min(n_support, start + LANES)]
            add_products(vectors[b], row, out)
            if kernel.kind != LINEAR:
                for lane in range(out.size):
                    out[lane] = kernel_from_dot(kernel, out[lane])


@compiled(fastmath=FAST, forceinline=True)
def read_row(values, columns, row):
    """Write a dense or sparse row out in float64; returns its squared norm."""
    row[:] = 0.0
    for j in range(values.size):
        row[j if columns is None else columns[j]] = values[j]
    return score_and_norm(row, row, None)[1]
