"""Probabilities and prediction ranges for any estimator with thresholds; folds for ranges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.model_selection import KFold, check_cv
from sklearn.utils import _safe_indexing, check_random_state, get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from ordspan.core.state import Floats, Ranks
from ordspan.estimators.base import RankPredictor
from ordspan.estimators.layers import fit_weighted, latent, ranker_of
from ordspan.estimators.online import OrdinalPA, ThresholdEstimator
from ordspan.labels.ranks import encode, find_classes, read_labels
from ordspan.learners.calibration import COVERAGES, Calibration
from ordspan.learners.rows import check_weights


def can_stream(model: CalibratedOrdinal) -> bool:
    """Whether the estimator learns row by row; the reason is raised if it does not."""
    if model.estimator is None or isinstance(model.estimator, ThresholdEstimator):
        return True
    raise AttributeError(
        f"a {type(model.estimator).__name__} cannot learn row by row: call fit, or calibrate an "
        "OrdinalPA, KernelOrdinalPA or PRank, whose rows you prepare before"
    )


class CalibratedOrdinal(MetaEstimatorMixin, RankPredictor, BaseEstimator):
    """Probabilities and prediction ranges for an ordinal estimator, learned from ranges too.

    ``predict_proba`` gives the probability of every grade, and ``predict`` their median, which has
    the smallest expected distance; ``predict_interval`` gives a range of grades ``[lower, upper]``
    that contains the true grade with the requested coverage. All need only the estimator's latent
    score. ``partial_fit`` calibrates on the score of each row before it is learned, so a stream
    needs no held-out rows; ``fit`` calibrates on cross-validated scores.

    Parameters
    ----------
    estimator : estimator, default=None
        An `OrdinalPA`, `KernelOrdinalPA`, `OrdinalSVM` or `PRank`, alone or as the last step of a
        Pipeline. None means ``OrdinalPA()``. A `sklearn.frozen.FrozenEstimator` is not refitted,
        so all rows given to ``fit`` should be new to it.
    cv : int, splitter or iterable, default=5
        How ``fit`` splits the rows for out-of-fold scores. A number means that many folds,
        stratified by label. For folds by groups, such as people, give
        ``list(GroupKFold(5).split(X, y, groups))``.
    coverages : sequence of float, default=(0.5, 0.8, 0.9, 0.95, 0.99)
        The coverages available in ``predict_interval``.
    labels : {"expected", "contain"}, default="expected"
        What counts as a miss if the label is a range. "expected": the probability, given the
        label, of its part outside the predicted range; valid if the probabilities are, and if a
        label's range is not informative about the true grade beyond containing it. "contain":
        any part of the label outside; valid for all labels that contain the true grade, but the
        predicted ranges are wider.
    n_jobs : int, default=None
        Number of folds fitted in parallel.
    random_state : int, RandomState or None, default=None
        Seed of the folds, and of the default estimator.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator.
    calibration_ : Calibration
        Slope, cuts, and widths of the ranges; see `ordspan.learners.Calibration`.
    classes_ : ndarray of shape (K,)
        The grades from lowest to highest.
    n_features_in_ : int
        Number of features.

    Notes
    -----
    In a stream, for any sequence of rows, the share of misses exceeds the requested one by at most
    ``(B + 1) / T**0.4`` after T rows, where B is the largest distance in log-odds of a label from
    the predicted score. In a batch, exchangeable rows are missed with at most the requested
    probability if the scores come from a single estimator that has not seen them. See the guide on
    probabilities and ranges.

    Examples
    --------
    >>> import numpy as np
    >>> import ordspan
    >>> from ordspan import CalibratedOrdinal
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 2))
    >>> grade = np.searchsorted([-1.0, 0.0, 1.0], X[:, 0] + 0.3 * rng.normal(size=1000))
    >>> y = ordspan.coarsen(grade, 0.5, random_state=0)  # half of the labels are ranges
    >>> model = CalibratedOrdinal().partial_fit(X, y, classes=[0, 1, 2, 3])
    >>> new = [[-0.5, 0.0], [-0.1, 0.0]]
    >>> model.predict(new)
    array([1, 1])
    >>> model.predict_proba(new).round(1)
    array([[0.1, 0.9, 0. , 0. ],
           [0. , 0.7, 0.3, 0. ]])
    >>> model.predict_interval(new, coverage=0.9)
    array([[1, 1],
           [1, 2]])
    """

    _parameter_constraints = {"cv": ["cv_object"]}  # noqa: RUF012
    _learned = "calibration_"
    estimator_: Any
    calibration_: Calibration

    def __init__(
        self,
        estimator: Any = None,
        *,
        cv: Any = 5,
        coverages: Any = COVERAGES,
        labels: str = "expected",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.cv = cv
        self.coverages = coverages
        self.labels = labels
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _new_estimator(self) -> Any:
        default = OrdinalPA(random_state=self.random_state)
        return default if self.estimator is None else clone(self.estimator)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the estimator to all rows, and calibrate it on cross-validated scores.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n, d)
            Features, as the estimator takes them.
        y : array-like of shape (n,) or (n, 2)
            Exact labels, or inclusive ranges ``[lower, upper]``, in your own grades.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows; 0 leaves a row out.

        Returns
        -------
        self
            The estimator itself, unchanged if an error is raised.
        """
        with self.unchanged_on_error():
            self._validate_params()
            estimator = self._new_estimator()
            ranker_of(estimator)
            fit_weighted(estimator, X, y, sample_weight)
            ranker = ranker_of(estimator)
            ends = np.column_stack(encode(read_labels(y)[0], ranker.classes_))
            check_consistent_length(X, ends)  # a frozen estimator has not checked
            weight = check_weights(1.0 if sample_weight is None else sample_weight, len(ends))
            calibration = calibrate_on_folds(self, ranker, X, ends, weight)
            calibration.use_thresholds(ranker.thresholds_)
            return self.from_parts(estimator, calibration)

    @available_if(can_stream)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn the rows once, in order, and calibrate on each before it is learned.

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
            Weights of the rows; 0 leaves a row out.

        Returns
        -------
        self
            The estimator itself, unchanged if an error is raised.
        """
        with self.unchanged_on_error():
            first = not self.__sklearn_is_fitted__()
            estimator = self._new_estimator() if first else self.estimator_
            with estimator.unchanged_on_error():
                if first:
                    self._validate_params()
                else:
                    check_calibration_unchanged(self)
                if not first and self.estimator is not None:
                    if type(self.estimator) is not type(estimator):
                        raise ValueError(
                            f"the estimator cannot change from {estimator!r} to "
                            f"{self.estimator!r} during learning; clone the model and start over"
                        )
                    estimator.set_params(**self.estimator.get_params(deep=False))
                trials = estimator._learn_once(X, y, classes, sample_weight, scored=True)
            if first:
                calibration = Calibration(estimator.classes_.size, self.coverages, self.labels)
                self.from_parts(estimator, calibration)
            self.calibration_.observe(*trials)
            return self

    def from_parts(self, estimator: Any, calibration: Calibration) -> Self:
        """Turn this into the calibrated form of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            A fitted estimator of the same type as ``estimator``; not copied.
        calibration : Calibration
            The calibration of its scores; not copied.

        Returns
        -------
        self
            The estimator itself.
        """
        self.estimator_ = estimator
        self.calibration_ = calibration
        self.classes_ = ranker_of(estimator).classes_
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(estimator, name):
                setattr(self, name, getattr(estimator, name))
        return self

    def _restore(self, state: Any) -> None:
        n_classes = ranker_of(self.estimator_).classes_.size
        self.from_parts(self.estimator_, Calibration.from_state(state, n_classes))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(OrdinalPA() if self.estimator is None else self.estimator)
        tags.input_tags.sparse = inner.input_tags.sparse
        return tags

    def _ranks(self, X: Any) -> Ranks:
        scores = self.latent(X)
        return self.calibration_.predict(scores)

    def latent(self, X: Any) -> NDArray[np.float64]:
        """Latent score of every row.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n, d)
            Features, as in ``fit``.

        Returns
        -------
        ndarray of shape (n,)
            The scores.
        """
        check_is_fitted(self)
        return latent(self.estimator_, X)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probability of every grade, (n, K).

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n, d)
            Features, as in ``fit``.

        Returns
        -------
        ndarray of shape (n, K)
            Rows sum to 1; columns are in the order of ``classes_``.
        """
        scores = self.latent(X)
        return self.calibration_.probabilities(scores)

    def predict_interval(self, X: Any, coverage: float = 0.9) -> NDArray[Any]:
        """Range of grades ``[lower, upper]`` that contains the true one with a given coverage.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n, d)
            Features, as in ``fit``.
        coverage : float, default=0.9
            One of ``coverages``.

        Returns
        -------
        ndarray of shape (n, 2)
            Inclusive ranges of grades, in the form that ``fit`` takes for labels. They always
            contain the predicted grade, and the range at a larger coverage contains that at a
            smaller one.
        """
        scores = self.latent(X)  # refuses a model that is not fitted
        ends = self.calibration_.ranges(scores, coverage)
        return np.column_stack([self.classes_[ranks - 1] for ranks in ends])


