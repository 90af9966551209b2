"""Running counts and sums from which every measure is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordspan.core.measures import distance, quadratic_kappa
from ordspan.models.table import Scored

RANGE = 0
"""Code in a sample for rows labelled by a range."""

SAMPLED = [("key", "f8"), ("grade", "i8"), ("score", "f8"), ("margin", "f8"), ("error", "i8")]


class Constant(NamedTuple):
    """The best constant prediction for a measure, and its value."""

    rank: int | None  # None if all grades are equally good
    value: float


class LabelCounts:
    """How many labels start at, end at, and are exactly each grade.

    That is enough to find the best constant prediction for every measure. Ties go to the lowest
    grade.

    Parameters
    ----------
    n_classes : int
        Number of grades.

    Examples
    --------
    >>> labels = LabelCounts(4)
    >>> labels.add(np.array([1, 2, 3, 3]), np.array([1, 4, 3, 4]))
    >>> labels.best_mae()
    Constant(rank=3, value=0.5)
    """

    def __init__(self, n_classes: int) -> None:
        self.lower, self.upper, self.exact = np.zeros((3, n_classes), dtype=np.int64)

    @property
    def rows(self) -> int:
        """Number of labels."""
        return int(self.lower.sum())

    def add(self, lower: NDArray[np.int64], upper: NDArray[np.int64]) -> None:
        """Count the labels of some rows."""
        size = self.lower.size
        self.lower += np.bincount(lower - 1, minlength=size)
        self.upper += np.bincount(upper - 1, minlength=size)
        self.exact += np.bincount(lower[lower == upper] - 1, minlength=size)

    def merge(self, other: LabelCounts) -> None:
        """Add the counts of another instance."""
        self.lower += other.lower
        self.upper += other.upper
        self.exact += other.exact

    def to_dict(self) -> dict[str, list[int]]:
        """The counts as plain values."""
        return {name: counts.tolist() for name, counts in vars(self).items()}

    @classmethod
    def from_dict(cls, counts: dict[str, list[int]]) -> LabelCounts:
        """The inverse of `to_dict`."""
        labels = cls(len(counts["lower"]))
        for name in vars(labels):
            setattr(labels, name, np.array(counts[name], dtype=np.int64))
        return labels

    def best_mae(self) -> Constant:
        """The grade with the smallest MAE; there must be at least one label."""
        return _least(total_distances(self.lower, self.upper), self.rows)

    def best(self) -> dict[str, Constant | None]:
        """The best constant for every measure of `Tally`; None if undefined."""
        reached = np.cumsum(self.lower)
        passed = np.cumsum(self.upper) - self.upper
        found: dict[str, Constant | None] = {
            "mae": self.best_mae(),
            "macro_mae": None,
            "accuracy": None,
            "inside_interval": _most(reached - passed, self.rows),
            "quadratic_kappa": None,
        }
        if self.exact.any():
            present = (self.exact > 0).astype(np.int64)
            n_present = int(present.sum())
            mode = _most(self.exact, int(self.exact.sum()))
            found["macro_mae"] = _least(total_distances(present, present), n_present)
            found["accuracy"] = mode
            # kappa of a constant is 0 unless all labels are equal
            found["quadratic_kappa"] = mode if n_present == 1 else Constant(None, 0.0)
        return found


def total_distances(lower: NDArray[np.int64], upper: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sum of distances from each grade to all labels, given counts of lower and upper ends.

    >>> total_distances(np.array([1, 0, 2]), np.array([1, 0, 2]))  # labels 1, 3 and 3
    array([4, 3, 2])
    """
    begin_above = lower.sum() - np.cumsum(lower)
    end_below = np.cumsum(upper) - upper
    # one grade up: one closer to labels that start above, one farther from those below
    return np.cumsum(begin_above[::-1])[::-1] + np.cumsum(end_below)


def _least(totals: NDArray[np.int64], count: int) -> Constant:
    place = int(totals.argmin())
    return Constant(place + 1, int(totals[place]) / count)


def _most(totals: NDArray[np.int64], count: int) -> Constant:
    place = int(totals.argmax())
    return Constant(place + 1, int(totals[place]) / count)


def compared(mae: float, constant: float, grade: Any) -> str:
    """Compare the MAE of a model with that of a constant prediction.

    >>> compared(0.52, 1.2, 3)
    'MAE 0.5200, against 1.2000 by always predicting 3: 57 % less.'
    >>> compared(1.195, 1.2, 3)
    'The model is hardly better than always predicting 3: MAE 1.1950, against 1.2000.'
    >>> print(compared(1.21, 1.2, "low"))
    The model is no better than always predicting 'low': MAE 1.2100, against 1.2000. By this
    measure it gains nothing from the features.
    """
    always = f"always predicting {grade!r}"
    if constant == 0:
        return (
            f"These rows cannot show whether the model is any good: {always} is never wrong on "
            f"them. The model's MAE is {mae:.4f}."
        )
    if mae >= constant:
        return (
            f"The model is no better than {always}: MAE {mae:.4f}, against {constant:.4f}. By this "
            "measure it gains nothing from the features."
        )
    less = 100 * (1 - mae / constant)
    if less < 1:
        return f"The model is hardly better than {always}: MAE {mae:.4f}, against {constant:.4f}."
    return f"MAE {mae:.4f}, against {constant:.4f} by {always}: {less:.0f} % less."


