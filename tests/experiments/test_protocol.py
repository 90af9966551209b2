"""Section 6: what is sampled, who sees which labels, what is counted; losses, and their bound."""

import numpy as np
import pytest

import naive
from ordspan.commands.jobs import ReproduceJob
from ordspan.core.measures import hinge_losses
from ordspan.datasets import synthetic
from ordspan.experiments import protocol
from ordspan.experiments.protocol import Curve
from ordspan.experiments.reproduce import run

DATA = synthetic(n=400, n_features=3)
TWINS = {"MCP": "perceptron", "PRIL": "PRank"}
ALL = protocol.ALGORITHMS + protocol.CITED_ALGORITHMS
WITH_LOSSES = [Curve(name) for name in ("PA", "PA-I", "PA-II", "PRank", "PRIL")]
WITH_LOSSES += [Curve("PA-I", average=True), Curve("PA-II", solver="sca")]
each_with_losses = pytest.mark.parametrize("curve", WITH_LOSSES, ids=lambda curve: curve.name)


def stream(percent=50, run=0, kind=protocol.REPORTED, **options):
    job = ReproduceJob(fractions=(percent,), **({"trials": 300} | options))
    return protocol.streams(job, DATA, kind, run)[percent]


def predictions(curve, some, C=None):
    return curve.learner(DATA, C).learn_many(some.X, *some.labels(curve), predict=True)


def away(predicted, some):
    """Distances to the intervals."""
    return np.maximum(0, np.maximum(some.lower - predicted, predicted - some.upper))


# the trials


def test_a_row_keeps_its_interval_for_the_whole_run():
    some = stream(75, trials=3000)
    _, first, again = np.unique(some.X, axis=0, return_index=True, return_inverse=True)
    np.testing.assert_array_equal(some.lower, some.lower[first][again.ravel()])
    np.testing.assert_array_equal(some.upper, some.upper[first][again.ravel()])
    assert len(np.unique(stream(trials=400).X, axis=0)) < 400  # drawn with replacement


def test_the_exact_label_lies_in_its_interval_and_the_percentage_is_of_the_rows():
    some = stream(75, trials=20_000)
    assert ((some.lower <= some.ranks) & (some.ranks <= some.upper)).all()
    # an interval that is cut to its own label at the ends looks exact: at most 75 % look wide
    assert 0.5 < (some.lower < some.upper).mean() <= 0.78
    exact = stream(0)
    np.testing.assert_array_equal(exact.lower, exact.ranks)
    np.testing.assert_array_equal(exact.upper, exact.ranks)


def test_all_percentages_of_a_run_see_the_same_rows_and_no_two_runs_do():
    job = ReproduceJob(fractions=(0, 50, 75), trials=100)
    first, *others = protocol.streams(job, DATA, protocol.REPORTED, 3).values()
    for other in others:
        np.testing.assert_array_equal(other.X, first.X)
    for other in (stream(run=4), stream(run=3, kind=protocol.TUNING), stream(run=3, seed=1)):
        assert not np.array_equal(other.X[:100], first.X)


# predictions and errors


@pytest.mark.parametrize("algorithm", ALL)
@pytest.mark.parametrize("average", [False, True])
def test_predictions_are_those_of_the_slow_twin(algorithm, average):
    curve, some = Curve(algorithm, average=average and algorithm.startswith("PA")), stream()
    reads_intervals = algorithm in ("PA", "PA-I", "PA-II", "PRIL")
    lower, upper = (some.lower, some.upper) if reads_intervals else (some.ranks,) * 2
    twin = naive.learn_stream(
        some.X, lower, upper, TWINS.get(algorithm, algorithm), 0.1, curve.average, n_classes=5
    )
    np.testing.assert_array_equal(predictions(curve, some, 0.1), twin.predicted)


@pytest.mark.parametrize("algorithm", ["PRank", "PRIL", "PA-I"])
def test_errors_are_to_the_exact_labels_and_to_those_that_were_learned(algorithm):
    curve, some = Curve(algorithm), stream(75)
    predicted = predictions(curve, some, 0.1)
    errors, interval_errors = protocol.errors_along(DATA, curve, 0.1, some)
    np.testing.assert_array_equal(errors, np.abs(predicted - some.ranks).cumsum())
    used = errors if algorithm == "PRank" else away(predicted, some).cumsum()
    np.testing.assert_array_equal(interval_errors, used)


def test_long_runs_keep_the_first_the_last_and_the_tenth_part_of_the_trials():
    kept = protocol.kept_trials(7000)
    assert (kept[0], kept[-1]) == (1, 7000)
    assert 700 in kept
    assert 200 < kept.size <= 301
    some = stream(trials=7000)
    errors, _ = protocol.errors_along(DATA, Curve("PRank"), None, some)
    wrong = np.abs(predictions(Curve("PRank"), some) - some.ranks)
    np.testing.assert_array_equal(errors, wrong.cumsum()[kept - 1])


