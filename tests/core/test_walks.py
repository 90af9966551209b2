"""Whole streams: the walks against plain NumPy, and what must hold after any number of steps."""

from math import inf

import numpy as np
import pytest

import naive
from ordspan.core import memory as layout
from ordspan.core import rows, walks
from ordspan.core.memory import TRIALS, UPDATES, model_view
from ordspan.core.ranking import rank_near
from ordspan.core.rows import BAD_LABEL, BAD_ROW, BAD_WIDTH

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
AVERAGED = ["PA", "PA-I", "PA-II"]
NO_WEIGHTS, NO_ORDER = np.empty(0), np.empty(0, dtype=np.intp)


def stream(n_rows, n_features, n_classes, seed=0, scale=1.0):
    """Rows in eighths (their sums are exact) with a mix of exact, interval and open labels."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n_rows, n_features)) * 8) / 8 * scale
    lower = rng.integers(1, n_classes + 1, n_rows)
    upper = np.where(rng.random(n_rows) < 0.5, lower, rng.integers(lower, n_classes + 1))
    return X, lower, upper


def memory_for(name, n_features, n_classes, C=0.5, average=False):
    size = C if "PA" in name else 1.0
    return layout.new_memory(RULES[name], size, n_features, n_classes, average)


def walks_of(memory):
    """The walks compiled for the rule of a memory."""
    return walks.walks_for(model_view(memory).rule)


as_both = pytest.mark.parametrize(
    "form", [lambda f: f, lambda f: f.py_func], ids=["compiled", "plain"]
)


def parameters(memory):
    """Weights and thresholds of the memory, averaged if it averages."""
    model = model_view(memory)
    weights, theta = model.weights.copy(), model.edges[1:-1].copy()
    if model.edge_correction.size:
        weights -= model.weight_correction / model.counters[TRIALS]
        theta -= model.edge_correction[1:-1] / model.counters[TRIALS]
    return weights, theta


def walk(memory, X, lower, upper, step=None, sample_weight=NO_WEIGHTS):
    predicted = np.zeros(len(X), dtype=np.int64)
    rows = (X.reshape(-1), None, None, lower, upper, sample_weight, NO_ORDER)
    bad = (step or walks_of(memory).walk)(memory, *rows, predicted, NO_WEIGHTS)
    assert bad == -1
    return predicted


def one_by_one(memory, X, lower, upper, step):
    return np.array(
        [step(memory, x, None, int(a), int(b)) for x, a, b in zip(X, lower, upper, strict=True)]
    )


def twin(name, X, lower, upper, n_classes, **options):
    rule, _, solver = name.partition(" ")
    return naive.learn_stream(
        X, lower, upper, rule, C=0.5, solver=solver or "exact", n_classes=n_classes, **options
    )


def assert_same_learner(memory, predicted, expected, atol=1e-9):
    weights, theta = parameters(memory)
    np.testing.assert_allclose(weights, expected.weights.ravel(), rtol=0, atol=atol)
    np.testing.assert_allclose(theta, expected.thresholds, rtol=0, atol=atol)
    np.testing.assert_array_equal(predicted, expected.predicted)
    assert model_view(memory).counters[UPDATES] == expected.n_updates


# -- twins ---------------------------------------------------------------------------------------


@as_both
@pytest.mark.parametrize("name", RULES)
def test_a_walk_is_the_plain_numpy_stream(name, form):
    X, lower, upper = stream(300, 3, 5, scale=0.25)  # short rows, on which SCA-I settles
    memory = memory_for(name, 3, 5)
    predicted = walk(memory, X, lower, upper, form(walks_of(memory).walk))
    assert_same_learner(memory, predicted, twin(name, X, lower, upper, 5))
    assert model_view(memory).counters[TRIALS] == 300


@as_both
@pytest.mark.parametrize("name", RULES)
def test_learning_one_by_one_is_the_plain_numpy_stream(name, form):
    X, lower, upper = stream(200, 3, 5, seed=1, scale=0.25)
    memory = memory_for(name, 3, 5)
    predicted = one_by_one(memory, X, lower, upper, form(walks_of(memory).learn_one))
    assert_same_learner(memory, predicted, twin(name, X, lower, upper, 5))


@pytest.mark.parametrize("name", AVERAGED)
def test_the_average_is_the_mean_of_all_stored_iterates(name):
    X, lower, upper = stream(200, 3, 5, seed=2)
    memory = memory_for(name, 3, 5, average=True)
    predicted = walk(memory, X, lower, upper)
    assert_same_learner(memory, predicted, twin(name, X, lower, upper, 5, average=True))


@pytest.mark.parametrize("name", ["PA-I", "PA-II", "PRank", *WITH_VECTORS])
def test_sample_weights_scale_the_step_of_each_row(name):
    X, lower, upper = stream(200, 3, 5, seed=3)
    weight = np.random.default_rng(3).integers(0, 5, 200) / 2
    memory = memory_for(name, 3, 5)
    predicted = walk(memory, X, lower, upper, sample_weight=weight)
    expected = twin(name, X, lower, upper, 5, sample_weight=weight)
    assert_same_learner(memory, predicted, expected)
    assert model_view(memory).counters[TRIALS] == np.count_nonzero(weight)


@pytest.mark.parametrize(("n_classes", "n_rows"), [(300, 150), (1000, 60)])
@pytest.mark.parametrize("name", AVERAGED)
def test_hundreds_of_violated_thresholds_agree_with_the_twin(name, n_classes, n_rows):
    X, lower, upper = stream(n_rows, 4, n_classes, seed=4)
    memory = memory_for(name, 4, n_classes)
    predicted = walk(memory, X, lower, upper)
    assert_same_learner(memory, predicted, twin(name, X, lower, upper, n_classes), atol=1e-8)


@as_both
@pytest.mark.parametrize(
    ("name", "average"),
    [("PA-I", False), ("PA-I", True), ("PRank", False), *((name, False) for name in WITH_VECTORS)],
)
def test_predicting_is_the_definition_and_touches_nothing(name, form, average):
    X, lower, upper = stream(50, 3, 5, seed=5)
    memory = memory_for(name, 3, 5, average=average)
    walk(memory, X, lower, upper)
    before = memory.tobytes()
    weights, theta = parameters(memory)
    for x in X:
        if name in WITH_VECTORS:
            expected = int(np.argmax(weights.reshape(5, 3) @ x)) + 1
        else:
            expected = naive.rank(theta, weights @ x)
        assert form(walks_of(memory).predict_one)(memory, x, None) == expected
    assert memory.tobytes() == before


@as_both
def test_scores_are_dot_products_and_the_first_that_is_not_finite_is_named(form):
    X, _, _ = stream(20, 3, 2)
    w, out = np.array([1.0, -2.0, 0.5]), np.empty(20)
    step = form(rows.scores)
    assert step(w, X.reshape(-1), None, None, out) == -1
    np.testing.assert_allclose(out, X @ w, atol=1e-13)
    X[[7, 9], 1] = np.nan
    assert step(w, X.reshape(-1), None, None, out) == 7


@as_both
@pytest.mark.parametrize("average", [False, True])
def test_a_view_names_every_part_of_the_memory_once(form, average):
    memory = layout.new_memory(layout.CAPPED, 0.25, 3, 4, average)
    model = form(layout.view)(memory)
    assert (model.rule, model.C, model.balanced) == (layout.CAPPED, 0.25, False)
    assert model.edges.tolist() == [-inf, 0, 0, 0, inf]
    corrections = [model.edge_correction, model.weight_correction]
    parts = [model.weights, model.edges, *corrections, model.counters]
    assert [p.size for p in parts] == [3, 5, 5 * average, 3 * average, 5]
    for number, part in enumerate(parts, start=1):
        part[:] = number
    assert [np.count_nonzero(memory[5:] == n) for n in range(1, 6)] == [p.size for p in parts]


@pytest.mark.parametrize(
    ("label", "width", "value", "code"),
    [
        ((0, 1), 2, 1.0, BAD_LABEL),
        ((1, 4), 2, 1.0, BAD_LABEL),
        ((3, 2), 2, 1.0, BAD_LABEL),
        ((1, 2), 3, 1.0, BAD_WIDTH),
        ((1, 2), 2, np.nan, BAD_ROW),
        ((1, 2), 2, 1e101, BAD_ROW),
    ],
)
@pytest.mark.parametrize("name", ["PA-I", "PRank", *WITH_VECTORS])
def test_a_refused_example_leaves_the_memory_alone(name, label, width, value, code):
    memory = memory_for(name, 2, 3)
    before = memory.tobytes()
    learn_one = walks_of(memory).learn_one
    for step in (learn_one, learn_one.py_func):
        assert step(memory, np.full(width, value), None, *label) == code
    assert memory.tobytes() == before


# -- the order of the thresholds -----------------------------------------------------------------


def hard_stream(n_rows, n_features, n_classes, seed, decades=(-6, 6)):
    """Rows whose lengths span many decades, some zero, with labels of every kind."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)) * 10.0 ** rng.uniform(*decades, size=(n_rows, 1))
    X[rng.random(n_rows) < 0.02] = 0
    lower = rng.integers(1, n_classes + 1, n_rows)
    upper = np.where(rng.random(n_rows) < 0.5, lower, rng.integers(lower, n_classes + 1))
    return X, lower, upper


