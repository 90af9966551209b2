"""The River models, and a metric: rows are dicts or data frames; features and grades may be new."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from copy import deepcopy
from numbers import Real
from reprlib import repr as short
from typing import Any

import numpy as np
from numpy.typing import NDArray
from river import base, metrics

from ordspan.core.measures import distance
from ordspan.core.rows import MAX_SQ_NORM
from ordspan.labels.grades import check_classes, sorted_grades
from ordspan.labels.ranks import is_open_value
from ordspan.learners import Calibration, Learner, LinearLearner, PRankLearner
from ordspan.learners.base import rank_among
from ordspan.learners.linear import DEFAULT_C
from ordspan.wording import shown

LIST_THEM = "in classes=[...]"


class Grades:
    """The grades from lowest to highest and their ranks 1..K; immutable.

    Parameters
    ----------
    classes : list or None
        The grades as the user listed them: then no other grade is accepted.
    order : list
        Without such a list, the grades so far from lowest to highest.
    """

    def __init__(self, classes: Any, order: Iterable[Any] = ()) -> None:
        self.given = classes is not None
        self.order = check_classes(classes).tolist() if self.given else list(order)
        self.ranks = {grade: rank for rank, grade in enumerate(self.order, start=1)}

    def read(self, y: Any) -> tuple[Grades, int, int]:
        """Lowest and highest rank of a label, and the grades with those that it adds."""
        try:
            rank = self.ranks[y]
            return self, rank, rank
        except (KeyError, TypeError):  # a range, a new grade or a mistake
            lower, upper = label_ends(y)
        grades = self
        for end in (lower, upper):
            if end is not None and not (isinstance(end, Hashable) and end in grades.ranks):
                grades = grades.with_grade(end)
        low = 1 if lower is None else grades.ranks[lower]
        high = max(1, len(grades.order)) if upper is None else grades.ranks[upper]
        if low > high:
            raise ValueError(
                f"lower end {lower!r} is above upper end {upper!r}; swap the two ends?"
            )
        return grades, low, high

    def with_grade(self, grade: Any) -> Grades:
        """These grades and a new one; an error if the user listed all grades."""
        if not isinstance(grade, str | Real | np.bool_):
            raise ValueError(f"label {grade!r} is not a grade: give a number or a string")
        is_other_kind = self.order and isinstance(grade, str) != isinstance(self.order[0], str)
        if self.given or is_other_kind:
            raise ValueError(
                f"label {grade!r} is not one of the grades {shown(np.asarray(self.order))}; "
                f"list every grade {LIST_THEM}"
            )
        order = [*self.order, grade.item() if isinstance(grade, np.generic) else grade]
        sorted_grades(np.array(order), LIST_THEM)  # refuses names and measurements
        return Grades(None, sorted(order, key=float))


def label_ends(y: Any) -> tuple[Any, Any]:
    """Lower and upper end of a label, None for an open end.

    >>> label_ends("mid"), label_ends((3, None))
    (('mid', 'mid'), (3, None))
    """
    ends = y if isinstance(y, tuple | list) else (y, y)
    if len(ends) != 2:
        raise ValueError(f"a range label is a pair (lower, upper), got {y!r}")
    if ends is not y and is_open_value(y):
        raise ValueError(
            f"label {y!r} is missing; give a range (lower, upper), or leave the example out"
        )
    lower, upper = (None if is_open_value(end) else end for end in ends)
    return lower, upper


def as_number(name: Any, value: Any) -> float:
    """The value of a feature as a float; text is refused even if it looks like a number."""
    if is_open_value(value):
        raise ValueError(
            f"feature {name!r} is {value}; leave it out, or fill it first, for example with "
            "preprocessing.StatImputer, which fills None"
        )
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"feature {name!r} is {short(value)}, not a number; encode it first, for example "
            "with preprocessing.OneHotEncoder"
        ) from None


def as_values(x: Mapping[Any, Any]) -> NDArray[np.float64]:
    """The values of a dict of features as floats that no learner refuses."""
    if x.__class__ is not dict and not isinstance(x, Mapping):
        raise TypeError(f"x must be a dict of numbers by feature name, got {type(x).__name__}")
    try:
        values = np.array(list(x.values()))
    except ValueError:  # values of different lengths
        values = np.array(None)
    if values.dtype.kind not in "fiub" or values.ndim != 1:
        values = np.array([as_number(name, value) for name, value in x.items()])
    values = values.astype(np.float64, copy=False)
    if not values @ values < MAX_SQ_NORM:
        for name, value in x.items():
            as_number(name, value)
        largest = max(x, key=lambda name: abs(x[name]))
        raise ValueError(
            f"feature {largest!r} is {x[largest]:.3g}, which overflows; scale the features, for "
            "example with preprocessing.StandardScaler"
        )
    return values


def records(X: Any) -> list[dict[Any, Any]]:
    """The rows of a data frame as dicts."""
    from pandas import DataFrame

    if not isinstance(X, DataFrame):
        raise TypeError(f"a mini-batch must be a pandas DataFrame, got {type(X).__name__}")
    if not X.columns.is_unique:
        twice = X.columns[X.columns.duplicated()][0]
        raise ValueError(f"more than one column of X is named {twice!r}; rename one of them")
    return X.to_dict("records") or [{}] * len(X)


def each_row(function: Callable[..., Any], *columns: Any) -> list[Any]:
    """What a function makes of each row; its errors begin with the number of the row."""
    results = []
    for number, row in enumerate(zip(*columns, strict=True)):
        try:
            results.append(function(*row))
        except ValueError as reason:
            raise ValueError(f"row {number}: {reason}") from None
    return results


class OrdinalClassifier(base.MiniBatchClassifier):
    """Base of the models; subclasses define the parameters and the learner.

    The state is four attributes: the column of each feature, the grades, a learner with room for at
    least as many columns, and its calibration; the last two are None before the second grade. They
    are replaced together after everything that can fail, so an error leaves the model unchanged.
    """

    classes: Any

    def __init__(self) -> None:
        self._make_learner(1, 2)  # checks the parameters
        self._columns: dict[Any, int] = {}
        self._grades = Grades(self.classes)
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
        weights = [0.0] * len(self._columns) if self._learner is None else self._learner.weights
        return dict(zip(self._columns, map(float, weights), strict=False))  # the rest is spare

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
        learner, calibration = self._grown(len(self._columns) + len(new), grades)
        if learner is not None and calibration is not None:
            score = learner.latent_one(values, columns)
            learner.learn_one(values, low, high, columns)
            calibration.observe_one(score, low, high)
        self._columns.update(new)
        self._learner, self._calibration, self._grades = learner, calibration, grades

    def predict_one(self, x: dict[Any, Any], **kwargs: Any) -> Any:
        """The grade of one example; None before anything was learned.

        It is the median of the probabilities; without averaging, which is for streams that drift,
        that of the learner's thresholds, which follow sooner.
        """
        score, order = self._score(x), self._grades.order
        if self._learner is None or self._calibration is None:
            return None if self._grades.given or not order else order[0]
        if getattr(self, "average", False):
            rank = self._calibration.predict([score])[0]
        else:
            rank = rank_among(self._learner.thresholds, np.array([score]))[0]
        return order[rank - 1]

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
        score, order = self._score(x), self._grades.order
        if self._calibration is None:
            return {grade: 1.0 / len(order) for grade in order}
        chances = self._calibration.probabilities([score])[0].tolist()
        return dict(zip(order, chances, strict=True))

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn the rows of a data frame one by one, as `learn_one` does, or none of them.

        Parameters
        ----------
        X : DataFrame
            One column per feature.
        y : Series or two-column DataFrame
            Grades or (lower, upper) pairs, one per row; or the two ends in two columns.
        """
        rows = records(X)
        labels = list(y.itertuples(False, None) if hasattr(y, "columns") else y)
        if len(labels) != len(rows):
            raise ValueError(f"X has {len(rows)} rows, but there are {len(labels)} labels")
        model = deepcopy(self)
        each_row(model.learn_one, rows, labels)
        self.__dict__.update(model.__dict__)

    def predict_many(self, X: Any) -> Any:
        """The grade of every row of a data frame, as a Series; None before anything was learned."""
        import pandas as pd

        return pd.Series(each_row(self.predict_one, records(X)), index=X.index)

    def predict_proba_many(self, X: Any) -> Any:
        """The probability of every grade for every row of a data frame, one column per grade."""
        import pandas as pd

        chances = each_row(self.predict_proba_one, records(X))
        return pd.DataFrame(chances, index=X.index, columns=self._grades.order)

    def _score(self, x: Any) -> Any:
        """Score of an example; None before there is a learner."""
        values, learner = as_values(x), self._learner
        if learner is None:
            return None
        columns, _ = self._numbered(x)
        is_old = columns < len(self._columns)
        return learner.latent_one(values[is_old], columns[is_old])

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

    def _grown(self, n_features: int, grades: Grades) -> tuple[Learner | None, Calibration | None]:
        """Learner and calibration with room for them; None before the second grade."""
        learner, calibration, n_grades = self._learner, self._calibration, len(grades.order)
        if n_grades < 2:
            return None, None
        if learner is None or calibration is None:
            return self._make_learner(max(1, n_features), n_grades), Calibration(n_grades)
        if n_features > learner.n_features:  # doubled, so that copying is rare
            learner = learner.with_features(max(n_features, 2 * learner.n_features))
        if grades is not self._grades:
            for rank, grade in enumerate(grades.order, start=1):
                if grade not in self._grades.ranks:
                    learner, calibration = learner.with_rank(rank), calibration.with_rank(rank)
        return learner, calibration


