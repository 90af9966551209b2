"""`TableEncoder`: the columns of a table as features, as a scikit-learn transformer."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ordspan.tables.encoder import DEFAULT_HASH_BITS, Encoder, as_frame
from ordspan.wording import report_missing


class TableEncoder(TransformerMixin, BaseEstimator):
    """Numbers, gaps and words of a table as features, as ``ordspan train`` makes them.

    Numbers are standardised, a missing one becomes the mean and is marked by a feature of its own,
    and every word of a column is a feature, or hashed if there are more than 256 of them. Sentences
    become words and pairs of words, hashed into at least ``2 ** 16`` features. Columns
    that cannot help, such as ids, dates and empty ones, are left out.

    Parameters
    ----------
    features : sequence of str, optional
        Columns to use; by default, all that can help.
    drop : sequence of str
        Columns to leave out.
    text : sequence of str
        Columns to treat as words even if they hold numbers, such as postal codes.
    hashed : sequence of str
        Columns of words to hash although they have few distinct values.
    hash_bits : int
        Hashed words share ``2 ** hash_bits`` features.
    standardise : bool
        Whether to centre and scale numbers.
    missing : {"mean", "error"}
        Whether a missing number is filled in and marked, or refused.

    Attributes
    ----------
    left_out_ : dict
        Columns that are not used, and why.
    feature_names_in_ : ndarray of str
        The columns of the table that was fitted.

    Examples
    --------
    >>> import pandas as pd
    >>> from ordspan import TableEncoder
    >>> table = pd.DataFrame({"age": [30.0, None, 50.0], "job": ["cook", "smith", "cook"]})
    >>> encoder = TableEncoder().fit(table)
    >>> list(encoder.get_feature_names_out())
    ['age', 'age is missing', 'job = cook', 'job = smith']
    >>> encoder.transform(table)
    array([[-1.,  0.,  1.,  0.],
           [ 0.,  1.,  0.,  1.],
           [ 1.,  0.,  1.,  0.]])
    """

    def __init__(
        self,
        *,
        features: Sequence[str] | None = None,
        drop: Sequence[str] = (),
        text: Sequence[str] = (),
        hashed: Sequence[str] = (),
        hash_bits: int = DEFAULT_HASH_BITS,
        standardise: bool = True,
        missing: str = "mean",
    ) -> None:
        self.features = features
        self.drop = drop
        self.text = text
        self.hashed = hashed
        self.hash_bits = hash_bits
        self.standardise = standardise
        self.missing = missing

    @report_missing()
    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the columns, and find their words, means and spreads.

        Parameters
        ----------
        X : pandas, polars or pyarrow table, or list of dicts
            All rows, or a sample of them.
        y : ignored
            For scikit-learn.

        Returns
        -------
        TableEncoder
            The encoder itself.
        """
        from ordspan.tables.files import FileOptions
        from ordspan.tables.formats import Table
        from ordspan.tables.profile import ColumnChoice, Profile

        table = as_frame(X)
        choice = ColumnChoice.of(self.get_params())
        file = Table("the table", FileOptions())
        file.names, file.cells = table.columns, table
        profile = Profile([file])
        self.encoder_, self.left_out_ = profile.plan([], choice)
        profile.refuse_problems()
        self.feature_names_in_ = np.array(table.columns, dtype=object)
        self.n_features_in_ = len(table.columns)
        return self

    @report_missing()
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn mean and spread from more rows, for streams.

        The first rows decide which columns are numbers; all words are hashed, and every number may
        be missing later.

        Parameters
        ----------
        X : pandas, polars or pyarrow table, or list of dicts
            The next rows.
        y : ignored
            For scikit-learn.

        Returns
        -------
        TableEncoder
            The encoder itself.
        """
        if not hasattr(self, "encoder_"):
            recipe = self.fit(X).encoder_.recipe
            marked = recipe.numbers if self.missing == "mean" else ()
            hashed = (*dict(recipe.words), *recipe.hashed)
            new: Any = {"missing_indicators": marked, "words": (), "hashed": hashed}
            self.encoder_ = Encoder(replace(recipe, **new))
        numbers, words = self.encoder_.rows(X)
        self.encoder_.features(np.array(numbers, dtype=np.float64), words, learn=True)
        return self

    @report_missing()
    def transform(self, X: Any) -> Any:
        """The features of every row.

        Parameters
        ----------
        X : pandas, polars or pyarrow table, or list of dicts
            Rows with the columns that were fitted, in any order. Words that were not seen are
            ignored, with a warning.

        Returns
        -------
        array or CSR matrix of shape (n, n_features)
            Sparse if words are hashed or there are more than 256 features.
        """
        check_is_fitted(self, "encoder_")
        return self.encoder_.table_features(X)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the features, such as ``job = cook``.

        Parameters
        ----------
        input_features : ignored
            For scikit-learn.

        Returns
        -------
        ndarray of str
            One name per column of what `transform` returns.
        """
        check_is_fitted(self, "encoder_")
        return np.array(self.encoder_.recipe.feature_names(), dtype=object)
