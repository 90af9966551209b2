"""What is done with one row, against NumPy."""

import numpy as np
import pytest
from steps import both

from ordspan.core import rows


@both(rows.score_and_norm)
def test_score_and_norm_are_dot_products(step):
    rng = np.random.default_rng(0)
    w, x = rng.normal(size=7), rng.normal(size=7)
    assert step(w, x, None) == pytest.approx((w @ x, x @ x), rel=1e-14)
    columns = np.array([4, 0, 6], dtype=np.int32)
    picked = x[:3].copy()
    assert step(w, picked, columns) == pytest.approx((w[columns] @ picked, picked @ picked))


@both(rows.add_scaled)
def test_adding_a_scaled_row_touches_its_columns_only(step):
    rng = np.random.default_rng(1)
    w, x = rng.normal(size=5), rng.normal(size=5)
    dense, sparse = w.copy(), w.copy()
    step(dense, 0.7, x, None)
    np.testing.assert_allclose(dense, w + 0.7 * x, rtol=1e-14)
    step(sparse, 0.7, x[:2].copy(), np.array([3, 1], dtype=np.int32))
    np.testing.assert_allclose(sparse[[3, 1]], (w[[3, 1]] + 0.7 * x[:2]), rtol=1e-14)
    np.testing.assert_array_equal(sparse[[0, 2, 4]], w[[0, 2, 4]])
