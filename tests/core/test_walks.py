"""Whole streams: the walks against plain NumPy, and what must hold after any number of steps."""

import numpy as np
import pytest

import naive
from ordspan.core import state as layout
from ordspan.core import walks
from ordspan.core.rows import Rows
from ordspan.core.state import TRIALS, UPDATES, model_view
from steps import NO_ORDER, NO_WEIGHTS, as_both, stream

RULES = {
    "PA": layout.HARD,
    "PA-I": layout.CAPPED,
    "PA-II": layout.SOFT,
    "PA sca": layout.SCA_HARD,
    "PA-I sca": layout.SCA_CAPPED,
    "PA-II sca": layout.SCA_SOFT,
    "PRank": layout.PRANK,
    "perceptron": layout.PERCEPTRON,
    "MC-PA": layout.CLASSES_HARD,
    "MC-PA-I": layout.CLASSES_CAPPED,
    "MC-PA-II": layout.CLASSES_SOFT,
}
WITH_VECTORS = [name for name, rule in RULES.items() if layout.has_vectors.py_func(rule)]
WITH_THRESHOLDS = [name for name in RULES if name not in WITH_VECTORS]


def state_for(name, n_features, n_classes, C=0.5):
    size = C if "PA" in name else 1.0
    return layout.new_state(RULES[name], size, n_features, n_classes, False)


def walks_of(state):
    """The walks compiled for the rule of a state."""
    rule = model_view(state).rule
    if layout.has_vectors.py_func(rule):
        return walks.VECTORS
    if rule in layout.UNSORTED:
        from ordspan.experiments.sca import SCA

        return SCA
    return walks.PRANK if rule == layout.PRANK else walks.EXACT


def walk(state, X, lower, upper, step=None, sample_weight=NO_WEIGHTS):
    predicted = np.zeros(len(X), dtype=np.int64)
    rows = Rows(X.reshape(-1), None, None, lower, upper, sample_weight, X.shape[1])
    bad = (step or walks_of(state).walk)(state, rows, NO_ORDER, predicted, NO_WEIGHTS)
    assert bad == -1
    return predicted


def twin(name, X, lower, upper, n_classes, **options):
    rule, _, solver = name.partition(" ")
    return naive.learn_stream(
        X, lower, upper, rule, C=0.5, solver=solver or "exact", n_classes=n_classes, **options
    )


def assert_same_learner(state, predicted, expected):
    model = model_view(state)
    np.testing.assert_allclose(model.weights, expected.weights.ravel(), rtol=0, atol=1e-9)
    np.testing.assert_allclose(model.edges[1:-1], expected.thresholds, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(predicted, expected.predicted)
    assert model.counters[UPDATES] == expected.n_updates


# -- twins ---------------------------------------------------------------------------------------


@as_both
@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_walk_is_the_plain_numpy_stream(name, weighted, form):
    """Sample weights scale the step of each row."""
    X, lower, upper = stream(300, 3, 5, scale=0.25)  # short rows, on which SCA-I settles
    weight = np.random.default_rng(3).integers(0, 5, 300) / 2 if weighted else np.ones(300)
    state, given = state_for(name, 3, 5), weight if weighted else NO_WEIGHTS
    predicted = walk(state, X, lower, upper, form(walks_of(state).walk), given)
    assert_same_learner(state, predicted, twin(name, X, lower, upper, 5, sample_weight=weight))
    assert model_view(state).counters[TRIALS] == np.count_nonzero(weight)


@as_both
@pytest.mark.parametrize("name", ["PA", "PA-I", "PA-II", "PRank"])
def test_a_learner_that_averages_predicts_by_the_mean_of_its_iterates(name, form):
    X, lower, upper = stream(300, 3, 5, seed=5)
    state = layout.new_state(RULES[name], 0.5 if "PA" in name else 1.0, 3, 5, average=True)
    predicted = walk(state, X, lower, upper, form(walks_of(state).walk))
    expected = twin(name, X, lower, upper, 5, average=True)
    np.testing.assert_array_equal(predicted, expected.predicted)
    last = form(walks_of(state).predict_one)
    scores = X @ expected.weights
    ranks = [naive.rank(expected.thresholds, score) for score in scores]
    assert [last(state, x, None) for x in X] == ranks
    assert [walks.score_one(state, x, None) for x in X] == pytest.approx(scores)


# -- the order of the thresholds -----------------------------------------------------------------


def hard_stream(n_rows, n_features, n_classes, seed, decades=(-6, 6)):
    """Rows whose lengths span many decades, some zero, with labels of every kind."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)) * 10.0 ** rng.uniform(*decades, size=(n_rows, 1))
    X[rng.random(n_rows) < 0.02] = 0
    lower = rng.integers(1, n_classes + 1, n_rows)
    upper = np.where(rng.random(n_rows) < 0.5, lower, rng.integers(lower, n_classes + 1))
    return X, lower, upper


@pytest.mark.parametrize("name", WITH_THRESHOLDS)
@pytest.mark.parametrize(("n_features", "n_classes"), [(1, 5), (7, 30), (20, 200)])
def test_thresholds_stay_sorted_to_the_bit(name, n_features, n_classes):
    n_rows = 20_000
    # on long rows the printed SCA runs away to infinity
    decades = (-6, -1) if name in ("PA sca", "PA-II sca") else (-6, 6)
    X, lower, upper = hard_stream(n_rows, n_features, n_classes, n_classes, decades)
    weight = np.random.default_rng(0).exponential(size=n_rows)
    state = state_for(name, n_features, n_classes, C=0.37)
    edges = model_view(state).edges
    short = 50  # look often: disorder may heal
    for start in range(0, n_rows, short):
        rows = slice(start, start + short)
        weights = weight[rows] if start % 200 else NO_WEIGHTS
        walk(state, X[rows], lower[rows], upper[rows], sample_weight=weights)
        assert np.all(edges[:-1] <= edges[1:])
    assert np.isfinite(edges[1:-1]).all()
