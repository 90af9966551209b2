"""Compiled: the loop over rows and the single calls of every rule; no formula is here.

One example is a trial, and all rows are a walk. The functions here are templates: `walks_by`
compiles them for one rule, so that a walk holds the code of its own rule only.
"""

import sys
from math import inf, nan
from typing import Any

import numpy as np

from ordspan.core import exact, multiclass, prank
from ordspan.core.compiling import compiled, specialised, without_refcount
from ordspan.core.rows import BAD_ROW, MAX_SQ_NORM, add_scaled, row_at, row_fits, score_and_norm
from ordspan.core.state import TRIALS, UPDATES, age_of, row_width, view

step = exact.step  # the step of a rule; each specialised copy gets its own


@compiled(inline="always")
def no_scratch(model):
    """Rules with thresholds need no scratch space."""
    return model.counters[:0]


scratch_for = no_scratch


@compiled
def threshold(edges, correction, age, i):
    """Threshold i of the last iterate, or, of a learner with an age, the average."""
    return edges[i] - correction[i] / age if age > 0.0 else edges[i]


@compiled
def rank_near(edges, correction, age, score, guess):
    """Predicted rank, 1 + the number of thresholds not above the score, searched from a guess."""
    rank = guess
    while rank < edges.size - 1 and threshold(edges, correction, age, rank) <= score:
        rank += 1
    while rank > 1 and threshold(edges, correction, age, rank - 1) > score:
        rank -= 1
    return rank


@compiled(inline="always")
def score_row(model, score, values, columns):
    """Score used to predict a row, given that of the last iterate: the average's, if any."""
    age = age_of(model)
    if age == 0.0:
        return score
    return score - score_and_norm(model.weight_correction, values, columns)[0] / age


# Given the model instead of its arrays, a step at 136 features takes 1.2 times as long.
@compiled(inline="always")
def rank_score(model, score, guess):
    """Rank of the score used to predict a row."""
    return rank_near(model.edges, model.edge_correction, age_of(model), score, guess)


def learn_row(model, scratch, C, values, columns, lower, upper, want_rank):
    """One trial; returns the rank and the score of the row before it is learned.

    The rank is BAD_ROW, with nothing changed, if the row is refused. Without ``want_rank`` the
    results only tell whether the row was refused.
    """
    score, sq_norm = score_and_norm(model.weights, values, columns)
    if not (sq_norm < MAX_SQ_NORM and abs(score) < inf):
        return BAD_ROW, score
    rank, score_before = lower, score
    if want_rank:
        score_before = score_row(model, score, values, columns)
        rank = rank_score(model, score_before, lower)
    if C <= 0.0:
        return rank, score_before
    age = age_of(model)
    pull, moved, finite = step(model, age, C, score, sq_norm, lower, upper)
    if not finite:
        return BAD_ROW, score_before
    if pull != 0.0:
        add_scaled(model.weights, pull, values, columns)
        if age > 0.0:
            add_scaled(model.weight_correction, age * pull, values, columns)
    model.counters[TRIALS] += 1.0
    model.counters[UPDATES] += moved
    return rank, score_before


@compiled(inline="always")
def score_of(model, values, columns):
    """Score used to predict a row, or NaN if the row is refused."""
    score, sq_norm = score_and_norm(model.weights, values, columns)
    return score_row(model, score, values, columns) if sq_norm < MAX_SQ_NORM else nan


@compiled(inline="always")
def rank_of(model, values, columns):
    """Rank of one row, or BAD_ROW."""
    score = score_of(model, values, columns)
    return rank_score(model, score, 1) if abs(score) < inf else BAD_ROW


def walk(state, rows, order, predicted, scores_before):
    """Learn rows one by one; returns the first row that was refused, or -1.

    ``order``, ``predicted`` and ``scores_before`` may be empty: rows as they come, no predictions
    wanted, no scores wanted. Both are those before the row is learned.
    """
    data, columns, starts, lower, upper, weight, width = rows
    state, data = without_refcount(state), without_refcount(data)
    columns = without_refcount(columns)
    model = view(state)
    want_rank = predicted.size > 0
    scratch, C = scratch_for(model), model.C
    for t in range(lower.size):
        i = order[t] if order.size > 0 else t
        values, cols = row_at(data, columns, starts, width, i)
        if weight.size > 0:
            C = model.C * weight[i]
        rank, score = learn_row(model, scratch, C, values, cols, lower[i], upper[i], want_rank)
        if rank == BAD_ROW:
            return i
        if want_rank:
            predicted[i] = rank
            if scores_before.size > 0:
                scores_before[i] = score
    return -1


def learn_one(state, values, columns, lower, upper):
    """One trial, called from Python; returns the rank predicted before it, or BAD_ROW."""
    model, low, high = view(state), np.int64(lower), np.int64(upper)
    is_label = low == lower and high == upper and 1 <= low <= high < model.edges.size
    if not (is_label and row_fits(values, columns, row_width(state))):
        return BAD_ROW
    C = 0.0 if low == 1 and high == model.edges.size - 1 else model.C  # an open label says nothing
    return learn_row(model, scratch_for(model), C, values, columns, low, high, True)[0]


def predict_one(state, values, columns):
    """Rank of one row, called from Python, or BAD_ROW."""
    fits = row_fits(values, columns, row_width(state))
    return rank_of(view(state), values, columns) if fits else BAD_ROW


@compiled(nogil=False)
def score_one(state, values, columns):
    """Score used to predict a row, by a rule with thresholds; NaN if the row does not fit."""
    fits = row_fits(values, columns, row_width(state))
    return score_of(view(state), values, columns) if fits else nan


class Walks:
    """Everything that a learner calls, compiled for its rule on the first call.

    Each rule has a subclass, without instances: copies and pickles of a learner refer to it by
    name, and tools that add up what a model refers to leave classes out.
    """

    walk: Any
    learn_one: Any
    predict_one: Any


def walks_by(name, learn_row, rank_of, scratch_for, module=__name__):
    """The walks of a rule, given its trial, its prediction, their scratch space, and its home."""
    source = sys.modules[module].__file__
    rule = {"learn_row": learn_row, "rank_of": rank_of, "scratch_for": scratch_for}
    functions = {
        "walk": specialised(walk, name, rule, source=source),
        # releasing the GIL would take longer than a single trial
        "learn_one": specialised(learn_one, name, rule, source=source, nogil=False),
        "predict_one": specialised(predict_one, name, rule, source=source, nogil=False),
    }
    static = {key: staticmethod(function) for key, function in functions.items()}
    return type(name, (Walks,), {"__module__": module, **static})


def threshold_walks(name, step, module=__name__):
    """The walks of a rule with one score and sorted thresholds, given its step."""
    trial = specialised(learn_row, name, {"step": step}, inline="always")
    return walks_by(name, trial, rank_of, no_scratch, module)


EXACT = threshold_walks("EXACT", exact.step)
PRANK = threshold_walks("PRANK", prank.step)
VECTORS = walks_by(
    "VECTORS", multiclass.learn_class_row, multiclass.rank_class_row, multiclass.scratch_for
)
