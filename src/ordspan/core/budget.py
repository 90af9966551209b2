"""Compiled: removing support vectors beyond the budget.

Budgeted passive-aggressive learning with the nearest neighbour (BPA-NN, Wang & Vucetic 2010).
"""

from ordspan.core.compiling import compiled
from ordspan.core.kernels import kernel_values
from ordspan.core.rbf import LANES
from ordspan.core.vectors import CLOSE, COEF, CORRECTION, INVERSE, NORM, move_vector

CLOSE_ENOUGH = 1e-9
"""Relative difference by which k(s, t) and k(t, s) may differ through rounding."""

MIN_ANGLE = 1e-12
"""Two vectors whose squared sine is below this count as one direction."""


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
def note_closeness(dual, n_support, values, scratch):
    """Update how close each vector is to its nearest, by the kernel values of the newest one."""
    last = n_support - 1
    others, inverses, closeness = scratch[:last], dual[INVERSE], dual[CLOSE]
    inverse = inverses[last]
    for i in range(last):
        others[i] = values[i] * inverses[i] * values[i]  # the square alone might overflow
        close = values[i] * inverse * values[i]
        closeness[i] = close if close > closeness[i] else closeness[i]
    closeness[last] = largest(others) if last > 0 else 0.0


@compiled
def spare_vector(dual, n_support, trials, scratch):
    """The support vector, other than the newest, whose removal seems to cost least.

    The cost is the squared norm of what remains after projecting the vector onto its nearest, times
    the square of the coefficient that predicts: the average, if ``trials`` is not 0.
    """
    gains = scratch[: n_support - 1]
    coefs, corrections, norms, closeness = dual[COEF], dual[CORRECTION], dual[NORM], dual[CLOSE]
    age = 1.0 / trials if trials > 0.0 else 0.0
    for i in range(gains.size):
        coef = coefs[i] - age * corrections[i]
        gains[i] = coef * coef * (closeness[i] - norms[i])
    return position(gains, largest(gains))


@compiled
def nearest_vector(dual, n_support, spare, spare_values, scratch):
    """The support vector closest in direction to the spare one, or -1; and whether it was known.

    ``spare_values`` are the kernel values of the spare one. The recorded closeness is too high
    after its nearest has been dropped; it is corrected here, and another one may then be cheaper
    to remove.
    """
    last = n_support - 1
    others, inverses = scratch[:last], dual[INVERSE]
    for i in range(last):
        others[i] = spare_values[i] * inverses[i] * spare_values[i]
    others[spare] = 0.0
    most = largest(others)
    nearest = position(others, most) if most > 0.0 else -1
    close = max(most, spare_values[last] * inverses[last] * spare_values[last])
    known = not dual[CLOSE, spare] > close * (1.0 + CLOSE_ENOUGH)  # NaN passes
    dual[CLOSE, spare] = close
    return nearest, known


@compiled(inline="always")
def shares(norm, near_norm, between, to_newest, to_nearest):
    """Coefficients of the projection of a vector onto the newest one and its nearest one.

    ``between`` is the kernel value of these two, ``to_newest`` and ``to_nearest`` are the vector's.
    """
    area = norm * near_norm - between * between
    if not area > MIN_ANGLE * norm * near_norm:
        return to_newest / norm, 0.0
    on_newest = (to_newest * near_norm - to_nearest * between) / area
    return on_newest, (to_nearest * norm - to_newest * between) / area


@compiled
def drop_vector(vectors, dual, n_support, values, spare, nearest, to_nearest):
    """Replace a support vector by its projection onto the newest and its nearest; then drop it.

    ``to_nearest`` is the kernel value of spare and nearest; ``nearest`` is -1 if there is none.
    Because the newest row is projected onto, its own score stays as the step left it. The newest
    stays last.
    """
    last = n_support - 1
    norm, to_newest = values[last], values[spare]
    on_newest, on_nearest = to_newest / norm, 0.0
    if nearest >= 0:
        on_newest, on_nearest = shares(
            norm, dual[NORM, nearest], values[nearest], to_newest, to_nearest
        )
    for part in (COEF, CORRECTION):
        dual[part, last] += on_newest * dual[part, spare]
        if nearest >= 0:
            dual[part, nearest] += on_nearest * dual[part, spare]
    move_vector(vectors, dual, values, last - 1, spare)
    move_vector(vectors, dual, values, last, last - 1)
    return last


@compiled(inline="always")
def keep_budget(kernel, budget, vectors, dual, n_support, row, values, scratch, trials):
    """Remove support vectors until the budget holds; returns how many are left.

    The newest one, whose kernel values are ``values``, stays. ``row`` and ``scratch`` from its row
    2 on are overwritten. ``trials`` is the number of trials of an averaging learner, else 0.
    """
    spare_values, costs = scratch[2], scratch[3]
    note_closeness(dual, n_support, values, costs)
    while n_support > budget:
        spare = spare_vector(dual, n_support, trials, costs)
        for j in range(row.size):
            row[j] = vectors[spare // LANES, j, spare % LANES]
        kernel_values(kernel, vectors, n_support, row, spare_values)
        nearest, known = nearest_vector(dual, n_support, spare, spare_values, costs)
        if known:
            to_nearest = spare_values[nearest]
            n_support = drop_vector(vectors, dual, n_support, values, spare, nearest, to_nearest)
    return n_support