class OrdinalPA(OrdinalClassifier):
    """Ordinal regression in River from grades or ranges, by exact passive-aggressive updates.

    The score is a weighted sum of the features, without an intercept: the sorted thresholds between
    the grades take its place. Probabilities (``predict_proba_one``) are learned online. Scale the
    features, for example with ``preprocessing.StandardScaler``.

    New features may appear at any time: the model equals, to the bit, one that knew them from the
    start. So may new grades, unless ``classes`` is given. A new grade between two others starts
    with an empty band of scores on the threshold between them, so no prediction changes until it is
    learned; one beyond the outermost starts one margin away from it. Before the second grade there
    is nothing to learn. An open end extends to the outermost grade.

    Parameters
    ----------
    variant : {"PA-I", "PA", "PA-II"}, default="PA-I"
        "PA" corrects each example in full; "PA-I" moves each threshold by at most C; "PA-II"
        trades the size of the move against the squared remaining violation.
    C : float, default=0.1
        Aggressiveness of PA-I and PA-II; ignored by PA, which has none.
    average : bool, default=True
        Predict with the average of all iterates instead of the last one. If the stream drifts, the
        last one follows faster.
    balanced : bool, default=True
        Measure the thresholds on the scale of the scores; see `ordspan.OrdinalPA`.
    classes : list, optional
        All grades from lowest to highest; required if they are names. By default, the whole and
        half numbers seen so far, sorted; strings may spell them.

    References
    ----------
    N. Manwani and M. Chandra, "Exact Passive-Aggressive Algorithms for Learning to Rank Using
    Interval Labels".

    Examples
    --------
    >>> from ordspan.river import OrdinalPA
    >>> from river import preprocessing
    >>> model = preprocessing.StandardScaler() | OrdinalPA(classes=["low", "mid", "high"])
    >>> for _ in range(20):
    ...     model.learn_one({"heat": 10.0}, "low")
    ...     model.learn_one({"heat": 20.0, "wind": 1.0}, "mid")
    ...     model.learn_one({"heat": 25.0}, ("mid", None))  # at least mid
    ...     model.learn_one({"heat": 30.0}, "high")
    >>> [model.predict_one({"heat": heat}) for heat in (10.0, 20.0, 30.0)]
    ['low', 'mid', 'high']
    """

    def __init__(
        self,
        variant: str = "PA-I",
        C: float = DEFAULT_C,
        average: bool = True,
        balanced: bool = True,
        classes: Any = None,
    ) -> None:
        self.variant = variant
        self.C = C
        self.average = average
        self.balanced = balanced
        self.classes = classes
        super().__init__()

    def _make_learner(self, n_features: int, n_classes: int) -> Learner:
        settings = (self.variant, self.C, bool(self.average))
        return LinearLearner(n_features, n_classes, *settings, balanced=bool(self.balanced))


