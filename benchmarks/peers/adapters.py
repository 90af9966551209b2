"""One face for all: ``fit(X, y)`` with intervals of ranks (n, 2), ``predict(X)`` with ranks.

A peer that knows exact labels only is given the middle of each interval, which is the label itself
where the interval is one.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.stats import norm
from sklearn.base import BaseEstimator

SEED = 0


def middle_ranks(y: np.ndarray) -> np.ndarray:
    """Middle rank of each interval; a half goes up or down at random, so that no rank gains."""
    twice = y.sum(axis=1)
    return (twice + (twice % 2) * np.random.default_rng(SEED).integers(2, size=len(y))) // 2


class Classified(BaseEstimator):
    """A classifier that is given the middle ranks that occur, coded 0, 1, 2 without gaps.

    ``median`` predicts the median of the probabilities, the best for MAE, in place of what the
    classifier predicts.
    """

    def __init__(self, classifier: Any, median: bool = False) -> None:
        self.classifier = classifier
        self.median = median

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Train on middle ranks."""
        self.classes_, codes = np.unique(middle_ranks(y), return_inverse=True)
        self.classifier.fit(X, codes)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Ranks."""
        if self.median:
            return self.classes_[
                (np.cumsum(self.predict_proba(X), axis=1)[:, :-1] < 0.5).sum(axis=1)
            ]
        return self.classes_[np.asarray(self.classifier.predict(X)).astype(int)]

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Probability of every rank that occurred."""
        return np.asarray(self.classifier.predict_proba(X))


class Rounded(BaseEstimator):
    """A regressor that is given the middles as they are; predictions are rounded and cut."""

    def __init__(self, regressor: Any) -> None:
        self.regressor = regressor

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Train on middles, counted from 0 as mord's ridge expects."""
        self.ends_ = y.min(), y.max()
        self.regressor.fit(X, y.mean(axis=1) - self.ends_[0])
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Ranks."""
        return to_ranks(self.regressor.predict(X) + self.ends_[0], self.ends_)


def to_ranks(values: np.ndarray, ends: tuple[int, int]) -> np.ndarray:
    """The nearest rank of each number, not beyond the ends."""
    return np.clip(np.rint(values), *ends).astype(np.int64)


class Ordered(BaseEstimator):
    """statsmodels' ordered regression."""

    def fit(self, X: np.ndarray, codes: np.ndarray) -> Self:
        """Maximise the likelihood; columns that never change have no coefficient to find."""
        from statsmodels.miscmodels.ordinal_model import OrderedModel

        self.varies_ = X.max(axis=0) > X.min(axis=0)
        model = OrderedModel(codes, X[:, self.varies_])
        # the Hessian is for standard errors, which nobody asks for here
        self.found_ = model.fit(method="bfgs", maxiter=200, disp=False, skip_hessian=True)
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Probability of every code."""
        return self.found_.model.predict(self.found_.params, exog=X[:, self.varies_])


class RiverOneVsRest(BaseEstimator):
    """River's passive-aggressive classifiers, one for each class, fed row by row."""

    def fit(self, X: np.ndarray, codes: np.ndarray) -> Self:
        """Learn the rows in their order."""
        from river import linear_model, multiclass

        self.model_ = multiclass.OneVsRestClassifier(linear_model.PAClassifier())
        for row, code in zip(X.tolist(), codes.tolist(), strict=True):
            self.model_.learn_one(dict(enumerate(row)), code)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Codes."""
        return np.array([self.model_.predict_one(dict(enumerate(row))) for row in X.tolist()])


class CensoredTrees(BaseEstimator):
    """XGBoost's survival:aft with the interval's ends as bounds.

    It models the logarithm of a positive time, so rank k is the time exp(k), which puts ranks on
    an even scale. Rank k covers k - 1/2 to k + 1/2; below the lowest and above the highest rank
    the bounds are open (0 and infinity). A prediction is its logarithm, rounded and cut.
    """

    def __init__(self, n_classes: int) -> None:
        self.n_classes = n_classes

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Grow 100 trees, as XGBoost's estimators do."""
        import xgboost

        self.classes_ = np.arange(1, self.n_classes + 1)
        lower, upper = log_bounds(y, self.n_classes)
        rows = xgboost.DMatrix(X)
        rows.set_float_info("label_lower_bound", np.exp(lower))
        rows.set_float_info("label_upper_bound", np.exp(upper))
        settings = {
            "objective": "survival:aft",
            "base_score": float(np.exp(y.mean())),
            "nthread": 1,
            "seed": SEED,
        }
        self.trees_ = xgboost.train(settings, rows, num_boost_round=100)
        return self

    def log_times(self, X: np.ndarray) -> np.ndarray:
        """Where the model centres each row, on the scale of ranks."""
        import xgboost

        return np.log(self.trees_.predict(xgboost.DMatrix(X)))

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Ranks."""
        return to_ranks(self.log_times(X), (1, self.n_classes))

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Probability of every rank by the standard normal errors that the trees assume."""
        edges = np.concatenate([[-np.inf], self.classes_[:-1] + 0.5, [np.inf]])
        return np.diff(norm.cdf(edges - self.log_times(X)[:, None]))


def log_bounds(y: np.ndarray, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Half a rank around each interval, open where it reaches the lowest or highest rank."""
    lower = np.where(y[:, 0] == 1, -np.inf, y[:, 0] - 0.5)
    upper = np.where(y[:, 1] == n_classes, np.inf, y[:, 1] + 0.5)
    return lower, upper
