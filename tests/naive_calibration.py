"""Slow, obvious twins of the calibration, written from the page on mathematics."""

from decimal import Decimal, localcontext
from math import inf

import numpy as np

from ordspan.core import calibration as core


def log_sigmoid(x):
    return -np.logaddexp(0.0, -x)


def log_chance(high, low):
    """Logarithm of sigmoid(high) - sigmoid(low), by sinh((b - a) / 2) over cosh a/2 cosh b/2."""
    with np.errstate(invalid="ignore"):
        half = np.where(np.isinf(high) | np.isinf(low), inf, (high - low) / 2)
        log_sinh = half + np.log1p(-np.exp(-2 * half)) - np.log(2)
        log_cosh = np.logaddexp(high / 2, -high / 2) + np.logaddexp(low / 2, -low / 2)
        inside = log_sinh - log_cosh + np.log(2)
    ends = np.where(np.isinf(low), log_sigmoid(high), log_sigmoid(-low))
    return np.where(np.isinf(half), ends, inside)


def exact_log_chance(high, low, shift):
    """The same of two cuts less a shift, by its definition, in 900 digits."""
    with localcontext() as context:
        context.prec, context.Emin, context.Emax = 900, -(10**9), 10**9

        def sigmoid(x):
            return 1 / (1 + (Decimal(shift) - Decimal(x)).exp()) if abs(x) < inf else int(x > 0)

        return float((sigmoid(high) - sigmoid(low)).ln())


def derivatives(function, point, h=1e-4):
    """Gradient and Hessian by central differences."""
    moves = np.eye(point.size) * h
    gradient = [(function(point + a) - function(point - a)) / (2 * h) for a in moves]
    hessian = [
        [
            function(point + a + b) - function(point + a - b) - function(point - a + b)
            + function(point - a - b)
            for b in moves
        ]
        for a in moves
    ]  # fmt: skip
    return np.array(gradient), np.array(hessian) / (4 * h * h)


def dense_curvature(parts):
    """The curvature of the cuts and, last, the slope, as a square matrix."""
    coupling, border = parts.coupling[1:-2], parts.border[1:-1]
    cuts = np.diag(parts.curvature[1:-1]) + np.diag(coupling, 1) + np.diag(coupling, -1)
    return np.block([[cuts, border[:, None]], [border, parts.head[core.SLOPE_CURVATURE]]])


def newton_step(parts, rows, step_fraction, slope_ridge):
    """A damped Newton step with the pulls and the spare rows; not too far, nor until cuts meet."""
    cuts, slope = parts.cuts[1:-1], parts.head[core.SLOPE]
    n_cuts = cuts.size
    matrix = dense_curvature(parts)
    matrix += np.diag(np.diag(matrix)) * core.DAMPING_ROWS / max(rows, 1.0)
    matrix += np.diag(np.append(np.full(n_cuts, core.RIDGE), slope_ridge))
    force = np.append(parts.gradient[1:-1], parts.head[core.SLOPE_GRADIENT])
    force -= step_fraction * np.append(core.RIDGE * cuts, slope_ridge * slope)
    spare = min(core.PRIOR_ROWS, core.PRIOR_SHARE * rows / (n_cuts + 1))
    for i, gap in enumerate(np.diff(cuts)):
        crowding = 1 / np.expm1(gap)
        apart = np.zeros(n_cuts + 1)
        apart[i : i + 2] = -1, 1
        force += step_fraction * spare * crowding * apart
        matrix += spare * crowding * (1 + crowding) * np.outer(apart, apart)
    move = np.zeros(force.size)
    if matrix[-1, -1] > 0:
        move = np.linalg.solve(matrix, force)
    if matrix[-1, -1] == 0 or move[-1] < -core.CLOSING * slope:
        move[-1] = max(move[-1], -core.CLOSING * slope)
        rest = force[:-1] - matrix[:-1, -1] * move[-1]
        move[:-1] = np.linalg.solve(matrix[:-1, :-1], rest)
    scale = np.sqrt(parts.head[core.SLOPE_CURVATURE] / max(rows, 1.0))
    longest = max(abs(move[-1]) * scale, np.abs(move[:-1]).max())
    part = min(1.0, core.MAX_MOVE / max(longest, 1e-300))
    for room, closing in zip(np.diff(cuts), -np.diff(move[:-1]), strict=True):
        if closing > 0:
            part = min(part, core.CLOSING * room / closing)
    cuts += part * move[:-1]
    parts.head[core.SLOPE] += part * move[-1]


