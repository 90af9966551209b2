"""The dialect of a CSV file: delimiter, decimal separator, and numbers formatted as text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import polars as pl

from ordspan.tables.batch import EMPTY, FileError
from ordspan.tables.lines import record
from ordspan.wording import hint

DELIMITERS = ",;\t|"
INFER_LINES = 200
SEP_LINE = re.compile(rb'"?sep=(.)"?\r?\n', re.IGNORECASE)
"""A line above the header that gives Excel the delimiter."""

GAPS = r" '’\x{a0}\x{202f}\x{2009}"
"""Separators of groups of three digits, besides point and comma."""
BODY = rf"[0-9.,]|[0-9][{GAPS}][0-9]|[eE][-+]?[0-9]"
CURRENCY = (
    r"(?:US\$|\p{Sc}|USD|EUR|GBP|CHF|JPY|CNY|INR|AUD|CAD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|BRL|MXN|ZAR"
    r"|KRW|TRY|SGD|HKD|kr|zł|Kč)"
)
BARE = rf"^([-+−]?)\s*{CURRENCY}?\s*([-+−]?(?:{BODY})+)\s*[%‰]?\s*{CURRENCY}?$"
"""A number with a currency before or after it, or a per cent sign."""


def _decimal(sign: str, group: str) -> str:
    """Numbers in which a sign can only be the decimal separator: not three digits follow it, a
    zero or more than three digits precede it, or the other sign groups digits."""
    return (
        rf"^[-+]?(?:[0-9]*{sign}(?:[0-9]{{1,2}}|[0-9]{{4,}})|0{sign}[0-9]+|[0-9]{{4,}}{sign}[0-9]+"
        rf"|[0-9]{{1,3}}(?:(?:{group}|[{GAPS}])[0-9]{{3}})+{sign}[0-9]+"
        rf"|[0-9]{{1,3}}(?:{group}[0-9]{{3}}){{2,}})$"
    )


COMMA_DECIMAL, POINT_DECIMAL = _decimal(",", r"\."), _decimal(r"\.", ",")
EITHER = r"^[-+]?[0-9]{1,3}([.,])[0-9]{3}$"
"""A number with a decimal separator, or with a thousands separator: ambiguous."""
NATURAL = {(",", "."): ".", (",", ","): ".", ("\t", "."): ".", ("|", "."): ".", (";", ","): ","}
"""The decimal separator that a delimiter and a sign among digits suggest if no cell shows it."""
MIXED = 0.05
EXPONENT = r"(?:[eE][-+]?[0-9]+)?$"


def sep_line(head: bytes) -> bytes:
    """The first line if it only gives the delimiter, else nothing.

    >>> sep_line(b"sep=;\\r\\na;b\\r\\n"), sep_line(b"a,b\\n")
    (b'sep=;\\r\\n', b'')
    """
    match = SEP_LINE.match(head)
    return match[0] if match else b""


def find_delimiter(head: bytes) -> str:
    """The character that splits every line into as many fields as the header, and into most.

    >>> find_delimiter(b"a;b;c\\n1,5;2,5;x\\n"), find_delimiter(b"a,b\\n1,5\\n")
    (';', ',')
    """
    given = SEP_LINE.match(head)
    if given:
        return given[1].decode()
    lines = head.split(b"\n")
    if len(lines) > 1:
        lines = lines[:-1] if not head.endswith(b"\n") else lines  # the last may be incomplete
    found = {d: _field_agreement(lines[: 2 * INFER_LINES], d) for d in DELIMITERS}
    best = max(DELIMITERS, key=lambda d: found[d])
    return best if found[best] > (0.0, 1) else DELIMITERS[0]


def _field_agreement(lines: list[bytes], delimiter: str) -> tuple[float, int]:
    """Share of the first records with as many fields as the header, and that number."""
    counts: list[int] = []
    at = 0
    while at < len(lines) and len(counts) < INFER_LINES:
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


def strip_units(column: pl.Series) -> pl.Series:
    """Text without spaces, currency and per cent signs around a number.

    >>> strip_units(pl.Series(["$ 1,000.5", "12 %", "−3 €", "a b"])).to_list()
    ['1,000.5', '12', '-3', 'a b']
    """
    cells = column.str.strip_chars()
    return cells.str.replace(BARE, "${1}${2}").str.replace("^−", "-")


def as_numbers(column: pl.Series, decimal: str = ".") -> pl.Series:
    """Text as numbers, null where it is not a number; thousands separators are allowed.

    >>> as_numbers(pl.Series(["1.234,5", "7", "1.5"]), ",").to_list()
    [1234.5, 7.0, None]
    >>> as_numbers(pl.Series(["$1,234.5", "12.5 %", "1e3", "1,2"])).to_list()
    [1234.5, 12.5, 1000.0, None]
    """
    cells = column.str.strip_chars()
    plain = cells.cast(pl.Float64(), strict=False).fill_nan(None)
    truth = is_boolean(cells)
    if truth.any():  # 1 and 0, as in formats with booleans
        ones = cells.str.to_lowercase().eq("true").cast(pl.Float64())
        plain = pl.select(pl.when(truth).then(ones).otherwise(plain)).to_series()
    if decimal == "." and not (plain.is_null() & ~is_empty(cells)).any():
        return plain
    group = "," if decimal == "." else "."
    apart = rf"(?:{re.escape(group)}|[{GAPS}])"
    whole = rf"(?:[0-9]{{1,3}}(?:{apart}[0-9]{{3}})+|[0-9]+)"
    shape = rf"^[-+]?(?:{whole}(?:{re.escape(decimal)}[0-9]*)?|{re.escape(decimal)}[0-9]+)"
    words = strip_units(column)
    right = words.str.contains(shape + EXPONENT)
    digits = words.str.replace_all(rf"[{re.escape(group)}{GAPS}]", "")
    values = digits.str.replace(decimal, ".", literal=True).cast(pl.Float64(), strict=False)
    values = pl.select(pl.when(right).then(values)).to_series()
    if decimal == ".":
        values = plain.fill_null(values)
    else:  # inf is a number too; the reader refuses it later
        kept = plain.is_infinite() | truth
        values = values.fill_null(pl.select(pl.when(kept).then(plain)).to_series())
    return values.alias(column.name)


def is_boolean(cells: pl.Series) -> pl.Series:
    """Whether a cell is true or false."""
    return cells.str.contains("^(?i:true|false)$").fill_null(value=False)


def is_empty(cells: pl.Series) -> pl.Series:
    """Whether a stripped cell stands for a missing value."""
    return cells.is_null() | cells.is_in(EMPTY)


def evidence(column: pl.Series) -> int:
    """Number of cells that must have a decimal comma, minus those that must have a point.

    >>> evidence(pl.Series(["1,5", "1.234,5", "1.234"])), evidence(pl.Series(["0.5", "1,234"]))
    (2, -1)
    """
    words = strip_units(column)
    commas, points = (words.str.contains(p).sum() for p in (COMMA_DECIMAL, POINT_DECIMAL))
    return int(commas) - int(points)


def plain_numbers(table: pl.DataFrame, names: Sequence[str]) -> tuple[pl.DataFrame, int]:
    """The text columns that are whole numbers or have a decimal point; how many show a point.

    A column in which every point precedes three digits is left out: they may be thousands.
    """
    if not names:
        return table.select(), 0
    cells = {name: pl.col(name).str.strip_chars() for name in names}
    empty = {name: cell.is_null() | cell.is_in(EMPTY) for name, cell in cells.items()}
    numbers = {name: cell.cast(pl.Float64(), strict=False) for name, cell in cells.items()}
    odd = table.select((numbers[n].is_null() & ~empty[n]).any().alias(n) for n in names)
    wrong = set(_where(odd))
    right = [name for name in names if name not in wrong]
    points = table.select(cells[n].str.contains(".", literal=True).any() for n in right)
    pointed = _where(points)
    shown = table.select(cells[n].str.contains(POINT_DECIMAL).any() for n in pointed)
    unclear = set(pointed).difference(_where(shown))
    plain = table.select(numbers[n].fill_nan(None) for n in right if n not in unclear)
    return plain, len(pointed) - len(unclear)


def _where(answers: pl.DataFrame) -> list[str]:
    """The columns of a table of one row that are true."""
    return [column.name for column in answers if column[0]]


class Decimals(NamedTuple):
    """How the numbers in text columns of a file are written."""

    plain: pl.DataFrame  # columns of numbers that Polars can parse
    decimals: dict[str, str]  # decimal separators of the other columns


def find_decimals(
    path: str,
    table: pl.DataFrame,
    names: Sequence[str],
    *,
    delimiter: str = "",
    given: str | None = None,
    known: Mapping[str, str] | None = None,
) -> Decimals:
    """The decimal separators of text columns: given, or seen in them or in the other columns.

    If no cell of the file shows it, it is that of an earlier file (``known``), or the usual one
    for the delimiter; a column that stays ambiguous is refused.
    """
    schema = table.schema
    names = [name for name in names if schema.get(name) == pl.String()]
    # a column that is known to have commas may show them only later in this file
    commas = [name for name, decimal in (known or {}).items() if decimal == ","]
    sure = [name for name in names if name not in commas]
    plain, n_points = plain_numbers(table, sure) if given != "," else (table.select(), 0)
    settled = set(plain.columns)
    rest = [table[name] for name in names if name not in settled]
    if given is not None:
        return Decimals(plain, {column.name: given for column in rest})
    seen = {column.name: evidence(column) for column in rest}
    total = sum((found > 0) - (found < 0) for found in seen.values()) - n_points
    together = "," if total > 0 else "." if total < 0 else ""
    separators = {}
    for column in rest:
        found, name = seen[column.name], column.name
        if found:
            separators[name] = "," if found > 0 else "."
        else:
            separators[name] = _guessed(
                path, column, together, delimiter, (known or {}).get(name, "")
            )
    return Decimals(plain, separators)


def _guessed(path: str, column: pl.Series, together: str, delimiter: str, known: str) -> str:
    """The decimal separator of a column that does not show it; ambiguous ones are refused."""
    words = strip_units(column)
    unclear = words.filter(words.str.contains(EITHER)).drop_nulls()
    whole = int(words.str.contains(r"^[-+]?[0-9]{1,3}$").sum())
    marks = unclear.str.extract(EITHER).unique().to_list()
    if len(marks) != 1 or 2 * (len(unclear) + whole) < int((~is_empty(words)).sum()):
        return together or known or "."
    (mark,) = marks
    grouped = whole >= MIXED * len(unclear)  # 999 and 1.050, but no 1.05
    likely = together or (known if known == mark else NATURAL.get((delimiter, mark), ""))
    if likely and not (grouped and likely == mark):
        return likely
    cell = unclear[0]
    small, large = cell.replace(",", "."), cell.replace(mark, "")
    first, second = (hint(f"decimal={s!r}", f"--decimal {s}") for s in (mark, *{*".,"} - {mark}))
    raise FileError(
        f"{path}: column {column.name!r} holds numbers such as {cell!r}, which may mean {small} or "
        f"{large}; for the first give {first}, for the second {second}"
    )
