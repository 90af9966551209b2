"""The protocol of section 6: what is sampled, who sees which labels, what is counted."""

import numpy as np
import pytest

import naive
from ordspan.datasets import synthetic
from ordspan.experiments import protocol
from ordspan.experiments.protocol import Curve, curves_of

DATA = synthetic(n=400, n_features=3)
TWINS = {"MCP": "perceptron", "PRIL": "PRank"}


def stream(percent=50, run=0, kind=protocol.REPORTED, trials=300, seed=0):
    return protocol.streams(DATA, (percent,), seed, kind, run, trials)[percent]


def predictions(curve, some, C=None):
    return curve.learner(DATA, C, some.seed).learn_many(some.X, *some.labels(curve), predict=True)


def test_a_row_keeps_its_interval_for_the_whole_run():
    some = stream(percent=75, trials=3000)
    _, first, again = np.unique(some.X, axis=0, return_index=True, return_inverse=True)
    np.testing.assert_array_equal(some.lower, some.lower[first][again.ravel()])
    np.testing.assert_array_equal(some.upper, some.upper[first][again.ravel()])


def test_the_exact_label_lies_in_its_interval_and_the_percentage_is_of_the_rows():
    some = stream(percent=75, trials=20_000)
    assert ((some.lower <= some.ranks) & (some.ranks <= some.upper)).all()
    # an interval that is cut to its own label at the ends looks exact: at most 75 % look wide
    assert 0.5 < (some.lower < some.upper).mean() <= 0.78
    exact = stream(percent=0)
    np.testing.assert_array_equal(exact.lower, exact.ranks)
    np.testing.assert_array_equal(exact.upper, exact.ranks)


def test_all_percentages_of_a_run_see_the_same_rows_and_no_two_runs_do():
    several = [*protocol.streams(DATA, (0, 50, 75), 0, protocol.REPORTED, 3, 100).values()]
    for other in several[1:]:
        np.testing.assert_array_equal(other.X, several[0].X)
    others = [stream(run=4), stream(run=3, kind=protocol.TUNING), stream(run=3, seed=1)]
    for other in others:
        assert not np.array_equal(other.X[:100], several[0].X)


def test_rows_are_drawn_with_replacement():
    assert len(np.unique(stream(trials=400).X, axis=0)) < 400


@pytest.mark.parametrize("algorithm", protocol.ALGORITHMS + protocol.CITED_ALGORITHMS[:-1])
@pytest.mark.parametrize("average", [False, True])
def test_predictions_are_those_of_the_slow_twin(algorithm, average):
    curve = Curve(algorithm, average=average and algorithm.startswith("PA"))
    some = stream()
    predicted = predictions(curve, some, 0.1)
    lower, upper = (some.lower, some.upper) if curve.uses_intervals else (some.ranks,) * 2
    twin = naive.learn_stream(
        some.X, lower, upper, TWINS.get(algorithm, algorithm), 0.1, curve.average, n_classes=5
    )
    np.testing.assert_array_equal(predicted, twin.predicted)


def test_the_baselines_learn_from_exact_labels_and_are_measured_against_them():
    curve, some = Curve("PRank"), stream(percent=75)
    predicted = predictions(curve, some)
    errors, interval_errors = protocol.errors_along(DATA, curve, None, some)
    np.testing.assert_array_equal(errors, np.abs(predicted - some.ranks).cumsum())
    np.testing.assert_array_equal(interval_errors, errors)


def test_the_committee_s_coins_come_from_the_run_alone():
    curve, ranks = Curve("OAP-BPM"), []
    for run in (0, 0, 1):
        some = stream(run=0)._replace(seed=stream(run=run).seed)
        ranks.append(predictions(curve, some))
    np.testing.assert_array_equal(ranks[0], ranks[1])
    assert not np.array_equal(ranks[0], ranks[2])


def test_who_learns_from_intervals_who_has_a_c_and_who_has_thresholds():
    every = [Curve(name) for name in protocol.ALGORITHMS + protocol.CITED_ALGORITHMS]
    assert [c.name for c in every if c.uses_intervals] == ["PA", "PA-I", "PA-II", "PRIL"]
    assert [c.name for c in every if c.is_tunable] == ["PA-I", "PA-II", "MC-PA-I", "MC-PA-II"]
    without = [c.name for c in every if not c.has_thresholds]
    assert without == ["MCP", "MC-PA", "MC-PA-I", "MC-PA-II"]


def test_pril_is_prank_on_the_intervals():
    some = stream(percent=75)
    pril, prank = Curve("PRIL"), Curve("PRank")
    learned = predictions(pril, some)
    intervals_as_labels = prank.learner(DATA, None)
    expected = intervals_as_labels.learn_many(some.X, some.lower, some.upper, predict=True)
    np.testing.assert_array_equal(learned, expected)


def test_the_variants_are_measured_against_the_intervals_they_learned_from():
    curve, some = Curve("PA-I"), stream(percent=75)
    predicted = predictions(curve, some, 0.1)
    _, interval_errors = protocol.errors_along(DATA, curve, 0.1, some)
    away = np.maximum(0, np.maximum(some.lower - predicted, predicted - some.upper))
    np.testing.assert_array_equal(interval_errors, away.cumsum())


def test_long_runs_keep_the_first_the_last_and_the_tenth_part_of_the_trials():
    kept = protocol.kept_trials(7000)
    assert (kept[0], kept[-1]) == (1, 7000)
    assert 700 in kept
    assert 200 < kept.size <= 301
    some = stream(trials=7000)
    errors, _ = protocol.errors_along(DATA, Curve("PRank"), None, some)
    away = np.abs(predictions(Curve("PRank"), some) - some.ranks)
    np.testing.assert_array_equal(errors, away.cumsum()[kept - 1])


@pytest.mark.parametrize("algorithm", ["PA-II", "PRIL", "OAP-BPM"])
def test_thresholds_along_a_run_are_those_of_one_pass(algorithm):
    curve, some = Curve(algorithm), stream(trials=400)
    whole, learner = curve.learner(DATA, 0.1), curve.learner(DATA, 0.1)
    whole.learn_many(some.X, *some.labels(curve))
    thresholds = protocol.thresholds_along(learner, curve, some)
    assert thresholds.shape == (protocol.kept_trials(400).size, 4)
    np.testing.assert_array_equal(thresholds[-1], whole.thresholds)
    np.testing.assert_array_equal(learner.state, whole.state)


def test_extra_curves_are_only_drawn_for_the_variants():
    names = [c.name for c in curves_of(("PA", "PA-I", "PRank"), average=True, solver="sca")]
    assert names == ["PA", "PA-I", "PRank", "PA average", "PA-I average", "PA sca", "PA-I sca"]
