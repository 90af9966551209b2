"""Compiled: PRank, and the committee of PRanks that approximates the Bayes point."""

from math import inf

from ordspan.core.compiling import compiled
from ordspan.core.exact import move_side
from ordspan.core.memory import TRIALS, UPDATES, view
from ordspan.core.ranking import rank_near
from ordspan.core.rows import MAX_SQ_NORM, add_scaled, dot, row_at, score_and_norm


@compiled
def prank_step(edges, correction, age, score, lower, upper, size):
    """PRank (Crammer & Singer 2001): every required threshold on the wrong side moves by ``size``.

    With equal step sizes the thresholds stay sorted by their Lemma 1; with unequal ones (sample
    weights) a threshold stops at the nearest one that does not move.
    """
    if edges[lower - 1] <= score < edges[upper]:
        return 0.0, False, True
    start = lower
    while edges[start - 1] >= score:
        start -= 1
    stop = upper
    while edges[stop] <= score:
        stop += 1
    floor, ceiling = edges[start - 1], edges[stop]
    move_side(edges, correction, age, start, lower, 1.0, -inf, floor, size, 0.0)
    move_side(edges, correction, age, upper, stop, -1.0, -inf, -ceiling, size, 0.0)
    return size * ((lower - start) - (stop - upper)), True, True


@compiled(inline="always")
def step(model, age, C, score, sq_norm, lower, upper):
    """Move the thresholds for one example; returns the pull on the row, moved, finite."""
    return prank_step(model.edges, model.edge_correction, age, score, lower, upper, C)


@compiled
def show_members(memory, coins, size, values, columns, lower, upper):
    """Let the members whose coin came up learn a row; whether any moved, whether all are finite.

    Row 0 of the memory is the sum of the members in the rows below it.
    """
    total = view(memory[0])
    any_moved = False
    for m in range(coins.size):
        if not coins[m]:
            continue
        own = view(memory[m + 1])
        score = dot(own.weights, values, columns)
        if not abs(score) < inf:
            return any_moved, False
        pull, moved, _ = step(own, 0.0, size, score, 0.0, lower, upper)
        if moved:
            add_scaled(own.weights, pull, values, columns)
            add_scaled(total.weights, pull, values, columns)
            own.counters[UPDATES] += 1.0
            any_moved = True
        own.counters[TRIALS] += 1.0
    if any_moved:
        # recomputed: sums of sorted thresholds, added in the same order, stay sorted to the bit
        total.edges[1:-1] = 0.0
        for m in range(coins.size):
            edges = view(memory[m + 1]).edges
            for i in range(1, edges.size - 1):
                total.edges[i] += edges[i]
    return any_moved, True


@compiled
def walk_members(
    memory, data, columns, starts, lower, upper, sample_weight, order, predicted, coins, first
):
    """Train a committee of PRanks on the rows from ``first`` on, until the coins run out.

    Row t of ``coins`` says which members are shown the t-th row that counts. Returns the position
    to continue from, and the first refused row or -1. The committee ranks by the sum of its
    members, which gives the same rank as their average.
    """
    model = view(memory[0])
    size = model.C
    tossed = 0
    for t in range(first, lower.size):
        i = order[t] if order.size > 0 else t
        if sample_weight.size > 0:
            size = model.C * sample_weight[i]
        if size > 0.0 and tossed == coins.shape[0]:
            return t, -1
        values, cols = row_at(data, columns, starts, model.weights.size, i)
        score, sq_norm = score_and_norm(model.weights, values, cols)
        if not (sq_norm < MAX_SQ_NORM and abs(score) < inf):
            return t, i
        if predicted.size > 0:
            predicted[i] = rank_near(model.edges, score, lower[i])
        if size <= 0.0:
            continue
        moved, finite = show_members(memory, coins[tossed], size, values, cols, lower[i], upper[i])
        if not finite:
            return t, i
        tossed += 1
        model.counters[TRIALS] += 1.0
        model.counters[UPDATES] += moved
    return lower.size, -1
