"""Ranks against their definition."""

from hypothesis import given
from hypothesis import strategies as st
from steps import BRIEF, both, pad, trials

import naive
from ordspan.core import ranking


@both(ranking.rank_near)
@BRIEF
@given(trial=trials(max_classes=12), guess=st.integers(1, 12))
def test_the_rank_does_not_depend_on_the_guess(step, trial, guess):
    theta, score = trial[:2]
    expected = naive.rank(theta, score)
    assert step(pad(theta), float(score), min(guess, theta.size + 1)) == expected
