"""The best fixed ranker in hindsight, the losses along a run, and the bound on them."""

import numpy as np
import pytest

from ordspan.core.measures import hinge_losses
from ordspan.data import synthetic
from ordspan.experiments import hindsight, protocol, runner
from ordspan.experiments.protocol import Curve
from ordspan.experiments.table import Results, read_table

DATA = synthetic(n=400, n_features=3)
LEARNERS = [
    Curve("PA"),
    Curve("PA-I"),
    Curve("PA-II"),
    Curve("PRank"),
    Curve("PRIL"),
    Curve("PA-I", average=True),
    Curve("PA-II", solver="sca"),
]


def stream(percent, trials=300):
    return dict(protocol.streams(DATA, (percent,), 0, protocol.REPORTED, 0, trials))[percent]


def total_loss(weights, thresholds, some):
    return hinge_losses(some.X @ weights, thresholds, some.lower, some.upper).sum()


def naive_loss(weights, thresholds, x, lower, upper):
    """The loss of one example, threshold by threshold."""
    total = 0.0
    for i, threshold in enumerate(thresholds, start=1):
        margin = float(weights @ x) - threshold
        if i < lower:
            total += max(0.0, 1.0 - margin)
        elif i >= upper:
            total += max(0.0, 1.0 + margin)
    return total


def labels_of(curve, some):
    return (some.lower, some.upper) if curve.uses_intervals else (some.ranks, some.ranks)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hindsight")
    plan = runner.Plan((DATA,), runs=5, trials=300, labels=(0, 75), average=True)
    return Results(read_table(runner.run(plan, folder, jobs=2)))


@pytest.mark.parametrize("percent", [0, 75])
def test_no_other_fixed_ranker_that_was_tried_loses_less(percent):
    some = stream(percent)
    best = hindsight.best_fixed(some, 5)
    assert best.total == pytest.approx(total_loss(best.weights, best.thresholds, some))
    rivals = []
    for curve in LEARNERS:
        learner = curve.learner(3, 5, 0.1)
        protocol.predictions(learner, curve, some)
        rivals.append((learner.weights, learner.thresholds))
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-2, 0.1, 1.0):
        for _ in range(50):
            weights = best.weights + size * rng.normal(size=3)
            rivals.append((weights, np.sort(best.thresholds + size * rng.normal(size=4))))
    losses = [total_loss(*rival, some) for rival in rivals]
    # optimal to the gap, and up to the norm that the batch objective weighs against the loss
    norm = best.weights @ best.weights + best.thresholds @ best.thresholds
    slack = hindsight.TOL * best.total + (1 + hindsight.TOL) * norm / (2 * best.C)
    assert best.total <= min(losses) + slack
    assert best.total <= 1.02 * min(losses)


def test_the_fixed_ranker_s_errors_are_to_the_exact_label_and_to_the_interval():
    some = stream(75)
    best = hindsight.best_fixed(some, 5)
    errors, interval_errors = hindsight.fixed_outcome(best, some)
    predicted = np.array([1 + sum(best.thresholds <= x @ best.weights) for x in some.X])
    np.testing.assert_array_equal(errors, np.abs(predicted - some.ranks))
    away = np.maximum(0, np.maximum(some.lower - predicted, predicted - some.upper))
    np.testing.assert_array_equal(interval_errors, away)


@pytest.mark.parametrize("curve", LEARNERS, ids=lambda curve: curve.name)
def test_losses_are_those_of_a_run_row_by_row(curve):
    some = stream(75)
    learner, expected = curve.learner(3, 5, 0.1), []
    for x, lower, upper in zip(some.X, *labels_of(curve, some), strict=True):
        expected.append(naive_loss(learner.weights, learner.thresholds, x, lower, upper))
        learner.learn_one(x, int(lower), int(upper))
    losses = hindsight.learner_losses(curve.learner(3, 5, 0.1), curve, some)
    np.testing.assert_allclose(losses.sum(axis=1), expected, rtol=1e-9, atol=1e-9)
    places = protocol.trajectory_trials(300) - 1
    np.testing.assert_allclose(hindsight.cumulative(losses), np.cumsum(expected)[places])


@pytest.mark.parametrize("curve", LEARNERS, ids=lambda curve: curve.name)
def test_telling_the_losses_leaves_the_learner_as_one_pass_does(curve):
    some = stream(75)
    told, passed = curve.learner(3, 5, 0.1), curve.learner(3, 5, 0.1)
    hindsight.learner_losses(told, curve, some)
    protocol.predictions(passed, curve, some)
    np.testing.assert_allclose(told.state, passed.state, rtol=1e-9, atol=1e-12)


def test_the_table_holds_the_losses_of_the_first_run(results):
    some = stream(75)
    for curve in (Curve("PA"), Curve("PA-I"), Curve("PA-I", average=True), Curve("PRank")):
        cell = ("synthetic", 75, curve.name)
        learner = curve.learner(3, 5, results.aggressiveness(cell))
        trials, losses = results.losses(cell)
        np.testing.assert_array_equal(trials, protocol.trajectory_trials(300))
        expected = hindsight.cumulative(hindsight.learner_losses(learner, curve, some))
        np.testing.assert_array_equal(losses, expected)
    best = hindsight.best_fixed(some, 5)
    _, losses = results.losses(("synthetic", 75, "hindsight"))
    assert losses[-1] == pytest.approx(best.total)
    assert results.aggressiveness(("synthetic", 75, "hindsight")) == best.C
    assert results.losses(("synthetic", 75, "MCP")) is None


@pytest.mark.parametrize("labels", [0, 75])
def test_pa_i_never_loses_more_than_its_bound(results, labels):
    _, losses = results.losses(("synthetic", labels, "PA-I"))
    _, bounds = results.bounds(("synthetic", labels, "PA-I"))
    assert bounds.shape == losses.shape
    assert (losses <= bounds).all()
    others = [name for name in (*results.algorithms, "hindsight") if name != "PA-I"]
    assert all(results.bounds(("synthetic", labels, name)) is None for name in others)


def test_the_ratio_is_of_the_runs_that_have_a_fixed_ranker(results):
    assert "hindsight" not in results.algorithms
    for labels in results.labels:
        best = results.errors(("synthetic", labels, "hindsight"))
        assert best.shape == (hindsight.HINDSIGHT_RUNS, 300)
        for name in results.algorithms:
            cell = ("synthetic", labels, name)
            online = results.errors(cell)[: hindsight.HINDSIGHT_RUNS]
            assert results.hindsight_ratio(cell) == pytest.approx(online.mean() / best.mean())
