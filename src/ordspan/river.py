"""The River API: learn from dicts, one at a time; features and grades may turn up on the way."""

from __future__ import annotations

import numbers
import warnings
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from copy import deepcopy
from reprlib import repr as short
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

try:
    from river import base, metrics
except ModuleNotFoundError as missing:
    if missing.name != "river":
        raise
    raise ModuleNotFoundError(
        "ordspan.river needs river: pip install 'ordspan[river]'", name="river"
    ) from None

from ordspan.core.labels import check_classes, is_open_value, shown
from ordspan.core.losses import distance
from ordspan.core.rows import MAX_SQ_NORM
from ordspan.learners import Calibration, LinearLearner, PRankLearner
from ordspan.learners.checks import DEFAULT_C, RowValueError
from ordspan.learners.growing import GrowingLearner

__all__ = ["IntervalMAE", "OrdinalPA", "PRank"]


def label_ends(y: Any) -> tuple[Any, Any]:
    """Lower and upper end of a label, None where an interval is open.

    >>> label_ends("mid"), label_ends((3, None))
    (('mid', 'mid'), (3, None))
    """
    if isinstance(y, tuple | list):
        if len(y) != 2:
            raise ValueError(f"an interval label is a pair (lower, upper), got {y!r}")
        lower, upper = (None if is_open_value(end) else end for end in y)
        return lower, upper
    if is_open_value(y):
        raise ValueError(
            f"label {y!r} is missing; an exact label cannot be open: give an interval "
            "(lower, upper) or leave the example out"
        )
    return y, y


class Grades:
    """The grades from lowest to highest and their ranks 1..K; never changed, only replaced.

    Parameters
    ----------
    order : list
        The grades from lowest to highest.
    given : bool
        Whether the user listed them: then no other grade is taken.
    """

    def __init__(self, order: list[Any], given: bool) -> None:
        self.order = order
        self.given = given
        self.ranks = {grade: rank for rank, grade in enumerate(order, start=1)}

    def read(self, y: Any) -> tuple[Grades, int, int]:
        """Lowest and highest rank of a label, in these grades or in those that it adds to them."""
        try:
            rank = self.ranks[y]
            return self, rank, rank
        except (KeyError, TypeError):  # an interval, a new grade or a mistake
            lower, upper = label_ends(y)
        grades = self
        for end in (lower, upper):
            if end is not None and not grades.has(end):
                grades = grades.with_grade(end)
        low = 1 if lower is None else grades.ranks[lower]
        high = max(1, len(grades.order)) if upper is None else grades.ranks[upper]
        if low > high:
            raise ValueError(
                f"lower end {lower!r} is above upper end {upper!r}; swap the two ends?"
            )
        return grades, low, high

    def has(self, label: Any) -> bool:
        """Whether a label is one of the grades."""
        try:
            return label in self.ranks
        except TypeError:
            raise ValueError(f"label {label!r} is no grade: give a number or a word") from None

    def with_grade(self, grade: Any) -> Grades:
        """These grades and one more, where no list was given that it would have to be on."""
        if self.given:
            raise ValueError(
                f"label {grade!r} is not one of the classes {shown(np.asarray(self.order))}; "
                "list every class in classes=[...]"
            )
        check_new_grade(grade, self.order)
        grade = grade.item() if isinstance(grade, np.generic) else grade
        at = bisect_left(self.order, grade)
        return Grades([*self.order[:at], grade, *self.order[at:]], given=False)


def check_new_grade(grade: Any, known: list[Any]) -> None:
    """Refuse what cannot be sorted in among the known grades; sorting words is a guess: warn."""
    is_word = isinstance(grade, str)
    if not is_word and not isinstance(grade, numbers.Real | np.bool_):
        raise ValueError(f"label {grade!r} is no grade: give a number or a word")
    if not is_word and grade != int(grade):
        raise ValueError(
            f"label {grade!r} seems to be a measurement; bin it into grades, or list the grades "
            "in classes=[...]"
        )
    if known and is_word != isinstance(known[0], str):
        raise ValueError(
            f"label {grade!r} cannot be put in order with {shown(np.asarray(known))}; "
            "list every class in classes=[...]"
        )
    if is_word and len(known) == 1:
        warnings.warn(
            f"the order of the classes was not given, so they are sorted: {known[0]!r} and "
            f"{grade!r} are the first two; give it from lowest to highest with classes=[...]",
            UserWarning,
            stacklevel=5,
        )


