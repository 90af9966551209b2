"""Stratified cross-validation for exact labels and ranges."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold
from sklearn.utils import check_random_state, indexable

from ordspan.labels.ranks import encode, find_classes, read_labels


class StratifiedIntervalKFold(KFold):
    """K folds with the same mix of labels, which may be ranges.

    scikit-learn's StratifiedKFold takes exact labels only. Here the rows are sorted by the middle
    of their label's range, then by its width, and dealt out to the folds in turn. So any two test
    folds differ by at most one row: for each label, for each middle, and in total.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2.
    shuffle : bool, default=False
        Shuffle the rows of each label before splitting.
    random_state : int, RandomState or None, default=None
        Seed for shuffling.
    classes : array-like, optional
        All grades from lowest to highest. By default taken from an ordered Categorical, or else
        the sorted numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from ordspan import StratifiedIntervalKFold
    >>> y = np.array([[1, 1], [1, 2], [2, 2], [1, 1], [1, 2], [2, 2]])
    >>> for train, test in StratifiedIntervalKFold(n_splits=2).split(np.zeros((6, 1)), y):
    ...     print(test.tolist(), y[test].tolist())
    [0, 1, 2] [[1, 1], [1, 2], [2, 2]]
    [3, 4, 5] [[1, 1], [1, 2], [2, 2]]

    In a search:

    >>> from sklearn.model_selection import GridSearchCV
    >>> from ordspan import OrdinalPA
    >>> folds = StratifiedIntervalKFold(n_splits=2, shuffle=True, random_state=0)
    >>> X = y.mean(axis=1, keepdims=True)
    >>> search = GridSearchCV(OrdinalPA(random_state=0), {"C": [0.1, 1.0]}, cv=folds).fit(X, y)
    >>> search.best_score_
    np.float64(0.0)
    """

    def __init__(
        self,
        n_splits: int = 5,
        *,
        shuffle: bool = False,
        random_state: Any = None,
        classes: Any = None,
    ) -> None:
        super().__init__(n_splits, shuffle=shuffle, random_state=random_state)
        self.classes = classes

    def split(
        self, X: Any, y: Any, groups: Any = None
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Training and test rows of each fold.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Features; only the number of rows is used.
        y : array-like of shape (n,) or (n, 2)
            Exact labels, or inclusive ranges ``[lower, upper]``.
        groups : object
            Ignored.

        Yields
        ------
        train, test : arrays of row numbers
            The rows of all other folds, and of this one.
        """
        fold = self._folds(X, y)
        for number in range(self.n_splits):
            yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)

    def _folds(self, X: Any, y: Any) -> NDArray[np.intp]:
        """The fold of every row; rows of equal labels are dealt out evenly."""
        labels, order = read_labels(y)
        try:
            grades = find_classes(labels, order, self.classes)
        except ValueError as error:
            raise ValueError(f"StratifiedIntervalKFold: {error}") from None
        lower, upper = encode(labels, grades)
        indexable(X, lower)
        n_rows = lower.size
        if self.n_splits > n_rows:
            raise ValueError(
                f"n_splits={self.n_splits} is more than the number of rows, {n_rows}; each fold "
                "needs one"
            )
        shuffled, names = np.arange(n_rows), np.arange(self.n_splits)
        if self.shuffle:
            rng = check_random_state(self.random_state)
            shuffled, names = rng.permutation(shuffled), rng.permutation(names)
        shuffled = shuffled[np.lexsort((upper[shuffled], (lower + upper)[shuffled]))]
        fold = np.empty(n_rows, dtype=np.intp)
        fold[shuffled] = names[np.arange(n_rows) % self.n_splits]
        return fold
