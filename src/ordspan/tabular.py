"""A ranker together with what turns a table into its features: what the command line trains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ordspan.core.labels import encode_interval
from ordspan.core.losses import distance
from ordspan.files.batch import REFUSE, BadRows, Batch, Faults, FileError
from ordspan.files.features import Recipe, Scale, Unseen, prepare_features, unusable_rows
from ordspan.files.grades import LabelColumns, LabelReader
from ordspan.files.opening import FileOptions
from ordspan.learners import Calibration, KernelLearner, Learner, LinearLearner
from ordspan.learners.checks import DEFAULT_C, RowValueError
from ordspan.learners.locking import lock_of
from ordspan.learners.rows import as_rows
from ordspan.learners.scoring import rank_among

if TYPE_CHECKING:
    import polars as pl

PA, KERNEL, SVM = "pa", "kernel", "svm"
DEFAULT_BUDGET = 500
ESTIMATORS = {PA: "OrdinalPA", KERNEL: "KernelOrdinalPA", SVM: "OrdinalSVM"}
"""The learners of the command line, and the estimators that they belong to."""
DEFAULTS: dict[str, dict[str, Any]] = {
    PA: {"variant": "PA-I", "C": DEFAULT_C, "average": True, "balanced": True},
    KERNEL: {
        "variant": "PA-I",
        "C": 1.0,
        "average": True,
        "kernel": "rbf",
        "gamma": "distance",
        "degree": 3.0,
        "coef0": 0.0,
        "budget": DEFAULT_BUDGET,
        "budget_strategy": "nearest",
    },
    SVM: {"C": 0.1, "loss": "squared_hinge", "tol": 1e-3, "max_iter": 1000},
}
"""Parameters of each learner, as those of its estimator; a kernel has a budget."""


def learner_parameters(learner: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a learner, those that are given instead of the defaults.

    >>> learner_parameters("svm", {"C": 2.0})["C"]
    2.0
    """
    if learner not in DEFAULTS:
        raise ValueError(f"unknown learner {learner!r}; choose from {', '.join(DEFAULTS)}")
    defaults = DEFAULTS[learner]
    for name in given:
        if name not in defaults:
            raise ValueError(
                f"the learner {learner} has no parameter {name}; it has {', '.join(defaults)}"
            )
    return defaults | dict(given)


def parameter_names(estimator: str) -> set[str]:
    """The parameters that a model of an estimator has, where it was trained from files.

    >>> sorted(parameter_names("OrdinalSVM"))
    ['C', 'classes', 'loss', 'max_iter', 'random_state', 'tol']
    """
    learner = next((name for name in ESTIMATORS if ESTIMATORS[name] == estimator), None)
    if learner is None:
        raise ValueError(f"unknown estimator {estimator!r}")
    own = {*DEFAULTS[learner], "classes", "random_state"}
    return own if learner == SVM else own | {"max_iter", "shuffle"}


def make_learner(
    estimator: str, parameters: Mapping[str, Any], n_features: int, n_classes: int
) -> Learner:
    """The learner of an estimator; scikit-learn is not needed to train one from files."""
    if estimator == ESTIMATORS[SVM]:
        return LinearLearner(n_features, n_classes, "PA")
    learner = PA if estimator == ESTIMATORS[PA] else KERNEL
    kind = LinearLearner if learner == PA else KernelLearner
    return kind(n_features, n_classes, **{name: parameters[name] for name in DEFAULTS[learner]})


