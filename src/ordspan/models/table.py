"""Models of tables, as trained by the command line: an estimator and its feature recipe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ordspan.catalog import ESTIMATORS, PA, SVM
from ordspan.core.measures import distance
from ordspan.labels.text import LabelReader
from ordspan.learners import Calibration, Learner
from ordspan.learners.base import rank_among
from ordspan.learners.rows import RowValueError, as_matrix
from ordspan.tables.batch import REFUSE, BadRows, Batch, Faults, FileError
from ordspan.tables.features import Recipe, Scale, Unseen, prepare_features, unusable_rows
from ordspan.tables.label_columns import LabelColumns, read_ranks
from ordspan.tables.opening import FileOptions

if TYPE_CHECKING:
    import polars as pl


class TableModel:
    """A fitted ordinal model with its feature recipe and the record of its training.

    `ordspan.load` returns one for a model file that ``ordspan train`` wrote. It predicts from
    tables with the columns it was trained on, in any order; other columns are ignored.

    Parameters
    ----------
    learner : Learner
        The learner, on prepared features.
    classes : array
        The grades from lowest to highest.
    parameters : dict
        Parameters of the estimator.
    recipe : Recipe
        How columns become features.
    scale : Scale
        Mean and spread of the numbers.
    columns : LabelColumns
        Columns of the labels.
    options : FileOptions
        How the files were opened.
    training : dict
        The record of the training, in plain values.
    kind : str
        Name of the estimator.
    fitted : dict, optional
        Other fitted attributes of the estimator, such as a duality gap.
    calibration : Calibration, optional
        Needed for probabilities and ranges.

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
        self.unseen = Unseen()  # unknown text values in predictions

    def __repr__(self) -> str:
        columns = list(self.recipe.columns[:4])
        return f"TableModel({self.estimator!r}, {self.recipe.n_features} features: {columns}...)"

    @cached_property
    def estimator(self) -> Any:
        """The scikit-learn estimator, on prepared features."""
        from ordspan import estimators

        estimator = getattr(estimators, self.kind)(**self.parameters)
        passes = self.training.get("sweeps") or self.parameters["max_iter"]
        return estimator.from_learner(
            self.learner, self.classes_, n_iter=passes, fitted=self.fitted
        )

    @property
    def coef(self) -> dict[str, float]:
        """Weights by feature name, such as ``job = retired``; not for kernels."""
        return dict(zip(self.recipe.feature_names(), self.estimator.coef_.tolist(), strict=True))

    def centre_and_factor(self) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """Numbers become (value - centre) * factor; None if they are not standardised.

        The factor is 1 / standard deviation (sparse rows: 1 / root mean square of the values
        present, around 0), and 0 for a feature that never varied.
        """
        if not self.recipe.standardise:
            return None
        count, mean, squares, _ = self.scale.state
        factor = np.zeros_like(squares)
        np.divide(count, squares, out=factor, where=squares > 0.0)
        return mean.copy(), np.sqrt(factor)

    @property
    def thresholds(self) -> NDArray[np.float64]:
        """The scores where the predicted grade changes, (K - 1,)."""
        return self.learner.thresholds if self.calibration is None else self.calibration.medians

    def ranks(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """Predicted ranks: the median of the probabilities, or by thresholds without them.

        Parameters
        ----------
        scores : array of shape (n,)
            Latent scores.

        Returns
        -------
        array of shape (n,)
            Ranks 1..K.
        """
        if self.calibration is None:
            return rank_among(self.learner.thresholds, scores)
        return self.calibration.predict(scores)

    def prepared(self, batch: Batch) -> Any:
        """Features of rows of a file, for the learner.

        Parameters
        ----------
        batch : Batch
            Rows of a file.

        Returns
        -------
        array or CSR matrix of shape (n, d)
            Standardised numbers and encoded text.
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
        """Grade of every row of a table: the median of the probabilities, if there are any.

        Parameters
        ----------
        table : pandas, polars or pyarrow table, or CSR matrix
            Rows with the columns the model was trained on (svmlight: a matrix of its features).

        Returns
        -------
        array of shape (n,)
            The grades.
        """
        return self.classes_[self.ranks(self.latent(table)) - 1]

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
        """Range of grades that contains the true one with a given probability, for every row.

        Parameters
        ----------
        table : pandas, polars or pyarrow table, or CSR matrix
            Rows with the columns the model was trained on (svmlight: a matrix of its features).
        coverage : float, default=0.9
            One of the calibrated coverages.

        Returns
        -------
        array of shape (n, 2)
            Inclusive ranges ``[lower, upper]``.
        """
        ends = self.needed_calibration().ranges(self.latent(table), coverage)
        return np.column_stack([self.classes_[ranks - 1] for ranks in ends])

    def needed_calibration(self) -> Calibration:
        """The calibration; raises if the model has none."""
        if self.calibration is None:
            raise ValueError(
                "the model has no probabilities or ranges, because it was trained on Dask; retrain "
                "it on one machine"
            )
        return self.calibration

    def partial_fit(self, table: Any, y: Any = None) -> Self:
        """Continue training on the rows of a table, one pass in order.

        Columns, grades and scaling do not change. If a row is invalid, an error is raised and the
        model stays unchanged. Calls from several threads run one at a time.

        Parameters
        ----------
        table : pandas, polars or pyarrow table, or CSR matrix
            Rows with the columns the model was trained on (svmlight: a matrix of its features).
        y : array-like of shape (n,) or (n, 2), optional
            Labels; by default the label columns of the table, in any form accepted in files.

        Returns
        -------
        TableModel
            The model itself.
        """
        if self.kind == ESTIMATORS[SVM]:
            raise ValueError(
                "an OrdinalSVM is fitted in one step and cannot be continued; retrain it"
            )
        X = self._features(table)
        ends = self._ends(table, y)
        with self.learner._lock:
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
            Labels; by default the label columns of the table, in any form accepted in files.

        Returns
        -------
        float
            0 is perfect; larger is better.
        """
        ranks = self.ranks(self.latent(table))
        lower, upper = self._ends(table, y)
        if lower.size != ranks.size:
            raise ValueError(f"the table has {ranks.size} rows, but y has {lower.size} labels")
        return -float(distance(ranks, lower, upper).mean())

    def _ends(self, table: Any, y: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Lower and upper ranks of labels."""
        if y is not None:
            from ordspan.labels.ranks import encode, read_labels

            return encode(read_labels(y)[0], self.classes_)
        if self.recipe.n_sparse:
            raise ValueError("a matrix has no label column; give the labels as y")
        from ordspan.tables.tables import text_columns

        frame = text_columns(_frame(table, self.columns.names()), self.columns.names())
        lower, upper, faults = read_ranks(LabelReader(self.classes_), frame, self.columns)
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

        matrix = csr_array(as_matrix(table))
        if matrix.shape[1] != recipe.n_sparse:
            raise ValueError(
                f"the matrix has {matrix.shape[1]} columns, but the model expects {recipe.n_sparse}"
            )
        rows = np.arange(matrix.shape[0])
        return Batch(matrix, None, rows, rows, "the matrix", "row"), {}
    from ordspan.tables.tables import matrix_of, text_columns

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
    """Rows of a file and their predictions."""

    batch: Batch
    score: NDArray[np.float64]
    rank: NDArray[np.int64]
    margin: NDArray[np.float64]  # from the score to the nearest one with another rank


def scored(model: TableModel, batches: Iterator[Batch]) -> Iterator[Scored]:
    """Score, rank and margin of rows, batch by batch."""
    for batch in batches:
        if not len(batch):
            continue
        try:
            yield Scored(batch, *score_features(model, model.prepared(batch)))
        except RowValueError as error:
            raise FileError(f"in the rows from {batch.where(0)} on, {error}") from None


def score_features(
    model: TableModel, X: Any
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
    """Score, rank and margin of rows of prepared features."""
    score = model.learner.latent(X)
    rank = model.ranks(score)
    edges = np.concatenate([[-np.inf], model.thresholds, [np.inf]])
    return score, rank, np.minimum(score - edges[rank - 1], edges[rank] - score)
