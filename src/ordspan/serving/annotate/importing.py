"""Answers in, from the JSON of Label Studio's rating and of Potato's sliders and scales."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import Struct

from ordspan.files.batch import FileError, brief, is_number
from ordspan.files.forms import plain_word
from ordspan.files.grades import Grades
from ordspan.serving.annotate.items import Items

FORMS = (
    "give the JSON of Label Studio (a list of tasks), or of Potato: annotated_instances.jsonl, "
    "user_state.json or an export as JSON lines"
)
RANGE, SLIDER, POINT = ("range_low", "range_high"), "slider", "scale_"
NOT_CHOSEN, NO_GRADE = (None, False, "", "false"), "bad_text"
SPENT = re.compile(r"(\d+)d (\d+)h (\d+)m (\d+)s")

Given = Mapping[str, Any]
"""What Potato keeps of one question: the parts that were filled or chosen, and their values."""


class Imported(NamedTuple):
    """One answer of a file: its item, and its label in ranks."""

    place: str
    item: int
    annotator: str
    lower: int
    upper: int
    seconds: float | None


class Found(NamedTuple):
    """An answer as it stands in a file."""

    place: str
    data: Given  # columns of the item, or its id
    annotator: str
    questions: Mapping[str, Given]  # by name
    seconds: float | None


class Result(Struct):
    """What Label Studio keeps of one control."""

    type: str = ""
    from_name: str = ""
    value: dict[str, Any] = {}


class Annotation(Struct):
    """The work of one person on a task of Label Studio."""

    result: list[Result] = []
    completed_by: int | str | dict[str, Any] | None = None
    lead_time: float | None = None
    was_cancelled: bool | None = False


class Task(Struct):
    """A task of Label Studio."""

    data: dict[str, Any]
    annotations: list[Annotation]


class Instance(Struct):
    """An instance of Potato: of annotated_instances.jsonl, or of an export."""

    id: str | int | None = None
    instance_id: str | int | None = None
    user_id: str | int | None = None
    label_annotations: dict[str, dict[str, Any]] = {}
    labels: dict[str, dict[str, Any]] = {}
    behavioral_data: dict[str, Any] | None = None


class Part(Struct, frozen=True):
    """A part of a question in the state of a user of Potato."""

    schema: str
    name: str


class User(Struct):
    """The state of a user of Potato."""

    user_id: str | int
    instance_id_to_label_to_value: dict[str, list[tuple[Part, Any]] | dict[str, dict[str, Any]]]


def read_answers(
    path: Path, items: Items, id_column: str | None, grades: Sequence[Any], name: str | None = None
) -> list[Imported]:
    """The answers of a file, each with its item.

    Parameters
    ----------
    path : Path
        JSON of Label Studio or Potato.
    items : Items
        What is asked about.
    id_column : str, optional
        The column of their ids.
    grades : sequence
        From lowest to highest.
    name : str, optional
        Of the rating, slider or scale, where the file has several.
    """
    finder, scale = Finder(items, id_column), PointScale(grades)
    answers = []
    for found in _found(path):
        try:
            ends = scale.ends(_chosen(found.questions, name))
            if ends is not None:
                item = finder.item(found.data)
                answers.append(Imported(found.place, item, found.annotator, *ends, found.seconds))
        except ValueError as error:
            raise FileError(f"{found.place}: {error}") from None
    return answers


def _found(path: Path) -> Iterator[Found]:
    """All answers of a file, whatever its form."""
    for place, record in _records(path):
        kind: Any = Instance
        if isinstance(record, dict) and "annotations" in record:
            kind = Task
        elif isinstance(record, dict) and "instance_id_to_label_to_value" in record:
            kind = User
        try:
            known = msgspec.convert(record, kind)
        except msgspec.ValidationError as error:
            raise FileError(f"{place}: {error}; {FORMS}") from None
        if isinstance(known, Task):
            yield from _of_task(place, known)
        elif isinstance(known, User):
            yield from _of_user(place, known)
        else:
            yield _of_instance(path, place, known)


def _records(path: Path) -> Iterator[tuple[str, Any]]:
    """Every record with its place: of a list, of one object, or one a line."""
    content = path.read_bytes()
    try:
        whole = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        for number, line in enumerate(content.splitlines(), 1):
            try:
                record = msgspec.json.decode(line) if line.strip() else None
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise FileError(f"{path}, line {number}: {error}; {FORMS}") from None
            if record is not None:
                yield f"{path}, line {number}", record
        return
    for number, record in enumerate(whole if isinstance(whole, list) else [whole], 1):
        yield f"{path}, record {number}", record


def _of_task(place: str, task: Task) -> Iterator[Found]:
    for number, work in enumerate(task.annotations, 1):
        ratings = [r for r in work.result if r.type == "rating" and not work.was_cancelled]
        questions: dict[str, Given] = {
            r.from_name: {f"{POINT}{plain_word(r.value.get('rating'))}": True} for r in ratings
        }
        who = work.completed_by
        if isinstance(who, dict):
            who = who.get("email") or who.get("id")
        where = f"{place}, annotation {number}"
        yield Found(where, task.data, _annotator(who), questions, work.lead_time)


def _of_user(place: str, user: User) -> Iterator[Found]:
    for key, kept in user.instance_id_to_label_to_value.items():
        questions: dict[str, dict[str, Any]] = defaultdict(dict)
        if isinstance(kept, dict):
            questions |= kept
        else:
            for part, value in kept:
                questions[part.schema][part.name] = value
        yield Found(f"{place}, {key!r}", {"": key}, _annotator(user.user_id), questions, None)


def _of_instance(path: Path, place: str, instance: Instance) -> Found:
    key = instance.id if instance.instance_id is None else instance.instance_id
    if key is None:
        raise FileError(f"{place}: there is no id in it; {FORMS}")
    # the first version has a folder for each annotator, of that name
    who = path.resolve().parent.name if instance.user_id is None else instance.user_id
    spent = SPENT.search(str((instance.behavioral_data or {}).get("time_string", "")))
    days, hours, minutes, seconds = map(int, spent.groups()) if spent else (0, 0, 0, 0)
    total = float(((days * 24 + hours) * 60 + minutes) * 60 + seconds) if spent else None
    questions = instance.label_annotations or instance.labels
    return Found(place, {"": key}, _annotator(who), questions, total)


def _annotator(name: Any) -> str:
    return str(name).strip()[:100] if name not in (None, "") else "unknown"


def _chosen(questions: Mapping[str, Given], name: str | None) -> Given:
    """The question that is meant; nothing where it was not answered."""
    if name is not None:
        return questions.get(name, {})
    if len(questions) > 1:
        raise ValueError(f"there are several questions, {', '.join(questions)}; name one, --schema")
    return next(iter(questions.values()), {})


class PointScale:
    """Turns what was chosen on a slider or a scale into ranks.

    Points of a scale count from 1. The values of a slider are grades where these are numbers, and
    otherwise count from 1, too.

    >>> scale = PointScale(["low", "mid", "high"])
    >>> scale.ends({"range_low": "1", "range_high": "2"}), scale.ends({"scale_3": "3"})
    ((1, 2), (3, 3))
    >>> scale.ends({"mid": "true", "high": "false"}), scale.ends({"slider": ""})
    ((2, 2), None)
    """

    def __init__(self, grades: Sequence[Any]) -> None:
        self.grades, self._n = Grades(np.asarray(grades)), len(grades)
        self._numbers = all(not isinstance(grade, str) for grade in grades)
        self._counts = list(map(plain_word, grades)) == [str(i + 1) for i in range(self._n)]

    def ends(self, given: Given) -> tuple[int, int] | None:
        """Lowest and highest rank of an answer; None where there is none."""
        chosen = {name: value for name, value in given.items() if value not in NOT_CHOSEN}
        if not chosen or NO_GRADE in chosen:
            return None
        if RANGE[0] in chosen and RANGE[1] in chosen:
            lower, upper = (self._value(chosen[end]) for end in RANGE)
            if lower > upper:
                raise ValueError(f"the lower end {chosen[RANGE[0]]} is above {chosen[RANGE[1]]}")
            return lower, upper
        if len(chosen) > 1:
            raise ValueError(f"several grades are chosen, {', '.join(chosen)}; leave one")
        ((name, value),) = chosen.items()
        rank = self._value(value) if name == SLIDER else self._choice(name)
        return rank, rank

    def _value(self, value: Any) -> int:
        word = plain_word(value)
        return self.grades.rank(word) if self._numbers or not is_number(word) else self._point(word)

    def _choice(self, name: str) -> int:
        if name.startswith(POINT):
            return self._point(name.removeprefix(POINT))
        if not is_number(name) or not self._numbers:
            return self._point(name) if name.isdecimal() else self.grades.rank(name)
        if not self._counts:
            raise ValueError(
                f"{name} may be that grade, or that point of a scale, whose points count from 1; "
                f"annotate with the grades 1..{self._n}, which are both"
            )
        return self._point(name)

    def _point(self, word: str) -> int:
        """The rank of a point that is counted from 1."""
        if not (word.isascii() and word.isdecimal() and 1 <= int(word[:9]) <= self._n):
            raise ValueError(f"{brief(word)} is not a point from 1 to {self._n}, as many as grades")
        return int(word)


class Finder:
    """Finds items by their id, or by what their columns hold."""

    def __init__(self, items: Items, id_column: str | None) -> None:
        self._items, self._id = items, id_column
        self._by_id = {} if items.ids is None else {key: i for i, key in enumerate(items.ids)}
        self._by_cells: dict[tuple[str, ...], dict[tuple[str, ...], list[int]]] = {}

    def item(self, data: Given) -> int:
        """The only item that data fits."""
        if self._id is not None and (self._id in data or "" in data):
            key = str(data.get("", data.get(self._id))).strip()
            if key not in self._by_id:
                raise ValueError(f"no item has the {self._id} {brief(key)}; correct it")
            return self._by_id[key]
        if "" in data:
            raise ValueError(f"which item is {brief(data[''])}? Name the column of ids with --id")
        columns = tuple(name for name in self._items.table.columns if name in data)
        if not columns:
            raise ValueError("its data has no column of the items; name one of ids with --id")
        fits = self._index(columns).get(tuple(plain_word(data[name]) for name in columns), [])
        if len(fits) != 1:
            found = f"{len(fits)} items have" if fits else "no item has"
            told = ", ".join(f"{name} {brief(data[name])}" for name in columns)
            raise ValueError(f"{found} {told}; name a column of ids with --id")
        return fits[0]

    def _index(self, columns: tuple[str, ...]) -> dict[tuple[str, ...], list[int]]:
        if columns not in self._by_cells:
            index = self._by_cells[columns] = defaultdict(list)
            for item, row in enumerate(self._items.table.select(columns).iter_rows()):
                index[tuple(map(plain_word, row))].append(item)
        return self._by_cells[columns]