@pytest.mark.parametrize("algorithm", ["PA-II", "PRIL"])
def test_thresholds_along_a_run_are_those_of_one_pass(algorithm):
    curve, some = Curve(algorithm), stream(trials=400)
    whole, learner = curve.learner(DATA, 0.1), curve.learner(DATA, 0.1)
    whole.learn_many(some.X, *some.labels(curve))
    thresholds = protocol.thresholds_along(learner, curve, some)
    assert thresholds.shape == (protocol.kept_trials(400).size, 4)
    np.testing.assert_array_equal(thresholds[-1], whole.thresholds)
    np.testing.assert_array_equal(learner.state, whole.state)


# losses, the best fixed ranker in hindsight, and the bound


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


@each_with_losses
def test_losses_are_those_of_a_run_row_by_row(curve):
    some = stream(75)
    learner, told, expected = curve.learner(DATA, 0.1), curve.learner(DATA, 0.1), []
    for x, lower, upper in zip(some.X, *some.labels(curve), strict=True):
        expected.append(naive_loss(learner.weights, learner.thresholds, x, lower, upper))
        learner.learn_one(x, int(lower), int(upper))
    losses = protocol.learner_losses(told, curve, some)
    np.testing.assert_allclose(losses.sum(axis=1), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(protocol.cumulative(losses), np.cumsum(expected))
    np.testing.assert_allclose(told.state, learner.state, rtol=1e-9, atol=1e-12)


def total_loss(weights, thresholds, some):
    return hinge_losses(some.X @ weights, thresholds, some.lower, some.upper).sum()


@pytest.mark.parametrize("percent", [0, 75])
def test_no_other_fixed_ranker_that_was_tried_loses_less(percent):
    some = stream(percent)
    best, losses = protocol.best_fixed(some, 5)
    loss = losses.sum()
    assert loss == pytest.approx(total_loss(best.weights, best.thresholds, some))
    rivals = []
    for curve in WITH_LOSSES:
        learner = curve.learner(DATA, 0.1)
        learner.learn_many(some.X, *some.labels(curve))
        rivals.append((learner.weights, learner.thresholds))
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-2, 0.1, 1.0):
        for _ in range(50):
            weights = best.weights + size * rng.normal(size=3)
            rivals.append((weights, np.sort(best.thresholds + size * rng.normal(size=4))))
    least = min(total_loss(*rival, some) for rival in rivals)
    # optimal to the gap, and up to the norm that the batch objective weighs against the loss
    norm = best.weights @ best.weights + best.thresholds @ best.thresholds
    assert loss <= least + protocol.TOL * loss + (1 + protocol.TOL) * norm / (2 * best.C)
    assert loss <= 1.02 * least


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hindsight")
    job = ReproduceJob(runs=5, trials=300, fractions=(0, 75), average=True, out=folder, jobs=2)
    return run(job, [DATA])


def test_the_table_holds_the_first_runs_of_the_fixed_ranker(results):
    some = stream(75)
    best, losses = protocol.best_fixed(some, 5)
    predicted = np.array([1 + sum(best.thresholds <= x @ best.weights) for x in some.X])
    row = results.rows["synthetic", 75, "hindsight"]
    np.testing.assert_array_equal(row["error_sums"][0], np.abs(predicted - some.ranks).cumsum())
    np.testing.assert_array_equal(row["interval_error_sums"][0], away(predicted, some).cumsum())
    assert row["losses"][-1] == pytest.approx(losses.sum())
    assert "hindsight" not in results.algorithms
    for cell, row in results.rows.items():
        assert row["runs"] == (protocol.HINDSIGHT_RUNS if cell.algorithm == "hindsight" else 5)
        assert results.final(cell).min() > 0


def test_the_table_holds_the_losses_of_the_first_run(results):
    some = stream(75)
    for curve in (Curve("PA"), Curve("PA-I"), Curve("PA-I", average=True), Curve("PRank")):
        row = results.rows["synthetic", 75, curve.name]
        learner = curve.learner(DATA, None if np.isnan(row["C"]) else row["C"])
        expected = protocol.cumulative(protocol.learner_losses(learner, curve, some))
        np.testing.assert_array_equal(row["losses"], expected)
    assert np.isnan(results.rows["synthetic", 75, "MCP"]["losses"]).all()


@pytest.mark.parametrize("labels", [0, 75])
def test_pa_i_never_loses_more_than_its_bound(results, labels):
    row = results.rows["synthetic", labels, "PA-I"]
    assert (row["losses"] <= row["bounds"]).all()
    others = [row for cell, row in results.rows.items() if cell.algorithm != "PA-I"]
    assert np.isnan([row["bounds"] for row in others]).all()
