"""Columns as a feature matrix: numbers, perhaps standardised; text, one-hot or hashed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ordspan.core import scaling
from ordspan.tables.batch import LARGEST, Batch, Faults
from ordspan.tables.label_columns import encode_column

if TYPE_CHECKING:
    import polars as pl

DEFAULT_HASH_BITS = 12
MAX_HASH_BITS = 24
MAX_DENSE = 256
"""Rows with text and more features than this are sparse."""
MISSING = ("mean", "error")
MAX_UNSEEN = 1000


@dataclass(frozen=True)
class Recipe:
    """Which columns make the features, and how; stored in model files.

    The order of the features is: numbers, indicators of missing numbers, text values, hashed text.

    Parameters
    ----------
    numbers : tuple of str
        Numeric columns, in the order of the weights. A missing number becomes the column's mean.
    gaps : tuple of str
        Those of them with missing numbers in training: each has an extra feature, 1 where the
        number is missing.
    words : tuple of (str, tuple of str)
        Text columns with few distinct values, and these values: each value is a feature. The empty
        string is a missing value.
    hashed : tuple of str
        Other text columns, hashed together into ``2 ** hash_bits`` features.
    hash_bits : int
        Size of the hash table.
    n_sparse : int
        Number of features of svmlight rows, which have no named columns; otherwise 0.
    zero_based : bool
        Whether the indices of svmlight rows start at 0.
    standardise : bool
        Whether numbers are centred and scaled; sparse ones are only scaled.
    missing : {"mean", "error"}
        Whether a missing number is filled in, or makes a row bad.
    dressed : tuple of (str, str)
        Decimal separators of numeric columns formatted as text, such as ``1.234,5``. The name is
        that of model files.
    """

    numbers: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    words: tuple[tuple[str, tuple[str, ...]], ...] = ()
    hashed: tuple[str, ...] = ()
    hash_bits: int = DEFAULT_HASH_BITS
    n_sparse: int = 0
    zero_based: bool = False
    standardise: bool = True
    missing: str = "mean"
    dressed: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.hash_bits <= MAX_HASH_BITS:
            raise ValueError(f"hash_bits must be in 1..{MAX_HASH_BITS}, got {self.hash_bits}")
        if self.missing not in MISSING:
            raise ValueError(f"missing must be {' or '.join(MISSING)}, got {self.missing!r}")
        dressed = [name for name, _ in self.dressed]
        for names, known in (
            (self.columns, self.columns),
            (self.gaps, self.numbers),
            (dressed, self.numbers),
        ):
            if len(set(names)) < len(names) or not set(names) <= set(known):
                raise ValueError(f"a recipe must name each column once, got {', '.join(names)}")
        if not set(self.decimals.values()) <= {".", ","}:
            raise ValueError("the decimal separator of a column must be . or ,")
        if self.n_sparse < 0 or (self.n_sparse and self.columns):
            raise ValueError(f"a recipe cannot have {self.n_sparse} sparse features and columns")

    @property
    def texts(self) -> tuple[str, ...]:
        """All text columns."""
        return (*(name for name, _ in self.words), *self.hashed)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns used as features."""
        return (*self.numbers, *self.texts)

    @property
    def decimals(self) -> dict[str, str]:
        """Decimal separators of the numeric columns in ``dressed``, by name."""
        return dict(self.dressed)

    @property
    def n_scaled(self) -> int:
        """Number of features that can be standardised."""
        return self.n_sparse or len(self.numbers)

    @property
    def n_plain(self) -> int:
        """Number of features before the hashed ones."""
        return self.n_scaled + len(self.gaps) + sum(len(words) for _, words in self.words)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.n_plain + (2**self.hash_bits if self.hashed else 0)

    @property
    def dense(self) -> bool:
        """Whether prepared rows are dense; otherwise they are sparse."""
        return not self.n_sparse and not self.hashed and self.n_features <= MAX_DENSE

    @property
    def row_bytes(self) -> int:
        """Approximate memory of a row, read and prepared."""
        read = 8 * len(self.numbers) + 40 * len(self.texts)
        if self.n_sparse:
            return 24 * min(self.n_sparse, 300)
        return max(64, read + (8 * self.n_features if self.dense else 24 * len(self.columns)))

    def feature_names(self) -> list[str]:
        """Names of the features in messages and tables.

        >>> Recipe(("age",), ("age",), (("job", ("", "cook")),)).feature_names()
        ['age', 'age is missing', 'job is missing', 'job = cook']
        """
        if self.n_sparse:
            return [f"feature {index + (not self.zero_based)}" for index in range(self.n_sparse)]
        names = [*self.numbers, *(f"{name} is missing" for name in self.gaps)]
        for name, words in self.words:
            names += [f"{name} = {word}" if word else f"{name} is missing" for word in words]
        hashed = ", ".join(self.hashed)
        return names + [f"hash {i} of {hashed}" for i in range(self.n_features - len(names))]

    def feature_name(self, index: int) -> str:
        """Name of one feature."""
        if self.n_sparse:
            return f"feature {index + (not self.zero_based)}"
        return self.feature_names()[index]