def check_calibration_unchanged(model: CalibratedOrdinal) -> None:
    """Refuse a model without a calibration, and coverages or labels that differ from its own."""
    check_is_fitted(model)
    calibrated, current = model.calibration_, Calibration(2, model.coverages, model.labels)
    same_coverages = np.array_equal(calibrated.coverages, current.coverages)
    if not same_coverages or calibrated.labels != current.labels:
        raise ValueError(
            f"the model was calibrated for coverages={calibrated.coverages.tolist()} and "
            f"labels={calibrated.labels!r}, but they are now {current.coverages.tolist()} and "
            f"{current.labels!r}; restore them, or clone the model and start over"
        )


def calibrate_on_folds(
    model: CalibratedOrdinal, ranker: Any, X: Any, ends: Ranks, weight: Floats
) -> Calibration:
    """Fit the estimator on each fold, and calibrate on the scores of the rows left out.

    The scores of a fold are shifted so that its thresholds have the mean of the ranker's: a score
    says something only beside the thresholds, and a kernel's level depends on the number of steps.
    """
    classes, level = ranker.classes_, ranker.thresholds_.mean()
    (X,), rows = indexable(X), np.flatnonzero(weight)
    folds = make_folds(model, X, ends, rows)
    y = classes[ends - 1] if (ends[:, 0] != ends[:, 1]).any() else classes[ends[:, 0] - 1]

    def score_fold(learned: Ranks, rest: Ranks) -> tuple[Floats, ...]:
        fold_model = model._new_estimator()
        fold_ranker = ranker_of(fold_model)
        if not fold_ranker.__sklearn_is_fitted__():  # else it is frozen
            fold_ranker.set_params(classes=classes)._in_fold = True
        fit_weighted(fold_model, _safe_indexing(X, learned), y[learned], weight[learned])
        edges = ranker_of(fold_model).thresholds_
        shift = level - edges.mean()
        return latent(fold_model, _safe_indexing(X, rest)) + shift, edges + shift

    scored = Parallel(model.n_jobs, prefer="threads")(delayed(score_fold)(*fold) for fold in folds)
    scores, fold = np.full(len(ends), np.nan), np.zeros(len(ends), dtype=np.int64)
    for number, ((_, rest), (some, _)) in enumerate(zip(folds, scored, strict=True)):
        scores[rest], fold[rest] = some, number
    if left_out := rows[np.isnan(scores[rows])].tolist():
        raise ValueError(f"cv never tests row {left_out[0]}; every row must be in a test set")
    used = (part[rows] for part in (scores, *ends.T, weight))
    bands = np.array([edges for _, edges in scored])
    calibration = Calibration(classes.size, model.coverages, model.labels)
    return calibration.fit(*used, thresholds=bands, fold=fold[rows])


