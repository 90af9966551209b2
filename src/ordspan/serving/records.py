"""Requests as declared records: the columns of a model, and the label and key of each row."""

import json
import re
from collections.abc import Sequence
from functools import cached_property, lru_cache
from types import GenericAlias
from typing import Annotated, Any

import msgspec
import numpy as np
import polars as pl
from msgspec import UNSET, Meta, UnsetType

from ordspan.commands.models import RETRAIN, label_reader
from ordspan.labels.forms import OPEN, number_as_text
from ordspan.models.table import TableModel
from ordspan.serving.log import LEARN, Event
from ordspan.tables.encoder import Recipe
from ordspan.tables.numbers import without_codes

KEY, FEATURES = "key", "features"
ROLES = ("label", "lower", "upper")
REQUEST = "the request"
PLACE = re.compile(r"(?s)(.*?)(?: - at `\$(?:\[(\d+)\])?\.?(.*)`)?")
"""What msgspec says of an invalid value, its record and its column."""

Word = str | bool | int | float | None
Grade = str | int | float | None
Label = Grade | tuple[Grade, Grade]
Key = Annotated[str, Meta(min_length=1, max_length=200)]


class RequestError(ValueError):
    """A request that is refused, and the status of the answer."""

    def __init__(self, message: str, status: int = 422) -> None:
        super().__init__(message)
        self.status = status


