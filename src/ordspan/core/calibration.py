"""Compiled: probabilities of the ranks from the latent score alone.

P(y <= k) = sigmoid(cuts[k] - slope * score), learned by the likelihood of the label's range. See
the page on the mathematics. Arrays are copied and scaled in loops: Numba takes seconds to compile
the message of an assignment to a slice whose shape does not fit.
"""

from math import exp, expm1, inf, log, log1p, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordspan.core.compiling import compiled, without_refcount
from ordspan.core.memory import MAX_TRIALS, Floats

N_HEAD = 10
N_CLASSES, CONTAIN, ROWS, WEIGHT, PENDING = range(5)
RATE, UNIT, SLOPE, SLOPE_GRADIENT, SLOPE_CURVATURE = range(5, N_HEAD)
"""Head of the state: number of ranks, whether a range must contain the whole label, rows counted
and their weight, weight since the last step; how far a miss moves a reach, factor of the scores
among the bands, and the slope with its gradient and curvature."""

N_CUT_PARTS = 6  # arrays of K + 1 numbers, the ends unused: see `Parts`

BLOCK = 32
"""Rows between two steps of the slope and the cuts."""
FORGETTING = 2.0
"""Row t of a stream is weighted by about t to this power: early scores come from a ranker that knew
little."""
RIDGE = 0.01
"""Ridge penalty: negligible beside a few rows, but it keeps the optimum finite."""
CAUTION = 4.0
"""Curvatures are inflated as if this many more rows had been seen."""
MAX_MOVE = 2.0
"""Longest move of a cut in one step, in log-odds."""
CLOSING = 0.9
"""Largest fraction of the slope, or of the gap between two cuts, that one step may remove."""
SPARE, THIN = 1.0, 0.1
"""Prior weight of every rank: as if seen in SPARE rows, or in THIN of its equal share of the rows
if there are few. A rank never seen keeps a probability, and cuts stay apart."""
NEW_CUT_GAP = 2.0
"""Width of the band, in log-odds, that an outermost rank keeps when one is added beyond it."""
MAX_STEPS, CLOSE = 200, 1e-9
"""A batch fit ends after MAX_STEPS steps, or when no cut moves by more than CLOSE."""
MIN_GAP, MAX_PART = 1e-50, 1e250
"""Limits of a state read from a file, far beyond what is learned; outside, products overflow."""
MAX_SCORE, MAX_SLOPE = 1e100, 1e200
"""Scores are clipped to MAX_SCORE, whose square and product with a slope are still finite."""


class Parts(NamedTuple):
    """Views into the state, by name."""

    head: Floats
    cuts: Floats  # minus infinity, K - 1 sorted cuts, plus infinity
    gradient: Floats
    curvature: Floats
    coupling: Floats  # of each cut with the next
    border: Floats  # of each cut with the slope
    bands: Floats  # edges of the bands of scores that ranges are made of
    coverage: Floats  # sorted
    reach: Floats  # in log-odds, one for each coverage


def new_state(n_classes: int, coverage: Floats, contain: bool) -> Floats:
    """The state of a calibration that has seen nothing: all ranks are equally probable."""
    state = np.zeros(N_HEAD + N_CUT_PARTS * (n_classes + 1) + 2 * coverage.size)
    state[N_CLASSES], state[CONTAIN] = n_classes, contain
    parts = parts_view.py_func(state)
    share = np.arange(n_classes + 1) / n_classes
    with np.errstate(divide="ignore"):
        parts.cuts[:] = np.log(share) - np.log1p(-share)
    parts.bands[:] = parts.cuts
    parts.coverage[:] = coverage
    parts.reach[:] = np.log1p(coverage) - np.log1p(-coverage)  # right if probabilities are
    return state


def state_with_rank(state: Floats, rank: int) -> Floats:
    """A copy with one more rank, number ``rank``; between two others its band is almost empty."""
    old = parts_view.py_func(state)
    grown = new_state(old.cuts.size, old.coverage, bool(state[CONTAIN]))
    new = parts_view.py_func(grown)
    new.head[ROWS:], new.reach[:] = old.head[ROWS:], old.reach
    n_classes = old.cuts.size - 1
    at = min(rank, n_classes)
    for ours, theirs in zip(new[1:7], old[1:7], strict=True):
        ours[:] = np.insert(theirs, at, 0.0)
    new.coupling[at - 1] = 0.0
    if rank == 1:
        new.cuts[1] = old.cuts[1] - NEW_CUT_GAP
    elif rank > n_classes:
        new.cuts[at] = old.cuts[at - 1] + NEW_CUT_GAP
    else:
        band = old.cuts[at] - old.cuts[at - 1]
        new.cuts[at] = old.cuts[at - 1] + min(0.5 * band, 1.0 / max(1.0, new.head[ROWS]))
    follow_cuts.py_func(new)
    return grown


