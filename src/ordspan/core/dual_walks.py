"""Compiled: support vectors of a learner in dual form, their budget, and its walks.

The step is the linear learner's, with k(x, x) in place of the squared norm. Beyond the budget a
vector is replaced by its projection onto two others: budgeted passive-aggressive learning with the
nearest neighbour (BPA-NN, Wang & Vucetic 2010).
"""

from math import inf
from typing import NamedTuple

import numpy as np

from ordspan.core.compiling import FAST, compiled, without_refcount
from ordspan.core.exact import exact_step, limits, satisfied
from ordspan.core.kernels import LANES, Kernel, kernel_norm, kernel_values, read_row
from ordspan.core.rows import MAX_SQ_NORM, MIN_SQ_NORM, row_at
from ordspan.core.state import TRIALS, UPDATES, Floats, age_of, view
from ordspan.core.walks import rank_score

N_PARTS = 6
COEF, CORRECTION, NORM, INVERSE, SQ_NORM, CLOSE = range(N_PARTS)
"""Rows of ``dual``: coefficient, correction to its average, k(s, s), its inverse, s.s, and
closeness: at least the largest squared length of the projection of s onto another vector."""

N_SCRATCH = 4
ROW, VALUES, SPARE_VALUES, COSTS = range(N_SCRATCH)
"""Rows of ``scratch``: the row that is learned, its kernel values, those of the vector that is to
go, and what is compared to find it."""

CLOSE_ENOUGH = 1e-9  # relative difference by which k(s, t) and k(t, s) may differ through rounding

MIN_ANGLE = 1e-12  # two vectors whose squared sine is below this count as one direction


class Support(NamedTuple):
    """Support vectors with room for more; how many there are is counted beside it."""

    kernel: Kernel
    vectors: Floats  # (blocks, d, LANES): block by block, feature by feature
    dual: Floats  # (N_PARTS, blocks * LANES)
    scratch: Floats  # (N_SCRATCH, blocks * LANES, but at least d)


# -- vectors -------------------------------------------------------------------------------------


@compiled(fastmath=FAST, forceinline=True)
def weighted_sum(coefs, values, n_support):
    """Sum of the first kernel values, each times its coefficient."""
    total = 0.0
    for i in range(n_support):
        total += coefs[i] * values[i]
    return total