def decoded(body: bytes, kind: Any) -> Any:
    """The JSON of a body; a name that stands twice in an object is refused.

    >>> decoded(b'{"age": NaN}', dict)
    Traceback (most recent call last):
    ordspan.serving.records.RequestError: the request cannot be read: JSON is malformed: invalid
    character (byte 8); send JSON, with null for missing values
    >>> decoded(b'[{"age": 1}, {"age": "1"}]', list[dict[str, float]])
    Traceback (most recent call last):
    ordspan.serving.records.RequestError: the request, record 2: column '[...]': Expected `float`...
    """
    try:
        content = msgspec.json.decode(body, type=kind)
        if _count_names(body) <= _count_names(msgspec.json.encode(content)):
            return content
        reason = "a name stands twice in an object"
    except msgspec.ValidationError as error:
        match = PLACE.fullmatch(str(error))
        assert match is not None
        reason, place, column = match.groups()
        where = f", record {int(place) + 1}" if place else ""
        what = f"column {column!r}: " if column else ""
        raise RequestError(
            f"{REQUEST}{where}: {what}{reason}; see /docs for the columns and their types"
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = str(error)
    message = f"{REQUEST} cannot be read: {reason}; send JSON, with null for missing values"
    raise RequestError(message, 400)


def _count_names(text: bytes) -> int:
    """Names in JSON; a string that looks like one counts before and after decoding alike."""
    return text.translate(None, b" \t\r\n").count(b'":')


def check_names(recipe: Recipe) -> None:
    """Refuse a model with columns that a request cannot name."""
    for name in recipe.columns:
        if name in (*ROLES, KEY) or json.dumps(name, ensure_ascii=False) != f'"{name}"':
            raise ValueError(
                f"the model has a column {name!r}, which no request can name: {', '.join(ROLES)} "
                f"and {KEY} are the label and its key, and quotes, backslashes and control "
                "characters are not allowed; rename the column and retrain the model"
            )


class RecordReader:
    """Reads the records of requests, and of the log, as rows of a model.

    Parameters
    ----------
    model : TableModel
        Its columns, grades, and the columns that its training left out are read.
    """

    def __init__(self, model: TableModel) -> None:
        self.recipe, self._encoder = model.recipe, model.encoder
        self._na = model.options.na
        self._first = 0 if self.recipe.zero_based else 1
        columns: dict[str, Any] = dict.fromkeys(self.recipe.numbers, float | None)
        columns |= dict.fromkeys(self.recipe.texts, Word)
        if n := self.recipe.n_sparse:
            index = Annotated[int, Meta(ge=self._first, le=self._first + n - 1)]
            columns = {FEATURES: dict[index, float]}
        own = {getattr(model.columns, role): role for role in ROLES}
        self._roles = {role: role for role in ROLES} | {n: role for n, role in own.items() if n}
        others: dict[str, Any] = dict.fromkeys(model.training["left_out"], Any)
        others |= {name: Label if role == "label" else Grade for name, role in self._roles.items()}
        others |= {KEY: Key | None}
        self._columns = columns
        self._others = {name: others[name] for name in others if name not in columns}
        self._rows: Any = GenericAlias(list, GenericAlias(tuple, (*columns.values(),)))
        self._words = [
            (len(self.recipe.numbers) + at, name, frozenset(words))
            for at, (name, words) in enumerate(self.recipe.words)
        ]
        low, high = some_range(model.classes_)
        pair = msgspec.json.encode([low, high]).decode()
        self._labels = label_reader(
            model.classes_,
            f'correct it, write a range as "{low} to {high}", ">={low}" or {pair}, or {RETRAIN}',
        )
        self._ranks = lru_cache(4096, typed=True)(self._read_ranks)  # most labels repeat

    @cached_property
    def type(self) -> Any:
        """The declared record: every column of the model, and what may be sent besides."""
        fields: list[Any] = [(kind,) for kind in self._columns.values()]
        fields += [(kind | UnsetType, UNSET) for kind in self._others.values()]
        return msgspec.defstruct(
            "Record",
            [(f"c{at}", *kind) for at, kind in enumerate(fields)],
            rename={f"c{at}": name for at, name in enumerate((*self._columns, *self._others))},
            forbid_unknown_fields=True,
            kw_only=True,
        )

    def read(self, body: bytes) -> tuple[list[tuple[Any, ...]], bool]:
        """Records of a request body, and whether it was a single one instead of a list."""
        content = decoded(body, self.type | GenericAlias(list, self.type))
        records = content if isinstance(content, list) else [content]
        if not records:
            raise RequestError(f"{REQUEST} is an empty list; send at least one record")
        return list(map(msgspec.structs.astuple, records)), records is not content

    def label(self, record: Sequence[Any], number: int) -> Event:
        """A record as an event to learn."""
        other = {
            name: value
            for name, value in zip(self._others, record[len(self._columns) :], strict=True)
            if value is not UNSET
        }
        names = {self._roles[name]: name for name in other if name in self._roles}
        label = {role: other[name] for role, name in names.items()}
        try:
            for name in other.keys() & self._roles:
                if (last := names[self._roles[name]]) != name:
                    raise ValueError(f"give {name!r} or {last!r}, not both")
            if not label:
                raise ValueError("no label; give 'label', or 'lower', 'upper' or both")
            if "label" in label and len(label) > 1:
                raise ValueError("give either 'label', or 'lower' and 'upper', not both")
            ends = self._ranks(label.get("label", (label.get("lower"), label.get("upper"))))
        except ValueError as error:
            raise RequestError(f"{REQUEST}, record {number}: {error}") from None
        text = msgspec.json.encode(record[: len(self._columns)]).decode()
        return Event(0, LEARN, other.get(KEY), 0.0, text, *ends)

    def _read_ranks(self, label: Any) -> tuple[int, int]:
        """Lowest and highest rank of a label."""
        if not isinstance(label, tuple):
            return self._labels.interval(number_as_text(label))
        lower, upper = label
        ends, n_classes = list(map(number_as_text, label)), len(self._labels.classes)
        low, high = self._labels.end(ends[0], 1), self._labels.end(ends[1], n_classes)
        if {*ends} <= {*OPEN} and (low, high) == (1, n_classes):  # None may be a grade
            raise ValueError("the label is empty")
        if low > high:
            raise ValueError(f"lower {lower!r} is above upper {upper!r}; swap them?")
        return low, high

    def logged(self, events: Sequence[Event]) -> tuple[Any, pl.DataFrame]:
        """Numbers and text columns of events."""
        texts = ",".join([event.values for event in events])
        return self.arrays(msgspec.json.decode(f"[{texts}]", type=self._rows))

    def arrays(self, rows: Sequence[Sequence[Any]]) -> tuple[Any, pl.DataFrame]:
        """Numbers and text columns of records; the first bad one raises an error."""
        n_numbers, columns = len(self.recipe.numbers), {}
        if self.recipe.n_sparse:
            X = self._sparse([row[0] for row in rows])
        else:
            X = np.array([row[:n_numbers] for row in rows], dtype=np.float64)
            for at, name in enumerate(self.recipe.texts, n_numbers):
                columns[name] = pl.Series(name, [as_word(row[at]) for row in rows], pl.String())
            if self._na:
                numbers = without_codes(pl.DataFrame(X, list(self.recipe.numbers)), self._na)
                X = numbers.to_numpy(order="c")
        if faults := self._encoder.value_faults(X):
            row = min(faults)
            raise RequestError(f"{REQUEST}, record {row + 1}: {faults[row]}")
        return X, without_codes(pl.DataFrame(columns), self._na)

    def _sparse(self, rows: Sequence[dict[int, float]]) -> Any:
        from scipy.sparse import csr_array

        starts = np.cumsum([0, *map(len, rows)])
        indices = np.array([index for row in rows for index in row], dtype=np.int64) - self._first
        values = np.array([value for row in rows for value in row.values()], dtype=np.float64)
        matrix = csr_array((values, indices, starts), shape=(len(rows), self.recipe.n_sparse))
        matrix.sort_indices()
        return matrix

    def unseen(self, record: Sequence[Any]) -> dict[str, Any]:
        """An answer about the words that the model has not seen, which predictions ignore."""
        unseen = {
            name: record[at]
            for at, name, words in self._words
            if (as_word(record[at]) or "").strip() not in words
        }
        return {"unseen": unseen} if unseen else {}


def as_word(cell: Word) -> str | None:
    """A cell of a text column; numbers and booleans as JSON."""
    return cell if cell is None or isinstance(cell, str) else msgspec.json.encode(cell).decode()


def some_range(classes: Any) -> list[Any]:
    """Two neighbouring grades, for an example.

    >>> some_range(np.array(["low", "high"])), some_range(np.arange(1, 6))
    (['low', 'high'], [3, 4])
    """
    middle = (len(classes) + 1) // 2
    pair: list[Any] = classes[middle - 1 : middle + 1].tolist()
    return pair


def example_record(recipe: Recipe) -> dict[str, Any]:
    """A record with a value for every column.

    >>> example_record(Recipe(("age",), words=(("job", ("", "cook")),), hashed=("note",)))
    {'age': 1.5, 'job': 'cook', 'note': 'some text'}
    """
    if recipe.n_sparse:
        return {FEATURES: {0 if recipe.zero_based else 1: 1.5}}
    words = {name: next(filter(None, known), "") for name, known in recipe.words}
    free = dict.fromkeys((*recipe.hashed, *dict(recipe.sentences)), "some text")
    return dict.fromkeys(recipe.numbers, 1.5) | words | free
