"""CSR matrices with a damaged structure: refused by ValueError, or the dense matrix's answers."""

from functools import cache
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array, csr_matrix
from sklearn.base import clone

from estimators.examples import graded
from ordspan import KernelOrdinalPA, MulticlassPA, OrdinalPA
from ordspan.learners import LinearLearner

X, Y, SPANS = graded(40, d=6)
ESTIMATORS = (
    OrdinalPA(random_state=0),
    MulticlassPA(random_state=0),
    KernelOrdinalPA(budget=10, random_state=0),
)
WILD = (-1, 0, 1, 5, 6, 7, 2**31 - 1, -(2**31), 10**6)


def attack(rng, folder: Path) -> None:
    """One matrix: predict it, and learn from it; the thin learner meets it without checks."""
    matrix = damaged(rng)
    model = fitted(int(rng.integers(len(ESTIMATORS))))
    agree(lambda rows: model.decision_function(rows), matrix)
    learner = LinearLearner(6, 4)
    agree(lambda rows: learner.latent(rows), matrix)
    before = model.learner_.memory.copy()
    n_rows = matrix.shape[0]
    try:
        clone(model).partial_fit(matrix, np.resize(Y, n_rows), classes=[1, 2, 3, 4])
        model.predict(matrix)
    except ValueError:
        pass
    assert np.array_equal(model.learner_.memory, before)


def agree(answers, matrix) -> None:
    """Same answers as those of the dense matrix that was read slowly, or a ValueError."""
    try:
        found = answers(matrix)
    except ValueError:
        return
    np.testing.assert_allclose(found, answers(slow_dense(matrix)), rtol=1e-6, atol=1e-6)


def slow_dense(matrix):
    """The dense matrix by the definition of CSR, which must hold for what was not refused."""
    dense = np.zeros(matrix.shape)
    starts = matrix.indptr
    assert len(starts) == len(dense) + 1
    assert starts[0] == 0
    assert (np.diff(starts) >= 0).all()
    assert starts[-1] <= min(matrix.indices.size, matrix.data.size)
    for i in range(len(dense)):
        for place in range(starts[i], starts[i + 1]):
            assert 0 <= matrix.indices[place] < dense.shape[1]
            dense[i, matrix.indices[place]] += matrix.data[place]
    return dense


def damaged(rng):
    """A random CSR matrix whose arrays were changed after it was made."""
    n_rows = int(rng.integers(1, 9))
    dense = rng.standard_normal((n_rows, 6)) * (rng.random((n_rows, 6)) < 0.5)
    kind = csr_array if rng.random() < 0.5 else csr_matrix
    matrix = kind(dense)
    index = str(rng.choice(["i4", "i8"]))
    arrays = {name: getattr(matrix, name).copy() for name in ("data", "indices", "indptr")}
    arrays |= {name: arrays[name].astype(index) for name in ("indices", "indptr")}
    for _ in range(rng.integers(0, 3)):
        name = str(rng.choice([*arrays]))
        array, what = arrays[name], rng.integers(5)
        if what == 0:
            arrays[name] = array[: rng.integers(array.size + 1)]
        elif what == 1:
            arrays[name] = np.concatenate([array, array[:3]])
        elif what == 2 and array.size:
            rng.shuffle(array)
        elif array.size and name != "data":
            array[rng.integers(array.size)] = rng.choice(WILD)
    matrix.data, matrix.indices, matrix.indptr = arrays.values()
    if rng.random() < 0.5:
        matrix.has_canonical_format = True
    return matrix


@cache
def fitted(number: int):
    return clone(ESTIMATORS[number]).fit(X, SPANS)
