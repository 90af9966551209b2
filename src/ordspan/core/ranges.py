"""Compiled: prediction ranges, and the stream that they and the probabilities learn from.

The range at a coverage holds every rank whose band of scores, bands[k - 1]..bands[k], lies within
`reach` of the score, and the predicted rank. In a stream the bands are those between the cuts, in
log-odds; in a batch those between the ranker's own thresholds. See the page on the mathematics.
"""

from math import expm1, inf

import numpy as np

from ordspan.core.calibration import (
    BLOCK,
    CONTAIN,
    FORGETTING,
    PENDING,
    RATE,
    RIDGE,
    ROWS,
    SLOPE,
    SLOPE_CURVATURE,
    UNIT,
    WEIGHT,
    accumulate,
    bounded,
    follow_cuts,
    forget,
    log_probability,
    newton_step,
    parts_view,
)
from ordspan.core.compiling import compiled

SLOWNESS, RATES, RATE_EVERY = 0.6, 256, 32
"""The reach of a range moves by t^-SLOWNESS log-odds in row t; after RATES rows this rate is
updated only every RATE_EVERY rows, a power of 2."""
EVERY_ROW, SELDOM = 8192, 8
"""The likelihood uses each of the first EVERY_ROW rows, later about one in SELDOM, a power of 2."""
START_REACH = 40.0
"""Where an infinite reach restarts when a stream continues."""


@compiled
def outside(bands, place, predicted, rank):
    """Smallest reach at which a range holds a rank: how far the score lies outside its band.

    The range holds the predicted rank too, and those between it and the band of the score.
    """
    if rank > predicted:
        return max(0.0, bands[rank - 1] - place)
    return max(0.0, place - bands[rank]) if rank < predicted else 0.0


@compiled
def find_ranges(state, reach, scores, predicted, low, high):
    """Fill in the lowest and the highest rank of every row's range at a reach."""
    parts = parts_view(state)
    for i in range(scores.size):
        place, rank = parts.head[UNIT] * bounded(scores[i]), predicted[i]
        first = last = rank
        while first > 1 and outside(parts.bands, place, rank, first - 1) <= reach:
            first -= 1
        while last < parts.bands.size - 1 and outside(parts.bands, place, rank, last + 1) <= reach:
            last += 1
        low[i], high[i] = first, last


@compiled
def miss_of(parts, bands, reach, score, predicted, lower, upper):
    """The part of a label that the range at a reach misses, from 0 to 1."""
    place, first, last = parts.head[UNIT] * score, lower, upper
    while first <= upper and outside(bands, place, predicted, first) > reach:
        first += 1
    while last > first and outside(bands, place, predicted, last) > reach:
        last -= 1
    if first == lower and last == upper:
        return 0.0
    if first > upper or parts.head[CONTAIN] > 0.0:
        return 1.0
    shift = parts.head[SLOPE] * score
    whole = log_probability(parts.cuts, shift, lower, upper)
    inside = log_probability(parts.cuts, shift, first, last)
    return -expm1(min(0.0, inside - whole))


@compiled(inline="always")
def steer(parts, rate, score, predicted, lower, upper):
    """Move the reach of every coverage up by the miss, and down by the allowed miss rate.

    A larger coverage uses at least the reach of a smaller one, so that ranges are nested.
    """
    place, used = parts.head[UNIT] * score, 0.0
    far = outside(parts.bands, place, predicted, upper)
    if lower < upper:
        far = max(far, outside(parts.bands, place, predicted, lower))
    for j in range(parts.reach.size):
        used = max(used, parts.reach[j])
        miss = np.float64(far > used)  # for an exact label; a branch would be mispredicted
        if lower < upper and far > used:
            miss = miss_of(parts, parts.bands, used, score, predicted, lower, upper)
        parts.reach[j] = max(0.0, parts.reach[j] + rate * (miss - (1.0 - parts.coverage[j])))


@compiled(inline="always")
def scattered(number):
    """A pseudo-random whole number, so that periodic streams are not sampled in step."""
    return ((number & 0x7FFFFFFF) * 0x9E3779B1) >> 29  # below 2^63: overflow is undefined


