import numpy as np
import pytest

from ordspan.datasets import load_dataset, synthetic


@pytest.mark.parametrize("noise", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("n_classes", [2, 5, 8])
def test_rows_are_standardised_and_grades_have_about_equal_shares(n_classes, noise):
    stream = load_dataset("synthetic", n_classes=n_classes, noise=noise)
    assert stream.X.shape == (10_000, len(stream.feature_names)) == (10_000, 10)
    assert stream.n_classes == n_classes
    np.testing.assert_allclose(stream.X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(stream.X.std(axis=0), 1)
    shares = np.bincount(stream.ranks, minlength=n_classes + 1)[1:] / stream.ranks.size
    np.testing.assert_allclose(shares, 1 / n_classes, atol=0.03)


def test_the_stated_error_is_that_of_the_true_ranker():
    stream = synthetic(n=500)
    scores = stream.X @ stream.truth.weights
    ranks = [1 + sum(score >= edge for edge in stream.truth.thresholds) for score in scores]
    assert stream.truth.mae == np.abs(np.array(ranks) - stream.ranks).mean() > 0
    assert np.linalg.norm(stream.truth.weights) == pytest.approx(1)
    assert synthetic(n=1000, noise=0.0).truth.mae == 0


def test_a_seed_repeats_and_another_differs():
    first, again, other = (synthetic(n=50, random_state=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.ranks, again.ranks)
    assert (first.X != other.X).any()


@pytest.mark.parametrize(
    ("name", "value"),
    [("n", 0), ("n_features", 0), ("n_classes", 1), ("noise", -1.0), ("noise", np.nan)],
)
def test_impossible_sizes_are_refused_by_name(name, value):
    with pytest.raises(ValueError, match=f"^{name} must be"):
        synthetic(**{name: value})
