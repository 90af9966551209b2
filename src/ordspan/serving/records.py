"""Convert the records of a request to rows of a model, with the same errors as for files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from itertools import islice
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from ordspan.learners.rows import RowValueError
from ordspan.tables.encoder import Encoder, Recipe
from ordspan.tables.rows import Batch, Faults, RowError
from ordspan.wording import LONGEST_SHOWN, brief, shown

LABEL_NAMES = ("label", "lower", "upper")
KEY = "key"
RESERVED = (*LABEL_NAMES, KEY)
"""Names in a labelled record that are not columns of the model."""
MAX_ROWS = 100_000
"""Rows of one request: predictions need much more memory than the rows."""
REQUEST = "the request"
MOST_COMPARED = 100
"""Most names compared with a missing one."""


class BodyError(ValueError):
    """The request body cannot be decoded."""


def decoded(body: bytes, type: Any = Any) -> Any:
    """The JSON of a body.

    >>> decoded(b'{"age": NaN}')
    Traceback (most recent call last):
    ordspan.serving.records.BodyError: the request cannot be read: JSON is malformed: invalid
    character (byte 8); send JSON, with null for missing values
    """
    try:
        return msgspec.json.decode(body, type=type)
    except RecursionError:
        reason = "it is nested too deeply"
    except UnicodeDecodeError:
        reason = "a string in it is not UTF-8"
    except msgspec.DecodeError as error:
        reason = str(error)
    raise BodyError(f"{REQUEST} cannot be read: {reason}; send JSON, with null for missing values")


@contextmanager
def refusals() -> Iterator[None]:
    """Report value errors of the model, such as an uncalibrated coverage, as errors of the request.

    Subclasses keep their own meaning.
    """
    try:
        yield
    except ValueError as error:
        if type(error) not in (ValueError, RowValueError):
            raise
        raise RowError(f"{REQUEST}: {error}") from None


def check_names(recipe: Recipe) -> None:
    """Refuse a model with columns named like the label or key of a request."""
    if clash := [name for name in recipe.columns if name in RESERVED]:
        raise ValueError(
            f"the model has a column {clash[0]!r}, a name that requests use for the label or its "
            "key; rename the column and retrain the model"
        )


def example_record(recipe: Recipe) -> dict[str, Any]:
    """A record with a value for every column.

    >>> example_record(Recipe(("age",), words=(("job", ("", "cook")),), hashed=("note",)))
    {'age': 1.5, 'job': 'cook', 'note': 'some text'}
    """
    if recipe.n_sparse:
        return {"0" if recipe.zero_based else "1": 1.5}
    words = {name: next(filter(None, known), "") for name, known in recipe.words}
    return dict.fromkeys(recipe.numbers, 1.5) | words | dict.fromkeys(recipe.hashed, "some text")


def values_of(recipe: Recipe, record: Mapping[str, Any], number: int) -> list[Any]:
    """The values of a record, in the order of the columns.

    For svmlight models they are pairs of index and value; features not named are 0.
    """
    if recipe.n_sparse:
        return [[_index(recipe, name, number), value] for name, value in record.items()]
    try:
        values = [record[name] for name in recipe.columns]
    except KeyError as missing:
        raise _missing(recipe, record, str(missing.args[0]), number) from None
    if len(record) > len(values):
        raise _unknown(recipe, record, number)
    return values


def _index(recipe: Recipe, name: str, number: int) -> int:
    first = 0 if recipe.zero_based else 1
    if not re.fullmatch("0|[1-9][0-9]{0,17}", name) or not (
        first <= int(name) < first + recipe.n_sparse
    ):
        raise RowError(
            f"{REQUEST}, record {number}: {brief(name)} is not a feature of the model; they are "
            f"numbered from {first} to {first + recipe.n_sparse - 1}"
        )
    return int(name) - first


def _missing(recipe: Recipe, record: Mapping[str, Any], name: str, number: int) -> RowError:
    others = islice((n for n in record if n not in recipe.columns), MOST_COMPARED)
    alike = get_close_matches(name, [n for n in others if len(n) <= LONGEST_SHOWN], 1, 0.7)
    meant = f"did you mean {alike[0]!r}? If not, " if alike else ""
    return RowError(
        f"{REQUEST}, record {number}: missing column {name!r}, which the model needs; {meant}"
        "use null for a missing value"
    )


def _unknown(recipe: Recipe, record: Mapping[str, Any], number: int) -> RowError:
    name = next(name for name in record if name not in recipe.columns)
    return RowError(
        f"{REQUEST}, record {number}: unknown column {brief(name)}; remove "
        f"it. The model has {shown(np.array(recipe.columns))}"
    )


def batch_of(encoder: Encoder, rows: Sequence[Sequence[Any]], name: str = REQUEST) -> Batch:
    """Rows of values as a validated batch; the first bad row raises an error.

    >>> batch_of(Encoder(Recipe(("age",))), [[41], ["seven"]])
    Traceback (most recent call last):
    ordspan.tables.rows.RowError: the request, record 2: column 'age' holds 'seven', not a number;
    send a JSON number
    """
    recipe, faults = encoder.recipe, Faults()
    X, table = _sparse_matrix(recipe, rows, faults), pl.DataFrame()
    if X is None and not recipe.texts:
        X = _plain_numbers(rows)
    if X is None:
        X, table = _numbers(recipe, rows, faults), _text_columns(recipe, rows, faults)
    faults = encoder.value_faults(X) | faults
    if faults:
        row = min(faults)
        raise RowError(f"{name}, record {row + 1}: {faults[row]}")
    return Batch(X, table, np.arange(1, len(rows) + 1), name)


def _not_a_number(name: str, value: Any) -> str:
    return f"column {name!r} holds {brief(value)}, not a number; send a JSON number"


def _plain_numbers(rows: Sequence[Sequence[Any]]) -> NDArray[np.float64] | None:
    """Fast path for rows of plain numbers, without a data frame."""
    if not all(type(value) in (float, int) for row in rows for value in row):
        return None
    try:
        return np.array(rows, dtype=np.float64)
    except OverflowError:
        return None


def _sparse_matrix(recipe: Recipe, rows: Sequence[Sequence[Any]], faults: Faults) -> Any:
    """Pairs of index and value as a CSR matrix; None for a model with named columns."""
    if not recipe.n_sparse:
        return None
    from scipy.sparse import csr_array

    starts = np.cumsum([0, *map(len, rows)])
    columns = np.array([index for row in rows for index, _ in row], dtype=np.int64)
    values = np.zeros(columns.size)
    for number, row in enumerate(rows):
        for place, (index, value) in enumerate(row, starts[number]):
            if (found := _as_float(value)) is None:
                faults.setdefault(number, _not_a_number(recipe.feature_name(index), value))
            else:
                values[place] = found
    matrix = csr_array((values, columns, starts), shape=(len(rows), recipe.n_sparse))
    matrix.sort_indices()
    return matrix


def _as_float(value: Any) -> float | None:
    """A number as a float; None for anything else, and for whole numbers that are too large."""
    if isinstance(value, bool | int | float):
        with suppress(OverflowError):
            return float(value)
    return None


def _numbers(recipe: Recipe, rows: Sequence[Sequence[Any]], faults: Faults) -> NDArray[np.float64]:
    """The columns of numbers, NaN where missing."""
    X = np.full((len(rows), len(recipe.numbers)), np.nan)
    for place, name in enumerate(recipe.numbers):
        for row, cell in enumerate(_cells(rows, place, name, faults)):
            if (found := _as_float(cell)) is not None:
                X[row, place] = found
            elif cell is not None:
                faults.setdefault(row, _not_a_number(name, cell))
    return X


def _text_columns(recipe: Recipe, rows: Sequence[Sequence[Any]], faults: Faults) -> pl.DataFrame:
    """The text columns; numbers and booleans in them are written as JSON."""
    columns = [
        pl.Series(name, map(as_word, _cells(rows, place, name, faults)), dtype=pl.String())
        for place, name in enumerate(recipe.texts, len(recipe.numbers))
    ]
    return pl.DataFrame(columns)


def _cells(rows: Sequence[Sequence[Any]], place: int, name: str, faults: Faults) -> list[Any]:
    """One column; lists and objects in it are errors."""
    cells = [row[place] for row in rows]
    for row, cell in enumerate(cells):
        if isinstance(cell, list | dict):
            fault = f"column {name!r} holds {brief(cell)}; use a number, a string or null"
            faults.setdefault(row, fault)
            cells[row] = None
    return cells


def as_word(cell: Any) -> str | None:
    """A cell of a text column; numbers and booleans as JSON."""
    if cell is None or isinstance(cell, str):
        return cell
    return msgspec.json.encode(cell).decode()
