"""The best fixed ranker in hindsight: the batch optimum, with a certificate of its quality."""

from typing import Any, Self

import numpy as np

from ordspan.core import svm
from ordspan.core.rows import MAX_SQ_NORM, Rows, sq_norms
from ordspan.core.state import Floats
from ordspan.learners.rows import RowValueError, refusal

LOSSES = {"hinge": False, "squared_hinge": True}
RUN = 64  # neighbouring rows visited together: the order is random, but memory access sequential
REST_AFTER_LEVEL = 2
"""Most quiet rows stay quiet when C is doubled: they still skip sweeps, but fewer than before."""
CHECK_GROWTH = 1.15
"""Computing the gap costs a fraction of a sweep, so it is done less and less often."""
EASY = 0.5  # mean of C (K - 1) |x|^2 up to which a cold start converges quickly
SWEEPS_A_LEVEL = 3  # sweeps between two doublings of C on the way to its value
MAX_REACH = 1e100
"""C times the squared norm of a row must stay below this, or the objective overflows."""


class Optimum:
    """A ranker with a bound on its distance from the best one, and the ascent that finds it.

    No ranker has a smaller objective than ``dual``; ``gap`` is (primal - dual) / primal, and not
    negative up to rounding.
    """

    weights: Floats
    thresholds: Floats  # sorted

    def __init__(
        self, rows: Rows, norms: Floats, squared: bool, n_classes: int, C: float, seed: int
    ) -> None:
        self.rows, self.norms, self.squared, self.C = rows, norms, squared, C
        self.rng = np.random.default_rng(seed)
        n_rows, self.n_thresholds = rows.lower.size, n_classes - 1
        self.point = np.zeros(self.n_thresholds + rows.width)
        self.multipliers = np.zeros((n_rows, self.n_thresholds))
        self.quiet = np.zeros(n_rows, dtype=np.int64)
        self.n_iter, self.gap = 0, np.inf
        self.primal, self.dual = np.inf, -np.inf  # value of the ranker, and the bound below it

    def approach(self, max_iter: int, start: Self | None) -> None:
        """Raise C to its value by doubling: most multipliers keep their ratio to C.

        Coordinate ascent is fast if C times the squared norm is small, and slow if it is large, so
        the multipliers for a large C start as those for half of it, doubled. The first C is small
        enough for a cold start, or that of ``start``.
        """
        if start is None:
            mean = float((self.rows.weight * self.norms).mean())
            n_levels = int(np.ceil(np.log2(max(mean * self.n_thresholds / EASY, 1.0))))
        else:
            growth = self.C / start.C
            n_levels = int(np.floor(np.log2(max(growth, 1.0))))
            self.multipliers = start.multipliers * (growth / 2.0**n_levels)
            self.point = start.point * (growth / 2.0**n_levels)
        for level in range(n_levels, 0, -1):
            easier = self.rows._replace(weight=self.rows.weight / 2.0**level)
            for _ in range(min(SWEEPS_A_LEVEL, max_iter - self.n_iter)):
                self._sweep(easier)
            self.multipliers *= 2.0
            self.point *= 2.0
            np.minimum(self.quiet, REST_AFTER_LEVEL, out=self.quiet)

    def climb(self, tol: float, max_iter: int) -> None:
        """Sweep until the gap is at most ``tol``, or ``max_iter`` sweeps are done.

        The value of any ranker is an upper bound. It evaluates the average of the points since the
        last check, a much better ranker than the last point, which the multipliers define.
        """
        next_check, recent = self.n_iter + 1, list[Floats]()
        while True:
            if self.n_iter >= min(next_check, max_iter):
                self._evaluate(np.mean(recent or [self.point], axis=0))
                if self.gap <= tol or self.n_iter >= max_iter:
                    break
                next_check = max(self.n_iter + 1, int(self.n_iter * CHECK_GROWTH))
                recent.clear()
            self._sweep(self.rows)
            recent.append(self.point.copy())
        if not np.isfinite(self.gap):
            raise ValueError(
                f"the solver overflows with C = {self.C:g} and rows of squared norm "
                f"{self.norms.max():g}; standardise the features, or lower C"
            )

    def _sweep(self, rows: Rows) -> None:
        """Visit the runs of rows in a random order, and the rows of a run in another."""
        runs = self.rng.permutation(np.arange(0, self.quiet.size, RUN))
        order = (runs[:, None] + self.rng.permutation(RUN)).ravel()
        order = order[order < self.quiet.size]
        state = (self.point, self.multipliers, self.quiet)
        svm.sweep(*state, rows, self.norms, self.squared, order, self.n_iter)
        self.n_iter += 1

    def _evaluate(self, point: Floats) -> None:
        """Update the dual value and the gap, and keep a ranker if it is the best so far.

        Its thresholds are sorted first, which keeps the norm and cannot raise the loss: swapping
        two thresholds out of order does not hurt any row, whether it requires both or one of them.
        """
        gain = self.multipliers.sum() - 0.5 * float(self.point @ self.point)
        if self.squared:
            squares = np.einsum("ti,ti->t", self.multipliers, self.multipliers)
            gain -= 0.25 * np.sum(squares / np.where(squares > 0.0, self.rows.weight, 1.0))
        self.dual = max(self.dual, float(gain))
        value = 0.5 * float(point @ point)
        thresholds, weights = np.split(point, [self.n_thresholds])
        thresholds.sort()
        value += svm.total_loss(thresholds, weights, self.rows, self.squared)
        if value < self.primal:
            self.primal, self.weights, self.thresholds = value, weights, thresholds
        self.gap = (self.primal - self.dual) / max(abs(self.primal), np.finfo(float).tiny)


def solve(
    rows: Rows,
    n_classes: int,
    C: float = 1.0,
    loss: str = "hinge",
    tol: float = 1e-3,
    max_iter: int = 1000,
    *,
    start: Optimum | None = None,
    seed: int = 0,
    feature_names: Any = None,
) -> Optimum:
    """Minimise 1/2 |w|^2 + 1/2 |theta|^2 + C sum of losses by dual coordinate ascent.

    Parameters
    ----------
    rows : Rows
        Checked rows with labels; their weights are factors of C.
    n_classes : int
        Number of ranks K.
    C : float
        Weight of the losses.
    loss : {"hinge", "squared_hinge"}
        Loss of each required threshold; the paper's bounds are about the hinge.
    tol : float
        Relative duality gap to stop at.
    max_iter : int
        Largest number of sweeps.
    start : Optimum, optional
        A solution for the same rows and another C to start from.
    seed : int
        Seed of the order of the rows.
    feature_names : sequence, optional
        Names to use in an error about a bad value.
    """
    weight = rows.weight if rows.weight.size else np.ones(rows.lower.size)
    norms, largest_C = np.empty(weight.size), float(C) * float(weight.max(initial=0.0))
    sq_norms(rows, norms)
    bad = np.flatnonzero(~(norms < MAX_SQ_NORM))
    if bad.size:
        raise RowValueError(refusal(rows, int(bad[0]), feature_names))
    reach = largest_C * max(1.0, float(norms.max(initial=0.0)))
    if not reach < MAX_REACH:
        raise ValueError(
            f"C = {largest_C:g}, with the largest sample weight, times the largest squared norm of "
            f"a row is {reach:g}; above {MAX_REACH:g} the objective overflows: lower C, or "
            "standardise the features"
        )
    rows = rows._replace(weight=float(C) * weight)
    optimum = Optimum(rows, norms, LOSSES[loss], n_classes, float(C), seed)
    optimum.approach(max_iter, start)
    optimum.climb(tol, max_iter)
    return optimum
