"""Compiled steps and walks: everything that touches a row of data.

One example is a *step*, all rows are a *walk*; the walk holds no formula. Every compiled function
lives in this one file because Numba's disk cache does not notice an edit in another file.

Conventions
-----------
``padded`` holds the thresholds with a sentinel at each end, so that ``padded[i]`` is theta_i of the
paper for i = 1..K-1, ``padded[0]`` is minus infinity and ``padded[K]`` plus infinity. Ranks are
1..K. ``columns`` and ``starts`` are None for dense rows, the CSR arrays for sparse ones.
"""

from math import exp, inf, log, tanh
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from ordspan.core.compiling import borrowed

HARD, CAPPED, SOFT, SCA_HARD, SCA_CAPPED, SCA_SOFT, PRANK = range(7)
PERCEPTRON, CLASSES_HARD, CLASSES_CAPPED, CLASSES_SOFT = range(7, 11)
IDENTITY, BALANCED, DIAGONAL = range(3)
LINEAR, RBF, POLY, SIGMOID = range(4)
SIMPLE, NEAREST = range(2)

BAD_ROW, BAD_LABEL, BAD_WIDTH = 0, -1, -2
"""What `learn_one` returns instead of a rank when it refuses an example."""

MAX_SQ_NORM = 1e200
"""Rows with a larger squared norm are refused: beyond it products overflow to infinity."""

MIN_SQ_NORM = 1e-200
"""Rows with a smaller one count as zero where only the weights can move: they would overflow."""

MIN_STRENGTH = 1e-300
"""A smaller C counts as this one, whose reciprocal is still finite."""

WIDE = 8
"""With more violated thresholds than this, start the search near the label, not at the score."""

SCA_ROUNDS = 100
"""Where the printed SCA-I loop has not converged after this many rounds, it is ended."""

# Reordered sums are what lets the compiler vectorise; NaN and infinity stay detectable.
FAST = {"reassoc", "contract", "nsz"}

Floats = NDArray[np.float64]


RIDGE = 1000.0
"""How slowly the diagonal metric shrinks; the r of AROW."""

NEW_BAND = 1.0
"""Width of the band that an outermost rank keeps when one beyond it appears: the margin."""

HEADER = 9
RULE, STRENGTH, CLASSES, AVERAGING, METRIC, TRIALS, UPDATES, LOG_SUM, LOG_COUNT = range(HEADER)


class Model(NamedTuple):
    """Views into a learner's memory, by name."""

    weights: Floats  # (d,); of a rule with vectors all K, one after the other, (K * d,)
    padded: Floats  # (K + 1,)
    drift: Floats  # (K + 1 + d,): what turns the last iterate into the average; empty without
    counts: Floats  # trials, updates
    rule: int
    strength: float  # C; the step size of PRank and the perceptron


@njit(cache=True, nogil=True)
def has_vectors(rule):
    """Whether a rule keeps a weight vector for each class, and has no use for thresholds."""
    return rule >= PERCEPTRON


def new_memory(
    rule: int,
    strength: float,
    n_features: int,
    n_classes: int,
    average: bool,
    metric: int = IDENTITY,
) -> Floats:
    """All that a learner knows, in one array: few arguments make a call from Python cheap.

    After the header come the padded thresholds, the weights, the drift of an averaging learner,
    and the spread of one with a diagonal metric.
    """
    n_vectors = n_classes if has_vectors.py_func(rule) else 1
    size = HEADER + n_classes + 1 + n_features * n_vectors
    drift, spread = (n_classes + 1 + n_features) * average, n_features * (metric == DIAGONAL)
    memory = np.zeros(size + drift + spread)
    memory[: METRIC + 1] = rule, strength, n_classes, average, metric
    memory[size + drift :] = 1.0
    memory[HEADER], memory[HEADER + n_classes] = -inf, inf
    return memory


@njit(cache=True, nogil=True)
def row_width(memory):
    """Number of features."""
    n_classes = np.int64(memory[CLASSES])
    rest = memory.size - HEADER - (n_classes + 1)
    if has_vectors(memory[RULE]):
        return rest // n_classes
    n_parts = 1
    if memory[AVERAGING] > 0.0:
        n_parts += 1
        rest -= n_classes + 1
    if memory[METRIC] == DIAGONAL:
        n_parts += 1
    return rest // n_parts


def widened_memory(memory: Floats, n_features: int) -> Floats:
    """A copy with more features, as if they had been there from the start and always zero.

    Every part that holds one number a feature gets the numbers that it starts with at its end.
    """
    first = memory.reshape(-1, memory.shape[-1])[0]  # a committee has one row a member
    width = row_width.py_func(first)
    n_classes = int(first[CLASSES])
    n_vectors = n_classes if has_vectors.py_func(first[RULE]) else 1
    ends = (HEADER + n_classes + 1 + width * np.arange(1, n_vectors + 1)).tolist()
    starts_with = [0.0] * n_vectors
    if first[AVERAGING] > 0.0:
        ends.append(ends[-1] + n_classes + 1 + width)
        starts_with.append(0.0)
    if first[METRIC] == DIAGONAL:
        ends.append(memory.shape[-1])
        starts_with.append(1.0)
    more = n_features - width
    return np.insert(memory, np.repeat(ends, more), np.repeat(starts_with, more), axis=-1)


def memory_with_rank(memory: Floats, rank: int) -> Floats:
    """A copy with one rank more, which becomes number ``rank``; the ranks from there on move up.

    Between two ranks it starts with an empty band of scores, on the threshold between them, so no
    prediction changes. Beyond the last (or first) one the rank that was there keeps a band of
    NEW_BAND. The history of the new threshold is that of its neighbour, so that averages stay
    sorted.
    """
    n_classes = int(memory[CLASSES])
    at = min(rank, n_classes)
    source = max(at - 1, 1)
    away = NEW_BAND * ((rank > n_classes) - (rank == 1))
    places, values = [HEADER + at], [memory[HEADER + source] + away]
    if memory[AVERAGING] > 0.0:
        drift_at = HEADER + n_classes + 1 + row_width.py_func(memory)
        places.append(drift_at + at)
        values.append(memory[drift_at + source])
    grown = np.insert(memory, places, values)
    grown[CLASSES] += 1
    return grown


@njit(cache=True, nogil=True)
def view(memory):
    """The parts of a learner's memory by name; writing to them writes to the memory."""
    weights_at = HEADER + np.int64(memory[CLASSES]) + 1
    drift_at, spread_at = memory.size, memory.size
    if memory[METRIC] == DIAGONAL:
        spread_at -= row_width(memory)
        drift_at = spread_at
    if memory[AVERAGING] > 0.0:
        drift_at = weights_at + row_width(memory)
    return Model(
        memory[weights_at:drift_at],
        memory[HEADER:weights_at],
        memory[drift_at:spread_at],
        memory[TRIALS : UPDATES + 1],
        np.int64(memory[RULE]),
        memory[STRENGTH],
    )


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True)
def score_and_norm(weights, values, columns):
    """Dot product of a row with the weights, and the row's squared norm."""
    score = 0.0
    sq_norm = 0.0
    if columns is None:
        for j in range(values.size):
            value = np.float64(values[j])
            score += weights[j] * value
            sq_norm += value * value
    else:
        for j in range(values.size):
            value = np.float64(values[j])
            score += weights[columns[j]] * value
            sq_norm += value * value
    return score, sq_norm


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True)
def add_scaled(weights, scale, values, columns):
    """Add a multiple of a row to the weights."""
    if columns is None:
        for j in range(values.size):
            weights[j] += scale * np.float64(values[j])
    else:
        for j in range(values.size):
            weights[columns[j]] += scale * np.float64(values[j])


