"""A River metric for labels that may be ranges."""

from typing import Any

import numpy as np
from river import metrics

from ordspan.core.measures import distance
from ordspan.river.models import Grades, label_ends


class IntervalMAE(metrics.base.MeanMetric, metrics.base.ClassificationMetric):
    """Mean distance from the predicted grade to the label, 0 inside a range.

    River's own ``metrics.MAE`` takes regression models only, and no ranges.

    Parameters
    ----------
    classes : list, optional
        All grades from lowest to highest: the distance is then counted in grades. By default, the
        labels must be numbers, and the distance is their difference.

    Examples
    --------
    >>> from ordspan.river import IntervalMAE
    >>> metric = IntervalMAE()
    >>> metric.update((2, 4), 3)
    >>> metric.update((4, None), 3)  # at least 4
    >>> metric
    IntervalMAE: 0.5
    """

    _fmt = ",.6f"

    def __init__(self, classes: Any = None) -> None:
        self.classes = classes
        self._grades = None if classes is None else Grades(classes)
        super().__init__()

    @property
    def bigger_is_better(self) -> bool:
        """False: the smaller the distance, the better."""
        return False

    def _eval(self, y_true: Any, y_pred: Any) -> float:
        if y_pred is None:
            raise ValueError(
                "the prediction is None: a model predicts nothing before its first label; update "
                "the metric from the first prediction on"
            )
        if self._grades is None:
            lower, upper = label_ends(y_true)
            low = -np.inf if lower is None else lower
            high = np.inf if upper is None else upper
        else:
            _, low, high = self._grades.read(y_true)
            _, y_pred, _ = self._grades.read(y_pred)
        try:
            return float(distance(y_pred, low, high))
        except TypeError:
            raise ValueError(
                f"label {y_true!r} and prediction {y_pred!r} are not both numbers; list named "
                "grades from lowest to highest: IntervalMAE(classes=[...])"
            ) from None
