"""What predictions add up to: counts and sums from which every measure follows, rows forgotten."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordspan.core.losses import distance
from ordspan.tabular import Scored

RANGE = 0
"""Stands for the grade of a row in a sample where its label is a range."""

SAMPLED = [("key", "f8"), ("grade", "i8"), ("score", "f8"), ("margin", "f8"), ("error", "i8")]


class Tally:
    """Counts of true and predicted grades, and sums of errors.

    Parameters
    ----------
    n_classes : int
        Number of grades.
    sample_size : int
        Rows of every grade to keep for plots; 0 keeps none.
    """

    def __init__(self, n_classes: int, sample_size: int = 0) -> None:
        self.confusion = np.zeros((n_classes, n_classes), dtype=np.int64)  # true by predicted
        self.rows = 0
        self.loss = 0
        self.inside = 0
        self.sample = Sample(n_classes, sample_size)

    @property
    def exact(self) -> int:
        """Number of rows whose label is one grade."""
        return int(self.confusion.sum())

    def add(self, scored: Scored) -> None:
        """Take rows in."""
        lower, upper = scored.batch.lower, scored.batch.upper
        assert lower is not None
        assert upper is not None
        errors = distance(scored.rank, lower, upper)
        self.rows += lower.size
        self.loss += int(errors.sum())
        self.inside += int((errors == 0).sum())
        exact = lower == upper
        size = len(self.confusion)
        cells = (lower[exact] - 1) * size + scored.rank[exact] - 1
        self.confusion += np.bincount(cells, minlength=size**2).reshape(size, size)
        self.sample.add(np.where(exact, lower, RANGE), scored.score, scored.margin, errors)

    def measures(self) -> dict[str, float | None]:
        """Every measure; None for those of exact labels where there are none."""
        measures: dict[str, float | None] = {
            "mae": self.loss / self.rows,
            "macro_mae": None,
            "accuracy": None,
            "inside_interval": self.inside / self.rows,
            "quadratic_kappa": None,
        }
        if self.exact:
            of_grades = [row["mae"] for row in self.by_grade() if row["rows"]]
            measures["macro_mae"] = float(np.mean(of_grades))
            measures["accuracy"] = int(np.trace(self.confusion)) / self.exact
            measures["quadratic_kappa"] = kappa(self.confusion)
        return measures

    def by_grade(self) -> list[dict[str, Any]]:
        """For every true grade: rows, mean error, and shares too low, right and too high."""
        size = len(self.confusion)
        errors = _distances(size)
        found = []
        for rank, counts in enumerate(self.confusion):
            rows = int(counts.sum())
            parts = [counts[:rank].sum(), counts[rank], counts[rank + 1 :].sum()]
            shares = [int(part) / rows if rows else None for part in parts]
            mae = float(counts @ errors[rank]) / rows if rows else None
            told = dict(zip(("too_low", "right", "too_high"), shares, strict=True))
            found.append({"rows": rows, "mae": mae, **told})
        return found


def _distances(size: int) -> NDArray[np.int64]:
    """Ranks between each two grades."""
    return np.abs(np.subtract.outer(np.arange(size), np.arange(size)))


def kappa(confusion: NDArray[np.int64]) -> float:
    """Cohen's kappa with squared distances, as `ordspan.metrics.quadratic_weighted_kappa`.

    >>> kappa(np.array([[2, 0], [0, 3]])), kappa(np.array([[2, 2], [3, 3]]))
    (1.0, 0.0)
    """
    shares = confusion / confusion.sum()
    costs = _distances(len(confusion)) ** 2
    by_chance = float((costs * np.outer(shares.sum(axis=1), shares.sum(axis=0))).sum())
    return 1.0 if by_chance == 0.0 else 1.0 - float((costs * shares).sum()) / by_chance


class Sample:
    """Some rows of every grade, drawn evenly; the same ones however the rows come in batches.

    Every row draws a key, and the rows with the smallest keys of their grade stay.
    """

    def __init__(self, n_classes: int, size: int) -> None:
        self.size = size
        self.rows = np.empty(0, dtype=SAMPLED)
        self._random = np.random.default_rng(0)
        self._limits = np.ones(n_classes + 1)  # no larger key can stay

    def add(
        self,
        grade: NDArray[np.int64],
        score: NDArray[np.float64],
        margin: NDArray[np.float64],
        error: NDArray[np.int64],
    ) -> None:
        """Let rows take part in the draw."""
        if not self.size:
            return
        key = self._random.random(grade.size)
        hopeful = key < self._limits[grade]
        new = np.empty(int(hopeful.sum()), dtype=SAMPLED)
        columns = (key, grade, score, margin, error)
        for name, values in zip(new.dtype.names or (), columns, strict=True):
            new[name] = values[hopeful]
        pool = np.concatenate([self.rows, new])
        pool = pool[np.lexsort((pool["key"], pool["grade"]))]
        place = np.arange(pool.size) - np.searchsorted(pool["grade"], pool["grade"])
        self.rows = pool[place < self.size]
        last = pool[place == self.size - 1]
        self._limits[last["grade"]] = last["key"]

    def of(self, grade: int) -> NDArray[Any]:
        """The sampled rows of a grade."""
        return self.rows[self.rows["grade"] == grade]
