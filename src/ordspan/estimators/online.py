"""The online estimators: passive-aggressive updates, and baselines to compare with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ordspan.estimators.passes import OrdinalEstimator, ThresholdEstimator
from ordspan.learners import (
    Learner,
    LinearLearner,
    MulticlassPALearner,
    PerceptronLearner,
    PRankLearner,
)
from ordspan.learners.checks import DEFAULT_C

DEFAULT_PASSES = 10


class OrdinalPA(ThresholdEstimator):
    """Ordinal regression from exact labels or ranges by exact passive-aggressive updates.

    Learns a score w.x and sorted thresholds between the grades. Each example moves them as little
    as possible so that its score clears, by a margin of 1, every threshold that its label (a grade,
    or a range of grades) puts on one side.

    Parameters
    ----------
    variant : {"PA-I", "PA", "PA-II"}, default="PA-I"
        "PA" corrects each example in full; "PA-I" moves each threshold by at most C; "PA-II"
        trades the size of the move against the squared remaining violation.
    C : float, default=0.1
        Aggressiveness of PA-I and PA-II; ignored by PA. With ``average=True`` the
        result hardly depends on it.
    average : bool, default=True
        Predict with the average of all iterates instead of the last one.
    solver : {"exact", "sca"}, default="exact"
        "exact" finds the optimum of each update. "sca" is the support class algorithm as the paper
        prints it (SCA for PA and PA-II, SCA-I for PA-I), kept for comparison: it is often not
        optimal, with six or more grades not always feasible, and can diverge. It is not balanced,
        so it needs ``balanced=False``. The smallest example is PA with one feature x = 1, w = 0,
        thresholds (0, 5) and label 2: the optimum is w = 1/2 and thresholds (-1/2, 5); SCA gives
        w = 1/3 and (-2/3, 16/3).
    balanced : bool, default=True
        Measure the thresholds on the scale of the scores, by the geometric mean of the squared
        norms of the rows that were corrected, so that both move equally for any number of
        features. False is the update of the paper: one unit of a weight costs as much as one unit
        of a threshold, so with many features (long rows) the thresholds hardly move.
    max_iter : int, default=10
        Passes over the data in ``fit``; ``partial_fit`` always makes one.
    shuffle : bool, default=True
        Shuffle the rows before each pass of ``fit``; ``partial_fit`` keeps their order.
    classes : array-like, optional
        All grades from lowest to highest. By default taken from an ordered Categorical, or else
        the sorted labels.
    class_weight : dict, "balanced" or None, default=None
        Weights of the grades, multiplied by ``sample_weight``: a dict (missing grades weigh 1), or
        "balanced", which gives every grade that occurs the same total weight. A range has the
        mean weight of its grades.
    random_state : int, RandomState or None, default=None
        Seed for shuffling.
    verbose : int, default=0
        Above 0, ``fit`` prints a line for each pass: rows, mean absolute error of the predictions
        made before each row was learned, and seconds.

    Attributes
    ----------
    coef_ : ndarray of shape (d,)
        Weights of the score.
    thresholds_ : ndarray of shape (K - 1,)
        Sorted thresholds; a score on a threshold belongs to the grade above.
    classes_ : ndarray of shape (K,)
        The grades from lowest to highest.
    n_updates_ : int
        Number of rows that changed the parameters.
    n_iter_ : int
        Passes made by ``fit``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (d,)
        Names of the features, if X has string column names.

    References
    ----------
    N. Manwani and M. Chandra, "Exact Passive-Aggressive Algorithms for Learning to Rank Using
    Interval Labels".

    Examples
    --------
    >>> import numpy as np
    >>> from ordspan import OrdinalPA
    >>> X = np.array([[-2.0], [-1.0], [0.0], [1.0], [2.0]])
    >>> y = [["low", "low"], ["low", "mid"], ["mid", "mid"], ["mid", "high"], ["high", "high"]]
    >>> model = OrdinalPA(classes=["low", "mid", "high"], random_state=0).fit(X, y)
    >>> model.predict(X)
    array(['low', 'low', 'mid', 'high', 'high'], dtype='<U4')
    """

    def __init__(
        self,
        variant: str = "PA-I",
        C: float = DEFAULT_C,
        *,
        average: bool = True,
        solver: str = "exact",
        balanced: bool = True,
        max_iter: int = DEFAULT_PASSES,
        shuffle: bool = True,
        classes: Any = None,
        class_weight: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.variant = variant
        self.C = C
        self.average = average
        self.solver = solver
        self.balanced = balanced
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.classes = classes
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose

    def _make_learner(self, n_features: int, n_classes: int) -> Learner:
        return LinearLearner(
            n_features,
            n_classes,
            self.variant,
            self.C,
            self._flag("average"),
            solver=self.solver,
            balanced=self._flag("balanced"),
        )


class PRank(ThresholdEstimator):
    """PRank, the perceptron for ranks (Crammer & Singer, 2001); a baseline of the paper.

    On a range it moves the thresholds that the range puts on one side, and leaves those inside it
    alone.

    Parameters
    ----------
    max_iter : int, default=10
        Passes over the data in ``fit``; ``partial_fit`` always makes one.
    shuffle : bool, default=True
        Shuffle the rows before each pass of ``fit``.
    classes : array-like, optional
        All grades from lowest to highest.
    class_weight : dict, "balanced" or None, default=None
        Weights of the grades, multiplied by ``sample_weight``: a dict (missing grades weigh 1), or
        "balanced", which gives every grade that occurs the same total weight. A range has the
        mean weight of its grades.
    random_state : int, RandomState or None, default=None
        Seed for shuffling.

    Attributes
    ----------
    coef_ : ndarray of shape (d,)
        Weights of the score.
    thresholds_ : ndarray of shape (K - 1,)
        Sorted thresholds.
    classes_ : ndarray of shape (K,)
        The grades from lowest to highest.
    n_updates_ : int
        Number of rows that changed the parameters.
    n_iter_ : int
        Passes made by ``fit``.

    Examples
    --------
    >>> import numpy as np
    >>> from ordspan import PRank
    >>> X = np.array([[-2.0], [-1.0], [0.0], [1.0], [2.0]])
    >>> PRank(random_state=0).fit(X, [1, 1, 2, 3, 3]).predict(X)
    array([1, 1, 2, 3, 3])
    """

    def __init__(
        self,
        *,
        max_iter: int = DEFAULT_PASSES,
        shuffle: bool = True,
        classes: Any = None,
        class_weight: Any = None,
        random_state: Any = None,
    ) -> None:
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.classes = classes
        self.class_weight = class_weight
        self.random_state = random_state

    def _make_learner(self, n_features: int, n_classes: int) -> Learner:
        return PRankLearner(n_features, n_classes)


class VectorEstimator(OrdinalEstimator):
    """An estimator with one weight vector per grade; the highest score wins."""

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Score of every grade, (n, K); with two grades their difference, (n,).

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n, d)
            Features, as in ``fit``.

        Returns
        -------
        ndarray of shape (n, K) or (n,)
            The highest score is that of the predicted grade.
        """
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        scores = self.learner_.latent(X, feature_names=self._names())
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores


