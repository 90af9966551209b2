"""Compiled: PRank, the perceptron for ranks (Crammer & Singer 2001)."""

from math import inf

from ordspan.core.compiling import compiled
from ordspan.core.exact import move_side


@compiled(forceinline=True)
def step(model, age, C, score, sq_norm, lower, upper):
    """Move every required threshold on the wrong side by C; returns pull on the row, moved, finite.

    With equal step sizes the thresholds stay sorted by their Lemma 1; with unequal ones (sample
    weights) a threshold stops at the nearest one that does not move.
    """
    edges, correction = model.edges, model.edge_correction
    if edges[lower - 1] <= score < edges[upper]:
        return 0.0, False, True
    start, stop = lower, upper
    while edges[start - 1] >= score:
        start -= 1
    while edges[stop] <= score:
        stop += 1
    move_side(edges, correction, age, start, lower, 1.0, -inf, edges[start - 1], C, 0.0)
    move_side(edges, correction, age, upper, stop, -1.0, -inf, -edges[stop], C, 0.0)
    return C * ((lower - start) - (stop - upper)), True, True
