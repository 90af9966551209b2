"""Labels as intervals of ranks 1..K; an exact label is an interval of width zero."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ranks = NDArray[np.int64]

N_SHOWN = 8


def shown(values: NDArray[Any]) -> str:
    """A few values for an error message.

    >>> shown(np.arange(20))
    '[0, 1, 2, 3, 4, 5, 6, 7, ... 20 in all]'
    """
    head = ", ".join(repr(v) for v in values[:N_SHOWN].tolist())
    more = "" if len(values) <= N_SHOWN else f", ... {len(values)} in all"
    return f"[{head}{more}]"


def check_ranks(lower: ArrayLike, upper: ArrayLike, n_classes: int) -> tuple[Ranks, Ranks]:
    """Lower and upper ranks as integer arrays of one length, every interval within 1..K.

    >>> check_ranks([1, 2], [1, 3], n_classes=3)
    (array([1, 2]), array([1, 3]))
    """
    low = whole_numbers(lower, "lower")
    high = low if upper is lower else whole_numbers(upper, "upper")
    if low.shape != high.shape:
        raise ValueError(f"lower has {low.size} ranks, but upper has {high.size}")
    if low.size == 0:
        return low, high
    for name, ranks in (("lower", low), ("upper", high)):
        if ranks.min() < 1 or ranks.max() > n_classes:
            row = int(np.flatnonzero((ranks < 1) | (ranks > n_classes))[0])
            raise ValueError(f"row {row}: {name} rank {ranks[row]} is not in 1..{n_classes}")
    check_order(low, high, low, high, "rank")
    return low, high


def whole_numbers(ranks: ArrayLike, name: str) -> Ranks:
    """Ranks as a 1-d int64 array; fractions are refused, not truncated."""
    given = np.asarray(ranks)
    if given.ndim != 1:
        raise ValueError(f"{name} must be 1-d, one rank per row, got shape {given.shape}")
    if given.dtype.kind in "iu":
        return given.astype(np.int64, copy=False)
    if given.dtype.kind == "f":
        bad = np.flatnonzero(~np.isfinite(given) | (given != np.floor(given)))
        if bad.size == 0:
            return given.astype(np.int64)
        raise ValueError(f"row {bad[0]}: {name} rank {given[bad[0]]} is not a whole number")
    raise ValueError(f"{name} must hold whole numbers, not {given.dtype}")


def check_order(
    low: Ranks, high: Ranks, lower: NDArray[Any], upper: NDArray[Any], what: str
) -> None:
    """Refuse an interval whose lower end is above its upper end, naming the user's labels."""
    if low is high:
        return
    wrong = low > high
    if wrong.any():
        row = int(np.argmax(wrong))
        a, b = (v.item() if hasattr(v, "item") else v for v in (lower[row], upper[row]))
        remedy = "swap the two columns?"
        if (low < high).any():
            remedy = (
                f"swap the two in this row? Row {np.argmax(low < high)} has them the other way: "
                "if these are two people's votes, take the lower and the higher one of each row"
            )
        raise ValueError(f"row {row}: lower {what} {a!r} is above upper {what} {b!r}; {remedy}")


def check_classes(classes: Any) -> NDArray[Any]:
    """The classes from lowest to highest as a 1-d array of two or more distinct values.

    >>> check_classes(["low", "mid", "high"])
    array(['low', 'mid', 'high'], dtype='<U4')
    """
    order = np.asarray(classes)
    if order.dtype.kind == "O" and all(isinstance(c, str) for c in order.ravel()):
        order = order.astype(str)
    if order.ndim != 1:
        raise ValueError(f"classes must be a 1-d list from lowest to highest, got {order.ndim}-d")
    if order.dtype.kind == "f" and not np.isfinite(order).all():
        raise ValueError(f"classes must be finite, got {shown(order)}")
    unique, counts = np.unique(order, return_counts=True)
    if unique.size < order.size:
        raise ValueError(f"classes lists {unique[counts > 1].tolist()[0]!r} more than once")
    if order.size < 2:
        raise ValueError(
            f"needs at least 2 classes, but got {order.size} class: {shown(order)}; "
            "give classes= if the other grades are only missing from this data"
        )
    return order


