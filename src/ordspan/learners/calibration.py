"""Probabilities and prediction ranges on top of any learner with one score and thresholds."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ordspan.core import calibration as layout
from ordspan.core.state import Floats, Ranks
from ordspan.learners.rows import NO_WEIGHTS
from ordspan.wording import check_choice

COVERAGES = (0.5, 0.8, 0.9, 0.95, 0.99)  # default coverages
LABELS = ("expected", "contain")


class Calibration:
    """Probabilities of ranks 1..K, and prediction ranges, from latent scores.

    P(y <= k) is the logistic function of ``cuts[k] - slope * score``. The predicted rank is the
    median of these probabilities, which has the smallest expected distance. The range at a coverage
    contains the median, and every rank whose band of scores lies within ``reach`` of the score. In
    a stream the bands lie between the cuts: the range then lies between two quantiles of
    the predicted distribution, whose levels are adjusted to reach the coverage. In a batch the
    bands lie between the ranker's thresholds, which do not depend on the rows used to find the
    reach.

    Parameters
    ----------
    n_classes : int
        Number of ranks K.
    coverages : sequence of float
        Coverages that ranges can have, each between 0 and 1.
    labels : {"expected", "contain"}
        What counts as a miss if the label is a range itself: "expected", the probability of the
        part of the label outside the prediction, given the label; "contain", any part outside.

    Examples
    --------
    >>> import numpy as np
    >>> from ordspan.learners import Calibration
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=2000)
    >>> ranks = 1 + np.searchsorted([-1.0, 1.0], scores + 0.5 * rng.logistic(size=2000))
    >>> known = Calibration(3).fit(scores, ranks, ranks, thresholds=[-1.0, 1.0])
    >>> round(known.slope, 1), known.cuts.round(1)  # slope 2, because the noise was halved
    (2.0, array([-2. ,  2.1]))
    >>> known.probabilities([0.0]).round(2)
    array([[0.12, 0.77, 0.11]])
    >>> known.predict([0.0, 0.9, 1.2])
    array([2, 2, 3])
    >>> known.ranges([0.0, 0.9], coverage=0.9)
    (array([2, 2]), array([2, 3]))
    """

    def __init__(
        self, n_classes: int, coverages: Sequence[float] = COVERAGES, labels: str = LABELS[0]
    ) -> None:
        check_choice("labels", labels, LABELS)
        levels = check_coverages(coverages)
        self.state = layout.new_state(n_classes, levels, contain=labels == "contain")

    @property
    def _parts(self) -> layout.Parts:
        return layout.parts_view.py_func(self.state)

    @property
    def n_classes(self) -> int:
        """Number of ranks."""
        return int(self.state[layout.N_CLASSES])

    @property
    def labels(self) -> str:
        """What counts as a miss if the label is a range."""
        return LABELS[int(self.state[layout.CONTAIN])]

    @property
    def n_rows(self) -> int:
        """Number of rows learned from: those with a positive weight and an informative label."""
        return int(self.state[layout.ROWS])

    @property
    def slope(self) -> float:
        """Log-odds per unit of the score."""
        return float(self.state[layout.SLOPE])

    @property
    def cuts(self) -> Floats:
        """Sorted cuts between neighbouring ranks, (K - 1,), in log-odds."""
        return self._parts.cuts[1:-1].copy()

    @property
    def medians(self) -> Floats:
        """The scores where the median changes, sorted, (K - 1,): thresholds of `predict`.

        Infinite if the slope is 0, as it is before the first rows: one rank is the median of all.
        """
        return self.cuts / self.slope if self.slope else np.where(self.cuts < 0.0, -np.inf, np.inf)

    @property
    def coverages(self) -> Floats:
        """The coverages that prediction ranges can be asked for, ascending."""
        return self._parts.coverage.copy()

    @property
    def reach(self) -> Floats:
        """How far the range of each coverage reaches; sorted, so that ranges are nested."""
        return np.maximum.accumulate(self._parts.reach)

    @property
    def reach_unit(self) -> str:
        """Unit of the reach: "log-odds" after a stream, "score" after a batch."""
        return "log-odds" if self.state[layout.SCORE_FACTOR] == self.slope else "score"

    def observe(
        self,
        scores: Floats,
        lower: Ranks,
        upper: Ranks,
        sample_weight: Floats = NO_WEIGHTS,
        predict: bool = False,
    ) -> Ranks | None:
        """Learn from rows of a stream, given their scores before learning.

        Parameters
        ----------
        scores : array of shape (n,)
            Latent scores.
        lower, upper : arrays of shape (n,)
            Ends of the labels.
        sample_weight : array of shape (n,), optional
            Weights of the rows.
        predict : bool
            Also return what `predict` said of each row before it was observed.

        Returns
        -------
        ndarray of shape (n,) or None
            The medians, if ``predict``.
        """
        medians = np.empty(lower.size if predict else 0, dtype=np.int64)
        layout.observe(self.state, scores, lower, upper, sample_weight, medians)
        return medians if predict else None

    def observe_one(self, score: float, lower: int, upper: int) -> None:
        """`observe` for a single row.

        Parameters
        ----------
        score : float
            Latent score.
        lower, upper : int
            Ends of the label.
        """
        layout.observe_one(self.state, score, lower, upper)

    def fit(
        self,
        scores: ArrayLike,
        lower: ArrayLike,
        upper: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        thresholds: ArrayLike,
        fold: ArrayLike | None = None,
    ) -> Self:
        """Learn from all rows at once, scored by a ranker that has not learned them.

        Parameters
        ----------
        scores : array of shape (n,)
            Latent scores.
        lower, upper : arrays of shape (n,)
            Ends of the labels.
        sample_weight : array of shape (n,), optional
            Weights of the rows, relative to the mean weight.
        thresholds : array of shape (K - 1,) or (n_folds, K - 1)
            Thresholds of the ranker, or of the rankers that scored each fold.
        fold : array of shape (n,), optional
            Fold of every row.

        Returns
        -------
        self
            The calibration itself.
        """
        self.state = layout.new_state(self.n_classes, self.coverages, self.labels == "contain")
        latent = clip_scores(scores)
        low, high = (np.asarray(end, dtype=np.int64) for end in (lower, upper))
        weight = np.ones(latent.size) if sample_weight is None else np.asarray(sample_weight, float)
        folds = np.zeros(latent.size, dtype=np.int64) if fold is None else np.asarray(fold)
        bands = with_ends(np.atleast_2d(thresholds))
        used = (weight > 0.0) & ((low > 1) | (high < self.n_classes))
        if used.any():
            low, high, weight = low[used], high[used], weight[used]
            relative = weight / weight.mean()
            layout.fit_cuts(self.state, latent[used], low, high, relative)
            layout.fit_reach(self.state, bands, folds[used], latent[used], low, high, relative)
            self.use_thresholds(bands[0, 1:-1])
            self.state[layout.ROWS], self.state[layout.WEIGHT] = low.size, weight.sum()
        return self

    def use_thresholds(self, thresholds: Floats) -> None:
        """Base batch-calibrated ranges on the bands between these thresholds.

        Parameters
        ----------
        thresholds : array of shape (K - 1,)
            Thresholds of the ranker that predicts, on the scale of those given to `fit`.
        """
        if self.state[layout.SCORE_FACTOR] == 1.0:
            self._parts.bands[:] = with_ends(thresholds)

    def predict(self, scores: ArrayLike) -> Ranks:
        """Median rank of every row: the smallest rank k with P(y <= k) >= 1/2.

        Parameters
        ----------
        scores : array of shape (n,)
            Latent scores.

        Returns
        -------
        ndarray of shape (n,)
            Ranks 1..K.
        """
        return np.searchsorted(self.cuts, self.slope * clip_scores(scores)).astype(np.int64) + 1

    def probabilities(self, scores: ArrayLike) -> Floats:
        """Probability of every rank, (n, K); rows sum to 1.

        Parameters
        ----------
        scores : array of shape (n,)
            Latent scores.

        Returns
        -------
        ndarray of shape (n, K)
            The probabilities.
        """
        latent = clip_scores(scores)
        out = np.empty((latent.size, self.n_classes))
        layout.probabilities(self.state, latent, out)
        return out

    def log_probabilities(self, scores: Floats, lower: Ranks, upper: Ranks) -> Floats:
        """Logarithm of the probability of ranks lower..upper of every row, never infinite.

        Parameters
        ----------
        scores : array of shape (n,)
            Latent scores.
        lower, upper : arrays of shape (n,)
            Ends of the ranges, 1..K.

        Returns
        -------
        ndarray of shape (n,)
            Exact even where the probability itself underflows to 0.
        """
        out = np.empty(scores.size)
        layout.log_probabilities(self.state, clip_scores(scores), lower, upper, out)
        return out

    def ranges(self, scores: ArrayLike, coverage: float) -> tuple[Ranks, Ranks]:
        """Lowest and highest rank of the range of every row, which includes the median.

        Parameters
        ----------
        scores : array of shape (n,)
            Latent scores.
        coverage : float
            One of ``coverages``.

        Returns
        -------
        tuple of two arrays of shape (n,)
            Ranks 1..K.
        """
        reach = self.reach[self.level(coverage)]
        low, high = np.tile(self.predict(scores), (2, 1))
        layout.widen_ranges(self.state, reach, clip_scores(scores), low, high)
        return low, high

    def level(self, coverage: float) -> int:
        """Index of a coverage in ``coverages``; an error if it is not one of them.

        Parameters
        ----------
        coverage : float
            Matched to within 1e-9.

        Returns
        -------
        int
            Its place, in ``reach`` too.
        """
        at = np.flatnonzero(np.abs(self.coverages - coverage) <= 1e-9)
        if not at.size:
            remedy = "choose one of " + ", ".join(f"{level:g}" for level in self.coverages)
            if coverage / 100 in self.coverages:
                remedy = f"did you mean {coverage / 100:g}?"
            raise ValueError(f"coverage {coverage!r} was not calibrated; {remedy}")
        return int(at[0])

    def with_rank(self, rank: int) -> Self:
        """A calibration that continues this one with one more rank; see `Learner.with_rank`.

        Parameters
        ----------
        rank : int
            The number of the new rank, 1..K + 1.

        Returns
        -------
        Calibration
            The calibration of K + 1 ranks; nothing is known about the new one.
        """
        grown = type(self)(self.n_classes + 1, self.coverages.tolist(), self.labels)
        grown.state = layout.with_rank(self.state, rank)
        return grown

    @classmethod
    def from_state(cls, state: Any, n_classes: int) -> Self:
        """The calibration with a given state, which is checked.

        Parameters
        ----------
        state : ndarray
            The ``state`` of a calibration, or an untrusted array.
        n_classes : int
            Number of ranks.

        Returns
        -------
        Calibration
            It uses the state itself, not a copy.

        Examples
        --------
        >>> from ordspan.learners import Calibration
        >>> Calibration.from_state(Calibration(4).state, 3)
        Traceback (most recent call last):
        ValueError: its calibration is not for 3 ranks
        """
        if fault := layout.why_unusable(state, n_classes):
            raise ValueError(f"its calibration {fault}")
        calibration = cls(n_classes)
        calibration.state = state
        return calibration


def clip_scores(scores: ArrayLike) -> Floats:
    """Scores as floats that are not too large for what is computed from them."""
    return np.clip(np.asarray(scores, dtype=np.float64), -layout.MAX_SCORE, layout.MAX_SCORE)


def with_ends(thresholds: Floats) -> Floats:
    """Thresholds with minus and plus infinity at the ends.

    >>> with_ends(np.array([1.0, 2.0]))
    array([-inf,   1.,   2.,  inf])
    """
    ends = np.full((*thresholds.shape[:-1], 1), np.inf)
    return np.concatenate([-ends, thresholds, ends], axis=-1)


def check_coverages(coverages: Any) -> Floats:
    """Coverages as sorted, distinct floats between 0 and 1.

    >>> check_coverages([0.9, 0.5])
    array([0.5, 0.9])
    """
    levels = np.sort(np.asarray(coverages, dtype=np.float64), axis=None)
    apart = np.diff([0.0, *levels, 1.0]) > 0.0
    if np.ndim(coverages) != 1 or not levels.size or not apart.all():
        raise ValueError(f"coverages must be distinct numbers between 0 and 1, got {coverages!r}")
    return levels
