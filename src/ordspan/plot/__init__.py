"""Plots of a model and its predictions, in the style of scikit-learn's displays.

Each has ``from_estimator`` and ``from_predictions``, which compute what ``plot`` draws. They need
matplotlib: ``pip install 'ordspan[plot]'``.
"""

from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from ordspan.core.measures import ReliabilityBins, cumulative_outcomes
from ordspan.core.state import Floats, Ranks
from ordspan.labels.ranks import encode, read_labels
from ordspan.metrics.scale import check_count, read_probabilities, scale_of, to_ranks
from ordspan.pages import BLUE, GREY, ORANGE
from ordspan.plot.panels import CHARACTER, grade_ticks, names_of

__all__ = ["ConfusionDistanceDisplay", "ReliabilityDisplay", "ScoreDisplay"]

RANGES = "(ranges)"  # name of the rows that are labelled by a range
MOST_CELLS = 15  # largest number of rows or columns with printed numbers
SHADES = "Blues"
LARGEST, SMALLEST = 120.0, 15.0  # areas of markers
FEW = 20  # fewer scores of a grade are also drawn one by one
MOST_SHAPES = 40  # of more grades, bands are drawn
MOST_OF_WIDTH = 0.3  # that the names of thresholds may take
FARTHEST_LABEL = 2.5  # largest distance from a threshold to its name, in gaps
LABEL_GAP = 0.045  # smallest distance between two names, as a share of the axis


class Display:
    """What has been drawn, and where."""

    ax_: Any
    figure_: Any

    def _axes(self, ax: Any, figsize: tuple[float, float] | None = None) -> Any:
        """The axes to draw on; new ones if there are none."""
        if ax is None:
            try:
                from matplotlib import pyplot
            except ImportError as error:
                needs = f"{type(self).__name__} needs matplotlib"
                raise ImportError(f"{needs}: pip install 'ordspan[plot]'") from error
            ax = pyplot.subplots(figsize=figsize, layout="constrained")[1]
        self.ax_, self.figure_ = ax, ax.figure
        return ax


class ConfusionDistanceDisplay(Display):
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
        lower, upper, rank, _, grades = to_ranks(y_true, y_pred, classes)
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
        ax = self._axes(ax)
        percent = 100 * self.shares
        self.im_ = ax.imshow(percent, cmap=SHADES, vmin=0, vmax=100, aspect="auto")
        if max(percent.shape) <= MOST_CELLS:
            for (row, column), share in np.ndenumerate(percent):
                if self.counts[row, column]:
                    words = f"{share:.0f}" if share >= 0.5 else "<1"
                    color = "white" if share > 55 else "black"
                    ax.text(column, row, words, ha="center", va="center", color=color)
        ax.set_yticks(range(len(self.names)), self.names)
        steps = [0 if d == 0 else f"{d:+d}" for d in self.distances.tolist()]
        ax.set_xticks(range(len(steps)), steps)
        ax.set(xlabel="predicted too low (-) or too high (+), in grades", ylabel="true grade")
        ax.figure.colorbar(self.im_, ax=ax, label="% of the rows of a grade")
        return self


class ReliabilityDisplay(Display):
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
        self, counts: Any, predicted: Floats, observed: Floats, at_least: Floats, at_most: Floats
    ) -> None:
        self.counts = counts
        self.predicted, self.observed = predicted, observed
        self.at_least, self.at_most = at_least, at_most

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
        bins = ReliabilityBins(n_bins)
        bins.add(cumulative_outcomes(*read_probabilities(y_true, proba, classes)))
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
        ax = self._axes(ax, (5.0, 5.0))
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
        return self


