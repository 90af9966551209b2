"""Compiled: probabilities of the ranks and prediction ranges, from the latent score alone.

Probabilities: with t = slope * score, P(y <= k) = sigmoid(cuts[k] - t), learned by the likelihood
of the label's range. A label l..u whose cuts are D = cuts[u] - cuts[l - 1] apart has

    -log P = softplus(t - cuts[u]) + softplus(cuts[l - 1] - t) - log(1 - exp(-D)),

a convex function of slope and cuts, without a difference of nearly equal numbers. The score enters
by two sigmoids, p = sigmoid(t - cuts[u]) and q = sigmoid(cuts[l - 1] - t). With e = 1 / expm1(D):

    derivative of log P by     t: q - p     cuts[u]: p + e     cuts[l - 1]: -(q + e)
    curvature by               t: p (1 - p) + q (1 - q)        D: e (1 + e)

The predicted rank is the median, the smallest rank k with P(y <= k) >= 1/2: that of t among cuts.

Ranges: the range at a coverage holds every rank whose band of scores, bands[k - 1]..bands[k], lies
within `reach` of the score, and the median. In a stream the bands are those between the cuts, in
log-odds, and one of them holds the median; in a batch those between the ranker's own thresholds.

Arrays are filled in loops: for a slice assignment Numba compiles its shape error, which takes
seconds.
"""

from math import exp, expm1, inf, log, log1p, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordspan.core.compiling import compiled, without_refcount
from ordspan.core.state import MAX_TRIALS, Floats, wrong_type

N_HEAD = 10
N_CLASSES, CONTAIN, ROWS, WEIGHT, PENDING = range(5)
RATE, SCORE_FACTOR, SLOPE, SLOPE_GRADIENT, SLOPE_CURVATURE = range(5, N_HEAD)
"""Head of the state: number of ranks, whether a range must contain the whole label, rows counted
and their weight, weight since the last step; how far a miss moves a reach, factor of the scores
among the bands, and the slope with its gradient and curvature."""

N_CUT_PARTS = 6  # arrays of K + 1 numbers, the ends unused: see `Parts`

BLOCK, FIRST_BLOCKS = 32, 1.0 / 16.0
"""Rows between two steps of the slope and the cuts: BLOCK, or this part of all rows if smaller."""
FORGETTING = 2.0
"""Row t of a stream is weighted by about t to this power: early scores come from a ranker that knew
little."""
RIDGE = 0.01  # ridge penalty: negligible beside a few rows, but it keeps the optimum finite
DAMPING_ROWS = 4.0  # curvatures are inflated as if this many more rows had been seen
MAX_MOVE = 2.0  # longest move of a cut in one step, in log-odds
CLOSING = 0.9
"""Largest fraction of the slope, or of the gap between two cuts, that one step may remove."""
PRIOR_ROWS, PRIOR_SHARE = 1.0, 0.1
"""Prior weight of every rank: as if seen in PRIOR_ROWS rows, or in PRIOR_SHARE of its equal share
of the rows if there are few. A rank never seen keeps a probability, and cuts stay apart."""
NEW_CUT_GAP = 2.0
"""Width of the band, in log-odds, that an outermost rank keeps when one is added beyond it."""
MAX_STEPS, CLOSE = 200, 1e-9
"""A batch fit ends after MAX_STEPS steps, or when no cut moves by more than CLOSE."""
MIN_GAP, MAX_PART = 1e-50, 1e250
"""Limits of a state read from a file, far beyond what is learned; outside, products overflow."""
MAX_SCORE, MAX_SLOPE = 1e100, 1e200
"""Scores are clipped to MAX_SCORE, whose square and product with a slope are still finite: by
`clip_score` in a stream, by `clip_scores` of the learners in a batch."""

SLOWNESS, RATES, RATE_EVERY = 0.6, 256, 32
"""The reach of a range moves by t^-SLOWNESS log-odds in row t; after RATES rows this rate is
updated only every RATE_EVERY rows, a power of 2."""
LEVEL = 0.5
"""All cuts follow the scores together at this fraction of that rate: the level of the scores moves
as a kernel learner grows, or as a stream drifts."""
EVERY_ROW, SELDOM = 8192, 8
"""The likelihood uses each of the first EVERY_ROW rows, later about one in SELDOM, a power of 2."""
START_REACH = 40.0  # where an infinite reach restarts when a stream continues


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