class Scale:
    """Mean and spread of every feature, known before learning or learned online.

    Learned online, each row is scaled by the rows up to and including it (after the first thousand
    the spread is updated every 64 rows), so the result does not depend on the batches. Sparse rows
    are divided by the root mean square of the values present, and not centred, because centring
    would fill their zeros.
    """

    def __init__(self, n_features: int, state: NDArray[Any] | None = None) -> None:
        if state is None:
            state = np.zeros((scaling.N_STATE_ROWS, n_features))
        elif fault := scaling.why_unusable(state, n_features):
            raise ValueError(f"the scale of {n_features} numbers {fault}")
        self.state: NDArray[np.float64] = state

    def learn(self, matrix: Any) -> Any:
        """Learn the rows one after the other, and scale each by the rows up to it.

        Dense rows are scaled in place: writing them elsewhere would take longer.
        """
        if hasattr(matrix, "indptr"):
            return self._scaled_values(matrix, learn=True)
        if matrix.shape[1]:
            scaling.learn_dense(self.state, matrix)
        return matrix

    def apply(self, matrix: Any, out: NDArray[np.float64] | None = None) -> Any:
        """Scale rows by the known mean and spread; a missing number becomes 0, the mean."""
        if hasattr(matrix, "indptr"):
            return self._scaled_values(matrix, learn=False)
        scaled = np.empty(matrix.shape) if out is None else out
        if matrix.shape[1]:
            scaling.scale_dense(self.state, matrix, scaled)
        return scaled

    def fill(self, matrix: NDArray[Any]) -> NDArray[Any]:
        """Rows unscaled, with missing numbers replaced by the mean."""
        holes = np.isnan(matrix)
        if not holes.any():
            return matrix
        return np.where(holes, self.state[scaling.MEAN], matrix)

    def _scaled_values(self, matrix: Any, learn: bool) -> Any:
        values = matrix.data.astype(np.float64)
        scaling.scale_sparse(self.state, values, matrix.indices, learn)
        return type(matrix)((values, matrix.indices, matrix.indptr), shape=matrix.shape)


def unusable_rows(recipe: Recipe, X: Any) -> Faults:
    """Faults of rows with numbers that are too large, or missing where that is not allowed."""
    sparse = recipe.n_sparse > 0
    values = X.data.reshape(-1, 1) if sparse else X
    allowed = recipe.missing == "mean" and not sparse
    if scaling.all_within(values, LARGEST, allowed):
        return Faults()
    bad = ~np.isfinite(values) | (np.abs(values.astype(np.float64)) > LARGEST)
    if allowed:
        bad &= ~np.isnan(values)
    faults = Faults()
    for place, column in zip(*np.nonzero(bad), strict=True):
        row = int(np.searchsorted(X.indptr, place, side="right")) - 1 if sparse else int(place)
        name = recipe.feature_name(int(X.indices[place] if sparse else column))
        faults.setdefault(row, _value_fault(values[place, column], name))
    return faults


def _value_fault(value: float, name: str) -> str:
    if np.isnan(value):
        return f"column {name!r} is empty or NaN; fill it"
    return f"column {name!r} holds {value}, which is too large; check it"


@dataclass
class Unseen:
    """Counts of text values that a model has not seen, which predictions ignore.

    Those of bad rows, which get no prediction, are not counted.
    """

    bad: list[int] = field(default_factory=list)  # rows of the current batch
    gaps: dict[str, int] = field(default_factory=dict)  # columns without gaps in training
    counts: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, name: str, words: list[str], counts: NDArray[np.int64]) -> None:
        """Count unseen values of a column."""
        for word, count in zip(words, counts.tolist(), strict=True):
            if not count:
                continue
            key = (name, word if len(self.counts) < MAX_UNSEEN else "...")
            self.counts[key] = self.counts.get(key, 0) + count

    def messages(self) -> list[str]:
        """Messages about the most frequent ones."""
        found = sorted(self.counts.items(), key=lambda item: -item[1])
        rows = [
            f"{name} = {word!r} ({count:,} row{'s' * (count > 1)})"
            for (name, word), count in found[:5]
        ]
        messages = [f"values not seen in training: {', '.join(rows)}"] if rows else []
        if self.gaps:
            rows = [
                f"{name} ({count:,} row{'s' * (count > 1)})" for name, count in self.gaps.items()
            ]
            shown = ", ".join(rows[:8]) + (", ..." if len(rows) > 8 else "")
            messages.append(f"missing values, which training did not have, were filled: {shown}")
        return messages

    def add_gaps(self, recipe: Recipe, X: NDArray[Any]) -> None:
        """Count missing numbers of columns that had none in training."""
        counts = np.isnan(np.delete(X, self.bad, axis=0)).sum(axis=0)
        for name, count in zip(recipe.numbers, counts.tolist(), strict=True):
            if count and name not in recipe.gaps:
                self.gaps[name] = self.gaps.get(name, 0) + count