class TabularModel:
    """A fitted ranker, its recipe for features, and how it was trained.

    `ordspan.load` gives one for a model file that ``ordspan train`` wrote. It predicts from tables
    with the columns it was trained on, in any order; other columns do no harm.

    Parameters
    ----------
    learner : Learner
        The ranker, on prepared features.
    classes : array
        The grades from lowest to highest.
    parameters : dict
        Those of the estimator that the learner belongs to.
    recipe : Recipe
        Which columns make the features, and how.
    scale : Scale
        Mean and spread of the numbers.
    columns : LabelColumns
        Where the labels stood.
    options : FileOptions
        How the files were opened.
    training : dict
        How it was trained, in plain values.
    kind : str
        The estimator that the learner belongs to.
    fitted : dict, optional
        What the estimator found besides, such as a duality gap.
    calibration : Calibration, optional
        What the scores say about grades; without it there are no probabilities and no ranges.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pandas as pd
    >>> import ordspan
    >>> from ordspan.commands.train import TrainJob, train
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> rows = "1,1\\n2,1\\n5,2\\n6,2\\n8,3\\n9,3\\n" * 50
    >>> _ = (folder / "a.csv").write_text("size,grade\\n" + rows)
    >>> _ = train(TrainJob([str(folder / "a.csv")], label="grade"), folder / "model")
    >>> model = ordspan.load(folder / "model")
    >>> model.predict(pd.DataFrame({"size": [1, 5, 9]}))
    array([1, 2, 3])
    """

    def __init__(
        self,
        learner: Learner,
        classes: NDArray[Any],
        parameters: dict[str, Any],
        recipe: Recipe,
        scale: Scale,
        columns: LabelColumns,
        options: FileOptions,
        training: dict[str, Any],
        kind: str = ESTIMATORS[PA],
        fitted: Mapping[str, float] | None = None,
        calibration: Calibration | None = None,
    ) -> None:
        self.learner = learner
        self.classes_ = classes
        self.parameters = parameters
        self.recipe = recipe
        self.scale = scale
        self.columns = columns
        self.options = options
        self.training = training
        self.kind = kind
        self.fitted = dict(fitted or {})
        self.calibration = calibration
        self.unseen = Unseen()  # words that were not known in predictions

    def __repr__(self) -> str:
        columns = list(self.recipe.columns[:4])
        return f"TabularModel({self.estimator!r}, {self.recipe.n_features} features: {columns}...)"

    @cached_property
    def estimator(self) -> Any:
        """The ranker as an estimator of scikit-learn, on prepared features."""
        from ordspan import estimators

        estimator = getattr(estimators, self.kind)(**self.parameters)
        passes = self.training.get("sweeps") or self.parameters["max_iter"]
        return estimator.from_learner(
            self.learner, self.classes_, n_iter=passes, fitted=self.fitted
        )

    @property
    def coef(self) -> dict[str, float]:
        """The weight of every feature, by its name, such as ``job = retired``; not of a kernel."""
        return dict(zip(self.recipe.feature_names(), self.estimator.coef_.tolist(), strict=True))

    def centre_and_factor(self) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """Every number becomes (value - centre) * factor; None where they stay as they are.

        The factor is 1 / standard deviation (sparse rows: 1 / root mean square of the values
        present, around 0), and 0 for a feature that never varied.
        """
        if not self.recipe.standardise:
            return None
        count, mean, squares, _ = self.scale.state
        factor = np.zeros_like(squares)
        np.divide(count, squares, out=factor, where=squares > 0.0)
        return mean.copy(), np.sqrt(factor)

    def prepared(self, batch: Batch) -> Any:
        """The features of rows of a file, as the ranker wants them.

        Parameters
        ----------
        batch : Batch
            Rows of a file.

        Returns
        -------
        array or CSR matrix of shape (n, d)
            Standardised numbers and words.
        """
        features = prepare_features(self.recipe, self.scale, batch, unseen=self.unseen)
        if self.recipe.numbers:
            self.unseen.add_gaps(self.recipe, batch.X)
        return features

    def latent(self, table: Any) -> NDArray[np.float64]:
        """Score of every row of a table, on the scale of the thresholds.

        Parameters
        ----------
        table : pandas, polars or pyarrow table, or CSR matrix
            Rows with the columns the model was trained on (svmlight: a matrix of its features).

        Returns
        -------
        array of shape (n,)
            The scores.
        """
        return self.estimator.latent(self._features(table))

    def predict(self, table: Any) -> NDArray[Any]:
        """Grade of every row of a table.

        Parameters
        ----------
        table : pandas, polars or pyarrow table, or CSR matrix
            Rows with the columns the model was trained on (svmlight: a matrix of its features).

        Returns
        -------
        array of shape (n,)
            The grades.
        """
        return self.estimator.predict(self._features(table))

    def predict_proba(self, table: Any) -> NDArray[np.float64]:
        """Probability of every grade for every row of a table.

        Parameters
        ----------
        table : pandas, polars or pyarrow table, or CSR matrix
            Rows with the columns the model was trained on (svmlight: a matrix of its features).

        Returns
        -------
        array of shape (n, K)
            Rows sum to 1; columns are in the order of ``classes_``.
        """
        return self.needed_calibration().probabilities(self.latent(table))

    def predict_interval(self, table: Any, coverage: float = 0.9) -> NDArray[Any]:
        """Range of grades that holds the true one as often as asked, for every row of a table.

        Parameters
        ----------
        table : pandas, polars or pyarrow table, or CSR matrix
            Rows with the columns the model was trained on (svmlight: a matrix of its features).
        coverage : float, default=0.9
            One of the coverages that were calibrated.

        Returns
        -------
        array of shape (n, 2)
            Inclusive ranges ``[lower, upper]``.
        """
        calibration, scores = self.needed_calibration(), self.latent(table)
        ends = calibration.ranges(scores, rank_among(self.learner.thresholds, scores), coverage)
        return np.column_stack([self.classes_[ranks - 1] for ranks in ends])

    def needed_calibration(self) -> Calibration:
        """What the scores say about grades; an error where the model has none."""
        if self.calibration is None:
            raise ValueError(
                "the model has no probabilities or ranges, because it was trained on Dask or by an "
                "earlier ordspan; train it anew on one machine"
            )
        return self.calibration

    def partial_fit(self, table: Any, y: Any = None) -> Self:
        """Go on learning from the rows of a table, once and in their order.

        Columns, grades and scaling stay as they are; a row that does not fit in is refused, and
        the model stays as it was. Of several threads one learns at a time.

        Parameters
        ----------
        table : pandas, polars or pyarrow table, or CSR matrix
            Rows with the columns the model was trained on (svmlight: a matrix of its features).
        y : array-like of shape (n,) or (n, 2), optional
            Labels; left out, the label columns of the table, in every form that files take.

        Returns
        -------
        TabularModel
            The model itself.
        """
        if self.kind == ESTIMATORS[SVM]:
            raise ValueError(
                "an OrdinalSVM is fitted in one step and cannot be continued; retrain it"
            )
        X = self._features(table)
        ends = self._ends(table, y)
        with lock_of(self.learner):
            self.learner.learn_many(X, *ends, calibration=self.calibration)
            self.training["rows"] += X.shape[0]
        return self

    def score(self, table: Any, y: Any = None) -> float:
        """Minus the mean distance in ranks from the prediction to the label or its range.

        Parameters
        ----------
        table : pandas, polars or pyarrow table, or CSR matrix
            Rows with the columns the model was trained on (svmlight: a matrix of its features).
        y : array-like of shape (n,) or (n, 2), optional
            Labels; left out, the label columns of the table, in every form that files take.

        Returns
        -------
        float
            0 is perfect; larger is better.
        """
        ranks = self.learner.predict_many(self._features(table))
        lower, upper = self._ends(table, y)
        if lower.size != ranks.size:
            raise ValueError(f"the table has {ranks.size} rows, but y has {lower.size} labels")
        return -float(distance(ranks, lower, upper).mean())

    def _ends(self, table: Any, y: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Lower and upper ranks of labels."""
        if y is not None:
            from ordspan.estimators.targets import read_labels

            labels = read_labels(y)
            return encode_interval(labels.lower, labels.upper, self.classes_)
        if self.recipe.n_sparse:
            raise ValueError("a matrix has no labels in it; give them as y")
        from ordspan.files.tables import text_columns

        frame = text_columns(_frame(table, self.columns.names()), self.columns.names())
        lower, upper, faults = LabelReader(self.classes_).read(frame, self.columns)
        if faults:
            row = min(faults)
            raise ValueError(f"the table, row {row}: {faults[row]}")
        return lower, upper

    def _features(self, table: Any) -> Any:
        """Features of a pandas, polars or pyarrow table, or of an svmlight matrix."""
        batch, faults = as_batch(table, self.recipe)
        batch.without(unusable_rows(self.recipe, batch.X) | faults, BadRows(REFUSE))
        return self.prepared(batch)


def as_batch(table: Any, recipe: Recipe) -> tuple[Batch, Faults]:
    """A table in memory as a batch, its rows numbered from 0 as in Python."""
    if recipe.n_sparse:
        from scipy.sparse import csr_array

        matrix = csr_array(as_rows(table))
        if matrix.shape[1] != recipe.n_sparse:
            raise ValueError(
                f"the matrix has {matrix.shape[1]} columns, but the model {recipe.n_sparse}"
            )
        rows = np.arange(matrix.shape[0])
        return Batch(matrix, None, rows, rows, "the matrix", "row"), {}
    from ordspan.files.tables import matrix_of, text_columns

    frame, faults = _frame(table, recipe.columns), Faults()
    X = matrix_of(frame, recipe.numbers, faults, recipe.decimals)
    rows = np.arange(frame.height)
    return Batch(X, text_columns(frame, recipe.texts), rows, rows, "the table", "row"), faults


def _frame(table: Any, columns: Sequence[str]) -> pl.DataFrame:
    """Some columns of a pandas, polars or pyarrow table."""
    import polars as pl

    names = list(columns)
    if not hasattr(table, "columns") or not hasattr(table, "shape"):
        raise TypeError(
            f"a {type(table).__name__} has no named columns; give a pandas, polars or pyarrow "
            f"table with the columns of the model: {', '.join(names[:8])}"
        )
    there = getattr(table, "column_names", table.columns)
    missing = [name for name in names if name not in list(there)]
    if len(table) == 0:
        raise ValueError("the table has no rows (0 samples)")
    if missing:
        raise ValueError(f"the table has no column {missing[0]!r}, which the model needs")
    if isinstance(table, pl.DataFrame):
        return table.select(names)
    if hasattr(table, "column_names"):
        frame = pl.from_arrow(table.select(names))
        assert isinstance(frame, pl.DataFrame)
        return frame
    try:
        return pl.from_pandas(table[names])
    except (TypeError, ValueError) as error:  # a column of several types
        raise ValueError(f"a column of the table holds values of several types: {error}") from None


class Scored(NamedTuple):
    """Rows of a file with what a model says of them."""

    batch: Batch
    score: NDArray[np.float64]
    rank: NDArray[np.int64]
    margin: NDArray[np.float64]  # from the score to the nearest threshold


def scored(model: TabularModel, batches: Iterator[Batch]) -> Iterator[Scored]:
    """Score, rank and margin of rows, batch by batch."""
    thresholds = model.learner.thresholds
    edges = np.concatenate([[-np.inf], thresholds, [np.inf]])
    for batch in batches:
        if not len(batch):
            continue
        try:
            score = model.learner.latent(model.prepared(batch))
        except RowValueError as error:
            raise FileError(f"in the rows from {batch.where(0)} on, {error}") from None
        rank = rank_among(thresholds, score)
        margin = np.minimum(score - edges[rank - 1], edges[rank] - score)
        yield Scored(batch, score, rank, margin)
