"""Range labels for `fit` from what people have: two columns, text, amounts, several ratings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ordspan.labels.amounts import (
    WIDENED,
    Floats,
    band_names,
    band_ranks,
    bands_of,
    check_edges,
    find_edges,
    is_widened,
)
from ordspan.labels.forms import OPEN, normalise_label, number_as_text
from ordspan.labels.grades import check_classes, classes_of, numbers_of
from ordspan.labels.ranks import (
    Labels,
    common_order,
    distinct,
    encode,
    find_classes,
    is_open,
    is_open_value,
    pairs,
    read_column,
    read_labels,
)
from ordspan.labels.text import LabelReader, rating_range, split_ratings
from ordspan.wording import brief, check_choice, warn


def intervals(lower: ArrayLike, upper: ArrayLike, *, classes: Any = None) -> NDArray[Any]:
    """Build range labels for ``fit`` from two columns, closing open ends.

    Parameters
    ----------
    lower, upper : array-like of shape (n,)
        Ends of the ranges in your own labels, both inclusive. None, NaN and infinities are open
        ends: "at least 3" is ``lower=3, upper=None``. For text like that, see `parse_intervals`.
    classes : array-like, optional
        All grades from lowest to highest. By default, the numbers that occur, sorted.

    Returns
    -------
    ndarray of shape (n, 2)
        The ``y`` to pass to any estimator.

    Examples
    --------
    >>> from ordspan import intervals
    >>> intervals([1, 2, None], [1, 4, 3], classes=[1, 2, 3, 4])
    array([[1, 1],
           [2, 4],
           [1, 3]])
    >>> intervals(["mid"], [None], classes=["low", "mid", "high"])
    array([['mid', 'high']], dtype='<U4')

    Two people's votes, from the lower to the higher one of each row:

    >>> grades, anna, ben = ["low", "mid", "high"], ["mid"], ["low"]
    >>> lower, upper = zip(*(sorted(votes, key=grades.index) for votes in zip(anna, ben)))
    >>> intervals(lower, upper, classes=grades)
    array([['low', 'mid']], dtype='<U4')
    """
    labels, orders = _two_columns(lower, upper)
    order = common_order(*orders) if classes is None else None
    grades = find_classes(labels, order, classes)
    return np.column_stack([grades[ranks - 1] for ranks in encode(labels, grades)])


def _two_columns(lower: Any, upper: Any) -> tuple[Labels, tuple[Any, Any]]:
    """Two columns of ends as one array, and the order of the grades of each, if it has one."""
    (low, low_order), (high, high_order) = read_column(lower), read_column(upper)
    if low.ndim != 1 or low.shape != high.shape:
        raise ValueError(
            f"lower and upper must be columns of one length, got shapes {low.shape}, {high.shape}"
        )
    return pairs(low, high), (low_order, high_order)


def parse_intervals(labels: ArrayLike, *, classes: Any = None) -> NDArray[Any]:
    """Build range labels for ``fit`` from one column of labels as people write them.

    Every form that files may use is read: ``4``, ``"3-5"``, ``"at least 3"``, ``"65+"``,
    ``"<=2"``, ``"between 2 and 4"``; the user guide lists them all.

    Parameters
    ----------
    labels : array-like of shape (n,)
        Grades and ranges of grades, as text or numbers. A label that is the name of a grade is
        that grade. A missing label (None, NaN or empty text) becomes the range of all grades.
    classes : array-like, optional
        All grades from lowest to highest. By default the order of an ordered Categorical, or else
        the numbers that occur in the labels; grades that are names must be given.

    Returns
    -------
    ndarray of shape (n, 2)
        The ``y`` to pass to any estimator.

    See Also
    --------
    intervals : Build range labels from two columns, one for each end.

    Examples
    --------
    >>> from ordspan import parse_intervals
    >>> parse_intervals(["1-2", "at least 3", 5, None], classes=[1, 2, 3, 4, 5])
    array([[1, 2],
           [3, 5],
           [5, 5],
           [1, 5]])
    >>> parse_intervals(["18-24", "25-34 or older"], classes=["18-24", "25-34", "35+"])
    array([['18-24', '18-24'],
           ['25-34', '35+']], dtype='<U5')
    """
    values, order = read_column(labels)
    if values.ndim != 1:
        raise ValueError(
            f"labels must be one column, got shape {values.shape}; for two columns, one for each "
            "end, use intervals(lower, upper)"
        )
    texts = np.where(is_open(values), "", values.astype(str)).tolist()
    given = order if classes is None else classes
    grades = classes_of(texts) if given is None else check_classes(given)
    reader = LabelReader(grades)
    ranks: dict[str, tuple[int, int]] = {}
    for text in dict.fromkeys(texts):
        try:
            ranks[text] = reader.interval(text)
        except ValueError as error:
            if normalise_label(text) not in OPEN:
                raise ValueError(f"row {texts.index(text)}: label {brief(text)}: {error}") from None
            ranks[text] = 1, grades.size
    if reader.note:
        warn(reader.note)
    return grades[np.array([ranks[text] for text in texts], dtype=np.int64).reshape(-1, 2) - 1]


def brackets(
    lower: Any, upper: ArrayLike | None = None, edges: Sequence[Any] | None = None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Build range labels for ``fit`` from brackets of amounts, such as incomes or ages.

    The brackets may come from several sources whose edges do not align. The grades are the bands
    between all edges; a bracket is the range of the bands that it covers.

    Parameters
    ----------
    lower, upper : array-like of shape (n,)
        Ends of half-open brackets ``[lower, upper)``. None, NaN and infinities are open ends; two
        equal ends are a single amount, which stands for the band that holds it. Instead of both,
        ``lower`` alone may be a pandas IntervalArray closed on one side, or text such as
        ``"$25,000 to $49,999"``, ``"under 90k"``, ``"90-140k"`` or ``"60+"``, or both columns.
    edges : sequence, optional
        The edges between the bands, as numbers or as text such as ``"25k"``. By default all at
        which at least 5 labels end; others are left out with a warning.

    Returns
    -------
    y : ndarray of shape (n, 2)
        The ``y`` to pass to any estimator. A bracket that ends between two edges is widened to
        them, never narrowed.
    classes : ndarray of shape (K,)
        The bands from lowest to highest, to pass as ``classes=``.

    See Also
    --------
    intervals : Build range labels from two columns of grades.

    Examples
    --------
    Two surveys asked for the income with different brackets:

    >>> import numpy as np
    >>> from ordspan import OrdinalPA, brackets
    >>> lower = [0, 25_000, 50_000, None, 40_000] * 10
    >>> upper = [25_000, 50_000, None, 40_000, None] * 10
    >>> y, classes = brackets(lower, upper)
    >>> print(*classes, sep=" | ")
    under 25k | 25k to 40k | 40k to 50k | 50k or more
    >>> y[3:5]
    array([['under 25k', '25k to 40k'],
           ['40k to 50k', '50k or more']], dtype='<U11')
    >>> X = np.arange(50).reshape(-1, 1) % 5
    >>> model = OrdinalPA(classes=classes).fit(X, y)

    Brackets as people write them:

    >>> y, classes = brackets(["18-29", "30-44", "45+"] * 5)
    >>> y[1]
    array(['30 to 45', '30 to 45'], dtype='<U10')
    """
    bands = None if edges is None else check_edges(edges)
    dtype = getattr(lower, "dtype", None)
    if upper is None and not hasattr(dtype, "closed"):
        texts = read_labels(lower)[0]
        if texts.ndim == 2:
            return brackets(texts[:, 0], texts[:, 1], edges)
        words = Counter(texts[~is_open(texts)].astype(str).tolist())
        classes, notes = bands_of(words) if bands is None else (np.array(band_names(bands)), [])
        y = parse_intervals(texts, classes=classes)
    else:
        spans = _spans(lower, upper)
        notes = []
        if bands is None:
            bands, notes = find_edges(spans, np.ones(len(spans), dtype=np.int64))
        elif n_widened := int(is_widened(spans, bands).sum()):
            notes = ["", f"{WIDENED}: {n_widened:,} of {len(spans):,}"]
        classes = np.array(band_names(bands))
        y = classes[np.column_stack(band_ranks(spans, bands)) - 1]
    for note in notes[1:]:
        warn(note)
    return y, classes


