"""The base of the estimators: the door where X, y and weights are checked, and predictions."""

import operator
from collections.abc import Callable, Mapping
from copy import deepcopy
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.sparsefuncs import mean_variance_axis
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from ordspan.clock import compiling
from ordspan.core.measures import distance
from ordspan.core.rows import Rows
from ordspan.core.state import Floats, Ranks
from ordspan.labels.grades import check_classes
from ordspan.labels.ranks import Labels, encode, find_classes, read_labels
from ordspan.learners import Learner
from ordspan.learners.base import Locked, rank_among, with_state
from ordspan.learners.batch import LOSSES
from ordspan.learners.rows import FLOATS, as_matrix, check_weights, is_sparse, make_rows
from ordspan.wording import shown, warn

CONSTRAINTS: dict[str, Any] = {
    "C": [Interval(Real, 0, None, closed="neither")],
    "average": ["boolean"],
    "balanced": ["boolean"],
    "gamma": [StrOptions({"distance", "scale", "auto"}), Interval(Real, 0, None, closed="neither")],
    "loss": [StrOptions({*LOSSES})],
    "tol": [Interval(Real, 0, None, closed="neither")],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "shuffle": ["boolean"],
    "classes": [None, "array-like"],
    "class_weight": [None, dict, StrOptions({"balanced"})],
    "random_state": ["random_state"],
}
"""What a parameter may be, in every estimator that has it; learners check the others."""
UNEQUAL, OFF_CENTRE = 1e3, 30.0
"""Features whose sizes differ by more than the factor UNEQUAL, or that lie further than OFF_CENTRE
times their spread from 0, are reported: steps follow the large ones."""
SAMPLE = 1000  # rows, evenly spaced, that the sizes of features are taken from


class RankPredictor(Locked, ClassifierMixin):
    """Predicts the grades of ranks, and is scored by the distance in ranks.

    In a pickle or skops file, what it has learned is an array of numbers, which is checked before
    compiled code can see it.
    """

    classes_: NDArray[Any]
    _learned: str  # the attribute with what was learned, in its ``state``
    _ranks: Callable[[Any], Ranks]
    _restore: Callable[[Any], object]  # makes the attribute from its state

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, self._learned)

    def __copy__(self) -> Self:
        return deepcopy(self)  # partial_fit changes what was learned in place

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = {**super().__getstate__()}
        state.pop("_learned_with", None)  # compared by identity
        if self.__sklearn_is_fitted__():
            state[self._learned] = getattr(self, self._learned).state
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        try:
            super().__setstate__(state)
            if self.__sklearn_is_fitted__():
                self._restore(np.array(state[self._learned]))  # a copy: nobody else can change it
        except (AttributeError, LookupError, TypeError, ValueError, ArithmeticError) as error:
            raise ValueError(
                f"cannot restore this {type(self).__name__} ({error}); it is damaged, or was "
                "written by another version of ordspan"
            ) from None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # a single score with ordered thresholds cannot separate unordered classes
        tags.classifier_tags.poor_score = True
        return tags

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the grade of every row.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n, d)
            Features, as in ``fit``.

        Returns
        -------
        ndarray of shape (n,)
            One of ``classes_`` for every row: that of the score among the thresholds, or, of a
            calibrated model, the lowest at which the probabilities add up to one half. This median
            need not be the most probable grade.
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
        labels, _ = read_labels(y)
        check_consistent_length(ranks, labels)
        lower, upper = encode(labels, self.classes_)
        weight = check_weights(sample_weight, ranks.size)
        if weight.size and not weight.any():
            raise ValueError("sample_weight is zero for every row")
        weights = weight if weight.size else None
        return -float(np.average(distance(ranks, lower, upper), weights=weights))


