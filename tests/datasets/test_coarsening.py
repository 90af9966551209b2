import numpy as np
import pytest

from ordspan import coarsen

MIDDLE = np.full(60_000, 5)  # so far from the ends that no interval is cut


def widened(ranks, fraction=1.0, n_classes=9, recipe="paper"):
    classes = range(1, n_classes + 1)
    return coarsen(ranks, fraction, classes=classes, recipe=recipe, random_state=0).T


def shares_of_intervals(recipe):
    lower, upper = widened(MIDDLE, recipe=recipe)
    offsets, counts = np.unique(np.stack([lower - 5, upper - 5]), axis=1, return_counts=True)
    shares = counts / MIDDLE.size
    return {tuple(pair): share for pair, share in zip(offsets.T.tolist(), shares, strict=True)}


@pytest.mark.parametrize("recipe", ["paper", "symmetric"])
@pytest.mark.parametrize("fraction", [0.0, 0.3, 0.5, 0.75, 1.0])
def test_every_interval_contains_its_label_and_stays_within_the_classes(recipe, fraction):
    ranks = np.random.default_rng(1).integers(1, 5, size=500)
    lower, upper = widened(ranks, fraction, n_classes=4, recipe=recipe)
    assert (lower >= 1).all()
    assert (lower <= ranks).all()
    assert (ranks <= upper).all()
    assert (upper <= 4).all()


@pytest.mark.parametrize(("n", "fraction"), [(10, 0.0), (10, 0.26), (7, 0.5), (4, 0.5), (11, 1.0)])
def test_exactly_the_rounded_fraction_of_rows_is_drawn(n, fraction):
    lower, upper = widened(np.full(n, 5), fraction)
    assert np.count_nonzero(lower < upper) == round(fraction * n)


def test_the_paper_draws_one_below_to_the_label_twice_where_symmetric_draws_around_it():
    paper = dict.fromkeys([(0, 1), (-2, 0), (0, 2), (-2, 2)], 1 / 6) | {(-1, 0): 2 / 6}
    assert shares_of_intervals("paper") == pytest.approx(paper, abs=0.01)
    symmetric = paper | {(-1, 0): 1 / 6, (-1, 1): 1 / 6}
    assert shares_of_intervals("symmetric") == pytest.approx(symmetric, abs=0.01)


@pytest.mark.parametrize(
    ("labels", "fraction", "recipe", "message"),
    [
        ([1, 2], 0.5, "other", "unknown recipe 'other'; .*paper, symmetric"),
        ([1, 2], -0.1, "paper", "fraction must be between 0 and 1"),
        ([1, 2], np.nan, "paper", "fraction must be between 0 and 1"),
        ([[1, 2], [2, 3]], 0.5, "paper", r"1-d exact labels, but has shape \(2, 2\)"),
    ],
)
def test_what_cannot_be_coarsened_is_refused(labels, fraction, recipe, message):
    with pytest.raises(ValueError, match=message):
        coarsen(labels, fraction, recipe=recipe)
