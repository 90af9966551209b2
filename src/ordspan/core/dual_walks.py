"""Compiled: trials and walks of a learner in dual form.

The step is the linear learner's, with k(x, x) in place of the squared norm.
"""

from math import inf
from typing import Any, NamedTuple

import numpy as np

from ordspan.core.budget import keep_budget
from ordspan.core.compiling import compiled, without_refcount
from ordspan.core.exact import exact_step, limits
from ordspan.core.kernels import kernel_norm, kernel_values, read_row
from ordspan.core.memory import TRIALS, UPDATES, view
from ordspan.core.ranking import rank_score
from ordspan.core.rbf import LANES
from ordspan.core.rows import MAX_SQ_NORM, MIN_SQ_NORM, row_at
from ordspan.core.vectors import COEF, CORRECTION, add_vector, weighted_sum


class LabelledRows(NamedTuple):
    """Rows to learn: their values, the CSR arrays or None, and their labels.

    Each of the last four may be empty: unit weights, rows in the given order, no predictions
    wanted, no scores wanted.
    """

    data: Any
    columns: Any
    starts: Any
    lower: Any
    upper: Any
    sample_weight: Any
    order: Any
    predicted: Any
    seen: Any


@compiled(inline="always")
def support_step(model, vectors, dual, n_support, row, square, values, norm, C, lower, upper):
    """Learn a row whose kernel values are known; returns the number of support vectors, or -1.

    -1 means that the row was refused and nothing changed: a value is not finite, or k(x, x) is not
    positive (only a row of zeros, which has no direction, may have zero).
    """
    score = weighted_sum(dual[COEF], values, n_support)
    positive = norm > 0.0 or (norm == 0.0 and square == 0.0)
    if not (positive and norm < MAX_SQ_NORM and square < MAX_SQ_NORM and abs(score) < inf):
        return -1
    if C <= 0.0:
        return n_support
    edges, correction = model.edges, model.edge_correction
    age = model.counters[TRIALS] if correction.size > 0 else 0.0
    softness, cap = limits(model.rule, C)
    length = norm if norm >= MIN_SQ_NORM else 0.0  # the coefficient of a shorter row would overflow
    pull, moved, finite = exact_step(
        edges, correction, age, score, length, lower, upper, softness, cap
    )
    if not finite:
        return -1
    model.counters[TRIALS] += 1.0
    model.counters[UPDATES] += moved
    if pull == 0.0:
        return n_support
    return add_vector(vectors, dual, n_support, row, square, values, norm, pull, age)


@compiled(inline="always")
def rank_support(model, dual, n_support, values, guess):
    """Rank and score of a row whose kernel values are known, by the average if there is one."""
    trials = model.counters[TRIALS]
    score = weighted_sum(dual[COEF], values, n_support)
    if model.edge_correction.size > 0 and trials > 0.0:
        score -= weighted_sum(dual[CORRECTION], values, n_support) / trials
    return rank_score(model, score, guess), score


@compiled
def walk_support(memory, vectors, dual, scratch, n_support, kernel, budget, rows, first):
    """Learn rows in dual form from position ``first`` on, until the space for vectors is full.

    ``budget`` is None for any number of vectors. ``scratch`` is overwritten. Returns the position
    to continue from, the first refused row or -1, and the number of vectors.
    """
    memory, scratch = without_refcount(memory), without_refcount(scratch)
    vectors, dual = without_refcount(vectors), without_refcount(dual)
    data, columns, starts, lower, upper, sample_weight, order, predicted, seen = rows
    data, columns = without_refcount(data), without_refcount(columns)
    model = view(memory)
    width, room = vectors.shape[1], dual.shape[1]
    row, values = scratch[0, :width], scratch[1]
    C = model.C
    for t in range(first, lower.size):
        if n_support == room:
            return t, -1, n_support
        i = order[t] if order.size > 0 else t
        if sample_weight.size > 0:
            C = model.C * sample_weight[i]
        own_values, own_columns = row_at(data, columns, starts, width, i)
        square = read_row(own_values, own_columns, row)
        norm = kernel_norm(kernel, square)
        kernel_values(kernel, vectors, n_support, row, values)
        if predicted.size > 0:
            rank, score = rank_support(model, dual, n_support, values, lower[i])
            predicted[i] = rank
            if seen.size > 0:
                seen[i] = score
        after = support_step(
            model, vectors, dual, n_support, row, square, values, norm, C, lower[i], upper[i]
        )
        if after < 0:
            return t, i, n_support
        if budget is not None and after > n_support:
            trials = model.counters[TRIALS] if model.edge_correction.size > 0 else 0.0
            after = keep_budget(kernel, budget, vectors, dual, after, row, values, scratch, trials)
        n_support = after
    return lower.size, -1, n_support


@compiled
def support_scores(coefs, vectors, kernel, data, columns, starts, out):
    """Write the score of every row to ``out``; returns the first row without one, or -1."""
    width = vectors.shape[1]
    row, values = np.empty(width), np.empty(vectors.shape[0] * LANES)
    for i in range(out.size):
        own_values, own_columns = row_at(data, columns, starts, width, i)
        square = read_row(own_values, own_columns, row)
        kernel_values(kernel, vectors, coefs.size, row, values)
        out[i] = weighted_sum(coefs, values, coefs.size)
        if not (square < MAX_SQ_NORM and abs(out[i]) < inf):
            return i
    return -1
