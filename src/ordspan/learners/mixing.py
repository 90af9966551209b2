"""One memory out of many: what learners that started alike know together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ordspan.core import updates
from ordspan.learners.linear import Floats

COUNTERS = [updates.TRIALS, updates.UPDATES, updates.LOG_SUM, updates.LOG_COUNT]


def mix(start: Floats, ends: Sequence[Floats], shares: Sequence[float]) -> Floats:
    """Memory of the mixture of learners that went from one memory to each of ``ends``.

    Weights and thresholds are the sums of the learners' own times their shares. Each step of that
    sum rounds a monotone function, the same for every threshold, so sorted thresholds stay sorted
    to the bit. Counters, and what the metrics gather, grow by what each learner added. The average
    of all iterates stays what it says: the mean over every trial that any learner has made. A
    single learner needs no mixing and stays as it is, to the bit.

    Parameters
    ----------
    start : array
        The memory that every learner started from.
    ends : sequence of arrays
        Their memories afterwards; the order of the sums is the order given.
    shares : sequence of float
        How much each counts: not negative, with sum 1.

    Examples
    --------
    >>> import numpy as np
    >>> from ordspan.learners import LinearLearner
    >>> left, right = (LinearLearner(1, 2, "PA") for _ in range(2))
    >>> start = left.memory.copy()
    >>> left.learn_many([[1.0]], [1]), right.learn_many([[4.0]], [1])
    (None, None)
    >>> left.weights, right.weights
    (array([-0.5]), array([-0.23529412]))
    >>> left.restore(mix(start, [left.memory, right.memory], [0.5, 0.5])).weights
    array([-0.36764706])
    """
    if len(ends) == 1:
        return ends[0].copy()
    mixed = start.copy()
    for end in ends:
        mixed[COUNTERS] += end[COUNTERS] - start[COUNTERS]
    inner = _parameters(start)
    mixed[inner] = 0.0
    for end, share in zip(ends, shares, strict=True):
        mixed[inner] += share * end[inner]
    if start[updates.AVERAGING] > 0.0:
        _mix_drift(mixed, start, ends, inner)
    if start[updates.METRIC] == updates.DIAGONAL:
        _mix_spread(mixed, start, ends)
    return mixed


def _parameters(memory: Floats) -> NDArray[np.intp]:
    """Where the thresholds, without their sentinels, and the weights lie."""
    model = updates.view.py_func(memory)  # type: ignore[no-untyped-call]
    places = updates.HEADER + np.arange(model.padded.size + model.weights.size)
    return np.delete(places, [0, model.padded.size - 1])


def _mix_drift(
    mixed: Floats, start: Floats, ends: Sequence[Floats], inner: NDArray[np.intp]
) -> None:
    """Let the average be over the iterates of all: drift is trials times (last - average)."""
    model = updates.view.py_func(start)  # type: ignore[no-untyped-call]
    drift = inner + model.padded.size + model.weights.size

    def sum_of_iterates(memory: Floats) -> Floats:
        return memory[updates.TRIALS] * memory[inner] - memory[drift]

    before = sum_of_iterates(start)
    total = before.copy()
    for end in ends:
        total += sum_of_iterates(end) - before
    mixed[drift] = mixed[updates.TRIALS] * mixed[inner] - total


def _mix_spread(mixed: Floats, start: Floats, ends: Sequence[Floats]) -> None:
    """Let the diagonal metric narrow by all that was seen: its reciprocal is a sum over rows."""
    n_features = updates.view.py_func(start).weights.size  # type: ignore[no-untyped-call]
    spread = slice(start.size - n_features, None)
    narrowness = 1.0 / start[spread]
    for end in ends:
        narrowness += 1.0 / end[spread] - 1.0 / start[spread]
    mixed[spread] = 1.0 / narrowness
