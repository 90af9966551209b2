"""Sparse matrices whose arrays contradict each other: named and refused, never followed."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from ordspan import KernelOrdinalPA, MulticlassPA, OrdinalPA, OrdinalSVM, load
from ordspan.commands.train import TrainJob, train
from ordspan.learners import rows


def dense():
    values = np.random.default_rng(0).normal(size=(7, 3))
    return np.where(values < -0.5, 0.0, 1.0 + abs(values))


def write(name, place, value):
    """Damage that writes one number into an array of a matrix."""
    return lambda matrix: getattr(matrix, name).__setitem__(place, value)


def cut(*names):
    """Damage that leaves only the first two numbers of arrays of a matrix."""
    return lambda matrix: [setattr(matrix, name, getattr(matrix, name)[:2]) for name in names]


DAMAGE = {
    "wild start": (write("indptr", 2, 2**31 - 1), "1 has entries"),
    "negative start": (write("indptr", 2, -7), "1 has entries"),
    "falling starts": (write("indptr", 2, 0), "1 has entries"),
    "late first start": (write("indptr", 0, 1), "begins with 1"),
    "end beyond the data": (write("indptr", -1, 10**7), "has entries"),
    "too few starts": (cut("indptr"), r"indptr has shape \(2,\)"),
    "too few columns": (cut("indices"), r"indices have shape \(2,\)"),
    "too few values": (cut("data"), r"data have shape \(2,\)"),
    "too few entries": (cut("data", "indices"), "but there are 2 entries"),
    "column too high": (write("indices", 4, 10**6), "entry 4 has"),
    "negative column": (write("indices", 4, -1), "entry 4 has"),
}


def damaged_matrix(damage, kind="csr_array", dtype=float, index=np.int32):
    matrix = getattr(sp, kind)(dense().astype(dtype))
    matrix.indptr, matrix.indices = matrix.indptr.astype(index), matrix.indices.astype(index)
    matrix.has_canonical_format = True
    DAMAGE[damage][0](matrix)
    return matrix


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("kind", ["csr_array", "csc_array", "csr_matrix", "bsr_array"])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_a_damaged_matrix_is_refused_before_anything_follows_it(damage, kind, index):
    name, (_, text) = kind[:3].upper(), DAMAGE[damage]
    reason = None if name == "BSR" else f"damaged {name} matrix: .*{text}"
    for dtype in (float, int):
        with pytest.raises(ValueError, match=reason):
            rows.as_rows(damaged_matrix(damage, kind, dtype, index))


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize(
    "model", [OrdinalPA(), KernelOrdinalPA(), OrdinalSVM(), MulticlassPA()], ids=repr
)
def test_every_entrance_refuses_a_damaged_matrix(damage, model):
    X, y = dense(), np.arange(len(dense())) % 3
    model = clone(model).fit(X, y)
    calls = [
        model.predict,
        model.decision_function,
        model.learner_.predict_many,
        lambda X: model.fit(X, y),
    ]
    if hasattr(model, "partial_fit"):
        calls += [lambda X: model.partial_fit(X, y), lambda X: model.learner_.learn_many(X, y + 1)]
    before = model.learner_.memory.tobytes()
    for call, kind in itertools.product(calls, ["csr_array", "csc_array"]):
        with pytest.raises(ValueError, match="damaged"):
            call(damaged_matrix(damage, kind))
    assert model.learner_.memory.tobytes() == before


@pytest.mark.parametrize(("axis", "what"), [("row", "row"), ("col", "column")])
def test_places_outside_a_coordinate_matrix_are_refused(axis, what):
    for place in (99, -1):
        coo = sp.coo_matrix(dense())
        getattr(coo, axis)[4] = place
        with pytest.raises(
            ValueError, match=f"damaged COO matrix: stored entry 4 has {what} {place}"
        ):
            rows.as_rows(coo)


def test_a_matrix_that_wrongly_claims_to_be_canonical_is_read_as_it_is():
    csr = sp.csr_array(
        (np.array([1.0, 2.0, 3.0, 9.0]), np.array([2, 0, 2, 1]), np.array([0, 3, 3])), shape=(2, 3)
    )
    csr.data = np.append(csr.data, 7.0)  # beyond the last row, as SciPy allows
    csr.indices = np.append(csr.indices, 0)
    csr.has_canonical_format = csr.has_sorted_indices = True
    got = rows.as_rows(csr)
    np.testing.assert_array_equal(got.toarray(), [[2.0, 0.0, 4.0], [0.0, 0.0, 0.0]])
    assert got.data.size == 2


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_model_trained_from_files_refuses_a_damaged_matrix(damage, trained):
    for call in (trained.predict, trained.latent, lambda X: trained.partial_fit(X, [1] * 7)):
        for kind in ("csr_array", "csc_array"):
            with pytest.raises(ValueError, match="damaged"):
                call(damaged_matrix(damage, kind))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("svmlight")
    lines = [f"{i % 3 + 1} 1:{i} 2:1 3:{-i}\n" for i in range(9)]
    (folder / "rows.svm").write_text("".join(lines))
    train(TrainJob([str(folder / "rows.svm")]), folder / "model")
    return load(folder / "model")