@njit(cache=True, nogil=True)
def rank_near(padded, score, guess):
    """Predicted rank, 1 + the number of thresholds not above the score, looked for from a guess."""
    rank = guess
    while rank < padded.size - 1 and padded[rank] <= score:
        rank += 1
    while padded[rank - 1] > score:
        rank -= 1
    return rank


@njit(cache=True, nogil=True)
def sweep(padded, landing, near, sign, cap):
    """Shortfalls of one side: sum below the cap, first index below the cap, first cleared index.

    ``sign`` is +1 for the thresholds that belong below the score (looked at downwards from
    ``near``) and -1 for those that belong above it (upwards). Because the thresholds are sorted,
    nothing beyond the first cleared one needs to be looked at; the sentinel ends the loop.
    """
    outward = -np.int64(sign)
    i = near
    shortfall = 1.0 + sign * (padded[i] - landing)
    while shortfall >= cap:
        i += outward
        shortfall = 1.0 + sign * (padded[i] - landing)
    below_cap = i
    total = 0.0
    while shortfall > 0.0:
        total += shortfall
        i += outward
        shortfall = 1.0 + sign * (padded[i] - landing)
    return total, below_cap, i


@njit(cache=True, nogil=True)
def central_guess(padded, score, sq_norm, lower, upper, softness, cap, n_violated):
    """A landing score close to the root when many thresholds take part.

    Many thresholds outweigh the old score, so the landing lies near the point where the two sides
    balance. Any guess is correct, because the search goes on from it exactly; this one is short.
    """
    left, right = padded[lower - 1] + 1.0, padded[upper] - 1.0
    goal = min(max(score, left), right) if left <= right else 0.5 * (left + right)
    gain = sq_norm * n_violated
    way = goal - score
    return score + way * gain / (softness + gain + abs(way) / cap)


@njit(cache=True, nogil=True)
def follow(padded, landing, sq_norm, softness, cap, sign, near, ends, drive, n_linear):
    """Walk from breakpoint to breakpoint until the root lies on the current linear piece.

    The score moves in direction ``sign``. The side that pulls it there has its first index below
    the cap at ``pull_linear`` and its first cleared one at ``pull_end``; its shortfalls shrink on
    the way. Those of the side that holds it back grow. ``near`` is the pulling side's threshold
    next to the label. Returns the way still to go, the number of thresholds on linear pieces, and
    the ends where they are then.
    """
    pull_linear, pull_end, hold_linear, hold_end = ends
    inward = np.int64(sign)
    while True:
        cleared = inf if pull_end == near else 1.0 + sign * (padded[pull_end + inward] - landing)
        uncapped = (
            inf
            if pull_linear == near
            else 1.0 + sign * (padded[pull_linear + inward] - landing) - cap
        )
        violated = sign * (padded[hold_end] - landing) - 1.0
        capped = cap - 1.0 + sign * (padded[hold_linear] - landing)
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


@njit(cache=True, nogil=True)
def move_side(padded, drift, age, start, stop, sign, goal, floor, cap, keep):
    """Move thresholds start..stop-1 of one side; the map is monotone, so their order holds.

    Each term is a rounded monotone function of the old threshold, and so are minimum and maximum:
    sorted thresholds stay sorted to the bit. ``floor`` is the neighbour that does not move.
    """
    for i in range(start, stop):
        old = sign * padded[i]
        new = sign * min(old, max(max(floor, old - cap), keep * old + goal))
        if age > 0.0:
            drift[i] += age * (new - padded[i])
        padded[i] = new


@njit(cache=True, nogil=True, forceinline=True)
def exact_step(padded, drift, age, score, sq_norm, lower, upper, softness, cap):
    """Smallest move that the variant allows; moves the thresholds, returns the pull on the row.

    The landing score is the root of the one scalar equation of all variants (the page on the
    mathematics): softness 1 and cap infinity is PA, softness 1 and cap C is PA-I, softness
    1 + 1/(2C) and cap infinity is PA-II. Returns the pull ``a`` (the weights move by a times the
    row), whether anything moved, and whether the numbers stayed finite.
    """
    if padded[lower - 1] + 1.0 <= score and padded[upper] - 1.0 >= score:
        return 0.0, False, True
    landing = score
    left_sum, left_linear, left_end = sweep(padded, landing, lower - 1, 1.0, cap)
    right_sum, right_linear, right_end = sweep(padded, landing, upper, -1.0, cap)
    n_violated = (lower - 1 - left_end) + (right_end - upper)
    if n_violated > WIDE:
        landing = central_guess(padded, score, sq_norm, lower, upper, softness, cap, n_violated)
        left_sum, left_linear, left_end = sweep(padded, landing, lower - 1, 1.0, cap)
        right_sum, right_linear, right_end = sweep(padded, landing, upper, -1.0, cap)
    excess = left_sum - right_sum
    n_capped = (lower - 1 - left_linear) - (right_linear - upper)
    if n_capped != 0:
        excess += cap * n_capped
    n_linear = (left_linear - left_end) + (right_end - right_linear)
    drive = sq_norm * excess - softness * (landing - score)
    if drive >= 0.0:
        ends = (left_linear, left_end, right_linear, right_end)
        way, n_linear, ends = follow(
            padded, landing, sq_norm, softness, cap, 1.0, lower - 1, ends, drive, n_linear
        )
        left_linear, left_end, right_linear, right_end = ends
    else:
        ends = (right_linear, right_end, left_linear, left_end)
        way, n_linear, ends = follow(
            padded, landing, sq_norm, softness, cap, -1.0, upper, ends, -drive, n_linear
        )
        right_linear, right_end, left_linear, left_end = ends
        way = -way
    if n_linear == 0 and cap < inf and sq_norm > 0.0:
        # all at the cap: the sum is known exactly, while the way may be lost in rounding
        pull = cap * ((lower - 1 - left_linear) - (right_linear - upper))
        way = score + pull * sq_norm - landing
    else:
        pull = ((landing - score) + way) / sq_norm if sq_norm > 0.0 else 0.0
    landing += way
    if not (abs(landing) < inf and abs(pull) < inf):
        return 0.0, False, False
    share = 1.0 / softness
    goal = (landing - 1.0) * share
    floor = padded[left_end]
    move_side(padded, drift, age, left_end + 1, lower, 1.0, goal, floor, cap, 1.0 - share)
    goal = -(landing + 1.0) * share
    floor = -padded[right_end]
    move_side(padded, drift, age, upper, right_end, -1.0, goal, floor, cap, 1.0 - share)
    return pull, True, True


@njit(cache=True, nogil=True)
def clipped_loss(padded, score, i, lower):
    """Hinge loss of one required threshold, the l_i of the paper."""
    sign = 1.0 if i < lower else -1.0
    return max(0.0, 1.0 + sign * (padded[i] - score))


