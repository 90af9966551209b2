"""Convert labels in any container (arrays, pairs, pandas, polars) to lower and upper ends."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning

from ordspan.core.labels import (
    Ranks,
    check_classes,
    check_guess,
    distinct,
    encode_interval,
    is_open,
    list_every_grade,
    read_column,
    shown,
    users_level,
)
from ordspan.estimators.text_labels import can_be_read, refuse_written_ranges


class Labels(NamedTuple):
    """Ends of the labels in the user's grades; the same array twice if exact."""

    lower: NDArray[Any]
    upper: NDArray[Any]
    order: NDArray[Any] | None  # the order of the grades, if the container has one


def read_labels(y: Any) -> Labels:
    """Lower and upper ends of labels in any container.

    >>> read_labels([[1, 2], [2, 2]]).upper
    array([2, 2])
    """
    if y is None:
        raise ValueError("this estimator requires y to be passed, but the target y is None")
    if hasattr(y, "left") and hasattr(y, "right") and hasattr(y, "closed"):
        return _from_pandas_interval(y)
    if hasattr(y, "columns") and hasattr(y, "shape"):
        return _from_frame(y)
    values, order = _column(y)
    if values.ndim == 2 and values.shape[1] == 2:
        return Labels(values[:, 0], values[:, 1], order)
    if values.ndim == 2 and values.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected; y.ravel() was used",
            DataConversionWarning,
            stacklevel=users_level(),
        )
        values = values.ravel()
    if values.ndim != 1:
        raise ValueError(
            f"y must have shape (n,) or, for ranges, (n, 2), but has shape {values.shape}"
        )
    if values.size and isinstance(values[0], list | tuple):
        raise ValueError("y has pairs of different lengths; use [lower, upper] for every row")
    return Labels(values, values, order)


def _from_frame(y: Any) -> Labels:
    names = list(y.columns)
    if len(names) not in (1, 2):
        raise ValueError(
            f"y has {len(names)} columns; use one column of labels or two, lower and upper"
        )
    columns = [_column(y[name]) for name in names]
    lower, order = columns[0]
    upper, upper_order = columns[-1]
    if order is not None and upper_order is not None and not np.array_equal(order, upper_order):
        raise ValueError(
            f"the two columns of y have different orders: {shown(order)} and {shown(upper_order)}"
        )
    return Labels(lower, upper, upper_order if order is None else order)


def _column(y: Any) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Values of a column, and the order of its grades if it has one."""
    if hasattr(getattr(y, "dtype", None), "closed"):
        labels = _from_pandas_interval(y.array)
        return np.column_stack([labels.lower, labels.upper]), None
    return read_column(y)


def _from_pandas_interval(y: Any) -> Labels:
    if y.closed != "both":
        raise ValueError(
            f"y holds intervals closed on '{y.closed}'; ordspan's ends are inclusive, so build "
            "them with closed='both'"
        )
    return Labels(np.asarray(y.left), np.asarray(y.right), None)


def ends(labels: Labels) -> tuple[NDArray[Any], ...]:
    """Label columns: one for exact labels, two for ranges."""
    return (labels.lower,) if labels.lower is labels.upper else (labels.lower, labels.upper)


def refuse_missing(labels: Labels) -> None:
    """Refuse missing exact labels; only ranges can have an open end."""
    if labels.lower is labels.upper and is_open(labels.lower).any():
        row = int(np.argmax(is_open(labels.lower)))
        raise ValueError(
            f"Input y contains NaN, infinity or a missing value: row {row} is "
            f"{labels.lower[row]!r}; only a range can have an open end"
        )


def find_classes(labels: Labels, given: Any) -> NDArray[Any]:
    """The order of the grades: the given one, the container's own, or sorted labels."""
    if given is not None:
        return check_classes(given)
    if labels.order is not None:
        return check_classes(labels.order)
    refuse_missing(labels)
    found = distinct(*ends(labels))
    if found.dtype.kind == "U" and labels.lower is labels.upper:
        refuse_written_ranges(found)
    check_guess(found, *ends(labels))
    if found.dtype.kind == "f" and (found != np.floor(found)).any():
        raise ValueError(
            f"Unknown label type: continuous. Labels like {shown(found)} look like measurements; "
            "bin them into grades, or list the grades in classes=[...]"
        )
    return check_classes(found)


def encode_labels(
    labels: Labels, classes: NDArray[Any], *, fitted: bool = False
) -> tuple[Ranks, Ranks]:
    """Lower and upper ranks of labels; ``fitted`` if the grades can no longer be chosen."""

    def advise(label: Any) -> str:
        if labels.lower is labels.upper and can_be_read(label, classes):
            return "to read labels like this, use y = ordspan.parse_intervals(y, classes=[...])"
        if fitted:
            return (
                "the grades of a fitted model are fixed: correct the label, leave the row out, or "
                "start a new model with every grade in classes=[...]"
            )
        return list_every_grade(label)

    return encode_interval(labels.lower, labels.upper, classes, advise)
