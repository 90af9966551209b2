"""Columns as a matrix: numbers as they are or standardised online, words hashed one-hot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from ordspan.core import scaling
from ordspan.data.files.chunks import LARGEST, Chunk
from ordspan.data.files.grades import coded

if TYPE_CHECKING:
    import pyarrow as pa

TURNED = 1500
"""Rows that are turned from columns to rows together: few enough for the cache, and no power of
two, which would put all columns on the same places of it."""

DEFAULT_HASH_BITS = 12
MAX_HASH_BITS = 24


@dataclass(frozen=True)
class Recipe:
    """Which columns make the features, and how; a model file keeps it.

    Parameters
    ----------
    numbers : tuple of str
        Numeric columns, in the order of the weights.
    words : tuple of str
        Text columns, hashed together into ``2 ** hash_bits`` features after the numbers.
    hash_bits : int
        Size of the hash table.
    n_sparse : int
        Number of features of svmlight rows, which have no named columns; otherwise 0.
    zero_based : bool
        Whether the indices of svmlight rows begin at 0.
    standardise : bool
        Whether numbers are centred and scaled; sparse ones are only scaled.
    """

    numbers: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    hash_bits: int = DEFAULT_HASH_BITS
    n_sparse: int = 0
    zero_based: bool = False
    standardise: bool = True

    def __post_init__(self) -> None:
        if not 1 <= self.hash_bits <= MAX_HASH_BITS:
            raise ValueError(f"hash_bits must be in 1..{MAX_HASH_BITS}, got {self.hash_bits}")

    @property
    def n_scaled(self) -> int:
        """Number of features that can be standardised."""
        return self.n_sparse or len(self.numbers)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.n_scaled + (2**self.hash_bits if self.words else 0)

    def feature_name(self, index: int) -> str:
        """What a feature is called in messages and tables.

        >>> Recipe(("age",), ("town", "job"), 4).feature_name(3)
        'hash 2 of town, job'
        """
        if self.n_sparse:
            return f"feature {index + (not self.zero_based)}"
        if index < len(self.numbers):
            return self.numbers[index]
        return f"hash {index - len(self.numbers)} of {', '.join(self.words)}"

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, given: dict[str, Any]) -> Self:
        """The recipe that `to_json` told."""
        return cls(**given | {name: tuple(given[name]) for name in ("numbers", "words")})


class Scale:
    """Running mean and spread of every feature, updated row by row.

    Each row is scaled by the rows up to and including it (after the first thousand its spread is
    looked at anew every 64 rows), so the result does not depend on how the rows were cut into
    chunks. Sparse rows are divided by the root mean square of the values present, and not centred,
    because centring would fill their zeros.
    """

    def __init__(self, n_features: int) -> None:
        self.state = np.zeros((scaling.N_PARTS, n_features))

    def learn(self, matrix: Any) -> Any:
        """Take the rows in, one after the other, and scale each by what is known then.

        Dense rows are scaled where they stand: to write them elsewhere would take longer.
        """
        if hasattr(matrix, "indptr"):
            return self._scaled_values(matrix, learn=True)
        if matrix.shape[1]:
            scaling.learn_dense(self.state, matrix)
        return matrix

    def apply(self, matrix: Any) -> Any:
        """Scale rows by what is known."""
        if hasattr(matrix, "indptr"):
            return self._scaled_values(matrix, learn=False)
        scaled = np.empty(matrix.shape)
        if matrix.shape[1]:
            scaling.scale_dense(self.state, matrix, scaled)
        return scaled

    def _scaled_values(self, matrix: Any, learn: bool) -> Any:
        values = matrix.data.astype(np.float64)
        scaling.scale_sparse(self.state, values, matrix.indices, learn)
        return type(matrix)((values, matrix.indices, matrix.indptr), shape=matrix.shape)


def feature_rows(recipe: Recipe, chunk: Chunk) -> tuple[Any, dict[int, str]]:
    """Raw numbers of every row (dense, or CSR for svmlight), and the faults of bad rows."""
    if recipe.n_sparse:
        return chunk.matrix, _sparse_faults(recipe, chunk.matrix)
    matrix = chunk.matrix
    if matrix is None:
        matrix = _dense(chunk.table, recipe.numbers)
    faults: dict[int, str] = {}
    if chunk.checked or scaling.all_within(matrix, LARGEST):
        return matrix, faults
    bad = _unusable(matrix)
    for row in np.flatnonzero(bad.any(axis=1)).tolist():
        column = int(np.argmax(bad[row]))
        faults[row] = _value_fault(matrix[row, column], recipe.feature_name(column))
    return matrix, faults


def _unusable(values: NDArray[Any]) -> NDArray[np.bool_]:
    """True for NaN, infinities and what would overflow."""
    if values.dtype == np.float32:
        return ~np.isfinite(values)  # none of them is as large as LARGEST
    return ~(np.abs(values) <= LARGEST)


def _dense(table: pa.Table, names: Sequence[str]) -> NDArray[Any]:
    if not names:
        return np.empty((table.num_rows, 0))
    columns = [_floats(table.column(name)) for name in names]
    dtype = np.result_type(*columns)
    matrix = np.empty((table.num_rows, len(columns)), dtype=dtype)
    for begin in range(0, table.num_rows, TURNED):
        rows = slice(begin, begin + TURNED)
        matrix[rows] = np.array([column[rows] for column in columns], dtype=dtype).T
    return matrix


def _floats(column: pa.ChunkedArray) -> NDArray[Any]:
    """A column of numbers as floats, missing ones as NaN."""
    values = column.to_numpy()
    return values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)


def _sparse_faults(recipe: Recipe, matrix: Any) -> dict[int, str]:
    bad = np.flatnonzero(_unusable(matrix.data))
    faults: dict[int, str] = {}
    for entry in bad.tolist():
        row = int(np.searchsorted(matrix.indptr, entry, side="right")) - 1
        name = recipe.feature_name(int(matrix.indices[entry]))
        faults.setdefault(row, _value_fault(matrix.data[entry], name))
    return faults


def _value_fault(value: float, name: str) -> str:
    if np.isnan(value):
        return f"column {name!r} is empty or NaN; fill it, drop the column or skip such rows"
    return f"column {name!r} holds {value}, which is too large; check it, or drop the column"


def with_words(recipe: Recipe, matrix: Any, table: pa.Table) -> Any:
    """The matrix with the hashed words of the text columns on its right."""
    if not recipe.words:
        return matrix
    from scipy.sparse import csr_array, hstack

    hashed = [_hashed(table, name, recipe.hash_bits) for name in recipe.words]
    words = hashed[0]
    for more in hashed[1:]:
        words = words + more
    return hstack([csr_array(matrix), words], format="csr", dtype=np.float64)


def _hashed(table: pa.Table, name: str, bits: int) -> Any:
    """One hashed feature for each row of a text column; each different word is hashed once."""
    from scipy.sparse import csr_array
    from sklearn.feature_extraction import FeatureHasher

    codes, words = coded(table, name, str)  # as they stand: 01234 is not 1234
    hasher = FeatureHasher(2**bits, input_type="string")
    each = csr_array(hasher.transform([[f"{name}={word}"] for word in words]))
    return each[codes]
