"""Labels in any container as ranges of ranks 1..K, and range labels built for `fit`.

An exact label is a range of width zero.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ordspan.core.state import Floats, Ranks
from ordspan.labels import amounts
from ordspan.labels.forms import OPEN, is_number, normalise_label, number_as_text, readings
from ordspan.labels.grades import (
    check_classes,
    classes_of,
    far_from_others,
    numbers_of,
    sorted_grades,
)
from ordspan.labels.text import LabelReader, rating_range, split_ratings
from ordspan.wording import brief, check_choice, shown, warn

SHARED_EDGES = (
    "{0} ends one and begins another",
    "{1} ends one and {0} begins another; add 1 to the upper ends",
)
"""What ends of brackets have in common that are half-open, or closed at both ends."""
Labels = NDArray[Any]
"""Labels in the user's grades: (n,) if they are exact, (n, 2) if they are ranges."""


def read_labels(y: Any) -> tuple[Labels, NDArray[Any] | None]:
    """Labels of any container as an array, and the order of the grades if the container has one.

    An ordered pandas Categorical and a polars Enum have one; neither package is imported for this.

    >>> read_labels([[1, 2], [2, 2]])
    (array([[1, 2],
           [2, 2]]), None)
    """
    if y is None:
        raise ValueError("this requires y to be passed, but the target y is None")
    if hasattr(y, "columns") and hasattr(y, "shape"):
        if len(y.columns) not in (1, 2):
            raise ValueError(
                f"y has {len(y.columns)} columns; use one column of labels or two, lower and upper"
            )
        columns, orders = read_columns(y[name] for name in y.columns)
        return columns[0] if len(columns) == 1 else pairs(*columns), common_order(*orders)
    labels, order = read_column(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        warn(
            "A column-vector y was passed when a 1d array was expected; y.ravel() was used",
            DataConversionWarning,
        )
        labels = labels.ravel()
    if labels.ndim != 1 and labels.shape[1:] != (2,):
        raise ValueError(
            f"y must have shape (n,) or, for ranges, (n, 2), but has shape {labels.shape}"
        )
    return labels, order


def common_order(*orders: NDArray[Any] | None) -> NDArray[Any] | None:
    """The order of the grades that columns know, which must agree."""
    lists = [order for order in orders if order is not None]
    if lists and not np.array_equal(lists[0], lists[-1]):
        raise ValueError(
            f"two columns differ in order: {shown(lists[0])} and {shown(lists[-1])}; give the "
            "right one with classes=[...]"
        )
    return lists[0] if lists else None


def read_columns(columns: Iterable[Any]) -> tuple[list[Labels], list[NDArray[Any] | None]]:
    """The values of columns, and the order of the grades of each, if it has one."""
    values, orders = zip(*map(read_column, columns), strict=True)
    return list(values), list(orders)


def read_column(y: Any) -> tuple[Labels, NDArray[Any] | None]:
    """The values of a list, an array or a column, and their order if it knows one."""
    dtype: Any = getattr(y, "dtype", None)
    if hasattr(dtype, "closed"):
        intervals = getattr(y, "array", y)
        if intervals.closed != "both":
            raise ValueError(
                f"y holds intervals closed on '{intervals.closed}'; ordspan's ends are inclusive: "
                "build them with closed='both' if their ends are grades, or use y, classes = "
                "ordspan.brackets(y) if they are amounts"
            )
        return pairs(np.asarray(intervals.left), np.asarray(intervals.right)), None
    if getattr(dtype, "ordered", False):
        return np.asarray(y), np.asarray(dtype.categories)
    if type(dtype).__name__ == "Enum":
        return y.cast(str).to_numpy(), dtype.categories.to_numpy()
    values = _as_array(y)
    if values.dtype == object and any(map(_size, values.flat)):
        values = _as_array(y := values.tolist())  # an array or a Series of pairs
    if values.dtype.kind == "U" and isinstance(y, list | tuple):
        as_given = np.asarray(y, dtype=object)  # NumPy turns NaN among strings into 'nan'
        if any(map(is_open_value, as_given.flat)):
            return as_given, None
    return values, None


def _as_array(y: Any) -> NDArray[Any]:
    try:
        values = np.asarray(y)
    except ValueError:  # single grades beside pairs
        sizes = list(map(_size, y))
        row = next((row for row, size in enumerate(sizes) if size != sizes[0]), 0)
        raise ValueError(
            f"row {row}: label {brief(y[row])} is not of the same kind as row 0, {brief(y[0])}; "
            "give labels that are all single grades, or all pairs [lower, upper], for example "
            "from ordspan.intervals(lower, upper)"
        ) from None
    if values.ndim == 0:
        raise ValueError(f"labels must be a list or an array, got {type(y).__name__}")
    return values


def _size(label: Any) -> int:
    """How many values a label holds: 0 for a single grade."""
    return len(label) if isinstance(label, list | tuple | range | np.ndarray) else 0


def pairs(lower: NDArray[Any], upper: NDArray[Any]) -> Labels:
    """Two columns of ends as one array; numbers beside strings do not become strings."""
    if lower.ndim != 1 or lower.shape != upper.shape:
        raise ValueError(
            "lower and upper must be columns of one length, got shapes "
            f"{lower.shape}, {upper.shape}"
        )
    kinds = {lower.dtype.kind, upper.dtype.kind}
    if len(kinds) > 1 and not kinds <= set("biuf"):
        lower, upper = lower.astype(object), upper.astype(object)
    return np.column_stack([lower, upper])


def find_classes(labels: Labels, order: Any = None, classes: Any = None) -> NDArray[Any]:
    """The grades from lowest to highest: those given, the container's, or the sorted labels."""
    if classes is not None or order is not None:
        return check_classes(order if classes is None else classes)
    refuse_missing(labels)
    grades = check_classes(sorted_grades(distinct(labels)))
    is_numeric = grades.dtype.kind in "iuf"
    if labels.ndim == 1 and is_numeric and (codes := far_from_others(grades)).size:
        warn(
            f"the labels {shown(codes)} lie far from the other grades: leave such rows out if they "
            "stand for no answer, or list all grades with classes=[...]"
        )
    if labels.ndim == 2 and is_numeric and (edge := shared_edge(*labels.T)):
        warn(
            f"these ranges look like brackets of amounts: {edge}. Both ends are taken for grades "
            "that belong to the range; if they are amounts, use y, classes = "
            "ordspan.brackets(lower, upper), otherwise list the grades with classes=[...]"
        )
    return grades


def shared_edge(lower: NDArray[Any], upper: NDArray[Any]) -> str:
    """Where one bracket of amounts ends and another begins; empty if ranges are of grades.

    Those of grades hold a single grade somewhere, span at most ten, or mostly end one apart.

    >>> shared_edge(np.array([0, 18, 30]), np.array([18, 30, np.nan]))
    '18 ends one and begins another'
    >>> shared_edge(np.array([0, 18, 30]), np.array([17, 29, np.nan]))
    '17 ends one and 18 begins another; add 1 to the upper ends'
    >>> shared_edge(np.array([1, 2, 3]), np.array([2, 4, 5]))
    ''
    """
    low, high = (np.where(is_open(end), np.nan, end).astype(float) for end in (lower, upper))
    if (low == high).any():
        return ""
    for step, form in enumerate(SHARED_EDGES):
        edges = distinct(np.concatenate([low, high + step]))
        shared = distinct(np.intersect1d(low, high + step))
        if shared.size and edges[-1] - edges[0] > 10 and np.median(np.diff(edges)) > 1:
            return form.format(*map(number_as_text, (shared[0], shared[0] - 1)))
    return ""


def distinct(labels: Labels) -> NDArray[Any]:
    """All grades that occur in labels, sorted, without open ends.

    >>> distinct(np.array([[2.0, np.nan], [2.0, 1.0]]))
    array([1., 2.])
    """
    closed = labels[~is_open(labels)]
    # arrays that were objects only to hold open ends become numbers or strings again
    return np.unique(np.array(closed.tolist()) if closed.dtype == object else closed)


def refuse_missing(labels: Labels) -> None:
    """Refuse missing exact labels; only ranges can have an open end."""
    if labels.ndim == 1 and (missing := is_open(labels)).any():
        row = int(np.argmax(missing))
        raise ValueError(
            f"Input y contains NaN, infinity or a missing value: row {row} is {labels[row]}; "
            "only a range can have an open end: drop the row, or make it a range"
        )


def is_open(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """True where an end is unknown: None, NaN or an infinity."""
    if labels.dtype.kind == "f":
        return ~np.isfinite(labels)
    if labels.dtype.kind == "O":
        return np.array([is_open_value(v) for v in labels.flat], dtype=bool).reshape(labels.shape)
    return np.zeros(labels.shape, dtype=bool)


def is_open_value(value: Any) -> bool:
    """Whether one end is unknown: None, NaN or an infinity."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and not np.isfinite(value)


def encode(
    labels: Labels, classes: NDArray[Any], *, what: str = "label", rows: Any = None
) -> tuple[Ranks, Ranks]:
    """Lower and upper ranks 1..K of labels; open ends of ranges become 1 and K.

    ``what`` is the word for a label in errors, and ``rows`` are the numbers of their rows.

    >>> encode(np.array([["mid", "high"]]), np.array(["low", "mid", "high"]))
    (array([2]), array([3]))
    """
    refuse_missing(labels)
    ranks = _ranks(labels, classes, what, rows)
    if labels.ndim == 1:
        return ranks, ranks
    lower, upper = np.ascontiguousarray(np.where(ranks == 0, [1, classes.size], ranks).T)
    if (lower > upper).any():
        row = int(np.argmax(lower > upper))
        low, high = labels[row].tolist()
        raise ValueError(
            f"row {row}: lower end {low!r} is above upper end {high!r}; swap the two columns, or, "
            "if these are two people's votes, take the lower and the higher of each row"
        )
    return lower, upper


def _ranks(labels: Labels, classes: NDArray[Any], what: str, rows: Any) -> Ranks:
    """The rank of every label or end, 0 for open ends."""
    whole = labels.dtype.kind in "iu" and classes.dtype.kind in "iu"
    if whole and np.array_equal(classes, np.arange(classes[0], classes[0] + classes.size)):
        ranks = labels.astype(np.int64) - (int(classes[0]) - 1)
        if ranks.size == 0 or (ranks.min() >= 1 and ranks.max() <= classes.size):
            return ranks
    is_known = ~is_open(labels)
    values = labels[is_known]
    if values.dtype.kind == "O" and classes.dtype.kind != "O":
        values = np.array(values.tolist())
    at = np.full(values.shape, -1)
    if (values.dtype.kind in "US") == (classes.dtype.kind in "US"):
        sorter = np.argsort(classes)
        at = sorter[np.searchsorted(classes[sorter], values) % classes.size]
    unknown = (at < 0) | (classes[at] != values)
    if unknown.any():
        row, label = np.argwhere(is_known)[unknown][0][0], values[unknown].tolist()[0]
        row = row if rows is None else rows[row]
        remedy = "correct it, leave the row out, or start anew with every grade in classes=[...]"
        if isinstance(label, str) and (is_number(label) or any(readings(normalise_label(label)))):
            remedy = "to read labels like this, use y = ordspan.parse_intervals(y, classes=[...])"
        raise ValueError(
            f"row {row}: {what} {label!r} is not one of the grades {shown(classes)}; {remedy}"
        )
    ranks = np.zeros(labels.shape, dtype=np.int64)
    ranks[is_known] = at + 1
    return ranks


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
    (low, high), orders = read_columns((lower, upper))
    labels = pairs(low, high)
    order = common_order(*orders) if classes is None else None
    grades = find_classes(labels, order, classes)
    return np.column_stack([grades[ranks - 1] for ranks in encode(labels, grades)])


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
    order = order if classes is None else classes
    grades = classes_of(texts) if order is None else check_classes(order)
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
    bands = None if edges is None else amounts.check_edges(edges)
    dtype = getattr(lower, "dtype", None)
    categories = getattr(getattr(dtype, "categories", None), "dtype", None)
    if hasattr(categories, "closed"):  # of pd.cut
        lower, dtype = lower.astype("interval"), categories
    if upper is None and not hasattr(dtype, "closed"):
        texts = read_labels(lower)[0]
        if texts.ndim == 2:
            return brackets(texts[:, 0], texts[:, 1], edges)
        words = Counter(texts[~is_open(texts)].astype(str).tolist())
        amounts.refuse_points(words, bands)
        classes, notes = (
            amounts.bands_of(words) if bands is None else (np.array(amounts.band_names(bands)), [])
        )
        y = parse_intervals(texts, classes=classes)
    else:
        spans = _spans(lower, upper)
        notes = []
        if bands is None:
            bands, notes = amounts.find_edges(spans, np.ones(len(spans), dtype=np.int64))
        elif n_widened := int(amounts.is_widened(spans, bands).sum()):
            notes = ["", f"{amounts.WIDENED}: {n_widened:,} of {len(spans):,}"]
        classes = np.array(amounts.band_names(bands))
        y = classes[np.column_stack(amounts.band_ranks(spans, bands)) - 1]
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
        if intervals.closed == "right":
            warn(
                "these intervals are closed on the right, but an amount at an edge belongs to the "
                "band above it; build them with closed='left' (pd.cut: right=False)"
            )
        lower, upper = intervals.left, intervals.right
    labels = pairs(*read_columns((lower, upper))[0])
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
        columns, orders = read_columns(ratings[name] for name in ratings.columns)
        order = common_order(*orders) if classes is None else None
        rows = zip(*(column.tolist() for column in columns), strict=True)
    cells = [_votes(row, cell) for row, cell in enumerate(rows)]
    labels = np.array([vote for votes in cells for vote in votes])
    numbers = numbers_of(labels) if labels.size and order is None and classes is None else None
    labels = labels if numbers is None else numbers
    grades = find_classes(distinct(labels), order, classes)
    of_votes = np.repeat(np.arange(len(cells)), [len(votes) for votes in cells])
    spans = np.column_stack(encode(labels, grades, what="rating", rows=of_votes))
    ranks = np.split(spans, np.cumsum([len(votes) for votes in cells])[:-1])
    ends = [rating_range(row, span) if row.size else (1, grades.size) for row in ranks]
    return grades[np.array(ends, dtype=np.int64).reshape(-1, 2) - 1]


def _votes(row: int, cell: Any) -> list[Any]:
    """The ratings in a row, without gaps."""
    votes = split_ratings(cell) if isinstance(cell, str) else cell
    if not hasattr(votes, "__iter__") or any(map(_size, votes := list(votes))):
        raise ValueError(
            f"row {row}: {brief(cell)} is not a list of ratings; give a column for each judge, or "
            "lists"
        )
    return [vote for vote in votes if not is_open_value(vote) and vote != ""]