class Row(NamedTuple):
    """A dict of features as numbers, their columns, and the names that were not known before."""

    values: NDArray[np.float64]
    columns: NDArray[np.int64]
    new: list[Any]


def as_number(name: Any, value: Any) -> float:
    """The value of a feature as a float; text is refused even where it looks like a number."""
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
    """The values of a dict of features as floats."""
    if x.__class__ is not dict and not isinstance(x, Mapping):
        raise TypeError(f"x must be a dict of numbers by feature name, got {type(x).__name__}")
    if not x:
        raise ValueError(NO_FEATURES)
    try:
        values = np.array(list(x.values()))
    except ValueError:  # values of different lengths
        values = np.array(None)
    if values.dtype.char == "d" and values.ndim == 1:
        return values
    if values.dtype.kind in "fiub" and values.ndim == 1:
        return values.astype(np.float64)
    return np.array([as_number(name, value) for name, value in x.items()])


NO_FEATURES = (
    "x has no features, and says nothing about its grade; leave the example out, or add a feature "
    "that is always there"
)
OVERFLOW = (
    "the score overflows, because the weights have grown too large; scale the features, for "
    "example with preprocessing.StandardScaler, or choose a smaller C"
)


def feature_refusal(values: NDArray[np.float64], names: list[Any]) -> str:
    """Why an example was refused, naming the feature and its value."""
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        return (
            f"feature {names[bad[0]]!r} is {values[bad[0]]}; leave it out, or fill it first, for "
            "example with preprocessing.StatImputer"
        )
    with np.errstate(over="ignore"):  # infinity is the right answer
        if np.square(values).sum() < MAX_SQ_NORM:
            return OVERFLOW
    largest = int(np.argmax(np.abs(values)))
    return (
        f"feature {names[largest]!r} is {values[largest]:.3g}, which overflows; scale the "
        "features, for example with preprocessing.StandardScaler"
    )


def check_values(values: NDArray[np.float64], names: list[Any]) -> None:
    """Refuse an example that a learner would refuse whatever its weights are."""
    why = feature_refusal(values, names)
    if why is not OVERFLOW:
        raise ValueError(why)


def check_matrix(rows: Any, names: list[Any]) -> None:
    """Refuse rows of a CSR matrix that a learner would refuse whatever its weights are."""
    with np.errstate(over="ignore"):
        sq_norms = rows.multiply(rows).sum(axis=1)
    bad = np.flatnonzero(~(sq_norms < MAX_SQ_NORM))
    if bad.size:
        row = rows[bad[:1]].tocoo()
        why = feature_refusal(row.data, [names[column] for column in row.col])
        raise ValueError(f"row {bad[0]}: {why}")


def read_frame(X: Any) -> Any:
    """A data frame of numbers as a CSR matrix; one of sparse columns never becomes dense."""
    from pandas import DataFrame
    from pandas.api.types import is_numeric_dtype

    if not isinstance(X, DataFrame):
        raise TypeError(f"a mini-batch is a pandas DataFrame, got {type(X).__name__}; convert it")
    names = list(X.columns)
    if not names:
        raise ValueError(NO_FEATURES)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"X has more than one column {twice!r}")
    for name in names:
        if not is_numeric_dtype(X[name].dtype):
            for value in X[name]:
                as_number(name, value)
    if all(hasattr(dtype, "fill_value") and dtype.fill_value == 0 for dtype in X.dtypes):
        rows = sp.csr_array(X.sparse.to_coo(), dtype=np.float64)
    else:
        rows = sp.csr_array(X.to_numpy(dtype=np.float64, na_value=np.nan))
    check_matrix(rows, names)
    return rows


def with_columns(rows: Any, columns: NDArray[np.int64], n_features: int) -> Any:
    """A CSR matrix whose columns are moved to the numbers given, those outside left out."""
    numbers = columns[rows.indices]
    n_columns = max(n_features, int(columns.max()) + 1)
    moved = sp.csr_array((rows.data, numbers, rows.indptr), shape=(rows.shape[0], n_columns))
    return moved if n_columns == n_features else moved[:, :n_features]


