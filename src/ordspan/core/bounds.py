"""The mistake bounds of section 5 of the paper, as printed and as they can be proved.

A theorem is a function of a stream and a comparator (any fixed weights and thresholds) that returns
a `Bound`; `with_observed` adds what the online run lost. Every statement is about the exact update
started from zero.

Letters of the paper: ``K`` classes, ``c`` the narrowest interval's width, ``R2`` the largest
squared norm of a row, ``l`` the hinge losses of the run before each update, ``l*`` those of the
comparator v = (u, b). The paper's K - c - 1, the largest number of thresholds that one label
constrains, is ``StreamSummary.n_required`` here.
"""

from __future__ import annotations

from math import inf, nan, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ordspan.core.memory import Floats

ROUNDING = 1e-8
"""Relative excess up to which a bound counts as kept."""
NO_LOSS = 1e-9
"""A comparator whose losses are all this small counts as ideal."""


class StreamSummary(NamedTuple):
    """What the theorems need to know about the examples."""

    n_trials: int  # T
    n_classes: int  # K
    narrowest: int  # c
    largest_sq_norm: float  # R^2

    @property
    def n_required(self) -> int:
        """The largest number of thresholds that one label constrains, K - c - 1."""
        return self.n_classes - self.narrowest - 1


class Comparator(NamedTuple):
    """What the theorems need to know about a fixed ranker."""

    norm: float  # of weights and thresholds together
    loss: float  # sum of its hinge losses
    sq_loss: float  # sum of their squares
    worst: float  # the largest of them


class Bound(NamedTuple):
    """One statement about one stream.

    Parameters
    ----------
    name : str
        Which theorem or corollary.
    bound : float
        The most that the run can lose, according to the statement.
    observed : float
        Sum of the losses of the online run, each to the given power.
    holds : bool or None
        Whether the run kept the bound; None where the statement does not apply, or before
        `with_observed`.
    K : int
        Number of grades.
    c : int
        Width of the narrowest interval.
    R2 : float
        Largest squared norm of a row.
    D : float
        The statement's own constant.
    C : float or None
        The aggressiveness that the statement assumes; PA has none.
    comparator_norm : float
        Norm of the comparator, weights and thresholds together.
    comparator_loss : float
        Sum of the comparator's losses, each to the given power.
    power : int
        1 where hinge losses are summed, 2 where their squares are.

    Examples
    --------
    >>> from ordspan.bounds import mistake_bounds
    >>> bound = mistake_bounds([[1.0]], [1], classes=[1, 2], comparator=([-0.5], [0.5]))[0]
    >>> bound.name, bound.observed, round(bound.bound, 3), bound.holds
    ('PA general', 1.0, 2.0, True)
    """

    name: str
    bound: float
    observed: float
    holds: bool | None
    K: int
    c: int
    R2: float
    D: float
    C: float | None
    comparator_norm: float
    comparator_loss: float
    power: int

    @property
    def tightness(self) -> float:
        """Observed over bound: 1 is as tight as a bound can be, more than 1 breaks it."""
        if self.bound == 0.0:
            return 0.0 if self.observed == 0.0 else inf
        return self.observed / self.bound


# -- measuring -----------------------------------------------------------------------------------


def summarise_stream(
    sq_norms: ArrayLike, lower: ArrayLike, upper: ArrayLike, n_classes: int
) -> StreamSummary:
    """T, K, c and R^2 of a stream, from the squared norms of its rows and its labels.

    >>> summarise_stream([1.0, 4.0], lower=[1, 2], upper=[2, 2], n_classes=3)
    StreamSummary(n_trials=2, n_classes=3, narrowest=0, largest_sq_norm=4.0)
    """
    norms = np.asarray(sq_norms, dtype=float)
    if norms.size == 0:
        raise ValueError("a bound needs at least one example")
    narrowest = int((np.asarray(upper) - np.asarray(lower)).min())
    return StreamSummary(norms.size, n_classes, narrowest, float(norms.max()))


def measure(weights: ArrayLike, thresholds: ArrayLike, losses: Floats) -> Comparator:
    """Norm and losses of a fixed ranker, ``losses`` being its hinge losses on the stream."""
    sq_norm = float(np.square(weights).sum() + np.square(thresholds).sum())
    worst = float(losses.max(initial=0.0))
    return Comparator(sqrt(sq_norm), float(losses.sum()), float(np.square(losses).sum()), worst)


def with_observed(bound: Bound, losses: Floats) -> Bound:
    """The bound with the loss of the online run; ``losses`` are those before each update.

    A bound that does not apply keeps ``holds=None``.
    """
    observed = float((losses**bound.power).sum())
    if np.isnan(bound.bound):
        return bound._replace(observed=observed)
    return bound._replace(observed=observed, holds=observed <= bound.bound * (1.0 + ROUNDING))


# -- PA ------------------------------------------------------------------------------------------


def pa_general(stream: StreamSummary, comparator: Comparator) -> Bound:
    """Theorem: sum of l^2 <= D^2 (|v| + 4 (K-c-1) sqrt(sum of l*^2))^2."""
    factor = _linear_factor(stream)
    root = comparator.norm + 4.0 * stream.n_required * sqrt(comparator.sq_loss)
    return _bound("PA general", stream, comparator, factor, (factor * root) ** 2, power=2)


