"""Labels in any container as ranges of ranks 1..K; an exact label is a range of width zero."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordspan.core.state import Ranks
from ordspan.labels.forms import is_number, normalise_label, number_as_text, readings
from ordspan.labels.grades import check_classes, sorted_grades
from ordspan.wording import brief, shown, warn

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
        return _read_frame(y)
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


def _read_frame(y: Any) -> tuple[Labels, NDArray[Any] | None]:
    if len(y.columns) not in (1, 2):
        raise ValueError(
            f"y has {len(y.columns)} columns; use one column of labels or two, lower and upper"
        )
    if len({*y.columns}) < len(y.columns):
        raise ValueError(f"both columns of y are named {y.columns[0]!r}; rename one of them")
    columns, orders = zip(*(read_column(y[name]) for name in y.columns), strict=True)
    return columns[0] if len(columns) == 1 else pairs(*columns), common_order(*orders)


def common_order(*orders: NDArray[Any] | None) -> NDArray[Any] | None:
    """The order of the grades that columns know, which must agree."""
    known = [order for order in orders if order is not None]
    if known and not np.array_equal(known[0], known[-1]):
        raise ValueError(f"two columns differ in order: {shown(known[0])} and {shown(known[-1])}")
    return known[0] if known else None


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
    return len(label) if isinstance(label, list | tuple | np.ndarray) else 0


def pairs(lower: NDArray[Any], upper: NDArray[Any]) -> Labels:
    """Two columns of ends as one array; numbers beside strings do not become strings."""
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
    if labels.ndim == 2 and grades.dtype.kind in "iuf" and (edge := shared_edge(*labels.T)):
        warn(
            f"these ranges look like brackets of amounts: {edge} ends one and begins another, but "
            "both ends are taken for grades that belong to the range. Use y, classes = "
            "ordspan.brackets(lower, upper), or list the grades with classes=[...]"
        )
    return grades


def shared_edge(lower: NDArray[Any], upper: NDArray[Any]) -> str:
    """An amount at which one bracket ends and another begins; empty if ranges are of grades.

    Those of grades hold a single grade somewhere, span at most ten, or mostly end one apart.

    >>> shared_edge(np.array([0, 18, 30]), np.array([18, 30, np.nan]))
    '18'
    >>> shared_edge(np.array([1, 2, 3]), np.array([2, 4, 5]))
    ''
    """
    low, high = (np.where(is_open(end), np.nan, end).astype(float) for end in (lower, upper))
    ends, shared = distinct(np.concatenate([low, high])), distinct(np.intersect1d(low, high))
    if not shared.size or (low == high).any():
        return ""
    amounts = ends[-1] - ends[0] > 10 and np.median(np.diff(ends)) > 1
    return number_as_text(shared[0]) if amounts else ""


def distinct(labels: Labels) -> NDArray[Any]:
    """All grades that occur in labels, sorted, without open ends.

    >>> distinct(np.array([[2.0, np.nan], [2.0, 1.0]]))
    array([1., 2.])
    """
    known = labels[~is_open(labels)]
    # arrays that were objects only to hold open ends become numbers or strings again
    return np.unique(np.array(known.tolist()) if known.dtype == object else known)


def refuse_missing(labels: Labels) -> None:
    """Refuse missing exact labels; only ranges can have an open end."""
    if labels.ndim == 1 and (missing := is_open(labels)).any():
        row = int(np.argmax(missing))
        raise ValueError(
            f"Input y contains NaN, infinity or a missing value: row {row} is {labels[row]!r}; "
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


def encode(labels: Labels, classes: NDArray[Any], *, what: str = "label") -> tuple[Ranks, Ranks]:
    """Lower and upper ranks 1..K of labels; open ends of ranges become 1 and K.

    ``what`` is the word for a label in errors.

    >>> encode(np.array([["mid", "high"]]), np.array(["low", "mid", "high"]))
    (array([2]), array([3]))
    """
    if labels.ndim == 1:
        refuse_missing(labels)
        ranks = _ranks(labels, classes, what)
        return ranks, ranks
    ranks = _ranks(labels, classes, what)
    lower, upper = np.ascontiguousarray(np.where(ranks == 0, [1, classes.size], ranks).T)
    if (lower > upper).any():
        row = int(np.argmax(lower > upper))
        low, high = labels[row].tolist()
        remedy = "swap the two columns?"
        if (lower < upper).any():
            remedy = (
                "swap the two in this row? If these are two people's votes, take the lower and the "
                "higher of each row"
            )
        raise ValueError(f"row {row}: lower end {low!r} is above upper end {high!r}; {remedy}")
    return lower, upper


def _ranks(labels: Labels, classes: NDArray[Any], what: str) -> Ranks:
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
        remedy = "correct it, leave the row out, or start anew with every grade in classes=[...]"
        if isinstance(label, str) and (is_number(label) or any(readings(normalise_label(label)))):
            remedy = "to read labels like this, use y = ordspan.parse_intervals(y, classes=[...])"
        raise ValueError(
            f"row {row}: {what} {label!r} is not one of the grades {shown(classes)}; {remedy}"
        )
    ranks = np.zeros(labels.shape, dtype=np.int64)
    ranks[is_known] = at + 1
    return ranks
