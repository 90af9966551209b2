"""Columns as features: numbers, perhaps standardised; words, one-hot or hashed; sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.typing import NDArray

from ordspan.core import scaling
from ordspan.core.sentences import hash_sentences, term_places, token_ends
from ordspan.learners.rows import as_matrix
from ordspan.tables.files import HEADER_ROW, check_columns
from ordspan.tables.rows import Faults
from ordspan.wording import brief, check_choice, columns_hint, plural, warn

if TYPE_CHECKING:
    import polars as pl

DEFAULT_HASH_BITS = 12
MAX_HASH_BITS = 24
MAX_DENSE = 256  # rows with text and more features than this are sparse
MAX_UNSEEN = 1000
SENTENCE_BITS = 16
MAX_TERMS = 2000  # words and pairs whose weights have names
TERM_BYTES = 1 << 21  # of the text in which they are counted
FAR = np.float64(20.0)  # standard deviations from the mean that are noted
LARGEST = np.float64(1e90)  # larger numbers are refused: the squared norm of a row would overflow


@dataclass(frozen=True)
class Recipe:
    """Which columns make the features, and how; stored in model files.

    The order of the features is: numbers, indicators of missing numbers, text values, hashed text,
    words of sentences.

    Parameters
    ----------
    numbers : tuple of str
        Numeric columns, in the order of the weights. A missing number becomes the column's mean.
    missing_indicators : tuple of str
        Those of them with missing numbers in training: each has an extra feature, 1 where the
        number is missing.
    words : tuple of (str, tuple of str)
        Text columns with few distinct values, and these values: each value is a feature. The empty
        string is a missing value.
    hashed : tuple of str
        Other text columns, hashed together into ``2 ** hash_bits`` features.
    hash_bits : int
        Size of the hash table.
    sentences : tuple of (str, tuple of str)
        Text columns of several words a cell, and the most frequent words and pairs of words of
        each, which name their weights. All words and pairs are hashed together into features of
        their own, at least ``2 ** 16``.
    n_sparse : int
        Number of features of svmlight rows, which have no named columns; otherwise 0.
    zero_based : bool
        Whether the indices of svmlight rows start at 0.
    standardise : bool
        Whether numbers are centred and scaled; sparse ones are only scaled.
    missing : {"mean", "error"}
        Whether a missing number is filled in, or makes a row bad.
    """

    numbers: tuple[str, ...] = ()
    missing_indicators: tuple[str, ...] = ()
    words: tuple[tuple[str, tuple[str, ...]], ...] = ()
    hashed: tuple[str, ...] = ()
    hash_bits: int = DEFAULT_HASH_BITS
    sentences: tuple[tuple[str, tuple[str, ...]], ...] = ()
    n_sparse: int = 0
    zero_based: bool = False
    standardise: bool = True
    missing: str = "mean"

    def __post_init__(self) -> None:
        if not 1 <= self.hash_bits <= MAX_HASH_BITS:
            raise ValueError(f"hash_bits must be in 1..{MAX_HASH_BITS}, got {self.hash_bits}")
        check_choice("missing", self.missing, ("mean", "error"))
        for names, known in ((self.columns, self.columns), (self.missing_indicators, self.numbers)):
            if len(set(names)) < len(names) or not set(names) <= set(known):
                raise ValueError(f"a recipe must name each column once, got {', '.join(names)}")
        if self.n_sparse < 0 or (self.n_sparse and self.columns):
            raise ValueError(f"a recipe cannot have {self.n_sparse} sparse features and columns")

    @property
    def texts(self) -> tuple[str, ...]:
        """All text columns: one-hot, hashed, sentences."""
        return (*dict(self.words), *self.hashed, *dict(self.sentences))

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns used as features."""
        return (*self.numbers, *self.texts)

    @property
    def n_scaled(self) -> int:
        """Number of features that can be standardised."""
        return self.n_sparse or len(self.numbers)

    @property
    def n_features(self) -> int:
        """Length of a row of features."""
        n_words = sum(len(words) for _, words in self.words)
        n_hashed = 2**self.hash_bits if self.hashed else 0
        n_hashed += 2**self.sentence_bits if self.sentences else 0
        return self.n_scaled + len(self.missing_indicators) + n_words + n_hashed

    @property
    def sentence_bits(self) -> int:
        """Words of sentences are hashed into two to the power of this many features."""
        return max(SENTENCE_BITS, self.hash_bits)

    @property
    def dense(self) -> bool:
        """Whether prepared rows are dense; otherwise they are sparse."""
        few = self.n_features == len(self.numbers) or self.n_features <= MAX_DENSE
        return few and not (self.n_sparse or self.hashed or self.sentences)

    def name_of(self, place: int) -> str:
        """Name of a feature that can be standardised."""
        return f"feature {place + 1 - self.zero_based}" if self.n_sparse else self.numbers[place]

    def feature_names(self) -> list[str]:
        """Names of the features in messages and tables.

        >>> Recipe(("age",), ("age",), (("job", ("", "cook")),)).feature_names()
        ['age', 'age is missing', 'job is missing', 'job = cook']
        """
        names = [self.name_of(place) for place in range(self.n_scaled)]
        names += [f"{name} is missing" for name in self.missing_indicators]
        for name, words in self.words:
            names += [f"{name} = {word}" if word else f"{name} is missing" for word in words]
        if self.hashed:
            hashed = ", ".join(self.hashed)
            names += [f"hash {i} of {hashed}" for i in range(2**self.hash_bits)]
        if self.sentences:
            at, columns = len(names), ", ".join(dict(self.sentences))
            names += [f"word {i} of {columns}" for i in range(2**self.sentence_bits)]
            for name, terms in self.sentences:
                for place, term in named_places(name, terms, self.sentence_bits).items():
                    names[at + place] = f"{name}: {term}"
        return names