@njit(cache=True, nogil=True)
def sca_support(padded, score, sq_norm, lower, upper, softness):
    """The support sets as Algorithm 2 of the paper prints them, and the pull they give.

    Returns start, stop, pull: the sets are start..lower-1 and upper..stop-1. Three liberties: a
    threshold that does not exist (lower = 1, upper = K) is left out, the loop ends when both sides
    are used up, where the printed one would not, and PA-II's softness replaces the 1.
    """
    n_classes = padded.size - 1
    start, stop = max(lower - 1, 1), min(upper + 1, n_classes)
    excess = 0.0
    if start < lower:
        excess += clipped_loss(padded, score, start, lower)
    if upper < stop:
        excess -= clipped_loss(padded, score, upper, lower)
    go_on = True
    while go_on and (start > 1 or stop < n_classes):
        if start > 1:
            loss = clipped_loss(padded, score, start - 1, lower)
            size = 1 + (lower - start) + (stop - upper)
            go_on = loss - sq_norm * (excess + loss) / (softness + sq_norm * size) > 0.0
            if go_on:
                start -= 1
                excess += loss
        if stop < n_classes:
            loss = clipped_loss(padded, score, stop, lower)
            size = 1 + (lower - start) + (stop - upper)
            go_on = loss + sq_norm * (excess - loss) / (softness + sq_norm * size) > 0.0
            if go_on:
                stop += 1
                excess -= loss
    size = (lower - start) + (stop - upper)
    return start, stop, excess / (softness + sq_norm * size)


@njit(cache=True, nogil=True)
def sca_capped_pull(padded, score, sq_norm, lower, upper, cap):
    """The pull of Algorithm 3 (SCA-I): multipliers and pull in turn until they settle.

    The printed loop swings for ever when sq_norm times the support's size exceeds 1; it is ended
    after SCA_ROUNDS rounds. Multipliers are kept in [0, C] so that it cannot diverge.
    """
    pull = 0.0
    for _ in range(SCA_ROUNDS):
        before = pull
        total = 0.0
        for i in range(1, lower):
            loss = clipped_loss(padded, score, i, lower)
            total += min(cap, max(0.0, loss - before * sq_norm))
        for i in range(upper, padded.size - 1):
            loss = clipped_loss(padded, score, i, lower)
            total -= min(cap, max(0.0, loss + before * sq_norm))
        pull = total
        if abs(pull - before) <= 1e-12 * (1.0 + abs(pull)):
            break
    return before


@njit(cache=True, nogil=True)
def sca_step(padded, drift, age, score, sq_norm, lower, upper, softness, cap):
    """The paper's printed step, for comparison only: often not the smallest that would do.

    From six classes on it can leave a constraint violated or the thresholds out of order, because
    the printed flag is overwritten: they are then put back in order by a running maximum. Its steps
    are longer than the exact ones, and on noisy labels with long rows they can grow without bound.
    """
    if padded[lower - 1] + 1.0 <= score and padded[upper] - 1.0 >= score:
        return 0.0, False, True
    last = padded.size - 1
    before = padded.copy()
    if cap < inf:
        start, stop = 1, last
        pull = sca_capped_pull(padded, score, sq_norm, lower, upper, cap)
    else:
        start, stop, pull = sca_support(padded, score, sq_norm, lower, upper, softness)
    shift = pull * sq_norm
    if not abs(shift) < inf:
        return 0.0, False, False
    total = 0.0
    for i in range(start, stop):
        if lower <= i < upper:
            continue
        sign = 1.0 if i < lower else -1.0
        multiplier = (clipped_loss(padded, score, i, lower) - sign * shift) / softness
        if cap < inf:
            multiplier = min(cap, max(0.0, multiplier))
        padded[i] -= sign * multiplier
        total += sign * multiplier
    if cap < inf:
        pull = total  # where the printed loop did not settle, the two differ
    for i in range(2, last):
        padded[i] = max(padded[i], padded[i - 1])
    if age > 0.0:
        for i in range(1, last):
            drift[i] += age * (padded[i] - before[i])
    return pull, True, True


@njit(cache=True, nogil=True)
def prank_step(padded, drift, age, score, lower, upper, size):
    """PRank (Crammer & Singer 2001): every required threshold on the wrong side moves by ``size``.

    With steps of equal size the order holds by their Lemma 1; with unequal ones (sample weights) a
    threshold stops at its neighbour that does not move.
    """
    if padded[lower - 1] <= score < padded[upper]:
        return 0.0, False, True
    start = lower
    while padded[start - 1] >= score:
        start -= 1
    stop = upper
    while padded[stop] <= score:
        stop += 1
    floor, ceiling = padded[start - 1], padded[stop]
    move_side(padded, drift, age, start, lower, 1.0, -inf, floor, size, 0.0)
    move_side(padded, drift, age, upper, stop, -1.0, -inf, -ceiling, size, 0.0)
    return size * ((lower - start) - (stop - upper)), True, True


@njit(cache=True, nogil=True)
def limits(rule, strength):
    """Softness and cap of a variant at a given C: all that tells the three apart."""
    if rule in (SOFT, SCA_SOFT):
        return 1.0 + 0.5 / max(strength, MIN_STRENGTH), inf
    if rule in (CAPPED, SCA_CAPPED):
        return 1.0, strength
    return 1.0, inf


@njit(cache=True, nogil=True, fastmath=FAST)
def leverage_of(spread, values, columns):
    """Squared norm of a row in the diagonal metric."""
    total = 0.0
    if columns is None:
        for j in range(values.size):
            total += spread[j] * np.float64(values[j]) * np.float64(values[j])
    else:
        for j in range(values.size):
            total += spread[columns[j]] * np.float64(values[j]) * np.float64(values[j])
    return total


@njit(cache=True, nogil=True, fastmath=FAST)
def add_spread(weights, scale, spread, values, columns):
    """Add a multiple of a row, measured in the diagonal metric, to the weights."""
    if columns is None:
        for j in range(values.size):
            weights[j] += scale * (spread[j] * np.float64(values[j]))
    else:
        for j in range(values.size):
            weights[columns[j]] += scale * (spread[columns[j]] * np.float64(values[j]))


@njit(cache=True, nogil=True, fastmath=FAST)
def shrink(spread, share, values, columns):
    """AROW's update of the metric: where a row has been, the next steps are shorter."""
    if columns is None:
        for j in range(values.size):
            there = spread[j] * np.float64(values[j])
            spread[j] -= share * there * there
    else:
        for j in range(values.size):
            there = spread[columns[j]] * np.float64(values[j])
            spread[columns[j]] -= share * there * there


@njit(cache=True, nogil=True)
def metric_step(
    memory, weights, padded, drift, age, strength, score, sq_norm, values, columns, lower, upper
):
    """The exact step where weights and thresholds are measured in another metric.

    Minimises 1/2 dw' S^-1 dw + |dtheta|^2 / (2 v) + the variant's loss, S diagonal. Divided by v
    it is the plain step with squared norm x'Sx / v and C v, whose pull is v times too large. v is
    the geometric mean of x'Sx over the violated trials, one number for all thresholds, so their
    order holds as before: thresholds move as far as scores do, however long the rows are. S stays
    1 under BALANCED; under DIAGONAL it shrinks as in AROW (Crammer, Kulesza & Dredze 2009), with
    2 x'Sx in place of x'Sx so that no row more than halves it. Returns moved, finite.
    """
    if padded[lower - 1] + 1.0 <= score and padded[upper] - 1.0 >= score:
        return False, True
    diagonal = memory[METRIC] == DIAGONAL
    spread = memory[memory.size - weights.size :]
    leverage = leverage_of(spread, values, columns) if diagonal else sq_norm
    log_sum, log_count = memory[LOG_SUM], memory[LOG_COUNT]
    if leverage < MIN_SQ_NORM:
        leverage = 0.0
    else:
        log_sum += log(leverage)
        log_count += 1.0
    scale = exp(log_sum / log_count) if log_count > 0.0 else 1.0
    softness, cap = limits(np.int64(memory[RULE]), strength * scale)
    pull, moved, finite = exact_step(
        padded, drift, age, score, leverage / scale, lower, upper, softness, cap
    )
    if not finite:
        return False, False
    memory[LOG_SUM], memory[LOG_COUNT] = log_sum, log_count
    pull /= scale
    if diagonal and pull != 0.0:
        add_spread(weights, pull, spread, values, columns)
        if age > 0.0:
            add_spread(drift[padded.size :], age * pull, spread, values, columns)
        shrink(spread, 1.0 / (2.0 * leverage + RIDGE), values, columns)
    elif pull != 0.0:
        add_scaled(weights, pull, values, columns)
        if age > 0.0:
            add_scaled(drift[padded.size :], age * pull, values, columns)
    return moved, True