class MulticlassPerceptron(VectorEstimator):
    """Multiclass perceptron, max-score update (Crammer & Singer, 2003); a baseline of the paper.

    One weight vector per grade, ignoring their order. On a range, the best grade inside is
    preferred to the best grade outside.

    Parameters
    ----------
    max_iter : int, default=10
        Passes over the data in ``fit``; ``partial_fit`` always makes one.
    shuffle : bool, default=True
        Shuffle the rows before each pass of ``fit``.
    classes : array-like, optional
        All grades from lowest to highest.
    class_weight : dict, "balanced" or None, default=None
        Weights of the grades, multiplied by ``sample_weight``: a dict (missing grades weigh 1), or
        "balanced", which gives every grade that occurs the same total weight. A range has the
        mean weight of its grades.
    random_state : int, RandomState or None, default=None
        Seed for shuffling.

    Attributes
    ----------
    coef_ : ndarray of shape (K, d)
        One weight vector per grade.
    classes_ : ndarray of shape (K,)
        The grades from lowest to highest.
    n_updates_ : int
        Number of rows that changed the parameters.
    n_iter_ : int
        Passes made by ``fit``.

    Examples
    --------
    >>> import numpy as np
    >>> from ordspan import MulticlassPerceptron
    >>> X = np.array([[-2.0, 1.0], [0.0, -1.0], [2.0, 1.0]])
    >>> MulticlassPerceptron(random_state=0).fit(X, [1, 2, 3]).predict(X)
    array([1, 2, 3])
    """

    def __init__(
        self,
        *,
        max_iter: int = DEFAULT_PASSES,
        shuffle: bool = True,
        classes: Any = None,
        class_weight: Any = None,
        random_state: Any = None,
    ) -> None:
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.classes = classes
        self.class_weight = class_weight
        self.random_state = random_state

    def _make_learner(self, n_features: int, n_classes: int) -> Learner:
        return PerceptronLearner(n_features, n_classes)


