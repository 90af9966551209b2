"""The online estimators: passive-aggressive updates, and baselines to compare with."""

import functools
import operator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from ordspan import learners
from ordspan.estimators.base import BaseOrdinal, ThresholdModel, refuse_balanced
from ordspan.labels.ranks import Labels, find_classes, read_labels
from ordspan.learners.linear import DEFAULT_C
from ordspan.learners.rows import NO_ORDER
from ordspan.wording import shown

DEFAULT_PASSES = 10


class OrdinalEstimator(BaseOrdinal):
    """Base of the online estimators."""

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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from scratch in ``max_iter`` passes over the rows.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n, d)
            Features; standardise them first.
        y : array-like of shape (n,) or (n, 2)
            Exact labels, or inclusive ranges ``[lower, upper]``, in your own grades.
        sample_weight : array-like of shape (n,), optional
            Scales C (the step size of the baselines) of each row; 0 leaves a row out.

        Returns
        -------
        self
            The estimator itself, unchanged if an error is raised.
        """
        with self.unchanged_on_error():
            rows, classes = self._rows_to_fit(X, y, sample_weight)
            learner = self._make_learner(self.n_features_in_, classes.size)
            rng = check_random_state(self.random_state)
            for _ in range(self.max_iter):
                order = rng.permutation(rows.lower.size) if self.shuffle else NO_ORDER
                learner.learn(rows, order, feature_names=self._names())
            return self.from_learner(learner, classes, n_iter=self.max_iter)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn the rows once, in order, continuing from the current state.

        If several threads share the estimator, one learns at a time, so no update is lost.
        Predictions never wait, and may use parameters from the middle of a batch. If that matters,
        predict from a copy (`copy.copy`) that no thread trains.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n, d)
            Features; standardise them first.
        y : array-like of shape (n,) or (n, 2)
            Exact labels, or inclusive ranges ``[lower, upper]``, in your own grades.
        classes : array-like, optional
            All grades from lowest to highest; needed in the first call unless the estimator was
            given ``classes`` or ``y`` is an ordered Categorical.
        sample_weight : array-like of shape (n,), optional
            Scales C (the step size of the baselines) of each row; 0 leaves a row out.

        Returns
        -------
        self
            The estimator itself, unchanged if an error is raised.
        """
        self._learn_once(X, y, classes, sample_weight)
        return self

    def _learn_once(
        self, X: Any, y: Any, classes: Any, sample_weight: Any, *, scored: bool = False
    ) -> tuple[Any, ...]:
        """`partial_fit`; returns scores before learning, if ``scored``, labels and weights."""
        with self.unchanged_on_error():
            kind: Any = type(self)
            parameters = [vars(self)[name] for name in parameter_names(kind)]
            before = vars(self).get("_learned_with")
            changed = before is None or not all(map(operator.is_, before, parameters))
            first = not self.__sklearn_is_fitted__()
            if changed:
                self._validate_params()
            X = self._checked(X, reset=first)
            labels, order = read_labels(y)
            grades = self._classes_for_partial_fit(labels, order, classes, first)
            rows = weighted = self._rows(X, labels, grades, sample_weight)
            if self.class_weight is not None:
                refuse_balanced(self.class_weight, "partial_fit")
                weighted = rows._replace(weight=self._weights(rows, grades))
            shape = X.shape[1], grades.size
            learner = self._make_learner(*shape) if first else self.learner_
            scores = np.empty(X.shape[0] if scored else 0)
            with learner.unchanged_on_error():
                if changed and not first:
                    learner.adopt_settings(self._make_learner(*shape))
                learner.learn(weighted, feature_names=self._names(), scores_before=scores)
            if first:
                self.from_learner(learner, grades, n_iter=1)
            self._learned_with = parameters
            # calibration does not use class_weight
            return scores, rows.lower, rows.upper, rows.weight

    def _classes_for_partial_fit(
        self, labels: Labels, order: Any, classes: Any, first: bool
    ) -> NDArray[Any]:
        if first:
            classes = self.classes if classes is None else classes
            if classes is None and order is None:
                raise ValueError(
                    "classes must be given in the first call of partial_fit: the first "
                    "batch may not contain every grade"
                )
            return find_classes(labels, order, classes)
        if classes is not None and not np.array_equal(np.asarray(classes), self.classes_):
            raise ValueError(
                f"classes {shown(np.asarray(classes))} differ from those of the first call of "
                f"partial_fit or fit, {shown(self.classes_)}; the grades of a fitted model are "
                "fixed: leave classes out, or start a new model"
            )
        return self.classes_

    @property
    def n_updates_(self) -> int:
        """Number of rows that changed the parameters."""
        return int(self._fitted().n_updates)


@functools.cache
def parameter_names(kind: Any) -> tuple[str, ...]:
    """Parameter names of an estimator class, cached because scikit-learn's lookup is slow."""
    return tuple(kind._get_param_names())


class ThresholdEstimator(ThresholdModel, OrdinalEstimator):
    """An online estimator with one score and sorted thresholds."""


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
        the sorted numbers.
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

    def _make_learner(self, n_features: int, n_classes: int) -> learners.Learner:
        settings = (self.variant, self.C, self.average)
        return learners.LinearLearner(
            n_features, n_classes, *settings, solver=self.solver, balanced=self.balanced
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

    def _make_learner(self, n_features: int, n_classes: int) -> learners.Learner:
        return learners.PRankLearner(n_features, n_classes)


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
        scores = self._scores(X)
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

    def _make_learner(self, n_features: int, n_classes: int) -> learners.Learner:
        return learners.PerceptronLearner(n_features, n_classes)


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

    def _make_learner(self, n_features: int, n_classes: int) -> learners.Learner:
        return learners.MulticlassPALearner(n_features, n_classes, self.variant, self.C)
