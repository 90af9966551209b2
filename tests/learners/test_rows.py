"""Rows of any kind of matrix come out as the same numbers, or are refused by name."""

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from numba.core.event import install_timer

from ordspan.learners import LinearLearner, rows

NO_ORDER = np.empty(0, dtype=np.intp)


def dense(n_rows=7, n_columns=3, dtype=np.float64):
    values = np.random.default_rng(0).normal(size=(n_rows, n_columns))
    values[values < -0.5] = 0
    return values.astype(dtype)


def walked(matrix, order=NO_ORDER):
    """The rows in the order in which a walk would meet them."""
    width = matrix.shape[1]
    met = []
    for block, block_order in rows.row_blocks(matrix, order):
        n_rows = block.rows.stop - block.rows.start
        for i in block_order if block_order.size else range(n_rows):
            if block.starts is None:
                met.append(block.data[i * width : (i + 1) * width])
            else:
                inside = slice(block.starts[i], block.starts[i + 1])
                row = np.zeros(width, dtype=block.data.dtype)
                row[block.columns[inside]] = block.data[inside]
                met.append(row)
    return np.array(met)


LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "every second row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "every second column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "broadcast back": lambda X: np.lib.stride_tricks.as_strided(X, X.shape, X.strides),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("block_bytes", [1, 100, 1 << 20])
def test_blocks_hold_every_row_in_order_whatever_the_stride(
    monkeypatch, layout, ordered, block_bytes
):
    monkeypatch.setattr(rows, "COPY_BYTES", block_bytes)
    X = dense()
    order = np.random.default_rng(1).permutation(len(X)) if ordered else NO_ORDER
    expected = X[order] if ordered else X
    np.testing.assert_array_equal(walked(rows.as_rows(LAYOUTS[layout](X)), order), expected)


def test_contiguous_rows_are_not_copied():
    X = dense()
    ((block, _),) = rows.row_blocks(rows.as_rows(X), NO_ORDER)
    assert np.shares_memory(block.data, X)
    csr = sp.csr_array(X)
    assert np.shares_memory(rows.as_rows(csr).data, csr.data)


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
    blocks = [next(rows.row_blocks(rows.as_rows(X), NO_ORDER))[0] for X in (free, locked)]
    assert np.shares_memory(blocks[1].data, arrays[0])
    types = [[numba.typeof(array) for array in block[1:]] for block in blocks]
    assert types[0] == types[1]  # so the same compiled code


@pytest.mark.parametrize(
    "kind", ["csr_matrix", "csr_array", "csc_array", "coo_matrix", "lil_array"]
)
def test_sparse_formats_are_the_dense_rows(kind):
    X = dense()
    np.testing.assert_array_equal(walked(rows.as_rows(getattr(sp, kind)(X))), X)


@pytest.mark.parametrize(
    "dtype", [np.int32, np.uint8, bool, np.float16, np.longdouble, ">f8", object]
)
def test_other_number_types_become_float64(dtype):
    X = np.array([[1, 0], [2, 3]]).astype(dtype)
    got = rows.as_rows(X)
    assert got.dtype == np.float64
    assert got.dtype.isnative
    np.testing.assert_array_equal(got, X.astype(float))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_keep_their_width(dtype):
    assert rows.as_rows(dense(dtype=dtype)).dtype == dtype
    assert rows.as_rows(sp.csr_array(dense(dtype=dtype))).dtype == dtype


def test_duplicate_and_unsorted_entries_are_added_up_in_a_copy():
    csr = sp.csr_array(
        (np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3)
    )
    np.testing.assert_array_equal(walked(rows.as_rows(csr)), [[2.0, 0.0, 4.0]])
    assert csr.nnz == 3


@pytest.mark.parametrize("shape", [(3,), (2, 3, 4), ()])
def test_only_two_dimensions_are_rows(shape):
    with pytest.raises(ValueError, match=rf"expected a 2-d matrix.*got {len(shape)}-d"):
        rows.as_rows(np.ones(shape))


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_a_refusal_names_row_column_and_value(make):
    X = np.ones((4, 3))
    X[2, 1] = np.nan
    assert "contains NaN: row 2, column 1;" in rows.refusal(make(X), 2)
    assert "column 1 ('age')" in rows.refusal(make(X), 2, ["id", "age", "sex"])
    X[2, 1] = -np.inf
    assert "contains infinity (inf): row 2, column 1" in rows.refusal(make(X), 2)
    X[2, 1] = -1e101
    assert "row 2: values as large as 1e+101 (column 1) overflow" in rows.refusal(make(X), 2)