class BaseOrdinal(RankPredictor, BaseEstimator):
    """Base of all estimators; subclasses define parameters, the learner and ``fit``."""

    _parameter_constraints = CONSTRAINTS
    classes: Any
    class_weight: Any = None
    classes_: NDArray[Any]
    learner_: Learner
    _learned = "learner_"
    _fitted_numbers: tuple[str, ...] = ()  # stored in model files besides the learner

    def _make_learner(self, n_features: int, n_classes: int) -> Learner:
        raise NotImplementedError("subclasses must create their learner")

    def _rows_to_fit(self, X: Any, y: Any, sample_weight: Any) -> tuple[Rows, NDArray[Any]]:
        """The arguments of `fit`, checked: rows ready to learn, and the grades."""
        self._validate_params()
        X = self._checked(X, reset=True)
        labels, order = read_labels(y)
        classes = find_classes(labels, order, self.classes)
        rows = self._rows(X, labels, classes, sample_weight)
        rows = rows._replace(weight=self._weights(rows, classes))
        if rows.weight.size and not rows.weight.any():
            raise ValueError("class_weight and sample_weight are zero for every row")
        if not vars(self).get("_in_fold"):  # already warned about the whole data
            warn_of_scales(X, self._names())
        return rows, classes

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """X as a float matrix; NaN and infinity are detected during learning."""
        if not reset and self._needs_no_check(X):
            return X
        if is_sparse(X):
            X = as_matrix(X)  # before scikit-learn converts possibly invalid matrices
        refuse_text_columns(X)
        if reset:
            compiling.announce_on_terminal()
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

    def _rows(
        self, X: Any, labels: Labels, classes: NDArray[Any], sample_weight: Any = None
    ) -> Rows:
        """A checked X with the ranks of labels, and weights, as learners take them."""
        check_consistent_length(X, labels)
        weight = check_weights(sample_weight, X.shape[0])
        return make_rows(X, *encode(labels, classes), weight)

    def _weights(self, rows: Rows, classes: NDArray[Any]) -> NDArray[np.float64]:
        """Weights of rows times the mean ``class_weight`` of their grades; empty if all are 1."""
        if self.class_weight is None:
            return rows.weight
        if self.class_weight == "balanced":
            grades = balanced_weights(rows, classes.size)
        else:
            grades = given_weights(self.class_weight, classes)
        total, lower, upper = np.append(0.0, np.cumsum(grades)), rows.lower, rows.upper
        mean = (total[upper] - total[lower - 1]) / (upper - lower + 1)
        weight = np.where(lower == upper, grades[lower - 1], mean)
        return check_weights(weight * rows.weight if rows.weight.size else weight, weight.size)

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
        self.__dict__.update(fitted or {})
        self.learner_ = learner
        self.__dict__.pop("_learned_with", None)  # belongs to the previous learner
        return self

    def __getstate__(self) -> dict[str, Any]:
        if self.__sklearn_is_fitted__():
            self.check_settings_unchanged()
        return super().__getstate__()

    def _restore(self, state: Any) -> None:
        self.classes_ = check_classes(self.classes_)
        shape = operator.index(self.n_features_in_), self.classes_.size
        self.learner_ = with_state(self._make_learner, state, *shape)

    def check_settings_unchanged(self) -> None:
        """Refuse a model without a learner, and settings that it cannot take over."""
        learner = self._fitted()
        as_set = self._make_learner(self.n_features_in_, self.classes_.size)
        if not learner.is_compatible(as_set):
            raise ValueError(
                f"{as_set.fixed} of the model have changed since it was fitted; restore them, or "
                "call fit before saving it"
            )

    def _names(self) -> Any:
        return getattr(self, "feature_names_in_", None)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def coef_(self) -> NDArray[np.float64]:
        """Weights of the features, (d,), or (K, d) with one vector per class."""
        return self._fitted().weights

    def _fitted(self) -> Any:
        check_is_fitted(self)
        return self.learner_

    def _scores(self, X: Any) -> NDArray[np.float64]:
        """The scores that the learner gives to the rows of X."""
        learner, rows = self._fitted(), make_rows(self._checked(X, reset=False))
        return learner.latent(rows, feature_names=self._names())

    def _ranks(self, X: Any) -> NDArray[np.int64]:
        learner, rows = self._fitted(), make_rows(self._checked(X, reset=False))
        return learner.predict_many(rows, feature_names=self._names())


def needs_calibration(name: str) -> Any:
    """A method that is missing, with a message that says where it is."""

    def refuse(model: BaseOrdinal) -> Any:
        kind = type(model).__name__
        raise AttributeError(f"{kind} has no {name}; wrap it: CalibratedOrdinal({kind}(...))")

    return property(refuse)