def distinct(*labels: NDArray[Any]) -> NDArray[Any]:
    """All labels that occur, sorted, without open ends.

    >>> distinct(np.array([2.0, np.nan]), np.array([2.0, 1.0]))
    array([1., 2.])
    """
    known = [v[~is_open(v)] for v in labels]
    # arrays that were objects only to hold open ends become numbers or strings again
    return np.unique(
        np.concatenate([np.array(v.tolist()) if v.dtype == object else v for v in known])
    )


def infer_classes(*labels: NDArray[Any]) -> NDArray[Any]:
    """All labels that occur, sorted; strings, whose order is a guess, as `check_guess` has it."""
    found = distinct(*labels)
    check_guess(found, *labels)
    return found


def check_guess(found: NDArray[Any], *labels: NDArray[Any]) -> None:
    """Warn that the order of sorted strings is a guess; raise if a range contradicts it."""
    if found.dtype.kind not in "OU" or found.size < 2:
        return
    guess = (
        f"the order of the grades was not given, so they were sorted: {shown(found)}; "
        "give it from lowest to highest with classes=[...] or as an ordered Categorical"
    )
    if found.dtype.kind == "U" and len(labels) == 2:
        rows = np.flatnonzero(~is_open(labels[0]) & ~is_open(labels[1]))
        lower, upper = (column[rows].astype(str) for column in labels)
        wrong = np.flatnonzero(lower > upper)
        if wrong.size:
            row, a, b = (column[wrong[0]].item() for column in (rows, lower, upper))
            raise ValueError(f"row {row}: lower end {a!r} is above upper end {b!r}, but {guess}")
    warnings.warn(guess, UserWarning, stacklevel=users_level())


def users_level() -> int:
    """The stacklevel at which a warning names the user's line, not one of a library."""
    frame, level = sys._getframe(1), 1
    while frame.f_back and _package(frame) in ("ordspan", "sklearn"):
        frame, level = frame.f_back, level + 1
    return level


def _package(frame: FrameType) -> str:
    name: str = frame.f_globals.get("__name__", "")  # code given to exec may have none
    return name.partition(".")[0]


