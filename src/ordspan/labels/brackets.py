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
from ordspan.labels.forms import OPEN, normalise_label, number_as_text
from ordspan.labels.grades import about_no_answer
from ordspan.labels.ranks import is_open, read_column
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


def find_edges(spans: Floats, counts: NDArray[np.int64]) -> tuple[Floats, list[str]]:
    """The edges of some brackets, each of which occurs so often, and notes on them.

    An outermost edge beyond which no label lies separates nothing; edges of fewer than FEW_LABELS
    labels are left out.
    """
    low, high = spans.T
    is_range = low < high
    ends = np.concatenate([low[is_range], high[is_range]])
    edges, index = np.unique(ends, return_inverse=True)
    n_labels = np.bincount(index, np.tile(counts[is_range], 2), edges.size).astype(np.int64)
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
    spans, faults = read_brackets(words)
    if no_answer := about_no_answer(Counter({word: words[word] for word in faults})):
        raise ValueError(no_answer)
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
        ``"$25,000 to $49,999"``, ``"under 90k"``, ``"90-140k"`` or ``"60+"``.
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
    spans = _spans(lower, upper)
    if edges is None:
        chosen, notes = find_edges(spans, np.ones(len(spans), dtype=np.int64))
        notes = notes[1:]
    else:
        chosen = check_edges(edges)
        (low, high), at_edge = spans.T, np.isin(spans, chosen).T
        between = (~at_edge[0] & (low > chosen[0])) | (~at_edge[1] & (high < chosen[-1]))
        count = f"{(between & (low < high)).sum():,} of {low.size:,}"
        notes = [f"{count} brackets end between two edges and are widened to them"]
    for note in notes:
        if not note.startswith("0 "):
            warn(note)
    classes = np.array(band_names(chosen))
    return classes[np.column_stack(band_ranks(spans, chosen)) - 1], classes


def _spans(lower: Any, upper: Any) -> Floats:
    """Brackets in any container as an array of shape (n, 2), open ends infinite."""
    dtype = getattr(lower, "dtype", None)
    if upper is None and hasattr(dtype, "closed"):
        intervals = getattr(lower, "array", lower)
        if intervals.closed == "both":
            raise ValueError(
                "these intervals are closed on both sides: pass them to fit as y if their ends are "
                "grades, or build them with closed='left' if they are amounts"
            )
        lower, upper = intervals.left, intervals.right
    ends = [read_column(column)[0] for column in (lower, upper) if column is not None]
    if ends[0].ndim != 1 or ends[0].shape != ends[-1].shape:
        shapes = ", ".join(str(end.shape) for end in ends)
        raise ValueError(f"lower and upper must be columns of one length, got shapes {shapes}")
    if upper is None:
        return _read_texts(np.where(is_open(ends[0]), "", ends[0].astype(str)).tolist())
    columns = zip(ends, (-np.inf, np.inf), strict=True)
    filled = [np.where(is_open(end), inf, end.astype(object)) for end, inf in columns]
    spans = np.column_stack(filled).astype(np.float64)
    if (crossed := spans[:, 0] > spans[:, 1]).any():
        row = int(np.argmax(crossed))
        low, high = map(number_as_text, spans[row])
        raise ValueError(f"row {row}: lower {low} is above upper {high}; swap the two columns?")
    return spans


def _read_texts(texts: list[str]) -> Floats:
    words = [word for word in dict.fromkeys(texts) if normalise_label(word) not in OPEN]
    spans, faults = read_brackets(words)
    for word, why in faults.items():
        raise ValueError(f"row {texts.index(word)}: {brief(word)}: {why}")
    whole = (-np.inf, np.inf)
    return np.array([spans.get(text, whole) for text in texts]).reshape(-1, 2)
