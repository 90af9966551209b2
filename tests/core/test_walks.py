"""Whole streams: the walks against plain NumPy, and what must hold after any number of steps."""

import numpy as np
import pytest

import naive
from ordspan.core import memory as layout
from ordspan.core import walks
from ordspan.core.memory import TRIALS, UPDATES, model_view

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
NO_WEIGHTS, NO_ORDER = np.empty(0), np.empty(0, dtype=np.intp)


def stream(n_rows, n_features, n_classes, seed=0, scale=1.0):
    """Rows in eighths (their sums are exact) with a mix of exact, interval and open labels."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n_rows, n_features)) * 8) / 8 * scale
    lower = rng.integers(1, n_classes + 1, n_rows)
    upper = np.where(rng.random(n_rows) < 0.5, lower, rng.integers(lower, n_classes + 1))
    return X, lower, upper


def memory_for(name, n_features, n_classes, C=0.5):
    size = C if "PA" in name else 1.0
    return layout.new_memory(RULES[name], size, n_features, n_classes, False)


def walks_of(memory):
    """The walks compiled for the rule of a memory."""
    return walks.walks_for(model_view(memory).rule)


as_both = pytest.mark.parametrize(
    "form", [lambda f: f, lambda f: f.py_func], ids=["compiled", "plain"]
)


def walk(memory, X, lower, upper, step=None, sample_weight=NO_WEIGHTS):
    predicted = np.zeros(len(X), dtype=np.int64)
    rows = (X.reshape(-1), None, None, lower, upper, sample_weight, NO_ORDER)
    bad = (step or walks_of(memory).walk)(memory, *rows, predicted, NO_WEIGHTS)
    assert bad == -1
    return predicted


def twin(name, X, lower, upper, n_classes, **options):
    rule, _, solver = name.partition(" ")
    return naive.learn_stream(
        X, lower, upper, rule, C=0.5, solver=solver or "exact", n_classes=n_classes, **options
    )


def assert_same_learner(memory, predicted, expected):
    model = model_view(memory)
    np.testing.assert_allclose(model.weights, expected.weights.ravel(), rtol=0, atol=1e-9)
    np.testing.assert_allclose(model.edges[1:-1], expected.thresholds, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(predicted, expected.predicted)
    assert model.counters[UPDATES] == expected.n_updates


# -- twins ---------------------------------------------------------------------------------------


@as_both
@pytest.mark.parametrize("name", RULES)
def test_a_walk_is_the_plain_numpy_stream(name, form):
    X, lower, upper = stream(300, 3, 5, scale=0.25)  # short rows, on which SCA-I settles
    memory = memory_for(name, 3, 5)
    predicted = walk(memory, X, lower, upper, form(walks_of(memory).walk))
    assert_same_learner(memory, predicted, twin(name, X, lower, upper, 5))
    assert model_view(memory).counters[TRIALS] == 300


@pytest.mark.parametrize("name", ["PA-I", "PA-II", "PRank", *WITH_VECTORS])
def test_sample_weights_scale_the_step_of_each_row(name):
    X, lower, upper = stream(200, 3, 5, seed=3)
    weight = np.random.default_rng(3).integers(0, 5, 200) / 2
    memory = memory_for(name, 3, 5)
    predicted = walk(memory, X, lower, upper, sample_weight=weight)
    expected = twin(name, X, lower, upper, 5, sample_weight=weight)
    assert_same_learner(memory, predicted, expected)
    assert model_view(memory).counters[TRIALS] == np.count_nonzero(weight)


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
    memory = memory_for(name, n_features, n_classes, C=0.37)
    edges = model_view(memory).edges
    short = 50  # look often: disorder may heal
    for start in range(0, n_rows, short):
        rows = slice(start, start + short)
        weights = weight[rows] if start % 200 else NO_WEIGHTS
        walk(memory, X[rows], lower[rows], upper[rows], sample_weight=weights)
        assert np.all(edges[:-1] <= edges[1:])
    assert np.isfinite(edges[1:-1]).all()
