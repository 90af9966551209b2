"""The block step of the dual: the exact root, whatever the order of the thresholds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordspan.core import svm

inf = np.inf
BRIEF = settings(max_examples=300, deadline=None, derandomize=True)


@st.composite
def blocks(draw):
    """Unsorted thresholds without a row's own part, its score, squared norm, interval and C."""
    n_classes = draw(st.integers(2, 12))
    number = st.floats(-5, 5, allow_nan=False)
    free = np.array(draw(st.lists(number, min_size=n_classes - 1, max_size=n_classes - 1)))
    lower = draw(st.integers(1, n_classes))
    upper = draw(st.integers(lower, n_classes))
    sq_norm = 10.0 ** draw(st.floats(-4, 4))
    C = 10.0 ** draw(st.floats(-3, 3))
    return free, draw(number), sq_norm, lower, upper, C


def signs_of(n_thresholds, lower, upper):
    i = np.arange(1, n_thresholds + 1)
    return np.where(i < lower, 1.0, np.where(i >= upper, -1.0, 0.0))


def multipliers_at(free, signs, landing, softness, cap):
    """The definition: clipped shortfalls of the required thresholds."""
    shortfalls = (1.0 + signs * (free - landing)) / softness
    return np.where(signs == 0.0, 0.0, np.clip(shortfalls, 0.0, cap))


def limits(C, squared):
    return (1 + 0.5 / C, inf) if squared else (1.0, C)


@pytest.mark.parametrize("root", [svm.landing_score, svm.landing_score.py_func])
@pytest.mark.parametrize("squared", [False, True])
def test_the_root_solves_the_scalar_equation_from_any_guess(root, squared):
    @BRIEF
    @given(block=blocks(), guess=st.floats(-50, 50))
    def check(block, guess):
        free, base, sq_norm, lower, upper, C = block
        softness, cap = limits(C, squared)
        signs = signs_of(free.size, lower, upper)
        landing = root(free, signs, base, guess, sq_norm, softness, cap)
        multipliers = multipliers_at(free, signs, landing, softness, cap)
        rest = landing - base - sq_norm * (signs * multipliers).sum()
        scale = 1 + abs(base) + abs(landing) + sq_norm * (1 + np.abs(multipliers).sum())
        assert abs(rest) <= 1e-12 * scale

    check()


def test_the_slow_twin_gives_the_same_excess():
    rng = np.random.default_rng(0)
    for _ in range(200):
        n_classes = rng.integers(2, 12)
        free = rng.normal(scale=3, size=n_classes - 1)
        lower = rng.integers(1, n_classes + 1)
        upper = rng.integers(lower, n_classes + 1)
        landing, softness, cap = rng.normal(), 1 + rng.random(), 10 ** rng.uniform(-2, 2)
        signs = signs_of(n_classes - 1, lower, upper)
        multipliers = multipliers_at(free, signs, landing, softness, cap)
        for excess in (svm.excess, svm.excess.py_func):
            total, n_linear = excess(free, signs, landing, softness, cap)
            assert total == pytest.approx(softness * (signs * multipliers).sum(), abs=1e-12)
            assert n_linear == ((multipliers > 0) & (multipliers < cap)).sum()


def test_taking_out_and_putting_in_at_the_optimum_changes_nothing():
    thresholds = np.array([0.3, -1.0, 2.0])
    own, signs, free = np.zeros(3), np.empty(3), np.empty(3)
    svm.take_out(thresholds, own, 3, 3, signs, free)
    assert signs.tolist() == [1.0, 1.0, -1.0]
    landing = svm.landing_score(free, signs, 0.1, 0.1, 2.0, 1.0, 0.5)
    pull, change = svm.put_in(thresholds, own, signs, free, landing, 1.0, 0.5)
    assert change > 0
    moved = thresholds.copy()
    assert svm.take_out(thresholds, own, 3, 3, signs, free) == pytest.approx(pull)
    again = svm.landing_score(free, signs, landing - 2.0 * pull, landing, 2.0, 1.0, 0.5)
    assert again == pytest.approx(landing, abs=1e-14)
    svm.put_in(thresholds, own, signs, free, again, 1.0, 0.5)
    np.testing.assert_allclose(thresholds, moved, atol=1e-14)


def test_the_point_is_the_sum_that_the_multipliers_say():
    rng = np.random.default_rng(1)
    X, lower = rng.normal(size=(6, 3)), np.array([1, 2, 3, 4, 2, 3])
    upper = np.array([2, 2, 4, 4, 3, 3])
    required = np.arange(1, 4)
    left = required[None, :] < lower[:, None]
    right = required[None, :] >= upper[:, None]
    multipliers = rng.random((6, 3)) * (left | right)
    signs = np.where(left, 1.0, -1.0)
    point = np.empty(6)
    svm.recompute_point(point, multipliers, X.reshape(-1), None, None, lower)
    np.testing.assert_allclose(point[:3], -(signs * multipliers).sum(axis=0))
    np.testing.assert_allclose(point[3:], (signs * multipliers).sum(axis=1) @ X)
