"""The printed algorithms against their slow twins, and where they are not optimal."""

from math import inf

import numpy as np
import pytest
from hypothesis import given

import naive
from ordspan.experiments import sca
from ordspan.learners import LinearLearner
from steps import BRIEF, SEARCHED, as_both, data_size, trials


def printed(theta, score, sq_norm, lower, upper, C=1.0, variant="PA", step=sca.step):
    """Pull, new thresholds and whether anything moved, by the printed step."""
    model = LinearLearner(1, theta.size + 1, variant, C, solver="sca").model
    model.edges[1:-1] = theta
    pull, moved, finite = step(model, 0.0, C, float(score), float(sq_norm), lower, upper)
    assert finite
    return pull, model.edges[1:-1], moved


def test_the_printed_step_s_pull_is_that_of_its_support_on_long_rows():
    theta, score, sq_norm = np.array([0.1, 0.3, 0.7]), -10.3, 1e12
    pull, _, _ = printed(theta, score, sq_norm, 4, 4)
    _, _, written = naive.sca_support(theta, score, sq_norm, 4, 4)
    assert pull == pytest.approx(written, rel=1e-9, abs=0)


@as_both
@pytest.mark.parametrize("variant", SEARCHED)
@BRIEF
@given(trial=trials(max_classes=12, decades=2))
def test_the_printed_step_is_its_slow_twin(form, variant, trial):
    theta, score, sq_norm, lower, upper, C = trial
    softness, cap = naive.softness_and_cap(variant, C)
    pull, new, moved = printed(*trial, variant, form(sca.step))
    if not moved:
        assert not naive.losses(theta, score, lower, upper).any()
        return
    twin_pull, twin_new = naive.sca_step(*trial[:5], softness, cap)
    size = data_size(theta, score)
    # Algorithm 3 multiplies rounding by s |S| in each of its 100 rounds; the caps keep it bounded
    diverging = cap < inf and sq_norm * theta.size > 1
    loose = 1e-9 * size + (C if diverging else 0.0)
    np.testing.assert_allclose(new, twin_new, rtol=0, atol=loose)
    assert pull == pytest.approx(twin_pull, rel=1e-8, abs=loose * theta.size)


def test_the_printed_sca_is_feasible_but_not_the_smallest_move():
    theta = np.array([0.0, 5.0])
    pull, new, _ = printed(theta, 0.0, 1.0, 2, 2)
    assert pull == pytest.approx(1 / 3, rel=1e-15)
    assert new == pytest.approx([-2 / 3, 16 / 3], rel=1e-15)
    assert naive.losses(new, pull, 2, 2).sum() == pytest.approx(0, abs=1e-15)
    assert pull**2 + np.sum((new - theta) ** 2) == pytest.approx(2 / 3)


def test_the_printed_sca_can_break_the_order_and_is_repaired():
    # the left side stops growing because the right side's test overwrote the flag: theta_2 and
    # theta_3 come down past theta_1, though none of the three was violated
    theta = np.array([0.0, 0.0, 0.0, 0.0, 10.0])
    pull, broken = naive.sca_hard(theta, 1.0, 1.0, 4, 4)
    assert pull == -0.5
    assert broken.tolist() == [0.0, -0.5, -0.5, 1.5, 10.0]
    pull, new, _ = printed(theta, 1.0, 1.0, 4, 4)
    assert pull == -0.5
    assert new.tolist() == [0.0, 0.0, 0.0, 1.5, 10.0]
