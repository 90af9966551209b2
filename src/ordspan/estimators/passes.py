"""Learning in passes: ``fit`` and ``partial_fit`` of the online estimators."""

from __future__ import annotations

import functools
import operator
from time import perf_counter
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ordspan.core.labels import shown
from ordspan.core.losses import distance
from ordspan.estimators.base import BaseOrdinal, ThresholdModel, unchanged_on_error
from ordspan.estimators.targets import Labels, find_classes, read_labels
from ordspan.estimators.weights import refuse_balanced
from ordspan.learners import Learner
from ordspan.learners.checks import check_weights


class Trials(NamedTuple):
    """Learned rows: scores and ranks before learning, labels and weights."""

    scores: NDArray[np.float64]
    predicted: NDArray[np.int64] | None
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]
    weight: NDArray[np.float64]


class OrdinalEstimator(BaseOrdinal):
    """Base of the online estimators."""

    shuffle: bool

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
        with unchanged_on_error(self):
            X, classes, lower, upper, weight = self._prepared(X, y, sample_weight)
            learner = self._make_learner(X.shape[1], classes.size)
            examples = learner.examples(X, lower, upper, weight)
            rng = check_random_state(self.random_state)
            for number in range(1, self.max_iter + 1):
                order = rng.permutation(X.shape[0]) if self.shuffle else None
                began = perf_counter()
                ranks = learner.learn(
                    examples, order=order, predict=self.verbose > 0, feature_names=self._names()
                )
                if ranks is not None:
                    error = distance(ranks, lower, upper).mean()
                    self._print_pass(number, lower.size, error, perf_counter() - began, learner)
            return self.from_learner(learner, classes, n_iter=self.max_iter)

    def _print_pass(
        self, number: int, n_rows: int, error: float, seconds: float, learner: Learner
    ) -> None:
        """One line of progress; the error is of predictions made before learning each row."""
        support = (
            f", {learner.n_support:,} support vectors" if hasattr(learner, "n_support") else ""
        )
        print(
            f"pass {number}/{self.max_iter}: {n_rows:,} rows, mean absolute error {error:.4f}"
            f"{support}, {seconds:.2f} s"
        )

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
    ) -> Trials:
        """`partial_fit`; returns what was learned, with predictions and scores if ``scored``."""
        with unchanged_on_error(self):
            first = not self.__sklearn_is_fitted__()
            X = self._checked(X, reset=first)
            labels = read_labels(y)
            order = self._classes_for_partial_fit(labels, classes, first)
            # all-zero weights are an error in fit, but harmless in a stream
            idle = sample_weight is not None and not np.any(np.asarray(sample_weight))
            lower, upper, weight = self._ends(
                X, labels, order, None if idle else sample_weight, fitted=not first
            )
            weight = check_weights(sample_weight, X.shape[0]) if idle else weight
            shape = X.shape[1], order.size
            learner = self._make_learner(*shape) if first else self.learner_
            examples = learner.examples(X, lower, upper, weight)
            weighted = examples
            if self.class_weight is not None:
                refuse_balanced(self.class_weight, "partial_fit")
                by_grade = self._weighted(weight, lower, upper, order)
                weighted = examples._replace(weight=check_weights(by_grade, X.shape[0]))
            seen = np.empty(X.shape[0] if scored else 0)
            with learner.unchanged_on_error():
                if not first and self._parameters_changed():
                    learner.adopt_settings(self._make_learner(*shape))
                predicted = learner.learn(weighted, feature_names=self._names(), seen=seen)
            if first:
                self.from_learner(learner, order, n_iter=1)
            self._learned_with = self._parameters()
            # calibration does not use class_weight
            return Trials(seen, predicted, *examples[1:])

    def _parameters(self) -> list[Any]:
        kind: Any = type(self)
        return [vars(self)[name] for name in parameter_names(kind)]

    def _parameters_changed(self) -> bool:
        """Whether a parameter may have changed since the last ``partial_fit``."""
        before = getattr(self, "_learned_with", None)
        return before is None or not all(map(operator.is_, before, self._parameters()))

    def _classes_for_partial_fit(self, labels: Labels, given: Any, first: bool) -> NDArray[Any]:
        if first:
            given = self.classes if given is None else given
            if given is None and labels.order is None:
                raise ValueError(
                    "classes must be given in the first call of partial_fit: the first "
                    "batch may not contain every grade"
                )
            return find_classes(labels, given)
        if given is not None and not np.array_equal(np.asarray(given), self.classes_):
            raise ValueError(
                f"classes {shown(np.asarray(given))} differ from those of the first call of "
                f"partial_fit or fit, {shown(self.classes_)}; the grades of a fitted model are "
                "fixed: leave classes out, or start a new model"
            )
        return self.classes_

    @property
    def n_updates_(self) -> int:
        """Number of rows that changed the parameters."""
        check_is_fitted(self)
        return self.learner_.n_updates


@functools.cache
def parameter_names(kind: Any) -> tuple[str, ...]:
    """Parameter names of an estimator class, cached because scikit-learn's lookup is slow."""
    return tuple(kind._get_param_names())


class ThresholdEstimator(ThresholdModel, OrdinalEstimator):
    """An online estimator with one score and sorted thresholds."""
