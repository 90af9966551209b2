"""Compiled: the support class algorithm as the paper prints it, for comparison only.

Its steps are often not the smallest that would do; see the page on the mathematics.
"""

from math import inf

from ordspan.core.compiling import compiled
from ordspan.core.exact import limits, satisfied
from ordspan.core.walks import threshold_walks

MAX_ROUNDS = 100
"""The printed SCA-I loop is stopped after this many rounds if it has not converged."""


@compiled
def clipped_loss(edges, score, i, lower):
    """Hinge loss of one required threshold, the l_i of the paper."""
    sign = 1.0 if i < lower else -1.0
    return max(0.0, 1.0 + sign * (edges[i] - score))


@compiled
def sca_support(edges, score, sq_norm, lower, upper, softness):
    """The support sets as Algorithm 2 of the paper prints them, and the pull they give.

    Returns start, stop, pull: the sets are start..lower-1 and upper..stop-1. Three deviations: a
    threshold that does not exist (lower = 1, upper = K) is left out, the loop ends when both sides
    are exhausted, where the printed one would not, and PA-II's softness replaces the 1.
    """
    n_classes = edges.size - 1
    start, stop = max(lower - 1, 1), min(upper + 1, n_classes)
    excess = 0.0
    if start < lower:
        excess += clipped_loss(edges, score, start, lower)
    if upper < stop:
        excess -= clipped_loss(edges, score, upper, lower)
    go_on = True
    while go_on and (start > 1 or stop < n_classes):
        if start > 1:
            loss = clipped_loss(edges, score, start - 1, lower)
            size = 1 + (lower - start) + (stop - upper)
            go_on = loss - sq_norm * (excess + loss) / (softness + sq_norm * size) > 0.0
            if go_on:
                start -= 1
                excess += loss
        if stop < n_classes:
            loss = clipped_loss(edges, score, stop, lower)
            size = 1 + (lower - start) + (stop - upper)
            go_on = loss + sq_norm * (excess - loss) / (softness + sq_norm * size) > 0.0
            if go_on:
                stop += 1
                excess -= loss
    size = (lower - start) + (stop - upper)
    return start, stop, excess / (softness + sq_norm * size)


@compiled
def sca_capped_pull(edges, score, sq_norm, lower, upper, cap):
    """The pull of Algorithm 3 (SCA-I): multipliers and pull in turn until they settle.

    The printed loop oscillates forever when sq_norm times the support's size exceeds 1; it is
    stopped after MAX_ROUNDS rounds. Multipliers are kept in [0, C] so that it cannot diverge.
    """
    pull = 0.0
    for _ in range(MAX_ROUNDS):
        before = pull
        total = 0.0
        for i in range(1, lower):
            loss = clipped_loss(edges, score, i, lower)
            total += min(cap, max(0.0, loss - before * sq_norm))
        for i in range(upper, edges.size - 1):
            loss = clipped_loss(edges, score, i, lower)
            total -= min(cap, max(0.0, loss + before * sq_norm))
        pull = total
        if abs(pull - before) <= 1e-12 * (1.0 + abs(pull)):
            break
    return before


@compiled
def step(model, age, C, score, sq_norm, lower, upper):
    """The printed step; pull on the row, whether anything moved, and whether all stayed finite.

    From six classes on it can leave a constraint violated or the thresholds out of order, because
    the printed flag is overwritten: a running maximum then restores the order. Its steps are longer
    than the exact ones, and on noisy labels with long rows they can grow without bound.
    """
    edges, last = model.edges, model.edges.size - 1
    if satisfied(edges, score, lower, upper):
        return 0.0, False, True
    softness, cap = limits(model.rule, C)
    before = edges.copy()
    if cap < inf:
        start, stop = 1, last
        pull = sca_capped_pull(edges, score, sq_norm, lower, upper, cap)
    else:
        start, stop, pull = sca_support(edges, score, sq_norm, lower, upper, softness)
    shift = pull * sq_norm
    if not abs(shift) < inf:
        return 0.0, False, False
    total = 0.0
    for i in range(start, stop):
        if lower <= i < upper:
            continue
        sign = 1.0 if i < lower else -1.0
        multiplier = (clipped_loss(edges, score, i, lower) - sign * shift) / softness
        if cap < inf:
            multiplier = min(cap, max(0.0, multiplier))
        edges[i] -= sign * multiplier
        total += sign * multiplier
    if cap < inf:
        pull = total  # where the printed loop did not settle, the two differ
    for i in range(2, last):
        edges[i] = max(edges[i], edges[i - 1])
    if age > 0.0:
        for i in range(1, last):
            model.edge_correction[i] += age * (edges[i] - before[i])
    return pull, True, True


SCA = threshold_walks("SCA", step, __name__)
