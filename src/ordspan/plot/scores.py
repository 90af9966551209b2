"""Latent scores by true grade, against the thresholds."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ordspan.core.state import Ranks
from ordspan.drawing import BLUE, GREY, ORANGE, RANGES, label_heights
from ordspan.labels.ranks import encode, read_labels
from ordspan.metrics.scale import check_count, code, known_order, numbers_that_occur
from ordspan.plot.display import CHARACTER, axes_of, grade_ticks, names_of

Floats = NDArray[np.float64]
FEW = 20  # fewer scores of a grade are also drawn one by one
MOST_SHAPES = 40  # of more grades, bands are drawn
MOST_OF_WIDTH = 0.3  # that the names of thresholds may take


class ScoreDisplay:
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
    lines_ : list of matplotlib artists
        The thresholds.

    Examples
    --------
    >>> import numpy as np
    >>> from ordspan import OrdinalPA
    >>> from ordspan.plot import ScoreDisplay
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = np.searchsorted([-1.0, 1.0], X.sum(axis=1))
    >>> model = OrdinalPA(random_state=0).fit(X, y)
    >>> display = ScoreDisplay.from_estimator(model, X, y)
    >>> len(display.boxes_), len(display.lines_)
    (3, 2)
    """

    def __init__(
        self,
        scores: Floats,
        lower: Ranks,
        upper: Ranks,
        thresholds: Floats,
        classes: NDArray[Any],
    ) -> None:
        self.scores = scores
        self.lower = lower
        self.upper = upper
        self.thresholds = thresholds
        self.classes = classes

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
        from ordspan.estimators.steps import latent, layers_of

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
        order = known_order(classes, own_order)
        if order is None:
            call = code("ScoreDisplay.from_predictions", "y_true, scores, thresholds", None)
            order = numbers_that_occur(call, labels)
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
        ax = axes_of(ax, "ScoreDisplay")
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
        # many thresholds are one line with gaps, or the picture would be large
        lines = [self.thresholds] if many else self.thresholds[:, np.newaxis]
        self.lines_ = [
            ax.plot(
                np.tile([0.0, 1.0, np.nan], edges.size),
                np.repeat(edges, 3),
                transform=ax.get_yaxis_transform(),
                color=ORANGE,
                linestyle="--",
                linewidth=0.3 if many else 1.2,
            )[0]
            for edges in lines
        ]
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
        self.ax_, self.figure_ = ax, ax.figure
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