def constant_text(constant: dict[str, Any] | None, shown: Callable[[float], str]) -> str:
    """The best constant by a measure, and the grade that it is.

    >>> constant_text({"grade": 3, "value": 1.25}, str)
    '1.25 (always 3)'
    """
    if constant is None:
        return "–"
    grade = constant["grade"]
    return f"{shown(constant['value'])} ({'any grade' if grade is None else f'always {grade}'})"


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
        self.labels = LabelCounts(n_classes)
        self.sample = Sample(n_classes, sample_size)

    @property
    def exact(self) -> int:
        """Number of rows with an exact label."""
        return int(self.confusion.sum())

    def add(self, scored: Scored) -> None:
        """Add rows."""
        lower, upper = scored.batch.lower, scored.batch.upper
        assert lower is not None
        assert upper is not None
        errors = distance(scored.rank, lower, upper)
        self.rows += lower.size
        self.loss += int(errors.sum())
        self.inside += int((errors == 0).sum())
        self.labels.add(lower, upper)
        exact = lower == upper
        size = len(self.confusion)
        cells = (lower[exact] - 1) * size + scored.rank[exact] - 1
        self.confusion += np.bincount(cells, minlength=size**2).reshape(size, size)
        self.sample.add(np.where(exact, lower, RANGE), scored.score, scored.margin, errors)

    def measures(self) -> dict[str, float | None]:
        """Every measure; those of exact labels are None without exact labels."""
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
            true, predicted = np.nonzero(self.confusion)
            counts = self.confusion[true, predicted]
            measures["quadratic_kappa"] = quadratic_kappa(true, predicted, counts)
        return measures

    def compared(self, classes: list[Any]) -> dict[str, Any]:
        """Every measure, with the best constant prediction for comparison."""
        measures = self.measures()
        best = {
            name: found
            and {
                "grade": None if found.rank is None else classes[found.rank - 1],
                "value": found.value,
            }
            for name, found in self.labels.best().items()
        }
        better = measures["mae"] < best["mae"]["value"]  # type: ignore[operator, index]
        return {**measures, "best_constant": best, "better_than_constant": better}

    def by_grade(self) -> list[dict[str, Any]]:
        """For every true grade: rows, mean error, and shares too low, right and too high."""
        ranks = np.arange(len(self.confusion))
        found = []
        for rank, counts in enumerate(self.confusion):
            rows = int(counts.sum())
            parts = [counts[:rank].sum(), counts[rank], counts[rank + 1 :].sum()]
            shares = [int(part) / rows if rows else None for part in parts]
            mae = float(counts @ np.abs(ranks - rank)) / rows if rows else None
            by_side = dict(zip(("too_low", "right", "too_high"), shares, strict=True))
            found.append({"rows": rows, "mae": mae, **by_side})
        return found


class Sample:
    """A uniform sample of rows of every grade, independent of how rows are batched.

    Every row gets a random key; the rows with the smallest keys of each grade are kept.
    """

    def __init__(self, n_classes: int, size: int) -> None:
        self.size = size
        self.rows = np.empty(0, dtype=SAMPLED)
        self._random = np.random.default_rng(0)
        self._limits = np.ones(n_classes + 1)  # larger keys are not kept

    def add(
        self,
        grade: NDArray[np.int64],
        score: NDArray[np.float64],
        margin: NDArray[np.float64],
        error: NDArray[np.int64],
    ) -> None:
        """Add rows to the draw."""
        if not self.size:
            return
        key = self._random.random(grade.size)
        candidate = key < self._limits[grade]
        new = np.empty(int(candidate.sum()), dtype=SAMPLED)
        columns = (key, grade, score, margin, error)
        for name, values in zip(new.dtype.names or (), columns, strict=True):
            new[name] = values[candidate]
        pool = np.concatenate([self.rows, new])
        pool = pool[np.lexsort((pool["key"], pool["grade"]))]
        place = np.arange(pool.size) - np.searchsorted(pool["grade"], pool["grade"])
        self.rows = pool[place < self.size]
        last = pool[place == self.size - 1]
        self._limits[last["grade"]] = last["key"]

    def of(self, grade: int) -> NDArray[Any]:
        """The sampled rows of a grade."""
        return self.rows[self.rows["grade"] == grade]
