"""A ranker together with what turns a table into its features: what the command line trains."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordspan.data.files.chunks import BadRows, Chunk, Place
from ordspan.data.files.features import Recipe, Scale, feature_rows, with_words
from ordspan.data.files.grades import LabelColumns
from ordspan.data.files.lines import FileError
from ordspan.data.files.reading import BEGINNING, FileOptions, Piece
from ordspan.estimators.passes import ThresholdEstimator
from ordspan.learners.checks import RowError


class TabularModel:
    """A fitted ranker, its recipe for features, and how it was trained.

    `ordspan.load` gives one for a model file that ``ordspan train`` wrote. It predicts from tables
    with the columns it was trained on, in any order; other columns do no harm.

    Parameters
    ----------
    estimator : estimator
        The fitted ranker on prepared features.
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
        estimator: ThresholdEstimator,
        recipe: Recipe,
        scale: Scale,
        columns: LabelColumns,
        options: FileOptions,
        training: dict[str, Any],
    ) -> None:
        self.estimator = estimator
        self.recipe = recipe
        self.scale = scale
        self.columns = columns
        self.options = options
        self.training = training

    def __repr__(self) -> str:
        columns = [*self.recipe.numbers, *self.recipe.words][:4]
        return f"TabularModel({self.estimator!r}, {self.recipe.n_features} features: {columns}...)"

    @property
    def classes_(self) -> NDArray[Any]:
        """The grades from lowest to highest."""
        return self.estimator.classes_

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

    def prepared(self, piece: Piece) -> Any:
        """The features of rows of a file, as the ranker wants them.

        Parameters
        ----------
        piece : Piece
            Rows of a file.

        Returns
        -------
        array or CSR matrix of shape (n, d)
            Standardised numbers and hashed words.
        """
        matrix = piece.matrix
        if self.recipe.standardise:
            matrix = self.scale.apply(matrix)
        return with_words(self.recipe, matrix, piece.chunk.table)

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
        chunk = _as_chunk(table, self.recipe)
        matrix, faults = feature_rows(self.recipe, chunk)
        BadRows().drop(chunk, faults)
        return self.prepared(Piece(chunk, matrix, None, None, BEGINNING, 0))


def _as_chunk(table: Any, recipe: Recipe) -> Chunk:
    """A table in memory as a chunk, its rows numbered from 0 as in Python."""
    import pyarrow as pa

    if recipe.n_sparse:
        from scipy.sparse import csr_array

        matrix = csr_array(table)
        if matrix.shape[1] != recipe.n_sparse:
            raise ValueError(
                f"the matrix has {matrix.shape[1]} columns, but the model {recipe.n_sparse}"
            )
        return Chunk("the matrix", "row", np.arange(matrix.shape[0]), Place(), None, matrix)
    if hasattr(table, "to_arrow"):
        table = table.to_arrow()
    elif not hasattr(table, "columns") or not hasattr(table, "shape"):
        names = ", ".join([*recipe.numbers, *recipe.words][:8])
        raise TypeError(
            f"a {type(table).__name__} has no named columns; give a pandas, polars or pyarrow "
            f"table with the columns of the model: {names}"
        )
    elif not isinstance(table, pa.Table):
        table = pa.Table.from_pandas(table, preserve_index=False)
    missing = [n for n in (*recipe.numbers, *recipe.words) if n not in table.column_names]
    if table.num_rows == 0:
        raise ValueError("the table has no rows (0 samples), so there is nothing to predict")
    if missing:
        raise ValueError(f"the table has no column {missing[0]!r}, which the model needs")
    return Chunk("the table", "row", np.arange(table.num_rows), Place(), table)


class Scored(NamedTuple):
    """Rows of a file with what a model says of them."""

    piece: Piece
    score: NDArray[np.float64]
    rank: NDArray[np.int64]
    margin: NDArray[np.float64]  # from the score to the nearest threshold


def score_pieces(model: TabularModel, pieces: Iterator[Piece]) -> Iterator[Scored]:
    """Score, rank and margin of rows, piece by piece."""
    thresholds = model.estimator.thresholds_
    edges = np.concatenate([[-np.inf], thresholds, [np.inf]])
    for piece in pieces:
        if not len(piece.chunk):
            continue
        try:
            score = model.estimator.learner_.latent(model.prepared(piece))
        except RowError as error:
            raise FileError(f"in the rows from {piece.chunk.where(0)} on, {error}") from None
        rank = np.searchsorted(thresholds, score, side="right").astype(np.int64) + 1
        margin = np.minimum(score - edges[rank - 1], edges[rank] - score)
        yield Scored(piece, score, rank, margin)
