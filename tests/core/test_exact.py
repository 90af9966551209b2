"""The exact step against its definition, a QP solver and its slow twin."""

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from hypothesis import given

import naive
from ordspan.core import exact
from steps import BRIEF, THOROUGH, VARIANTS, as_both, by_quadprog, data_size, run, trials


def limits(variant, C):
    """Softness and cap; "both" has the one of PA-II and the other of PA-I."""
    if variant == "both":
        return naive.softness_and_cap("PA-II", C)[0], C
    return naive.softness_and_cap(variant, C)


def assert_optimal(theta, score, sq_norm, lower, upper, softness, cap, pull, new):
    """The Karush-Kuhn-Tucker conditions, which prove the optimum of a convex QP, with no slack."""
    landing = Fraction(score) + pull * Fraction(sq_norm)
    total = 0
    for i, (old, now) in enumerate(zip(theta, new, strict=True), start=1):
        side = 1 if i < lower else -1 if i >= upper else 0
        multiplier = side * (Fraction(old) - now)
        margin = side * (landing - now) - 1 + (softness - 1) * multiplier
        total += side * multiplier
        if side == 0:
            assert now == old
        else:
            assert 0 <= multiplier <= cap
            assert margin >= 0 or multiplier == cap
            assert margin <= 0 or multiplier == 0
    assert pull == total


@pytest.mark.parametrize("variant", [*VARIANTS, "both"])
@THOROUGH
@given(trial=trials())
def test_the_step_is_the_optimum_of_the_quadratic_program(variant, trial):
    theta, score, sq_norm, lower, upper, C = trial
    softness, cap = limits(variant, C)
    size = data_size(theta, score)

    pull, new = run(exact.exact_step, *trial[:5], softness, cap)
    assert np.all(new[:-1] <= new[1:])
    np.testing.assert_array_equal(new[lower - 1 : upper - 1], theta[lower - 1 : upper - 1])
    if variant == "PA":  # nothing is left to correct
        left = naive.losses(new, score + pull * sq_norm, lower, upper).sum()
        assert left <= 1e-12 * size * theta.size
    if lower > 1 or upper < theta.size + 1:
        solved = by_quadprog(*trial[:5], softness, cap)
        np.testing.assert_allclose(new, solved, rtol=0, atol=1e-9 * size)

    # the slow twin in rational arithmetic: not one digit is lost
    rational = np.array([Fraction(v) for v in theta], dtype=object)
    softness, cap = limits(variant, Fraction(C))
    exactly = rational, Fraction(score), Fraction(sq_norm), lower, upper, Fraction(softness), cap
    true_pull, true_new = naive.exact_step(*exactly)
    assert_optimal(*exactly, true_pull, true_new)
    np.testing.assert_allclose(new, true_new.astype(float), rtol=0, atol=1e-12 * size)
    # s times an error in the pull is an error in the new score; on short rows the sum counts
    error = float(abs(Fraction(pull) - true_pull))
    assert error * min(1.0, sqrt(sq_norm)) <= 1e-9 * size * theta.size
    assert error * sq_norm <= 1e-9 * size


# the search adds and takes away s times the way to each corner; where it ends with every threshold
# at its cap, nothing divides that rounding by s again
def test_a_score_that_lands_where_all_are_capped_is_exact_on_long_rows():
    # two thresholds pull by C, one holds by C: the pull is C, whatever the length of the row
    for score in (-10.0, -7.3, -11.7):
        C = (0.1 - score) / 1e10
        pull, _ = run(exact.exact_step, np.full(3, 0.1), score, 1e10, 3, 3, 1.0, C)
        assert pull == pytest.approx(C, rel=1e-9, abs=0)
    theta = np.array([-0.8, -0.7, -0.5, -0.4, -0.4, -0.2, -0.2, -0.2, -0.2, -0.2, 0.4])
    pull, _ = run(exact.exact_step, theta, -1.17, 1e10, 6, 6, 1.0, 1e-5)
    assert abs(pull) * 1e10 <= 1e-9  # five pull, five hold


@as_both
@pytest.mark.parametrize("variant", [*VARIANTS, "both"])
@BRIEF
@given(trial=trials(max_classes=200, decades=4))
def test_the_exact_step_is_its_slow_twin(form, variant, trial):
    softness, cap = limits(variant, trial[-1])
    pull, new = run(form(exact.exact_step), *trial[:5], softness, cap)
    twin_pull, twin_new = naive.exact_step(*trial[:5], softness, cap)
    size = data_size(*trial[:2])
    np.testing.assert_allclose(new, twin_new, rtol=0, atol=1e-12 * size)
    if trial[2] > 0:  # a zero row has no use for a pull
        assert pull == pytest.approx(twin_pull, rel=1e-8, abs=1e-10 * size)