@compiled(inline="always")
def observe_row(parts, score, predicted, lower, upper, weight):
    """Learn from the score and the rank that a row had before it was learned."""
    head, score = parts.head, bounded(score)
    if weight <= 0.0 or (lower == 1 and upper == parts.cuts.size - 1):
        return  # no information
    if head[UNIT] != head[SLOPE]:
        leave_thresholds(parts)
    head[ROWS] += 1.0
    head[WEIGHT] += weight
    if head[WEIGHT] != head[ROWS]:
        weight = head[ROWS] * weight / head[WEIGHT]  # relative to the mean weight
    number = np.int64(head[ROWS])
    if number < RATES or number & (RATE_EVERY - 1) == 0:
        head[RATE] = head[ROWS] ** -SLOWNESS
    steer(parts, weight * head[RATE], score, predicted, lower, upper)
    stride = 1
    if number > EVERY_ROW:
        stride = SELDOM
        if scattered(number) & (SELDOM - 1) != 0:
            return
    accumulate(parts, score, lower, upper, stride * weight)
    head[PENDING] += stride * weight
    if head[PENDING] >= stride * BLOCK:
        rows = head[ROWS] / (1.0 + FORGETTING)
        tension = RIDGE * head[SLOPE_CURVATURE] / rows
        newton_step(parts, rows, min(1.0, head[PENDING] / rows), tension)
        follow_cuts(parts)
        forget(parts, max(0.0, 1.0 - FORGETTING * head[PENDING] / head[ROWS]))


@compiled(nogil=False)
def observe_one(state, score, predicted, lower, upper):
    """`observe_row` for a single row, called from Python."""
    observe_row(parts_view(state), score, predicted, lower, upper, 1.0)


@compiled
def leave_thresholds(parts):
    """Continue in a stream from a batch calibration."""
    parts.head[RATE] = max(1.0, parts.head[ROWS]) ** -SLOWNESS
    for j in range(parts.reach.size):
        reach = parts.reach[j] * parts.head[SLOPE] / parts.head[UNIT]
        parts.reach[j] = reach if reach < inf else START_REACH
    follow_cuts(parts)


@compiled
def observe(state, scores, predicted, lower, upper, sample_weight, order):
    """`observe_row` for rows one after the other; weights and order may be empty."""
    parts = parts_view(state)
    for t in range(lower.size):
        i = order[t] if order.size > 0 else t
        weight = sample_weight[i] if sample_weight.size > 0 else 1.0
        observe_row(parts, scores[i], predicted[i], lower[i], upper[i], weight)


@compiled
def total_miss(parts, reach, bands, fold, scores, predicted, lower, upper, sample_weight):
    """Sum of what the ranges at a reach miss, by the bands of each row's fold."""
    total = 0.0
    for i in range(scores.size):
        own = (bands[fold[i]], reach, bounded(scores[i]), predicted[i], lower[i], upper[i])
        total += sample_weight[i] * miss_of(parts, *own)
    return total


@compiled
def fit_reach(state, bands, fold, scores, predicted, lower, upper, sample_weight):
    """Smallest reach at which one more row, missed in full, would not make the misses too many.

    ``bands`` has one row for each fold; the unit is that of the scores.
    """
    parts = parts_view(state)
    parts.head[UNIT] = 1.0
    rows, enough = sample_weight.sum(), 0.0
    for i in range(scores.size):
        for rank in (lower[i], upper[i]):
            far = outside(bands[fold[i]], bounded(scores[i]), predicted[i], rank)
            enough = max(enough, far)
    rest = (bands, fold, scores, predicted, lower, upper, sample_weight)
    low = 0.0
    for j in range(parts.reach.size):
        allowed = rows - parts.coverage[j] * (rows + 1.0)
        high = enough if allowed >= 0.0 else inf
        if total_miss(parts, low, *rest) <= allowed:
            high = low
        middle = 0.5 * (low + high)
        while low < middle < high < inf:
            if total_miss(parts, middle, *rest) <= allowed:
                high = middle
            else:
                low = middle
            middle = 0.5 * (low + high)
        parts.reach[j] = low = high  # a larger coverage needs at least as much
