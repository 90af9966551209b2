"""Numbers at the ends of what a float holds: refused with a reason, or what is learned is finite.

tests/fuzz/calls.py tries the estimators, and saves and loads what could be fitted.
"""

import itertools

import numpy as np
import pytest

from ordspan import OrdinalPA, OrdinalSVM
from ordspan.learners import (
    KernelLearner,
    LinearLearner,
    MulticlassPALearner,
    PerceptronLearner,
    PRankLearner,
)

D, K = 2, 4
WEIGHTS = (5e-324, 1.0, 1e150, 1e308)
SCALES = (0.0, 1e-160, 1e-99, 1.0, 1e20, 1e50, 1e99, 1e150)
STRENGTHS = (5e-324, 1e-320, 1e-300, 1.0, 1e300)  # C
VARIANTS = ("PA", "PA-I", "PA-II")
LEARNERS = {
    "PRank": lambda C: PRankLearner(D, K),
    "perceptron": lambda C: PerceptronLearner(D, K),
    **{f"classes {v}": lambda C, v=v: MulticlassPALearner(D, K, v, C) for v in VARIANTS},
    **{
        f"printed {v}": lambda C, v=v: LinearLearner(D, K, v, C, True, solver="sca")
        for v in VARIANTS
    },
    **{
        f"exact {v} balanced={b}": lambda C, v=v, b=b: LinearLearner(D, K, v, C, True, balanced=b)
        for v, b in itertools.product(VARIANTS, (False, True))
    },
    **{
        f"{kernel} {v}": lambda C, v=v, kernel=kernel: KernelLearner(
            D, K, v, C, True, kernel=kernel, coef0=1.0, budget=2
        )
        for v, kernel in itertools.product(VARIANTS, ("rbf", "linear", "poly"))
    },
}
ROWS = np.random.default_rng(0).standard_normal((3, D))


def reason_against(call, *arguments, **named):
    """Why a call was refused, or None."""
    try:
        call(*arguments, **named)
    except ValueError as error:
        return str(error)
    return None


@pytest.mark.parametrize("name", LEARNERS)
def test_whatever_is_learned_is_finite(name):
    for C, weight, scale in itertools.product(STRENGTHS, WEIGHTS, SCALES):
        learner = LEARNERS[name](C)
        for t, (row, turn) in enumerate(itertools.product(ROWS * scale, range(3))):
            before = learner.state.tobytes()
            label = [(t + turn) % K + 1]
            reason = reason_against(learner.learn_many, [row], label, sample_weight=[weight])
            assert reason is None or "row 0" in reason
            assert reason is None or learner.state.tobytes() == before
            fault = learner.why_unusable(learner.state, D, K)
            assert fault is None, f"C={C}, weight={weight}, rows near {scale}: {fault}"


def test_numbers_out_of_reach_are_named():
    with pytest.raises(ValueError, match=r"row 1: sample_weight 1e\+308 is above 1e\+150"):
        OrdinalPA().fit([[1.0], [2.0]], [1, 2], sample_weight=[1.0, 1e308])
    with pytest.raises(ValueError, match=r"C = 1e\+300, .* is 4e\+300"):
        OrdinalSVM(C=1e300).fit([[1.0], [2.0]], [1, 2])