@compiled
def find_vector(vectors, sq_norms, n_support, row, sq_norm):
    """Number of the support vector that equals a row, or -1."""
    for start in range(0, n_support, LANES):
        part = sq_norms[start : min(n_support, start + LANES)]
        n_alike = 0
        for lane in range(part.size):  # no early exit, so the loop vectorises
            n_alike += part[lane] == sq_norm
        for lane in range(part.size if n_alike else 0):
            same = part[lane] == sq_norm
            for j in range(row.size if same else 0):
                same = same and vectors[start // LANES, j, lane] == row[j]
            if same:
                return start + lane
    return -1


@compiled
def move_vector(support, old, new):
    """Write support vector ``old`` over ``new``, with all that is known about it."""
    vectors, dual, values = support.vectors, support.dual, support.scratch[VALUES]
    for j in range(vectors.shape[1]):
        vectors[new // LANES, j, new % LANES] = vectors[old // LANES, j, old % LANES]
    for part in range(N_PARTS):  # a slice would take seconds to compile
        dual[part, new] = dual[part, old]
    values[new] = values[old]


@compiled
def add_vector(support, n_support, sq_norm, norm, pull, age):
    """Add ``pull`` times the row in the scratch; returns the number of support vectors.

    A row that is already a support vector adds to its coefficient, and one whose coefficient has
    become zero, also in the average, is removed. A new one comes last.
    """
    vectors, dual, new = support.vectors, support.dual, n_support
    row = support.scratch[ROW, : vectors.shape[1]]
    same = find_vector(vectors, dual[SQ_NORM], n_support, row, sq_norm)
    if same < 0:
        for j in range(row.size):
            vectors[new // LANES, j, new % LANES] = row[j]
        dual[COEF, new], dual[CORRECTION, new] = pull, age * pull
        dual[NORM, new], dual[INVERSE, new] = norm, 1.0 / norm
        dual[SQ_NORM, new], dual[CLOSE, new] = sq_norm, norm
        support.scratch[VALUES, new] = norm
        return n_support + 1
    dual[COEF, same] += pull
    dual[CORRECTION, same] += age * pull
    if dual[COEF, same] == 0.0 and dual[CORRECTION, same] == 0.0:
        move_vector(support, n_support - 1, same)
        return n_support - 1
    return n_support


# -- budget --------------------------------------------------------------------------------------


# With one running maximum, a fit with a budget takes 1.2 times as long at 8 features.
@compiled
def largest(values):
    """Maximum of an array; four running maxima, because each comparison waits for the last."""
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


@compiled
def position(values, value):
    """Index of a value known to be present; the last index if it is NaN."""
    i = 0
    while i < values.size - 1 and values[i] != value:
        i += 1
    return i


@compiled
def note_closeness(support, n_support):
    """Update how close each vector is to its nearest, by the kernel values of the newest one."""
    last, values = n_support - 1, support.scratch[VALUES]
    others, inverses = support.scratch[COSTS, :last], support.dual[INVERSE]
    closeness, inverse = support.dual[CLOSE], inverses[last]
    for i in range(last):
        others[i] = values[i] * inverses[i] * values[i]  # the square alone might overflow
        close = values[i] * inverse * values[i]
        closeness[i] = close if close > closeness[i] else closeness[i]
    closeness[last] = largest(others) if last > 0 else 0.0


@compiled
def cheapest_vector(support, n_support, age):
    """The support vector, other than the newest, whose removal seems to cost least.

    The cost is the squared norm of what remains after projecting the vector onto its nearest, times
    the square of the coefficient that predicts: the average, if ``age`` is not 0.
    """
    gains, dual = support.scratch[COSTS, : n_support - 1], support.dual
    coefs, corrections, norms, closeness = dual[COEF], dual[CORRECTION], dual[NORM], dual[CLOSE]
    share = 1.0 / age if age > 0.0 else 0.0
    for i in range(gains.size):
        coef = coefs[i] - share * corrections[i]
        gains[i] = coef * coef * (closeness[i] - norms[i])
    return position(gains, largest(gains))


@compiled
def nearest_vector(support, n_support, dropped):
    """The support vector closest in direction to the dropped one; and whether that was known.

    The newest one counts only if no other has any direction in common. The kernel values of the
    dropped one are in the scratch. The recorded closeness is too high after its nearest has been
    dropped; it is corrected here, and another one may then be cheaper to remove.
    """
    last, values = n_support - 1, support.scratch[SPARE_VALUES]
    others, inverses = support.scratch[COSTS, :last], support.dual[INVERSE]
    for i in range(last):
        others[i] = values[i] * inverses[i] * values[i]
    others[dropped] = 0.0
    most = largest(others)
    nearest = position(others, most) if most > 0.0 else last
    close = max(most, values[last] * inverses[last] * values[last])
    known = not support.dual[CLOSE, dropped] > close * (1.0 + CLOSE_ENOUGH)  # NaN passes
    support.dual[CLOSE, dropped] = close
    return nearest, known


# The projection of s onto the newest vector x and the nearest one t is p x + q t with
#     p k(x, x) + q k(t, x) = k(s, x)
#     p k(x, t) + q k(t, t) = k(s, t)
# whose determinant is the squared area k(x, x) k(t, t) - k(x, t)^2. Where that is lost to rounding,
# as for x = t, s is projected onto x alone.
@compiled
def drop_vector(support, n_support, dropped, nearest):
    """Replace a support vector by its projection onto the newest and its nearest; then drop it.

    Because the newest row is projected onto, its own score stays as the step left it. The newest
    stays last.
    """
    last, dual, values = n_support - 1, support.dual, support.scratch[VALUES]
    norm, near_norm, between = values[last], dual[NORM, nearest], values[nearest]
    to_newest, to_nearest = values[dropped], support.scratch[SPARE_VALUES, nearest]
    area = norm * near_norm - between * between
    on_newest, on_nearest = to_newest / norm, 0.0
    if area > MIN_ANGLE * norm * near_norm:
        on_newest = (to_newest * near_norm - to_nearest * between) / area
        on_nearest = (to_nearest * norm - to_newest * between) / area
    for part in (COEF, CORRECTION):
        dual[part, last] += on_newest * dual[part, dropped]
        dual[part, nearest] += on_nearest * dual[part, dropped]
    move_vector(support, last - 1, dropped)
    move_vector(support, last, last - 1)
    return last


@compiled(inline="always")
def keep_budget(support, budget, n_support, age):
    """Remove support vectors until the budget holds; returns how many are left.

    The newest one, whose kernel values are in the scratch, stays. ``age`` is the number of trials
    of an averaging learner, else 0.
    """
    vectors, row = support.vectors, support.scratch[ROW, : support.vectors.shape[1]]
    note_closeness(support, n_support)
    while n_support > budget:
        dropped = cheapest_vector(support, n_support, age)
        for j in range(row.size):
            row[j] = vectors[dropped // LANES, j, dropped % LANES]
        kernel_values(support.kernel, vectors, n_support, row, support.scratch[SPARE_VALUES])
        nearest, is_nearest = nearest_vector(support, n_support, dropped)
        if is_nearest:
            n_support = drop_vector(support, n_support, dropped, nearest)
    return n_support


# -- walks ---------------------------------------------------------------------------------------


@compiled
def walk_support(state, support, budget, progress, rows, order, predicted, scores_before):
    """Learn rows in dual form until all are done, or the space for vectors is full.

    ``budget`` is the most vectors there may be, or None. The progress is the number of rows that
    are done, and of support vectors. Returns the progress to continue from, and the first refused
    row or -1. A row is refused if a value is not finite, or k(x, x) is not positive.
    """
    state, scratch = without_refcount(state), without_refcount(support.scratch)
    vectors, dual = without_refcount(support.vectors), without_refcount(support.dual)
    done, n_support = progress
    kernel = support.kernel
    support = Support(kernel, vectors, dual, scratch)
    data, columns, starts, lower, upper, weight, width = rows
    data, columns = without_refcount(data), without_refcount(columns)
    model = view(state)
    row, values = scratch[ROW, :width], scratch[VALUES]
    C = model.C
    for t in range(done, lower.size):
        if n_support == dual.shape[1]:
            return (t, n_support), -1
        i = order[t] if order.size > 0 else t
        if weight.size > 0:
            C = model.C * weight[i]
        own_values, own_columns = row_at(data, columns, starts, width, i)
        sq_norm = read_row(own_values, own_columns, row)
        norm = kernel_norm(kernel, sq_norm)
        kernel_values(kernel, vectors, n_support, row, values)
        score, age = weighted_sum(dual[COEF], values, n_support), age_of(model)
        if predicted.size > 0:
            score_before = score
            if age > 0.0:
                score_before -= weighted_sum(dual[CORRECTION], values, n_support) / age
            predicted[i] = rank_score(model, score_before, lower[i])
            if scores_before.size > 0:
                scores_before[i] = score_before
        positive = norm > 0.0 or (norm == 0.0 and sq_norm == 0.0)  # zeros have no direction
        if not (positive and norm < MAX_SQ_NORM and sq_norm < MAX_SQ_NORM and abs(score) < inf):
            return (t, n_support), i
        if C <= 0.0:
            continue
        pull = 0.0
        if not satisfied(model.edges, score, lower[i], upper[i]):
            length = norm if norm >= MIN_SQ_NORM else 0.0  # a shorter row's pull would overflow
            label = score, length, lower[i], upper[i]
            limit = limits(model.rule, C)
            pull, finite = exact_step(model.edges, model.edge_correction, age, *label, *limit)
            if not finite:
                return (t, n_support), i
            model.counters[UPDATES] += 1.0
        model.counters[TRIALS] += 1.0
        if pull != 0.0:
            n_before = n_support
            n_support = add_vector(support, n_support, sq_norm, norm, pull, age)
            if budget is not None and n_support > n_before:
                n_support = keep_budget(support, budget, n_support, age_of(model))
    return (lower.size, n_support), -1


@compiled
def support_scores(coefs, vectors, kernel, rows, out):
    """Write the score of every row to ``out``; returns the first row without one, or -1."""
    width = vectors.shape[1]
    row, values = np.empty(width), np.empty(vectors.shape[0] * LANES)
    for i in range(out.size):
        own_values, own_columns = row_at(rows.data, rows.columns, rows.starts, width, i)
        sq_norm = read_row(own_values, own_columns, row)
        kernel_values(kernel, vectors, coefs.size, row, values)
        out[i] = weighted_sum(coefs, values, coefs.size)
        if not (sq_norm < MAX_SQ_NORM and abs(out[i]) < inf):
            return i
    return -1