@njit(cache=True, nogil=True)
def other_step(padded, drift, age, rule, strength, score, sq_norm, lower, upper):
    """The steps kept for comparison: the paper's printed search, and PRank."""
    if rule == PRANK:
        return prank_step(padded, drift, age, score, lower, upper, strength)
    softness, cap = limits(rule, strength)
    return sca_step(padded, drift, age, score, sq_norm, lower, upper, softness, cap)


@njit(cache=True, nogil=True, forceinline=True)
def rank_row(padded, drift, trials, score, values, columns, guess):
    """Rank that the learner gives a row whose score by the last iterate is known.

    With averaging it is the rank by the average of all iterates so far.
    """
    if drift.size == 0 or trials == 0.0:
        return rank_near(padded, score, guess)
    drift_score, _ = score_and_norm(drift[padded.size :], values, columns)
    return rank_by_average(padded, drift, trials, score - drift_score / trials, guess)


@njit(cache=True, nogil=True)
def rank_by_average(padded, drift, trials, score, guess):
    """Rank of a score among the averaged thresholds, looked for from a guess."""
    rank = guess
    while rank < padded.size - 1 and padded[rank] - drift[rank] / trials <= score:
        rank += 1
    while rank > 1 and padded[rank - 1] - drift[rank - 1] / trials > score:
        rank -= 1
    return rank


@njit(cache=True, nogil=True)
def sift_down(heap, i, size):
    """Put entry ``i`` of a heap, smallest first, where it belongs below."""
    entry = heap[i]
    child = 2 * i + 1
    while child < size:
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= entry:
            break
        heap[i] = heap[child]
        i, child = child, 2 * child + 1
    heap[i] = entry


