"""Numbers at the ends of what a float holds: refused with a reason, or what is learned is finite.

tests/fuzz/calls.py tries the estimators, and saves and loads what could be fitted.
"""

import itertools
from functools import partial

import numpy as np
import pytest

from ordspan import OrdinalPA, OrdinalSVM
from ordspan.learners import KernelLearner
from steps import VARIANTS, make_learner

D, K = 2, 4
WEIGHTS = (5e-324, 1.0, 1e150, 1e308)
SCALES = (0.0, 1e-160, 1e-99, 1.0, 1e20, 1e50, 1e99, 1e150)
STRENGTHS = (5e-324, 1e-320, 1e-300, 1.0, 1e300)  # C
KERNELS = ("rbf", "linear", "poly")
LINEAR = [f"{v} averaged{option}" for v in VARIANTS for option in ("", " balanced", " sca")]
NAMES = ["PRank", "perceptron", *(f"MC-{v}" for v in VARIANTS), *LINEAR]
MAKERS = [partial(make_learner, name, D, K) for name in NAMES] + [
    partial(KernelLearner, D, K, v, average=True, kernel=name, coef0=1.0, budget=2)
    for v in VARIANTS
    for name in KERNELS
]
ROWS = np.random.default_rng(0).standard_normal((3, D))


@pytest.mark.parametrize("make", MAKERS)
def test_whatever_is_learned_is_finite(make):
    for C, weight, scale in itertools.product(STRENGTHS, WEIGHTS, SCALES):
        learner = make(C=C)
        for t, (row, turn) in enumerate(itertools.product(ROWS * scale, range(3))):
            before, reason = learner.state.tobytes(), None
            try:
                learner.learn_many([row], [(t + turn) % K + 1], sample_weight=[weight])
            except ValueError as error:
                reason = str(error)
            assert reason is None or ("row 0" in reason and learner.state.tobytes() == before)
            fault = learner.why_unusable(learner.state, D, K)
            assert fault is None, f"C={C}, weight={weight}, rows near {scale}: {fault}"


def test_numbers_out_of_reach_are_named():
    with pytest.raises(ValueError, match=r"row 1: sample_weight 1e\+308 .* 0 to 1e\+150; .*divide"):
        OrdinalPA().fit([[1.0], [2.0]], [1, 2], sample_weight=[1.0, 1e308])
    with pytest.raises(ValueError, match=r"C = 1e\+300, .* is 4e\+300"):
        OrdinalSVM(C=1e300).fit([[1.0], [2.0]], [1, 2])
