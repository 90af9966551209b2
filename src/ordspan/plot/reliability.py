"""Reliability of predicted probabilities."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ordspan.core.measures import ReliabilityBins, cumulative_outcomes
from ordspan.drawing import BLUE, GREY
from ordspan.metrics.scale import code, read_probabilities
from ordspan.plot.display import axes_of

Floats = NDArray[np.float64]
LARGEST, SMALLEST = 120.0, 15.0  # areas of markers


class ReliabilityDisplay:
    """How often a grade was at most k, by the predicted probability that it would be.

    Probabilities of all k < K are put into bins. Points on the diagonal come true as often as
    predicted. If labels are ranges, each grade of a label counts by its probability within the
    label, and a bar spans the bounds that hold whatever the true grades are.

    Parameters
    ----------
    counts : ndarray of shape (b,)
        Number of probabilities in each non-empty bin.
    predicted, observed : ndarrays of shape (b,)
        Mean probability in each bin, and the share that came true.
    at_least, at_most : ndarrays of shape (b,)
        Bounds of that share; all equal if labels are exact.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes drawn on.
    figure_ : matplotlib Figure
        The figure of the axes.
    line_ : matplotlib Line2D
        The line through the points.

    Examples
    --------
    >>> import numpy as np
    >>> from ordspan.plot import ReliabilityDisplay
    >>> proba = np.array([[0.25, 0.75], [0.25, 0.75], [0.25, 0.75], [0.25, 0.75]])
    >>> display = ReliabilityDisplay.from_predictions([1, 2, 2, 2], proba)
    >>> display.predicted, display.observed
    (array([0.25]), array([0.25]))
    """

    def __init__(
        self,
        counts: NDArray[np.int64],
        predicted: Floats,
        observed: Floats,
        at_least: Floats,
        at_most: Floats,
    ) -> None:
        self.counts = counts
        self.predicted = predicted
        self.observed = observed
        self.at_least = at_least
        self.at_most = at_most

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, n_bins: int = 10, ax: Any = None
    ) -> Self:
        """Draw how reliable the probabilities of a model are.

        Parameters
        ----------
        estimator : estimator
            A fitted estimator or Pipeline with ``predict_proba``, such as `CalibratedOrdinal`.
        X : array-like of shape (n, d)
            Features of rows that the model has not learned.
        y : array-like of shape (n,) or (n, 2)
            Exact labels, or inclusive ranges ``[lower, upper]``.
        n_bins : int, default=10
            Number of bins of equal width.
        ax : matplotlib Axes, optional
            Axes to draw on; by default a new figure.

        Returns
        -------
        ReliabilityDisplay
            The display.
        """
        proba, classes = estimator.predict_proba(X), estimator.classes_
        return cls.from_predictions(y, proba, classes=classes, n_bins=n_bins, ax=ax)

    @classmethod
    def from_predictions(
        cls, y_true: Any, proba: Any, *, classes: Any = None, n_bins: int = 10, ax: Any = None
    ) -> Self:
        """Draw how reliable probabilities are.

        Parameters
        ----------
        y_true : array-like of shape (n,) or (n, 2)
            Exact labels, or inclusive ranges ``[lower, upper]``.
        proba : array-like of shape (n, K)
            The probability of every grade, from lowest to highest.
        classes : array-like, optional
            All K grades from lowest to highest; required for strings, or if some do not occur.
        n_bins : int, default=10
            Number of bins of equal width.
        ax : matplotlib Axes, optional
            Axes to draw on; by default a new figure.

        Returns
        -------
        ReliabilityDisplay
            The display.
        """
        if n_bins < 1:
            raise ValueError(f"n_bins must be a whole number >= 1, got {n_bins!r}")
        call = code("ReliabilityDisplay.from_predictions", "y_true, proba", None)
        bins = ReliabilityBins(n_bins)
        bins.add(cumulative_outcomes(*read_probabilities(call, y_true, proba, classes)))
        return cls(bins.counts, *bins.means).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the points, sized by the counts of their bins, and the diagonal.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default a new figure.

        Returns
        -------
        ReliabilityDisplay
            The display itself.
        """
        ax = axes_of(ax, "ReliabilityDisplay", figsize=(5.0, 5.0))
        ax.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1.2, label="reliable")
        if not np.array_equal(self.at_least, self.at_most):
            below, above = self.observed - self.at_least, self.at_most - self.observed
            sure = {"fmt": "none", "ecolor": GREY, "elinewidth": 1.0, "capsize": 3}
            bars = np.maximum([below, above], 0.0)
            ax.errorbar(self.predicted, self.observed, bars, label="bounds from ranges", **sure)
        (self.line_,) = ax.plot(self.predicted, self.observed, color=BLUE, label="observed")
        size = SMALLEST + LARGEST * self.counts / self.counts.max()
        ax.scatter(self.predicted, self.observed, size, color=BLUE, zorder=3)
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
        ax.set(xlabel="predicted probability of grade k or lower", ylabel="share that came true")
        ax.legend(loc="upper left", frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self