@njit(cache=True, nogil=True)
def grow_support(gaps, loss, sq_norm, spread, cap):
    """The rivals that get a multiplier, worst first; their number, sum and last gap, and total.

    ``gaps`` (used up) are how much less than ``loss`` each rival's loss is. With n of them in the
    support and G the sum of their gaps, the multipliers add up to the smaller of the cap and
    (n loss - G) / (s + n (s + spread)); one more belongs in while its own would be positive.
    """
    size = gaps.size
    for i in range(size // 2 - 1, -1, -1):
        sift_down(gaps, i, size)
    n_support, gap_sum, last, total = 0, 0.0, 0.0, 0.0
    while size > 0:
        gap = gaps[0]
        if n_support > 0 and sq_norm * total + gap_sum <= n_support * gap:
            break
        n_support += 1
        gap_sum += gap
        last = gap
        total = (n_support * loss - gap_sum) / (sq_norm + n_support * (sq_norm + spread))
        total = min(cap, total)
        size -= 1
        gaps[0] = gaps[size]
        sift_down(gaps, 0, size)
    return n_support, gap_sum, last, total


@njit(cache=True, nogil=True)
def class_step(scores, best, rival, sq_norm, lower, upper, spread, cap, pulls):
    """Smallest move of all class vectors that the variant allows; fills ``pulls``, one per class.

    The vector of class k is to move by ``pulls[k - 1]`` times the row. ``best`` is the best class
    of the interval, which has to win, ``rival`` the best one outside. With losses
    l_r = 1 - (score of best - score of r) of the classes r outside, the multipliers are
    max(0, (l_r - slack) / s - T), T being their sum: slack 0 is PA; PA-I has T <= ``cap`` = C, and
    slack only where they are equal; PA-II has slack ``spread`` T with ``spread`` = 1 / (2C). The
    differences of the multipliers are those of the losses over s, so each is written as its share
    of T and what it differs from the mean by. Returns whether anything is to move, and whether the
    numbers stayed finite.
    """
    top = scores[rival - 1]
    loss = 1.0 + (top - scores[best - 1])
    if loss <= 0.0 or sq_norm < MIN_SQ_NORM:
        return False, True
    n_rivals = 0
    for k in range(1, scores.size + 1):
        if (k < lower or k > upper) and top - scores[k - 1] < loss:
            pulls[n_rivals] = top - scores[k - 1]
            n_rivals += 1
    n_support, gap_sum, last, total = grow_support(pulls[:n_rivals], loss, sq_norm, spread, cap)
    if not total < inf:
        return False, False
    share, mean_gap = total / n_support, gap_sum / n_support
    for k in range(1, scores.size + 1):
        pulls[k - 1] = 0.0
        gap = top - scores[k - 1]
        if (k < lower or k > upper) and gap <= last:
            pulls[k - 1] = -max(0.0, share + (mean_gap - gap) / sq_norm)
    pulls[best - 1] = total
    return True, True


@njit(cache=True, nogil=True)
def perceptron_step(scores, best, rival, size, pulls):
    """Max-score update (Crammer & Singer 2003): best up, rival down, unless best is ahead."""
    if scores[rival - 1] < scores[best - 1]:
        return False, True
    pulls[:] = 0.0
    pulls[best - 1], pulls[rival - 1] = size, -size
    return True, True


@njit(cache=True, nogil=True)
def class_limits(rule, strength):
    """Spread of the slack and cap of the sum of the multipliers: all that tells variants apart."""
    if rule == CLASSES_SOFT:
        return 0.5 / max(strength, MIN_STRENGTH), inf
    return 0.0, strength if rule == CLASSES_CAPPED else inf


@njit(cache=True, nogil=True)
def learn_classes(weights, counts, scratch, rule, strength, values, columns, lower, upper):
    """One trial of a rule with a weight vector for each class; the rank predicted, or BAD_ROW.

    On an interval the best class inside is the one that has to win, and only the classes outside
    are its rivals. ``scratch`` has room for two numbers a class.
    """
    n_classes = scratch.size // 2
    scores, pulls = scratch[:n_classes], scratch[n_classes:]
    width = weights.size // n_classes
    best, rival = lower, 0
    best_score, rival_score = -inf, -inf
    sq_norm = 0.0
    finite = True
    for k in range(1, n_classes + 1):
        score, sq_norm = score_and_norm(weights[(k - 1) * width : k * width], values, columns)
        scores[k - 1] = score
        finite = finite and abs(score) < inf
        if lower <= k <= upper:
            if score > best_score:
                best, best_score = k, score
        elif score > rival_score:
            rival, rival_score = k, score
    if not (finite and sq_norm < MAX_SQ_NORM):
        return BAD_ROW
    rival_wins = rival_score > best_score or (rival_score == best_score and rival < best)
    rank = rival if rival > 0 and rival_wins else best
    if strength <= 0.0:
        return rank
    if rival > 0:
        if rule == PERCEPTRON:
            moved, finite = perceptron_step(scores, best, rival, strength, pulls)
        else:
            spread, cap = class_limits(rule, strength)
            moved, finite = class_step(
                scores, best, rival, sq_norm, lower, upper, spread, cap, pulls
            )
        if not finite:
            return BAD_ROW
        if moved:
            for k in range(n_classes):
                if pulls[k] != 0.0:
                    vector = weights[k * width : (k + 1) * width]
                    add_scaled(vector, pulls[k], values, columns)
            counts[1] += 1.0
    counts[0] += 1.0
    return rank


@njit(cache=True, nogil=True)
def walk(memory, data, columns, starts, lower, upper, sample_weight, order, predicted):
    """Learn rows one by one; returns the first row that was refused, or -1.

    ``sample_weight``, ``order`` and ``predicted`` may be empty: unit weights, rows as they come,
    no predictions wanted. The trial is written out here rather than in a function of its own:
    handing six arrays on for every row costs twice as much as the step.
    """
    memory, data = borrowed(memory), borrowed(data)
    if columns is not None:
        columns = borrowed(columns)
    weights, padded, drift, counts, rule, strength_of_all = view(memory)
    n_classes = padded.size - 1
    width = row_width(memory)
    want_rank = predicted.size > 0
    strength = strength_of_all
    metric = memory[METRIC]
    scratch = memory[:0]
    if has_vectors(rule):
        scratch = np.empty(2 * n_classes)
    for t in range(lower.size):
        i = order[t] if order.size > 0 else t
        if starts is None:
            values = data[i * width : (i + 1) * width]
            cols = None
        else:
            values = data[starts[i] : starts[i + 1]]
            cols = columns[starts[i] : starts[i + 1]]
        if sample_weight.size > 0:
            strength = strength_of_all * sample_weight[i]
        low, high = lower[i], upper[i]
        if has_vectors(rule):
            rank = learn_classes(weights, counts, scratch, rule, strength, values, cols, low, high)
            if rank == BAD_ROW:
                return i
            if want_rank:
                predicted[i] = rank
            continue
        score, sq_norm = score_and_norm(weights, values, cols)
        if not (sq_norm < MAX_SQ_NORM and abs(score) < inf):
            return i
        if want_rank:
            predicted[i] = rank_row(padded, drift, counts[0], score, values, cols, low)
        if strength <= 0.0:
            continue
        age = counts[0] if drift.size > 0 else 0.0
        if metric != IDENTITY:
            moved, finite = metric_step(
                memory,
                weights,
                padded,
                drift,
                age,
                strength,
                score,
                sq_norm,
                values,
                cols,
                low,
                high,
            )
            if not finite:
                return i
            counts[0] += 1.0
            counts[1] += moved
            continue
        if rule <= SOFT:
            softness, cap = limits(rule, strength)
            pull, moved, finite = exact_step(
                padded, drift, age, score, sq_norm, low, high, softness, cap
            )
        else:
            pull, moved, finite = other_step(
                padded, drift, age, rule, strength, score, sq_norm, low, high
            )
        if not finite:
            return i
        if moved:
            if pull != 0.0:
                add_scaled(weights, pull, values, cols)
                if age > 0.0:
                    add_scaled(drift[padded.size :], age * pull, values, cols)
            counts[1] += 1.0
        counts[0] += 1.0
    return -1


@njit(cache=True, nogil=True)
def show_members(memory, coins, strength, values, columns, lower, upper):
    """Let the members whose coin is up learn a row; whether any moved, and whether all are finite.

    Row 0 of the memory is the sum of the members in the rows below it.
    """
    weights, padded, _, _, _, _ = view(memory[0])
    any_moved = False
    for m in range(coins.size):
        if not coins[m]:
            continue
        own_weights, own_padded, drift, counts, _, _ = view(memory[m + 1])
        score, _ = score_and_norm(own_weights, values, columns)
        if not abs(score) < inf:
            return any_moved, False
        pull, moved, _ = prank_step(own_padded, drift, 0.0, score, lower, upper, strength)
        if moved:
            add_scaled(own_weights, pull, values, columns)
            add_scaled(weights, pull, values, columns)
            counts[1] += 1.0
            any_moved = True
        counts[0] += 1.0
    if any_moved:
        # added anew: sums of sorted thresholds in one and the same order are sorted to the bit
        padded[1:-1] = 0.0
        for m in range(coins.size):
            own_padded = view(memory[m + 1]).padded
            for i in range(1, padded.size - 1):
                padded[i] += own_padded[i]
    return any_moved, True


@njit(cache=True, nogil=True)
def walk_members(
    memory, data, columns, starts, lower, upper, sample_weight, order, predicted, coins, first
):
    """Learn rows by a committee of PRanks from number ``first`` on, until the coins are used up.

    Row t of ``coins`` says which members are shown the t-th row that counts. Returns the number to
    go on from, and the first row that was refused, or -1. The committee ranks by the sum of its
    members, which is the rank by their average.
    """
    weights, padded, _, counts, _, strength_of_all = view(memory[0])
    width = weights.size
    strength = strength_of_all
    tossed = 0
    for t in range(first, lower.size):
        i = order[t] if order.size > 0 else t
        if starts is None:
            values = data[i * width : (i + 1) * width]
            cols = None
        else:
            values = data[starts[i] : starts[i + 1]]
            cols = columns[starts[i] : starts[i + 1]]
        if sample_weight.size > 0:
            strength = strength_of_all * sample_weight[i]
        if strength > 0.0 and tossed == coins.shape[0]:
            return t, -1
        score, sq_norm = score_and_norm(weights, values, cols)
        if not (sq_norm < MAX_SQ_NORM and abs(score) < inf):
            return t, i
        if predicted.size > 0:
            predicted[i] = rank_near(padded, score, lower[i])
        if strength <= 0.0:
            continue
        moved, finite = show_members(
            memory, coins[tossed], strength, values, cols, lower[i], upper[i]
        )
        if not finite:
            return t, i
        tossed += 1
        counts[0] += 1.0
        if moved:
            counts[1] += 1.0
    return lower.size, -1


@njit(cache=True)
def one_trial(memory, values, columns, starts, lower, upper):
    """Learn the one row there is; the rank predicted before, or why it was refused."""
    if not 1 <= lower <= upper <= memory[CLASSES] or np.int64(lower) != lower:
        return BAD_LABEL
    if np.int64(upper) != upper:
        return BAD_LABEL
    label = np.empty(3, dtype=np.int64)
    label[0], label[1] = lower, upper
    rank = label[2:]
    bad = walk(memory, values, columns, starts, label[:1], label[1:2], memory[:0], label[:0], rank)
    return rank[0] if bad < 0 else BAD_ROW


@njit(cache=True)
def learn_one(memory, values, lower, upper):
    """One dense trial straight from Python; the rank predicted before, or why it was refused."""
    if values.size != row_width(memory):
        return BAD_WIDTH
    return one_trial(memory, values, None, None, lower, upper)


@njit(cache=True)
def columns_fit(values, columns, width):
    """Whether every value has its column and no column lies outside; others would be written to."""
    fit = values.size == columns.size
    for column in columns:
        fit = fit and 0 <= column < width
    return fit


@njit(cache=True)
def learn_sparse(memory, values, columns, lower, upper):
    """One sparse trial straight from Python; the rank predicted before, or why it was refused."""
    if not columns_fit(values, columns, row_width(memory)):
        return BAD_WIDTH
    starts = np.array([0, values.size])
    return one_trial(memory, values, columns, starts, lower, upper)


@njit(cache=True)
def rank_of(memory, values, columns):
    """Rank of one row, or BAD_ROW."""
    weights, padded, drift, counts, rule, _ = view(memory)
    if has_vectors(rule):
        last = padded.size - 1
        scratch = np.empty(2 * last)
        return learn_classes(weights, counts, scratch, rule, 0.0, values, columns, 1, last)
    score, sq_norm = score_and_norm(weights, values, columns)
    if not (sq_norm < MAX_SQ_NORM and abs(score) < inf):
        return BAD_ROW
    return rank_row(padded, drift, counts[0], score, values, columns, 1)


@njit(cache=True)
def predict_one(memory, values):
    """Rank of one dense row straight from Python, or why it was refused."""
    if values.size != row_width(memory):
        return BAD_WIDTH
    return rank_of(memory, values, None)


@njit(cache=True)
def predict_sparse(memory, values, columns):
    """Rank of one sparse row straight from Python, or why it was refused."""
    if not columns_fit(values, columns, row_width(memory)):
        return BAD_WIDTH
    return rank_of(memory, values, columns)


@njit(cache=True, nogil=True)
def scores(weights, data, columns, starts, out):
    """Dot product of every row with the weights; returns the first non-finite one's row, or -1."""
    width = weights.size
    for i in range(out.size):
        if starts is None:
            values = data[i * width : (i + 1) * width]
            cols = None
        else:
            values = data[starts[i] : starts[i + 1]]
            cols = columns[starts[i] : starts[i + 1]]
        out[i], _ = score_and_norm(weights, values, cols)
        if not abs(out[i]) < inf:
            return i
    return -1


# -- the kernel trick ----------------------------------------------------------------------------

LANES = 64
"""Support vectors are kept in blocks of so many, feature by feature, to be worked on together."""

N_PARTS = 6
COEF, DRIFT, NORM, INVERSE, SQUARE, CLOSE = range(N_PARTS)
"""Rows of ``dual``: coefficient, what turns it into its average, k(s, s), its inverse, s.s, and how
close others are: at least the largest squared length of the projection of s on another one."""

LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 0.693145751953125, 1.42860682030941723212e-06
ROUND = 6755399441055744.0 + 1023.0
"""1.5 times 2^52, and 1023: added to a number it leaves the nearest whole one in the lowest bits,
as the exponent of a float64 is written."""

EXP_SERIES = (
    2.5100375832561234e-08,
    2.7620075879983367e-07,
    2.7557268480310024e-06,
    2.4801521322368692e-05,
    0.00019841269863040545,
    0.0013888888917196719,
    0.008333333333330065,
    0.041666666666624164,
    0.16666666666666669,
    0.5,
    1.0,
    1.0,
)
"""exp(r) = 1 + r + r^2 q(r), where q is right at the ten Chebyshev nodes of -ln 2 / 2..ln 2 / 2.

Its relative error stays below 4e-17; a Taylor polynomial needs two terms more for that."""

LOWEST_EXPONENT = -708.0
"""exp of anything lower counts as exp of this, 3e-308: the result stays a normal number."""

CLOSE_ENOUGH = 1e-9
"""Kernel values of two vectors computed one way and the other may differ by this share."""

MIN_ANGLE = 1e-12
"""Two vectors whose squared sine is below this count as one direction."""


class Kernel(NamedTuple):
    """Which kernel, and its constants as scikit-learn names them."""

    kind: int
    gamma: float
    degree: float
    coef0: float


class Budget(NamedTuple):
    """How many support vectors there may be (0: any number), and how one is done without."""

    size: int
    strategy: int


EIGHT, EIGHT_WHOLE = (ir.VectorType(kind, 8) for kind in (ir.DoubleType(), ir.IntType(64)))
"""Values for the processor to work on together; where it takes fewer, the compiler splits them.

Left to itself it takes 4 at once, also on processors that are made for 8.
"""


def multiply_add(builder, a, b, c):
    """a b + c, as one operation on processors that have it; the rest is numbers for all eight."""
    b, c = (ir.Constant(EIGHT, [x] * 8) if isinstance(x, float) else x for x in (b, c))
    product = builder.fmul(a, b, flags=("contract",))
    return builder.fadd(product, c, flags=("contract",))


def exp_of_eight(builder, power):
    """exp(power) of eight powers at most 0, to the last digit or the one before.

    exp(v) = 2^n exp(r), where r is at most ln 2 / 2 in size and has a polynomial. There is no call
    and no branch. Sums must not be reordered: ROUND would cancel.
    """
    lowest = ir.Constant(EIGHT, [LOWEST_EXPONENT] * 8)
    power = builder.select(builder.fcmp_ordered(">", power, lowest), power, lowest)
    rounded = multiply_add(builder, power, LOG2_E, ROUND)
    n = builder.fsub(rounded, ir.Constant(EIGHT, [ROUND] * 8))
    r = multiply_add(builder, n, -LN2_LOW, multiply_add(builder, n, -LN2_HIGH, power))
    series = multiply_add(builder, r, *EXP_SERIES[:2])
    for coefficient in EXP_SERIES[2:]:
        series = multiply_add(builder, series, r, coefficient)
    bits = builder.bitcast(rounded, EIGHT_WHOLE)  # the lowest become the exponent: 2^n
    power_of_two = builder.shl(bits, ir.Constant(EIGHT_WHOLE, [52] * 8))
    return builder.fmul(series, builder.bitcast(power_of_two, EIGHT))


def eight_times(builder, value):
    """One value, eight times."""
    lane = ir.IntType(32)
    first = builder.insert_element(ir.Constant(EIGHT, ir.Undefined), value, ir.Constant(lane, 0))
    return builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(lane, 8), [0] * 8))