def with_rank(state: Floats, rank: int) -> Floats:
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
    narrow = min(0.5 * (old.cuts[at] - old.cuts[at - 1]), 1.0 / max(1.0, new.head[ROWS]))
    new.cuts[at] = old.cuts[at - 1] + (NEW_CUT_GAP if rank > n_classes else narrow)
    if rank == 1:
        new.cuts[1] = old.cuts[1] - NEW_CUT_GAP
    follow_cuts.py_func(new)
    return grown


def why_unusable(state: NDArray[Any], n_classes: int) -> str | None:
    """Why an untrusted array cannot be the state for this many ranks, or None.

    >>> why_unusable(np.zeros(3), 2)
    'is not for 2 ranks'
    """
    n_levels, odd = divmod(state.size - N_HEAD - N_CUT_PARTS * (n_classes + 1), 2)
    if state.ndim != 1 or n_levels < 1 or odd or state[N_CLASSES] != n_classes:
        return f"is not for {n_classes} ranks"
    if fault := wrong_type(state):
        return fault
    parts = parts_view.py_func(state)
    inner = np.concatenate([parts.head, *(part[1:-1] for part in parts[1:7]), parts.coverage])
    if not (np.abs(inner) <= MAX_PART).all() or np.isnan(parts.reach).any():
        return "has numbers that are not finite, or too large"
    for edges, gap in ((parts.cuts, MIN_GAP), (parts.bands, 0.0)):
        if edges[0] != -inf or edges[-1] != inf or (np.diff(edges) < gap).any():
            return "has cuts that are not sorted and apart"
    levels = np.concatenate([[0.0], parts.coverage, [1.0]])
    if (np.diff(levels) <= 0.0).any() or (parts.reach < 0.0).any():
        return "has impossible coverages or reaches"
    tied = np.minimum(parts.curvature[:-1], parts.curvature[1:])
    if (parts.coupling > 0.0).any() or (parts.coupling[:-1] < -tied).any():
        return "has impossible curvatures"
    head = parts.head
    fits = head[CONTAIN] in (0.0, 1.0) and head[ROWS] <= MAX_TRIALS and head[SLOPE] <= MAX_SLOPE
    if (np.delete(head, SLOPE_GRADIENT) < 0.0).any() or not fits:
        return "has impossible counts, or too steep a slope"
    if head[SCORE_FACTOR] not in (1.0, head[SLOPE]):
        return "has bands that are neither thresholds nor cuts"
    return None


@compiled(inline="always")
def parts_view(state):
    """Views into a state, by name."""
    state = without_refcount(state)
    size = np.int64(state[N_CLASSES]) + 1
    at = N_HEAD + N_CUT_PARTS * size
    n_levels = (state.size - at) // 2
    cuts, gradient, curvature, coupling, border, bands = state[N_HEAD:at].reshape(N_CUT_PARTS, size)
    head, coverage, reach = state[:N_HEAD], state[at : at + n_levels], state[at + n_levels :]
    return Parts(head, cuts, gradient, curvature, coupling, border, bands, coverage, reach)


@compiled
def clip_score(score):
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
    """log(1 / (1 + exp(-x))), without overflow."""
    return -log1p(exp(-x)) if x >= 0.0 else x - log1p(exp(x))


@compiled
def log_probability(cuts, shift, lower, upper):
    """Logarithm of the probability of ranks lower..upper, exact however small it is."""
    high, low = cuts[upper], cuts[lower - 1]
    return log_sigmoid(high - shift) + log_sigmoid(shift - low) + log(-expm1(low - high))


@compiled
def crowding_of(gap):
    """e = 1 / expm1(gap), the derivative of log(1 - exp(-gap)); finite terms for any gap."""
    return exp(-gap) / -expm1(-gap)


@compiled
def accumulate(parts, score, lower, upper, weight):
    """Add gradient and curvature of the log-likelihood of one label; open ends add nothing.

    The curvature between the ends of a range that are not neighbours is replaced by a bound on
    the diagonal, so that the matrix stays tridiagonal with a border.
    """
    head, shift = parts.head, parts.head[SLOPE] * score
    high, low = parts.cuts[upper], parts.cuts[lower - 1]
    over, not_over = two_sigmoids(shift - high)
    under, not_under = two_sigmoids(low - shift)
    crowding = crowding_of(high - low)
    parts.gradient[upper] += weight * (over + crowding)
    parts.gradient[lower - 1] -= weight * (under + crowding)
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
def prior_weight(rows, n_classes):
    """Prior weight of a rank after this many rows."""
    return min(PRIOR_ROWS, PRIOR_SHARE * rows / n_classes)


