"""Running scores of probabilities and ranges.

Sums are accumulated row by row, so they do not depend on the batches.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from ordspan.core.measures import ReliabilityBins, cumulative_outcomes, ranked_scores
from ordspan.core.state import Floats, Ranks
from ordspan.learners import Calibration
from ordspan.models.table import Scored

N_BINS = 10
"""Bins of predicted probabilities in a reliability diagram."""
MAX_CELLS = 1 << 18
"""Rows times grades per chunk."""
GAP, MAX_STEPS = 1e-6, 10_000
"""Tolerance in log score, and step limit, for the best constant probabilities."""


class ProbabilityTally:
    """Scores of probabilities, and the coverage of ranges at every calibrated level.

    If a label is a range, the true grade is unknown. "Expected" values then weight each grade of
    the label by its probability under the model, given the label. The bounds hold whatever the
    true grades are, as long as the labels contain them.

    Parameters
    ----------
    calibration : Calibration
        Gives the probabilities and the ranges.

    Examples
    --------
    >>> tally = ProbabilityTally(Calibration(2))  # untrained: one half for each grade
    >>> tally.add_rows(np.zeros(2), np.array([1, 1]), np.array([1, 2]))
    >>> found = tally.summary()
    >>> found["rps"], round(found["log_score"], 4)
    (0.25, 0.3466)
    """

    def __init__(self, calibration: Calibration) -> None:
        n_classes, n_levels = calibration.n_classes, calibration.coverages.size
        self.calibration = calibration
        self.rows = 0
        self.labels: Counter[int] = Counter()  # by (lower - 1) * K + upper - 1
        self.scores = np.zeros(2)  # sums of ranked probability score and log score
        self.expected = np.zeros(n_levels)
        self.contains, self.meets = np.zeros((2, n_levels), dtype=np.int64)
        self.widths = np.zeros((n_levels, n_classes), dtype=np.int64)
        self.bins = ReliabilityBins(N_BINS)

    def add(self, answer: Scored) -> None:
        """Add rows."""
        lower, upper = answer.batch.lower, answer.batch.upper
        assert lower is not None
        assert upper is not None
        self.add_rows(answer.score, lower, upper)

    def add_rows(self, score: Floats, lower: Ranks, upper: Ranks) -> None:
        """Add rows by their scores and labels."""
        n_classes = self.calibration.n_classes
        codes, counts = np.unique((lower - 1) * n_classes + upper - 1, return_counts=True)
        self.labels.update(dict(zip(codes.tolist(), counts.tolist(), strict=True)))
        self.rows += lower.size
        step = max(1, MAX_CELLS // n_classes)
        for start in range(0, lower.size, step):
            part = slice(start, start + step)
            self._add_probabilities(score[part], lower[part], upper[part])
            self._add_ranges(score[part], lower[part], upper[part])

    def _add_probabilities(self, score: Floats, lower: Ranks, upper: Ranks) -> None:
        known = cumulative_outcomes(self.calibration.probabilities(score), lower, upper)
        ranked = ranked_scores(known.predicted, known.observed)
        surprise = -self.calibration.log_probabilities(score, lower, upper)
        self.scores = _sum(self.scores, np.column_stack([ranked, surprise]))
        self.bins.add(known)

    def _add_ranges(self, score: Floats, lower: Ranks, upper: Ranks) -> None:
        of_label = self.calibration.log_probabilities(score, lower, upper)
        expected = np.zeros((lower.size, self.expected.size))
        for level, coverage in enumerate(self.calibration.coverages.tolist()):
            first, last = self.calibration.ranges(score, coverage)
            low, high = np.maximum(first, lower), np.minimum(last, upper)
            meets, contains = low <= high, (low == lower) & (high == upper)
            part = np.flatnonzero(meets & ~contains)
            inside = self.calibration.log_probabilities(score[part], low[part], high[part])
            expected[part, level] = np.exp(np.minimum(0.0, inside - of_label[part]))
            expected[contains, level] = 1.0
            self.meets[level] += meets.sum()
            self.contains[level] += contains.sum()
            self.widths[level] += np.bincount(last - first, minlength=self.calibration.n_classes)
        self.expected = _sum(self.expected, expected)

    def summary(self) -> dict[str, Any]:
        """The results in plain values; every number is finite."""
        rps, log_score = (self.scores / self.rows).tolist()
        lower, upper = np.divmod(np.array(sorted(self.labels)), self.calibration.n_classes)
        counts = np.array([self.labels[code] for code in sorted(self.labels)])
        return {
            "rps": rps,
            "log_score": log_score,
            "best_constant": best_constant(lower, upper, counts, self.calibration.n_classes),
            "ranges": [self._ranges(level) for level in range(self.expected.size)],
            "reliability": self._reliability(),
        }

    def _ranges(self, level: int) -> dict[str, Any]:
        """Coverage of the ranges at one level, and counts by width: 1, 2, ..., K grades."""
        widths = self.widths[level]
        return {
            "coverage": float(self.calibration.coverages[level]),
            "contains": int(self.contains[level]) / self.rows,
            "expected": float(self.expected[level]) / self.rows,
            "meets": int(self.meets[level]) / self.rows,
            "mean_width": int(widths @ np.arange(1, widths.size + 1)) / self.rows,
            "widths": widths.tolist(),
        }

    def _reliability(self) -> list[dict[str, Any]]:
        """Means over the probabilities of "at most grade k" in each non-empty bin."""
        columns = {"count": self.bins.counts, **self.bins.means._asdict()}
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in rows]


def _sum(start: Floats, rows: Floats) -> Floats:
    """Continue a sum row by row."""
    return np.cumsum(np.vstack([start, rows]), axis=0)[-1]


def best_constant(lower: Ranks, upper: Ranks, counts: Ranks, n_classes: int) -> dict[str, Any]:
    """The best constant probabilities, and their scores.

    For exact labels these are the shares of the grades. For ranges they are the maximum likelihood
    estimate, found by expectation maximisation; the log score is within GAP of the optimum.

    Parameters
    ----------
    lower, upper : arrays of shape (n,)
        Ends of the different labels, counted from 0.
    counts : array of shape (n,)
        How often each of them occurs.
    n_classes : int
        Number of grades.

    Examples
    --------
    >>> found = best_constant(np.array([0, 1]), np.array([0, 1]), np.array([1, 3]), 2)
    >>> found["probabilities"], found["rps"]
    ([0.25, 0.75], 0.1875)
    """
    share = counts / counts.sum()
    chance = np.full(n_classes, 1.0 / n_classes)
    for _ in range(MAX_STEPS):
        total = np.append(0.0, np.cumsum(chance))
        of_label = total[upper + 1] - total[lower]
        begin = np.bincount(lower, share / of_label, n_classes + 1)
        end = np.bincount(upper + 1, share / of_label, n_classes + 1)
        gain = np.maximum(0.0, np.cumsum(begin - end)[:-1])
        if gain.max() <= 1.0 + GAP:
            break
        chance = chance * gain
    predicted, observed = np.cumsum(chance)[:-1], np.cumsum(chance * gain)[:-1]
    return {
        "probabilities": chance.tolist(),
        "rps": float(ranked_scores(predicted, observed)),
        "log_score": float(0.0 - share @ np.log(of_label)),
    }
