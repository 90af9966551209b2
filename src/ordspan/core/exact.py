"""Compiled: the step of the paper, solved exactly for PA, PA-I and PA-II.

With score f, squared norm s, label [l, r] and thresholds theta, a step is the smallest move

    w' = w + a x,   theta'_i = theta_i - lambda_i (i < l),   theta'_i = theta_i + mu_i (i >= r)

that the variant allows. Its KKT conditions are one scalar equation for every variant. Write
u = f + a s for the landing score, the score after the step; then

    lambda_i = clip((1 + theta_i - u) / sigma, 0, cap)
    mu_i     = clip((1 + u - theta_i) / sigma, 0, cap)
    a        = sum of lambda_i - sum of mu_i

and u is the root of  h(u) = (u - f) sigma / s - sigma sum lambda_i(u) + sigma sum mu_i(u).

              sigma (softness)    cap
    PA        1                   infinity
    PA-I      1                   C
    PA-II     1 + 1 / (2C)        infinity

h is continuous, piecewise linear and strictly increasing, so the root is unique and the optimum of
the quadratic program. Thresholds are sorted, so on each side the violated ones are neighbours that
begin next to the label, and the capped ones are the first of these: two indices describe a side.
"""

from math import exp, inf, log

import numpy as np

from ordspan.core import state
from ordspan.core.compiling import compiled
from ordspan.core.rows import MIN_SQ_NORM
from ordspan.core.state import LOG_COUNT, LOG_SUM, SCALE, UPDATES

MIN_C = 1e-300  # a smaller C is raised to this one, whose reciprocal is still finite

EVERY_ROW, SELDOM = 256, 16
"""Balancing counts each of the first EVERY_ROW corrected rows, then one in SELDOM, a power of 2."""

WIDE = 8
"""With more violated thresholds than this, start the search near the label, not at the score."""


@compiled
def limits(rule, C):
    """Softness and cap of a variant at a given C: all that distinguishes the variants."""
    if rule in (state.SOFT, state.SCA_SOFT):
        return 1.0 + 0.5 / max(C, MIN_C), inf
    if rule in (state.CAPPED, state.SCA_CAPPED):
        return 1.0, C
    return 1.0, inf


@compiled(inline="always")
def satisfied(edges, score, lower, upper):
    """Whether a score clears every required threshold by the margin: the passive case."""
    return edges[lower - 1] + 1.0 <= score and edges[upper] - 1.0 >= score


@compiled
def sum_shortfalls(edges, landing, near, sign, ceiling):
    """Sum of one side's shortfalls below ``ceiling``, and its pair (first uncapped, first cleared).

    ``sign`` is +1 for the thresholds that belong below the score (scanned downwards from ``near``)
    and -1 for those that belong above it (upwards). Because the thresholds are sorted, the scan
    stops at the first cleared one; the sentinel ends the loop.
    """
    i, outward = near, -np.int64(sign)
    shortfall = 1.0 + sign * (edges[i] - landing)
    while shortfall >= ceiling:
        i += outward
        shortfall = 1.0 + sign * (edges[i] - landing)
    first_uncapped = i
    total = 0.0
    while shortfall > 0.0:
        total += shortfall
        i += outward
        shortfall = 1.0 + sign * (edges[i] - landing)
    return total, (first_uncapped, i)


# Without this guess a step takes 3 times as long at 1,000 ranks, 1.4 times at 100.
@compiled(inline="always")
def central_guess(edges, score, sq_norm, lower, upper, softness, cap, n_violated):
    """A landing score close to the root when many thresholds take part.

    Many thresholds outweigh the old score, so the landing lies near the point where the two sides
    balance. Any guess gives the exact root, because the search continues from it; this one makes
    the search short.
    """
    left, right = edges[lower - 1] + 1.0, edges[upper] - 1.0
    target = min(max(score, left), right) if left <= right else 0.5 * (left + right)
    gain = sq_norm * n_violated
    way = target - score
    return score + way * gain / (softness + gain + abs(way) / cap)


