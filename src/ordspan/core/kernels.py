"""Compiled: kernel values of a row with the support vectors."""

from math import tanh
from typing import NamedTuple

import numpy as np

from ordspan.core.compiling import FAST, compiled
from ordspan.core.rbf import LANES, rbf_values

LINEAR, RBF, POLY, SIGMOID = range(4)
MAX_PRODUCTS = 64
"""A power is a product up to this degree; one of 1e15 factors would never end."""


class Kernel(NamedTuple):
    """Which kernel, and its constants as scikit-learn names them."""

    kind: int
    gamma: float
    degree: float
    coef0: float


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
    whole = np.int64(kernel.degree)
    if whole != kernel.degree or whole > MAX_PRODUCTS:
        return inner**kernel.degree
    value = inner
    for _ in range(whole - 1):
        value *= inner
    return value


@compiled(inline="always")
def kernel_norm(kernel, square):
    """k(x, x) of a row whose squared norm is known."""
    return 1.0 if kernel.kind == RBF else kernel_from_dot(kernel, square)


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
    if columns is None:
        for j in range(row.size):
            row[j] = values[j]
    else:
        row[:] = 0.0
        for j in range(values.size):
            row[columns[j]] = values[j]
    square = 0.0
    for j in range(row.size):
        square += row[j] * row[j]
    return square
