"""Text cells as numbers: missing ones, decimal signs, and what is no plain number."""

from collections.abc import Sequence

import polars as pl

from ordspan.labels.forms import is_number
from ordspan.tables.rows import FileError
from ordspan.wording import hint

FLOAT, TEXT = pl.Float64(), pl.String()
PLAIN = {FLOAT, pl.Float32()}  # types that NumPy and compiled code know too
EMPTY = (
    *("", "NA", "N/A", "n/a", "n.a.", "NaN", "nan", "null", "NULL", "None", "none", "<NA>"),
    *("?", "-", "–", ".", "#N/A", "#NV", "#NULL!", "#DIV/0!", "#VALUE!", "#WERT!", "#REF!", "NaT"),
)
"""Cells that stand for a missing number."""
NUMBER = r"^[-+]?[0-9]*[.,]?[0-9]+(?:[eE][-+]?[0-9]+)?$"
ENOUGH_CELLS = 2000
SHORT, GROUPED = "^[0-9]{1,3}$", r"^[-+]?[1-9][0-9]{0,2}[.,][0-9]{3}$"
"""A number below 1000, and one with a decimal sign, or with a sign between thousands."""
GAPS = r" '’\x{a0}\x{202f}\x{2009}"
CURRENCY = (
    r"(?:US\$|\p{Sc}|\x{fffd}|USD|EUR|GBP|CHF|JPY|CNY|INR|AUD|CAD|NZD|SEK|NOK|DKK|PLN|CZK|HUF"
    r"|BRL|MXN|ZAR|KRW|TRY|SGD|HKD|kr|zł|Kč)"
)
FORMATTED = (
    rf"^[-+−]?\s*{CURRENCY}?\s*[-+−]?[0-9](?:[0-9.,]|[{GAPS}][0-9])*\s*(?:[%‰]|{CURRENCY})?$"
)
"""A number with a currency (� if the encoding is wrong), a per cent sign, or signs of thousands."""


def is_empty(cells: pl.Series) -> pl.Series:
    """Whether a stripped cell stands for a missing value."""
    return cells.is_null() | cells.is_in(EMPTY)


def is_boolean(cells: pl.Series) -> pl.Series:
    """Whether a stripped cell is true or false."""
    return cells.str.contains("^(?i:true|false)$").fill_null(value=False)


def as_numbers(column: pl.Series, decimal: str = ".") -> tuple[pl.Series, pl.Series]:
    """A column as numbers, null where it is missing or no number; and which cells are no numbers.

    >>> values, stray = as_numbers(pl.Series(["1,5", " 7", "NA", "1.5", "true"]), ",")
    >>> values.to_list(), stray.arg_true().to_list()
    ([1.5, 7.0, None, None, 1.0], [3])
    """
    values = column.cast(FLOAT, strict=False)
    if column.dtype != TEXT or (decimal == "." and values.null_count() == column.null_count()):
        return values.fill_nan(None), values.is_null() & column.is_not_null()
    cells = column.str.strip_chars()
    digits = cells
    if decimal == ",":  # a cell with a point is no number then
        digits = cells.str.replace(".", "?", literal=True).str.replace(",", ".", literal=True)
    values = digits.cast(FLOAT, strict=False).fill_nan(None)
    stray = values.is_null() & ~is_empty(cells)
    if stray.any() and (truth := is_boolean(cells)).any():  # 1 and 0, as in other formats
        ones = cells.str.to_lowercase().eq("true").cast(FLOAT)
        values = pl.select(pl.when(truth).then(ones).otherwise(values)).to_series()
        stray &= ~truth
    return values.alias(column.name), stray


def without_codes(table: pl.DataFrame, na: Sequence[str]) -> pl.DataFrame:
    """The table with cells that mean no answer as missing ones: 99 in every column, a:99 in one.

    >>> table = pl.DataFrame({"a": [1.0, 99.0], "b": ["99.0", " - "]})
    >>> without_codes(table, ["-", "a:99"]).rows()
    [(1.0, '99.0'), (None, None)]
    """
    parts = [code.rpartition(":") for code in na]
    everywhere = ["".join(part) for part in parts if part[0] not in table.columns]
    for column in table if na else ():
        some = everywhere + [code for name, _, code in parts if name == column.name]
        if some and not column.dtype.is_nested() and column.dtype != pl.Binary:
            numbers = [float(code) for code in some if is_number(code)]
            cells = column.cast(TEXT)
            gone = cells.str.strip_chars().is_in(some)
            gone |= cells.cast(FLOAT, strict=False).is_in(numbers)
            table = table.with_columns(column.set(gone.fill_null(value=False), None))
    return table


def find_decimal(path: str, table: pl.DataFrame, delimiter: str = ",") -> str:
    """The decimal sign of a file: the one that no cell of its numeric columns contradicts."""
    cell = pl.col("value")
    is_number, has_comma = cell.str.contains(NUMBER), cell.str.contains(",", literal=True)
    some = table.select(pl.col(TEXT)).gather_every(max(1, table.height // ENOUGH_CELLS))
    numbers = (
        some.unpivot()
        .with_columns(cell.cast(TEXT).str.strip_chars())
        .filter(~cell.is_in(EMPTY))
        .filter(is_number, is_number.mean().over("variable") >= 0.5)
    )
    signed = numbers.filter(cell.str.contains("[.,]"))
    commas, points = signed.filter(has_comma), signed.filter(~has_comma)
    point, comma = hint("decimal='.'", "--decimal ."), hint("decimal=','", "--decimal ,")
    if len(commas) and len(points):
        found = (f"{some['value'][0]!r} in {some['variable'][0]!r}" for some in (commas, points))
        raise FileError(
            f"{path}: holds numbers with two decimal signs, such as {' and '.join(found)}; give "
            f"{point} or {comma}: rows with the other sign are then bad rows"
        )
    sign, unsure = "," if len(commas) else ".", signed
    if sign == "." and delimiter != ";":  # such as 1.050 beside 999
        short = numbers.filter(cell.str.contains(SHORT))
        unsure = signed.join(short, on="variable", how="semi", maintain_order="left")
    if len(unsure) and signed["value"].str.contains(GROUPED).all():
        column, odd = unsure.row(0)
        raise FileError(
            f"{path}: column {column!r} holds numbers such as {odd!r}, which may "
            f"mean {odd.replace(',', '.')} or {odd.replace(sign, '')}; for the first give "
            f"{point if sign == '.' else comma}, for the second remove the sign from the file"
        )
    return sign


def why_formatted(cells: pl.Series) -> str:
    """Why cells that are not empty are no numbers, if most are such as $1,234 or 12 %."""
    formatted = cells.filter(cells.str.contains(FORMATTED))
    if 2 * len(formatted) < len(cells):
        return ""
    return f"numbers written as text, such as {max(formatted, key=len)!r} (write plain ones)"