# The step solves
#     | T   b | | moves   |   | forces      |
#     | b'  c | | steeper | = | slope_force |
# where T (tridiagonal) is the curvature of the cuts, c that of the slope and b their border, with
# the ridge and the prior on the gaps. Eliminating the cuts one by one leaves the equation of the
# slope alone; its solution, put in from the last cut to the first, gives the moves.
@compiled
def newton_step(parts, rows, step_fraction, slope_ridge):
    """One damped Newton step of the cuts and the slope; returns the longest move, in log-odds.

    ``rows`` is the number of rows behind the curvature, ``step_fraction`` the fraction of them
    behind the gradient, and ``slope_ridge`` the ridge penalty of the slope.
    """
    head, cuts, n_cuts = parts.head, parts.cuts, parts.cuts.size - 2
    damping, prior = 1.0 + DAMPING_ROWS / max(rows, 1.0), prior_weight(rows, n_cuts + 1)
    pivots, moves, border, coupling = np.zeros((4, n_cuts + 2))  # the forces become the moves
    slope_force = head[SLOPE_GRADIENT] - step_fraction * slope_ridge * head[SLOPE]
    stiffness = head[SLOPE_CURVATURE] * damping + slope_ridge
    for i in range(1, n_cuts + 1):
        crowding = crowding_of(cuts[i + 1] - cuts[i])  # 0 beyond the last cut
        push, tie = step_fraction * prior * crowding, prior * crowding * (1.0 + crowding)
        pivots[i] += parts.curvature[i] * damping + RIDGE + tie
        moves[i] += parts.gradient[i] - step_fraction * RIDGE * cuts[i] - push
        border[i] += parts.border[i]
        coupling[i] = parts.coupling[i] - tie
        ratio = coupling[i] / pivots[i]
        pivots[i + 1] = tie - ratio * coupling[i]
        moves[i + 1] = push - ratio * moves[i]
        border[i + 1] = -ratio * border[i]
        stiffness -= border[i] * border[i] / pivots[i]
        slope_force -= border[i] * moves[i] / pivots[i]
    steeper = -CLOSING * head[SLOPE]  # a positive slope stays positive
    if stiffness > 0.0:
        steeper = max(steeper, slope_force / stiffness)
    elif slope_force >= 0.0:  # too steep to feel any curvature
        steeper = 0.0
    longest = abs(steeper) * sqrt(head[SLOPE_CURVATURE] / max(rows, 1.0))
    for i in range(n_cuts, 0, -1):
        moves[i] = (moves[i] - border[i] * steeper - coupling[i] * moves[i + 1]) / pivots[i]
        longest = max(longest, abs(moves[i]))
    fraction = MAX_MOVE / max(MAX_MOVE, longest)
    for i in range(1, n_cuts):
        room, closing = cuts[i + 1] - cuts[i], moves[i] - moves[i + 1]
        if fraction * closing > CLOSING * room:
            fraction = CLOSING * room / closing
    for i in range(1, n_cuts + 1):
        cuts[i] += fraction * moves[i]
    head[SLOPE] = min(MAX_SLOPE, head[SLOPE] + fraction * steeper)
    return fraction * longest


@compiled
def shift_cuts(parts, rate):
    """Move all cuts by the same step along the gradient, without changing the gaps."""
    force = 0.0
    for i in range(1, parts.cuts.size - 1):
        force += parts.gradient[i]
    for i in range(1, parts.cuts.size - 1):
        parts.cuts[i] += max(-MAX_MOVE, min(MAX_MOVE, rate * force))


@compiled
def follow_cuts(parts):
    """Base ranges on the bands between the cuts, in log-odds."""
    for i in range(parts.cuts.size):
        parts.bands[i] = parts.cuts[i]
    parts.head[SCORE_FACTOR] = parts.head[SLOPE]


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
def log_likelihood(parts, slope_ridge, scores, lower, upper, sample_weight):
    """Log-likelihood of labels minus the ridge penalties and the penalty on narrow bands."""
    cuts, slope, n_classes = parts.cuts, parts.head[SLOPE], parts.cuts.size - 1
    prior = prior_weight(sample_weight.sum(), n_classes)
    total = -0.5 * slope_ridge * slope * slope
    for i in range(1, n_classes):
        total -= 0.5 * RIDGE * cuts[i] * cuts[i]
        total += prior * log(-expm1(cuts[i] - cuts[i + 1]))
    for i in range(scores.size):
        shift = slope * scores[i]
        total += sample_weight[i] * log_probability(cuts, shift, lower[i], upper[i])
    return total


