"""`stream`: files of any size as batches for ``partial_fit``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from ordspan.tables.files import FileOptions, expand
from ordspan.tables.rows import BadRows, Batch
from ordspan.wording import check_choice, report_missing

if TYPE_CHECKING:
    from ordspan.tables.reading import RowReader

BATCH_ROWS = 1 << 16


class Stream:
    """Batches of rows from files; each ``for`` loop over it is another pass. Made by `stream`.

    Parameters
    ----------
    reader : RowReader
        Yields the rows.

    Attributes
    ----------
    classes : array or None
        The grades from lowest to highest; None if the rows have no labels.
    encoder : Encoder
        How columns become features.
    feature_names : list of str
        Names of the features, in the order of the columns of ``X``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from ordspan import stream
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("size,grade\\n0.5,1\\n1.5,2\\n")
    >>> batches = stream(path, label="grade")
    >>> batches.classes, batches.feature_names
    (array([1, 2]), ['size'])
    >>> sum(len(batch.y) for batch in batches), sum(len(batch.y) for batch in batches)
    (2, 2)
    """

    def __init__(self, reader: RowReader) -> None:
        self._reader, self.encoder = reader, reader.encoder
        self.classes: NDArray[Any] | None = reader.grades.classes if reader.grades else None
        self.feature_names = reader.recipe.feature_names()

    @property
    def skipped(self) -> int:
        """Number of bad rows skipped so far."""
        return self._reader.bad.count

    def __iter__(self) -> Iterator[Batch]:
        self.encoder.unlike.clear()
        for batch in self._reader.batches(size=BATCH_ROWS):
            learn = self._reader.learns_scale  # standard input, which has no second pass
            yield replace(batch, X=self.encoder.features(batch.X, batch.table, learn=learn))

    @property
    def notes(self) -> list[str]:
        """What may surprise you in a sample of the files, or of the rows read so far."""
        what = self._reader.sorted_by
        order = f"neighbouring rows are alike in {what}; shuffle them before learning"
        return [*self._reader.notes, *([order] if what else []), *self.encoder.notes()]


@report_missing()
def stream(
    paths: str | Path | Iterable[str | Path],
    *,
    label: str | None = None,
    lower: str | None = None,
    upper: str | None = None,
    classes: Sequence[Any] | None = None,
    group: str | None = None,
    keep: Sequence[str] = (),
    on_bad_row: str = "raise",
    **options: Any,
) -> Stream:
    """Read files of any size batch by batch, in bounded memory.

    Columns, scale and grades are found in these files alone. A model that `ordspan.train_files`
    writes reads other files with those it was trained on.

    Parameters
    ----------
    paths : path, or several
        CSV (.csv, .tsv), JSON lines (.jsonl), Parquet (.parquet), Arrow (.arrow, .feather), Excel
        (.xlsx), SPSS (.sav), Stata (.dta) or svmlight/LETOR (.txt, .svm); text files may be
        compressed (.gz, .zst). A folder, or a pattern such as ``data/*.csv``, expands to its files.
    label : str, optional
        Column of grades or of ranges written as ``3-5``, ``>=3``, ``<=2`` or ``[3,5]``. Without
        a label column the rows have no labels; svmlight rows always have one.
    lower, upper : str, optional
        Instead of ``label``: columns of the lowest and the highest grade; an empty cell is an open
        end.
    classes : sequence, optional
        All grades from lowest to highest. By default, numeric grades are found by another pass
        over the label column alone, and sorted; named grades require it.
    group : str, optional
        Column with the group (query) of each row; for svmlight rows it is their qid.
    keep : str or sequence of str
        Columns to keep in ``Batch.kept``.
    on_bad_row : {"raise", "skip"}
        Raise an error at the first bad row, or skip bad rows and count them.
    **options
        How to read the files and their columns, as in `ordspan.train_files`: ``features``,
        ``drop``, ``text``, ``hashed``, ``hash_bits``, ``missing``, ``format``, ``delimiter``,
        ``decimal``, ``encoding``, ``zero_based`` and ``n_features``. With ``standardise=True``
        every number is centred and scaled by mean and spread (sparse rows: scaled only), estimated
        from a sample of the files; for standard input, from the rows up to each one.

    Returns
    -------
    Stream
        An iterable of `Batch`, with ``classes``, ``feature_names`` and ``skipped``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from ordspan import OrdinalPA, stream
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "ratings.csv"
    >>> _ = path.write_text("size,age,grade\\n1,20,low\\n5,30,mid\\n9,25,>=mid\\n")
    >>> batches = stream(path, label="grade", classes=["low", "mid", "high"], drop=["age"])
    >>> model = OrdinalPA(classes=batches.classes)
    >>> for batch in batches:
    ...     model = model.partial_fit(batch.X, batch.y)
    >>> batch.X.ravel(), batch.y.tolist()
    (array([1., 5., 9.]), [['low', 'low'], ['mid', 'mid'], ['mid', 'high']])
    """
    # these need Polars, which comes with the extra cli
    from ordspan.tables.label_columns import LabelColumns
    from ordspan.tables.profile import ColumnChoice
    from ordspan.tables.reading import RowReader

    check_choice("on_bad_row", on_bad_row, ("raise", "skip"))
    for name in options:
        check_choice("option of stream", name, FileOptions.__match_args__ + ColumnChoice._fields)
    opening = {n: options.pop(n) for n in FileOptions.__match_args__ if n in options}
    columns, bad = LabelColumns(label, lower, upper), BadRows(on_bad_row)
    files = expand([paths] if isinstance(paths, str | Path) else paths)
    kept = (keep,) if isinstance(keep, str) else tuple(keep)
    reader = RowReader(files, FileOptions(**opening), columns, bad, group, kept)
    choice = ColumnChoice.of({"standardise": False} | options)
    return Stream(reader.find_columns(choice, classes))