@intrinsic
def rbf_values(typing_context, block, row, gamma, out):
    """Write exp(-gamma |s - row|^2) to ``out`` for every vector s of a block.

    Exactly 1 for the row itself. A whole block, also where it is not full: each number of the row
    is fetched once for all, and the processor need not wait for one series to begin another one.
    """

    def codegen(context, builder, signature, args):
        lines, numbers, values = (
            context.make_array(signature.args[i])(context, builder, args[i]) for i in (0, 1, 3)
        )

        def eight_at(array, *places):
            pointer = array.data
            for place in places:
                pointer = builder.gep(pointer, [place])
            return builder.bitcast(pointer, EIGHT.as_pointer())

        firsts = [ir.Constant(ir.IntType(64), first) for first in range(0, LANES, 8)]
        zeros = ir.Constant(EIGHT, [0.0] * 8)
        sums = [cgutils.alloca_once(builder, EIGHT) for _ in firsts]
        for total in sums:
            builder.store(zeros, total)
        with cgutils.for_range(builder, builder.extract_value(numbers.shape, 0)) as loop:
            number = builder.load(builder.gep(numbers.data, [loop.index]))
            line = builder.mul(loop.index, ir.Constant(ir.IntType(64), LANES))
            for first, total in zip(firsts, sums, strict=True):
                vectors = builder.load(eight_at(lines, line, first), align=8)
                away = builder.fsub(vectors, eight_times(builder, number))
                builder.store(multiply_add(builder, away, away, builder.load(total)), total)
        scale = eight_times(builder, builder.fneg(args[2]))
        for first, total in zip(firsts, sums, strict=True):
            power = builder.fmul(builder.load(total), scale)
            builder.store(exp_of_eight(builder, power), eight_at(values, first), align=8)
        return context.get_dummy_value()

    return types.none(block, row, gamma, out), codegen


