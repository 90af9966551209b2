"""Mistake bounds: how much online learners can lose on a stream, and how much they do lose.

The theorems are those of section 5 of the paper, as printed and as they can be proved. Each is a
function of a stream and a comparator (any fixed weights and thresholds) that returns a `Bound`;
`with_observed` adds what the online run lost. Every statement is about the exact update started
from zero.

Letters of the paper: ``K`` classes, ``c`` the narrowest interval's width, ``R2`` the largest
squared norm of a row, ``l`` the hinge losses of the run before each update, ``l*`` those of the
comparator v = (u, b). The paper's K - c - 1, the largest number of thresholds that one label
constrains, is ``StreamSummary.n_required`` here.
"""

from collections.abc import Callable, Iterator
from functools import cache, partial
from math import inf, nan, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls

from ordspan.core.measures import hinge_losses, shortfalls
from ordspan.core.rows import sq_norms
from ordspan.core.state import Floats, Ranks
from ordspan.labels.ranks import encode, find_classes, read_labels
from ordspan.learners import Learner, LinearLearner
from ordspan.learners.batch import solve
from ordspan.learners.linear import DEFAULT_C, check_rule
from ordspan.learners.rows import as_matrix, check_ranks, is_sparse, make_rows

__all__ = ["Bound", "mistake_bounds", "online_losses"]

Ranker = tuple[Floats, Floats]  # weights and thresholds, u and b of the paper

ROUNDING = 1e-8
"""Relative excess up to which a bound counts as kept."""
NO_LOSS = 1e-9
"""A comparator whose losses are all this small counts as ideal."""
HINGE, SQUARED, IDEAL = "hinge", "squared_hinge", "ideal"
"""What makes a comparator good for a statement: little loss, little squared loss, or no loss."""
PATH_LENGTH, PATH_FACTOR = 16, 4.0
"""The comparators are the batch optima for PATH_LENGTH values of C, PATH_FACTOR apart."""
PATH_TOL, PATH_SWEEPS = 1e-3, 300
"""A bound holds for any comparator; a better optimum only makes it tighter."""
LONGEST_IDEAL = 1e5
"""Ideal comparators with a larger norm are not searched for."""


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
    holds = None if np.isnan(bound.bound) else observed <= bound.bound * (1.0 + ROUNDING)
    return bound._replace(observed=observed, holds=holds)


# -- theorems ------------------------------------------------------------------------------------


def pa_general(stream: StreamSummary, v: Comparator) -> Bound:
    """Theorem: sum of l^2 <= D^2 (|v| + 4 (K-c-1) sqrt(sum of l*^2))^2."""
    D = _linear_factor(stream)
    root = v.norm + 4.0 * stream.n_required * sqrt(v.sq_loss)
    return _of_squares("PA general", stream, v, D, (D * root) ** 2)


def pa_ideal(stream: StreamSummary, v: Comparator, C: float | None = None) -> Bound:
    """Corollary: sum of l^2 <= D |v*|^2 for a comparator without loss; of PA-II with a given C."""
    D, name = _linear_factor(stream, C), "PA ideal" if C is None else "PA-II ideal"
    return _of_squares(name, stream, v, D, _if_ideal(v, D * v.norm**2), C)


def pa_repaired(stream: StreamSummary, v: Comparator) -> Bound:
    """Sum of l^2 <= D (U + sqrt(U^2 + |v|^2))^2 with U^2 the sum of l*^2.

    Never above `pa_general`; without loss it is `pa_ideal`.
    """
    D = _linear_factor(stream)
    root = sqrt(v.sq_loss) + sqrt(v.sq_loss + v.norm**2)
    return _of_squares("PA repaired", stream, v, D, D * root**2)


def pa_i_general(stream: StreamSummary, v: Comparator, C: float | None = None) -> Bound:
    """Theorem: sum of l <= sum of l* + sqrt(D T) |v|, for the run with C = |v| / sqrt(D T).

    D = 1 + 2 R^2 (K-c-1)^2.
    For a given C the inequality of the appendix, from which the theorem follows: sum of l <=
    |v|^2 / (2C) + sum of l* + C T D / 2. Both can fail where R^2 < (K-c-2) / (K-c-1)^2; see
    `pa_i_repaired`.
    """
    D = 1.0 + 2.0 * stream.largest_sq_norm * stream.n_required**2
    return _of_losses("PA-I general" if C is None else "PA-I any C", stream, v, D, C)