def prepare_features(
    recipe: Recipe,
    scale: Scale,
    batch: Batch,
    *,
    learn: bool = False,
    unseen: Unseen | None = None,
) -> Any:
    """The features of a batch: numbers scaled, gaps marked, text one-hot encoded or hashed.

    With ``learn`` the scale learns the rows, one after the other.
    """
    X, table = batch.X, batch.table
    if unseen is not None:
        unseen.bad = list(batch.faults)
    if recipe.n_sparse:
        if not recipe.standardise:
            return X
        return scale.learn(X) if learn else scale.apply(X)
    holes = [np.isnan(X[:, recipe.numbers.index(name)]) for name in recipe.gaps]
    n_numbers = len(recipe.numbers)
    if recipe.dense and recipe.standardise and not learn:
        rows = np.zeros((len(batch), recipe.n_features))
        scale.apply(X, rows[:, :n_numbers])
    else:
        scaled = scale.learn if learn else scale.apply
        X = scaled(X) if recipe.standardise else scale.fill(X)
        if recipe.n_features == n_numbers:
            return X
        if not recipe.dense:
            return _sparse_rows(recipe, X, holes, table, unseen)
        rows = np.zeros((len(batch), recipe.n_features))
        rows[:, :n_numbers] = X
    rows[:, n_numbers : n_numbers + len(holes)] = np.array(holes).T if holes else 0.0
    at, places = n_numbers + len(holes), np.arange(len(batch))
    for name, words in recipe.words:
        codes = word_codes(table, name, words, unseen)
        known = codes >= 0
        rows[places[known], at + codes[known]] = 1.0
        at += len(words)
    return rows


def _sparse_rows(
    recipe: Recipe, X: NDArray[Any], holes: list[Any], table: pl.DataFrame, unseen: Unseen | None
) -> Any:
    """Features of a batch as a sparse matrix."""
    from scipy.sparse import csr_array, hstack

    parts = [csr_array(X)] + [csr_array(hole[:, None].astype(float)) for hole in holes]
    for name, words in recipe.words:
        codes = word_codes(table, name, words, unseen)
        known = np.flatnonzero(codes >= 0)
        shape = (codes.size, len(words))
        parts.append(csr_array((np.ones(known.size), (known, codes[known])), shape=shape))
    if recipe.hashed:
        hashed = [_hashed(table, name, recipe.hash_bits) for name in recipe.hashed]
        parts.append(sum(hashed[1:], hashed[0]))
    return hstack(parts, format="csr", dtype=np.float64)


def word_codes(
    table: pl.DataFrame, name: str, words: tuple[str, ...], unseen: Unseen | None = None
) -> NDArray[np.int64]:
    """Index of every row's value among the known ones; -1 if it is none of them."""
    codes, found = encode_column(as_words(table, [name]), name, str)
    places = {word: place for place, word in enumerate(words)}
    each = np.array([places.get(word, -1) for word in found], dtype=np.int64)
    if unseen is not None and (each < 0).any():
        new = np.flatnonzero(each < 0)
        counts = np.bincount(np.delete(codes, unseen.bad), minlength=len(found))[new]
        unseen.add(name, [found[i] for i in new], counts)
    return each[codes] if each.size else codes


def as_words(table: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Columns as stripped text: 01234 is not 1234, and a missing value is an empty string."""
    import polars as pl

    return table.select(
        pl.col(name).cast(pl.String()).fill_null("").str.strip_chars() for name in names
    )


def _hashed(table: pl.DataFrame, name: str, bits: int) -> Any:
    """One hashed feature per row of a text column; each distinct value is hashed once."""
    from scipy.sparse import csr_array
    from sklearn.feature_extraction import FeatureHasher

    codes, words = encode_column(as_words(table, [name]), name, str)
    hasher = FeatureHasher(2**bits, input_type="string")
    each = csr_array(hasher.transform([[f"{name}={word}"] for word in words]))
    return each[codes]


def stack_rows(parts: list[Any]) -> Any:
    """Dense or CSR parts stacked vertically."""
    if len(parts) == 1:
        return parts[0]
    if hasattr(parts[0], "indptr"):
        from scipy.sparse import vstack

        return vstack(parts, format="csr")
    return np.concatenate(parts)
