"""KernelOrdinalPA: OrdinalPA with a kernel, in scikit-learn's words."""

from copy import copy

import numpy as np
import pytest
import scipy.sparse as sp
from examples import graded
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from ordspan import KernelOrdinalPA

X, Y, SPANS = graded(n=200)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_gamma_is_found_as_svc_finds_it_or_from_the_distances_between_rows(form):
    for gamma in ("scale", "auto", 0.3):
        model = KernelOrdinalPA(gamma=gamma).fit(form(X), Y)
        assert model.gamma_ == pytest.approx(SVC(gamma=gamma).fit(form(X), Y)._gamma, rel=1e-12)
    alike = np.ones((4, 2)), [1, 2, 1, 2]
    assert KernelOrdinalPA(gamma="scale").fit(*alike).gamma_ == 1.0
    assert KernelOrdinalPA().fit(*alike).gamma_ == 0.25  # as for standardised features
    rows = X + np.arange(X.shape[1])  # how far the features are from 0 does not matter
    distances = np.sum((rows[:, None] - rows) ** 2, axis=-1)
    found = KernelOrdinalPA().fit(form(rows), Y).gamma_
    assert found == pytest.approx(1 / distances.mean(), rel=1e-12)


def test_fitted_attributes_describe_the_score():
    model = KernelOrdinalPA(random_state=0).fit(X, Y)
    values = rbf_kernel(X, model.support_vectors_, gamma=model.gamma_)
    np.testing.assert_allclose(values @ model.dual_coef_, model.latent(X), atol=1e-10)
    assert not hasattr(model, "coef_")


def test_parameters_set_anew_count_from_the_next_batch_on():
    model = KernelOrdinalPA().partial_fit(X, Y, classes=[1, 2, 3, 4])
    n_before = model.dual_coef_.size
    model.set_params(C=1.0, budget=30).partial_fit(X + 0.1, Y)
    assert model.dual_coef_.size == 30 < n_before
    before = model.learner_.state
    for changed in ({"kernel": "linear"}, {"gamma": 9.0}, {"average": False}):
        with pytest.raises(ValueError, match="kernel, gamma, degree and coef0 cannot change"):
            copy(model).set_params(**changed).partial_fit(X, Y)
    np.testing.assert_array_equal(model.learner_.state, before)
