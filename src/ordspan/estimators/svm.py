"""`OrdinalSVM`: the best fixed ranker for a batch, with a duality gap as certificate."""

from typing import Any, Self

from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from ordspan.core.measures import distance
from ordspan.core.rows import Rows
from ordspan.estimators.base import ThresholdModel
from ordspan.learners import Learner, LinearLearner
from ordspan.learners.batch import solve
from ordspan.wording import warn


class OrdinalSVM(ThresholdModel):
    """Large-margin ordinal regression from exact labels or ranges, solved to a known accuracy.

    Minimises ``1/2 |w|^2 + 1/2 |theta|^2`` plus C times the sum over rows of the
    interval-insensitive hinge losses of their required thresholds, or of their squares. With
    ``loss="hinge"`` and exact labels this is SVOR-IMC, support vector ordinal regression with
    implicit constraints (Chu & Keerthi, 2005); with ranges it is the problem that VILMA solves
    with cutting planes (Antoniuk, Franc & Hlavac, 2014). Here it is solved by dual coordinate
    ascent, with the exact step of `OrdinalPA` for each row, and the duality gap bounds how far the
    result can be from the optimum.

    Parameters
    ----------
    C : float, default=0.1
        Weight of the losses relative to the norms.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        Loss of each required threshold. The squared hinge was better on most data sets we tried.
        With weak features, the optimum of the hinge is often one grade for all rows, whatever C;
        ``fit`` warns if that happens.
    tol : float, default=1e-3
        Relative duality gap to stop at.
    max_iter : int, default=1000
        Largest number of sweeps over the rows.
    classes : array-like, optional
        All grades from lowest to highest. By default taken from an ordered Categorical, or else
        the sorted numbers.
    class_weight : dict, "balanced" or None, default=None
        Weights of the grades, multiplied by ``sample_weight``: a dict (missing grades weigh 1), or
        "balanced", which gives every grade that occurs the same total weight. A range has the
        mean weight of its grades.
    random_state : int, RandomState or None, default=0
        Seed of the order in which rows are visited; does not change the optimum.

    Attributes
    ----------
    coef_ : ndarray of shape (d,)
        Weights of the score.
    thresholds_ : ndarray of shape (K - 1,)
        Sorted thresholds.
    classes_ : ndarray of shape (K,)
        The grades from lowest to highest.
    duality_gap_ : float
        ``(primal_value_ - dual_value_) / primal_value_``: the largest possible improvement.
    primal_value_, dual_value_ : float
        Objective of the result, and a lower bound for every ranker.
    n_iter_ : int
        Sweeps made.

    Examples
    --------
    >>> import numpy as np
    >>> from ordspan import OrdinalSVM
    >>> X = np.array([[-2.0], [-1.0], [0.0], [1.0], [2.0]])
    >>> model = OrdinalSVM(C=1.0).fit(X, [[1, 1], [1, 2], [2, 2], [2, 3], [3, 3]])
    >>> model.predict(X)
    array([1, 1, 2, 3, 3])
    >>> model.duality_gap_ <= 1e-3
    True
    """

    _fitted_numbers = ("primal_value_", "dual_value_", "duality_gap_")

    def __init__(
        self,
        C: float = 0.1,
        *,
        loss: str = "squared_hinge",
        tol: float = 1e-3,
        max_iter: int = 1000,
        classes: Any = None,
        class_weight: Any = None,
        random_state: Any = 0,
    ) -> None:
        self.C = C
        self.loss = loss
        self.tol = tol
        self.max_iter = max_iter
        self.classes = classes
        self.class_weight = class_weight
        self.random_state = random_state

    def _make_learner(self, n_features: int, n_classes: int) -> Learner:
        return LinearLearner(n_features, n_classes, "PA")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the optimum to the relative gap ``tol``.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n, d)
            Features; standardise them first.
        y : array-like of shape (n,) or (n, 2)
            Exact labels, or inclusive ranges ``[lower, upper]``, in your own grades.
        sample_weight : array-like of shape (n,), optional
            Factors of C; a weight of 2 is the same as repeating the row.

        Returns
        -------
        self
            The estimator itself, unchanged if an error is raised.
        """
        with self.unchanged_on_error():
            rows, classes = self._rows_to_fit(X, y, sample_weight)
            optimum = solve(
                *(rows, classes.size, self.C, self.loss, self.tol, self.max_iter),
                seed=int(check_random_state(self.random_state).randint(2**31)),
                feature_names=self._names(),
            )
            learner = self._make_learner(self.n_features_in_, classes.size)
            learner.model.weights[:] = optimum.weights
            learner.model.edges[1:-1] = optimum.thresholds
            values = optimum.primal, optimum.dual, optimum.gap
            fitted = dict(zip(self._fitted_numbers, values, strict=True))
            self.from_learner(learner, classes, n_iter=optimum.n_iter, fitted=fitted)
        if optimum.gap > self.tol:
            warn(
                f"stopped after max_iter={self.max_iter} sweeps at a relative duality gap of "
                f"{optimum.gap:.2e}, above tol={self.tol:g}; the objective could improve by at "
                "most that share; raise max_iter, lower C or standardise the features",
                ConvergenceWarning,
            )
        self._warn_of_one_grade(rows)
        return self

    def _warn_of_one_grade(self, rows: Rows) -> None:
        """Warn if all training rows get the same grade, unless it is correct for all."""
        ranks = self.learner_.predict_many(rows)
        missed = distance(ranks, rows.lower, rows.upper) > 0
        counted = missed & (rows.weight > 0) if rows.weight.size else missed
        if (ranks != ranks[0]).any() or not counted.any():
            return
        squared = "" if self.loss == "squared_hinge" else "loss='squared_hinge', "
        warn(
            f"the model predicts the same grade, {self.classes_[ranks[0] - 1]}, for every training "
            f"row: with loss={self.loss!r} and C={self.C:g} that is the optimum for these "
            f"features; try {squared}a larger C, standardised features or other features"
        )
