"""Requests as declared records: the columns of a model, and the label and key of each row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from types import GenericAlias
from typing import Annotated, Any

import msgspec
import numpy as np
import polars as pl
from msgspec import UNSET, Meta, UnsetType

from ordspan.commands.models import RETRAIN, label_reader
from ordspan.core.state import Ranks
from ordspan.labels.forms import number_as_text
from ordspan.learners.rows import NO_RANKS
from ordspan.models.table import TableModel
from ordspan.tables.encoder import Encoder, Recipe, stack_rows
from ordspan.tables.rows import RowError

KEY = "key"
LABEL_NAMES = ("label", "lower", "upper")
N_REMEMBERED = 4096
REQUEST = "the request"
PLACE = re.compile(r"(?s)(.*?)(?: - at `\$(?:\[(\d+)\])?\.?(.*)`)?")
"""What msgspec says of an invalid value, its record and its column."""
NO_TEXT = pl.DataFrame()

Number = float | None
Word = str | bool | int | float | None
Grade = str | int | float | None
Label = Grade | tuple[Grade, Grade]
Key = Annotated[str, Meta(min_length=1, max_length=200)]


class BodyError(ValueError):
    """The request body cannot be decoded."""


def decoded(body: bytes, type: Any = Any) -> Any:
    """The JSON of a body; a name that stands twice in an object is refused.

    >>> decoded(b'{"age": NaN}')
    Traceback (most recent call last):
    ordspan.serving.records.BodyError: the request cannot be read: JSON is malformed: invalid
    character (byte 8); send JSON, with null for missing values
    """
    try:
        content = msgspec.json.decode(body, type=type)
        if _count_names(body) <= _count_names(msgspec.json.encode(content)):
            return content
        reason = "a name stands twice in an object"
    except msgspec.ValidationError as error:
        raise invalid(error) from None
    except RecursionError:
        reason = "it is nested too deeply"
    except UnicodeDecodeError:
        reason = "a string in it is not UTF-8"
    except msgspec.DecodeError as error:
        reason = str(error)
    raise BodyError(f"{REQUEST} cannot be read: {reason}; send JSON, with null for missing values")


def _count_names(text: bytes) -> int:
    """Names in JSON; a string that looks like one counts before and after decoding alike."""
    return text.translate(None, b" \t\r\n").count(b'":')


def invalid(error: msgspec.ValidationError, record: int | None = None) -> RowError:
    """What is wrong with a record, by its number and column.

    >>> invalid(msgspec.ValidationError("Expected `float | null`, got `str` - at `$[1].age`"))
    RowError("the request, record 2: column 'age': Expected `float | null`, got `str`; see ...")
    """
    found = PLACE.fullmatch(str(error))
    assert found is not None
    reason, place, column = found.groups()
    number = int(place) + 1 if place else record
    where = f", record {number}" if number else ""
    what = f"column {column!r}: " if column else ""
    return RowError(f"{REQUEST}{where}: {what}{reason}; see /docs for the columns and their types")


def check_names(recipe: Recipe) -> None:
    """Refuse a model with columns named like the label or key of a request."""
    if clash := [name for name in recipe.columns if name in (*LABEL_NAMES, KEY)]:
        raise ValueError(
            f"the model has a column {clash[0]!r}, a name that requests use for the label or its "
            "key; rename the column and retrain the model"
        )


@dataclass(frozen=True)
class Rows:
    """Valid rows of a model, and for learning their labels and keys.

    Parameters
    ----------
    values : sequence of tuples
        The values of each row in the order of the columns; svmlight: pairs of index and value.
    X : array or CSR matrix
        The numbers, missing ones NaN.
    table : polars.DataFrame
        The text columns.
    lower, upper : arrays
        Ends of the labels, as ranks.
    keys : sequence
        The key of each row, or None.
    """

    values: Sequence[tuple[Any, ...]]
    X: Any
    table: pl.DataFrame
    lower: Ranks = field(default_factory=lambda: NO_RANKS)
    upper: Ranks = field(default_factory=lambda: NO_RANKS)
    keys: Sequence[str | None] = ()

    def __len__(self) -> int:
        return len(self.values)

    def only(self, rows: Sequence[int]) -> Rows:
        """Some of the rows, in order."""
        if len(rows) == len(self):
            return self
        places = np.array(rows)
        values = [self.values[row] for row in rows]
        X, lower, upper = self.X[places], self.lower[places], self.upper[places]
        table = self.table[places] if self.table.width else self.table
        return Rows(values, X, table, lower, upper, [self.keys[row] for row in rows])

    @cached_property
    def texts(self) -> list[str]:
        """The values of each row as JSON, as the log keeps them."""
        return [msgspec.json.encode(row).decode() for row in self.values]


class RecordReader:
    """Reads the records of requests, and of the log, as rows of a model.

    Parameters
    ----------
    model : TableModel
        Its columns, grades, and the columns that its training left out are read.
    """

    def __init__(self, model: TableModel) -> None:
        self.recipe = recipe = model.recipe
        own = zip(model.columns, LABEL_NAMES, strict=True)
        roles = {name: name for name in LABEL_NAMES} | {name: role for name, role in own if name}
        kinds = dict.fromkeys(recipe.numbers, Number) | dict.fromkeys(recipe.texts, Word)
        optional: dict[str, Any] = dict.fromkeys(model.training["left_out"], Any)
        optional |= {name: Label if role == "label" else Grade for name, role in roles.items()}
        optional.pop(KEY, None)
        optional |= {KEY: Key | None}  # the last one
        others = {name: kind for name, kind in optional.items() if name not in kinds}
        self._roles = [(at, roles[name]) for at, name in enumerate(others) if name in roles]
        self._names = [*kinds, *others]
        types: list[Any] = [(kind,) for kind in kinds.values()]
        types += [(kind | UnsetType, UNSET) for kind in others.values()]
        fields = [(f"c{number}", *kind) for number, kind in enumerate(types)]
        names = {f"c{number}": name for number, name in enumerate(self._names)}
        self.type: Any = msgspec.defstruct(
            "Record", fields, rename=names, forbid_unknown_fields=True, kw_only=True
        )
        kind: Any = dict[str, Any] if recipe.n_sparse else self.type
        self._body = kind | list[kind]
        self._words = [
            (len(recipe.numbers) + place, name, frozenset(words))
            for place, (name, words) in enumerate(recipe.words)
        ]
        row: Any = (
            list[tuple[int, float]] if recipe.n_sparse else GenericAlias(tuple, (*kinds.values(),))
        )
        self._logged = list[row]
        low, high = some_range(model.classes_)
        pair = msgspec.json.encode([low, high]).decode()
        self._label_reader = label_reader(
            model.classes_,
            f'correct it, write a range as "{low} to {high}", ">={low}" or {pair}, or {RETRAIN}',
        )
        self._ends = lru_cache(N_REMEMBERED, typed=True)(self._read_ends)  # most labels repeat

    def read(self, encoder: Encoder, body: bytes, *, labelled: bool) -> tuple[Rows, bool]:
        """Rows of a request body, and whether it was a single record instead of a list."""
        content = decoded(body, self._body)
        records = content if isinstance(content, list) else [content]
        if not records:
            raise RowError(f"{REQUEST} is an empty list; send at least one record")
        if self.recipe.n_sparse:
            pairs = [self._sparse(record, number) for number, record in enumerate(records, 1)]
            values, others = [row for row, _ in pairs], [more for _, more in pairs]
        else:
            n = len(self.recipe.columns)
            cells = list(map(msgspec.structs.astuple, records))
            values = [row[:n] for row in cells]
            others = [row[n:] for row in cells] if labelled else []
        X, table = self.arrays(encoder, values)
        if not labelled:
            return Rows(values, X, table), records is not content
        ends = [self.ends(other, number) for number, other in enumerate(others, 1)]
        lower, upper = np.array(ends, dtype=np.int64).T
        keys = [None if other[-1] is UNSET else other[-1] for other in others]
        return Rows(values, X, table, lower, upper, keys), records is not content

    def _sparse(self, record: dict[str, Any], number: int) -> tuple[Any, tuple[Any, ...]]:
        """Pairs of index and value of an svmlight record, and its label and key."""
        first = 0 if self.recipe.zero_based else 1
        last = first + self.recipe.n_sparse - 1
        others = {name: record.pop(name) for name in self._names if name in record}
        index = Annotated[int, Meta(ge=first, le=last)]
        try:
            more = msgspec.structs.astuple(msgspec.convert(others, self.type))
            row = msgspec.convert(record, dict[index, float], str_keys=True)
        except msgspec.ValidationError as error:
            raise invalid(error, number) from None
        if len(row) < len(record):
            raise RowError(f"{REQUEST}, record {number}: a feature is named twice")
        return tuple((name - first, value) for name, value in row.items()), more

    def ends(self, given: Sequence[Any], number: int) -> tuple[int, int]:
        """Lowest and highest rank of a label, given as label, or as lower, upper or both."""
        label = {role: given[at] for at, role in self._roles if given[at] is not UNSET}
        try:
            if not label:
                raise ValueError("no label; give 'label', or 'lower', 'upper' or both")
            if "label" in label and len(label) > 1:
                raise ValueError("give either 'label', or 'lower' and 'upper', not both")
            if "label" in label:
                return self._ends(label["label"])
            return self._ends((label.get("lower"), label.get("upper")))
        except (ValueError, TypeError) as error:
            raise RowError(f"{REQUEST}, record {number}: {error}") from None

    def _read_ends(self, label: Any) -> tuple[int, int]:
        if not isinstance(label, tuple):
            return self._label_reader.interval(number_as_text(label))
        lower, upper = label
        low = self._label_reader.end(number_as_text(lower), 1)
        high = self._label_reader.end(number_as_text(upper), len(self._label_reader.classes))
        if low > high:
            raise ValueError(f"lower {lower!r} is above upper {upper!r}; swap them?")
        return low, high

    def logged(self, encoder: Encoder, texts: Sequence[str]) -> tuple[Any, pl.DataFrame]:
        """Numbers and text columns of rows in the log."""
        rows = msgspec.json.decode(f"[{','.join(texts)}]", type=self._logged)
        return self.arrays(encoder, rows)

    def arrays(self, encoder: Encoder, rows: Sequence[Sequence[Any]]) -> tuple[Any, pl.DataFrame]:
        """Numbers and text columns of rows of values; the first bad row raises an error."""
        recipe, n_numbers = self.recipe, len(self.recipe.numbers)
        if recipe.n_sparse:
            X, table = _sparse_matrix(rows, recipe.n_sparse), NO_TEXT
        else:
            X = np.array([row[:n_numbers] for row in rows], dtype=np.float64)
            texts = enumerate(recipe.texts, n_numbers)
            columns = {name: [as_word(row[place]) for row in rows] for place, name in texts}
            table = (
                pl.DataFrame(columns, dict.fromkeys(columns, pl.String())) if columns else NO_TEXT
            )
        if faults := encoder.value_faults(X):
            row = min(faults)
            raise RowError(f"{REQUEST}, record {row + 1}: {faults[row]}")
        return X, table

    def unseen(self, row: Sequence[Any]) -> dict[str, Any]:
        """The words of a row that the model has not seen, which predictions ignore."""
        return {
            name: row[place]
            for place, name, words in self._words
            if (as_word(row[place]) or "").strip() not in words
        }


def as_word(cell: Word) -> str | None:
    """A cell of a text column; numbers and booleans as JSON."""
    return cell if cell is None or isinstance(cell, str) else msgspec.json.encode(cell).decode()


def _sparse_matrix(rows: Sequence[Sequence[tuple[int, float]]], n_features: int) -> Any:
    from scipy.sparse import csr_array

    pairs = np.array([pair for row in rows for pair in row], dtype=np.float64).reshape(-1, 2)
    starts = np.cumsum([0, *map(len, rows)])
    shape = (len(rows), n_features)
    matrix = csr_array((pairs[:, 1], pairs[:, 0].astype(np.int64), starts), shape=shape)
    matrix.sort_indices()
    return matrix


def join_rows(parts: Sequence[Rows]) -> Rows:
    """Several groups of rows as one."""
    if len(parts) == 1:
        return parts[0]
    tables = [part.table for part in parts]
    return Rows(
        [row for part in parts for row in part.values],
        stack_rows([part.X for part in parts]),
        pl.concat(tables) if tables[0].width else tables[0],
        np.concatenate([part.lower for part in parts]),
        np.concatenate([part.upper for part in parts]),
        [key for part in parts for key in part.keys],
    )


def some_range(classes: Any) -> list[Any]:
    """Two neighbouring grades, for an example.

    >>> some_range(np.array(["low", "high"])), some_range(np.arange(1, 6))
    (['low', 'high'], [3, 4])
    """
    middle = (len(classes) + 1) // 2
    found: list[Any] = classes[middle - 1 : middle + 1].tolist()
    return found


def example_record(recipe: Recipe) -> dict[str, Any]:
    """A record with a value for every column.

    >>> example_record(Recipe(("age",), words=(("job", ("", "cook")),), hashed=("note",)))
    {'age': 1.5, 'job': 'cook', 'note': 'some text'}
    """
    if recipe.n_sparse:
        return {"0" if recipe.zero_based else "1": 1.5}
    words = {name: next(filter(None, known), "") for name, known in recipe.words}
    return dict.fromkeys(recipe.numbers, 1.5) | words | dict.fromkeys(recipe.hashed, "some text")