def state_fault(state: NDArray[Any], n_classes: int) -> str | None:
    """Why an untrusted array cannot be the state for this many ranks, or None.

    >>> state_fault(np.zeros(3), 2)
    'is not for 2 ranks'
    """
    n_levels, odd = divmod(state.size - N_HEAD - N_CUT_PARTS * (n_classes + 1), 2)
    if state.ndim != 1 or n_levels < 1 or odd or state[N_CLASSES] != n_classes:
        return f"is not for {n_classes} ranks"
    if state.dtype != np.float64 or not state.dtype.isnative:
        return f"is of {state.dtype.str}, not of this machine's float64"
    parts = parts_view.py_func(state)
    inner = np.concatenate([parts.head, *(part[1:-1] for part in parts[1:7]), parts.coverage])
    if not np.isfinite(inner).all() or np.isnan(parts.reach).any():
        return "has numbers that are not finite"
    for edges in (parts.cuts, parts.bands):
        if edges[0] != -inf or edges[-1] != inf or (np.diff(edges[1:-1]) < 0.0).any():
            return "has cuts that are not sorted"
    if (np.diff(parts.cuts) < MIN_GAP).any():
        return "has cuts that are not apart"
    levels = np.concatenate([[0.0], parts.coverage, [1.0]])
    if (np.diff(levels) <= 0.0).any() or (parts.reach < 0.0).any():
        return "has impossible coverages or reaches"
    tied = np.minimum(parts.curvature[:-1], parts.curvature[1:])
    if (parts.coupling > 0.0).any() or (parts.coupling[:-1] < -tied).any():
        return "has impossible curvatures"
    if np.abs(inner).max() > MAX_PART or parts.head[SLOPE] > MAX_SLOPE:
        return "has numbers that are too large, or too steep a slope"
    if parts.head[UNIT] not in (1.0, parts.head[SLOPE]):
        return "has bands that are neither thresholds nor cuts"
    counts = parts.head[[CONTAIN, ROWS, WEIGHT, PENDING, RATE, UNIT, SLOPE, SLOPE_CURVATURE]]
    if (counts < 0.0).any() or counts[1] > MAX_TRIALS or counts[0] not in (0.0, 1.0):
        return "has impossible counts"
    return None


@compiled(inline="always")
def parts_view(state):
    """Views into a state, by name."""
    state = without_refcount(state)
    size = np.int64(state[N_CLASSES]) + 1
    at = N_HEAD + N_CUT_PARTS * size
    n_levels = (state.size - at) // 2
    cut_parts = state[N_HEAD:at].reshape(N_CUT_PARTS, size)
    return Parts(
        state[:N_HEAD],
        cut_parts[0],
        cut_parts[1],
        cut_parts[2],
        cut_parts[3],
        cut_parts[4],
        cut_parts[5],
        state[at : at + n_levels],
        state[at + n_levels :],
    )


@compiled
def bounded(score):
    """A score whose square is finite."""
    return max(-MAX_SCORE, min(MAX_SCORE, score))


@compiled
def two_sigmoids(x):
    """1 / (1 + exp(-x)) and its complement, without overflow."""
    tail = exp(-abs(x))
    large = 1.0 / (1.0 + tail)
    return (large, tail * large) if x >= 0.0 else (tail * large, large)


@compiled
def log_sigmoid(x):
    """Logarithm of `sigmoid`."""
    return -log1p(exp(-x)) if x >= 0.0 else x - log1p(exp(x))


@compiled
def log_probability(cuts, shift, lower, upper):
    """Logarithm of the probability of ranks lower..upper, exact however small it is."""
    high, low = cuts[upper], cuts[lower - 1]
    return log_sigmoid(high - shift) + log_sigmoid(shift - low) + log(-expm1(low - high))


