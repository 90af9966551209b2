"""Distance of predictions from the true grade, by grade."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ordspan.drawing import RANGES
from ordspan.metrics.scale import code, to_ranks
from ordspan.plot.display import axes_of, names_of

MOST_CELLS = 15  # largest number of rows or columns with printed numbers
SHADES = "Blues"


class ConfusionDistanceDisplay:
    """Share of predictions by true grade and by how many grades they are too low or too high.

    A confusion matrix whose rows are shifted so that correct predictions are aligned in column 0.
    Ranges have their own row, in which 0 is anywhere inside the range.

    Parameters
    ----------
    counts : ndarray of shape (g, m)
        Number of rows by true grade and distance.
    distances : ndarray of shape (m,)
        The distances in grades, negative if the prediction is too low.
    names : list of str
        The true grades, and ranges, as axis labels.

    Attributes
    ----------
    shares : ndarray of shape (g, m)
        Counts divided by their sums over distances.
    ax_ : matplotlib Axes
        The axes drawn on.
    figure_ : matplotlib Figure
        The figure of the axes.
    im_ : matplotlib AxesImage
        The cells.

    Examples
    --------
    >>> from ordspan.plot import ConfusionDistanceDisplay
    >>> display = ConfusionDistanceDisplay.from_predictions([1, 1, 2, 3], [1, 2, 2, 1])
    >>> display.distances
    array([-2, -1,  0,  1])
    >>> display.counts
    array([[0, 0, 1, 1],
           [0, 0, 1, 0],
           [1, 0, 0, 0]])
    """

    def __init__(
        self, counts: NDArray[np.int64], distances: NDArray[np.int64], names: list[str]
    ) -> None:
        self.counts = counts
        self.distances = distances
        self.names = names

    @property
    def shares(self) -> NDArray[np.float64]:
        """Counts divided by their sums over distances; 0 where there are none."""
        return self.counts / np.maximum(self.counts.sum(axis=1, keepdims=True), 1)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, ax: Any = None) -> Self:
        """Plot how far the predictions of a model are off.

        Parameters
        ----------
        estimator : estimator
            A fitted estimator or Pipeline.
        X : array-like of shape (n, d)
            Features, as the model takes them.
        y : array-like of shape (n,) or (n, 2)
            Exact labels, or inclusive ranges ``[lower, upper]``.
        ax : matplotlib Axes, optional
            Axes to draw on; by default a new figure.

        Returns
        -------
        ConfusionDistanceDisplay
            The display.
        """
        return cls.from_predictions(y, estimator.predict(X), classes=estimator.classes_, ax=ax)

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_pred: Any, *, classes: Any = None, ax: Any = None
    ) -> Self:
        """Plot how far predictions are off.

        Parameters
        ----------
        y_true : array-like of shape (n,) or (n, 2)
            Exact labels, or inclusive ranges ``[lower, upper]``.
        y_pred : array-like of shape (n,)
            The predicted grades.
        classes : array-like, optional
            All grades from lowest to highest; by default, whole numbers are ranks, as in
            `ordspan.metrics.mean_absolute_error`.
        ax : matplotlib Axes, optional
            Axes to draw on; by default a new figure.

        Returns
        -------
        ConfusionDistanceDisplay
            The display.
        """
        call = code("ConfusionDistanceDisplay.from_predictions", "y_true, y_pred", None)
        lower, upper, rank, _, grades = to_ranks(call, y_true, y_pred, classes)
        away = np.minimum(rank - lower, 0) + np.maximum(rank - upper, 0)
        names = names_of(grades)
        group = np.where(lower == upper, lower - 1, len(names))
        names = names if (lower == upper).all() else [*names, RANGES]
        distances = np.arange(min(away.min(), 0), max(away.max(), 0) + 1)
        counts = np.zeros((len(names), distances.size), dtype=np.int64)
        np.add.at(counts, (group, away - distances[0]), 1)
        return cls(counts, distances, names).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw a cell for each true grade and distance, with its percentage.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default a new figure.

        Returns
        -------
        ConfusionDistanceDisplay
            The display itself.
        """
        ax = axes_of(ax, "ConfusionDistanceDisplay")
        percent = 100 * self.shares
        empty = self.counts.sum(axis=1) == 0
        self.im_ = ax.imshow(percent, cmap=SHADES, vmin=0, vmax=100, aspect="auto")
        if max(percent.shape) <= MOST_CELLS:
            for (row, column), share in np.ndenumerate(percent):
                if self.counts[row, column]:
                    words = f"{share:.0f}" if share >= 0.5 else "<1"
                    color = "white" if share > 55 else "black"
                    ax.text(column, row, words, ha="center", va="center", color=color)
        ax.set_yticks(range(len(self.names)), self.names)
        for tick, none in zip(ax.get_yticklabels(), empty.tolist(), strict=True):
            tick.set_alpha(0.4 if none else 1.0)
        steps = [0 if d == 0 else f"{d:+d}" for d in self.distances.tolist()]
        ax.set_xticks(range(len(steps)), steps)
        ax.set(xlabel="predicted too low (-) or too high (+), in grades", ylabel="true grade")
        ax.figure.colorbar(self.im_, ax=ax, label="% of the rows of a grade")
        self.ax_, self.figure_ = ax, ax.figure
        return self
