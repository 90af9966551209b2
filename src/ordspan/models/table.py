"""Models of tables, as trained by the command line: an estimator and its feature recipe."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ordspan.catalog import ESTIMATORS, SVM
from ordspan.core.measures import distance
from ordspan.core.scaling import COUNT, MEAN, SPREAD
from ordspan.core.state import Floats
from ordspan.labels.text import LabelReader
from ordspan.learners import Calibration, Learner
from ordspan.learners.rows import RowValueError
from ordspan.tables.encoder import Encoder, Recipe, as_frame
from ordspan.tables.files import FileOptions
from ordspan.tables.label_columns import NO_LABEL, LabelColumns
from ordspan.tables.rows import Batch, FileError


@dataclass(kw_only=True, eq=False, repr=False)
class TableModel:
    """A fitted ordinal model with its feature recipe and the record of its training.

    `ordspan.load` returns one for a model file that ``ordspan train`` wrote. It predicts from
    tables with the columns it was trained on, in any order; other columns are ignored. Words and
    gaps that training did not have, and numbers far from those of training, get a warning.

    Parameters
    ----------
    encoder : Encoder
        How columns become features, with the mean and the spread of the numbers.
    kind : str
        Name of the estimator.
    parameters : dict
        Its parameters.
    classes_ : array
        The grades from lowest to highest.
    learner : Learner
        Its learner, on encoded features.
    training : dict
        The record of the training, in plain values.
    calibration : Calibration
        How scores become grades, probabilities and ranges.
    fitted : dict
        Other fitted attributes of the estimator, such as a duality gap.
    columns : LabelColumns
        Columns of the labels.
    options : FileOptions
        How the files were opened.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pandas as pd
    >>> import ordspan
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> rows = "1,1\\n2,1\\n5,2\\n6,2\\n8,3\\n9,3\\n" * 50
    >>> _ = (folder / "a.csv").write_text("size,grade\\n" + rows)
    >>> _ = ordspan.train_files(folder / "a.csv", folder / "model", label="grade")
    >>> model = ordspan.load(folder / "model")
    >>> model.predict(pd.DataFrame({"size": [1, 5, 9]}))
    array([1, 2, 3])
    """

    encoder: Encoder
    kind: str
    parameters: dict[str, Any]
    classes_: NDArray[Any]
    learner: Learner
    training: dict[str, Any]
    calibration: Calibration
    fitted: dict[str, float] = field(default_factory=dict)
    columns: LabelColumns = field(default_factory=lambda: LabelColumns("label"))
    options: FileOptions = field(default_factory=FileOptions)

    @property
    def recipe(self) -> Recipe:
        """Which columns make the features, and how."""
        return self.encoder.recipe

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

    def centre_and_factor(self) -> tuple[Floats, Floats] | None:
        """Numbers become (value - centre) * factor; None if they are not standardised.

        The factor is 1 / standard deviation (sparse rows: 1 / root mean square of the values
        present, around 0), and 0 for a feature that never varied.
        """
        if not self.recipe.standardise:
            return None
        count, mean, squares = self.encoder.state[[COUNT, MEAN, SPREAD]]
        factor = np.divide(count, squares, out=np.zeros_like(squares), where=squares > 0.0)
        return mean, np.sqrt(factor)

    @property
    def thresholds(self) -> Floats:
        """The scores where the predicted grade changes, (K - 1,)."""
        return self.calibration.medians

    def latent(self, table: Any) -> Floats:
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
        return self.learner.latent(self.encoder.table_features(table, self.options.na))

    def predict(self, table: Any) -> NDArray[Any]:
        """Grade of every row of a table: the median of its probabilities.

        Parameters
        ----------
        table : pandas, polars or pyarrow table, or CSR matrix
            Rows with the columns the model was trained on (svmlight: a matrix of its features).

        Returns
        -------
        array of shape (n,)
            The grades.
        """
        return self.classes_[self.calibration.predict(self.latent(table)) - 1]

    def predict_proba(self, table: Any) -> Floats:
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
        return self.calibration.probabilities(self.latent(table))

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
        ends = self.calibration.ranges(self.latent(table), coverage)
        return np.column_stack([self.classes_[ranks - 1] for ranks in ends])

    def check_can_learn(self) -> None:
        """Raise if no rows can be added to the model."""
        if self.kind == ESTIMATORS[SVM]:
            raise ValueError(
                "an OrdinalSVM is fitted in one step and cannot be continued; retrain it"
            )

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
        self.check_can_learn()
        X = self.encoder.table_features(table, self.options.na)
        ends = self._ranks(table, y)
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
        X = self.encoder.table_features(table, self.options.na)
        rows = self.learner.rows(X, *self._ranks(table, y))
        ranks = self.calibration.predict(self.learner.latent(rows))
        return -float(distance(ranks, rows.lower, rows.upper).mean())

    def _ranks(self, table: Any, y: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Lower and upper ranks of labels."""
        if y is not None:
            from ordspan.labels.ranks import encode, read_labels

            return encode(read_labels(y)[0], self.classes_)
        if self.recipe.n_sparse:
            raise ValueError("a matrix has no label column; give the labels as y")
        from ordspan.tables.numbers import without_codes

        cells = without_codes(as_frame(table, self.columns.names()), self.options.na)
        lower, upper, faults = self.columns.read(LabelReader(self.classes_), cells)
        unlabelled = np.flatnonzero(lower == NO_LABEL).tolist()
        if faults := dict.fromkeys(unlabelled, "there is no label") | faults:
            row = min(faults)
            raise ValueError(f"the table, row {row}: {faults[row]}")
        return lower, upper


def scored(model: TableModel, batches: Iterator[Batch]) -> Iterator[tuple[Batch, Floats]]:
    """Rows of files and their scores, batch by batch; bad rows that are kept have the score 0."""
    for batch in filter(len, batches):
        good = np.delete(np.arange(len(batch)), list(batch.faults))
        some = batch.only(good) if batch.faults else batch
        score = np.zeros(len(batch))
        try:
            score[good] = model.learner.latent(model.encoder.features(some.X, some.table))
        except RowValueError as error:
            raise FileError(f"in the rows from {batch.where(0)} on, {error}") from None
        yield batch, score
