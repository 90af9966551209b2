"""`KernelOrdinalPA`: the online estimator in dual form, for curved scores."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordspan.estimators.base import column_moments
from ordspan.estimators.online import DEFAULT_PASSES, ThresholdEstimator
from ordspan.learners import KernelLearner


def find_gamma(gamma: float | str, X: Any) -> float:
    """The constant of a kernel, from the rows if it is given by name.

    >>> X = np.array([[0.0], [2.0]])  # squared distances of 0 or 4, equally often
    >>> find_gamma("distance", X), find_gamma("scale", X), find_gamma("auto", X)
    (0.5, 1.0, 1.0)
    """
    if not isinstance(gamma, str):
        return float(gamma)
    n_features = X.shape[1]
    if gamma == "auto":
        return 1.0 / n_features
    with np.errstate(over="ignore", invalid="ignore"):
        means, variances = column_moments(X)
        spread = 2.0 * float(variances.sum())  # the mean squared distance of two rows
        if gamma == "scale":  # the variance of all entries: within the columns and between them
            spread = 0.5 * spread + n_features * float(means.var())
    if 1.0 / np.finfo(np.float64).max < spread < np.inf:
        return 1.0 / spread
    # one row, nearly equal rows, or rows that are not finite (reported later): as if standardised
    return 1.0 if gamma == "scale" else 1.0 / (2.0 * n_features)


class KernelOrdinalPA(ThresholdEstimator):
    """Non-linear ordinal regression from exact labels or ranges: `OrdinalPA` with a kernel.

    Learns a score that is a sum of kernel values with some of the rows it has seen, the support
    vectors, and sorted thresholds between the grades. Each example moves them as little as
    possible, in the space of the kernel, so that its score clears by a margin of 1 every threshold
    that its label puts on one side. With ``kernel="linear"`` it is ``OrdinalPA(balanced=False)``,
    only slower.

    Without a budget nearly every row becomes a support vector on noisy labels: one pass over n rows
    costs O(n^2 d) time and O(n d) memory, also if sparse, as support vectors are kept dense. With
    ``budget=B`` a row costs O(B d) time, and the memory is O(B d). For large data see also
    `OrdinalPA` behind scikit-learn's `Nystroem`.

    Parameters
    ----------
    variant : {"PA-I", "PA", "PA-II"}, default="PA-I"
        "PA" corrects each example in full; "PA-I" moves each threshold by at most C; "PA-II"
        trades the size of the move against the squared remaining violation.
    C : float, default=1.0
        Aggressiveness of PA-I and PA-II; ignored by PA. The default is larger than
        that of `OrdinalPA` because under rbf every row has length 1 in the space of the kernel.
    kernel : {"rbf", "linear", "poly", "sigmoid"}, default="rbf"
        As in scikit-learn: ``exp(-gamma ||x - z||^2)``, ``x.z``, ``(gamma x.z + coef0)^degree``
        and ``tanh(gamma x.z + coef0)``. k(x, x) must be above 0, except that a row of zeros may
        have 0. For any other kernel put scikit-learn's `Nystroem` before `OrdinalPA` in a pipeline.
    gamma : "distance", "scale", "auto" or float, default="distance"
        Constant of rbf, poly and sigmoid. "distance" is 1 / the mean squared distance between two
        rows of X, so that rows at that distance have the rbf value 1/e; on standardised features
        it is half of "scale", 1 / (d times the variance of X), the default of scikit-learn.
        "auto" is 1 / d. All are fixed by ``fit`` or the first ``partial_fit``, so set a number
        if the first batch of a stream is small.
    degree : float, default=3
        Degree of poly; a fractional degree needs ``gamma x.z + coef0`` to be always positive.
    coef0 : float, default=0.0
        Constant of poly and sigmoid.
    budget : int, optional
        Largest number of support vectors; unlimited by default. An update that would exceed it
        replaces one support vector by its projection on the new one and on its nearest neighbour
        among the others (BPA-NN of Wang & Vucetic, 2010), which keeps the score of the corrected
        example. The vector replaced is the one whose projection loses least, weighted by the
        coefficient used for prediction. The average is projected along with the last iterate;
        still, ``average=False`` may be better.
    average : bool, default=True
        Predict with the average of all iterates instead of the last one.
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
    support_vectors_ : ndarray of shape (n_support, d)
        The support vectors.
    dual_coef_ : ndarray of shape (n_support,)
        Their coefficients.
    coef_ : ndarray of shape (d,)
        With a linear kernel: weights of the score.
    thresholds_ : ndarray of shape (K - 1,)
        Sorted thresholds; a score on a threshold belongs to the grade above.
    classes_ : ndarray of shape (K,)
        The grades from lowest to highest.
    gamma_ : float
        The value of gamma used.
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

    Z. Wang and S. Vucetic, "Online Passive-Aggressive Algorithms on a Budget", AISTATS 2010.

    Examples
    --------
    Grades that grow with the distance from the origin, which no linear score can separate:

    >>> import numpy as np
    >>> from ordspan import KernelOrdinalPA
    >>> X = np.random.default_rng(0).standard_normal((300, 2))
    >>> y = np.searchsorted([0.8, 1.5], np.hypot(*X.T)) + 1
    >>> model = KernelOrdinalPA(budget=50, random_state=0).fit(X[:200], y[:200])
    >>> bool(model.score(X[200:], y[200:]) > -0.1)
    True
    >>> model.support_vectors_.shape
    (50, 2)
    """

    learner_: KernelLearner
    _fitted_numbers = ("gamma_",)

    def __init__(
        self,
        variant: str = "PA-I",
        C: float = 1.0,
        *,
        kernel: str = "rbf",
        gamma: Any = "distance",
        degree: float = 3,
        coef0: float = 0.0,
        budget: int | None = None,
        average: bool = True,
        max_iter: int = DEFAULT_PASSES,
        shuffle: bool = True,
        classes: Any = None,
        class_weight: Any = None,
        random_state: Any = None,
    ) -> None:
        self.variant = variant
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.budget = budget
        self.average = average
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.classes = classes
        self.class_weight = class_weight
        self.random_state = random_state

    def _make_learner(self, n_features: int, n_classes: int) -> KernelLearner:
        if isinstance(self.gamma, str) and getattr(self, "_gamma_given", self.gamma) != self.gamma:
            raise ValueError("gamma cannot change during learning; call fit to start over")
        gamma = self.gamma_ if isinstance(self.gamma, str) else self.gamma
        return KernelLearner(
            *(n_features, n_classes, self.variant, self.C, self.average),
            kernel=self.kernel,
            gamma=gamma,
            degree=self.degree,
            coef0=self.coef0,
            budget=self.budget,
        )

    def _checked(self, X: Any, *, reset: bool) -> Any:
        X = super()._checked(X, reset=reset)
        if reset:
            self.gamma_, self._gamma_given = find_gamma(self.gamma, X), self.gamma
        return X

    @property
    def support_vectors_(self) -> NDArray[np.float64]:
        """The support vectors, (n_support, d)."""
        return self._fitted().support_vectors

    @property
    def dual_coef_(self) -> NDArray[np.float64]:
        """Coefficients of the support vectors, (n_support,)."""
        return self._fitted().dual_coef
