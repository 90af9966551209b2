"""Progress of fits: one line a pass, of what happened in it, and the same model."""

import re

import numpy as np
import pytest
from examples import graded
from sklearn.base import clone

from ordspan import KernelOrdinalPA, OrdinalPA
from ordspan.metrics import mean_absolute_error

X, Y, SPANS = graded(80)
LINE = (
    r"pass (\d+)/3: 80 rows, mean absolute error (\d\.\d{4})"
    r"(, \d+ support vectors)?, \d+\.\d\d s"
)


@pytest.mark.parametrize("estimator", [OrdinalPA(), KernelOrdinalPA()], ids=str)
def test_each_pass_prints_the_error_before_learning_and_changes_nothing(estimator, capsys):
    estimator = estimator.set_params(max_iter=3, shuffle=False, classes=[1, 2, 3, 4])
    silent = clone(estimator).fit(X, SPANS)
    assert capsys.readouterr().out == ""
    loud = clone(estimator).set_params(verbose=1).fit(X, SPANS)
    np.testing.assert_array_equal(loud.learner_.state, silent.learner_.state)
    lines = capsys.readouterr().out.splitlines()
    twin = silent._make_learner(X.shape[1], 4)
    for number, line in enumerate(lines, start=1):
        predicted = twin.learn_many(X, *SPANS.T, predict=True)
        found = re.fullmatch(LINE, line)
        assert int(found[1]) == number
        assert float(found[2]) == pytest.approx(mean_absolute_error(SPANS, predicted), abs=1e-4)
    assert len(lines) == 3
    assert ("support vectors" in lines[-1]) == isinstance(estimator, KernelOrdinalPA)
