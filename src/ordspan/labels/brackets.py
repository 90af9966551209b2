"""Labels that are brackets of amounts: which edges to use, and the brackets as ranges of bands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ordspan.labels.amounts import (
    EDGES,
    Floats,
    band_names,
    band_ranks,
    edge_names,
    read_amount,
    read_brackets,
)
from ordspan.labels.forms import number_as_text
from ordspan.labels.grades import about_no_answer
from ordspan.labels.ranks import is_open, parse_intervals, read_column, read_labels
from ordspan.labels.text import WIDENED
from ordspan.wording import brief, warn

FEW_LABELS = 5
"""An edge at which fewer labels end is left out: its two sides cannot be told apart."""
MAX_BANDS = 60


def check_edges(edges: Any) -> Floats:
    """Edges as sorted numbers, from numbers or text such as 10k.

    >>> check_edges(["10k", 2500])
    array([ 2500., 10000.])
    """
    amounts = [read_amount(number_as_text(edge)) for edge in edges]
    values = {amount.value for amount in amounts if amount is not None}
    if not values or None in amounts:
        raise ValueError(f"the edges {brief(edges)} are not all amounts; give them as in {EDGES}")
    return check_bands(np.array(sorted(values)))


def check_bands(edges: Floats) -> Floats:
    """The edges; raises if there are more bands than can be learned."""
    if edges.size >= MAX_BANDS:
        raise ValueError(
            f"the brackets have {edges.size:,} edges, for {edges.size + 1:,} bands, more than the "
            f"{MAX_BANDS} that can be learned; choose some of them: {EDGES}"
        )
    return edges


def find_edges(spans: Floats, counts: Any = 1) -> tuple[Floats, list[str]]:
    """The edges of brackets that occur so often, a note on them, and one on those left out.

    An outermost edge beyond which no label lies separates nothing; edges of fewer than FEW_LABELS
    labels are left out.
    """
    low, high = spans.T
    is_range = low < high
    ends = np.concatenate([low[is_range], high[is_range]])
    edges, index = np.unique(ends, return_inverse=True)
    n_labels = np.bincount(
        index, np.tile(np.broadcast_to(counts, low.shape)[is_range], 2), edges.size
    ).astype(np.int64)
    # a single amount lies below an edge only if it is smaller
    first = np.where(is_range, high, np.nextafter(low, np.inf)).min(initial=np.inf)
    inside = np.isfinite(edges) & (edges >= first) & (edges <= low.max(initial=-np.inf))
    edges, n_labels = edges[inside], n_labels[inside]
    frequent = n_labels >= FEW_LABELS
    if not frequent.any():
        raise ValueError(
            f"no amount separates {FEW_LABELS} labels or more from others; choose the edges, "
            + EDGES
        )
    labelled = zip(edge_names(edges), n_labels.tolist(), strict=True)
    listed = np.array([f"{name} ({n:,})" for name, n in labelled])
    notes = ["edges, with the labels at each: " + ", ".join(listed[frequent])]
    if not frequent.all():
        notes.append(
            f"edges of fewer than {FEW_LABELS} labels are left out, and brackets that end there "
            f"widen to the next edge: {', '.join(listed[~frequent])}; to choose, give {EDGES}"
        )
    return check_bands(edges[frequent]), notes


def bands_of(words: Counter[str], parts: int = 0) -> tuple[NDArray[Any], list[str]]:
    """The bands of written brackets that occur so often, or of numbers cut into equal parts.

    >>> bands_of(Counter({"under 18": 9, "18-29": 9, "30+": 9}))[0].tolist()
    ['under 18', '18 to 30', '30 or more']
    >>> bands_of(Counter(map(str, range(100))), parts=4)[0].tolist()
    ['under 25', '25 to 50', '50 to 75', '75 or more']
    """
    if no_answer := about_no_answer(words):
        raise ValueError(no_answer)
    spans = read_brackets(words)
    values = np.array([*spans.values()], dtype=np.float64).reshape(-1, 2)
    counts = np.array([words[word] for word in spans], dtype=np.int64)
    if not parts:
        edges, notes = find_edges(values, counts)
        return np.array(band_names(edges)), notes
    order = np.argsort(values[:, 0])
    amounts, below = values[order, 0], np.cumsum(counts[order]) - counts[order]
    at = np.searchsorted(below, np.arange(1, parts) * counts.sum() / parts)
    edges = np.unique(amounts[at[at < amounts.size]])
    if not edges.size:
        raise ValueError(f"the labels cannot be cut into {parts} parts; give values to cut at")
    return np.array(band_names(check_bands(edges))), []


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
        bands, notes = find_edges(spans) if bands is None else (bands, _widened(spans, bands))
        classes = np.array(band_names(bands))
        y = classes[np.column_stack(band_ranks(spans, bands)) - 1]
    for note in notes[1:]:
        warn(note)
    return y, classes


def _widened(spans: Floats, edges: Floats) -> list[str]:
    (low, high), at_edge = spans.T, np.isin(spans, edges).T
    between = (~at_edge[0] & (low > edges[0])) | (~at_edge[1] & (high < edges[-1]))
    count = int((between & (low < high)).sum())
    return ["", f"{WIDENED}: {count:,} of {low.size:,}"] if count else []


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
    low, high = (read_column(column)[0].astype(object) for column in (lower, upper))
    if low.ndim != 1 or low.shape != high.shape:
        raise ValueError(
            f"lower and upper must be columns of one length, got shapes {low.shape}, {high.shape}"
        )
    low, high = np.where(is_open(low), -np.inf, low), np.where(is_open(high), np.inf, high)
    spans = np.column_stack([low, high]).astype(np.float64)
    if (crossed := spans[:, 0] > spans[:, 1]).any():
        row = int(np.argmax(crossed))
        start, end = map(number_as_text, spans[row])
        raise ValueError(f"row {row}: lower {start} is above upper {end}; swap the two columns?")
    return spans
