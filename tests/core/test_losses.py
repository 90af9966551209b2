"""Losses against the paper's formulas, metrics against scikit-learn."""

import numpy as np
import pytest
from sklearn import metrics as reference

from ordspan.core import losses


@pytest.fixture(params=[0, 1, 2])
def ranks(request):
    rng = np.random.default_rng(request.param)
    true = rng.integers(1, 7, 200)
    return true, np.clip(true + rng.integers(-2, 3, 200), 1, 6)


def test_exact_metrics_are_those_of_scikit_learn(ranks):
    true, predicted = ranks
    kappa = reference.cohen_kappa_score(true, predicted, weights="quadratic")
    assert losses.quadratic_weighted_kappa(true, predicted) == pytest.approx(kappa, rel=1e-12)
    error = reference.mean_absolute_error(true, predicted)
    assert losses.mean_absolute_error(true, predicted) == pytest.approx(error, rel=1e-12)
    assert losses.accuracy(true, predicted) == reference.accuracy_score(true, predicted)


def test_an_exact_label_is_an_interval_of_width_zero(ranks):
    true, predicted = ranks
    twice = np.column_stack([true, true])
    for metric in (
        losses.mean_absolute_error,
        losses.macro_mean_absolute_error,
        losses.accuracy,
        losses.quadratic_weighted_kappa,
        losses.inside_interval,
    ):
        assert metric(twice, predicted) == metric(true, predicted)
    assert losses.inside_interval(true, predicted) == losses.accuracy(true, predicted)


def test_macro_error_weighs_every_class_that_occurs_alike(ranks):
    true, predicted = ranks
    keep = true != 4  # an absent class does not count
    true, predicted = true[keep], predicted[keep]
    each = [np.abs(predicted[true == k] - k).mean() for k in (1, 2, 3, 5, 6)]
    expected = pytest.approx(np.mean(each), rel=1e-12)
    assert losses.macro_mean_absolute_error(true, predicted) == expected


def test_an_interval_counts_as_a_class_of_its_own():
    true = [[1, 2], [1, 2], [3, 3], [3, 5]]
    assert losses.macro_mean_absolute_error(true, [1, 3, 1, 5]) == (0.5 + 2 + 0) / 3


def test_the_distance_to_an_interval_is_zero_inside():
    lower, upper = np.array([2, 2, 2, 2, 2]), np.array([4, 4, 4, 4, 4])
    assert losses.distance([1, 2, 3, 4, 6], lower, upper).tolist() == [1, 0, 0, 0, 2]
    assert losses.mean_absolute_error(np.column_stack([lower, upper]), [1, 2, 3, 4, 6]) == 0.6
    assert losses.inside_interval(np.column_stack([lower, upper]), [1, 2, 3, 4, 6]) == 0.6


def test_the_hinge_loss_is_the_paper_s_formula():
    theta, score, lower, upper = np.array([-1.0, 0.0, 0.5, 2.0, 3.0]), 0.25, 3, 4
    expected = [max(0, 1 - score + t) for t in theta[:2]] + [0.0]
    expected += [max(0, 1 + score - t) for t in theta[3:]]
    assert losses.hinge_losses([score], theta, [lower], [upper])[0].tolist() == expected


def test_the_hinge_loss_bounds_the_distance():
    rng = np.random.default_rng(0)
    for _ in range(200):
        theta, score = np.sort(rng.normal(size=5)), rng.normal()
        lower, upper = np.sort(rng.integers(1, 7, 2))
        predicted = 1 + np.count_nonzero(score >= theta)
        loss = losses.hinge_losses([score], theta, [lower], [upper]).sum()
        assert losses.distance(predicted, lower, upper) <= loss


@pytest.mark.parametrize(("true", "expected"), [([2, 2, 2], 1.0), ([1, 2, 3], 0.0)])
def test_kappa_of_a_constant_prediction(true, expected):
    assert losses.quadratic_weighted_kappa(true, [2, 2, 2]) == expected


@pytest.mark.parametrize(
    ("true", "predicted", "message"),
    [
        (["low"], [1], "encode named grades first"),
        ([1], ["low"], "encode named grades first"),
        ([1, 2], [1], r"2 labels but predictions of shape \(1,\)"),
        ([[1, 2, 3]], [1], r"must have shape \(n,\) or \(n, 2\), not \(1, 3\)"),
        ([], [], "at least one label"),
        ([1, np.nan], [1, 1], "must be finite"),
        ([[1, np.inf]], [1], "must be finite; close open ends"),
        ([1, 2], [1, np.inf], "must be finite"),
    ],
)
def test_bad_labels_are_named(true, predicted, message):
    for metric in (losses.mean_absolute_error, losses.macro_mean_absolute_error, losses.accuracy):
        with pytest.raises(ValueError, match=message):
            metric(true, predicted)


@pytest.mark.parametrize("metric", [losses.accuracy, losses.quadratic_weighted_kappa])
def test_metrics_of_exact_labels_refuse_intervals(metric):
    with pytest.raises(ValueError, match="needs exact labels"):
        metric([[1, 2]], [1])
