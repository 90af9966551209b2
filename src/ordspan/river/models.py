"""The River models."""

from __future__ import annotations

from typing import Any

from ordspan.learners import Learner, LinearLearner, PRankLearner
from ordspan.learners.linear import DEFAULT_C
from ordspan.river.classifier import OrdinalClassifier


class OrdinalPA(OrdinalClassifier):
    """Ordinal regression in River from grades or ranges, by exact passive-aggressive updates.

    The score is a weighted sum of the features, without an intercept: the sorted thresholds between
    the grades take its place. Probabilities (``predict_proba_one``) are learned online. Scale the
    features, for example with ``preprocessing.StandardScaler``.

    New features may appear at any time: the model equals, to the bit, one that knew them from the
    start. So may new grades, unless ``classes`` is given. A new grade between two others starts
    with an empty band of scores on the threshold between them, so no prediction changes until it is
    learned; one beyond the outermost starts one margin away from it. Before the second grade there
    is nothing to learn. An open end extends to the outermost grade.

    Parameters
    ----------
    variant : {"PA-I", "PA", "PA-II"}, default="PA-I"
        "PA" corrects each example in full; "PA-I" moves each threshold by at most C; "PA-II"
        trades the size of the move against the squared remaining violation.
    C : float, default=0.1
        Aggressiveness of PA-I and PA-II; ignored by PA, which has none.
    average : bool, default=True
        Predict with the average of all iterates instead of the last one. If the stream drifts, the
        last one follows faster.
    balanced : bool, default=True
        Measure the thresholds on the scale of the scores; see `ordspan.OrdinalPA`.
    classes : list, optional
        All grades from lowest to highest; required for words. By default, the whole and half
        numbers seen so far, sorted; strings may spell them.

    References
    ----------
    N. Manwani and M. Chandra, "Exact Passive-Aggressive Algorithms for Learning to Rank Using
    Interval Labels".

    Examples
    --------
    >>> from ordspan.river import OrdinalPA
    >>> from river import preprocessing
    >>> model = preprocessing.StandardScaler() | OrdinalPA(classes=["low", "mid", "high"])
    >>> for _ in range(20):
    ...     model.learn_one({"heat": 10.0}, "low")
    ...     model.learn_one({"heat": 20.0, "wind": 1.0}, "mid")
    ...     model.learn_one({"heat": 25.0}, ("mid", None))  # at least mid
    ...     model.learn_one({"heat": 30.0}, "high")
    >>> [model.predict_one({"heat": heat}) for heat in (10.0, 20.0, 30.0)]
    ['low', 'mid', 'high']
    """

    def __init__(
        self,
        variant: str = "PA-I",
        C: float = DEFAULT_C,
        average: bool = True,
        balanced: bool = True,
        classes: Any = None,
    ) -> None:
        self.variant = variant
        self.C = C
        self.average = average
        self.balanced = balanced
        self.classes = classes
        super().__init__()

    def _make_learner(self, n_features: int, n_classes: int) -> Learner:
        return LinearLearner(
            n_features,
            n_classes,
            self.variant,
            self.C,
            bool(self.average),
            balanced=bool(self.balanced),
        )


class PRank(OrdinalClassifier):
    """PRank (Crammer & Singer, 2001) in River, from grades or ranges.

    New features and grades may appear at any time, as in `OrdinalPA`.

    Parameters
    ----------
    classes : list, optional
        All grades from lowest to highest, as in `OrdinalPA`.

    Examples
    --------
    >>> from ordspan.river import PRank
    >>> model = PRank()
    >>> for _ in range(10):
    ...     for heat, grade in ((-1.0, 1), (0.0, 2), (1.0, 3)):
    ...         model.learn_one({"heat": heat}, grade)
    >>> [model.predict_one({"heat": heat}) for heat in (-1.0, 0.0, 1.0)]
    [1, 2, 3]
    """

    def __init__(self, classes: Any = None) -> None:
        self.classes = classes
        super().__init__()

    def _make_learner(self, n_features: int, n_classes: int) -> Learner:
        return PRankLearner(n_features, n_classes)
