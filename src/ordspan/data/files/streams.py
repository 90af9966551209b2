"""`stream`: files of any size as batches for ``partial_fit``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordspan.core.labels import check_classes
from ordspan.data.files.chunks import BadRows
from ordspan.data.files.features import DEFAULT_HASH_BITS, Recipe, Scale, with_words
from ordspan.data.files.grades import Grades, LabelColumns
from ordspan.data.files.lines import STDIN
from ordspan.data.files.reading import (
    FileOptions,
    Piece,
    RowReader,
    count_features,
    expand,
    find_classes,
    format_of,
    make_recipe,
)
from ordspan.data.files.svmlight_file import GROUP, LABEL


class Batch(NamedTuple):
    """Some rows of a file, as `stream` yields them.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        Features.
    y : array of shape (n,) or (n, 2), or None
        Labels in the user's words, (n,) where all of the batch are exact; None without labels.
    group : array of shape (n,), or None
        The group (query) of each row, where there is one.
    kept : pyarrow.Table
        The columns named by ``keep``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from ordspan.data import stream
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("id,size,grade\\n7,0.5,1\\n8,1.5,1-2\\n")
    >>> batch = next(iter(stream(path, label="grade", drop=["id"], keep=["id"])))
    >>> batch.X.tolist(), batch.y.tolist(), batch.kept.column("id").to_pylist()
    ([[0.5], [1.5]], [[1, 1], [1, 2]], ['7', '8'])
    """

    X: Any
    y: NDArray[Any] | None
    group: NDArray[Any] | None
    kept: Any


class Stream:
    """Batches of files; each ``for`` loop over it is one more pass. Made by `stream`.

    Parameters
    ----------
    reader : RowReader
        Yields the rows.
    classes : array, optional
        The grades from lowest to highest, where the rows have labels.
    group : str, optional
        Column with the group of each row.
    keep : list of str
        Columns to carry along.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from ordspan.data import stream
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("size,grade\\n0.5,1\\n1.5,2\\n")
    >>> batches = stream(path, label="grade")
    >>> batches.classes, batches.feature_names
    (array([1, 2]), ['size'])
    >>> sum(len(batch.y) for batch in batches), sum(len(batch.y) for batch in batches)
    (2, 2)
    """

    def __init__(
        self, reader: RowReader, classes: NDArray[Any] | None, group: str | None, keep: list[str]
    ) -> None:
        self._reader = reader
        self._group = group
        self._keep = keep
        self._scale = Scale(reader.recipe.n_scaled) if reader.recipe.standardise else None
        self._passes = 0
        self.classes = classes

    @property
    def recipe(self) -> Recipe:
        """Which columns make the features."""
        return self._reader.recipe

    @property
    def feature_names(self) -> list[str]:
        """Names of the features, in the order of the columns of ``X``."""
        return [self.recipe.feature_name(j) for j in range(self.recipe.n_features)]

    @property
    def skipped(self) -> int:
        """Bad rows that were left out so far."""
        return self._reader.bad.count

    def __iter__(self) -> Iterator[Batch]:
        first = not self._passes
        if first and self._scale is not None:
            self._scale = Scale(self.recipe.n_scaled)  # a pass that was broken off does not count
        for piece in self._reader.pieces():
            yield self._batch(piece, first)
        self._passes += 1

    def _batch(self, piece: Piece, first: bool) -> Batch:
        matrix = piece.matrix
        if self._scale is not None:
            matrix = self._scale.learn(matrix) if first else self._scale.apply(matrix)
        table = piece.chunk.table
        names = table.column_names
        group = None
        if self._group in names:
            group = table.column(self._group).to_numpy()
        X = with_words(self.recipe, matrix, table)
        return Batch(X, self._labels(piece), group, table.select(self._keep))

    def _labels(self, piece: Piece) -> NDArray[Any] | None:
        if self.classes is None or piece.lower is None or piece.upper is None:
            return None
        if np.array_equal(piece.lower, piece.upper):
            return self.classes[piece.lower - 1]
        return np.column_stack([self.classes[piece.lower - 1], self.classes[piece.upper - 1]])


def stream(
    paths: str | Path | Iterable[str | Path],
    *,
    label: str | None = None,
    lower: str | None = None,
    upper: str | None = None,
    order: Sequence[Any] | None = None,
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    text: Sequence[str] = (),
    group: str | None = None,
    keep: Sequence[str] = (),
    hash_bits: int = DEFAULT_HASH_BITS,
    standardise: bool = False,
    on_bad_row: str = "raise",
    format: str | None = None,
    delimiter: str = ",",
    zero_based: bool = False,
    n_features: int | None = None,
) -> Stream:
    """Read files of any size batch by batch, in bounded memory.

    Parameters
    ----------
    paths : path, or several
        CSV (.csv, .tsv), JSON lines (.jsonl), Parquet (.parquet) or svmlight/LETOR (.txt, .svm);
        the texts also packed (.gz, .zst). A folder stands for the files in it.
    label : str, optional
        Column of grades or of ranges written as ``3-5``, ``>=3``, ``<=2`` or ``[3,5]``. Without
        any label column the rows have no labels; svmlight rows always have theirs.
    lower, upper : str, optional
        Instead: columns of the lowest and of the highest grade; an empty cell is an open end.
    order : sequence, optional
        All grades from lowest to highest. Left out, numeric grades are found by one more pass
        over the label column alone, and sorted; named grades need it.
    features, drop : sequence of str, optional
        Columns to learn from (left out: all but labels and group), or columns to leave out.
    text : sequence of str
        Columns to take as words even where they hold numbers, such as postal codes.
    group : str, optional
        Column with the group (query) of each row; svmlight rows have their qid.
    keep : sequence of str
        Columns to carry along in ``Batch.kept``.
    hash_bits : int
        Words are hashed one-hot into ``2 ** hash_bits`` features by scikit-learn's FeatureHasher.
    standardise : bool
        Centre and scale every number by running mean and spread (sparse rows: scale only). They
        are learnt in the first pass and kept in later ones.
    on_bad_row : {"raise", "skip"}
        End with a message about the first bad row, or leave bad rows out and count them.
    format : {"csv", "jsonl", "parquet", "svmlight"}, optional
        Left out, the ending of the name decides.
    delimiter : str
        What separates the fields of a CSV file.
    zero_based : bool
        Whether the indices of svmlight rows begin at 0.
    n_features : int, optional
        Number of features of svmlight rows; left out, found by a quick first pass.

    Returns
    -------
    Stream
        An iterable of `Batch`; also has ``classes``, ``feature_names`` and ``skipped``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from ordspan import OrdinalPA
    >>> from ordspan.data import stream
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "ratings.csv"
    >>> _ = path.write_text("size,age,grade\\n1,20,low\\n5,30,mid\\n9,25,>=mid\\n")
    >>> batches = stream(path, label="grade", order=["low", "mid", "high"], drop=["age"])
    >>> model = OrdinalPA(classes=batches.classes)
    >>> for batch in batches:
    ...     model = model.partial_fit(batch.X, batch.y)
    >>> batch.X.ravel(), batch.y.tolist()
    (array([1., 5., 9.]), [['low', 'low'], ['mid', 'mid'], ['mid', 'high']])
    """
    _need_pyarrow()
    files = expand([paths] if isinstance(paths, str | Path) else paths)
    options = count_features(files, FileOptions(format, delimiter, zero_based, n_features or 0))
    columns = label_columns(label, lower, upper)
    bad = BadRows(on_bad_row)
    if is_sparse(files[0], options):
        columns, group = LabelColumns(LABEL), GROUP
    recipe, first = make_recipe(
        files[0],
        options,
        taken=[*columns.names(), *([group] if group else [])],
        features=features,
        drop=drop,
        text=text,
        hash_bits=hash_bits,
        standardise=standardise,
    )
    classes = None
    if columns.names():
        classes = known_classes(order, files, options, columns, on_bad_row)
    reader = RowReader(
        files,
        options,
        recipe,
        columns,
        None if classes is None else Grades(classes),
        bad,
        [*([group] if group else []), *keep],
        first,
    )
    return Stream(reader, classes, group, list(keep))


def _need_pyarrow() -> None:
    try:
        import pyarrow  # noqa: F401
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "ordspan.data.stream needs pyarrow: pip install 'ordspan[cli]'", name="pyarrow"
        ) from None


def is_sparse(path: str, options: FileOptions) -> bool:
    """Whether a file has svmlight rows, whose label and query stand at known places."""
    return path != STDIN and format_of(path, options) == "svmlight"


def label_columns(label: str | None, lower: str | None, upper: str | None) -> LabelColumns:
    """The label columns that were named, one way or the other."""
    if label is not None and (lower is not None or upper is not None):
        raise ValueError("give either a label column, or columns of lower and upper ends")
    return LabelColumns(label, lower, upper)


def known_classes(
    order: Sequence[Any] | None,
    files: Sequence[str],
    options: FileOptions,
    columns: LabelColumns,
    on_bad_row: str,
) -> NDArray[Any]:
    """The grades in the order that was given, or found by one pass over the label columns."""
    if order is not None:
        return check_classes(order)
    return find_classes(files, options, columns, BadRows(on_bad_row))
