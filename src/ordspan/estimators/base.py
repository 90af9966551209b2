"""Base classes of the estimators: validation, and conversion between grades and ranks."""

from __future__ import annotations

import numbers
import operator
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from ordspan.core.labels import check_classes
from ordspan.core.losses import distance
from ordspan.estimators.targets import Labels, encode_labels, find_classes, read_labels
from ordspan.estimators.weights import row_weights
from ordspan.learners import Learner
from ordspan.learners.checks import check_weights
from ordspan.learners.rows import FLOATS, as_rows, is_sparse
from ordspan.learners.state import Locked, with_memory


@contextmanager
def unchanged_on_error(estimator: Any) -> Iterator[None]:
    """Restore the attributes of an estimator if the block raises; locks out other threads."""
    with estimator._lock:
        before = dict(vars(estimator))
        try:
            yield
        except BaseException:
            for name in vars(estimator).keys() - before.keys():
                del vars(estimator)[name]
            vars(estimator).update(before)
            raise


@contextmanager
def refuse_as_state(estimator: BaseEstimator) -> Iterator[None]:
    """Name the estimator that cannot take a state, whatever is wrong with it."""
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError, ArithmeticError) as error:
        raise ValueError(
            f"cannot restore this {type(estimator).__name__} ({error}); it is damaged, or was "
            "written by another version of ordspan"
        ) from None


class Prepared(NamedTuple):
    """Validated input: rows, grades from lowest to highest, ranks of the labels, weights."""

    X: Any
    classes: NDArray[Any]
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]
    weight: NDArray[np.float64] | None


