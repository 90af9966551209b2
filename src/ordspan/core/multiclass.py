"""Compiled: rules with one weight vector per class, which ignore the order of the classes.

The highest score wins. If the label is a range, the best class inside has to win, and only the
classes outside are its rivals.
"""

from math import inf, nan

import numpy as np

from ordspan.core.compiling import FAST, compiled
from ordspan.core.exact import MIN_C
from ordspan.core.rows import BAD_ROW, MAX_SQ_NORM, MIN_SQ_NORM, add_scaled, score_and_norm
from ordspan.core.state import CLASSES_CAPPED, CLASSES_SOFT, PERCEPTRON, TRIALS, UPDATES


@compiled(fastmath=FAST)
def find_support(scores, top, lower, upper, loss, sq_norm, spread, cap):
    """The rivals that get a multiplier: largest and mean gap, mean multiplier, and their total.

    The gap of a rival is how much less than ``loss`` its loss is. With n rivals in the support and
    G the sum of their gaps, the multipliers add up to T, the smaller of the cap and
    (n loss - G) / (s + n (s + spread)), and are positive for gaps below (s T + G) / n. That is
    Newton's method on a convex function: from all rivals on, the support only shrinks.
    """
    reach, n_before = loss, scores.size + 1
    while True:
        n_support, gap_sum = 0, 0.0
        for k in range(1, scores.size + 1):
            gap = top - scores[k - 1]
            joins = (gap <= reach) & ((k < lower) | (k > upper))
            n_support += joins
            gap_sum += gap if joins else 0.0
        total = (n_support * loss - gap_sum) / (sq_norm + n_support * (sq_norm + spread))
        total = min(cap, total)
        if n_support >= n_before:
            return reach, gap_sum / n_support, total / n_support, total
        reach, n_before = (sq_norm * total + gap_sum) / n_support, n_support


@compiled
def class_step(scratch, best, rival, sq_norm, lower, upper, spread, cap):
    """Smallest move of all class vectors that the variant allows: fills in their pulls.

    ``scratch`` holds the scores of the classes, and below them the pulls: the vector of class k is
    to move by ``pulls[k - 1]`` times the row. ``best`` is the best class
    of the interval, which has to win, ``rival`` the best one outside. With losses
    l_r = 1 - (score of best - score of r) of the classes r outside, the multipliers are
    max(0, (l_r - slack) / s - T), T being their sum: slack 0 is PA; PA-I has T <= ``cap`` = C, and
    slack only where they are equal; PA-II has slack ``spread`` T with ``spread`` = 1 / (2C). The
    differences of the multipliers are those of the losses over s, so each is written as its share
    of T and what it differs from the mean by. Returns whether anything is to move, and whether the
    numbers stayed finite.
    """
    scores, pulls = scratch[0], scratch[1]
    top = scores[rival - 1]
    loss = 1.0 + (top - scores[best - 1])
    if loss <= 0.0 or sq_norm < MIN_SQ_NORM:
        return False, True
    if not scores.size * loss < inf:  # the sums below would overflow
        return False, False
    reach, mean_gap, share, total = find_support(
        scores, top, lower, upper, loss, sq_norm, spread, cap
    )
    for k in range(1, scores.size + 1):
        gap = top - scores[k - 1]
        joins = (k < lower or k > upper) and gap <= reach
        pulls[k - 1] = -max(0.0, share + (mean_gap - gap) / sq_norm) if joins else 0.0
    pulls[best - 1] = total
    return True, total < inf


@compiled(inline="always")
def scratch_for(model):
    """Scratch space: a score and a pull for each class."""
    return np.empty((2, model.edges.size - 1))


@compiled(inline="always")
def score_classes(model, scores, values, columns, lower, upper):
    """Fill in the scores; best class of all, of the interval, and outside (0: none), squared norm.

    The squared norm is infinite if a score is not finite. Ties go to the lowest class.
    """
    width = model.weights.size // scores.size
    rank, best, rival = 1, lower, 0
    sq_norm, finite = 0.0, True
    for k in range(1, scores.size + 1):
        weights = model.weights[(k - 1) * width : k * width]
        score, sq_norm = score_and_norm(weights, values, columns)
        scores[k - 1] = score
        finite = finite and abs(score) < inf
        rank = k if score > scores[rank - 1] else rank
        if lower <= k <= upper:
            best = k if score > scores[best - 1] else best
        elif rival == 0 or score > scores[rival - 1]:
            rival = k
    return rank, best, rival, sq_norm if finite else inf


@compiled(inline="always")
def learn_class_row(model, scratch, C, values, columns, lower, upper, want_rank):
    """One trial; returns the rank predicted before it, or BAD_ROW with nothing changed.

    The perceptron (max-score update, Crammer & Singer 2003) pulls the best class up and its rival
    down by C, unless the best one is ahead. There is no single score to return, so NaN takes its
    place.
    """
    scores, pulls = scratch[0], scratch[1]
    rank, best, rival, sq_norm = score_classes(model, scores, values, columns, lower, upper)
    if not sq_norm < MAX_SQ_NORM:
        return BAD_ROW, nan
    if C <= 0.0:
        return rank, nan
    moved, finite = rival > 0, True
    if moved and model.rule == PERCEPTRON:
        moved = scores[rival - 1] >= scores[best - 1]
        pulls[:] = 0.0
        pulls[best - 1], pulls[rival - 1] = C, -C
    elif moved:
        spread = 0.5 / max(C, MIN_C) if model.rule == CLASSES_SOFT else 0.0
        cap = C if model.rule == CLASSES_CAPPED else inf
        moved, finite = class_step(scratch, best, rival, sq_norm, lower, upper, spread, cap)
    if not finite:
        return BAD_ROW, nan
    if moved:
        width = model.weights.size // pulls.size
        for k in range(pulls.size):
            if pulls[k] != 0.0:
                add_scaled(model.weights[k * width : (k + 1) * width], pulls[k], values, columns)
    model.counters[UPDATES] += moved
    model.counters[TRIALS] += 1.0
    return rank, nan


@compiled(inline="always")
def rank_class_row(model, values, columns):
    """Rank of one row, or BAD_ROW."""
    scratch, n_classes = scratch_for(model), model.edges.size - 1
    return learn_class_row(model, scratch, 0.0, values, columns, 1, n_classes, True)[0]