class ThresholdModel(BaseOrdinal):
    """An estimator that grades by one score and sorted thresholds."""

    predict_proba = needs_calibration("predict_proba")
    predict_interval = needs_calibration("predict_interval")

    @property
    def thresholds_(self) -> NDArray[np.float64]:
        """Sorted thresholds between neighbouring grades, (K - 1,)."""
        return self._fitted().thresholds

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
        return self._scores(X)

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
        own = np.arange(score.size), rank_among(self.thresholds_, score) - 1
        inside[own] = np.maximum(inside[own], tiny)
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


def column_moments(X: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and variance of every column of a dense or sparse matrix."""
    if is_sparse(X):
        return mean_variance_axis(X.astype(np.float64), axis=0)
    return X.mean(axis=0, dtype=np.float64), X.var(axis=0, dtype=np.float64)


def warn_of_scales(X: Any, names: Any) -> None:
    """Warn of features that differ much in size, or lie far from 0: large ones drown the others."""
    sample = X[:: -(-X.shape[0] // SAMPLE)]
    with np.errstate(all="ignore"):  # values that are not finite are refused when they are learned
        means, variances = column_moments(sample)
        filled = np.ravel((sample != 0).sum(axis=0))  # a rare word is not a small number
        sizes = np.sqrt((means**2 + variances) * sample.shape[0] / filled)
        sizes = np.nan_to_num(sizes, posinf=0.0)
        offsets = np.abs(means) / np.sqrt(variances)
        varies = variances > np.finfo(np.float64).eps * means**2
    there = np.flatnonzero(varies & (sizes > 0.0))
    far = np.flatnonzero(varies & (offsets > OFF_CENTRE))
    if there.size == 0:
        return
    small, large = there[np.argmin(sizes[there])], np.argmax(sizes)

    def name(column: Any) -> str:
        return f"column {column}" + ("" if names is None else f" ({names[column]!r})")

    if sizes[large] > UNEQUAL * sizes[small]:
        why = f"{name(large)} is {sizes[large] / sizes[small]:,.0f} times as large as {name(small)}"
    elif far.size:
        why = f"{name(far[0])} is {offsets[far[0]]:,.0f} times its spread away from 0"
    else:
        return
    warn(
        f"{why}, and large features drown the others: scale them first, for example with "
        "make_pipeline(StandardScaler(), model)"
    )


def refuse_balanced(class_weight: Any, where: str) -> None:
    """Refuse "balanced" if rows come in parts, as grade frequencies are unknown."""
    if class_weight == "balanced":
        raise ValueError(
            f"class_weight='balanced' needs all rows at once, but {where} sees only some; "
            "use a dict of weights"
        )


def balanced_weights(rows: Rows, n_classes: int) -> Floats:
    """Number of rows / (number of grades that occur * rows of each grade), one per grade.

    A range counts as an equal part of a row for each of its grades.

    >>> ranks = np.array([1, 1, 1, 2])
    >>> balanced_weights(make_rows(np.ones((4, 1)), ranks, ranks), 2).round(2)
    array([0.67, 2.  ])
    """
    weight = rows.weight if rows.weight.size else np.ones(rows.lower.size)

    def per_grade(values: Any) -> Floats:
        begin, end = (np.bincount(at, values, n_classes + 1) for at in (rows.lower - 1, rows.upper))
        return np.cumsum(begin - end)[:-1]

    occurs = per_grade(weight > 0.0) > 0.0
    count = np.where(occurs, per_grade(weight / (rows.upper - rows.lower + 1)), 1.0)
    return np.where(occurs, weight.sum() / (occurs.sum() * count), 1.0)


def given_weights(class_weight: Mapping[Any, Any], classes: NDArray[Any]) -> Floats:
    """Weights of all grades, from a dict of some; the others weigh 1."""
    grades = classes.tolist()
    for grade, value in class_weight.items():
        if grade not in grades:
            raise ValueError(
                f"class_weight names {grade!r}, which is not one of the grades {shown(classes)}"
            )
        if not isinstance(value, Real) or not 0.0 <= float(value) < np.inf:
            raise ValueError(
                f"class_weight of {grade!r} must be a finite number >= 0, got {value!r}"
            )
    return np.array([float(class_weight.get(grade, 1.0)) for grade in grades])