def median_of(parts, score):
    """Smallest rank at which the probabilities add up to one half."""
    at = parts.cuts - parts.head[core.SLOPE] * score
    return next(k for k in range(1, at.size) if at[k] >= 0)


def find_range(bands, place, reach, median):
    """All ranks within the reach of the score, the median, and those between."""
    ranks = range(1, bands.size)
    near = [k for k in ranks if max(bands[k - 1] - place, place - bands[k]) <= reach]
    return min(*near, median), max(*near, median)


def miss_of(parts, score, reach, lower, upper):
    """The missed part of a label; the range need not hold the median, which can only help."""
    place = parts.head[core.SCORE_FACTOR] * score
    home = 1 + np.searchsorted(parts.bands[1:-1], place)
    low, high = find_range(parts.bands, place, reach, home)
    first, last = max(low, lower), min(high, upper)
    if (first, last) == (lower, upper):
        return 0.0
    if first > last or parts.head[core.CONTAIN]:
        return 1.0
    at = parts.cuts - parts.head[core.SLOPE] * score
    whole = log_chance(at[upper], at[lower - 1])
    return -np.expm1(min(0.0, log_chance(at[last], at[first - 1]) - whole))


def observe(state, scores, lower, upper, weight):
    """Row by row: the ranges are steered first, the slope and the cuts a block at a time.

    Returns the median of every row before it was observed.
    """
    parts = core.parts_view.py_func(state)
    head, medians = parts.head, []
    for score, low, high, w in zip(scores, lower, upper, weight, strict=True):
        medians.append(median_of(parts, score))
        if w == 0 or (low == 1 and high == parts.cuts.size - 1):
            continue
        head[core.ROWS] += 1
        head[core.WEIGHT] += w
        w = head[core.ROWS] * w / head[core.WEIGHT]
        rate = w / head[core.ROWS] ** core.SLOWNESS
        used = np.maximum.accumulate(parts.reach)
        miss = [miss_of(parts, score, q, low, high) for q in used]
        parts.reach[:] = np.maximum(0, parts.reach + rate * (miss - (1 - parts.coverage)))
        head[core.RATE] = head[core.ROWS] ** -core.SLOWNESS
        accumulate(parts, score, low, high, w)
        head[core.PENDING] += w
        if head[core.PENDING] >= min(core.BLOCK, core.FIRST_BLOCKS * head[core.ROWS]):
            level = core.LEVEL * head[core.RATE] * parts.gradient[1:-1].sum()
            parts.cuts[1:-1] += np.clip(level, -core.MAX_MOVE, core.MAX_MOVE)
            pending, rows = head[core.PENDING], head[core.ROWS] / (1 + core.FORGETTING)
            slope_ridge = core.RIDGE * head[core.SLOPE_CURVATURE] / rows
            newton_step(parts, rows, min(1.0, pending / rows), slope_ridge)
            parts.bands[:], head[core.SCORE_FACTOR] = parts.cuts, head[core.SLOPE]
            kept = max(0.0, 1 - core.FORGETTING * pending / head[core.ROWS])
            for part in (parts.curvature, parts.coupling, parts.border):
                part *= kept
            head[core.SLOPE_CURVATURE] *= kept
            parts.gradient[:] = head[core.SLOPE_GRADIENT] = head[core.PENDING] = 0.0
    return medians


def accumulate(parts, score, lower, upper, weight):
    """Derivatives of the log-likelihood of one label by its two cuts and the slope."""
    head = parts.head
    at = parts.cuts - head[core.SLOPE] * score
    over, under = np.exp(log_sigmoid(-at[upper])), np.exp(log_sigmoid(at[lower - 1]))
    gap = parts.cuts[upper] - parts.cuts[lower - 1]
    crowding = 1 / np.expm1(gap) if gap < 700 else np.exp(-gap)
    tie = weight * crowding * (1 + crowding)
    for cut, sign, pull in ((upper, 1, over), (lower - 1, -1, under)):
        bend = weight * pull * (1 - pull)
        parts.gradient[cut] += sign * weight * (pull + crowding)
        parts.curvature[cut] += bend + (tie if upper == lower else 2 * tie)
        parts.border[cut] -= score * bend
        head[core.SLOPE_CURVATURE] += score**2 * bend
    if upper == lower:
        parts.coupling[lower - 1] -= tie
    head[core.SLOPE_GRADIENT] -= weight * score * (over - under)