@compiled
def crowding_of(gap):
    """Derivative of log(1 - exp(-gap)), a term of every range's log-likelihood."""
    return 1.0 / -expm1(-gap) - 1.0


@compiled
def accumulate(parts, score, lower, upper, weight):
    """Add gradient and curvature of the log-likelihood of one label; open ends add nothing.

    The curvature between the ends of a range that are not neighbours is replaced by a bound on
    the diagonal, so that the matrix stays tridiagonal with a border.
    """
    head = parts.head
    score = bounded(score)
    shift = head[SLOPE] * score
    high, low = parts.cuts[upper], parts.cuts[lower - 1]
    over, not_over = two_sigmoids(shift - high)
    under, not_under = two_sigmoids(low - shift)
    crowding = crowding_of(high - low)
    high_pull, low_pull = over + crowding, under + crowding
    parts.gradient[upper] += weight * high_pull
    parts.gradient[lower - 1] -= weight * low_pull
    head[SLOPE_GRADIENT] -= weight * score * (over - under)
    high_bend, low_bend = weight * over * not_over, weight * under * not_under
    tie = weight * crowding * (1.0 + crowding)
    if upper == lower:
        parts.coupling[lower - 1] -= tie
    else:
        tie *= 2.0
    parts.curvature[upper] += high_bend + tie
    parts.curvature[lower - 1] += low_bend + tie
    parts.border[upper] -= score * high_bend
    parts.border[lower - 1] -= score * low_bend
    head[SLOPE_CURVATURE] += score * score * (high_bend + low_bend)


@compiled
def spare_weight(rows, n_classes):
    """Prior weight of a rank after this many rows."""
    return min(SPARE, THIN * rows / n_classes)


@compiled
def newton_step(parts, rows, share, tension):
    """One damped Newton step of the cuts and the slope; returns the longest move, in log-odds.

    ``rows`` is the number of rows behind the curvature, ``share`` the fraction of them behind the
    gradient, and ``tension`` the ridge penalty of the slope.
    """
    cuts, n_cuts = parts.cuts, parts.cuts.size - 2
    damping, spare = 1.0 + CAUTION / max(rows, 1.0), spare_weight(rows, n_cuts + 1)
    pivots, plain, bordered, coupling = np.zeros((4, n_cuts + 2))
    push = tie = 0.0  # of the cut below
    for i in range(1, n_cuts + 1):  # Gaussian elimination down, with two right-hand sides
        pivots[i] = parts.curvature[i] * damping + RIDGE + tie
        plain[i] = parts.gradient[i] + share * (push - RIDGE * cuts[i])
        bordered[i] = parts.border[i]
        if i > 1:
            ratio = coupling[i - 1] / pivots[i - 1]
            pivots[i] -= ratio * coupling[i - 1]
            plain[i] -= ratio * plain[i - 1]
            bordered[i] -= ratio * bordered[i - 1]
        if i < n_cuts:
            crowding = crowding_of(cuts[i + 1] - cuts[i])
            push, tie = spare * crowding, spare * crowding * (1.0 + crowding)
            pivots[i] += tie
            plain[i] -= share * push
            coupling[i] = parts.coupling[i] - tie
    for i in range(n_cuts, 0, -1):  # and up
        plain[i] = (plain[i] - coupling[i] * plain[i + 1]) / pivots[i]
        bordered[i] = (bordered[i] - coupling[i] * bordered[i + 1]) / pivots[i]
    steeper = slope_step(parts, damping, share, tension, plain, bordered)
    longest = abs(steeper) * sqrt(parts.head[SLOPE_CURVATURE] / max(rows, 1.0))
    for i in range(1, n_cuts + 1):
        plain[i] -= steeper * bordered[i]
        longest = max(longest, abs(plain[i]))
    part = MAX_MOVE / max(MAX_MOVE, longest)
    for i in range(1, n_cuts):
        room, closing = cuts[i + 1] - cuts[i], plain[i] - plain[i + 1]
        if part * closing > CLOSING * room:
            part = CLOSING * room / closing
    for i in range(1, n_cuts + 1):
        cuts[i] += part * plain[i]
    parts.head[SLOPE] = min(MAX_SLOPE, parts.head[SLOPE] + part * steeper)
    return part * longest


