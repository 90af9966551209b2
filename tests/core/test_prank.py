"""PRank against its slow twin."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from ordspan.core import prank
from ordspan.core.state import PRANK, model_view, new_state
from steps import BRIEF, both, trials


@both(prank.step)
@BRIEF
@given(trial=trials(max_classes=12), size=st.sampled_from([1.0, 0.3, 2.5]))
def test_prank_is_its_slow_twin(step, trial, size):
    theta, score, _, lower, upper, _ = trial
    model = model_view(new_state(PRANK, size, 1, theta.size + 1, average=False))
    model.edges[1:-1] = theta
    pull, moved, finite = step(model, 0.0, size, float(score), 1.0, lower, upper)
    twin_pull, twin_new = naive.prank_step(theta, score, lower, upper, size)
    assert finite
    assert moved == (twin_pull != 0 or bool(np.any(twin_new != theta)))
    assert pull == pytest.approx(twin_pull, rel=1e-15)
    np.testing.assert_array_equal(model.edges[1:-1], twin_new)
