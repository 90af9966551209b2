"""The base class of the River models."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from river import base

from ordspan.labels.grades import check_classes
from ordspan.learners import Calibration, Learner
from ordspan.learners.base import rank_among
from ordspan.learners.rows import RowValueError
from ordspan.river.grades import Grades
from ordspan.river.rows import as_values, read_frame, with_columns

OVERFLOW = (
    "the score overflows, because the weights have grown too large; scale the features, for "
    "example with preprocessing.StandardScaler, or choose a smaller C"
)


def _finite(call: Callable[..., Any], *rows: Any, **options: Any) -> Any:
    """What a learner returns for rows that are checked: only its own weights can be too large."""
    try:
        return call(*rows, **options)
    except RowValueError:
        raise ValueError(OVERFLOW) from None


class OrdinalClassifier(base.MiniBatchClassifier):
    """Base of the models; subclasses define the parameters and the learner.

    The state is four attributes: the column of each feature, the grades, a learner with room for at
    least as many columns, and its calibration; the last two are None before the second grade. They
    are replaced together after everything that can fail, so an error leaves the model unchanged.
    """

    classes: Any

    def __init__(self) -> None:
        self._make_learner(1, 2)  # checks the parameters
        order = [] if self.classes is None else check_classes(self.classes).tolist()
        self._columns: dict[Any, int] = {}
        self._grades = Grades(order, given=self.classes is not None)
        self._learner: Learner | None = None
        self._calibration: Calibration | None = None

    def _make_learner(self, n_features: int, n_classes: int) -> Learner:
        raise NotImplementedError("subclasses must create their learner")

    @property
    def _multiclass(self) -> bool:
        return True

    @property
    def weights(self) -> dict[Any, float]:
        """The weight of every feature seen so far."""
        if self._learner is None:
            return dict.fromkeys(self._columns, 0.0)
        weights = self._learner.weights[: len(self._columns)]  # the rest is spare
        return dict(zip(self._columns, weights.tolist(), strict=True))

    @property
    def thresholds(self) -> list[float]:
        """The sorted thresholds between neighbouring grades."""
        return [] if self._learner is None else self._learner.thresholds.tolist()

    @property
    def grades(self) -> list[Any]:
        """The grades from lowest to highest: those given, or those seen so far."""
        return list(self._grades.order)

    def learn_one(self, x: dict[Any, Any], y: Any) -> None:
        """Learn one example.

        Parameters
        ----------
        x : dict
            Numbers by feature name; a new feature starts with weight 0. A row without features has
            score 0, and its step moves only the thresholds.
        y : grade or (lower, upper)
            A number or a string, or a range of them, both ends included; None is an open end.
        """
        values = as_values(x)
        columns, new = self._numbered(x)
        grades, low, high = self._grades.read(y)
        n_features = len(self._columns) + len(new)
        learner, calibration = self._grown(
            self._learner, self._calibration, n_features, self._grades, grades
        )
        if learner is not None and calibration is not None:
            score = _finite(learner.latent_sparse, values, columns)
            _finite(learner.learn_sparse, values, columns, low, high)
            calibration.observe_one(score, low, high)
        self._columns.update(new)
        self._learner, self._calibration, self._grades = learner, calibration, grades

    def predict_one(self, x: dict[Any, Any], **kwargs: Any) -> Any:
        """The grade of one example; None before anything was learned.

        It is the median of the probabilities; without averaging, which is for streams that drift,
        that of the learner's thresholds, which follow sooner.
        """
        return self._predicted([self._score(x)])[0]

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """The probability of every grade known so far, by grade.

        Probabilities are learned online, from the score of each example before it is learned. The
        grade of `predict_one` is their median, or close to it, and need not be the most probable
        one.

        Parameters
        ----------
        x : dict
            Numbers by feature name.

        Returns
        -------
        dict
            Probabilities that sum to 1; empty before the first grade.
        """
        chances = self._probabilities([self._score(x)])[0].tolist()
        return dict(zip(self._grades.order, chances, strict=True))

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn the rows of a data frame one by one, as `learn_one` does.

        Parameters
        ----------
        X : DataFrame
            One column per feature.
        y : Series or two-column DataFrame
            Grades or (lower, upper) pairs, one per row; or the two ends in two columns.
        """
        rows = read_frame(X)
        labels = list(y.itertuples(False, None) if hasattr(y, "columns") else y)
        if len(labels) != rows.shape[0]:
            raise ValueError(f"X has {rows.shape[0]} rows, but there are {len(labels)} labels")
        columns, new = self._numbered(X.columns)
        n_features = len(self._columns) + len(new)
        grades, runs = self._grades, [(0, self._grades)]
        ends = []
        for row, label in enumerate(labels):
            try:
                grown, *ranks = grades.read(label)
            except ValueError as reason:
                raise ValueError(f"row {row}: {reason}") from None
            if grown is not grades:
                grades = grown
                runs.append((row, grades))
            ends.append(ranks)
        low, high = np.array(ends, dtype=np.int64).reshape(-1, 2).T
        # copies, because a later row may be refused
        learner = self._learner and self._learner.with_features(self._learner.n_features)
        calibration = deepcopy(self._calibration)
        before = self._grades
        for (start, after), (stop, _) in pairwise([*runs, (rows.shape[0], grades)]):
            learner, calibration = self._grown(learner, calibration, n_features, before, after)
            before = after
            if learner is not None and start < stop:
                moved = with_columns(rows[start:stop], columns, learner.n_features)
                part = low[start:stop], high[start:stop]
                _finite(learner.learn_many, moved, *part, calibration=calibration)
        self._columns.update(new)
        self._learner, self._calibration, self._grades = learner, calibration, grades

    def predict_many(self, X: Any) -> Any:
        """The grade of every row of a data frame, as a Series; None before anything was learned."""
        import pandas as pd

        return pd.Series(self._predicted(self._scores(X)), index=X.index)

    def predict_proba_many(self, X: Any) -> Any:
        """The probability of every grade for every row of a data frame, one column per grade."""
        import pandas as pd

        chances = self._probabilities(self._scores(X))
        return pd.DataFrame(chances, index=X.index, columns=self._grades.order)

    def _score(self, x: Any) -> Any:
        """Score of an example; None before there is a learner."""
        values, learner = as_values(x), self._learner
        if learner is None:
            return None
        columns, new = self._numbered(x)
        if new:
            known = columns < len(self._columns)
            values, columns = values[known], columns[known]
        return _finite(learner.latent_sparse, values, columns)

    def _scores(self, X: Any) -> Any:
        """Score of each row of a data frame; None before there is a learner."""
        rows, learner = read_frame(X), self._learner
        if learner is None:
            return [None] * len(X)
        columns, _ = self._numbered(X.columns)
        return _finite(learner.latent, with_columns(rows, columns, learner.n_features))

    def _predicted(self, scores: Any) -> list[Any]:
        """The grade of each score; without a learner the only grade seen so far, if any."""
        order = self._grades.order
        if self._learner is not None and self._calibration is not None:
            scores = np.asarray(scores, dtype=np.float64)
            if getattr(self, "average", False):
                ranks = self._calibration.predict(scores)
            else:
                ranks = rank_among(self._learner.thresholds, scores)
            return [order[rank - 1] for rank in ranks.tolist()]
        return [None if self._grades.given or not order else order[0]] * len(scores)

    def _probabilities(self, scores: Any) -> NDArray[np.float64]:
        """The probabilities of the grades for each score; equal ones before there is a learner."""
        if self._calibration is not None:
            return self._calibration.probabilities(scores)
        n_grades = len(self._grades.order)
        return np.full((len(scores), n_grades), 1.0 / max(1, n_grades))

    def _numbered(self, names: Any) -> tuple[NDArray[np.int64], dict[Any, int]]:
        """The columns of some features, and by name those of the features that are new."""
        column_of, new = self._columns, {}
        try:
            columns = [column_of[name] for name in names]
        except KeyError:
            unknown = (name for name in names if name not in column_of)
            new = {name: len(column_of) + i for i, name in enumerate(unknown)}
            columns = [new[name] if name in new else column_of[name] for name in names]
        return np.array(columns, dtype=np.int64), new

    def _grown(
        self,
        learner: Learner | None,
        calibration: Calibration | None,
        n_features: int,
        before: Grades,
        after: Grades,
    ) -> tuple[Learner | None, Calibration | None]:
        """Both with room for all features and grades; None before the second grade."""
        n_grades = len(after.order)
        if n_grades < 2:
            return None, None
        if learner is None or calibration is None:
            return self._make_learner(max(1, n_features), n_grades), Calibration(n_grades)
        if n_features > learner.n_features:  # doubled, so that copying is rare
            learner = learner.with_features(max(n_features, 2 * learner.n_features))
        if after is not before:
            for rank, grade in enumerate(after.order, start=1):
                if grade not in before.ranks:
                    learner, calibration = learner.with_rank(rank), calibration.with_rank(rank)
        return learner, calibration