@compiled
def slope_step(parts, damping, share, tension, plain, bordered):
    """The step of the slope given the solved cuts; a positive slope stays positive."""
    head = parts.head
    stiffness = head[SLOPE_CURVATURE] * damping + tension
    force = head[SLOPE_GRADIENT] - share * tension * head[SLOPE]
    for i in range(1, plain.size - 1):
        stiffness -= parts.border[i] * bordered[i]
        force -= parts.border[i] * plain[i]
    if stiffness > 0.0:
        return max(-CLOSING * head[SLOPE], force / stiffness)
    return -CLOSING * head[SLOPE] if force < 0.0 else 0.0  # too steep to feel any curvature


@compiled
def follow_cuts(parts):
    """Base ranges on the bands between the cuts, in log-odds."""
    for i in range(parts.cuts.size):
        parts.bands[i] = parts.cuts[i]
    parts.head[UNIT] = parts.head[SLOPE]


@compiled
def forget(parts, kept):
    """Keep a fraction of the curvature and drop the gradient, which the last step used up."""
    for i in range(parts.cuts.size):
        parts.gradient[i] = 0.0
        parts.curvature[i] *= kept
        parts.coupling[i] *= kept
        parts.border[i] *= kept
    parts.head[SLOPE_CURVATURE] *= kept
    parts.head[SLOPE_GRADIENT] = parts.head[PENDING] = 0.0


@compiled
def log_likelihood(parts, tension, spare, scores, lower, upper, sample_weight):
    """Log-likelihood of labels minus the ridge penalties and the penalty on narrow bands."""
    total = -0.5 * tension * parts.head[SLOPE] * parts.head[SLOPE]
    cuts, n_classes = parts.cuts, parts.cuts.size - 1
    for i in range(1, n_classes):
        total -= 0.5 * RIDGE * cuts[i] * cuts[i]
        total += spare * log(-expm1(cuts[i] - cuts[i + 1]))
    for i in range(scores.size):
        shift = parts.head[SLOPE] * bounded(scores[i])
        total += sample_weight[i] * log_probability(cuts, shift, lower[i], upper[i])
    return total


@compiled
def fit_cuts(state, scores, lower, upper, sample_weight):
    """Find the slope and the cuts of maximum likelihood; weights have mean 1."""
    parts = parts_view(state)
    rows, tension = sample_weight.sum(), 0.0
    for i in range(scores.size):
        tension += RIDGE * sample_weight[i] / rows * bounded(scores[i]) ** 2
    spare = spare_weight(rows, parts.cuts.size - 1)
    value = log_likelihood(parts, tension, spare, scores, lower, upper, sample_weight)
    for _ in range(MAX_STEPS):
        forget(parts, 0.0)
        for i in range(scores.size):
            accumulate(parts, scores[i], lower[i], upper[i], sample_weight[i])
        before, slope = parts.cuts.copy(), parts.head[SLOPE]
        longest = newton_step(parts, rows, 1.0, tension)
        after = log_likelihood(parts, tension, spare, scores, lower, upper, sample_weight)
        while after < value and longest > CLOSE:
            longest *= 0.5
            for i in range(1, before.size - 1):
                parts.cuts[i] = 0.5 * (parts.cuts[i] + before[i])
            parts.head[SLOPE] = 0.5 * (parts.head[SLOPE] + slope)
            after = log_likelihood(parts, tension, spare, scores, lower, upper, sample_weight)
        value = after
        if longest <= CLOSE:
            break
    forget(parts, 1.0)


@compiled
def log_probabilities(state, scores, lower, upper, out):
    """`log_probability` of each row's ranks lower..upper; finite for every score."""
    parts = parts_view(state)
    for i in range(scores.size):
        shift = parts.head[SLOPE] * bounded(scores[i])
        out[i] = log_probability(parts.cuts, shift, lower[i], upper[i])


@compiled
def probabilities(state, scores, out):
    """Probability of every rank for every score: rows of ``out`` sum to 1."""
    parts = parts_view(state)
    n_classes = out.shape[1]
    filled = np.empty(n_classes)  # 1 - exp(-gap): what a sigmoid gains between two cuts
    for k in range(n_classes):
        filled[k] = -expm1(parts.cuts[k] - parts.cuts[k + 1])
    for i in range(scores.size):
        shift, over = parts.head[SLOPE] * bounded(scores[i]), 1.0
        for k in range(n_classes):
            under, rest = two_sigmoids(parts.cuts[k + 1] - shift)
            out[i, k] = over * under * filled[k]
            over = rest
