"""NDCG per query over consecutive rows, in constant memory per query."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordspan.models.table import Scored
from ordspan.tables.encoder import word_codes
from ordspan.tables.rows import Batch, FileError

CUTS = (1, 5, 10)
N_NDCG_BINS = 20  # of the histogram of queries

_DISCOUNTS = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(2, max(CUTS) + 2)))])
"""Sum of the discounts of the first 0, 1, 2, ... places."""


def gains(n_classes: int) -> NDArray[np.float64]:
    """The gain 2^(rank-1) - 1 of each rank, divided by 2^(K-1) to avoid overflow.

    >>> gains(4) * 2**3
    array([0., 1., 3., 7.])
    """
    rank = np.arange(1, n_classes + 1)
    return np.ldexp(1.0, rank - n_classes) - np.ldexp(1.0, 1 - n_classes)


def dcg(gain: NDArray[np.float64], count: NDArray[np.int64]) -> NDArray[np.float64]:
    """DCG at each cut, for groups of tied rows from the top: ``count`` rows of mean ``gain``.

    Tied rows share their positions evenly.

    >>> dcg(np.array([3.0, 1.0]), np.array([1, 1]))[:1]
    array([3.])
    """
    ends = np.cumsum(count)
    cuts = np.array(CUTS)[:, None]
    reached = _DISCOUNTS[np.minimum(ends, cuts)] - _DISCOUNTS[np.minimum(ends - count, cuts)]
    return reached @ gain


class Query:
    """A query in progress: counts of its grades, and its best distinct scores.

    Ten scores are enough, since the largest cut is 10. scikit-learn's ``ndcg_score`` agrees, but
    needs all rows of a query at once.
    """

    def __init__(self, name: str, gain: NDArray[np.float64]) -> None:
        self.name = name
        self._gain = gain
        self._grades = np.zeros(gain.size, dtype=np.int64)
        self._scores: NDArray[np.float64] = np.empty(0)
        self._counts: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._gains: NDArray[np.float64] = np.empty(0)

    def add(self, score: NDArray[np.float64], rank: NDArray[np.int64]) -> None:
        """Add rows by their scores and true ranks."""
        self._grades += np.bincount(rank - 1, minlength=self._gain.size)
        scores = np.concatenate([self._scores, score])
        downwards, place = np.unique(-scores, return_inverse=True)
        counts = np.concatenate([self._counts, np.ones(score.size, dtype=np.int64)])
        sums = np.concatenate([self._gains, self._gain[rank - 1]])
        best = slice(max(CUTS))
        self._scores = -downwards[best]
        self._counts = np.bincount(place, counts, downwards.size).astype(np.int64)[best]
        self._gains = np.bincount(place, sums, downwards.size).astype(np.float64)[best]

    def ndcg(self) -> NDArray[np.float64] | None:
        """NDCG at each cut; None if no row is relevant."""
        ideal = dcg(self._gain[::-1], self._grades[::-1])
        if ideal[0] == 0.0:
            return None
        return dcg(self._gains / self._counts, self._counts) / ideal


class QueryTally:
    """Mean NDCG over queries with consecutive rows; rows labelled by a range are ignored."""

    def __init__(self, group: str, n_classes: int) -> None:
        self.group = group
        self.queries = 0
        self.irrelevant = 0
        self.histogram = np.zeros(N_NDCG_BINS, dtype=np.int64)  # of NDCG at the last cut
        self._sums = np.zeros(len(CUTS))
        self._gain = gains(n_classes)
        self._open: Query | None = None
        self._seen: set[str] = set()

    def add(self, scored: Scored) -> None:
        """Add rows; a query may continue from the rows before."""
        batch = scored.batch
        codes, names = query_names(batch, self.group)
        assert batch.lower is not None
        exact = batch.lower == batch.upper
        begins = np.concatenate([[0], np.flatnonzero(np.diff(codes)) + 1])
        for begin, end in zip(begins, [*begins[1:], codes.size], strict=True):
            query = self._query(names[codes[begin]], batch, begin)
            rows = np.arange(begin, end)[exact[begin:end]]
            query.add(scored.score[rows], batch.lower[rows])

    def _query(self, name: str, batch: Batch, row: int) -> Query:
        """The current query if it continues, otherwise a new one."""
        if self._open is not None and self._open.name == name:
            return self._open
        self._close()
        if name in self._seen:
            raise FileError(
                f"{batch.where(row)}: query {name!r} appears again after other queries; sort the "
                f"rows by {self.group}, so that the rows of a query are consecutive"
            )
        self._seen.add(name)
        self._open = Query(name, self._gain)
        return self._open

    def _close(self) -> None:
        if self._open is None:
            return
        ndcg = self._open.ndcg()
        self._open = None
        self.queries += 1
        if ndcg is None:
            self.irrelevant += 1
        else:
            self._sums += ndcg
            self.histogram[min(N_NDCG_BINS - 1, int(ndcg[-1] * N_NDCG_BINS))] += 1

    def summary(self) -> dict[str, Any]:
        """Mean NDCG at each cut over the queries with a relevant row, and their number.

        A row is relevant if its grade is not the lowest. NDCG is None without such a query.
        """
        self._close()
        counted = self.queries - self.irrelevant
        means = [float(total) / counted if counted else None for total in self._sums]
        return {
            **{f"ndcg@{cut}": mean for cut, mean in zip(CUTS, means, strict=True)},
            "queries": self.queries,
            "queries_without_relevant_rows": self.irrelevant,
        }


def query_names(batch: Batch, group: str) -> tuple[NDArray[np.int64], list[str]]:
    """A code for the query of every row, and the names of the codes."""
    return word_codes(batch.table[group])
