"""Walks where the kernel values come from Python: a function of the user's, or a matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ordspan.core import budget as budgets
from ordspan.core.dual_walks import LabelledRows, rank_support, support_step
from ordspan.core.kernels import read_row
from ordspan.core.memory import TRIALS, Floats
from ordspan.core.rows import MAX_SQ_NORM, row_at
from ordspan.learners.kernel_values import FunctionKernel

if TYPE_CHECKING:
    from ordspan.learners.kernel import KernelLearner

VALUES_AT_ONCE = 1 << 20
"""In prediction a function is asked for about so many values in one call."""


def walk_in_python(learner: KernelLearner, kernel: FunctionKernel, rows: LabelledRows) -> int:
    """Learn rows one by one; the first that was refused, or -1."""
    support, model = learner.support, learner.model
    C = model.C
    for i in (rows.order if rows.order.size else np.arange(rows.lower.size)).tolist():
        row, square = dense_row(rows[:3], learner.n_features, i)
        if not square < MAX_SQ_NORM:
            return i
        learner.make_room()
        values = values_with_room(kernel, learner, row, i)
        if rows.predicted.size:
            known = (support.dual, support.size, values)
            rows.predicted[i], score = rank_support(model, *known, rows.lower[i])
            if rows.seen.size:
                rows.seen[i] = score
        if rows.sample_weight.size:
            C = model.C * rows.sample_weight[i]
        norm = kernel.norm(row, i)
        vector, own_square = kernel.vector(row, square, i)
        label = rows.lower[i], rows.upper[i]
        state = (model, support.vectors, support.dual, support.size)
        after = support_step(*state, vector, own_square, values, norm, C, *label)
        if after < 0:
            return i
        added = after > support.size
        support.size = after
        if learner.budget is not None and added:
            keep_budget_in_python(learner, kernel, values, rows, i)
    return -1


def keep_budget_in_python(
    learner: KernelLearner, kernel: FunctionKernel, values: Floats, rows: LabelledRows, i: int
) -> None:
    """`ordspan.core.budget.keep_budget`, where ``values`` are those of row i, learned last."""
    support, model, budget = learner.support, learner.model, learner.budget
    assert budget is not None
    trials = model.counters[TRIALS] if model.edge_correction.size else 0.0
    costs = np.empty(values.size)
    if budget.strategy == budgets.NEAREST:
        budgets.note_closeness(support.dual, support.size, values, costs)

    def dense(number: int) -> Floats:
        return dense_row(rows[:3], learner.n_features, number)[0]

    while support.size > budget.size:
        known_of = (support.dual, support.size)
        spare = budgets.spare_vector(*known_of, values, budget.strategy, trials, costs)
        nearest, to_nearest = -1, 0.0
        if budget.strategy == budgets.NEAREST or trials > 0.0:
            row = kernel.row_of(support.rows[spare], dense)
            found = values_with_room(kernel, learner, row, i)
            nearest, known = budgets.nearest_vector(*known_of, spare, found, costs)
            to_nearest = found[nearest]
            if budget.strategy == budgets.NEAREST and not known:
                continue
        turn = (spare, nearest, to_nearest, budget.strategy, trials)
        support.size = budgets.drop_vector(support.vectors, *known_of, values, *turn)


def values_with_room(kernel: FunctionKernel, learner: KernelLearner, row: Floats, i: int) -> Floats:
    """Kernel values of a row with the support vectors, and room for one more."""
    support = learner.support
    values = np.zeros(support.dual.shape[1])
    if support.size:
        values[: support.size] = kernel.values(row.reshape(1, -1), support.rows, i)[0]
    return values


def dense_row(matrix: tuple[Any, ...], width: int, i: int) -> tuple[Floats, float]:
    """Row i of a block written out, and its squared norm."""
    row = np.empty(width)
    return row, read_row(*row_at.py_func(*matrix, width, i), row)


def scores_in_python(learner: KernelLearner, kernel: FunctionKernel, *rows: Any) -> int:
    """Fill in the scores of the rows of a block, many at once; the first bad row, or -1."""
    matrix, out = rows[:3], rows[3]
    coef, vectors = learner.dual_coef, learner.support.rows
    at_once = max(1, VALUES_AT_ONCE // max(1, coef.size + learner.n_features))
    for start in range(0, out.size, at_once):
        part = range(start, min(start + at_once, out.size))
        dense = [dense_row(matrix, learner.n_features, i) for i in part]
        for i, (_, square) in zip(part, dense, strict=True):
            if not square < MAX_SQ_NORM:
                return i
        if coef.size:
            X = np.array([row for row, _ in dense])
            with np.errstate(over="ignore", invalid="ignore"):
                out[start : part.stop] = kernel.values(X, vectors, start) @ coef
            bad = np.flatnonzero(~np.isfinite(out[start : part.stop]))
            if bad.size:
                return start + int(bad[0])
    return -1
