"""Compiled: one example is a trial, all rows are a walk, and the walk holds no formula.

The functions here are templates. `walks_by` compiles them for one rule, so that a walk holds the
code of its own rule only.
"""

from math import inf, nan
from typing import Any

import numpy as np

from ordspan.core import baselines, exact, multiclass, sca
from ordspan.core import memory as memory_of
from ordspan.core.compiling import compiled, specialised, without_refcount
from ordspan.core.memory import TRIALS, UPDATES, has_vectors, row_width, view
from ordspan.core.ranking import rank_score, score_row
from ordspan.core.rows import (
    BAD_LABEL,
    BAD_ROW,
    BAD_WIDTH,
    MAX_SQ_NORM,
    add_scaled,
    row_at,
    row_fits,
    score_and_norm,
)

step = exact.step
"""The step of a rule; each specialised copy gets its own."""


@compiled(inline="always")
def no_scratch(model):
    """Rules with thresholds need no scratch space."""
    return model.counters[:0]


scratch_for = no_scratch


def learn_row(model, scratch, C, values, columns, lower, upper, want_rank):
    """One trial; returns the rank and the score of the row before it is learned.

    The rank is BAD_ROW, with nothing changed, if the row is refused. Without ``want_rank`` neither
    result is meaningful otherwise.
    """
    score, sq_norm = score_and_norm(model.weights, values, columns)
    if not (sq_norm < MAX_SQ_NORM and abs(score) < inf):
        return BAD_ROW, score
    rank, seen = lower, score
    if want_rank:
        seen = score_row(model, score, values, columns)
        rank = rank_score(model, seen, lower)
    if C <= 0.0:
        return rank, seen
    age = model.counters[TRIALS] if model.edge_correction.size > 0 else 0.0
    pull, moved, finite = step(model, age, C, score, sq_norm, lower, upper)
    if not finite:
        return BAD_ROW, seen
    if pull != 0.0:
        add_scaled(model.weights, pull, values, columns)
        if age > 0.0:
            add_scaled(model.weight_correction, age * pull, values, columns)
    model.counters[TRIALS] += 1.0
    model.counters[UPDATES] += moved
    return rank, seen


@compiled(inline="always")
def rank_of(model, values, columns):
    """Rank of one row, or BAD_ROW."""
    score, sq_norm = score_and_norm(model.weights, values, columns)
    if not (sq_norm < MAX_SQ_NORM and abs(score) < inf):
        return BAD_ROW
    return rank_score(model, score_row(model, score, values, columns), 1)


def walk(memory, data, columns, starts, lower, upper, sample_weight, order, predicted, seen):
    """Learn rows one by one; returns the first row that was refused, or -1.

    ``sample_weight``, ``order``, ``predicted`` and ``seen`` (the scores before learning) may be
    empty: unit weights, rows in the given order, no predictions wanted, no scores wanted.
    """
    memory, data = without_refcount(memory), without_refcount(data)
    columns = without_refcount(columns)
    model, width = view(memory), row_width(memory)
    want_rank = predicted.size > 0
    scratch, C = scratch_for(model), model.C
    for t in range(lower.size):
        i = order[t] if order.size > 0 else t
        values, cols = row_at(data, columns, starts, width, i)
        if sample_weight.size > 0:
            C = model.C * sample_weight[i]
        rank, score = learn_row(model, scratch, C, values, cols, lower[i], upper[i], want_rank)
        if rank == BAD_ROW:
            return i
        if want_rank:
            predicted[i] = rank
            if seen.size > 0:
                seen[i] = score
    return -1


@compiled(inline="always")
def is_label(lower, upper, n_classes):
    """Whether two numbers are the ends of an interval of ranks."""
    whole = np.int64(lower) == lower and np.int64(upper) == upper
    return whole and 1 <= lower <= upper <= n_classes


def learn_one(memory, values, columns, lower, upper):
    """One trial, called from Python; the rank predicted before, or why it was refused."""
    if not row_fits(values, columns, row_width(memory)):
        return BAD_WIDTH
    model = view(memory)
    if not is_label(lower, upper, model.edges.size - 1):
        return BAD_LABEL
    low, high = np.int64(lower), np.int64(upper)
    return learn_row(model, scratch_for(model), model.C, values, columns, low, high, True)[0]


def predict_one(memory, values, columns):
    """Rank of one row, called from Python, or why it was refused."""
    if not row_fits(values, columns, row_width(memory)):
        return BAD_WIDTH
    return rank_of(view(memory), values, columns)


@compiled(nogil=False)
def score_one(memory, values, columns):
    """Score that a row is predicted by, by a rule with thresholds; NaN if the row does not fit."""
    if not row_fits(values, columns, row_width(memory)):
        return nan
    model = view(memory)
    score, sq_norm = score_and_norm(model.weights, values, columns)
    return score_row(model, score, values, columns) if sq_norm < MAX_SQ_NORM else nan


class Walks:
    """Everything that a learner calls, compiled for its rule on the first call.

    Each rule has a subclass, without instances: copies and pickles of a learner refer to it by
    name, and tools that add up what a model refers to leave classes out.
    """

    walk: Any
    learn_one: Any
    predict_one: Any


def walks_by(name, learn_row, rank_of, scratch_for):
    """The walks of a rule, given its trial, its prediction and their scratch space."""
    rule = {"learn_row": learn_row, "rank_of": rank_of, "scratch_for": scratch_for}
    functions = {
        "walk": specialised(walk, name, rule),
        # releasing the GIL would take longer than a single trial
        "learn_one": specialised(learn_one, name, rule, nogil=False),
        "predict_one": specialised(predict_one, name, rule, nogil=False),
    }
    static = {key: staticmethod(function) for key, function in functions.items()}
    return type(name, (Walks,), {"__module__": __name__, **static})


def threshold_walks(name, step):
    """The walks of a rule with one score and sorted thresholds, given its step."""
    trial = specialised(learn_row, name, {"step": step}, inline="always")
    return walks_by(name, trial, rank_of, no_scratch)


EXACT = threshold_walks("EXACT", exact.step)
SCA = threshold_walks("SCA", sca.step)
PRANK = threshold_walks("PRANK", baselines.step)
VECTORS = walks_by(
    "VECTORS", multiclass.learn_class_row, multiclass.rank_class_row, multiclass.scratch_for
)


def walks_for(rule: int) -> type[Walks]:
    """The walks compiled for the rule that a memory names."""
    if has_vectors.py_func(rule):
        return VECTORS
    if rule == memory_of.PRANK:
        return PRANK
    return SCA if rule >= memory_of.SCA_HARD else EXACT
