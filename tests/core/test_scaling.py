"""Running mean and spread against scikit-learn's StandardScaler and the definition."""

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from ordspan.core import scaling
from steps import both

ROWS = np.random.default_rng(0).normal(3.0, 2.0, size=(60, 4))
ROWS[:, 2] = 7.0  # never varies


@both(scaling.learn_dense)
def test_each_row_is_scaled_by_the_rows_up_to_it(step):
    state, out = np.zeros((scaling.N_STATE_ROWS, 4)), ROWS.copy()
    step(state, out)
    for i in range(1, len(ROWS)):
        expected = StandardScaler().fit(ROWS[: i + 1]).transform(ROWS[i : i + 1])[0]
        np.testing.assert_allclose(out[i], expected, atol=1e-12)
    np.testing.assert_array_equal(out[0], 0.0)


def test_after_many_rows_the_spread_is_looked_at_seldom():
    rows = np.random.default_rng(1).normal(3.0, 2.0, size=(1300, 3))
    rows[:, 1] = 7.0
    rows[1150, 1:] = 1e6  # where the spread known is 0, and where it is far too small
    state, out = np.zeros((scaling.N_STATE_ROWS, 3)), rows.copy()
    scaling.learn_dense(state, out)
    for i in range(scaling.EVERY_ROW, len(rows)):
        seen = rows[: i + 1]
        known = StandardScaler().fit(seen[: len(seen) // scaling.SELDOM * scaling.SELDOM])
        spread = np.where(known.var_ > 0.0, np.sqrt(known.var_), np.inf)
        expected = np.clip((rows[i] - seen.mean(axis=0)) / spread, -np.sqrt(i), np.sqrt(i))
        np.testing.assert_allclose(out[i], expected, atol=1e-8)
    assert out[1150, 2] == np.sqrt(1150)
    np.testing.assert_allclose(state[scaling.MEAN], rows.mean(axis=0))
    np.testing.assert_allclose(state[scaling.SPREAD], len(rows) * rows.var(axis=0))


@both(scaling.scale_dense)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_later_rows_are_scaled_by_what_is_known(step, dtype):
    state = np.zeros((scaling.N_STATE_ROWS, 4))
    scaling.learn_dense(state, ROWS.copy())
    new = ROWS[::-1].astype(dtype)
    out = np.empty(new.shape)
    step(state, new, out)
    expected = StandardScaler().fit(ROWS).transform(new.astype(np.float64))
    np.testing.assert_allclose(out, expected, atol=1e-10)


def test_the_cuts_between_batches_leave_no_trace():
    rows = np.random.default_rng(2).normal(3.0, 2.0, size=(1200, 4))
    whole, parts = np.zeros((scaling.N_STATE_ROWS, 4)), np.zeros((scaling.N_STATE_ROWS, 4))
    out, pieces = rows.copy(), rows.copy()
    scaling.learn_dense(whole, out)
    for cut in (slice(0, 7), slice(7, 8), slice(8, 1100), slice(1100, 1200)):
        scaling.learn_dense(parts, pieces[cut])
    np.testing.assert_array_equal(out, pieces)
    np.testing.assert_array_equal(whole, parts)


@both(scaling.scale_sparse)
def test_sparse_values_are_divided_by_the_root_mean_square_of_those_present(step):
    state = np.zeros((scaling.N_STATE_ROWS, 3))
    values, columns = np.array([3.0, -2.0, 4.0, 0.0]), np.array([0, 2, 0, 1])
    step(state, values, columns, True)
    np.testing.assert_allclose(values, [1.0, -1.0, 4.0 / np.sqrt((9 + 16) / 2), 0.0])
    again = np.array([5.0, 2.0, 9.0])
    step(state, again, np.array([0, 2, 1]), False)
    np.testing.assert_allclose(again, [5.0 / np.sqrt(12.5), 1.0, 0.0])
