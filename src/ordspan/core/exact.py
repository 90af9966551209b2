"""Compiled: the step of the paper, solved exactly for PA, PA-I and PA-II.

The landing score is the root of the one scalar equation of all variants (see the page on the
mathematics). Softness 1 and no cap is PA, softness 1 and cap C is PA-I, softness 1 + 1/(2C) and no
cap is PA-II.
"""

from math import exp, inf, log

import numpy as np

from ordspan.core.compiling import compiled
from ordspan.core.memory import (
    CAPPED,
    LOG_COUNT,
    LOG_SUM,
    SCA_CAPPED,
    SCA_SOFT,
    SCALE,
    SOFT,
    UPDATES,
)
from ordspan.core.rows import MIN_SQ_NORM

MIN_C = 1e-300
"""A smaller C is raised to this one, whose reciprocal is still finite."""

EVERY_ROW, SELDOM = 256, 16
"""Balancing counts each of the first EVERY_ROW corrected rows, then one in SELDOM, a power of 2."""

WIDE = 8
"""With more violated thresholds than this, start the search near the label, not at the score."""


@compiled
def limits(rule, C):
    """Softness and cap of a variant at a given C: all that distinguishes the three."""
    if rule in (SOFT, SCA_SOFT):
        return 1.0 + 0.5 / max(C, MIN_C), inf
    if rule in (CAPPED, SCA_CAPPED):
        return 1.0, C
    return 1.0, inf


@compiled(inline="always")
def satisfied(edges, score, lower, upper):
    """Whether a score clears every required threshold by the margin: the passive case."""
    return edges[lower - 1] + 1.0 <= score and edges[upper] - 1.0 >= score


@compiled
def sum_shortfalls(edges, landing, near, sign, cap):
    """Shortfalls of one side: sum below the cap, first index below the cap, first cleared index.

    ``sign`` is +1 for the thresholds that belong below the score (scanned downwards from ``near``)
    and -1 for those that belong above it (upwards). Because the thresholds are sorted, the scan
    stops at the first cleared one; the sentinel ends the loop.
    """
    outward = -np.int64(sign)
    i = near
    shortfall = 1.0 + sign * (edges[i] - landing)
    while shortfall >= cap:
        i += outward
        shortfall = 1.0 + sign * (edges[i] - landing)
    below_cap = i
    total = 0.0
    while shortfall > 0.0:
        total += shortfall
        i += outward
        shortfall = 1.0 + sign * (edges[i] - landing)
    return total, below_cap, i


# Without it a step takes 3 times as long at 1,000 ranks, 1.4 times at 100.
@compiled(inline="always")
def central_guess(edges, score, sq_norm, lower, upper, softness, cap, n_violated):
    """A landing score close to the root when many thresholds take part.

    Many thresholds outweigh the old score, so the landing lies near the point where the two sides
    balance. Any guess gives the exact root, because the search continues from it; this one makes
    the search short.
    """
    left, right = edges[lower - 1] + 1.0, edges[upper] - 1.0
    goal = min(max(score, left), right) if left <= right else 0.5 * (left + right)
    gain = sq_norm * n_violated
    way = goal - score
    return score + way * gain / (softness + gain + abs(way) / cap)


@compiled
def follow(edges, landing, sq_norm, softness, cap, sign, near, ends, drive, n_linear):
    """Walk from breakpoint to breakpoint until the root lies on the current linear piece.

    The score moves in direction ``sign``. The side that pulls it there has its first index below
    the cap at ``pull_linear`` and its first cleared one at ``pull_end``; its shortfalls shrink on
    the way. Those of the side that holds it back grow. ``near`` is the pulling side's threshold
    next to the label. Returns the remaining distance, the number of thresholds on linear pieces,
    and the updated ends.
    """
    pull_linear, pull_end, hold_linear, hold_end = ends
    inward = np.int64(sign)
    while True:
        cleared = inf if pull_end == near else 1.0 + sign * (edges[pull_end + inward] - landing)
        uncapped = (
            inf
            if pull_linear == near
            else 1.0 + sign * (edges[pull_linear + inward] - landing) - cap
        )
        violated = sign * (edges[hold_end] - landing) - 1.0
        capped = cap - 1.0 + sign * (edges[hold_linear] - landing)
        corner = min(min(cleared, uncapped), min(violated, capped))
        slope = softness + sq_norm * n_linear
        if not drive > corner * slope:
            return drive / slope, n_linear, (pull_linear, pull_end, hold_linear, hold_end)
        if corner == cleared:
            drive -= sq_norm * corner
            n_linear -= 1
            pull_end += inward
        elif corner == uncapped:
            drive += sq_norm * corner
            n_linear += 1
            pull_linear += inward
        elif corner == violated:
            drive += sq_norm * corner
            n_linear += 1
            hold_end += inward
        else:
            drive -= sq_norm * corner
            n_linear -= 1
            hold_linear += inward


@compiled
def move_side(edges, correction, age, start, stop, sign, goal, floor, cap, keep):
    """Move thresholds start..stop-1 of one side; the map is monotone, so their order holds.

    Each term is a rounded monotone function of the old threshold, and so are minimum and maximum:
    sorted thresholds stay sorted to the bit. ``floor`` is the neighbour that does not move.
    """
    for i in range(start, stop):
        old = sign * edges[i]
        new = sign * min(old, max(max(floor, old - cap), keep * old + goal))
        if age > 0.0:
            correction[i] += age * (new - edges[i])
        edges[i] = new


