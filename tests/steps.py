"""Examples and streams of every kind, how to run a step on one, and its optimum by a QP."""

from math import inf, sqrt

import numpy as np
import pytest
import quadprog
from hypothesis import settings
from hypothesis import strategies as st

from ordspan.learners import (
    KernelLearner,
    LinearLearner,
    MulticlassPALearner,
    PerceptronLearner,
    PRankLearner,
)
from ordspan.learners.linear import CLASSES, EXACT_STEP, PRINTED, variants_with

VARIANTS, SEARCHED, MULTICLASS = map(variants_with, (EXACT_STEP, PRINTED, CLASSES))
THOROUGH = settings(max_examples=700, deadline=None, derandomize=True, database=None)
BRIEF = settings(max_examples=150, deadline=None, derandomize=True, database=None)


# a compiled function as the machine runs it and as Python reads it
as_both = pytest.mark.parametrize(
    "form", [lambda f: f, lambda f: f.py_func], ids=["compiled", "plain"]
)


def make_learner(name, n_features, n_classes, C=0.3):
    """One of each kind: "PA", "PA-I averaged", "PA-II balanced", "PA sca", "MC-PA", "PRank" etc."""
    rule, *options = name.split()
    shape = n_features, n_classes
    if rule == "kernel":
        return KernelLearner(*shape, "PA-I", C, average=True, gamma=0.4, budget=30)
    if rule in ("PRank", "perceptron"):
        return (PRankLearner if rule == "PRank" else PerceptronLearner)(*shape)
    if rule.startswith("MC-"):
        return MulticlassPALearner(*shape, rule.removeprefix("MC-"), C)
    solver = "sca" if "sca" in options else "exact"
    how = {"average": "averaged" in options, "balanced": "balanced" in options, "solver": solver}
    return LinearLearner(*shape, rule, C, **how)


def run(step, theta, score, sq_norm, lower, upper, softness, cap):
    """Pull and new thresholds by the exact step."""
    edges, label = np.array([-inf, *theta, inf]), (float(score), float(sq_norm), lower, upper)
    pull, finite = step(edges, np.empty(0), 0.0, *label, float(softness), float(cap))
    assert finite
    assert edges[[0, -1]].tolist() == [-inf, inf]
    return pull, edges[1:-1]


def by_quadprog(theta, score, sq_norm, lower, upper, softness, cap):
    """New thresholds by the Goldfarb-Idnani solver, from the dual of every variant.

    The dual is  min 1/2 s (v.m)^2 + softness/2 |m|^2 - d.m  over multipliers 0 <= m <= cap with
    signs v and signed shortfalls d. Its Hessian is as ill-conditioned as s is large, so sqrt(s) v.m
    becomes a variable of its own, tied by one equation, and m is scaled: the Hessian is then the
    identity, and the thresholds come out to 1e-13 for any s. The pull does not: it is a difference
    of multipliers that loses log10(s) digits, which is why it is held against the exact truth only.
    """
    i = np.arange(1, theta.size + 1)
    required = (i < lower) | (i >= upper)
    sign = np.where(i < lower, 1.0, -1.0)[required]
    scale = sqrt(softness)
    linear = np.concatenate([[0.0], (1 + sign * (theta[required] - score)) / scale])
    tie = np.concatenate([[1.0], -sqrt(sq_norm) / scale * sign])
    at_least_zero = np.eye(linear.size)[:, 1:]
    constraints = [(tie / np.linalg.norm(tie))[:, None], at_least_zero]
    bounds = np.zeros(linear.size)
    if cap < inf:
        constraints.append(-at_least_zero)
        bounds = np.concatenate([bounds, np.full(sign.size, -cap * scale)])
    solved = quadprog.solve_qp(np.eye(linear.size), linear, np.hstack(constraints), bounds, 1)[0]
    new = theta.copy()
    new[required] -= sign * solved[1:] / scale
    return new


def stream(n_rows, n_features, n_classes, seed=0, scale=1.0, zeros=0.0):
    """Rows in eighths (their sums are exact) with a mix of exact, interval and open labels."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n_rows, n_features)) * 8) / 8 * scale
    lower = rng.integers(1, n_classes + 1, n_rows)
    upper = np.where(rng.random(n_rows) < 0.5, lower, rng.integers(lower, n_classes + 1))
    X[rng.random(X.shape) < zeros] = 0.0
    return X, lower, upper


# a coarse grid makes ties between thresholds, and between thresholds and margins
GRID = sorted(np.arange(-12, 13) / 4, key=abs)
LEVELS = st.one_of(st.sampled_from(GRID), st.floats(-50, 50, width=32, allow_subnormal=False))
ODD = np.random.default_rng(0).uniform(-50, 50, 131) * np.append(
    np.ones(99), np.geomspace(1e-14, 1, 32)
)
TABLE = np.concatenate([np.tile(GRID, 5), ODD])  # as many as a byte can count


def levels(size):
    """Many levels in one draw; a draw for each would take most of the time of the tests."""
    drawn = st.binary(min_size=size, max_size=size)
    return drawn.map(lambda numbers: TABLE[np.frombuffer(numbers, np.uint8)])


@st.composite
def labels(draw, n_classes):
    """Exact, interval, known from one side only, or known not at all."""
    lower = draw(st.integers(1, n_classes))
    upper = draw(st.integers(lower, n_classes))
    exact, one_sided = (lower, lower), [(lower, n_classes), (1, upper)]
    return draw(st.sampled_from([exact, exact, (lower, upper), *one_sided, (1, n_classes)]))


@st.composite
def trials(draw, max_classes=30, decades=12):
    """Thresholds, score, squared norm, label and C."""
    n_classes = draw(st.integers(2, max_classes))
    theta = np.sort(draw(levels(n_classes - 1)))
    zero_row = draw(st.integers(0, 9)) == 0
    sq_norm = 0.0 if zero_row else 10.0 ** draw(st.floats(-decades, decades))
    C = 10.0 ** draw(st.floats(-decades / 2, decades / 2))
    return theta, draw(LEVELS), sq_norm, *draw(labels(n_classes)), C


def data_size(theta, score):
    """The yardstick: rounding is relative to the largest number that takes part."""
    return 1.0 + abs(score) + np.abs(theta).max()
