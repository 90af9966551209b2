"""Section 6: what is sampled, who sees which labels, what is counted; losses, and their bound."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import naive
from ordspan.commands.jobs import ReproduceJob
from ordspan.core.measures import hinge_losses
from ordspan.datasets import synthetic
from ordspan.experiments import protocol
from ordspan.experiments.protocol import Curve
from ordspan.experiments.reproduce import run
from steps import VARIANTS

DATA = synthetic(n=400, n_features=3)
TWINS = {"MCP": "perceptron", "PRIL": "PRank"}
ALL = protocol.ALGORITHMS + protocol.CITED_ALGORITHMS
WITH_LOSSES = [Curve(name) for name in ("PA", "PA-I", "PA-II", "PRank", "PRIL")]
WITH_LOSSES += [Curve("PA-I", average=True), Curve("PA-II", solver="sca")]


def stream(percent=50, run=0, kind=protocol.REPORTED, **options):
    job = ReproduceJob(fractions=(percent,), **({"trials": 300} | options))
    return protocol.streams(job, DATA, kind, run)[percent]


def reads_intervals(curve):
    return curve.algorithm in (*VARIANTS, "PRIL")


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


# predictions


@pytest.mark.parametrize("algorithm", ALL)
@pytest.mark.parametrize("average", [False, True])
def test_predictions_are_those_of_the_slow_twin(algorithm, average):
    curve, some = Curve(algorithm, average=average and algorithm.startswith("PA")), stream()
    lower, upper = (some.lower, some.upper) if reads_intervals(curve) else (some.ranks,) * 2
    twin = naive.learn_stream(
        some.X, lower, upper, TWINS.get(algorithm, algorithm), 0.1, curve.average, n_classes=5
    )
    predicted = curve.learner(DATA, 0.1).learn_many(some.X, *some.labels(curve), predict=True)
    np.testing.assert_array_equal(predicted, twin.predicted)


def test_long_runs_keep_the_first_the_last_and_the_tenth_part_of_the_trials():
    kept = protocol.kept_trials(7000)
    assert (kept[0], kept[-1]) == (1, 7000)
    assert 700 in kept
    assert 200 < kept.size <= 301


# losses, the best fixed ranker in hindsight, and the bound


@pytest.mark.parametrize("curve", WITH_LOSSES, ids=lambda curve: curve.name)
def test_losses_are_those_of_a_run_row_by_row(curve):
    some = stream(75)
    learner, told, expected = curve.learner(DATA, 0.1), curve.learner(DATA, 0.1), []
    for x, lower, upper in zip(some.X, *some.labels(curve), strict=True):
        score = float(learner.weights @ x)
        expected.append(naive.losses(learner.thresholds, score, lower, upper).sum())
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


# the table of results

JOB = ReproduceJob(
    runs=5, trials=400, fractions=(0, 75), algorithms=ALL, average=True, solver="sca", jobs=2
)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return run(replace(JOB, out=tmp_path_factory.mktemp("run")), [DATA], {"mslr": "not here"})


def test_the_table_holds_every_curve_as_it_was_run(results):
    curves, kept = protocol.curves_of(JOB), protocol.kept_trials(400) - 1
    assert kept.size < 400
    assert (results.labels, results.algorithms) == ([0, 75], [curve.name for curve in curves])
    assert results.settings["sources"]["synthetic"].startswith("synthetic stream")
    assert results.settings["unavailable"] == {"mslr": "not here"}
    for labels, curve in product(results.labels, curves):
        row = results.rows["synthetic", labels, curve.name]
        C = None if np.isnan(row["C"]) else row["C"]
        assert (C is not None) == curve.algorithm.endswith(("-I", "-II"))
        for number in reversed(range(5)):
            some, learner = stream(labels, number, trials=400), curve.learner(DATA, C)
            predicted = learner.learn_many(some.X, *some.labels(curve), predict=True)
            wrong = np.abs(predicted - some.ranks)
            used = away(predicted, some) if reads_intervals(curve) else wrong
            np.testing.assert_array_equal(row["error_sums"][number], wrong.cumsum()[kept])
            np.testing.assert_array_equal(row["interval_error_sums"][number], used.cumsum()[kept])
        if curve.algorithm.startswith("MC"):
            assert np.isnan([*row["losses"], *row["thresholds"].flat]).all()
        else:  # of the first run
            np.testing.assert_array_equal(row["thresholds"][-1], learner.thresholds)
            losses = protocol.learner_losses(curve.learner(DATA, C), curve, some)
            np.testing.assert_array_equal(row["losses"], protocol.cumulative(losses))


def test_the_table_holds_the_first_runs_of_the_fixed_ranker(results):
    some, kept = stream(75, trials=400), protocol.kept_trials(400) - 1
    best, losses = protocol.best_fixed(some, 5)
    predicted = np.array([1 + sum(best.thresholds <= x @ best.weights) for x in some.X])
    row = results.rows["synthetic", 75, "hindsight"]
    wrong, used = np.abs(predicted - some.ranks), away(predicted, some)
    np.testing.assert_array_equal(row["error_sums"][0], wrong.cumsum()[kept])
    np.testing.assert_array_equal(row["interval_error_sums"][0], used.cumsum()[kept])
    assert row["losses"][-1] == pytest.approx(losses.sum())
    for cell, row in results.rows.items():
        assert row["runs"] == (protocol.HINDSIGHT_RUNS if cell.algorithm == "hindsight" else 5)
        assert results.final(cell).min() > 0


@pytest.mark.parametrize("algorithm", ["PA-I", "MC-PA-II"])
def test_c_is_the_best_of_the_grid_on_the_tuning_runs(results, algorithm):
    curve, totals = Curve(algorithm), np.zeros(len(protocol.GRID))
    for number in range(protocol.TUNING_RUNS):
        some = stream(75, number, protocol.TUNING, trials=400)
        totals += [protocol.errors_along(DATA, curve, C, some)[1, -1] for C in protocol.GRID]
    assert results.rows["synthetic", 75, algorithm]["C"] == protocol.GRID[totals.argmin()]


@pytest.mark.parametrize("labels", [0, 75])
def test_pa_i_never_loses_more_than_its_bound(results, labels):
    row = results.rows["synthetic", labels, "PA-I"]
    assert (row["losses"] <= row["bounds"]).all()
    others = [row for cell, row in results.rows.items() if cell.algorithm != "PA-I"]
    assert np.isnan([row["bounds"] for row in others]).all()
