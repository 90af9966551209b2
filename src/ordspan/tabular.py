"""A ranker together with what turns a table into its features: what the command line trains."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordspan.files.batch import BadRows, Batch, Faults, FileError
from ordspan.files.features import Recipe, Scale, prepared, unusable_rows
from ordspan.files.grades import LabelColumns
from ordspan.files.opening import FileOptions
from ordspan.learners import Learner, LinearLearner
from ordspan.learners.checks import RowError

if TYPE_CHECKING:
    import polars as pl

    from ordspan.estimators import OrdinalPA

OF_LEARNER = ("variant", "C", "average", "balanced")
"""Parameters of `OrdinalPA` that its learner has too."""


def make_learner(parameters: dict[str, Any], n_features: int, n_classes: int) -> Learner:
    """The learner of an `OrdinalPA`; scikit-learn is not needed to train one from files."""
    own = {name: parameters[name] for name in OF_LEARNER}
    return LinearLearner(n_features, n_classes, **own)


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
        Those of the `OrdinalPA` that the learner belongs to.
    recipe : Recipe
        Which columns make the features, and how.
    scale : Scale
        Running mean and spread of the features, where they are standardised.
    columns : LabelColumns
        Where the labels stood.
    options : FileOptions
        How the files were opened.
    training : dict
        How it was trained, in plain values.

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
    ) -> None:
        self.learner = learner
        self.classes_ = classes
        self.parameters = parameters
        self.recipe = recipe
        self.scale = scale
        self.columns = columns
        self.options = options
        self.training = training

    def __repr__(self) -> str:
        columns = [*self.recipe.numbers, *self.recipe.words][:4]
        return f"TabularModel({self.estimator!r}, {self.recipe.n_features} features: {columns}...)"

    @cached_property
    def estimator(self) -> OrdinalPA:
        """The ranker as an estimator of scikit-learn, on prepared features."""
        from ordspan.estimators import OrdinalPA

        passes = self.parameters["max_iter"]
        return OrdinalPA(**self.parameters).from_learner(self.learner, self.classes_, n_iter=passes)

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
            Standardised numbers and hashed words.
        """
        return prepared(self.recipe, self.scale if self.recipe.standardise else None, batch)

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

    def _features(self, table: Any) -> Any:
        """Features of a pandas, polars or pyarrow table, or of an svmlight matrix."""
        batch, faults = as_batch(table, self.recipe)
        batch.without(unusable_rows(self.recipe, batch.X) | faults, BadRows())
        return self.prepared(batch)


def as_batch(table: Any, recipe: Recipe) -> tuple[Batch, Faults]:
    """A table in memory as a batch, its rows numbered from 0 as in Python."""
    if recipe.n_sparse:
        from scipy.sparse import csr_array

        matrix = csr_array(table)
        if matrix.shape[1] != recipe.n_sparse:
            raise ValueError(
                f"the matrix has {matrix.shape[1]} columns, but the model {recipe.n_sparse}"
            )
        rows = np.arange(matrix.shape[0])
        return Batch(matrix, None, rows, rows, "the matrix", "row"), {}
    from ordspan.files.tables import matrix_of, words_of

    frame, faults = _frame(table, recipe), Faults()
    X, words = matrix_of(frame, recipe.numbers, faults), words_of(frame, recipe.words)
    rows = np.arange(frame.height)
    return Batch(X, words, rows, rows, "the table", "row"), faults


def _frame(table: Any, recipe: Recipe) -> pl.DataFrame:
    """The columns of a model in a pandas, polars or pyarrow table."""
    import polars as pl

    names = [*recipe.numbers, *recipe.words]
    if not hasattr(table, "columns") or not hasattr(table, "shape"):
        raise TypeError(
            f"a {type(table).__name__} has no named columns; give a pandas, polars or pyarrow "
            f"table with the columns of the model: {', '.join(names[:8])}"
        )
    there = getattr(table, "column_names", table.columns)
    missing = [name for name in names if name not in list(there)]
    if len(table) == 0:
        raise ValueError("the table has no rows (0 samples), so there is nothing to predict")
    if missing:
        raise ValueError(f"the table has no column {missing[0]!r}, which the model needs")
    if isinstance(table, pl.DataFrame):
        return table.select(names)
    if hasattr(table, "column_names"):
        frame = pl.from_arrow(table.select(names))
        assert isinstance(frame, pl.DataFrame)
        return frame
    return pl.from_pandas(table[names])


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
        except RowError as error:
            raise FileError(f"in the rows from {batch.where(0)} on, {error}") from None
        rank = np.searchsorted(thresholds, score, side="right").astype(np.int64) + 1
        margin = np.minimum(score - edges[rank - 1], edges[rank] - score)
        yield Scored(batch, score, rank, margin)
