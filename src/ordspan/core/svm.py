"""Compiled: dual coordinate ascent for the best ranker in hindsight, and its certificate.

Minimises  1/2 |w|^2 + 1/2 |theta|^2 + sum_t C_t sum_i loss_ti  over all (w, theta), where loss_ti
is the hinge (or its square) of required threshold i of row t. The multipliers of one row are one
block of the dual, and their best values solve the same scalar equation as an online step: take the
row's own multipliers out, step, put the new ones in. Without them the thresholds need not be
sorted, so nothing here relies on their order. The weight of a row is its C.
"""

from math import inf

import numpy as np

from ordspan.core.compiling import FAST, compiled
from ordspan.core.rows import add_scaled, row_at, score_and_norm

MAX_NEWTON = 60
"""More than any case needs: bisection alone would have found the root to the last bit."""

TINY = 1e-15
"""Relative residual at which a root counts as found: the rounding of the equation itself."""
LONGEST_REST = 4
"""A quiet row is visited every second, fourth, ... sweep, and at least every 2**4th."""
SETTLED = 1e-8  # a row whose multipliers move by less than this share of its C is quiet


@compiled(fastmath=FAST)
def clip(value, most):
    """A value clipped to 0..most; unlike min and max, it lets loops vectorise."""
    value = value if value > 0.0 else 0.0
    return value if value < most else most


@compiled(fastmath=FAST)
def excess(free, signs, landing, softness, cap):
    """Sum of signed multipliers at a landing score, times softness; how many still change."""
    total = n_linear = 0.0
    most = cap * softness
    for i in range(free.size):
        shortfall = 1.0 + signs[i] * (free[i] - landing)
        part = clip(shortfall, most)
        total += signs[i] * part
        n_linear += signs[i] * signs[i] if part == shortfall else 0.0
    return total, n_linear


@compiled
def landing_score(free, signs, base, guess, sq_norm, softness, cap):
    """Root of  landing - base - weight * excess(landing):  safeguarded Newton from a guess.

    The function is increasing and piecewise linear, so Newton finds the exact root as soon as it
    reaches its linear piece; the bracket prevents cycles.
    """
    low, high = -inf, inf
    landing = guess
    weight = sq_norm / softness  # one division here instead of two in every round
    for _ in range(MAX_NEWTON):
        total, n_linear = excess(free, signs, landing, softness, cap)
        rest = landing - base - weight * total
        target = landing - rest / (1.0 + weight * n_linear)
        if abs(rest) <= TINY * (1.0 + abs(landing) + abs(base)) or target == landing:
            break
        low, high = (low, landing) if rest > 0.0 else (landing, high)
        landing = target if low < target < high else 0.5 * (low + high)
    return landing


@compiled(fastmath=FAST)
def take_out(thresholds, multipliers, lower, upper, signs, free):
    """Take a row's multipliers out of the thresholds; returns their pull on the weights.

    Fills ``signs`` with the sides (+1 left, -1 right, 0 not required) and ``free`` with the
    thresholds. One loop of fixed length: two short ones, one per side, would cost more in
    mispredicted branches than they save.
    """
    pull = 0.0
    for i in range(free.size):
        sign = np.float64(i + 1 < lower) - np.float64(i + 1 >= upper)
        signs[i] = sign
        free[i] = thresholds[i] + sign * multipliers[i]
        pull += sign * multipliers[i]
    return pull


@compiled(fastmath=FAST)
def put_in(thresholds, multipliers, signs, free, landing, softness, cap):
    """Put in the multipliers of the landing score; their pull, and the largest change of one."""
    pull = change = 0.0
    share = 1.0 / softness
    for i in range(free.size):
        sign = signs[i]
        new = sign * sign * clip((1.0 + sign * (free[i] - landing)) * share, cap)
        moved = abs(new - multipliers[i])
        change = moved if moved > change else change
        pull += sign * new
        multipliers[i] = new
        thresholds[i] = free[i] - sign * new
    return pull, change


@compiled
def sweep(point, multipliers, quiet, rows, norms, squared, order, n_sweep):
    """One exact block step for each row that does not rest; counts how long each has been quiet.

    ``point`` holds the thresholds, then the weights. A row that has been quiet q times in a row is
    visited every 2**q-th sweep, and at least every 2**LONGEST_REST-th.
    """
    data, columns, starts, lower, upper, row_C, _ = rows
    n_thresholds = multipliers.shape[1]
    thresholds, weights = point[:n_thresholds], point[n_thresholds:]
    free, signs = np.empty(n_thresholds), np.empty(n_thresholds)
    for t in order:
        C = row_C[t]
        if C <= 0.0 or n_sweep & ((1 << min(quiet[t], LONGEST_REST)) - 1):
            continue
        softness, cap = (1.0 + 0.5 / C, inf) if squared else (1.0, C)
        own = multipliers[t]
        values, cols = row_at(data, columns, starts, weights.size, t)
        score, _ = score_and_norm(weights, values, cols)
        pull = take_out(thresholds, own, lower[t], upper[t], signs, free)
        base = score - pull * norms[t]
        landing = landing_score(free, signs, base, score, norms[t], softness, cap)
        new_pull, change = put_in(thresholds, own, signs, free, landing, softness, cap)
        quiet[t] = 0 if change > SETTLED * C else quiet[t] + 1
        if new_pull != pull:
            add_scaled(weights, new_pull - pull, values, cols)


@compiled(fastmath=FAST)
def total_loss(thresholds, weights, rows, squared):
    """Weighted sum of all losses of a ranker: its primal value minus the norms."""
    data, columns, starts, lower, upper, row_C, _ = rows
    total = 0.0
    for t in range(lower.size):
        values, cols = row_at(data, columns, starts, weights.size, t)
        score, _ = score_and_norm(weights, values, cols)
        loss = 0.0
        for i in range(thresholds.size):
            sign = np.float64(i + 1 < lower[t]) - np.float64(i + 1 >= upper[t])
            hinge = sign * sign * clip(1.0 + sign * (thresholds[i] - score), inf)
            loss += hinge * hinge if squared else hinge
        total += row_C[t] * loss
    return total
