"""Compiled: the support vectors of a learner in dual form, and what is known about each."""

from ordspan.core.compiling import FAST, compiled
from ordspan.core.rbf import LANES

N_PARTS = 6
COEF, CORRECTION, NORM, INVERSE, SQUARE, CLOSE = range(N_PARTS)
"""Rows of ``dual``: coefficient, correction to its average, k(s, s), its inverse, s.s, and
closeness: at least the largest squared length of the projection of s onto another vector."""


@compiled(fastmath=FAST, forceinline=True)
def weighted_sum(coefs, values, n_support):
    """Sum of the first kernel values, each times its coefficient."""
    total = 0.0
    for i in range(n_support):
        total += coefs[i] * values[i]
    return total


@compiled
def find_vector(vectors, squares, n_support, row, square):
    """Number of the support vector that equals a row, or -1."""
    for b in range((n_support + LANES - 1) // LANES):
        part = squares[b * LANES : min(n_support, (b + 1) * LANES)]
        n_alike = 0
        for lane in range(part.size):  # no early exit, so the loop vectorises
            n_alike += part[lane] == square
        if n_alike == 0:
            continue
        for lane in range(part.size):
            same = part[lane] == square
            if same:
                for j in range(row.size):
                    same = same and vectors[b, j, lane] == row[j]
            if same:
                return b * LANES + lane
    return -1


@compiled
def move_vector(vectors, dual, values, old, new):
    """Write support vector ``old`` over ``new``, with all that is known about it."""
    for j in range(vectors.shape[1]):
        vectors[new // LANES, j, new % LANES] = vectors[old // LANES, j, old % LANES]
    for part in range(N_PARTS):  # a slice would take seconds to compile
        dual[part, new] = dual[part, old]
    values[new] = values[old]


@compiled
def add_vector(vectors, dual, n_support, row, square, values, norm, pull, age):
    """Add ``pull`` times a row to the ranker; returns the number of support vectors.

    A row that is already a support vector adds to its coefficient, and one whose coefficient has
    become zero, also in the average, is removed. A new one comes last.
    """
    same = find_vector(vectors, dual[SQUARE], n_support, row, square)
    if same < 0:
        for j in range(row.size):
            vectors[n_support // LANES, j, n_support % LANES] = row[j]
        dual[COEF, n_support], dual[CORRECTION, n_support] = pull, age * pull
        dual[NORM, n_support], dual[INVERSE, n_support] = norm, 1.0 / norm
        dual[SQUARE, n_support], dual[CLOSE, n_support] = square, norm
        values[n_support] = norm
        return n_support + 1
    dual[COEF, same] += pull
    dual[CORRECTION, same] += age * pull
    if dual[COEF, same] == 0.0 and dual[CORRECTION, same] == 0.0:
        move_vector(vectors, dual, values, n_support - 1, same)
        return n_support - 1
    return n_support
