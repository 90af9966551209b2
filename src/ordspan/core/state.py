"""The layout of a learner's state, one array of floats; no other file computes places in it.

A header comes first, then the edges, the weights and, for a learner that averages, the correction
that turns the last edges and weights into their averages. One array makes a call from Python cheap,
and a copy of it is a complete snapshot. A `KernelLearner` has one without weights, and appends its
support vectors to it.

``edges`` holds the thresholds with a sentinel at each end: ``edges[i]`` is theta_i of the paper for
i = 1..K-1, ``edges[0]`` is minus infinity and ``edges[K]`` plus infinity. Ranks are 1..K.
"""

from collections.abc import Collection
from math import exp, inf, isclose
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordspan.core.compiling import compiled

HARD, CAPPED, SOFT, SCA_HARD, SCA_CAPPED, SCA_SOFT, PRANK = range(7)
"""Rules with thresholds: PA, PA-I and PA-II, the same by the printed search, and PRank."""
PERCEPTRON, CLASSES_HARD, CLASSES_CAPPED, CLASSES_SOFT = range(7, 11)
"""Rules with a weight vector per class: the perceptron, and multiclass PA, PA-I and PA-II."""

NEW_BAND = 1.0
"""Width of the band that an outermost rank keeps when one is added beyond it: the margin."""

RULE, C, N_CLASSES, AVERAGING, BALANCED = range(5)
VARIANT, SHAPE = slice(RULE, C + 1), slice(N_CLASSES, BALANCED + 1)

N_COUNTERS = 5
TRIALS, UPDATES, LOG_SUM, LOG_COUNT, SCALE = range(N_COUNTERS)
"""Counters: examples seen, updates, the sum and number of the logarithms that balancing gathers,
and the exponential of their mean."""

HEADER = BALANCED + 1 + N_COUNTERS
UNSORTED = (SCA_HARD, SCA_CAPPED, SCA_SOFT)  # rules that can leave the thresholds out of order
MAX_TRIALS = 2.0**53  # from here on, adding 1 to a float counter has no effect
MAX_LOG = 700.0  # upper bound on the logarithms of squared norms that balancing gathers

Floats = NDArray[np.float64]
Ranks = NDArray[np.int64]


class Model(NamedTuple):
    """Views into a learner's state, by name."""

    weights: Floats  # (d,); with one vector per class all K of them, one after the other, (K * d,)
    edges: Floats  # (K + 1,)
    edge_correction: Floats  # (K + 1,): trials * (last - average); empty without averaging
    weight_correction: Floats  # the same of the weights
    counters: Floats  # (N_COUNTERS,)
    rule: int
    C: float  # the step size of PRank and the perceptron
    balanced: bool


def new_state(
    rule: int, C: float, n_features: int, n_classes: int, average: bool, balanced: bool = False
) -> Floats:
    """The state of an untrained learner."""
    state = np.zeros(state_size(rule, n_features, n_classes, average))
    state[: BALANCED + 1] = rule, C, n_classes, average, balanced
    state[HEADER - N_COUNTERS + SCALE] = 1.0
    state[HEADER], state[HEADER + n_classes] = -inf, inf
    return state


def state_size(rule: int, n_features: int, n_classes: int, average: bool) -> int:
    """Length of the state of a learner."""
    n_vectors = n_classes if has_vectors.py_func(rule) else 1
    return HEADER + (n_classes + 1 + n_features * n_vectors) * (1 + average)


@compiled(inline="always")
def has_vectors(rule):
    """Whether a rule keeps one weight vector per class and no thresholds."""
    return PERCEPTRON <= rule <= CLASSES_SOFT


@compiled
def n_weights(state):
    """Number of weights, of all vectors together."""
    n_parts = 2 if state[AVERAGING] > 0.0 else 1
    return (state.size - HEADER) // n_parts - np.int64(state[N_CLASSES]) - 1


@compiled
def row_width(state):
    """Number of features."""
    n_vectors = np.int64(state[N_CLASSES]) if has_vectors(state[RULE]) else 1
    return n_weights(state) // n_vectors


@compiled(inline="always")
def age_of(model):
    """Trials of a learner that averages, else 0."""
    return model.counters[TRIALS] if model.edge_correction.size > 0 else 0.0


@compiled(forceinline=True)
def view(state):
    """The parts of a learner's state by name; writing to them writes to the state."""
    weights_at = HEADER + np.int64(state[N_CLASSES]) + 1
    correction_at = weights_at + n_weights(state)
    averages = state[AVERAGING] > 0.0
    middle = correction_at + weights_at - HEADER if averages else state.size
    return Model(
        state[weights_at:correction_at],
        state[HEADER:weights_at],
        state[correction_at:middle],
        state[middle:],
        state[HEADER - N_COUNTERS : HEADER],
        np.int64(state[RULE]),
        state[C],
        state[BALANCED] > 0.0,
    )