class Encoder:
    """Columns of a table as features: numbers scaled, gaps marked, words one-hot or hashed.

    Parameters
    ----------
    recipe : Recipe
        Which columns make the features, and how.
    state : array, optional
        Mean and spread of every number; by default nothing is known yet.
    """

    def __init__(self, recipe: Recipe, state: NDArray[Any] | None = None) -> None:
        self.recipe = recipe
        if state is None:
            state = np.zeros((scaling.N_STATE_ROWS, recipe.n_scaled))
        elif fault := scaling.why_unusable(state, recipe.n_scaled):
            raise ValueError(f"the scale of {recipe.n_scaled} numbers {fault}")
        self.state: NDArray[np.float64] = state
        self.unlike: Counter[str] = Counter()  # values unlike those of training, and their rows

    def notes(self) -> list[str]:
        """A note on the most frequent values unlike those of training, if there are any."""
        values = [f"{one} ({plural(n, 'row')})" for one, n in self.unlike.most_common(5)]
        return [f"values unlike those of training: {', '.join(values)}"] if values else []

    def rows(self, table: Any, na: Sequence[str] = ()) -> tuple[NDArray[Any], pl.DataFrame | None]:
        """Numbers of a table, missing ones NaN, and its text columns.

        Parameters
        ----------
        table : pandas, polars or pyarrow table, list of dicts, or CSR matrix
            Rows with the columns of the recipe, in any order.
        na : sequence of str
            Cells that mean no answer.

        Returns
        -------
        tuple
            The arguments of `features`.

        Raises
        ------
        ValueError
            A row cannot be used.
        """
        recipe, faults = self.recipe, Faults()
        if recipe.n_sparse:
            X, table = scipy.sparse.csr_array(as_matrix(table)), None
            if X.shape[1] != recipe.n_sparse:
                raise ValueError(
                    f"the matrix has {X.shape[1]} columns, but the model expects {recipe.n_sparse}"
                )
        else:
            from ordspan.tables.numbers import without_codes

            table = without_codes(as_frame(table, recipe.columns), na)
            X = matrix_of(table, recipe.numbers, ".", faults)
        if not X.shape[0]:
            raise ValueError("the table has no rows (0 samples)")
        if faults := self.value_faults(X) | faults:
            row = min(faults)
            raise ValueError(f"the table, row {row}: {faults[row]}")
        return X, table

    def table_features(self, table: Any, na: Sequence[str] = ()) -> Any:
        """Features of a table; warns of values unlike those of training."""
        own = Encoder(self.recipe, self.state)  # its counts are those of this table
        features = own.features(*own.rows(table, na))
        if notes := own.notes():
            warn("; ".join(notes))
        return features

    def value_faults(self, X: Any) -> Faults:
        """Faults of rows with numbers that are too large, or missing where that is not allowed."""
        recipe, faults = self.recipe, Faults()
        values = X.data if recipe.n_sparse else X
        allowed = recipe.missing == "mean" and not recipe.n_sparse
        if scaling.all_within(np.atleast_2d(values), LARGEST, allowed):  # NumPy makes three copies
            return faults
        cells = scipy.sparse.coo_array(X)
        bad = ~(np.abs(cells.data) <= LARGEST) & ~(np.isnan(cells.data) & allowed)
        triples = (part[bad].tolist() for part in (*cells.coords, cells.data))
        for row, column, value in zip(*triples, strict=True):
            what = f"holds {value}, which is too large; check it"
            what = "is empty or NaN; fill it" if np.isnan(value) else what
            faults.setdefault(row, f"column {recipe.name_of(column)!r} {what}")
        return faults

    def features(self, X: Any, table: Any, *, learn: bool = False) -> Any:
        """Features of rows.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Their numbers, missing ones NaN. Learned dense rows are scaled in place.
        table : polars.DataFrame
            Their text columns.
        learn : bool
            Learn the mean and the spread online: each row is scaled by the rows up to it, so the
            result does not depend on the batches. Sparse rows are divided by the root mean square
            of the values present, and not centred, because that would fill their zeros.

        Returns
        -------
        array or CSR matrix of shape (n, n_features)
            Numbers, indicators of missing numbers, words, hashed words, words of sentences.
        """
        recipe = self.recipe
        if recipe.n_sparse:
            if not recipe.standardise:
                return X
            values = X.data.astype(np.float64)
            scaling.scale_sparse(self.state, values, X.indices, learn)
            return type(X)((values, X.indices, X.indptr), shape=X.shape)
        n_rows, n_numbers = X.shape
        missing = np.isnan(X)
        marked = [recipe.numbers.index(name) for name in recipe.missing_indicators]
        at = n_numbers + len(marked)
        rows = np.empty((n_rows, recipe.n_features if recipe.dense else at))
        rows[:, n_numbers:at] = missing[:, marked]
        rows[:, at:] = 0.0
        if not learn and missing.any():
            for name, count in zip(recipe.numbers, missing.sum(axis=0).tolist(), strict=True):
                if count and name not in recipe.missing_indicators:
                    self.unlike[f"{name} is missing, and filled"] += count
        if not recipe.standardise:
            rows[:, :n_numbers] = np.where(missing, self.state[scaling.MEAN], X)
        elif learn and n_numbers:
            scaling.learn_dense(self.state, X)
            rows[:, :n_numbers] = X
        else:
            scaling.scale_dense(self.state, X, rows[:, :n_numbers])
            if not scaling.all_within(rows, FAR, True):
                counts = (np.abs(rows[:, :n_numbers]) > FAR).sum(axis=0).tolist()
                how = f"is more than {FAR:g} standard deviations from the mean"
                found = zip(recipe.numbers, counts, strict=True)
                self.unlike.update({f"{name} {how}": n for name, n in found if n})
        places, values = [], []  # one feature of each row per column of words
        for (_, words), codes in zip(recipe.words, self._word_codes(table), strict=True):
            places.append(at + codes)
            values.append(codes >= 0)  # an unknown word adds 0 to any feature
            at += len(words)
        for name in recipe.hashed:
            hashes = hash_words(table[name])
            places.append(at + (hashes & (2**recipe.hash_bits - 1)).astype(np.int64))
            values.append(np.where(hashes >> 63, 1.0, -1.0))
        if recipe.dense:
            for place, value in zip(places, values, strict=True):
                rows[np.arange(n_rows), place] += value
            return rows
        columns = np.column_stack([np.tile(np.arange(rows.shape[1]), (n_rows, 1)), *places])
        data = np.column_stack([rows, *values])
        cells = data.ravel(), columns.ravel(), np.arange(n_rows + 1) * data.shape[1]
        X = scipy.sparse.csr_array(cells, shape=(n_rows, recipe.n_features))
        X.eliminate_zeros()
        X.sum_duplicates()  # several hashed words in one bucket
        for name in dict(recipe.sentences):
            X = X + sentence_rows(table[name], recipe.sentence_bits, recipe.n_features)
        return X

    def _word_codes(self, table: pl.DataFrame) -> list[NDArray[np.int64]]:
        """Of each column, the index of every row's word among the known ones; -1 for another."""
        if not self.recipe.words:
            return []
        import polars as pl

        codes = table.select(
            words_of(pl.col(name)).cast(pl.Enum(words), strict=False).to_physical()
            for name, words in self.recipe.words
        )
        for column in filter(pl.Series.null_count, codes):
            name, new = column.name, words_of(table[column.name]).filter(column.is_null())
            for word, n in Counter(new).items():
                self.unlike[f"{name} = {word if len(self.unlike) < MAX_UNSEEN else '...'!r}"] += n
        whole = codes.select(pl.all().cast(pl.Int64()).fill_null(-1))
        return [column.to_numpy() for column in whole]


