"""The block step of the dual: the exact root, whatever the order of the thresholds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordspan.core import svm
from steps import softness_and_cap

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


@pytest.mark.parametrize("root", [svm.landing_score, svm.landing_score.py_func])
@pytest.mark.parametrize("squared", [False, True])
def test_the_root_solves_the_scalar_equation_from_any_guess(root, squared):
    @BRIEF
    @given(block=blocks(), guess=st.floats(-50, 50))
    def check(block, guess):
        free, base, sq_norm, lower, upper, C = block
        softness, cap = softness_and_cap("PA-II" if squared else "PA-I", C)
        signs = signs_of(free.size, lower, upper)
        landing = root(free, signs, base, guess, sq_norm, softness, cap)
        multipliers = multipliers_at(free, signs, landing, softness, cap)
        rest = landing - base - sq_norm * (signs * multipliers).sum()
        scale = 1 + abs(base) + abs(landing) + sq_norm * (1 + np.abs(multipliers).sum())
        assert abs(rest) <= 1e-12 * scale

    check()
