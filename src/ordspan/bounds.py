"""How much the online learners can lose on a stream, by the theorems, beside what they do lose."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import inf, nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import nnls

from ordspan.core import bounds as theorems
from ordspan.core.bounds import Bound, Comparator
from ordspan.core.labels import Ranks, check_ranks, encode_interval
from ordspan.core.losses import hinge_losses, shortfalls
from ordspan.estimators.targets import find_classes, read_labels
from ordspan.learners import Learner, LinearLearner
from ordspan.learners.checks import DEFAULT_C, check_rule
from ordspan.learners.rows import as_rows, is_sparse

__all__ = ["Bound", "mistake_bounds", "online_losses"]

Floats = NDArray[np.float64]
Ranker = tuple[Floats, Floats]  # weights and thresholds, u and b of the paper

HINGE, SQUARED, IDEAL = "hinge", "squared_hinge", "ideal"
"""What makes a comparator good for a statement: little loss, little squared loss, none at all."""

PATH_LENGTH = 16
PATH_FACTOR = 4.0
"""The comparators are the batch optima for this many C, each this many times the last."""
PATH_TOL, PATH_SWEEPS = 1e-3, 300
"""A comparator need not be exactly optimal for its bound to be true, only for it to be tight."""
LONGEST_IDEAL = 1e5
"""Ideal comparators of a larger norm are not looked for."""
NO_COMPARATOR = Comparator(norm=nan, loss=nan, sq_loss=nan, worst=inf)


class Statement(NamedTuple):
    """A theorem, and what makes a comparator good for it."""

    theorem: Callable[[theorems.StreamSummary, Comparator], Bound]
    asks_for: str


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

    The learner starts from zero, sees the rows once in the order given, and uses the exact update.

    Parameters
    ----------
    X : array or CSR matrix of shape (T, d)
        The rows in the order in which they are learned.
    y : array-like of shape (T,) or (T, 2)
        Exact labels, or intervals ``[lower, upper]``.
    variant : {"PA", "PA-I", "PA-II"}
        Which update.
    C : float, optional
        Aggressiveness. PA has none. For PA-I, None is the value that the theorem asks for, which
        depends on the comparator; a number gives the inequality of the appendix for that C.
        For PA-II, None is the learner's default.
    comparator : pair of arrays (weights, thresholds), optional
        The fixed ranker to compare with. Left out, each statement is given the batch optimum that
        makes it tightest, on a path of trade-offs between norm and loss.
    classes : array-like, optional
        All classes from lowest to highest.

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
    field = BoundProblem(*_read_stream(X, y, classes))
    given = None if comparator is None else [field.measure(field.check(comparator))]
    result = []
    for theorem, asks_for in statements:
        comparators = field.comparators(asks_for, C) if given is None else given
        bounds = [theorem(field.stream, candidate) for candidate in comparators]
        tightest = min(bounds, key=lambda b: inf if np.isnan(b.bound) else b.bound)
        result.append(theorems.with_observed(tightest, field.run(variant, tightest.C)))
    return result


def online_losses(learner: Learner, X: Any, lower: ArrayLike, upper: ArrayLike) -> Floats:
    """Hinge losses (T, K-1) of each row just before the learner learns it.

    Parameters
    ----------
    learner : Learner
        A learner with thresholds; it learns the rows on the way.
    X : array or CSR matrix of shape (T, d)
        The rows in the order in which they are learned.
    lower, upper : array-like of shape (T,)
        Ends of the labels' intervals, ranks 1..K.

    Returns
    -------
    ndarray of shape (T, K - 1)
        The losses; 0 where a threshold has no side to be on.

    Examples
    --------
    >>> from ordspan.bounds import online_losses
    >>> from ordspan.learners import LinearLearner
    >>> learner = LinearLearner(n_features=1, n_classes=3, variant="PA")
    >>> online_losses(learner, [[2.0], [2.0]], lower=[3, 3], upper=[3, 3])
    array([[1., 1.],
           [0., 0.]])
    """
    matrix = as_rows(X)
    low, high = check_ranks(lower, upper, learner.n_classes)
    weights, edges = learner.model[:2]
    scores = np.empty(low.size)
    thresholds = np.empty((low.size, learner.n_classes - 1))
    labels = zip(low.tolist(), high.tolist(), strict=True)
    for t, (row, (bottom, top)) in enumerate(zip(_rows(matrix), labels, strict=True)):
        scores[t] = weights @ row
        thresholds[t] = edges[1:-1]
        learner.learn_one(row, bottom, top)
    return hinge_losses(scores, thresholds, low, high)


def _statements(variant: str, C: float | None) -> list[Statement]:
    """What section 5 says about a variant, as printed and as repaired."""
    check_rule(variant, DEFAULT_C if C is None else C)
    if variant == "PA":
        if C is not None:
            raise ValueError(f"PA has no C, got {C!r}; leave it out or choose PA-I or PA-II")
        return [
            Statement(theorems.pa_general, SQUARED),
            Statement(theorems.pa_ideal, IDEAL),
            Statement(theorems.pa_repaired, SQUARED),
        ]
    if variant == "PA-II":
        given = DEFAULT_C if C is None else float(C)
        return [
            Statement(partial(theorems.pa_ii_general, C=given), SQUARED),
            Statement(partial(theorems.pa_ii_ideal, C=given), IDEAL),
        ]
    if C is None:
        return [
            Statement(theorems.pa_i_general, HINGE),
            Statement(theorems.pa_i_ideal, IDEAL),
            Statement(theorems.pa_i_repaired, HINGE),
        ]
    return [
        Statement(partial(theorems.pa_i_at, C=float(C)), HINGE),
        Statement(partial(theorems.pa_i_repaired_at, C=float(C)), HINGE),
    ]


class BoundProblem:
    """The examples of a stream, the learners that run on it and the rankers that compete."""

    def __init__(self, matrix: Any, lower: Ranks, upper: Ranks, n_classes: int) -> None:
        self.matrix, self.lower, self.upper, self.n_classes = matrix, lower, upper, n_classes
        self.stream = theorems.summarise_stream(_sq_norms(matrix), lower, upper, n_classes)
        self._runs: dict[float | None, Floats] = {}
        self._found: dict[str, list[Comparator]] = {}

    @property
    def zero(self) -> Ranker:
        """Where every learner starts."""
        return np.zeros(self.matrix.shape[1]), np.zeros(self.n_classes - 1)

    def run(self, variant: str, C: float | None) -> Floats:
        """Losses of the exact update from zero, run once for each C."""
        if C not in self._runs:
            self._runs[C] = self._run(variant, C)
        return self._runs[C]

    def _run(self, variant: str, C: float | None) -> Floats:
        if C is not None and np.isnan(C):  # PA-I's C, where there is no comparator to take it from
            return np.full((self.stream.n_trials, self.n_classes - 1), nan)
        if C == 0.0:  # never moves
            return hinge_losses(self.scores(self.zero), self.zero[1], *self.labels)
        given = DEFAULT_C if C is None else C
        shape = self.matrix.shape[1], self.n_classes
        learner = LinearLearner(*shape, variant, given, balanced=False)
        return online_losses(learner, self.matrix, *self.labels)

    @property
    def labels(self) -> tuple[Ranks, Ranks]:
        """Lower and upper ranks."""
        return self.lower, self.upper

    def scores(self, ranker: Ranker) -> Floats:
        """Scores of all rows under fixed weights."""
        return np.asarray(self.matrix @ ranker[0], dtype=float)

    def check(self, ranker: tuple[ArrayLike, ArrayLike]) -> Ranker:
        """A pair of weights and thresholds that fits the data."""
        weights, thresholds = (np.asarray(part, dtype=float) for part in ranker)
        shapes = tuple(part.shape for part in self.zero)
        if (weights.shape, thresholds.shape) != shapes:
            raise ValueError(
                f"the comparator has weights of shape {weights.shape} and thresholds of shape "
                f"{thresholds.shape}; the data asks for {shapes[0]} and {shapes[1]}"
            )
        return weights, thresholds

    def measure(self, ranker: Ranker) -> Comparator:
        """Norm and losses of a fixed ranker."""
        losses = hinge_losses(self.scores(ranker), ranker[1], *self.labels)
        return theorems.measure(*ranker, losses)

    def comparators(self, asks_for: str, C: float | None) -> list[Comparator]:
        """Comparators among which a statement of a kind finds the one that makes it tight."""
        if asks_for not in self._found:
            rankers = self._ideal() if asks_for == IDEAL else self._path(asks_for, C)
            self._found[asks_for] = [self.measure(ranker) for ranker in rankers]
        return self._found[asks_for] or [NO_COMPARATOR]

    def _path(self, loss: str, C: float | None) -> Iterator[Ranker]:
        """The zero ranker, and batch optima from the short and lossy to the long and exact."""
        from ordspan.learners.batch import solve

        yield self.zero
        data = self.matrix, *self.labels, self.n_classes
        settings: dict[str, Any] = {"loss": loss, "tol": PATH_TOL, "max_iter": PATH_SWEEPS}
        if C is not None:  # for a given C this is the very minimiser of the bound
            optimum = solve(*data, C, **settings)
            yield optimum.weights, optimum.thresholds
        first = 1.0 / (self.stream.n_trials * (1.0 + self.stream.largest_sq_norm))
        start = None
        for step in range(PATH_LENGTH):
            optimum = solve(*data, first * PATH_FACTOR**step, start=start, **settings)
            yield optimum.weights, optimum.thresholds
            if optimum.gap > PATH_TOL:  # the next ones would be harder still
                return
            start = optimum

    def _ideal(self) -> Iterator[Ranker]:
        """The shortest ranker without loss, if there is one, by cutting planes."""
        ranker: Ranker | None = self.zero
        planes: dict[tuple[int, int, int], Floats] = {}
        while ranker is not None:
            gaps = shortfalls(self.scores(ranker), ranker[1], *self.labels)
            cuts = [cut for cut in self._cuts(gaps) if cut not in planes]
            if not cuts:
                margin = 1.0 - gaps.max()
                if margin > 0.0:  # else it is lost to rounding
                    yield ranker[0] / margin, ranker[1] / margin
                return
            planes.update((cut, self._plane(*cut)) for cut in cuts)
            ranker = _shortest(np.array(list(planes.values())), self.matrix.shape[1])

    def _cuts(self, gaps: Floats) -> Iterator[tuple[int, int, int]]:
        """Row, threshold and side of the worst shortfall of every threshold on either side."""
        i = np.arange(1, self.n_classes)
        for side, asked in ((1, i < self.lower[:, None]), (-1, i >= self.upper[:, None])):
            column = np.where(asked, gaps, -inf)
            rows = column.argmax(axis=0)
            for threshold, row in enumerate(rows.tolist()):
                if column[row, threshold] > theorems.NO_LOSS:
                    yield row, threshold, side

    def _plane(self, row: int, threshold: int, side: int) -> Floats:
        """The vector whose product with (u, b) must be 1 or more."""
        x = next(_rows(self.matrix[row : row + 1]))
        return side * np.concatenate([x, -np.eye(self.n_classes - 1)[threshold]])


def _shortest(planes: Floats, n_features: int) -> Ranker | None:
    """The shortest v with planes @ v >= 1, by Lawson and Hanson's least distance programming."""
    system = np.vstack([planes.T, np.ones(len(planes))])
    goal = np.zeros(len(system))
    goal[-1] = 1.0
    residual = goal - system @ nnls(system, goal, maxiter=100 * len(planes))[0]
    if residual[-1] * LONGEST_IDEAL**2 < 1.0:  # the last residual is 1 / (1 + |v|^2)
        return None
    v = -residual[:-1] / residual[-1]
    return v[:n_features], v[n_features:]


def _read_stream(X: Any, y: Any, classes: Any) -> tuple[Any, Ranks, Ranks, int]:
    matrix = as_rows(X)
    labels = read_labels(y)
    order = find_classes(labels, classes)
    lower, upper = encode_interval(labels.lower, labels.upper, order)
    if lower.size != matrix.shape[0]:
        raise ValueError(f"X has {matrix.shape[0]} rows, but there are {lower.size} labels")
    LinearLearner(matrix.shape[1], order.size).latent(matrix)  # refuses what is not finite
    return matrix, lower, upper, order.size


def _rows(matrix: Any) -> Iterator[Floats]:
    if not is_sparse(matrix):
        yield from matrix
        return
    for t in range(matrix.shape[0]):
        yield matrix[t : t + 1].toarray().ravel()


def _sq_norms(matrix: Any) -> Floats:
    squares = matrix.multiply(matrix) if is_sparse(matrix) else np.square(matrix, dtype=float)
    return np.asarray(squares.sum(axis=1), dtype=float).ravel()
