"""Running mean and spread against scikit-learn's StandardScaler and the definition."""

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from ordspan.core import scaling
from ordspan.datasets import load_dataset
from ordspan.learners import Calibration, LinearLearner
from steps import as_both

ROWS = np.random.default_rng(0).normal(3.0, 2.0, size=(60, 4))
ROWS[:, 2] = 7.0  # never varies


def naive_scaled(rows):
    """Each row scaled by the rows up to it, and the rows with absurd values clipped."""
    kept, out = rows.copy(), np.zeros_like(rows)
    for i in range(len(rows)):
        for j in range(rows.shape[1]):
            looked = i if i < scaling.EVERY_ROW else i // scaling.SELDOM * scaling.SELDOM
            spread = kept[:looked, j].std() if looked else 0.0
            mean = kept[:i, j].mean() if i else 0.0
            far = (rows[i, j] - mean) / spread if spread else 0.0
            if i >= scaling.FEW_ROWS and abs(far) > scaling.LIMIT:
                out[i, j] = np.copysign(scaling.LIMIT, far)
                kept[i, j] = mean + out[i, j] * spread
                continue
            seen = i + 1 if i < scaling.EVERY_ROW else (i + 1) // scaling.SELDOM * scaling.SELDOM
            spread = kept[:seen, j].std()
            mean = kept[: i + 1, j].mean()
            out[i, j] = (rows[i, j] - mean) / spread if spread else 0.0
        if seen == scaling.SURE_ROWS:
            forget_absurd_start(rows[scaling.FEW_ROWS : seen], kept[:seen])
    return out, kept


def forget_absurd_start(later, kept):
    """Give the first rows the mean and the spread of the later ones, where one was absurd."""
    for j, column in enumerate(later.T):
        if 0.0 < scaling.LIMIT * column.std() < kept[:, j].std() * np.sqrt(len(kept)):
            deviations = np.sqrt(5 / 4) * column.std() * np.array([-1, -1, 0, 1, 1])
            kept[: scaling.FEW_ROWS, j] = column.mean() + deviations


@as_both
def test_rows_are_scaled_by_those_before_and_absurd_values_are_clipped(form):
    rows = np.random.default_rng(1).normal(3.0, 2.0, size=(1300, 4))
    rows[:, 1] = 7.0
    rows[1150, 1] = 8.0  # where the spread is 0
    rows[[4, 500, 1150], 2] = 15.0, -9999.0, 1e6
    rows[1, 3] = -9999.0
    state, out = np.zeros((scaling.N_STATE_ROWS, 4)), rows.copy()
    form(scaling.learn_dense)(state, out)
    pieces, in_parts = rows.copy(), np.zeros_like(state)
    for cut in (slice(0, 7), slice(7, 8), slice(8, 16), slice(16, 1100), slice(1100, None)):
        form(scaling.learn_dense)(in_parts, pieces[cut])
    np.testing.assert_array_equal(out, pieces)  # the cuts leave no trace
    np.testing.assert_array_equal(state, in_parts)
    expected, kept = naive_scaled(rows)
    np.testing.assert_allclose(out, expected, atol=1e-7)
    assert np.argwhere(np.abs(out) == scaling.LIMIT).tolist() == [[500, 2], [1150, 2]]
    np.testing.assert_allclose(state[scaling.MEAN], kept.mean(axis=0))
    np.testing.assert_allclose(state[scaling.SPREAD], len(rows) * kept.var(axis=0))


@as_both
def test_gaps_leave_mean_and_spread_alone_and_become_the_mean(form):
    rows = np.random.default_rng(2).normal(1000.0, 1.0, size=(1500, 3))
    rows[np.random.default_rng(3).random(rows.shape) < 0.3] = np.nan
    rows[:5] = np.nan
    state, out = np.zeros((scaling.N_STATE_ROWS, 3)), rows.copy()
    form(scaling.learn_dense)(state, out)
    for j, column in enumerate(rows.T):
        there, alone = ~np.isnan(column), np.zeros((scaling.N_STATE_ROWS, 1))
        dense = column[there, np.newaxis]
        form(scaling.learn_dense)(alone, dense)
        np.testing.assert_array_equal(out[there, j], dense[:, 0])
        np.testing.assert_array_equal(state[:, j], alone[:, 0])
        assert not out[~there, j].any()


@pytest.mark.parametrize("name", ["california", "abalone", "parkinson"])
def test_one_absurd_row_does_not_ruin_a_model(name):
    """100 rows later the error is that of a model without it, wherever it stood."""
    data = load_dataset(name)
    order = np.random.default_rng(0).permutation(len(data.ranks))[:4000]

    def errors(absurd):
        X, ranks = data.X[order].copy(), data.ranks[order]
        X[absurd, :4] = -9999.0
        scaling.learn_dense(np.zeros((scaling.N_STATE_ROWS, X.shape[1])), X)
        learner = LinearLearner(X.shape[1], ranks.max(), average=True)
        calibration = Calibration(ranks.max())
        predicted = learner.learn_many(X, ranks, predict=True, calibration=calibration)
        return np.abs(predicted - ranks)

    clean = errors([])
    for place in (0, 1, 2, 3, 4, 5, 10, 30, 100, 300, 1000, 2000, 3000):
        after = slice(place + 100, None)
        assert errors([place])[after].mean() < 1.02 * clean[after].mean(), place


@as_both
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_later_rows_are_scaled_by_what_is_known(form, dtype):
    state = np.zeros((scaling.N_STATE_ROWS, 4))
    scaling.learn_dense(state, ROWS.copy())
    new = ROWS[::-1].astype(dtype)
    out = np.empty(new.shape)
    form(scaling.scale_dense)(state, new, out)
    expected = StandardScaler().fit(ROWS).transform(new.astype(np.float64))
    np.testing.assert_allclose(out, expected, atol=1e-10)


@as_both
def test_sparse_values_are_divided_by_the_root_mean_square_of_those_present(form):
    state = np.zeros((scaling.N_STATE_ROWS, 3))
    values, columns = np.array([3.0, -2.0, 4.0, 0.0]), np.array([0, 2, 0, 1])
    form(scaling.scale_sparse)(state, values, columns, True)
    np.testing.assert_allclose(values, [1.0, -1.0, 4.0 / np.sqrt((9 + 16) / 2), 0.0])
    again = np.array([5.0, 2.0, 9.0])
    form(scaling.scale_sparse)(state, again, np.array([0, 2, 1]), False)
    np.testing.assert_allclose(again, [5.0 / np.sqrt(12.5), 1.0, 0.0])
