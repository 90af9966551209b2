"""Sparse matrices whose arrays contradict each other: refused, never followed."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from ordspan import KernelOrdinalPA, MulticlassPA, OrdinalPA, OrdinalSVM, load, train_files
from ordspan.learners import LinearLearner

X = np.where(np.random.default_rng(0).random((7, 3)) < 0.3, 0.0, np.arange(21.0).reshape(7, 3))
WRAPPED = np.array([0, 2**31 - 1, -(2**31), -1, 9, 9, 9, 9], dtype=np.int32)
"""Starts whose differences all overflow to numbers above 0."""


def changed(name, change):
    """A CSR matrix with another array, which still claims to be canonical."""
    matrix = sp.csr_array(X)
    matrix.has_canonical_format = True
    setattr(matrix, name, change(getattr(matrix, name).copy()))
    return matrix


def put(place, value):
    """A change of one number."""

    def change(array):
        array[place] = value
        return array

    return change


DAMAGE = [
    ("indptr", put(2, 2**31 - 1), "non-decreasing"),
    ("indptr", put(0, 1), "start with 0"),
    ("indptr", put(-1, 10**7), "index pointer should be less"),
    ("indptr", put(-1, 0), "non-decreasing"),  # SciPy takes it for an empty matrix
    ("indptr", lambda starts: WRAPPED, "non-decreasing"),
    ("indptr", lambda starts: starts[:2], "index pointer size 2 should be 8"),
    ("data", lambda values: values[:2], "same size"),
    ("indices", put(4, 10**6), "indices must be < 3"),
    ("indices", put(4, -1), "indices must be >= 0"),
    ("indices", lambda columns: columns * np.nan, "int32 and float64, not integers"),
]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("svmlight")
    lines = [f"{i % 3 + 1} 1:{i} 2:1 3:{-i}\n" for i in range(9)]
    (folder / "rows.svm").write_text("".join(lines))
    train_files(folder / "rows.svm", folder / "model")
    return load(folder / "model")


@pytest.mark.filterwarnings("ignore:indices array has non-integer dtype")
@pytest.mark.parametrize(("name", "change", "text"), DAMAGE)
def test_every_entrance_refuses_a_damaged_matrix(name, change, text, trained):
    y = np.arange(7) % 3
    calls = [trained.predict, trained.latent, lambda X: trained.partial_fit(X, [1] * 7)]
    for kind in (OrdinalPA(), KernelOrdinalPA(), OrdinalSVM(), MulticlassPA()):
        model = clone(kind).fit(X, y)
        calls += [model.predict, model.decision_function, model.learner_.predict_many]
        calls += [lambda X, model=model: model.fit(X, y)]
        if hasattr(model, "partial_fit"):
            calls += [lambda X, model=model: model.partial_fit(X, y)]
    matrix = changed(name, change)
    for call in calls:
        with pytest.raises(ValueError, match=f"damaged CSR matrix: .*{text}"):
            call(matrix)


@pytest.mark.parametrize(
    ("kind", "name", "change"),
    [
        ("csc", "indices", put(4, 99)),
        ("csc", "indptr", put(-1, 0)),
        ("bsr", "indices", put(0, 99)),
        ("coo", "row", put(4, 99)),
        ("coo", "col", put(4, -1)),
        ("dia", "offsets", lambda offsets: offsets[:1]),
    ],
)
def test_other_formats_are_checked_before_scipy_converts_them(kind, name, change):
    matrix = getattr(sp, f"{kind}_matrix")(X)
    setattr(matrix, name, change(getattr(matrix, name).copy()))
    with pytest.raises(ValueError, match=f"damaged {kind.upper()} matrix"):
        LinearLearner(3, 3).latent(matrix)
    lists = sp.lil_array((2, 3))
    lists[0, 1] = 1.0
    for lists.rows[0][0] in (10**9, -5):
        with pytest.raises(ValueError, match="damaged LIL matrix"):
            LinearLearner(3, 2).predict_many(lists)