def model_view(state: Floats) -> Model:
    """`view` in plain Python, which needs no compiler."""
    model: Model = view.py_func(state)
    return model


def wrong_type(array: NDArray[Any]) -> str | None:
    """Why compiled code cannot read an array from a file, or None."""
    if array.dtype == np.float64:  # false if its bytes are in the other order
        return None
    return f"is of {array.dtype.str}, not of this machine's float64"


def why_unusable(
    state: Floats, like: Floats, rules: Collection[int], n_features: int, n_classes: int
) -> str | None:
    """Why a state cannot be that of a learner, or None.

    Compiled code reads and writes where a state points, so an untrusted one is checked before it
    is used. ``like`` is the state of any learner with the same settings, ``rules`` are those that
    the learner can follow.

    >>> state = new_state(HARD, 1.0, n_features=2, n_classes=3, average=False)
    >>> why_unusable(state, state, [HARD], n_features=5, n_classes=3)
    'has 16 numbers, but 5 features and 3 grades need 19'
    """
    if fault := wrong_type(state):
        return fault
    size = state_size(int(like[RULE]), n_features, n_classes, bool(like[AVERAGING]))
    if state.shape != (size,):
        needed = f"{n_features} features and {n_classes} grades need {size}"
        return f"has {state.size} numbers, but {needed}"
    if not (state[SHAPE] == [n_classes, like[AVERAGING], like[BALANCED]]).all():
        return "disagrees with the parameters of the model"
    if state[RULE] not in rules:
        return f"follows an unknown rule {state[RULE]:g}"
    if not 0.0 < state[C] < inf:
        return f"has C = {state[C]:g}"
    model = model_view(state)
    thresholds, counts = model.edges[1:-1], model.counters[[TRIALS, UPDATES, LOG_COUNT]]
    bounded = model.edges[0] == -inf and model.edges[-1] == inf
    unsorted = (thresholds[1:] < thresholds[:-1]).any() and model.rule not in UNSORTED
    if unsorted or not bounded or not np.isfinite(thresholds).all():
        return "has thresholds that are not finite or not sorted"
    if not ((counts >= 0.0) & (counts <= MAX_TRIALS) & (counts == np.floor(counts))).all():
        return "has counters that are not whole numbers"
    log_sum, log_count, scale = model.counters[[LOG_SUM, LOG_COUNT, SCALE]]
    mean_log = log_sum / max(1.0, log_count)
    if not (abs(mean_log) < MAX_LOG and isclose(scale, exp(mean_log), rel_tol=1e-6)):
        return "has a scale that is not the mean of its logarithms"
    if not np.isfinite(state[HEADER + n_classes + 1 :]).all():
        return "has weights that are not finite"
    return None


def add_counters(state: Floats, before: Floats, after: Floats) -> None:
    """Add what another learner has counted between two of its states."""
    counters = model_view(state).counters
    counters[:SCALE] += (model_view(after).counters - model_view(before).counters)[:SCALE]
    if counters[LOG_COUNT] > 0.0:
        counters[SCALE] = exp(counters[LOG_SUM] / counters[LOG_COUNT])


def places(state: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where a state holds its parameters, and the correction of each: none without averaging.

    The parameters are the thresholds without their sentinels, and the weights.
    """
    model = model_view(state)
    size = model.edges.size + model.weights.size
    parameters = HEADER + np.delete(np.arange(size), [0, model.edges.size - 1])
    return parameters, parameters + size if model.edge_correction.size else parameters[:0]


def with_features(state: Floats, n_features: int) -> Floats:
    """A copy with more features, as if they had been there from the start and always zero.

    Every vector of weights, and the correction, get zeros at their ends.
    """
    model, width = model_view(state), row_width.py_func(state)
    vector_ends = HEADER + model.edges.size + np.arange(width, model.weights.size + 1, width)
    ends = [*vector_ends, state.size] if model.edge_correction.size else vector_ends
    return np.insert(state, np.repeat(ends, n_features - width), 0.0)


def with_rank(state: Floats, rank: int) -> Floats:
    """A copy with one more rank, number ``rank``; the ranks from there on move up.

    Between two ranks it starts with an empty band of scores on the threshold between them, so no
    prediction changes. Beyond the outermost rank, that rank keeps a band of NEW_BAND. The new
    threshold takes the history of its neighbour, so that averages stay sorted.
    """
    n_classes = int(state[N_CLASSES])
    at = min(rank, n_classes)
    source = max(at - 1, 1)
    away = NEW_BAND * ((rank > n_classes) - (rank == 1))
    where, values = [HEADER + at], [state[HEADER + source] + away]
    if state[AVERAGING] > 0.0:
        correction_at = HEADER + n_classes + 1 + n_weights.py_func(state)
        where.append(correction_at + at)
        values.append(state[correction_at + source])
    grown = np.insert(state, where, values)
    grown[N_CLASSES] += 1
    return grown
