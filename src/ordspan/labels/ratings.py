"""Several people's ratings of a row as one range."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordspan.labels.grades import numbers_of
from ordspan.labels.ranks import (
    common_order,
    distinct,
    encode,
    find_classes,
    is_open_value,
    read_column,
)
from ordspan.labels.text import rating_range
from ordspan.wording import brief, check_choice

SPANS = ("quartiles", "all")


def split_ratings(cell: str) -> list[str]:
    """The ratings in a cell of text.

    >>> split_ratings("[1, 2, 2]"), split_ratings("low; mid"), split_ratings("3")
    (['1', '2', '2'], ['low', 'mid'], ['3'])
    """
    inside = re.fullmatch(r"\s*[\[(]?(.*?)[\])]?\s*", cell, re.DOTALL)
    words = re.split(r"[,;|]", inside[1] if inside else cell)
    return [word.strip().strip("'\"") for word in words]


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
    check_choice("span", span, SPANS)
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
