"""Losses and distances against the paper's formulas."""

import numpy as np

from ordspan.core import losses


def test_the_distance_to_an_interval_is_zero_inside():
    lower, upper = np.array([2, 2, 2, 2, 2]), np.array([4, 4, 4, 4, 4])
    assert losses.distance([1, 2, 3, 4, 6], lower, upper).tolist() == [1, 0, 0, 0, 2]


def test_the_hinge_loss_bounds_the_distance():
    rng = np.random.default_rng(0)
    for _ in range(200):
        theta, score = np.sort(rng.normal(size=5)), rng.normal()
        lower, upper = np.sort(rng.integers(1, 7, 2))
        predicted = 1 + np.count_nonzero(score >= theta)
        loss = losses.hinge_losses([score], theta, [lower], [upper]).sum()
        assert losses.distance(predicted, lower, upper) <= loss