def pa_ideal(stream: StreamSummary, comparator: Comparator) -> Bound:
    """Corollary: sum of l^2 <= D |v*|^2 for a comparator without loss."""
    factor = _linear_factor(stream)
    value = _if_ideal(comparator, factor * comparator.norm**2)
    return _bound("PA ideal", stream, comparator, factor, value, power=2)


def pa_repaired(stream: StreamSummary, comparator: Comparator) -> Bound:
    """Sum of l^2 <= D (U + sqrt(U^2 + |v|^2))^2 with U^2 the sum of l*^2.

    Never above `pa_general`; without loss it is `pa_ideal`.
    """
    factor = _linear_factor(stream)
    root = sqrt(comparator.sq_loss) + sqrt(comparator.sq_loss + comparator.norm**2)
    return _bound("PA repaired", stream, comparator, factor, factor * root**2, power=2)


# -- PA-I ----------------------------------------------------------------------------------------


def pa_i_general(stream: StreamSummary, comparator: Comparator) -> Bound:
    """Theorem: sum of l <= sum of l* + sqrt(D T) |v|, for the run with C = |v| / sqrt(D T).

    Can fail where R^2 < (K-c-2) / (K-c-1)^2; see `pa_i_repaired`.
    """
    return _tuned("PA-I general", stream, comparator, _printed_capped_factor(stream))


def pa_i_ideal(stream: StreamSummary, comparator: Comparator) -> Bound:
    """Corollary: sum of l <= sqrt(D T) |v*|, for a comparator without loss; fails as the theorem.

    The run is the one with C = |v*| / sqrt(D T).
    """
    bound = _tuned("PA-I ideal", stream, comparator, _printed_capped_factor(stream))
    return bound._replace(bound=_if_ideal(comparator, bound.bound - comparator.loss))


def pa_i_at(stream: StreamSummary, comparator: Comparator, C: float) -> Bound:
    """Appendix: sum of l <= |v|^2 / (2C) + sum of l* + C T D / 2, before C is chosen.

    Can fail where R^2 < (K-c-2) / (K-c-1)^2; see `pa_i_repaired_at`.
    """
    return _at_given("PA-I any C", stream, comparator, _printed_capped_factor(stream), C)


def pa_i_repaired(stream: StreamSummary, comparator: Comparator) -> Bound:
    """`pa_i_general` with D = (K-c-1) (1 + R^2 (K-c-1)), in the bound and in C."""
    return _tuned("PA-I repaired", stream, comparator, _capped_factor(stream))


def pa_i_repaired_at(stream: StreamSummary, comparator: Comparator, C: float) -> Bound:
    """`pa_i_at` with D = (K-c-1) (1 + R^2 (K-c-1))."""
    return _at_given("PA-I repaired any C", stream, comparator, _capped_factor(stream), C)


# -- PA-II ---------------------------------------------------------------------------------------


def pa_ii_general(stream: StreamSummary, comparator: Comparator, C: float) -> Bound:
    """Theorem: sum of l^2 <= D (|v|^2 + 2C sum of l*^2), D = 1 + 1/(2C) + R^2 (K-c-1)."""
    factor = _linear_factor(stream) + 0.5 / C
    value = factor * (comparator.norm**2 + 2.0 * C * comparator.sq_loss)
    return _bound("PA-II general", stream, comparator, factor, value, power=2, C=C)


def pa_ii_ideal(stream: StreamSummary, comparator: Comparator, C: float) -> Bound:
    """Corollary: sum of l^2 <= D |v*|^2 for a comparator without loss."""
    factor = _linear_factor(stream) + 0.5 / C
    value = _if_ideal(comparator, factor * comparator.norm**2)
    return _bound("PA-II ideal", stream, comparator, factor, value, power=2, C=C)


# -- shared --------------------------------------------------------------------------------------


def _linear_factor(stream: StreamSummary) -> float:
    return 1.0 + stream.largest_sq_norm * stream.n_required


def _printed_capped_factor(stream: StreamSummary) -> float:
    return 1.0 + 2.0 * stream.largest_sq_norm * stream.n_required**2


def _capped_factor(stream: StreamSummary) -> float:
    return stream.n_required * _linear_factor(stream)


def _if_ideal(comparator: Comparator, value: float) -> float:
    return value if comparator.worst <= NO_LOSS else nan


def _tuned(name: str, stream: StreamSummary, comparator: Comparator, factor: float) -> Bound:
    spread = sqrt(factor * stream.n_trials)
    C = comparator.norm / spread if spread > 0.0 else 1.0  # nothing required: any C will do
    value = comparator.loss + spread * comparator.norm
    return _bound(name, stream, comparator, factor, value, power=1, C=C)


def _at_given(
    name: str, stream: StreamSummary, comparator: Comparator, factor: float, C: float
) -> Bound:
    value = comparator.norm**2 / (2.0 * C) + comparator.loss + 0.5 * C * stream.n_trials * factor
    return _bound(name, stream, comparator, factor, value, power=1, C=C)


def _bound(
    name: str,
    stream: StreamSummary,
    comparator: Comparator,
    factor: float,
    value: float,
    *,
    power: int,
    C: float | None = None,
) -> Bound:
    return Bound(
        name=name,
        bound=value,
        observed=nan,
        holds=None,
        K=stream.n_classes,
        c=stream.narrowest,
        R2=stream.largest_sq_norm,
        D=factor,
        C=C,
        comparator_norm=comparator.norm,
        comparator_loss=comparator.loss if power == 1 else comparator.sq_loss,
        power=power,
    )
