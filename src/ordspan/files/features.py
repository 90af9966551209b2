"""Columns as a matrix: numbers as they are or standardised online, words hashed one-hot."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from ordspan.core import scaling
from ordspan.files.batch import LARGEST, Batch, Faults
from ordspan.files.grades import coded

if TYPE_CHECKING:
    import polars as pl

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
    batches. Sparse rows are divided by the root mean square of the values present, and not centred,
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


def unusable_rows(recipe: Recipe, X: Any) -> Faults:
    """What is wrong with rows that hold no number, or one too large, in a feature."""
    if recipe.n_sparse:
        return _sparse_faults(recipe, X)
    faults = Faults()
    if scaling.all_within(X, LARGEST):
        return faults
    bad = _unusable(X)
    for row in np.flatnonzero(bad.any(axis=1)).tolist():
        column = int(np.argmax(bad[row]))
        faults[row] = _value_fault(X[row, column], recipe.feature_name(column))
    return faults


def _unusable(values: NDArray[Any]) -> NDArray[np.bool_]:
    """True for NaN, infinities and what would overflow."""
    if values.dtype == np.float32:
        return ~np.isfinite(values)  # none of them is as large as LARGEST
    return ~(np.abs(values) <= LARGEST)


def _sparse_faults(recipe: Recipe, matrix: Any) -> Faults:
    bad = np.flatnonzero(_unusable(matrix.data))
    faults = Faults()
    for entry in bad.tolist():
        row = int(np.searchsorted(matrix.indptr, entry, side="right")) - 1
        name = recipe.feature_name(int(matrix.indices[entry]))
        faults.setdefault(row, _value_fault(matrix.data[entry], name))
    return faults


def _value_fault(value: float, name: str) -> str:
    if np.isnan(value):
        return f"column {name!r} is empty or NaN; fill it, drop the column or skip such rows"
    return f"column {name!r} holds {value}, which is too large; check it, or drop the column"


def prepared(recipe: Recipe, scale: Scale | None, batch: Batch, *, learn: bool = False) -> Any:
    """The features of a batch: numbers scaled, unless there is no scale, and words hashed.

    With ``learn`` the scale takes the rows in, one after the other.
    """
    X = batch.X
    if scale is not None:
        X = scale.learn(X) if learn else scale.apply(X)
    return with_words(recipe, X, batch.table)


def with_words(recipe: Recipe, matrix: Any, table: pl.DataFrame) -> Any:
    """The matrix with the hashed words of the text columns on its right."""
    if not recipe.words:
        return matrix
    from scipy.sparse import csr_array, hstack

    hashed = [_hashed(table, name, recipe.hash_bits) for name in recipe.words]
    words = hashed[0]
    for more in hashed[1:]:
        words = words + more
    return hstack([csr_array(matrix), words], format="csr", dtype=np.float64)


def _hashed(table: pl.DataFrame, name: str, bits: int) -> Any:
    """One hashed feature for each row of a text column; each different word is hashed once."""
    from scipy.sparse import csr_array
    from sklearn.feature_extraction import FeatureHasher

    # as they stand: 01234 is not 1234
    codes, words = coded(table, name, lambda word: "" if word is None else str(word))
    hasher = FeatureHasher(2**bits, input_type="string")
    each = csr_array(hasher.transform([[f"{name}={word}"] for word in words]))
    return each[codes]


def stacked(parts: list[Any]) -> Any:
    """Dense or CSR rows, one part below the other."""
    if len(parts) == 1:
        return parts[0]
    if hasattr(parts[0], "indptr"):
        from scipy.sparse import vstack

        return vstack(parts, format="csr")
    return np.concatenate(parts)
