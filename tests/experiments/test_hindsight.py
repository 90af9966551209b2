"""The best fixed ranker in hindsight, the losses along a run, and the bound on them."""

import numpy as np
import pytest

from ordspan.commands.jobs import ReproduceJob
from ordspan.core.measures import hinge_losses
from ordspan.datasets import synthetic
from ordspan.experiments import protocol
from ordspan.experiments.protocol import Curve
from ordspan.experiments.reproduce import run
from ordspan.experiments.results import Cell

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
    return protocol.streams(DATA, (percent,), 0, protocol.REPORTED, 0, trials)[percent]


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


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hindsight")
    job = ReproduceJob(runs=5, trials=300, fractions=(0, 75), average=True, out=folder, jobs=2)
    return run(job, [DATA])


@pytest.mark.parametrize("percent", [0, 75])
def test_no_other_fixed_ranker_that_was_tried_loses_less(percent):
    some = stream(percent)
    best = protocol.best_fixed(some, 5)
    assert best.losses.sum() == pytest.approx(total_loss(best.weights, best.thresholds, some))
    rivals = []
    for curve in LEARNERS:
        learner = curve.learner(DATA, 0.1)
        learner.learn_many(some.X, *some.labels(curve))
        rivals.append((learner.weights, learner.thresholds))
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-2, 0.1, 1.0):
        for _ in range(50):
            weights = best.weights + size * rng.normal(size=3)
            rivals.append((weights, np.sort(best.thresholds + size * rng.normal(size=4))))
    losses = [total_loss(*rival, some) for rival in rivals]
    # optimal to the gap, and up to the norm that the batch objective weighs against the loss
    norm = best.weights @ best.weights + best.thresholds @ best.thresholds
    slack = protocol.TOL * best.losses.sum() + (1 + protocol.TOL) * norm / (2 * best.C)
    assert best.losses.sum() <= min(losses) + slack
    assert best.losses.sum() <= 1.02 * min(losses)


def test_the_fixed_ranker_s_errors_are_to_the_exact_label_and_to_the_interval(results):
    some = stream(75)
    best = protocol.best_fixed(some, 5)
    predicted = np.array([1 + sum(best.thresholds <= x @ best.weights) for x in some.X])
    row = results.rows[Cell("synthetic", 75, "hindsight")]
    np.testing.assert_array_equal(row["error_sums"][0], np.abs(predicted - some.ranks).cumsum())
    away = np.maximum(0, np.maximum(some.lower - predicted, predicted - some.upper))
    np.testing.assert_array_equal(row["interval_error_sums"][0], away.cumsum())


@pytest.mark.parametrize("curve", LEARNERS, ids=lambda curve: curve.name)
def test_losses_are_those_of_a_run_row_by_row(curve):
    some = stream(75)
    learner, expected = curve.learner(DATA, 0.1), []
    for x, lower, upper in zip(some.X, *some.labels(curve), strict=True):
        expected.append(naive_loss(learner.weights, learner.thresholds, x, lower, upper))
        learner.learn_one(x, int(lower), int(upper))
    losses = protocol.learner_losses(curve.learner(DATA, 0.1), curve, some)
    np.testing.assert_allclose(losses.sum(axis=1), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(protocol.cumulative(losses), np.cumsum(expected))


@pytest.mark.parametrize("curve", LEARNERS, ids=lambda curve: curve.name)
def test_telling_the_losses_leaves_the_learner_as_one_pass_does(curve):
    some = stream(75)
    told, passed = curve.learner(DATA, 0.1), curve.learner(DATA, 0.1)
    protocol.learner_losses(told, curve, some)
    passed.learn_many(some.X, *some.labels(curve))
    np.testing.assert_allclose(told.state, passed.state, rtol=1e-9, atol=1e-12)


def test_the_table_holds_the_losses_of_the_first_run(results):
    some = stream(75)
    for curve in (Curve("PA"), Curve("PA-I"), Curve("PA-I", average=True), Curve("PRank")):
        row = results.rows[Cell("synthetic", 75, curve.name)]
        learner = curve.learner(DATA, None if np.isnan(row["C"]) else row["C"])
        expected = protocol.cumulative(protocol.learner_losses(learner, curve, some))
        np.testing.assert_array_equal(row["losses"], expected)
    best = protocol.best_fixed(some, 5)
    assert results.rows["synthetic", 75, "hindsight"]["losses"][-1] == pytest.approx(
        best.losses.sum()
    )
    assert np.isnan(results.rows["synthetic", 75, "MCP"]["losses"]).all()


@pytest.mark.parametrize("labels", [0, 75])
def test_pa_i_never_loses_more_than_its_bound(results, labels):
    row = results.rows["synthetic", labels, "PA-I"]
    assert (row["losses"] <= row["bounds"]).all()
    others = [row for cell, row in results.rows.items() if cell.algorithm != "PA-I"]
    assert np.isnan([row["bounds"] for row in others]).all()


def test_the_fixed_ranker_is_computed_for_the_first_runs(results):
    assert "hindsight" not in results.algorithms
    for cell, row in results.rows.items():
        assert row["runs"] == (protocol.HINDSIGHT_RUNS if cell.algorithm == "hindsight" else 5)
        assert results.final(cell).min() > 0