def pa_i_ideal(stream: StreamSummary, v: Comparator) -> Bound:
    """Corollary: sum of l <= sqrt(D T) |v*|, for a comparator without loss; fails as the theorem.

    The run is the one with C = |v*| / sqrt(D T).
    """
    general = pa_i_general(stream, v)
    return general._replace(name="PA-I ideal", bound=_if_ideal(v, general.bound - v.loss))


def pa_i_repaired(stream: StreamSummary, v: Comparator, C: float | None = None) -> Bound:
    """`pa_i_general` with D = (K-c-1) (1 + R^2 (K-c-1)), in the bound and in C."""
    name = "PA-I repaired" if C is None else "PA-I repaired any C"
    return _of_losses(name, stream, v, stream.n_required * _linear_factor(stream), C)


def pa_ii_general(stream: StreamSummary, v: Comparator, C: float) -> Bound:
    """Theorem: sum of l^2 <= D (|v|^2 + 2C sum of l*^2), D = 1 + 1/(2C) + R^2 (K-c-1)."""
    D = _linear_factor(stream, C)
    value = D * (v.norm**2 + 2.0 * C * v.sq_loss)
    return _of_squares("PA-II general", stream, v, D, value, C)


def _linear_factor(stream: StreamSummary, C: float | None = None) -> float:
    factor = 1.0 + stream.largest_sq_norm * stream.n_required
    return factor if C is None else factor + 0.5 / C


def _if_ideal(v: Comparator, value: float) -> float:
    return value if v.worst <= NO_LOSS else nan


def _of_losses(name: str, stream: StreamSummary, v: Comparator, D: float, C: float | None) -> Bound:
    """The inequality of the appendix for a given C, or for the best one."""
    spread = sqrt(D * stream.n_trials)
    value = v.loss + spread * v.norm
    if C is not None:
        value = v.norm**2 / (2.0 * C) + v.loss + 0.5 * C * stream.n_trials * D
    elif spread > 0.0:
        C = v.norm / spread
    else:  # nothing is required: any C will do
        C = 1.0
    return Bound(name, value, nan, None, *stream[1:], D, C, v.norm, v.loss, power=1)


def _of_squares(
    name: str, stream: StreamSummary, v: Comparator, D: float, value: float, C: float | None = None
) -> Bound:
    return Bound(name, value, nan, None, *stream[1:], D, C, v.norm, v.sq_loss, power=2)


# -- runs ----------------------------------------------------------------------------------------


def mistake_bounds(
    X: Any,
    y: Any,
    *,
    variant: str = "PA",
    C: float | None = None,
    comparator: tuple[ArrayLike, ArrayLike] | None = None,
    classes: Any = None,
) -> list[Bound]:
    """Every bound of section 5 for one variant on one stream, and whether the run kept it.

    The learner starts from zero, sees the rows once in the given order, and uses the exact update.

    Parameters
    ----------
    X : array or CSR matrix of shape (T, d)
        The rows in the order in which they are learned.
    y : array-like of shape (T,) or (T, 2)
        Exact labels, or ranges ``[lower, upper]``.
    variant : {"PA", "PA-I", "PA-II"}
        Which update.
    C : float, optional
        Aggressiveness. PA has none. For PA-I, None is the value that the theorem requires, which
        depends on the comparator; a number gives the inequality of the appendix for that C.
        For PA-II, None is the learner's default.
    comparator : pair of arrays (weights, thresholds), optional
        The fixed ranker to compare with. By default, each statement uses the batch optimum that
        makes it tightest, on a path of trade-offs between norm and loss.
    classes : array-like, optional
        All grades from lowest to highest.

    Returns
    -------
    list of Bound
        As printed and as repaired (see docs/bounds.md). A corollary of the ideal case has
        ``holds=None`` if the comparator has losses, or if none without losses was found.

    Examples
    --------
    >>> from ordspan.bounds import mistake_bounds
    >>> ideal = ([-0.5], [0.5])
    >>> for b in mistake_bounds([[1.0]], [1], classes=[1, 2], comparator=ideal):
    ...     print(b.name, b.observed, round(b.bound, 3), b.holds)
    PA general 1.0 2.0 True
    PA ideal 1.0 1.0 True
    PA repaired 1.0 1.0 True
    """
    statements = _statements(variant, C)
    problem = BoundProblem(*_read_stream(X, y, classes))
    given = None if comparator is None else [problem.measure(problem.check(comparator))]
    run, find_comparators = cache(problem.run), cache(problem.comparators)
    result = []
    for theorem, asks_for in statements:
        candidates = given or find_comparators(asks_for, C)
        bounds = [theorem(problem.stream, v) for v in candidates]
        tightest = min(bounds, key=lambda b: inf if np.isnan(b.bound) else b.bound)
        result.append(with_observed(tightest, run(variant, tightest.C)))
    return result