class PRank(OrdinalClassifier):
    """PRank (Crammer & Singer, 2001) in River, from grades or ranges.

    New features and grades may appear at any time, as in `OrdinalPA`.

    Parameters
    ----------
    classes : list, optional
        All grades from lowest to highest, as in `OrdinalPA`.

    Examples
    --------
    >>> from ordspan.river import PRank
    >>> model = PRank()
    >>> for _ in range(10):
    ...     for heat, grade in ((-1.0, 1), (0.0, 2), (1.0, 3)):
    ...         model.learn_one({"heat": heat}, grade)
    >>> [model.predict_one({"heat": heat}) for heat in (-1.0, 0.0, 1.0)]
    [1, 2, 3]
    """

    def __init__(self, classes: Any = None) -> None:
        self.classes = classes
        super().__init__()

    def _make_learner(self, n_features: int, n_classes: int) -> Learner:
        return PRankLearner(n_features, n_classes)


class IntervalMAE(metrics.base.MeanMetric, metrics.base.ClassificationMetric):
    """Mean distance from the predicted grade to the label, 0 inside a range.

    River's own ``metrics.MAE`` takes regression models only, and no ranges.

    Parameters
    ----------
    classes : list, optional
        All grades from lowest to highest: the distance is then counted in grades. By default, the
        labels must be numbers, and the distance is their difference.

    Examples
    --------
    >>> from ordspan.river import IntervalMAE
    >>> metric = IntervalMAE()
    >>> metric.update((2, 4), 3)
    >>> metric.update((4, None), 3)  # at least 4
    >>> metric
    IntervalMAE: 0.5
    """

    _fmt = ",.6f"

    def __init__(self, classes: Any = None) -> None:
        self.classes = classes
        self._grades = None if classes is None else Grades(classes)
        super().__init__()

    @property
    def bigger_is_better(self) -> bool:
        """False: the smaller the distance, the better."""
        return False

    def _eval(self, y_true: Any, y_pred: Any) -> float:
        if y_pred is None:
            raise ValueError(
                "the prediction is None: a model predicts nothing before its first label; update "
                "the metric from the first prediction on"
            )
        if self._grades is None:
            lower, upper = label_ends(y_true)
            low = -np.inf if lower is None else lower
            high = np.inf if upper is None else upper
        else:
            _, low, high = self._grades.read(y_true)
            _, y_pred, _ = self._grades.read(y_pred)
        try:
            return float(distance(y_pred, low, high))
        except TypeError:
            raise ValueError(
                f"label {y_true!r} and prediction {y_pred!r} are not both numbers; list named "
                "grades from lowest to highest: IntervalMAE(classes=[...])"
            ) from None
