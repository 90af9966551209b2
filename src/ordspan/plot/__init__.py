"""Plots of a model and its predictions, in the style of scikit-learn's displays.

Each has ``from_estimator`` and ``from_predictions``, which compute what ``plot`` draws. They need
matplotlib: ``pip install 'ordspan[plot]'``.
"""

from ordspan.plot.distances import ConfusionDistanceDisplay
from ordspan.plot.reliability import ReliabilityDisplay
from ordspan.plot.scores import ScoreDisplay

__all__ = ["ConfusionDistanceDisplay", "ReliabilityDisplay", "ScoreDisplay"]