@compiled
def fit_cuts(state, scores, lower, upper, sample_weight):
    """Find the slope and the cuts of maximum likelihood; weights have mean 1."""
    parts = parts_view(state)
    rows, slope_ridge = sample_weight.sum(), 0.0
    for i in range(scores.size):
        slope_ridge += RIDGE * sample_weight[i] / rows * scores[i] ** 2
    problem = parts, slope_ridge, scores, lower, upper, sample_weight
    value = log_likelihood(*problem)
    for _ in range(MAX_STEPS):
        forget(parts, 0.0)
        for i in range(scores.size):
            accumulate(parts, scores[i], lower[i], upper[i], sample_weight[i])
        before, slope = parts.cuts.copy(), parts.head[SLOPE]
        longest = newton_step(parts, rows, 1.0, slope_ridge)
        after = log_likelihood(*problem)
        while after < value and longest > CLOSE:
            longest *= 0.5
            for i in range(1, before.size - 1):
                parts.cuts[i] = 0.5 * (parts.cuts[i] + before[i])
            parts.head[SLOPE] = 0.5 * (parts.head[SLOPE] + slope)
            after = log_likelihood(*problem)
        value = after
        if longest <= CLOSE:
            break
    forget(parts, 1.0)


@compiled
def log_probabilities(state, scores, lower, upper, out):
    """`log_probability` of each row's ranks lower..upper; finite for every score."""
    parts = parts_view(state)
    for i in range(scores.size):
        shift = parts.head[SLOPE] * scores[i]
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
        shift, over = parts.head[SLOPE] * scores[i], 1.0
        for k in range(n_classes):
            under, rest = two_sigmoids(parts.cuts[k + 1] - shift)
            out[i, k] = over * under * filled[k]
            over = rest


# -- ranges --------------------------------------------------------------------------------------


@compiled
def distance_to_bands(bands, place, lower, upper):
    """Smallest reach at which a range holds ranks lower..upper."""
    return max(0.0, bands[upper - 1] - place, place - bands[lower])


@compiled
def widen_ranges(state, reach, scores, low, high):
    """Widen ranges low..high, in place, to every rank within reach and those between."""
    parts = parts_view(state)
    bands, n_classes = parts.bands, parts.bands.size - 1
    for i in range(scores.size):
        place = parts.head[SCORE_FACTOR] * scores[i]
        while low[i] > 1 and place - bands[low[i] - 1] <= reach:
            low[i] -= 1
        while high[i] < n_classes and bands[high[i]] - place <= reach:
            high[i] += 1


@compiled
def miss_of(parts, bands, reach, score, lower, upper):
    """The part of a label that the range at a reach misses, from 0 to 1."""
    place, first, last = parts.head[SCORE_FACTOR] * score, lower, upper
    while first <= upper and distance_to_bands(bands, place, first, first) > reach:
        first += 1
    while last > first and distance_to_bands(bands, place, last, last) > reach:
        last -= 1
    if first == lower and last == upper:
        return 0.0
    if first > upper or parts.head[CONTAIN] > 0.0:
        return 1.0
    shift = parts.head[SLOPE] * score
    whole = log_probability(parts.cuts, shift, lower, upper)
    inside = log_probability(parts.cuts, shift, first, last)
    return -expm1(min(0.0, inside - whole))


# Row t changes a reach q to max(0, q + rate_t (miss_t - allowed)), where rates never grow. So
#     miss_t - allowed <= (q_{t+1} - q_t) / rate_t,
# and q stays in 0..B + rate_1, B being the largest distance of a label from its band: there is no
# miss once q >= B. Summed by parts, whatever the stream, after T rows
#     mean miss - allowed <= (B + rate_1) / (T rate_T).
@compiled(inline="always")
def update_reach(parts, rate, score, lower, upper):
    """Move the reach of every coverage up by the miss, and down by the allowed miss rate.

    A larger coverage uses at least the reach of a smaller one, so that ranges are nested.
    """
    far, used = distance_to_bands(parts.bands, parts.head[SCORE_FACTOR] * score, lower, upper), 0.0
    for j in range(parts.reach.size):
        used = max(used, parts.reach[j])
        miss = np.float64(far > used)  # for an exact label; a branch would be mispredicted
        if lower < upper and far > used:
            miss = miss_of(parts, parts.bands, used, score, lower, upper)
        parts.reach[j] = max(0.0, parts.reach[j] + rate * (miss - (1.0 - parts.coverage[j])))