@njit(cache=True, nogil=True, fastmath=FAST)
def add_products(block, row, out):
    """Dot product of a row with the first vectors of a block."""
    out[:] = 0.0
    for j in range(row.size):
        line, value = block[j], row[j]
        for lane in range(out.size):
            out[lane] += line[lane] * value


@njit(cache=True, nogil=True)
def bend(kernel, product):
    """Kernel value of two rows whose dot product is known; not for rbf, which needs more."""
    if kernel.kind == LINEAR:
        return product
    inner = kernel.gamma * product + kernel.coef0
    if kernel.kind == SIGMOID:
        return tanh(inner)
    whole = np.int64(kernel.degree)
    if whole != kernel.degree:
        return inner**kernel.degree
    value = inner
    for _ in range(whole - 1):
        value *= inner
    return value


@njit(cache=True, nogil=True)
def kernel_norm(kernel, square):
    """k(x, x) of a row whose squared norm is known."""
    return 1.0 if kernel.kind == RBF else bend(kernel, square)


@njit(cache=True, nogil=True, forceinline=True)
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
                    out[lane] = bend(kernel, out[lane])


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True)
def weighted_sum(coefs, values, n_support):
    """Sum of the first kernel values, each times its coefficient."""
    total = 0.0
    for i in range(n_support):
        total += coefs[i] * values[i]
    return total


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True)
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