class MulticlassPA(VectorEstimator):
    """Exact multiclass passive-aggressive updates (Matsushima et al., 2010), for comparison.

    One weight vector per grade, ignoring their order. Each example moves all vectors as little as
    possible (in the sum of their squared changes) so that its grade scores higher than every other
    grade by 1. On a range, the grade inside with the highest score has to win, and only against
    the grades outside.

    Parameters
    ----------
    variant : {"PA-I", "PA", "PA-II"}, default="PA-I"
        "PA" corrects each example in full. The others allow one shortfall, shared by all grades,
        at a cost added to half the sum of squared changes: C times the shortfall for "PA-I",
        C times its square for "PA-II".
    C : float, default=0.1
        Aggressiveness of PA-I and PA-II; ignored by PA.
    max_iter : int, default=10
        Passes over the data in ``fit``; ``partial_fit`` always makes one.
    shuffle : bool, default=True
        Shuffle the rows before each pass of ``fit``.
    classes : array-like, optional
        All grades from lowest to highest.
    class_weight : dict, "balanced" or None, default=None
        Weights of the grades, multiplied by ``sample_weight``: a dict (missing grades weigh 1), or
        "balanced", which gives every grade that occurs the same total weight. A range has the
        mean weight of its grades.
    random_state : int, RandomState or None, default=None
        Seed for shuffling.

    Attributes
    ----------
    coef_ : ndarray of shape (K, d)
        One weight vector per grade.
    classes_ : ndarray of shape (K,)
        The grades from lowest to highest.
    n_updates_ : int
        Number of rows that changed the parameters.
    n_iter_ : int
        Passes made by ``fit``.

    References
    ----------
    S. Matsushima, N. Shimizu, K. Yoshida, T. Ninomiya and H. Nakagawa, "Exact Passive-Aggressive
    Algorithm for Multiclass Classification Using Support Class", SDM 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from ordspan import MulticlassPA
    >>> X = np.array([[-2.0, 1.0], [0.0, -1.0], [2.0, 1.0]])
    >>> MulticlassPA(random_state=0).fit(X, [1, 2, 3]).predict(X)
    array([1, 2, 3])
    """

    def __init__(
        self,
        variant: str = "PA-I",
        C: float = DEFAULT_C,
        *,
        max_iter: int = DEFAULT_PASSES,
        shuffle: bool = True,
        classes: Any = None,
        class_weight: Any = None,
        random_state: Any = None,
    ) -> None:
        self.variant = variant
        self.C = C
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.classes = classes
        self.class_weight = class_weight
        self.random_state = random_state

    def _make_learner(self, n_features: int, n_classes: int) -> Learner:
        return MulticlassPALearner(n_features, n_classes, self.variant, self.C)