# On one linear piece, with n thresholds on their linear part, -s h(u) = drive - (u - landing) slope
# with slope = sigma + s n. At a corner, where a threshold becomes linear or ceases to be, n changes
# by 1 and h is continuous, so drive changes by s times the distance of the corner. Four corners can
# come next, one for each index. Each iteration moves one index by one, always in the same
# direction, and none moves beyond its end (the pulling ones stop at the label, the opposing ones at
# the infinite edges), so the walk ends.
#
# Newton's method on the same sums (svm.py has it, where thresholds are not sorted) also ends on the
# piece of the root, but a pass takes 1.2 times as long at 5 ranks, and 1.5 times for PA-I at 100.
@compiled
def walk_to_root(edges, landing, sq_norm, softness, ceiling, sign, near, pulling, opposing, drive):
    """Walk from corner to corner until the root lies on the current linear piece.

    The score moves in direction ``sign``. ``pulling`` is the pair (first uncapped, first cleared)
    of the side that pulls it there, whose shortfalls shrink on the way; those of the ``opposing``
    side grow. ``near`` is the pulling side's threshold next to the label. Returns the way from the
    landing to the root, and the pairs there.
    """
    inward = np.int64(sign)
    while True:
        clears = inf if pulling[1] == near else 1.0 + sign * (edges[pulling[1] + inward] - landing)
        uncaps = inf if pulling[0] == near else 1.0 + sign * (edges[pulling[0] + inward] - landing)
        uncaps -= ceiling
        violates = sign * (edges[opposing[1]] - landing) - 1.0
        caps = ceiling - 1.0 + sign * (edges[opposing[0]] - landing)
        corner = min(min(clears, uncaps), min(violates, caps))
        n_linear = inward * ((pulling[0] - pulling[1]) + (opposing[1] - opposing[0]))
        slope = softness + sq_norm * n_linear
        if not drive > corner * slope:
            return sign * (drive / slope), pulling, opposing
        if corner == clears:
            drive -= sq_norm * corner
            pulling = (pulling[0], pulling[1] + inward)
        elif corner == uncaps:
            drive += sq_norm * corner
            pulling = (pulling[0] + inward, pulling[1])
        elif corner == violates:
            drive += sq_norm * corner
            opposing = (opposing[0], opposing[1] + inward)
        else:
            drive -= sq_norm * corner
            opposing = (opposing[0] + inward, opposing[1])


# theta - clip((1 + theta - u) / sigma, 0, cap)
#     = min(theta, max(theta - cap, (1 - 1 / sigma) theta + (u - 1) / sigma)),
# and the same for minus theta and minus u on the right. Each term is a rounded monotone function of
# theta, and so are minimum and maximum: sorted thresholds stay sorted to the bit. Under PA the last
# term is u - 1: all violated thresholds of a side land on the same value.
@compiled
def move_side(edges, correction, age, start, stop, sign, target, limit, cap, shrink):
    """Move thresholds start..stop-1 of one side towards ``target``, and keep them sorted.

    ``shrink`` is the factor of the old threshold, ``limit`` the neighbour that does not move.
    """
    for i in range(start, stop):
        old = sign * edges[i]
        new = sign * min(old, max(max(limit, old - cap), shrink * old + target))
        if age > 0.0:
            correction[i] += age * (new - edges[i])
        edges[i] = new