class ScoreDisplay(Display):
    """Latent score of the rows of each true grade, with the thresholds between the grades.

    A shape between the two thresholds of its grade is predicted correctly.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Latent score of every row.
    lower, upper : ndarrays of shape (n,)
        Ends of the labels in ranks 1..K.
    thresholds : ndarray of shape (K - 1,)
        The sorted thresholds.
    classes : ndarray of shape (K,)
        The grades from lowest to highest.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes drawn on.
    figure_ : matplotlib Figure
        The figure of the axes.
    boxes_ : list of matplotlib artists
        One box for each grade that occurs, and one for all ranges; of many grades, two bands.
    line_ : matplotlib Line2D
        The thresholds, one after the other.

    Examples
    --------
    >>> import numpy as np
    >>> from ordspan import OrdinalPA
    >>> from ordspan.plot import ScoreDisplay
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = np.searchsorted([-1.0, 1.0], X.sum(axis=1))
    >>> model = OrdinalPA(random_state=0).fit(X, y)
    >>> display = ScoreDisplay.from_estimator(model, X, y)
    >>> len(display.boxes_), len(display.thresholds)
    (3, 2)
    """

    def __init__(
        self, scores: Floats, lower: Ranks, upper: Ranks, thresholds: Floats, classes: NDArray[Any]
    ) -> None:
        self.scores = scores
        self.lower, self.upper = lower, upper
        self.thresholds, self.classes = thresholds, classes

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, ax: Any = None) -> Self:
        """Plot the scores of a model for labelled rows.

        Parameters
        ----------
        estimator : estimator
            A fitted estimator with a score and thresholds, alone, calibrated, or at the end of a
            Pipeline.
        X : array-like of shape (n, d)
            Features, as the model takes them.
        y : array-like of shape (n,) or (n, 2)
            Exact labels, or inclusive ranges ``[lower, upper]``.
        ax : matplotlib Axes, optional
            Axes to draw on; by default a new figure.

        Returns
        -------
        ScoreDisplay
            The display.
        """
        from ordspan.estimators.layers import latent, layers_of

        scores, thresholds = latent(estimator, X), layers_of(estimator)[-1].thresholds_
        return cls.from_predictions(y, scores, thresholds, classes=estimator.classes_, ax=ax)

    @classmethod
    def from_predictions(
        cls, y_true: Any, scores: Any, thresholds: Any, *, classes: Any = None, ax: Any = None
    ) -> Self:
        """Plot given scores.

        Parameters
        ----------
        y_true : array-like of shape (n,) or (n, 2)
            Exact labels, or inclusive ranges ``[lower, upper]``.
        scores : array-like of shape (n,)
            Latent score of every row.
        thresholds : array-like of shape (K - 1,)
            The sorted thresholds.
        classes : array-like, optional
            All K grades from lowest to highest; required for strings.
        ax : matplotlib Axes, optional
            Axes to draw on; by default a new figure.

        Returns
        -------
        ScoreDisplay
            The display.
        """
        given = np.asarray(scores, dtype=np.float64)
        edges = np.asarray(thresholds, dtype=np.float64)
        labels, own_order = read_labels(y_true)
        check_count(labels, given.size, "predictions")
        order, _ = scale_of(classes, [own_order], labels)
        if order.size != edges.size + 1:
            raise ValueError(
                f"{order.size} grades need {order.size - 1} thresholds, got "
                f"{edges.size}; give every grade in classes="
            )
        return cls(given, *encode(labels, order), edges, order).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw densities, boxes of the quartiles, whiskers from 5 % to 95 %, and the thresholds.

        Fewer than 20 scores of a grade are also drawn as points, and more than 40 grades as bands
        through their quantiles. The axis leaves out the most extreme 1 % of every grade.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default a new figure.

        Returns
        -------
        ScoreDisplay
            The display itself.
        """
        ax = self._axes(ax)
        names = names_of(self.classes)
        exact = self.lower == self.upper
        groups = [self.scores[exact & (self.lower == k)] for k in range(1, len(names) + 1)]
        shown = names if exact.all() else [*names, RANGES]
        groups += [] if exact.all() else [self.scores[~exact]]
        there = [place for place, group in enumerate(groups) if group.size]
        shapes = [groups[place] for place in there]
        many = len(there) > MOST_SHAPES
        colors = [GREY if place == len(names) else BLUE for place in there]
        draw = draw_bands if many else draw_shapes
        self.boxes_ = draw(ax, shapes, there, colors)
        (self.line_,) = ax.plot(  # one line with gaps: of many, the picture would be large
            np.tile([0.0, 1.0, np.nan], self.thresholds.size),
            np.repeat(self.thresholds, 3),
            transform=ax.get_yaxis_transform(),
            color=ORANGE,
            linestyle="--",
            linewidth=0.3 if many else 1.2,
        )
        ax.set(xlabel="true grade", ylabel="latent score", xlim=(-0.5, len(shown) - 0.5))
        grade_ticks(ax.xaxis, shown)
        ends = [np.quantile(shape, [0.005, 0.995]) for shape in shapes]
        low, high = np.quantile(np.concatenate([self.thresholds, *ends]), [0, 1])
        ax.set_ylim(low - 0.05 * (high - low or 1), high + 0.05 * (high - low or 1))
        pairs = [f"{a} | {b}" for a, b in pairwise(names)]
        heights = label_heights(self.thresholds, *ax.get_ylim())
        if CHARACTER * max(map(len, pairs)) > MOST_OF_WIDTH * ax.figure.get_figwidth():
            heights = {}  # they would leave too little room for the shapes
        for number, height in heights.items():
            spot: dict[str, Any] = {"xy": (1.01, height), "xycoords": ("axes fraction", "data")}
            ax.annotate(pairs[number], **spot, va="center", color=ORANGE, annotation_clip=False)
        return self


def draw_shapes(ax: Any, shapes: list[Floats], places: list[int], colors: list[str]) -> list[Any]:
    """The density of the scores of each grade, and a box of its quartiles."""
    bodies = ax.violinplot(shapes, places, widths=0.85, showextrema=False)["bodies"]
    look: dict[str, Any] = {"medianprops": {"color": "white", "linewidth": 2}, "widths": 0.1}
    look |= {"whis": (5, 95), "showfliers": False, "patch_artist": True, "manage_ticks": False}
    boxes: list[Any] = ax.boxplot(shapes, positions=places, **look)["boxes"]
    for shape, place, color, body, box in zip(shapes, places, colors, bodies, boxes, strict=True):
        body.set(color=color, alpha=0.4)
        box.set(color=color)
        if shape.size < FEW:
            ax.scatter(np.full(shape.size, place + 0.12), shape, 9, color=color, zorder=3)
    return boxes


def draw_bands(ax: Any, shapes: list[Floats], places: list[int], colors: list[str]) -> list[Any]:
    """Bands through the quantiles of the grades: 5 % to 95 %, and the quartiles."""
    quantiles = np.array([np.quantile(shape, [0.05, 0.25, 0.5, 0.75, 0.95]) for shape in shapes]).T
    ax.plot(places, quantiles[2], color=colors[0])
    return [
        ax.fill_between(places, *quantiles[[low, high]], color=colors[0], alpha=alpha)
        for low, high, alpha in ((0, 4, 0.25), (1, 3, 0.5))
    ]


def label_heights(thresholds: NDArray[np.float64], low: float, high: float) -> dict[int, float]:
    """Height of each threshold's name on the axis; names that do not fit are omitted.

    >>> label_heights(np.array([1.0, 5.0]), 0.0, 10.0)
    {0: 1.0, 1: 5.0}
    """
    gap, heights, step = LABEL_GAP * (high - low), thresholds, 1
    for step in range(1, thresholds.size + 1):
        chosen = thresholds[::step]
        steps = gap * np.arange(chosen.size)
        heights = isotonic_regression(chosen - steps).x + steps  # moved as little as necessary
        off = np.abs(heights - chosen).max()
        # names may move farther as long as none is omitted
        farthest = gap * (FARTHEST_LABEL if step == 1 else 0.75)
        if off <= farthest and low <= heights[0] and heights[-1] <= high:
            break
    return dict(zip(range(0, thresholds.size, step), heights.tolist(), strict=True))