@compiled(inline="always")
def observe_row(parts, score, lower, upper, weight):
    """Learn from the score that a row had before it was learned."""
    head, score = parts.head, clip_score(score)
    if weight <= 0.0 or (lower == 1 and upper == parts.cuts.size - 1):
        return  # no information
    if head[SCORE_FACTOR] != head[SLOPE]:
        leave_thresholds(parts)
    head[ROWS] += 1.0
    head[WEIGHT] += weight
    if head[WEIGHT] != head[ROWS]:
        weight = head[ROWS] * weight / head[WEIGHT]  # relative to the mean weight
    number = np.int64(head[ROWS])
    if number < RATES or number & (RATE_EVERY - 1) == 0:
        head[RATE] = head[ROWS] ** -SLOWNESS
    update_reach(parts, weight * head[RATE], score, lower, upper)
    stride = SELDOM if number > EVERY_ROW else 1
    scattered = ((number & 0x7FFFFFFF) * 0x9E3779B1) >> 29  # not in step with a periodic stream
    if scattered & (stride - 1) != 0:
        return
    accumulate(parts, score, lower, upper, stride * weight)
    head[PENDING] += stride * weight
    if head[PENDING] >= min(stride * BLOCK, FIRST_BLOCKS * head[ROWS]):
        shift_cuts(parts, LEVEL * head[RATE])
        rows = head[ROWS] / (1.0 + FORGETTING)
        slope_ridge = RIDGE * head[SLOPE_CURVATURE] / rows
        newton_step(parts, rows, min(1.0, head[PENDING] / rows), slope_ridge)
        follow_cuts(parts)
        forget(parts, max(0.0, 1.0 - FORGETTING * head[PENDING] / head[ROWS]))


@compiled(nogil=False)
def observe_one(state, score, lower, upper):
    """`observe_row` for a single row, called from Python."""
    observe_row(parts_view(state), score, lower, upper, 1.0)


@compiled
def leave_thresholds(parts):
    """Continue in a stream from a batch calibration."""
    parts.head[RATE] = max(1.0, parts.head[ROWS]) ** -SLOWNESS
    for j in range(parts.reach.size):
        reach = parts.reach[j] * parts.head[SLOPE] / parts.head[SCORE_FACTOR]
        parts.reach[j] = reach if reach < inf else START_REACH
    follow_cuts(parts)


@compiled
def observe(state, scores, lower, upper, sample_weight, predicted):
    """`observe_row` for rows one after the other; weights and predicted may be empty.

    ``predicted`` is filled with the medians before each row was observed.
    """
    parts = parts_view(state)
    for i in range(lower.size):
        if predicted.size > 0:
            shift, rank = parts.head[SLOPE] * clip_score(scores[i]), lower[i]
            while parts.cuts[rank] < shift:
                rank += 1
            while parts.cuts[rank - 1] >= shift:
                rank -= 1
            predicted[i] = rank
        weight = sample_weight[i] if sample_weight.size > 0 else 1.0
        observe_row(parts, scores[i], lower[i], upper[i], weight)


@compiled
def fit_reach(state, bands, fold, scores, lower, upper, sample_weight):
    """Smallest reach at which one more row, missed in full, would not make the misses too many.

    ``bands`` has one row for each fold; the unit is that of the scores.
    """
    parts = parts_view(state)
    parts.head[SCORE_FACTOR] = 1.0
    rows, enough = sample_weight.sum(), 0.0
    for i in range(scores.size):
        far = distance_to_bands(bands[fold[i]], scores[i], lower[i], upper[i])
        enough = max(enough, far)
    low = 0.0
    for j in range(parts.reach.size):
        allowed = rows - parts.coverage[j] * (rows + 1.0)
        high = enough if allowed >= 0.0 else inf
        reach = low  # a larger coverage needs at least as much
        while reach < high < inf:
            missed = 0.0
            for i in range(scores.size):
                own = bands[fold[i]], reach, scores[i], lower[i], upper[i]
                missed += sample_weight[i] * miss_of(parts, *own)
            low, high = (low, reach) if missed <= allowed else (reach, high)
            reach = 0.5 * (low + high)
            if reach == low:  # no number lies between
                break
        parts.reach[j] = low = high
