"""Mixing learners that started from the same state into one."""

from collections.abc import Sequence

from ordspan.core.state import TRIALS, Floats, add_counters, model_view, places


def mix(start: Floats, ends: Sequence[Floats], shares: Sequence[float]) -> Floats:
    """Memory of a mixture of learners that went from ``start`` to each of ``ends``.

    Weights and thresholds are weighted sums over the learners. Each step of the sum rounds a
    monotone function, the same for every threshold, so sorted thresholds stay sorted to the bit.
    Counters and the sums that balancing gathers grow by what each learner added. The average of
    all iterates is the mean over the trials of all learners. A single learner is returned
    unchanged, to the bit.

    Parameters
    ----------
    start : array
        The state that every learner started from.
    ends : sequence of arrays
        Their memories afterwards, summed in this order.
    shares : sequence of float
        Their weights: not negative, with sum 1.

    Examples
    --------
    >>> import numpy as np
    >>> from ordspan.learners import LinearLearner
    >>> left, right = (LinearLearner(1, 2, "PA") for _ in range(2))
    >>> start = left.state.copy()
    >>> left.learn_many([[1.0]], [1]), right.learn_many([[4.0]], [1])
    (None, None)
    >>> left.weights, right.weights
    (array([-0.5]), array([-0.23529412]))
    >>> left.restore(mix(start, [left.state, right.state], [0.5, 0.5])).weights
    array([-0.36764706])
    """
    if len(ends) == 1:
        return ends[0].copy()
    mixed = start.copy()
    for end in ends:
        add_counters(mixed, start, end)
    parameters, corrections = places(start)
    mixed[parameters] = 0.0
    for end, share in zip(ends, shares, strict=True):
        mixed[parameters] += share * end[parameters]
    if corrections.size:
        before = sum_of_iterates(start)
        total = before + sum(sum_of_iterates(end) - before for end in ends)
        mixed[corrections] = model_view(mixed).counters[TRIALS] * mixed[parameters] - total
    return mixed


def sum_of_iterates(state: Floats) -> Floats:
    """Sum of the iterates of an averaging learner: the correction is trials * (last - average)."""
    parameters, corrections = places(state)
    return model_view(state).counters[TRIALS] * state[parameters] - state[corrections]