class OrdinalClassifier(base.MiniBatchClassifier):
    """What the models share; a subclass names its parameters and makes its learner.

    All that is learned is in four attributes: the column of each feature, the grades, a learner
    with room for as many columns or more, and its calibration, which there are from the second
    grade on. They are put in place together, after everything that can fail: an error leaves the
    model unchanged.
    """

    classes: Any

    def __init__(self) -> None:
        self._make_learner(1, 2)  # refuses wrong parameters
        order = [] if self.classes is None else check_classes(self.classes).tolist()
        self._columns: dict[Any, int] = {}
        self._grades = Grades(order, given=self.classes is not None)
        self._learner: GrowingLearner | None = None
        self._calibration: Calibration | None = None

    def _make_learner(self, n_features: int, n_classes: int) -> GrowingLearner:
        raise NotImplementedError("a subclass makes its learner")

    @property
    def _multiclass(self) -> bool:
        return True

    @property
    def weights(self) -> dict[Any, float]:
        """The weight of every feature seen so far."""
        if self._learner is None:
            return dict.fromkeys(self._columns, 0.0)
        weights = self._learner.weights[: len(self._columns)]  # the rest is room to grow
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
            Numbers by feature name; a name never seen before starts with weight 0.
        y : grade or (lower, upper)
            A number or a word, or an interval of them, both ends included; None is an open end.
        """
        values, columns, new = self._row(x)
        grades, low, high = self._grades.read(y)
        learner = self._grown(self._learner, len(self._columns) + len(new), self._grades, grades)
        calibration = calibration_for(self._calibration, self._grades, grades)
        if learner is None or calibration is None:
            check_values(values, list(x))
        else:
            try:
                score = learner.latent_sparse(values, columns)
                rank = learner.learn_sparse(values, columns, low, high)
            except RowValueError:
                raise ValueError(feature_refusal(values, list(x))) from None
            calibration.observe_one(score, rank, low, high)
        self._keep(learner, calibration, grades, new)

    def predict_one(self, x: dict[Any, Any], **kwargs: Any) -> Any:
        """The grade of one example; None as long as nothing was learned."""
        values, columns, new = self._row(x)
        learner = self._learner
        if new or learner is None:
            check_values(values, list(x))
        if learner is None:
            return self._only_grade()
        if new:
            known = columns < len(self._columns)
            values, columns = values[known], columns[known]
        try:
            return self._grades.order[learner.predict_sparse(values, columns) - 1]
        except RowValueError:
            raise ValueError(feature_refusal(values, list(x))) from None

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """The probability of every grade known so far, by grade.

        It is learned as the stream goes on, from the score that each example has before it is
        learned. The grade of `predict_one` is close to the median of the probabilities, which has
        the smallest expected distance, and need not be the most probable one.

        Parameters
        ----------
        x : dict
            Numbers by feature name.

        Returns
        -------
        dict
            Probabilities that sum to 1; empty as long as there is no grade.
        """
        values, columns, new = self._row(x)
        learner, calibration, order = self._learner, self._calibration, self._grades.order
        if new or learner is None:
            check_values(values, list(x))
        if learner is None or calibration is None:
            return dict.fromkeys(order, 1.0 / max(1, len(order)))
        if new:
            known = columns < len(self._columns)
            values, columns = values[known], columns[known]
        try:
            score = learner.latent_sparse(values, columns)
        except RowValueError:
            raise ValueError(feature_refusal(values, list(x))) from None
        return dict(zip(order, calibration.probabilities([score])[0].tolist(), strict=True))

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn the rows of a data frame one after the other, as `learn_one` would.

        Parameters
        ----------
        X : DataFrame
            One column a feature.
        y : Series or two-column DataFrame
            Grades or (lower, upper) pairs, one a row; or the two ends in two columns.
        """
        rows = read_frame(X)
        labels = list(y.itertuples(False, None) if hasattr(y, "columns") else y)
        if len(labels) != rows.shape[0]:
            raise ValueError(f"X has {rows.shape[0]} rows, but there are {len(labels)} labels")
        _, columns, new = self._row(dict.fromkeys(X.columns, 0.0))
        n_features = len(self._columns) + len(new)
        learner, grades = self._learner, self._grades
        calibration = deepcopy(self._calibration)
        if learner is not None:  # a copy, because a later row may be refused
            learner = learner.widened(learner.n_features)
        for part, low, high, grown in runs(labels, grades):
            learner = self._grown(learner, n_features, grades, grown)
            calibration = calibration_for(calibration, grades, grown)
            grades = grown
            if learner is not None:
                moved = with_columns(rows[part], columns, learner.n_features)
                try:
                    learner.learn_many(moved, low, high, calibration=calibration)
                except RowValueError:
                    raise ValueError(OVERFLOW) from None
        self._keep(learner, calibration, grades, new)

    def predict_many(self, X: Any) -> Any:
        """The grade of every row of a data frame, as a Series; None while nothing was learned."""
        import pandas as pd

        rows, learner, order = read_frame(X), self._learner, self._grades.order
        if learner is None:
            return pd.Series([self._only_grade()] * rows.shape[0], index=X.index)
        _, columns, _ = self._row(dict.fromkeys(X.columns, 0.0))
        try:
            ranks = learner.predict_many(with_columns(rows, columns, learner.n_features))
        except RowValueError:
            raise ValueError(OVERFLOW) from None
        return pd.Series([order[rank - 1] for rank in ranks.tolist()], index=X.index)

    def predict_proba_many(self, X: Any) -> Any:
        """The probability of every grade for every row of a data frame, one column a grade."""
        import pandas as pd

        rows, learner, order = read_frame(X), self._learner, self._grades.order
        if learner is None or self._calibration is None:
            even = np.full((rows.shape[0], len(order)), 1.0 / max(1, len(order)))
            return pd.DataFrame(even, index=X.index, columns=order)
        _, columns, _ = self._row(dict.fromkeys(X.columns, 0.0))
        try:
            scores = learner.latent(with_columns(rows, columns, learner.n_features))
        except RowValueError:
            raise ValueError(OVERFLOW) from None
        chances = self._calibration.probabilities(scores)
        return pd.DataFrame(chances, index=X.index, columns=order)

    def _only_grade(self) -> Any:
        """The answer without a learner: the one grade there is so far, if any was seen."""
        return None if self._grades.given or not self._grades.order else self._grades.order[0]

    def _row(self, x: dict[Any, Any]) -> Row:
        values, column_of = as_values(x), self._columns
        try:
            return Row(values, np.array([column_of[name] for name in x]), [])
        except KeyError:
            new = [name for name in x if name not in column_of]
            numbered = {name: len(column_of) + i for i, name in enumerate(new)}
            columns = [numbered[name] if name in numbered else column_of[name] for name in x]
            return Row(values, np.array(columns), new)

    def _grown(
        self, learner: GrowingLearner | None, n_features: int, before: Grades, after: Grades
    ) -> GrowingLearner | None:
        """The learner with room for all features and grades; None while there is one grade."""
        if len(after.order) < 2:
            return None
        if learner is None:
            return self._make_learner(n_features, len(after.order))
        if n_features > learner.n_features:  # twice as many, so that copying stays rare
            learner = learner.widened(max(n_features, 2 * learner.n_features))
        for rank in new_ranks(before, after):
            learner = learner.with_rank(rank)
        return learner

    def _keep(
        self,
        learner: GrowingLearner | None,
        calibration: Calibration | None,
        grades: Grades,
        new: list[Any],
    ) -> None:
        self._learner, self._calibration, self._grades = learner, calibration, grades
        for name in new:
            self._columns[name] = len(self._columns)