@njit(cache=True, nogil=True)
def find_vector(vectors, squares, n_support, row, square):
    """Number of the support vector that equals a row, or -1."""
    for b in range((n_support + LANES - 1) // LANES):
        part = squares[b * LANES : min(n_support, (b + 1) * LANES)]
        n_alike = 0
        for lane in range(part.size):  # no way out of it, so that many are compared at once
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


@njit(cache=True, nogil=True)
def move_vector(vectors, dual, values, old, new):
    """Write support vector ``old`` over ``new``, with all that is known about it."""
    for j in range(vectors.shape[1]):
        vectors[new // LANES, j, new % LANES] = vectors[old // LANES, j, old % LANES]
    for part in range(N_PARTS):  # a slice would take seconds to compile
        dual[part, new] = dual[part, old]
    values[new] = values[old]


@njit(cache=True, nogil=True)
def add_vector(vectors, dual, n_support, row, square, values, norm, pull, age):
    """Add ``pull`` times a row to the ranker; the number of support vectors after.

    A row that is a support vector already adds to its coefficient, and one whose coefficient has
    become zero, in the average too, is forgotten. A new one comes last.
    """
    same = find_vector(vectors, dual[SQUARE], n_support, row, square)
    if same < 0:
        for j in range(row.size):
            vectors[n_support // LANES, j, n_support % LANES] = row[j]
        dual[COEF, n_support], dual[DRIFT, n_support] = pull, age * pull
        dual[NORM, n_support], dual[INVERSE, n_support] = norm, 1.0 / norm
        dual[SQUARE, n_support], dual[CLOSE, n_support] = square, norm
        values[n_support] = norm
        return n_support + 1
    dual[COEF, same] += pull
    dual[DRIFT, same] += age * pull
    if dual[COEF, same] == 0.0 and dual[DRIFT, same] == 0.0:
        move_vector(vectors, dual, values, n_support - 1, same)
        return n_support - 1
    return n_support


@njit(cache=True, nogil=True, forceinline=True)
def support_step(
    model, vectors, dual, n_support, row, square, values, norm, strength, lower, upper
):
    """Learn a row whose kernel values are known; the number of support vectors after, or -1.

    The step is the linear learner's, with k(x, x) in place of the squared norm. -1 says that the
    row was refused: a value is not finite, or k(x, x) is not above zero (zero is right for a row of
    zeros only, which has no direction), and nothing has changed.
    """
    _, padded, drift, counts, rule, _ = model
    score = weighted_sum(dual[COEF], values, n_support)
    positive = norm > 0.0 or (norm == 0.0 and square == 0.0)
    if not (positive and norm < MAX_SQ_NORM and square < MAX_SQ_NORM and abs(score) < inf):
        return -1
    if strength <= 0.0:
        return n_support
    age = counts[0] if drift.size > 0 else 0.0
    softness, cap = limits(rule, strength)
    pull, moved, finite = exact_step(padded, drift, age, score, norm, lower, upper, softness, cap)
    if not finite:
        return -1
    counts[0] += 1.0
    counts[1] += moved
    if pull == 0.0:
        return n_support
    return add_vector(vectors, dual, n_support, row, square, values, norm, pull, age)


@njit(cache=True, nogil=True)
def largest(values):
    """The largest of some numbers; four at a time, as each comparison waits for the last one."""
    first = second = third = fourth = values[0]
    whole = values.size // 4 * 4
    for i in range(0, whole, 4):
        first = values[i] if values[i] > first else first
        second = values[i + 1] if values[i + 1] > second else second
        third = values[i + 2] if values[i + 2] > third else third
        fourth = values[i + 3] if values[i + 3] > fourth else fourth
    for i in range(whole, values.size):
        first = values[i] if values[i] > first else first
    return max(max(first, second), max(third, fourth))


@njit(cache=True, nogil=True)
def position(values, value):
    """Where a value stands that is known to be there; the last place if it is NaN."""
    i = 0
    while i < values.size - 1 and values[i] != value:
        i += 1
    return i


@njit(cache=True, nogil=True)
def note_closeness(dual, n_support, values, scratch):
    """Keep account of how close the newest vector is to the others, by its kernel values."""
    last = n_support - 1
    others, inverses, closeness = scratch[:last], dual[INVERSE], dual[CLOSE]
    inverse = inverses[last]
    for i in range(last):
        others[i] = values[i] * inverses[i] * values[i]  # the square alone might overflow
        close = values[i] * inverse * values[i]
        closeness[i] = close if close > closeness[i] else closeness[i]
    closeness[last] = largest(others) if last > 0 else 0.0


@njit(cache=True, nogil=True)
def spare_vector(dual, n_support, values, strategy, trials, scratch):
    """The support vector, the newest left out, that it seems to cost least to do without.

    ``values`` are the kernel values of the newest. What is left over when the vector is projected,
    under SIMPLE on the newest, under NEAREST on its nearest, counts by the square of the
    coefficient that predicts: the average, if ``trials`` is not 0.
    """
    gains = scratch[: n_support - 1]
    coefs, drifts, norms, closeness = dual[COEF], dual[DRIFT], dual[NORM], dual[CLOSE]
    age = 1.0 / trials if trials > 0.0 else 0.0
    inverse = dual[INVERSE, n_support - 1]
    if strategy == SIMPLE:
        for i in range(gains.size):
            coef = coefs[i] - age * drifts[i]
            gains[i] = coef * coef * (values[i] * inverse * values[i] - norms[i])
    else:
        for i in range(gains.size):
            coef = coefs[i] - age * drifts[i]
            gains[i] = coef * coef * (closeness[i] - norms[i])
    return position(gains, largest(gains))


@njit(cache=True, nogil=True)
def nearest_vector(dual, n_support, spare, spare_values, scratch):
    """The support vector most in the direction of the spare one, or -1; and whether it was known.

    ``spare_values`` are the kernel values of the spare one. The account of its closeness is too
    high after its nearest has been dropped; it is put right here, and another one may then be
    cheaper to do without.
    """
    last = n_support - 1
    others, inverses = scratch[:last], dual[INVERSE]
    for i in range(last):
        others[i] = spare_values[i] * inverses[i] * spare_values[i]
    others[spare] = 0.0
    most = largest(others)
    nearest = position(others, most) if most > 0.0 else -1
    close = max(most, spare_values[last] * inverses[last] * spare_values[last])
    known = not dual[CLOSE, spare] > close * (1.0 + CLOSE_ENOUGH)  # NaN is taken as it is
    dual[CLOSE, spare] = close
    return nearest, known


@njit(cache=True, nogil=True)
def shares(norm, near_norm, between, to_newest, to_nearest):
    """Coefficients of the projection of a vector on the newest and on its nearest one.

    ``between`` is the kernel value of the two, ``to_newest`` and ``to_nearest`` are the vector's.
    """
    area = norm * near_norm - between * between
    if not area > MIN_ANGLE * norm * near_norm:
        return to_newest / norm, 0.0
    on_newest = (to_newest * near_norm - to_nearest * between) / area
    return on_newest, (to_nearest * norm - to_newest * between) / area


@njit(cache=True, nogil=True)
def drop_vector(vectors, dual, n_support, values, spare, nearest, to_nearest, strategy, trials):
    """Replace a support vector by its projection on the newest, and on its nearest; then drop it.

    SIMPLE projects the last iterate on the newest alone. Its average is projected on both too: it
    would shrink to nothing otherwise. ``to_nearest`` is the kernel value of spare and nearest,
    which is -1 where there is none. As the newest row is one of those projected on, its own score
    stays as the step left it. The newest stays the last.
    """
    last = n_support - 1
    norm, to_newest = values[last], values[spare]
    on_newest, on_nearest = to_newest / norm, 0.0
    mean_on_newest, mean_on_nearest = on_newest, 0.0
    if nearest >= 0:
        mean_on_newest, mean_on_nearest = shares(
            norm, dual[NORM, nearest], values[nearest], to_newest, to_nearest
        )
        if strategy == NEAREST:
            on_newest, on_nearest = mean_on_newest, mean_on_nearest
    coef, drift = dual[COEF, spare], dual[DRIFT, spare]
    # the average is coefficient - drift / trials: this adds the share of the one to the other
    dual[COEF, last] += on_newest * coef
    dual[DRIFT, last] += mean_on_newest * drift + trials * (on_newest - mean_on_newest) * coef
    if nearest >= 0:
        dual[COEF, nearest] += on_nearest * coef
        dual[DRIFT, nearest] += (
            mean_on_nearest * drift + trials * (on_nearest - mean_on_nearest) * coef
        )
    move_vector(vectors, dual, values, last - 1, spare)
    move_vector(vectors, dual, values, last, last - 1)
    return last


@njit(cache=True, nogil=True)
def keep_budget(kernel, budget, vectors, dual, n_support, row, values, scratch, trials):
    """Do without support vectors until the budget holds; the number that is left.

    ``row`` and ``scratch`` from its row 2 on are overwritten. ``trials`` is their number if there
    is an average, else 0.
    """
    spare_values, costs = scratch[2], scratch[3]
    while n_support > budget.size:
        spare = spare_vector(dual, n_support, values, budget.strategy, trials, costs)
        nearest, to_nearest = -1, 0.0
        if budget.strategy == NEAREST or trials > 0.0:
            for j in range(row.size):
                row[j] = vectors[spare // LANES, j, spare % LANES]
            kernel_values(kernel, vectors, n_support, row, spare_values)
            nearest, known = nearest_vector(dual, n_support, spare, spare_values, costs)
            to_nearest = spare_values[nearest]
            if budget.strategy == NEAREST and not known:
                continue
        turn = (spare, nearest, to_nearest, budget.strategy, trials)
        n_support = drop_vector(vectors, dual, n_support, values, *turn)
    return n_support


@njit(cache=True, nogil=True)
def walk_support(
    memory,
    vectors,
    dual,
    scratch,
    n_support,
    kernel,
    budget,
    data,
    columns,
    starts,
    lower,
    upper,
    sample_weight,
    order,
    predicted,
    first,
):
    """Learn rows in dual form from number ``first`` on, until the room for vectors is used up.

    ``scratch`` is overwritten. Returns the number to go on from, the first row that was refused or
    -1, and the number of support vectors.
    """
    memory, vectors, dual = borrowed(memory), borrowed(vectors), borrowed(dual)
    data, scratch = borrowed(data), borrowed(scratch)
    model = view(memory)
    _, padded, drift, counts, _, strength_of_all = model
    width, room = vectors.shape[1], dual.shape[1]
    row, values = scratch[0, :width], scratch[1]
    strength = strength_of_all
    for t in range(first, lower.size):
        if n_support == room:
            return t, -1, n_support
        i = order[t] if order.size > 0 else t
        if starts is None:
            square = read_row(data[i * width : (i + 1) * width], None, row)
        else:
            part = slice(starts[i], starts[i + 1])
            square = read_row(data[part], columns[part], row)
        if sample_weight.size > 0:
            strength = strength_of_all * sample_weight[i]
        kernel_values(kernel, vectors, n_support, row, values)
        if predicted.size > 0:
            predicted[i] = rank_support(padded, drift, counts[0], dual, n_support, values, lower[i])
        after = support_step(
            model,
            vectors,
            dual,
            n_support,
            row,
            square,
            values,
            kernel_norm(kernel, square),
            strength,
            lower[i],
            upper[i],
        )
        if after < 0:
            return t, i, n_support
        if budget.size > 0 and after > n_support:
            if budget.strategy == NEAREST:
                note_closeness(dual, after, values, scratch[2])
            trials = counts[0] if drift.size > 0 else 0.0
            after = keep_budget(kernel, budget, vectors, dual, after, row, values, scratch, trials)
        n_support = after
    return lower.size, -1, n_support


@njit(cache=True, nogil=True, forceinline=True)
def rank_support(padded, drift, trials, dual, n_support, values, guess):
    """Rank of a row whose kernel values are known, by the average if there is one."""
    score = weighted_sum(dual[COEF], values, n_support)
    if drift.size == 0 or trials == 0.0:
        return rank_near(padded, score, guess)
    score -= weighted_sum(dual[DRIFT], values, n_support) / trials
    return rank_by_average(padded, drift, trials, score, guess)


@njit(cache=True, nogil=True)
def support_scores(coefs, vectors, kernel, data, columns, starts, out):
    """Score of every row by the dual coefficients; the first row that has none, or -1."""
    width = vectors.shape[1]
    row, values = np.empty(width), np.empty(vectors.shape[0] * LANES)
    for i in range(out.size):
        if starts is None:
            square = read_row(data[i * width : (i + 1) * width], None, row)
        else:
            part = slice(starts[i], starts[i + 1])
            square = read_row(data[part], columns[part], row)
        kernel_values(kernel, vectors, coefs.size, row, values)
        out[i] = weighted_sum(coefs, values, coefs.size)
        if not (square < MAX_SQ_NORM and abs(out[i]) < inf):
            return i
    return -1