def _spans(lower: Any, upper: Any) -> Floats:
    """Brackets in two columns or intervals as an array of shape (n, 2), open ends infinite."""
    if upper is None:
        intervals = getattr(lower, "array", lower)
        if intervals.closed == "both":
            raise ValueError(
                "these intervals are closed on both sides: pass them to fit as y if their ends are "
                "grades, or build them with closed='left' if they are amounts"
            )
        lower, upper = intervals.left, intervals.right
    labels, _ = _two_columns(lower, upper)
    open_ends = np.array([-np.inf, np.inf], dtype=object)
    spans = np.where(is_open(labels), open_ends, labels).astype(np.float64)
    if (crossed := spans[:, 0] > spans[:, 1]).any():
        row = int(np.argmax(crossed))
        start, end = map(number_as_text, spans[row])
        raise ValueError(f"row {row}: lower {start} is above upper {end}; swap the two columns?")
    return spans


def from_ratings(ratings: Any, span: str = "quartiles", *, classes: Any = None) -> NDArray[Any]:
    """Build range labels for ``fit`` from several people's ratings of each row.

    Parameters
    ----------
    ratings : array-like of shape (n, judges), or n lists
        Grades, with None or NaN where a judge did not rate: an array, a frame with a column for
        each judge, or a list (a Series) of lists of any length. A row without any rating becomes
        the range of all grades.
    span : {"quartiles", "all"}, default="quartiles"
        "quartiles" leaves out the lowest and the highest quarter of a row's ratings (rounded down,
        so of up to 3 none) and spans the others, at least half of them; "all" spans all of them.
    classes : array-like, optional
        All grades from lowest to highest. By default the order of ordered Categoricals, or else the
        numbers that occur, sorted.

    Returns
    -------
    ndarray of shape (n, 2)
        The ``y`` to pass to any estimator.

    Notes
    -----
    This assumes that the judges use the same scale, that they are about equally good, and that the
    truth lies where most of them put it. Where many agree the range is one grade, so agreement
    counts as certainty. With "all", one careless judge makes a range wide, but never wrong while
    another judge is right.

    Examples
    --------
    >>> from ordspan import from_ratings
    >>> from_ratings([[1, 2, 2, 5], [3, 3, None, 4]])
    array([[2, 2],
           [3, 4]])
    >>> from_ratings([["low", "mid"], ["high"]], classes=["low", "mid", "high"])
    array([['low', 'mid'],
           ['high', 'high']], dtype='<U4')

    Lists in the cells of a column may be text:

    >>> from_ratings(["[1, 2, 2]", "[3]"])
    array([[1, 2],
           [3, 3]])
    """
    check_choice("span", span, ("quartiles", "all"))
    order, rows = None, ratings
    if hasattr(ratings, "columns") and hasattr(ratings, "shape"):
        columns, orders = zip(
            *(read_column(ratings[name]) for name in ratings.columns), strict=True
        )
        order = common_order(*orders) if classes is None else None
        rows = zip(*(column.tolist() for column in columns), strict=True)
    cells = [_votes(row, cell) for row, cell in enumerate(rows)]
    labels = np.array([vote for votes in cells for vote in votes])
    numbers = numbers_of(labels) if labels.size and order is None and classes is None else None
    labels = labels if numbers is None else numbers
    grades = find_classes(distinct(labels), order, classes)
    spans = np.column_stack(encode(labels, grades))
    ranks = np.split(spans, np.cumsum([len(votes) for votes in cells])[:-1])
    ends = [rating_range(row, span) if row.size else (1, grades.size) for row in ranks]
    return grades[np.array(ends, dtype=np.int64).reshape(-1, 2) - 1]


def _votes(row: int, cell: Any) -> list[Any]:
    """The ratings in a row, without gaps."""
    votes = split_ratings(cell) if isinstance(cell, str) else cell
    if not hasattr(votes, "__iter__"):
        raise ValueError(
            f"row {row}: {brief(cell)} is not a list of ratings; give a column for each judge, or "
            "lists"
        )
    return [vote for vote in votes if not is_open_value(vote) and vote != ""]
