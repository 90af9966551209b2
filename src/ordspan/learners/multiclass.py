"""Learners with one weight vector per class, which ignore the order of the classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ordspan.core import memory
from ordspan.core.labels import Ranks
from ordspan.learners.checks import DEFAULT_C, Floats, check_rule
from ordspan.learners.growing import WideningLearner
from ordspan.learners.scoring import scores_of


class VectorLearner(WideningLearner):
    """A learner with one weight vector per class and no thresholds; the highest score wins."""

    @property
    def weights(self) -> Floats:
        """One vector per class, (K, d)."""
        return self.model.weights.reshape(self.n_classes, self.n_features).copy()

    def _latent(self, matrix: Any, feature_names: Any) -> Floats:
        return np.column_stack([scores_of(w, matrix, feature_names) for w in self.weights])

    def _ranks(self, matrix: Any, feature_names: Any) -> Ranks:
        return np.argmax(self._latent(matrix, feature_names), axis=1).astype(np.int64) + 1


class PerceptronLearner(VectorLearner):
    """Multiclass perceptron with the max-score update (Crammer & Singer 2003) on ranks 1..K.

    On a range label the best class inside is preferred to the best class outside.

    Parameters
    ----------
    n_features : int
        Length of a row.
    n_classes : int
        Number of ranks.

    Examples
    --------
    >>> from ordspan.learners import PerceptronLearner
    >>> learner = PerceptronLearner(1, 3)
    >>> learner.learn_many([[1.0]], [2], predict=True)  # equal scores: predicts the lowest class
    array([1])
    >>> learner.weights.ravel()  # the true class moves up, the predicted one down
    array([-1.,  1.,  0.])
    """

    rules = (memory.PERCEPTRON,)

    def __init__(self, n_features: int, n_classes: int) -> None:
        super().__init__(n_features, n_classes, rule=memory.PERCEPTRON, C=1.0, average=False)


class MulticlassPALearner(VectorLearner):
    """Exact multiclass PA, PA-I or PA-II (Matsushima et al. 2010) on ranks 1..K.

    One weight vector per class, whose order is ignored. Each example moves all K vectors at once by
    the solution of: minimise half the sum over classes of the squared norm of their change, subject
    to ``(w_y - w_r).x >= 1 - slack`` for every other class r, where

    - PA has no slack,
    - PA-I has one slack >= 0 shared by all r, and C slack added to the objective,
    - PA-II has one slack shared by all r, and C slack^2 added to the objective.

    On a range label, y is the class of the range with the highest score (the lowest if tied), and
    only the classes outside are r. A row of zeros moves nothing.

    Parameters
    ----------
    n_features, n_classes, variant, C :
        As in `LinearLearner`.

    References
    ----------
    S. Matsushima, N. Shimizu, K. Yoshida, T. Ninomiya and H. Nakagawa, "Exact Passive-Aggressive
    Algorithm for Multiclass Classification Using Support Class", SDM 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from ordspan.learners import MulticlassPALearner
    >>> learner = MulticlassPALearner(n_features=1, n_classes=3, variant="PA")
    >>> learner.learn_one(np.array([1.0]), 2)  # all scores are equal: predicts the lowest class
    1
    >>> learner.weights.ravel().round(3)  # the class is now ahead of both others by 1
    array([-0.333,  0.667, -0.333])
    """

    rules = range(memory.CLASSES_HARD, memory.CLASSES_SOFT + 1)

    def __init__(
        self, n_features: int, n_classes: int, variant: str = "PA-I", C: float = DEFAULT_C
    ) -> None:
        rule = memory.CLASSES_HARD + check_rule(variant, C)
        super().__init__(n_features, n_classes, rule=rule, C=float(C), average=False)
