"""Numbers at the ends of what a float holds: refused with a reason, or what is learned is finite.

What could be fitted can be saved and loaded again.
"""

import itertools
import warnings

import numpy as np
import pytest
from examples import KINDS

from ordspan import KernelOrdinalPA, OrdinalPA, OrdinalSVM, load, save
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


ESTIMATORS = [
    *(kind(random_state=0) for kind in KINDS),
    KernelOrdinalPA(kernel="linear", budget=5, random_state=0),
    OrdinalSVM(max_iter=20),
    OrdinalSVM(loss="hinge", max_iter=20),
]


@pytest.mark.parametrize("model", ESTIMATORS, ids=repr)
def test_whatever_fits_can_be_saved(model, tmp_path):
    X = np.random.default_rng(1).standard_normal((12, D))
    y = np.arange(12) % K
    n_saved = 0
    strengths = (1e-320, 1.0, 1e300) if hasattr(model, "C") else (None,)
    for C, weight, scale in itertools.product(strengths, WEIGHTS, SCALES):
        if C is not None:
            model.set_params(C=C)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # not converged, one grade for all
            reason = reason_against(model.fit, X * scale, y, np.full(12, weight))
        if reason is not None:
            assert "overflow" in reason
            continue
        save(model, tmp_path / f"{n_saved}")
        loaded = load(tmp_path / f"{n_saved}")
        np.testing.assert_array_equal(loaded.predict(X * scale), model.predict(X * scale))
        n_saved += 1
    assert n_saved >= 5


def test_numbers_out_of_reach_are_named():
    with pytest.raises(ValueError, match=r"row 1: sample_weight 1e\+308 is above 1e\+150"):
        OrdinalPA().fit([[1.0], [2.0]], [1, 2], sample_weight=[1.0, 1e308])
    with pytest.raises(ValueError, match=r"C = 1e\+300, .* is 4e\+300"):
        OrdinalSVM(C=1e300).fit([[1.0], [2.0]], [1, 2])