class BaseOrdinal(Locked, ClassifierMixin, BaseEstimator):
    """Base of all estimators; subclasses define parameters, the learner and ``fit``."""

    max_iter: int
    classes: Any
    class_weight: Any = None
    random_state: Any
    verbose: int = 0
    classes_: NDArray[Any]
    learner_: Learner
    _fitted_numbers: tuple[str, ...] = ()  # stored in model files besides the learner

    def _make_learner(self, n_features: int, n_classes: int) -> Learner:
        raise NotImplementedError("subclasses must create their learner")

    def _check_fit_parameters(self) -> None:
        if not isinstance(self.max_iter, numbers.Integral) or self.max_iter < 1:
            raise ValueError(f"max_iter must be a whole number >= 1, got {self.max_iter!r}")
        if not isinstance(self.verbose, numbers.Integral) or self.verbose < 0:
            raise ValueError(f"verbose must be a whole number >= 0, got {self.verbose!r}")

    def _flag(self, name: str) -> bool:
        """A parameter that is True or False."""
        value = getattr(self, name)
        if not isinstance(value, bool | np.bool_ | numbers.Integral):
            raise ValueError(f"{name} must be True or False, got {value!r}")
        return bool(value)

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """X as a float matrix; NaN and infinity are detected during learning."""
        if not reset and self._needs_no_check(X):
            return X
        if is_sparse(X):
            X = as_rows(X)  # before scikit-learn converts possibly invalid matrices
        refuse_text_columns(X)
        return validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=FLOATS, ensure_all_finite=False
        )

    def _needs_no_check(self, X: Any) -> bool:
        """Whether scikit-learn would return X unchanged; its check costs more than an update."""
        return (
            type(X) is np.ndarray
            and X.dtype in FLOATS
            and X.shape[1:] == (self.n_features_in_,)
            and X.shape[0] > 0
            and not hasattr(self, "feature_names_in_")
        )

    def _ends(
        self,
        X: Any,
        labels: Labels,
        classes: NDArray[Any],
        sample_weight: Any,
        *,
        fitted: bool = False,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64] | None]:
        lower, upper = encode_labels(labels, classes, fitted=fitted)
        if sample_weight is None:
            return lower, upper, None
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        return lower, upper, weight

    def _prepared(self, X: Any, y: Any, sample_weight: Any) -> Prepared:
        """Validated input of ``fit``."""
        self._check_fit_parameters()
        X = self._checked(X, reset=True)
        labels = read_labels(y)
        classes = find_classes(labels, self.classes)
        lower, upper, weight = self._ends(X, labels, classes, sample_weight)
        weight = self._weighted(weight, lower, upper, classes)
        if weight is not None and not weight.any():
            raise ValueError("class_weight and sample_weight are zero for every row")
        return Prepared(X, classes, lower, upper, weight)

    def _weighted(
        self, weight: Any, lower: NDArray[np.int64], upper: NDArray[np.int64], classes: NDArray[Any]
    ) -> Any:
        """Weights of rows times their ``class_weight``; None if all are 1."""
        if self.class_weight is None:
            return weight
        by_grade = row_weights(self.class_weight, lower, upper, classes, weight)
        return by_grade if weight is None else weight * by_grade

    def from_learner(
        self,
        learner: Learner,
        classes: NDArray[Any],
        *,
        n_iter: int,
        feature_names: Any = None,
        fitted: Mapping[str, Any] | None = None,
    ) -> Self:
        """Turn this into the fitted estimator of a learner.

        Parameters
        ----------
        learner : Learner
            The trained learner; becomes ``learner_`` without a copy.
        classes : array of shape (K,)
            The grades from lowest to highest.
        n_iter : int
            Passes that were made.
        feature_names : sequence of str, optional
            Names of the features.
        fitted : mapping, optional
            Other fitted attributes by name.

        Returns
        -------
        self
            The estimator itself.
        """
        self.classes_ = classes
        self.n_features_in_ = learner.n_features
        if feature_names is not None:
            self.feature_names_in_ = np.asarray(feature_names, dtype=object)
        self.n_iter_ = n_iter
        for name, value in (fitted or {}).items():
            setattr(self, name, value)
        self.learner_ = learner
        self.__dict__.pop("_learned_with", None)  # belongs to the previous learner
        return self

    def __copy__(self) -> Self:
        copied = type(self).__new__(type(self))
        copied.__dict__.update(super().__getstate__())
        if self.__sklearn_is_fitted__():
            copied.learner_ = deepcopy(self.learner_)  # partial_fit changes it in place
        return copied

    def __getstate__(self) -> dict[str, Any]:
        """Attributes for a pickle or skops, with the numbers of the learner in its place."""
        state: dict[str, Any] = {**super().__getstate__()}
        state.pop("_learned_with", None)  # compared by identity
        if self.__sklearn_is_fitted__():
            self.check_settings_unchanged()
            state["learner_"] = self.learner_.memory
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore attributes; numbers are checked before compiled code can see them."""
        with refuse_as_state(self):
            super().__setstate__(state)
            if self.__sklearn_is_fitted__():
                self.classes_ = check_classes(self.classes_)
                memory = np.array(state["learner_"])  # a copy: nobody else can change it
                shape = operator.index(self.n_features_in_), self.classes_.size
                self.learner_ = with_memory(self._make_learner, memory, *shape)

    def check_settings_unchanged(self) -> None:
        """Refuse settings that the learner was not made with and cannot take over."""
        as_set = self._make_learner(self.n_features_in_, self.classes_.size)
        if not self.learner_.same_space(as_set):
            raise ValueError(
                f"{as_set.fixed} of the model have changed since it was fitted; restore them, or "
                "call fit before saving it"
            )

    def _names(self) -> Any:
        return getattr(self, "feature_names_in_", None)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "learner_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # a single score with ordered thresholds cannot separate unordered classes
        tags.classifier_tags.poor_score = True
        return tags

    @property
    def coef_(self) -> NDArray[np.float64]:
        """Weights of the features."""
        check_is_fitted(self)
        return self.learner_.weights

    def _ranks(self, X: Any) -> NDArray[np.int64]:
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        return self.learner_.predict_many(X, feature_names=self._names())

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the grade of every row.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n, d)
            Features, as in ``fit``.

        Returns
        -------
        ndarray of shape (n,)
            One of ``classes_`` for every row.
        """
        ranks = self._ranks(X)
        return self.classes_[ranks - 1]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Minus the mean distance in ranks from the prediction to the label's range.

        0 is perfect; larger is better.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n, d)
            Features, as in ``fit``.
        y : array-like of shape (n,) or (n, 2)
            Exact labels, or inclusive ranges ``[lower, upper]``.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows in the mean.

        Returns
        -------
        float
            Minus the mean distance.
        """
        ranks = self._ranks(X)
        labels = read_labels(y)
        check_consistent_length(ranks, labels.lower)
        lower, upper = encode_labels(labels, self.classes_, fitted=True)
        if sample_weight is not None:
            sample_weight = check_weights(sample_weight, ranks.size)
            if not sample_weight.any():
                raise ValueError("sample_weight is zero for every row")
        return -float(np.average(distance(ranks, lower, upper), weights=sample_weight))


class ThresholdModel(BaseOrdinal):
    """One score and sorted thresholds."""

    @property
    def thresholds_(self) -> NDArray[np.float64]:
        """Sorted thresholds between neighbouring grades, (K - 1,)."""
        check_is_fitted(self)
        return self.learner_.thresholds

    def latent(self, X: Any) -> NDArray[np.float64]:
        """Score of every row on the scale of ``thresholds_``.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n, d)
            Features, as in ``fit``.

        Returns
        -------
        ndarray of shape (n,)
            The scores w.x.
        """
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        return self.learner_.latent(X, feature_names=self._names())

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """How far each row is inside each grade's band of scores, (n, K).

        Positive for the predicted grade only, so the argmax is ``predict``; minus the distance to
        the band for the others. With two grades the shape is (n,), positive for the second one,
        as in scikit-learn.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n, d)
            Features, as in ``fit``.

        Returns
        -------
        ndarray of shape (n, K) or (n,)
            Larger is further inside.
        """
        score = self.latent(X)
        tiny = np.finfo(np.float64).tiny  # a score on a threshold belongs to the grade above
        if self.classes_.size == 2:
            margin = score - self.thresholds_[0]
            return np.where(margin == 0.0, tiny, margin)
        edges = np.concatenate([[-np.inf], self.thresholds_, [np.inf]])
        inside = np.minimum(score[:, None] - edges[:-1], edges[1:] - score[:, None])
        ranks = np.searchsorted(self.thresholds_, score, side="right")
        rows = np.arange(score.size)
        inside[rows, ranks] = np.maximum(inside[rows, ranks], tiny)
        return inside


def refuse_text_columns(X: Any) -> None:
    """Raise an error for the first column of a data frame that is not numeric."""
    if not (hasattr(X, "columns") and hasattr(X, "dtypes")):
        return
    for name, dtype in zip(X.columns, X.dtypes, strict=True):
        if str(dtype).lower() in ("object", "str", "string", "category", "categorical", "enum"):
            values = np.asarray(X[name])
            try:
                values.astype(np.float64)
            except (TypeError, ValueError):
                raise ValueError(
                    f"column {name!r} of X has dtype {dtype}, such as {values[:1].tolist()}, which "
                    "cannot be converted to float; encode it first, for example with OneHotEncoder"
                ) from None