def new_ranks(before: Grades, after: Grades) -> list[int]:
    """Ranks of the grades that were not known before, lowest first."""
    if after is before:
        return []
    return [rank for grade, rank in after.ranks.items() if grade not in before.ranks]


def calibration_for(known: Calibration | None, before: Grades, after: Grades) -> Calibration | None:
    """The calibration with room for all grades; None while there is one grade."""
    if len(after.order) < 2:
        return None
    if known is None:
        return Calibration(len(after.order))
    for rank in new_ranks(before, after):
        known = known.with_rank(rank)
    return known


def runs(labels: list[Any], grades: Grades) -> Iterator[tuple[slice, list[int], list[int], Grades]]:
    """Rows in as few runs as can be, each with its ranks and the grades known at its first row."""
    start = 0
    low: list[int] = []
    high: list[int] = []
    for i, label in enumerate(labels):
        try:
            grown, lowest, highest = grades.read(label)
        except ValueError as reason:
            raise ValueError(f"row {i}: {reason}") from None
        if grown is not grades and i > start:
            yield slice(start, i), low, high, grades
            start, low, high = i, [], []
        grades = grown
        low.append(lowest)
        high.append(highest)
    if low:
        yield slice(start, len(labels)), low, high, grades


class OrdinalPA(OrdinalClassifier):
    """Ordinal regression in River from grades or intervals, by exact passive-aggressive updates.

    The score is a weighted sum of the features, without an intercept: the sorted thresholds between
    the grades take its place. Probabilities (``predict_proba_one``) are learned on the way. Scale
    the features, for example with ``preprocessing.StandardScaler``.

    Features may turn up at any time: the model is to the bit the one that had known them from the
    start. Grades may do so too where ``classes`` is not given. One that turns up between two others
    starts with an empty band of scores on the threshold between them, so no prediction changes
    until it is learned; one beyond the outermost starts one margin away from it. As long as there
    is only one grade there is nothing to learn. An open end reaches as far as there are grades.

    Parameters
    ----------
    variant : {"PA-I", "PA", "PA-II"}, default="PA-I"
        "PA" corrects each example in full; "PA-I" moves each threshold by at most C; "PA-II"
        trades the size of the move against the squared remaining violation.
    C : float, default=0.1
        Aggressiveness of PA-I and PA-II; ignored by PA, which has none.
    average : bool, default=True
        Predict with the average of all iterates instead of the last one. Where the stream drifts,
        the last one follows faster.
    balanced : bool, default=True
        Measure the thresholds on the scale of the scores; see `ordspan.OrdinalPA`.
    classes : list, optional
        All grades from lowest to highest. Left out, the grades are those seen so far, sorted;
        words are sorted with a warning.

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
    ...     model.learn_one({"heat": 20.0, "wind": 1.0}, ("mid", None))  # at least mid
    ...     model.learn_one({"heat": 15.0}, ("low", "mid"))
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

    def _make_learner(self, n_features: int, n_classes: int) -> GrowingLearner:
        return LinearLearner(
            n_features,
            n_classes,
            self.variant,
            self.C,
            bool(self.average),
            balanced=bool(self.balanced),
        )


class PRank(OrdinalClassifier):
    """PRank (Crammer & Singer, 2001) in River, from grades or intervals.

    Features and grades may turn up on the way, as in `OrdinalPA`.

    Parameters
    ----------
    classes : list, optional
        All grades from lowest to highest. Left out, the grades are those seen so far, sorted.

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

    def _make_learner(self, n_features: int, n_classes: int) -> GrowingLearner:
        return PRankLearner(n_features, n_classes)


class IntervalMAE(metrics.base.MeanMetric, metrics.base.ClassificationMetric):
    """Mean distance from the predicted grade to the label, 0 inside an interval.

    River's own ``metrics.MAE`` takes regression models only, and no intervals.

    Parameters
    ----------
    classes : list, optional
        All grades from lowest to highest: the distance is then counted in grades. Left out, the
        labels must be numbers, and it is their difference.

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
        self._grades = None if classes is None else Grades(check_classes(classes).tolist(), True)
        super().__init__()

    @property
    def bigger_is_better(self) -> bool:
        """False: the smaller the distance, the better."""
        return False

    def _eval(self, y_true: Any, y_pred: Any) -> float:
        if self._grades is None:
            lower, upper = label_ends(y_true)
            low = -np.inf if lower is None else lower
            high = np.inf if upper is None else upper
        else:
            _, low, high = self._grades.read(y_true)
            _, y_pred, _ = self._grades.read(y_pred)
        return float(distance(y_pred, low, high))