def matrix_of(
    table: pl.DataFrame, numbers: Sequence[str], decimal: str, faults: Faults
) -> NDArray[np.floating]:
    """Columns as a matrix of numbers, missing ones NaN; text among them is a fault of its row."""
    from ordspan.tables.numbers import PLAIN, as_numbers

    if not numbers:
        return np.empty((table.height, 0))
    for column in [c for c in table[list(numbers)] if c.dtype not in PLAIN]:
        values, stray = as_numbers(column, decimal)
        table = table.with_columns(values)
        for row in stray.arg_true():
            what = f"column {column.name!r} holds {brief(column[row])}, not a number"
            no_answer = columns_hint("na", f"{column.name}:{column[row]}")
            remedy = f"correct it, give {no_answer} if it means no answer, or train with "
            remedy += columns_hint("text", column.name)
            if str(column[row]).strip() == column.name:
                remedy = f"if that row names the columns again, leave it out, or give {HEADER_ROW}"
            faults.setdefault(row, f"{what}; {remedy}")
    return np.array(table[list(numbers)].to_numpy(order="fortran"), order="C")


def as_frame(table: Any, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """Some columns, by default all, of a pandas, polars or pyarrow table, or of records."""
    import polars as pl

    if isinstance(table, list) and all(isinstance(row, Mapping) for row in table):
        # pandas writes NaN for missing words too
        rows = [{name: None if v != v else v for name, v in row.items()} for row in table]
        table = pl.DataFrame(rows, infer_schema_length=None, strict=False)
    if not hasattr(table, "columns") or not hasattr(table, "shape"):
        needed = f" with the columns {', '.join(columns[:8])}" if columns else ""
        raise TypeError(
            f"a {type(table).__name__} has no named columns; give a pandas, polars or pyarrow "
            f"table, or a list of dicts,{needed}".rstrip(",")
        )
    there = list(getattr(table, "column_names", table.columns))
    names = there if columns is None else list(columns)
    check_columns("the table", there, names, ", which the model needs")
    try:
        return pl.DataFrame(table[names] if hasattr(table, "iloc") else table.select(names))
    except (TypeError, ValueError) as error:  # a column of several types
        raise ValueError(f"a column of the table holds values of several types: {error}") from None


def words_of(column: Any) -> Any:
    """The cells of a column, or an expression of it, as stripped text; a missing one is empty."""
    return column.cast(str).fill_null("").str.strip_chars()


def hash_words(column: pl.Series) -> NDArray[np.uint64]:
    """A hash of every row's word and its column; each distinct word is hashed once."""
    import polars as pl

    cells = words_of(column)
    words = cells.unique(maintain_order=True)
    codes = cells.cast(pl.Enum(words)).to_physical().to_numpy()
    return _hashes(f"{column.name}={word}" for word in words)[codes]


def sentence_rows(column: pl.Series, bits: int, n_features: int) -> Any:
    """Words and pairs of words of every cell, hashed into the last ``2 ** bits`` features."""
    with np.errstate(over="ignore"):  # as plain Python, hashes would warn
        values, places, starts = hash_sentences(*_text_of(column), _hashes([column.name])[0], bits)
    cells = (values, places + n_features - 2**bits, starts)
    return scipy.sparse.csr_array(cells, shape=(len(column), n_features))


def frequent_terms(column: pl.Series) -> tuple[str, ...]:
    """The most frequent words and pairs of words, of which each is in more than one place.

    >>> import polars as pl
    >>> frequent_terms(pl.Series(["Not good.", "not good, not bad"]))
    ('not', 'good', 'not good')
    """
    every = 1 + int(column.str.len_bytes().sum()) // TERM_BYTES
    text, ends = _text_of(column[::every])
    data, counts = text.tobytes(), Counter[str]()
    tokens = [
        (data[start:end].decode(), cell) for start, end, cell in token_ends(text, ends).tolist()
    ]
    counts.update(word for word, _ in tokens)
    counts.update(f"{a} {b}" for (a, cell), (b, other) in pairwise(tokens) if cell == other)
    return tuple(term for term, count in counts.most_common(MAX_TERMS) if count > 1)


def named_places(name: str, terms: tuple[str, ...], bits: int) -> dict[int, str]:
    """Places of terms of a column in its features; of several in one place, the most frequent."""
    import polars as pl

    text = _text_of(pl.Series(name, terms, pl.String()))
    with np.errstate(over="ignore"):
        places = term_places(*text, _hashes([name])[0], bits)
    return dict(zip(places[::-1].tolist(), terms[::-1], strict=True))


def _text_of(column: pl.Series) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """All cells in lower case as UTF-8, and where each ends."""
    cells = column.cast(str).fill_null("").str.to_lowercase()
    text = np.frombuffer(cells.str.join("").item().encode(), dtype=np.uint8)
    return text, cells.str.len_bytes().cast(int).cum_sum().to_numpy()


def _hashes(texts: Iterable[str]) -> NDArray[np.uint64]:
    digests = (blake2b(text.encode(errors="replace"), digest_size=8).digest() for text in texts)
    return np.frombuffer(b"".join(digests), dtype="<u8")