def make_folds(model: Any, X: Any, ends: Any, rows: Ranks) -> list[Any]:
    """Training and test rows of each fold, of those rows that count."""
    cv = model.cv
    if isinstance(cv, int | np.integer):
        if rows.size < cv:
            raise ValueError(
                f"fit needs at least {cv} rows with positive weight for {cv=} folds, got "
                f"n_samples = {rows.size}"
            )
        grades = np.arange(1, ends.max() + 2)  # one more than occur, where all are equal
        settings = {"shuffle": True, "random_state": model.random_state, "classes": grades}
        cv = StratifiedIntervalKFold(int(cv), **settings)
        return [(rows[a], rows[b]) for a, b in cv.split(rows, ends[rows])]
    numbers = np.arange(len(ends))  # a user's folds may be masks
    try:
        given = [*check_cv(cv).split(X, ends.sum(axis=1))]
    except ValueError as error:
        if "groups" not in str(error):
            raise
        raise ValueError(f"{error} Give cv=list(splitter.split(X, y, groups))") from None
    folds = ((np.intersect1d(numbers[a], rows), np.intersect1d(numbers[b], rows)) for a, b in given)
    return [fold for fold in folds if fold[1].size]


class StratifiedIntervalKFold(KFold):
    """K folds with the same mix of labels, which may be ranges.

    scikit-learn's StratifiedKFold takes exact labels only. Here the rows are sorted by the middle
    of their label's range, then by its width, and dealt out to the folds in turn. So any two test
    folds differ by at most one row: for each label, for each middle, and in total.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2.
    shuffle : bool, default=False
        Shuffle the rows of each label before splitting.
    random_state : int, RandomState or None, default=None
        Seed for shuffling.
    classes : array-like, optional
        All grades from lowest to highest. By default taken from an ordered Categorical, or else
        the sorted numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from ordspan import StratifiedIntervalKFold
    >>> y = np.array([[1, 1], [1, 2], [2, 2], [1, 1], [1, 2], [2, 2]])
    >>> for train, test in StratifiedIntervalKFold(n_splits=2).split(np.zeros((6, 1)), y):
    ...     print(test.tolist(), y[test].tolist())
    [0, 1, 2] [[1, 1], [1, 2], [2, 2]]
    [3, 4, 5] [[1, 1], [1, 2], [2, 2]]

    In a search:

    >>> from sklearn.model_selection import GridSearchCV
    >>> from ordspan import OrdinalPA
    >>> folds = StratifiedIntervalKFold(n_splits=2, shuffle=True, random_state=0)
    >>> X = y.mean(axis=1, keepdims=True)
    >>> search = GridSearchCV(OrdinalPA(random_state=0), {"C": [0.1, 1.0]}, cv=folds).fit(X, y)
    >>> search.best_score_
    np.float64(0.0)
    """

    def __init__(
        self,
        n_splits: int = 5,
        *,
        shuffle: bool = False,
        random_state: Any = None,
        classes: Any = None,
    ) -> None:
        super().__init__(n_splits, shuffle=shuffle, random_state=random_state)
        self.classes = classes

    def _iter_test_masks(self, X: Any, y: Any, groups: Any = None) -> Iterator[NDArray[np.bool_]]:
        """The rows of every fold; rows of equal labels are dealt out evenly."""
        labels, order = read_labels(y)
        try:
            grades = find_classes(labels, order, self.classes)
        except ValueError as error:
            raise ValueError(f"StratifiedIntervalKFold: {error}") from None
        lower, upper = encode(labels, grades)
        n_rows = lower.size
        shuffled, names = np.arange(n_rows), np.arange(self.n_splits)
        if self.shuffle:
            rng = check_random_state(self.random_state)
            shuffled, names = rng.permutation(shuffled), rng.permutation(names)
        shuffled = shuffled[np.lexsort((upper[shuffled], (lower + upper)[shuffled]))]
        fold = np.empty(n_rows, dtype=np.intp)
        fold[shuffled] = names[np.arange(n_rows) % self.n_splits]
        return (fold == number for number in range(self.n_splits))
