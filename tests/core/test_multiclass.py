"""The exact multiclass step against its definition, a QP solver and its slow twin."""

from math import inf, sqrt

import numpy as np
import pytest
import quadprog
from hypothesis import given
from hypothesis import strategies as st

import naive
from ordspan.core import multiclass
from steps import BRIEF, MULTICLASS, THOROUGH, as_both, labels, levels

each_variant = pytest.mark.parametrize("variant", MULTICLASS)


@st.composite
def trials(draw, max_classes=12, decades=6):
    """Scores, squared norm, label and C; a tenth of the rows is zero."""
    n_classes = draw(st.integers(2, max_classes))
    scores = draw(levels(n_classes))
    zero_row = draw(st.integers(0, 9)) == 0
    sq_norm = 0.0 if zero_row else 10.0 ** draw(st.floats(-decades, decades))
    return scores, sq_norm, *draw(labels(n_classes)), 10.0 ** draw(st.floats(-6, 6))


def spread_and_cap(variant, C):
    return {"PA": (0.0, inf), "PA-I": (0.0, C), "PA-II": (0.5 / C, inf)}[variant]


def pulls_of(step, scores, sq_norm, lower, upper, variant, C):
    """What the step adds to each class; nothing where it says that nothing moves."""
    spread, cap = spread_and_cap(variant, C)
    outside = [k for k in range(1, scores.size + 1) if not lower <= k <= upper]
    scratch = np.array([scores, np.full(scores.size, np.nan)])
    if not outside:
        return np.zeros(scores.size)
    best = lower + int(np.argmax(scores[lower - 1 : upper]))
    rival = max(outside, key=lambda k: scores[k - 1])
    moved, finite = step(scratch, best, rival, sq_norm, lower, upper, spread, cap)
    assert finite
    return scratch[1] if moved else np.zeros(scores.size)


def by_quadprog(scores, sq_norm, lower, upper, variant, C):
    """sqrt(s) times the multipliers of the classes outside by the Goldfarb-Idnani solver.

    The dual of all three is  min s/2 (|m|^2 + T^2) + spread/2 T^2 - l.m  over m >= 0, T = sum of m
    <= C for PA-I. T becomes a variable of its own, tied by one equation, and all are scaled by
    sqrt(s) and their weight, so that the Hessian is the identity for any s and spread.
    """
    outside = np.array([not lower <= k <= upper for k in range(1, scores.size + 1)])
    loss = 1 - (scores[lower - 1 : upper].max() - scores[outside])
    weight = sqrt(1 + (0.5 / C / sq_norm if variant == "PA-II" else 0.0))
    linear = np.concatenate([[0.0], loss / sqrt(sq_norm)])
    size = max(1.0, np.abs(linear).max())
    tie = np.concatenate([[1.0 / weight], -np.ones(loss.size)])
    constraints = [(tie / np.linalg.norm(tie))[:, None], np.eye(linear.size)[:, 1:]]
    bounds = np.zeros(linear.size)
    if variant == "PA-I":
        constraints.append(-np.eye(linear.size)[:, :1])
        bounds = np.append(bounds, -C * sqrt(sq_norm) / size)
    solved = quadprog.solve_qp(
        np.eye(linear.size), linear / size, np.hstack(constraints), bounds, 1
    )[0]
    return solved[1:] * size, outside


@each_variant
@THOROUGH
@given(trial=trials())
def test_the_step_is_the_optimum_of_the_quadratic_program(variant, trial):
    scores, sq_norm, lower, upper, C = trial
    pulls = pulls_of(multiclass.class_step, scores, sq_norm, lower, upper, variant, C)
    assert pulls.sum() == pytest.approx(0.0, abs=1e-12 * np.abs(pulls).max())
    if sq_norm == 0.0:  # whatever moves, the scores do not: the smallest change is none
        assert not pulls.any()
    elif lower > 1 or upper < scores.size:
        solved, outside = by_quadprog(scores, sq_norm, lower, upper, variant, C)
        # sqrt(s) times a pull is the length of a vector's change
        tolerance = 1e-9 * (1.0 + np.abs(scores).max()) * max(1.0, 1 / sqrt(sq_norm))
        np.testing.assert_allclose(-pulls[outside] * sqrt(sq_norm), solved, rtol=0, atol=tolerance)


@each_variant
@as_both
@BRIEF
@given(trial=trials(max_classes=40, decades=3))
def test_the_step_is_its_slow_twin(form, variant, trial):
    scores, sq_norm, lower, upper, C = trial
    spread, cap = spread_and_cap(variant, C)
    twin = naive.class_step(scores, sq_norm, lower, upper, spread, cap)
    pulls = pulls_of(form(multiclass.class_step), scores, sq_norm, lower, upper, variant, C)
    atol = 1e-11 * (1 + np.abs(scores).max()) / (sq_norm or 1.0)
    np.testing.assert_allclose(pulls, twin, rtol=0, atol=atol)