def is_sorted(theta):
    return bool(np.all(theta[:-1] <= theta[1:]))


@pytest.mark.parametrize("name", WITH_THRESHOLDS)
@pytest.mark.parametrize(("n_features", "n_classes"), [(1, 5), (7, 30), (20, 200)])
def test_thresholds_stay_sorted_to_the_bit(name, n_features, n_classes):
    n_rows = 20_000
    # on long rows the printed SCA runs away to infinity, see below
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
        assert is_sorted(edges)
    assert np.isfinite(edges[1:-1]).all()


@pytest.mark.parametrize("name", AVERAGED)
def test_thresholds_stay_sorted_after_every_single_step_on_float32_rows(name):
    X, lower, upper = hard_stream(3000, 5, 20, seed=1)
    memory = memory_for(name, 5, 20)
    edges = model_view(memory).edges
    for x, low, high in zip(X.astype(np.float32), lower, upper, strict=True):
        walks.EXACT.learn_one(memory, x, None, int(low), int(high))
        assert is_sorted(edges)


def test_the_printed_sca_runs_away_where_the_exact_step_does_not():
    # noise labels, rows of length about 10: each step overshoots, the next overshoots more
    rng = np.random.default_rng(0)
    X, ranks = rng.normal(size=(2000, 1)) * 10, rng.integers(1, 4, 2000)
    printed, exact = memory_for("PA sca", 1, 3), memory_for("PA", 1, 3)
    walk(printed, X, ranks, ranks)
    walk(exact, X, ranks, ranks)
    twin_of_printed = twin("PA sca", X, ranks, ranks, 3)
    assert np.abs(parameters(printed)[1]).max() > 1e30
    assert np.abs(twin_of_printed.thresholds).max() > 1e30
    assert np.abs(parameters(exact)[1]).max() < 10


def test_an_infinite_score_has_the_highest_rank():
    # plain Python, because the compiled code does not notice that it leaves the array
    assert rank_near.py_func(np.array([-inf, 0.0, inf]), inf, 1) == 2
