"""Text columns of several words a cell: which they are, their features, their frequent words."""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ordspan.core.sentences import hash_sentences, term_places, token_ends

if TYPE_CHECKING:
    import polars as pl

SENTENCE_BITS = 16
MAX_TERMS = 2000  # words and pairs whose weights have names
TERM_BYTES = 1 << 21  # of the text in which they are counted
WORD = r"[\p{Han}\p{Hiragana}\p{Katakana}]|[\p{L}'’]+"
SOME_CELLS = 10_000
ENOUGH_WORDS = 4  # a cell, on average; names and most addresses have fewer


def are_sentences(cells: pl.Series, few: int) -> bool:
    """Whether cells have several words each, and seldom the same ones.

    ``few`` distinct cells are categories, however long.

    >>> import polars as pl
    >>> are_sentences(pl.Series(["it broke after a week", "would buy it again any time"]), 256)
    True
    >>> are_sentences(pl.Series(["Ada Lovelace", "Alan M. Turing"]), 256)
    False
    """
    some = cells[:SOME_CELLS]
    several = int(some.str.count_matches(WORD).sum()) >= ENOUGH_WORDS * max(1, len(some))
    return several and cells.n_unique() > min(few, len(cells) / 2)


def sentence_rows(column: pl.Series, bits: int, n_features: int) -> Any:
    """Words and pairs of words of every cell, hashed into the last ``2 ** bits`` features."""
    from scipy.sparse import csr_array

    with np.errstate(over="ignore"):  # as plain Python, hashes would warn
        values, places, starts = hash_sentences(*_text_of(column), _seed(column.name), bits)
    places += n_features - 2**bits
    return csr_array((values, places, starts), shape=(len(column), n_features))


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

    with np.errstate(over="ignore"):
        places = term_places(*_text_of(pl.Series(name, terms, pl.String())), _seed(name), bits)
    return dict(zip(places[::-1].tolist(), terms[::-1], strict=True))


def _text_of(column: pl.Series) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """All cells in lower case as UTF-8, and where each ends."""
    import polars as pl

    cells = column.cast(pl.String()).fill_null("").str.to_lowercase()
    text = np.frombuffer(cells.str.join("").item().encode(), dtype=np.uint8)
    return text, cells.str.len_bytes().cast(pl.Int64()).cum_sum().to_numpy()


def _seed(name: str) -> np.uint64:
    digest = blake2b(name.encode(errors="replace"), digest_size=8).digest()
    return np.frombuffer(digest, dtype="<u8")[0]