# Given the model instead of its arrays, an averaged step at 136 features takes 1.3 times as long.
@compiled(forceinline=True)
def exact_step(edges, correction, age, score, sq_norm, lower, upper, softness, cap):
    """Smallest move that the variant allows; moves the thresholds, returns the pull on the row.

    Returns the pull a, and whether the numbers stayed finite; if not, nothing has moved.
    """
    landing, ceiling = score, softness * cap  # the shortfall from which a multiplier is capped
    left_sum, left = sum_shortfalls(edges, landing, lower - 1, 1.0, ceiling)
    right_sum, right = sum_shortfalls(edges, landing, upper, -1.0, ceiling)
    n_violated = (lower - 1 - left[1]) + (right[1] - upper)
    if n_violated > WIDE:
        landing = central_guess(edges, score, sq_norm, lower, upper, softness, cap, n_violated)
        left_sum, left = sum_shortfalls(edges, landing, lower - 1, 1.0, ceiling)
        right_sum, right = sum_shortfalls(edges, landing, upper, -1.0, ceiling)
    excess = left_sum - right_sum  # sigma times the sum of multipliers
    n_capped = (lower - 1 - left[0]) - (right[0] - upper)
    if n_capped != 0:
        excess += ceiling * n_capped
    drive = sq_norm * excess - softness * (landing - score)  # -s h(landing)
    search = edges, landing, sq_norm, softness, ceiling
    if drive >= 0.0:
        way, left, right = walk_to_root(*search, 1.0, lower - 1, left, right, drive)
    else:
        way, right, left = walk_to_root(*search, -1.0, upper, right, left, -drive)
    no_linear = left[0] == left[1] and right[0] == right[1]
    if no_linear and cap < inf and sq_norm > 0.0:
        # all at the cap: the sum is known exactly, while the distance may be lost to rounding
        pull = cap * ((lower - 1 - left[0]) - (right[0] - upper))
        way = score + pull * sq_norm - landing
    else:
        pull = ((landing - score) + way) / sq_norm if sq_norm > 0.0 else 0.0
    landing += way
    if not (abs(landing) < inf and abs(pull) < inf):
        return 0.0, False
    share = 1.0 / softness
    target, limit = (landing - 1.0) * share, edges[left[1]]
    move_side(edges, correction, age, left[1] + 1, lower, 1.0, target, limit, cap, 1.0 - share)
    target, limit = -(landing + 1.0) * share, -edges[right[1]]
    move_side(edges, correction, age, upper, right[1], -1.0, target, limit, cap, 1.0 - share)
    return pull, True


@compiled
def gathered_scale(counters, sq_norm):
    """Sum and number of logarithms of squared norms, and their geometric mean, with a new row.

    Each of the first rows counts, and later one in SELDOM: a logarithm and an exponential for each
    would take half as long as the step of a short row. A row of zeros does not count.
    """
    log_sum, log_count, scale = counters[LOG_SUM], counters[LOG_COUNT], counters[SCALE]
    number = np.int64(counters[UPDATES])
    if sq_norm < MIN_SQ_NORM or (number >= EVERY_ROW and number & (SELDOM - 1)):
        return log_sum, log_count, scale
    log_sum, log_count = log_sum + log(sq_norm), log_count + 1.0
    return log_sum, log_count, exp(log_sum / log_count)


# Balanced, a step minimises 1/2 |dw|^2 + |dtheta|^2 / (2 v) + the variant's loss. Multiplied by v,
# that is the plain problem with squared norm s / v and C v, whose pull is v times too large. v is
# the geometric mean of s over violated trials, one number for all thresholds, so their order holds
# as before: thresholds move as far as scores do, however long the rows are.
@compiled(inline="always")
def step(model, age, C, score, sq_norm, lower, upper):
    """Move the thresholds for one example; returns the pull on the row, moved, finite."""
    edges, counters = model.edges, model.counters
    if satisfied(edges, score, lower, upper):
        return 0.0, False, True
    log_sum, log_count, scale, inverse = 0.0, 0.0, 1.0, 1.0  # the last two are v and 1 / v
    if model.balanced:
        log_sum, log_count, scale = gathered_scale(counters, sq_norm)
        inverse = 1.0 / scale
        sq_norm = sq_norm if sq_norm >= MIN_SQ_NORM else 0.0
    softness, cap = limits(model.rule, C * scale)
    move = edges, model.edge_correction, age, score, sq_norm * inverse, lower, upper
    pull, finite = exact_step(*move, softness, cap)
    if finite:
        counters[LOG_SUM], counters[LOG_COUNT], counters[SCALE] = log_sum, log_count, scale
    return pull * inverse, finite, finite
