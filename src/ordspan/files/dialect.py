"""How a text of separated values is written, judged by its beginning; numbers in other dress."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from ordspan.files.batch import EMPTY
from ordspan.files.text import record

DELIMITERS = ",;\t|"
JUDGED_LINES = 200
SEP_LINE = re.compile(rb'"?sep=(.)"?\r?\n', re.IGNORECASE)
"""By which Excel is told the delimiter, above the header."""

GAP = r"[ '’\x{a0}\x{202f}\x{2009}]"
"""What stands between groups of three digits besides point or comma."""
BODY = rf"[0-9.,]|[0-9]{GAP}[0-9]|[eE][-+]?[0-9]"
BARE = rf"^([-+−]?)\s*\p{{Sc}}?\s*([-+−]?(?:{BODY})+)\s*[%‰]?\s*\p{{Sc}}?$"
"""A number with a currency before or after it, or a per cent sign."""
COMMA_DECIMAL = r"^[-+]?(?:[0-9]*,(?:[0-9]{1,2}|[0-9]{4,})|0,[0-9]+|[0-9]{4,},[0-9]+|[0-9]{1,3}(?:[. '’\x{a0}\x{202f}\x{2009}][0-9]{3})+,[0-9]+)$"  # noqa: E501
"""A comma that can only be the decimal sign: no three digits after it, or points before it."""
POINT_DECIMAL = r"^[-+]?(?:[0-9]*\.(?:[0-9]{1,2}|[0-9]{4,})|0\.[0-9]+|[0-9]{4,}\.[0-9]+|[0-9]{1,3}(?:[, '’\x{a0}\x{202f}\x{2009}][0-9]{3})+\.[0-9]+)$"  # noqa: E501
EXPONENT = r"(?:[eE][-+]?[0-9]+)?$"


def sep_line(head: bytes) -> bytes:
    """The first line, where it only tells the delimiter; otherwise nothing.

    >>> sep_line(b"sep=;\\r\\na;b\\r\\n"), sep_line(b"a,b\\n")
    (b'sep=;\\r\\n', b'')
    """
    match = SEP_LINE.match(head)
    return match[0] if match else b""


def find_delimiter(head: bytes) -> str:
    """The character by which every line falls into as many fields as the header, and most of them.

    >>> find_delimiter(b"a;b;c\\n1,5;2,5;x\\n"), find_delimiter(b"a,b\\n1,5\\n")
    (';', ',')
    """
    told = SEP_LINE.match(head)
    if told:
        return told[1].decode()
    lines = head.split(b"\n")
    if len(lines) > 1:
        lines = lines[:-1] if not head.endswith(b"\n") else lines  # the last may be cut
    found = {d: _agreement(lines[: 2 * JUDGED_LINES], d) for d in DELIMITERS}
    best = max(DELIMITERS, key=lambda d: found[d])
    return best if found[best] > (0.0, 1) else DELIMITERS[0]


def _agreement(lines: list[bytes], delimiter: str) -> tuple[float, int]:
    """How many of the first records have as many fields as the header, and that number."""
    counts: list[int] = []
    at = 0
    while at < len(lines) and len(counts) < JUDGED_LINES:
        if not lines[at].strip():
            at += 1
            continue
        used, cells = record(lines, at, delimiter)
        counts.append(len(cells))
        at += used or 1
    if not counts or counts[0] < 2:
        return 0.0, 1
    agree = Counter(counts)[counts[0]] / len(counts)
    return (round(agree, 1), counts[0]) if agree >= 0.5 else (0.0, 1)


def bare(column: pl.Series) -> pl.Series:
    """Words without blanks, currency and per cent signs around a number.

    >>> bare(pl.Series(["$ 1,000.5", "12 %", "−3 €", "a b"])).to_list()
    ['1,000.5', '12', '-3', 'a b']
    """
    cells = column.str.strip_chars()
    return cells.str.replace(BARE, "${1}${2}").str.replace("^−", "-")


def as_numbers(column: pl.Series, decimal: str = ".") -> pl.Series:
    """Words as numbers, null where they are none; groups of three digits may be set apart.

    >>> as_numbers(pl.Series(["1.234,5", "7", "1.5"]), ",").to_list()
    [1234.5, 7.0, None]
    >>> as_numbers(pl.Series(["$1,234.5", "12.5 %", "1e3", "1,2"])).to_list()
    [1234.5, 12.5, 1000.0, None]
    """
    cells = column.str.strip_chars()
    plain = cells.cast(pl.Float64(), strict=False)
    if decimal == "." and not (plain.is_null() & ~is_empty(cells)).any():
        return plain
    group = "," if decimal == "." else "."
    apart = rf"(?:{re.escape(group)}|{GAP})"
    whole = rf"(?:[0-9]{{1,3}}(?:{apart}[0-9]{{3}})+|[0-9]+)"
    shape = rf"^[-+]?(?:{whole}(?:{re.escape(decimal)}[0-9]*)?|{re.escape(decimal)}[0-9]+)"
    words = bare(column)
    right = words.str.contains(shape + EXPONENT)
    tidy = words.str.replace_all(rf"[{re.escape(group)} '’\x{{a0}}\x{{202f}}\x{{2009}}]", "")
    values = tidy.str.replace(decimal, ".", literal=True).cast(pl.Float64(), strict=False)
    values = pl.select(pl.when(right).then(values)).to_series()
    if decimal == ".":
        values = plain.fill_null(values)
    else:  # inf is a number too, which the reader refuses by name
        values = values.fill_null(pl.select(pl.when(plain.is_infinite()).then(plain)).to_series())
    return values.alias(column.name)


def is_empty(cells: pl.Series) -> pl.Series:
    """Whether a cell, already stripped, means that there is no value."""
    return cells.is_null() | cells.is_in(EMPTY)


def evidence(column: pl.Series) -> int:
    """Cells that can only have a decimal comma, less those that can only have a point.

    >>> evidence(pl.Series(["1,5", "1.234,5", "1.234"])), evidence(pl.Series(["0.5", "1,234"]))
    (2, -1)
    """
    words = bare(column)
    commas, points = (words.str.contains(p).sum() for p in (COMMA_DECIMAL, POINT_DECIMAL))
    return int(commas) - int(points)


def plain_numbers(table: pl.DataFrame, names: Sequence[str]) -> tuple[pl.DataFrame, int]:
    """Those columns of words that are numbers with a point, or whole; how many show a point.

    A column in which every point stands before three digits is left out: they may be thousands.
    """
    cells = {name: pl.col(name).str.strip_chars() for name in names}
    empty = {name: cell.is_null() | cell.is_in(EMPTY) for name, cell in cells.items()}
    numbers = {name: cell.cast(pl.Float64(), strict=False) for name, cell in cells.items()}
    odd = table.select((numbers[n].is_null() & ~empty[n]).any().alias(n) for n in names)
    names = [name for name in names if not odd[name][0]]
    pointed = table.select(cells[n].str.contains(".", literal=True).any() for n in names)
    shown = table.select(cells[n].str.contains(POINT_DECIMAL).any() for n in names if pointed[n][0])
    sure = [n for n in names if not pointed[n][0] or shown[n][0]]
    return table.select(numbers[n] for n in sure), sum(shown.row(0)) if shown.width else 0


def decimal_signs(
    columns: Iterable[pl.Series],
    told: str | None,
    fallback: str,
    known: Mapping[str, str],
    n_points: int = 0,
) -> dict[str, str]:
    """The decimal sign of every column of words: told, or seen, or known from before.

    Where a column does not show it, the columns together do; where they do not, it is that of
    ``known``, and last ``fallback``; ``n_points`` other columns have a point.
    """
    columns = list(columns)
    if told is not None:
        return {column.name: told for column in columns}
    seen = {column.name: evidence(column) for column in columns}
    total = sum((found > 0) - (found < 0) for found in seen.values()) - n_points
    together = "," if total > 0 else "." if total < 0 else ""
    return {
        name: "," if found > 0 else "." if found < 0 else together or known.get(name, fallback)
        for name, found in seen.items()
    }
