"""The scores that rows are predicted by before they are learned."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from ordspan.learners import KernelLearner, LinearLearner, PRankLearner

LEARNERS = {
    "averaged": lambda: LinearLearner(3, 4, average=True, balanced=True),
    "last": lambda: LinearLearner(3, 4, "PA-II"),
    "prank": lambda: PRankLearner(3, 4),
    "kernel": lambda: KernelLearner(3, 4, average=True),
}


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, csr_array], ids=str)
@pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS)
def test_a_row_is_seen_by_the_score_it_had_before_it_was_learned(make, form):
    rng = np.random.default_rng(0)
    X, order = rng.normal(size=(40, 3)), rng.permutation(40)
    ranks = 1 + np.searchsorted([-1.0, 0.0, 1.0], X[:, 0])
    learner, twin, seen = make(), make(), np.empty(40)
    predicted = learner.learn(learner.examples(form(X), ranks), order=order, seen=seen)
    for i in order:
        np.testing.assert_allclose(seen[i], twin.latent(X[[i]])[0], rtol=1e-9, atol=1e-12)
        assert predicted[i] == twin.predict_many(X[[i]])[0]
        twin.learn_many(X[[i]], ranks[[i]])