@compiled(forceinline=True)
def exact_step(edges, correction, age, score, sq_norm, lower, upper, softness, cap):
    """Smallest move that the variant allows; moves the thresholds, returns the pull on the row.

    Returns the pull ``a`` (the weights move by a times the row), whether anything moved, and
    whether the numbers stayed finite.
    """
    if satisfied(edges, score, lower, upper):
        return 0.0, False, True
    landing = score
    left_sum, left_linear, left_end = sum_shortfalls(edges, landing, lower - 1, 1.0, cap)
    right_sum, right_linear, right_end = sum_shortfalls(edges, landing, upper, -1.0, cap)
    n_violated = (lower - 1 - left_end) + (right_end - upper)
    if n_violated > WIDE:
        landing = central_guess(edges, score, sq_norm, lower, upper, softness, cap, n_violated)
        left_sum, left_linear, left_end = sum_shortfalls(edges, landing, lower - 1, 1.0, cap)
        right_sum, right_linear, right_end = sum_shortfalls(edges, landing, upper, -1.0, cap)
    excess = left_sum - right_sum
    n_capped = (lower - 1 - left_linear) - (right_linear - upper)
    if n_capped != 0:
        excess += cap * n_capped
    n_linear = (left_linear - left_end) + (right_end - right_linear)
    drive = sq_norm * excess - softness * (landing - score)
    if drive >= 0.0:
        ends = (left_linear, left_end, right_linear, right_end)
        way, n_linear, ends = follow(
            edges, landing, sq_norm, softness, cap, 1.0, lower - 1, ends, drive, n_linear
        )
        left_linear, left_end, right_linear, right_end = ends
    else:
        ends = (right_linear, right_end, left_linear, left_end)
        way, n_linear, ends = follow(
            edges, landing, sq_norm, softness, cap, -1.0, upper, ends, -drive, n_linear
        )
        right_linear, right_end, left_linear, left_end = ends
        way = -way
    if n_linear == 0 and cap < inf and sq_norm > 0.0:
        # all at the cap: the sum is known exactly, while the distance may be lost to rounding
        pull = cap * ((lower - 1 - left_linear) - (right_linear - upper))
        way = score + pull * sq_norm - landing
    else:
        pull = ((landing - score) + way) / sq_norm if sq_norm > 0.0 else 0.0
    landing += way
    if not (abs(landing) < inf and abs(pull) < inf):
        return 0.0, False, False
    share = 1.0 / softness
    goal = (landing - 1.0) * share
    floor = edges[left_end]
    move_side(edges, correction, age, left_end + 1, lower, 1.0, goal, floor, cap, 1.0 - share)
    goal = -(landing + 1.0) * share
    floor = -edges[right_end]
    move_side(edges, correction, age, upper, right_end, -1.0, goal, floor, cap, 1.0 - share)
    return pull, True, True


@compiled
def gathered_scale(counters, sq_norm):
    """Sum and number of logarithms of squared norms, and their geometric mean, with a new row.

    Each of the first rows counts, later one in SELDOM: a logarithm and an exponential for each
    would take half as long as the step of a short row. A row of zeros does not count.
    """
    log_sum, log_count, scale = counters[LOG_SUM], counters[LOG_COUNT], counters[SCALE]
    number = np.int64(counters[UPDATES])
    if sq_norm < MIN_SQ_NORM or (number >= EVERY_ROW and number & (SELDOM - 1)):
        return log_sum, log_count, scale
    log_sum, log_count = log_sum + log(sq_norm), log_count + 1.0
    return log_sum, log_count, exp(log_sum / log_count)


@compiled(inline="always")
def step(model, age, C, score, sq_norm, lower, upper):
    """Move the thresholds for one example; returns the pull on the row, moved, finite.

    Balanced, it minimises 1/2 |dw|^2 + |dtheta|^2 / (2 v) + the variant's loss. Divided by v that
    is the plain problem with squared norm s / v and C v, whose pull is v times too large. v is the
    geometric mean of s over violated trials, one number for all thresholds, so their order holds
    as before: thresholds move as far as scores do, however long the rows are.
    """
    if satisfied(model.edges, score, lower, upper):
        return 0.0, False, True
    log_sum, log_count, scale, inverse = 0.0, 0.0, 1.0, 1.0  # the last two are v and 1 / v
    if model.balanced:
        log_sum, log_count, scale = gathered_scale(model.counters, sq_norm)
        inverse = 1.0 / scale
        sq_norm = sq_norm if sq_norm >= MIN_SQ_NORM else 0.0
    softness, cap = limits(model.rule, C * scale)
    edges, correction = model.edges, model.edge_correction
    pull, moved, finite = exact_step(
        edges, correction, age, score, sq_norm * inverse, lower, upper, softness, cap
    )
    if finite:
        model.counters[LOG_SUM], model.counters[LOG_COUNT] = log_sum, log_count
        model.counters[SCALE] = scale
    return pull * inverse, moved, finite