def online_losses(learner: Learner, X: Any, lower: ArrayLike, upper: ArrayLike) -> Floats:
    """Hinge losses (T, K-1) of each row just before the learner learns it.

    Parameters
    ----------
    learner : Learner
        A learner with thresholds; it learns the rows.
    X : array or CSR matrix of shape (T, d)
        The rows in the order in which they are learned.
    lower, upper : array-like of shape (T,)
        Ends of the labels, ranks 1..K.

    Returns
    -------
    ndarray of shape (T, K - 1)
        The losses; 0 for a threshold inside the label.

    Examples
    --------
    >>> from ordspan.bounds import online_losses
    >>> from ordspan.learners import LinearLearner
    >>> learner = LinearLearner(n_features=1, n_classes=3, variant="PA")
    >>> online_losses(learner, [[2.0], [2.0]], lower=[3, 3], upper=[3, 3])
    array([[1., 1.],
           [0., 0.]])
    """
    matrix = as_matrix(X)
    low, high = check_ranks(lower, upper, learner.n_classes)
    weights, edges = learner.model[:2]
    scores = np.empty(low.size)
    thresholds = np.empty((low.size, learner.n_classes - 1))
    for t in range(low.size):
        row = _row(matrix, t)
        scores[t], thresholds[t] = weights @ row, edges[1:-1]
        learner.learn_one(row, int(low[t]), int(high[t]))
    return hinge_losses(scores, thresholds, low, high)


Statement = tuple[Callable[[StreamSummary, Comparator], Bound], str]
"""A theorem, and what makes a comparator good for it."""


def _statements(variant: str, C: float | None) -> list[Statement]:
    """What section 5 says about a variant, as printed and as repaired."""
    check_rule(variant, DEFAULT_C if C is None else C)
    if variant == "PA":
        if C is not None:
            raise ValueError(f"PA has no C, got {C!r}; leave it out or choose PA-I or PA-II")
        return [(pa_general, SQUARED), (pa_ideal, IDEAL), (pa_repaired, SQUARED)]
    if variant == "PA-II":
        C = DEFAULT_C if C is None else float(C)
        return [(partial(pa_ii_general, C=C), SQUARED), (partial(pa_ideal, C=C), IDEAL)]
    if C is None:
        return [(pa_i_general, HINGE), (pa_i_ideal, IDEAL), (pa_i_repaired, HINGE)]
    return [(partial(one, C=float(C)), HINGE) for one in (pa_i_general, pa_i_repaired)]


