"""PRank against its slow twin."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from steps import BRIEF, NO_CORRECTION, both, pad, trials

import naive
from ordspan.core import baselines


@both(baselines.prank_step)
@BRIEF
@given(trial=trials(max_classes=12), size=st.sampled_from([1.0, 0.3, 2.5]))
def test_prank_is_its_slow_twin(step, trial, size):
    theta, score, _, lower, upper, _ = trial
    edges = pad(theta)
    pull, moved, finite = step(edges, NO_CORRECTION, 0.0, float(score), lower, upper, size)
    twin_pull, twin_new = naive.prank_step(theta, score, lower, upper, size)
    assert finite
    assert moved == (twin_pull != 0 or bool(np.any(twin_new != theta)))
    assert pull == pytest.approx(twin_pull, rel=1e-15)
    np.testing.assert_array_equal(edges[1:-1], twin_new)
