"""Rows as compiled code takes them: not copied without need, whatever their type."""

import numpy as np
import pytest
import scipy.sparse as sp
from numba.core.event import install_timer

from ordspan.learners import KernelLearner, LinearLearner
from ordspan.learners.rows import as_matrix, make_rows


def dense(n_rows=7, n_columns=3, dtype=np.float64):
    values = np.random.default_rng(0).normal(size=(n_rows, n_columns))
    values[values < -0.5] = 0
    return values.astype(dtype)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_read_only_rows_are_neither_copied_nor_changed_and_compile_nothing(kind):
    free = kind(dense())
    locked = kind(dense())
    arrays = [locked] if kind is np.asarray else [locked.data, locked.indices, locked.indptr]
    for array in arrays:
        array.setflags(write=False)
    learners = [LinearLearner(free.shape[1], 3) for _ in range(2)]
    labels = np.arange(free.shape[0]) % 3 + 1
    learners[0].learn_many(free, labels)
    before, compiled = [array.tobytes() for array in arrays], []
    with install_timer("numba:compile", compiled.append):
        learners[1].learn_many(locked, labels)
    assert compiled == []
    assert [array.tobytes() for array in arrays] == before
    np.testing.assert_array_equal(learners[1].weights, learners[0].weights)
    values = free if kind is np.asarray else free.data
    assert np.shares_memory(make_rows(as_matrix(free)).data, values)
    assert np.shares_memory(make_rows(as_matrix(locked)).data, arrays[0])


@pytest.mark.parametrize(
    "dtype", [np.int32, np.uint8, bool, np.float16, np.longdouble, ">f8", object]
)
def test_numbers_of_any_type_are_learned_as_float64(dtype):
    X = np.array([[1, 0], [2, 3]]).astype(dtype)
    one, other = LinearLearner(2, 2, "PA"), LinearLearner(2, 2, "PA")
    one.learn_many(X, [1, 2])
    other.learn_many(X.astype(float), [1, 2])
    np.testing.assert_array_equal(one.state, other.state)


@pytest.mark.parametrize("kind", [LinearLearner, KernelLearner])
def test_duplicate_and_unsorted_entries_are_added_up_in_a_copy(kind):
    csr = sp.csr_array(([1.0, 2.0, 3.0], [2, 0, 2], [0, 3]), shape=(1, 3))
    summed, dense = kind(3, 2, "PA"), kind(3, 2, "PA")
    summed.learn_many(csr, [1])
    dense.learn_many([[2.0, 0.0, 4.0]], [1])
    np.testing.assert_allclose(summed.state, dense.state, rtol=1e-12)
    assert csr.nnz == 3


def test_rows_of_another_width_and_rows_without_labels_are_refused():
    narrow = LinearLearner(2, 3).rows(np.ones((6, 2)))
    with pytest.raises(ValueError, match="X has 2 features, but the learner has 3"):
        LinearLearner(3, 3).predict_many(narrow)
    with pytest.raises(TypeError, match="lower"):
        LinearLearner(2, 3).learn_many(np.ones((6, 2)))