class BoundProblem:
    """A stream of examples, the runs of online learners on it, and fixed rankers to compare."""

    def __init__(self, matrix: Any, lower: Ranks, upper: Ranks, n_classes: int) -> None:
        self.matrix, self.labels, self.n_classes = matrix, (lower, upper), n_classes
        self.rows, norms = make_rows(matrix, lower, upper), np.empty(lower.size)
        sq_norms(self.rows, norms)
        self.stream = summarise_stream(norms, lower, upper, n_classes)
        self.zero = np.zeros(matrix.shape[1]), np.zeros(n_classes - 1)  # where learners start

    def run(self, variant: str, C: float | None) -> Floats:
        """Losses of the exact update from zero."""
        if C is not None and np.isnan(C):  # PA-I without a comparator to take C from
            return np.full((self.stream.n_trials, self.n_classes - 1), nan)
        if C == 0.0:  # never moves
            return self._losses(self.zero)
        shape = self.matrix.shape[1], self.n_classes
        learner = LinearLearner(*shape, variant, DEFAULT_C if C is None else C, balanced=False)
        return online_losses(learner, self.matrix, *self.labels)

    def _losses(self, ranker: Ranker, loss: Callable[..., Floats] = hinge_losses) -> Floats:
        """Losses of a fixed ranker on every row."""
        return loss(np.asarray(self.matrix @ ranker[0], dtype=float), ranker[1], *self.labels)

    def check(self, ranker: tuple[ArrayLike, ArrayLike]) -> Ranker:
        """A pair of weights and thresholds that fits the data."""
        weights, thresholds = (np.asarray(part, dtype=float) for part in ranker)
        shapes = tuple(part.shape for part in self.zero)
        if (weights.shape, thresholds.shape) != shapes:
            raise ValueError(
                f"the comparator has weights of shape {weights.shape} and thresholds of shape "
                f"{thresholds.shape}; the data needs {shapes[0]} and {shapes[1]}"
            )
        return weights, thresholds

    def measure(self, ranker: Ranker) -> Comparator:
        """Norm and losses of a fixed ranker."""
        return measure(*ranker, self._losses(ranker))

    def comparators(self, asks_for: str, C: float | None) -> list[Comparator]:
        """Candidate comparators for a kind of statement, of which it uses the tightest."""
        rankers = self._ideal() if asks_for == IDEAL else self._path(asks_for, C)
        return [*map(self.measure, rankers)] or [Comparator(nan, nan, nan, worst=inf)]

    def _path(self, loss: str, C: float | None) -> Iterator[Ranker]:
        """The zero ranker, and batch optima of growing norm and shrinking loss."""
        yield self.zero
        data = self.rows, self.n_classes
        settings: dict[str, Any] = {"loss": loss, "tol": PATH_TOL, "max_iter": PATH_SWEEPS}
        if C is not None:  # for a given C, the minimiser of the bound
            optimum = solve(*data, C, **settings)
            yield optimum.weights, optimum.thresholds
        first = 1.0 / (self.stream.n_trials * (1.0 + self.stream.largest_sq_norm))
        start = None
        for step in range(PATH_LENGTH):
            start = solve(*data, first * PATH_FACTOR**step, start=start, **settings)
            yield start.weights, start.thresholds
            if start.gap > PATH_TOL:  # the next ones would be harder still
                return

    def _ideal(self) -> Iterator[Ranker]:
        """The shortest ranker without loss, if there is one, by cutting planes.

        The product of every plane with (u, b) must be 1 or more; each turn adds the one of every
        threshold that is farthest from it.
        """
        ranker: Ranker | None = self.zero
        units, planes = np.eye(self.n_classes - 1), dict[tuple[int, int], Floats]()
        while ranker is not None:
            gaps = self._losses(ranker, shortfalls)
            worst = enumerate(gaps.argmax(axis=0).tolist())
            cuts = [(row, i) for i, row in worst if gaps[row, i] > NO_LOSS]
            if planes.keys() >= set(cuts):
                margin = 1.0 - gaps.max()
                if margin > 0.0:  # else it is lost to rounding
                    yield ranker[0] / margin, ranker[1] / margin
                return
            for row, i in cuts:
                side = 1.0 if i + 1 < self.labels[0][row] else -1.0
                planes[row, i] = side * np.concatenate([_row(self.matrix, row), -units[i]])
            ranker = _shortest(np.array([*planes.values()]), self.matrix.shape[1])


def _shortest(planes: Floats, n_features: int) -> Ranker | None:
    """The shortest v with planes @ v >= 1, by Lawson and Hanson's least distance programming."""
    system = np.vstack([planes.T, np.ones(len(planes))])
    target = np.zeros(len(system))
    target[-1] = 1.0
    residual = target - system @ nnls(system, target, maxiter=100 * len(planes))[0]
    if residual[-1] * LONGEST_IDEAL**2 < 1.0:  # the last residual is 1 / (1 + |v|^2)
        return None
    v = -residual[:-1] / residual[-1]
    return v[:n_features], v[n_features:]


def _read_stream(X: Any, y: Any, classes: Any) -> tuple[Any, Ranks, Ranks, int]:
    matrix = as_matrix(X)
    labels, known_order = read_labels(y)
    order = find_classes(labels, known_order, classes)
    lower, upper = encode(labels, order)
    learner = LinearLearner(matrix.shape[1], order.size)
    learner.latent(learner.rows(matrix, lower, upper))  # refuses what is not finite
    return matrix, lower, upper, order.size


def _row(matrix: Any, t: int) -> Floats:
    row: Any = matrix[[t]].toarray() if is_sparse(matrix) else matrix[t]
    return row.ravel()