def is_open(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """True where an end is unknown: None, NaN or an infinity."""
    if labels.dtype.kind == "f":
        return ~np.isfinite(labels)
    if labels.dtype.kind in "mM":
        return np.isnat(labels)
    if labels.dtype.kind == "O":
        return np.array([is_open_value(v) for v in labels], dtype=bool)
    return np.zeros(labels.shape, dtype=bool)


def is_open_value(value: Any) -> bool:
    """Whether one end is unknown: None, NaN or an infinity."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and not np.isfinite(value)


def list_every_grade(label: Any) -> str:
    """What to do about an unknown label when the grades can still be chosen."""
    return "list every grade in classes=[...]"


def encode(
    labels: NDArray[Any],
    classes: NDArray[Any],
    *,
    open_rank: int | None = None,
    what: str = "label",
    advise: Callable[[Any], str] = list_every_grade,
) -> Ranks:
    """Ranks 1..K of labels in the order of the classes; open ends become ``open_rank``.

    In errors, ``what`` is the word for a label, and ``advise`` what to do about an unknown one.

    >>> encode(np.array(["mid", "low"]), np.array(["low", "mid", "high"]))
    array([2, 1])
    """
    if labels.dtype.kind in "iu" and classes.dtype.kind in "iu" and _is_range(classes):
        ranks = labels.astype(np.int64) - (int(classes[0]) - 1)
        if ranks.size == 0 or (ranks.min() >= 1 and ranks.max() <= classes.size):
            return ranks
    opened = is_open(labels)
    known = labels if not opened.any() else labels[~opened]
    if known.dtype.kind == "O" and classes.dtype.kind != "O":
        known = np.array(known.tolist())
    sorter = np.argsort(classes)
    ordered = classes[sorter]
    if (known.dtype.kind in "US") == (classes.dtype.kind in "US"):
        at = np.minimum(np.searchsorted(ordered, known), classes.size - 1)
        unknown = ordered[at] != known
    else:
        at = np.zeros(known.shape, dtype=np.intp)
        unknown = np.ones(known.shape, dtype=bool)
    if unknown.any():
        row, label = np.flatnonzero(~opened)[unknown][0], known[unknown].tolist()[0]
        raise ValueError(
            f"row {row}: {what} {label!r} is not one of the grades {shown(classes)}; "
            + advise(label)
        )
    if opened.any() and open_rank is None:
        row = int(np.argmax(opened))
        raise ValueError(
            f"row {row}: label {labels[row]!r} is missing; give the row a range, or drop it"
        )
    ranks = np.full(labels.shape, open_rank or 0, dtype=np.int64)
    ranks[~opened] = sorter[at] + 1
    return ranks


def _is_range(classes: NDArray[Any]) -> bool:
    return bool(np.array_equal(classes, np.arange(classes[0], classes[0] + classes.size)))


def encode_interval(
    lower: NDArray[Any],
    upper: NDArray[Any],
    classes: NDArray[Any],
    advise: Callable[[Any], str] = list_every_grade,
) -> tuple[Ranks, Ranks]:
    """Lower and upper ranks of intervals in the user's labels; open ends become 1 and K."""
    if lower is upper:
        ranks = encode(lower, classes, advise=advise)
        return ranks, ranks
    low = encode(lower, classes, open_rank=1, advise=advise)
    high = encode(upper, classes, open_rank=classes.size, advise=advise)
    check_order(low, high, lower, upper, "end")
    return low, high


def intervals(lower: ArrayLike, upper: ArrayLike, *, classes: Any = None) -> NDArray[Any]:
    """Build range labels for ``fit`` from two columns, closing open ends.

    Parameters
    ----------
    lower, upper : array-like of shape (n,)
        Ends of the ranges in your own labels, both inclusive. None, NaN and infinities are open
        ends: "at least 3" is ``lower=3, upper=None``. For text like that, see `parse_intervals`.
    classes : array-like, optional
        All grades from lowest to highest. By default, the labels that occur, sorted.

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
    (low, low_order), (high, high_order) = read_column(lower), read_column(upper)
    for name, column in (("lower", low), ("upper", high)):
        if column.ndim != 1:
            raise ValueError(f"{name} must be 1-d, got shape {column.shape}")
    if low.shape != high.shape:
        raise ValueError(f"lower has {low.size} labels, but upper has {high.size}")
    given = next((o for o in (classes, low_order, high_order) if o is not None), None)
    order = check_classes(infer_classes(low, high) if given is None else given)
    ranks = encode_interval(low, high.view(), order)
    return np.column_stack([order[r - 1] for r in ranks])


def read_column(labels: Any) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Labels as an array, and their order if the container knows it.

    An ordered pandas Categorical and a polars Enum do; neither package is imported for this.
    """
    dtype: Any = getattr(labels, "dtype", None)
    if getattr(dtype, "ordered", False):
        return np.asarray(labels), np.asarray(dtype.categories)
    if type(dtype).__name__ == "Enum":
        return labels.cast(str).to_numpy(), dtype.categories.to_numpy()
    try:
        values = np.asarray(labels)
    except ValueError:
        raise ValueError(
            "labels must be all plain values or all pairs [lower, upper]; some rows differ"
        ) from None
    if values.dtype.kind == "U" and dtype is None:
        as_given = np.asarray(labels, dtype=object)  # NumPy turns NaN among strings into 'nan'
        if any(map(is_open_value, as_given.flat)):
            return as_given, None
    return values, None
