"""Checks of the arguments of learners; errors name the place, the value and a remedy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ordspan.core import memory
from ordspan.learners.rows import FLOATS

VARIANTS = {"PA": memory.HARD, "PA-I": memory.CAPPED, "PA-II": memory.SOFT}
SOLVERS = {"exact": 0, "sca": memory.SCA_HARD - memory.HARD}
DEFAULT_C = 0.1
MAX_C = 1e300
MAX_WEIGHT = 1e150
"""The largest sample weight: a step of this size along the longest row is still finite."""

Floats = NDArray[np.float64]


class RowValueError(ValueError):
    """A row that cannot be learned or predicted, because of its values."""


def as_row(x: ArrayLike) -> NDArray[Any]:
    """One example as a 1-d float array."""
    row = np.asarray(x)
    if row.ndim != 1:
        raise ValueError(f"one example is a 1-d row, got shape {row.shape}")
    return row if row.dtype in FLOATS else row.astype(np.float64)


def check_rule(variant: str, C: float, solver: str = "exact") -> int:
    """The number of a variant in compiled code.

    >>> check_rule("PA-II", 1.0)
    2
    """
    for name, value, known in (("variant", variant, VARIANTS), ("solver", solver, SOLVERS)):
        if not isinstance(value, str) or value not in known:
            raise ValueError(f"unknown {name} {value!r}; choose one of {', '.join(known)}")
    try:
        allowed = not isinstance(C, str) and 0 < float(C) <= MAX_C
    except (TypeError, OverflowError):
        allowed = False
    if not allowed:
        raise ValueError(f"C must be a finite number above 0, got {C!r}")
    return VARIANTS[variant] + SOLVERS[solver]


def check_weights(sample_weight: ArrayLike, n_rows: int) -> Floats:
    """Sample weights as floats, not negative and not above MAX_WEIGHT."""
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n_rows,):
        raise ValueError(f"sample_weight has shape {weight.shape}, expected ({n_rows},)")
    bad = np.flatnonzero(~((weight >= 0) & np.isfinite(weight)))
    if bad.size:
        raise ValueError(
            f"row {bad[0]}: sample_weight {weight[bad[0]]} is not a finite number >= 0"
        )
    if weight.size and weight.max() > MAX_WEIGHT:
        raise ValueError(
            f"row {weight.argmax()}: sample_weight {weight.max():g} is above {MAX_WEIGHT:g}, so "
            "steps would overflow; divide all weights by the largest"
        )
    return weight


def check_row_order(order: ArrayLike, n_rows: int) -> NDArray[np.intp]:
    """An order that names each row once; compiled code does not check indices."""
    turn = np.asarray(order)
    if turn.shape != (n_rows,) or turn.dtype.kind not in "iu":
        raise ValueError(
            f"order must name each of the {n_rows} rows once, got {turn.dtype} {turn.shape}"
        )
    turn = turn.astype(np.intp, copy=False)
    seen = np.zeros(n_rows, dtype=bool)
    inside = turn[(turn >= 0) & (turn < n_rows)]
    seen[inside] = True
    if inside.size < n_rows or not seen.all():
        raise ValueError(f"order must name each of the {n_rows} rows once")
    return turn
