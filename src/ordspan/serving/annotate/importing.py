"""Import answers from the JSON of Label Studio (ratings) and Potato (sliders and scales)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from ordspan.files.batch import FileError
from ordspan.files.forms import plain_word
from ordspan.serving.annotate.items import Items
from ordspan.serving.annotate.matching import POINT, SLIDER, Finder, Given, PointScale

EXPECTED_FILES = (
    "give the JSON of Label Studio (a list of tasks), or of Potato: annotated_instances.jsonl, "
    "user_state.json or an export as JSON lines"
)
SPENT = re.compile(r"(\d+)d (\d+)h (\d+)m (\d+)s")


class Imported(NamedTuple):
    """An answer with its item, and its label in ranks."""

    place: str
    item: int
    annotator: str
    lower: int
    upper: int
    seconds: float | None


class RawAnswer(NamedTuple):
    """An answer as read from a file."""

    place: str
    data: Given  # columns of the item, or its id
    annotator: str
    questions: Mapping[str, Any]  # by name
    seconds: float | None


class Result(Struct):
    """The result of one control of Label Studio."""

    type: str = ""
    from_name: str = ""
    value: dict[str, Any] = {}


class Annotation(Struct):
    """The annotation of a Label Studio task by one person."""

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
    label_annotations: dict[str, Any] = {}
    labels: dict[str, Any] = {}
    behavioral_data: dict[str, Any] | None = None


class AnswerPart(Struct, frozen=True):
    """A part of a question in the state of a user of Potato."""

    schema: str
    name: str


class User(Struct):
    """The state of a user of Potato."""

    user_id: str | int
    instance_id_to_label_to_value: dict[str, list[tuple[AnswerPart, Any]] | dict[str, Any]]


def read_answers(
    path: Path, items: Items, id_column: str | None, grades: Sequence[Any], name: str | None = None
) -> list[Imported]:
    """Read the answers of a file and match them with items.

    Parameters
    ----------
    path : Path
        JSON of Label Studio or Potato.
    items : Items
        The items.
    id_column : str, optional
        Column with their ids.
    grades : sequence
        Grades from lowest to highest.
    name : str, optional
        Name of the rating, slider or scale, if the file has several.
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


def _found(path: Path) -> Iterator[RawAnswer]:
    """All answers of a file in any supported format."""
    for place, record in _records(path):
        kind: Any = Instance
        if isinstance(record, dict) and "annotations" in record:
            kind = Task
        elif isinstance(record, dict) and "instance_id_to_label_to_value" in record:
            kind = User
        try:
            known = msgspec.convert(record, kind)
        except msgspec.ValidationError as error:
            raise FileError(f"{place}: {error}; {EXPECTED_FILES}") from None
        if isinstance(known, Task):
            yield from _of_task(place, known)
        elif isinstance(known, User):
            yield from _of_user(place, known)
        else:
            yield _of_instance(path, place, known)


def _records(path: Path) -> Iterator[tuple[str, Any]]:
    """Every record with its place: from a list, a single object, or one per line."""
    content = path.read_bytes()
    try:
        whole = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        for number, line in enumerate(content.splitlines(), 1):
            try:
                record = msgspec.json.decode(line) if line.strip() else None
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise FileError(f"{path}, line {number}: {error}; {EXPECTED_FILES}") from None
            if record is not None:
                yield f"{path}, line {number}", record
        return
    for number, record in enumerate(whole if isinstance(whole, list) else [whole], 1):
        yield f"{path}, record {number}", record


def _of_task(place: str, task: Task) -> Iterator[RawAnswer]:
    for number, work in enumerate(task.annotations, 1):
        ratings = [r for r in work.result if r.type == "rating" and not work.was_cancelled]
        questions: dict[str, Given] = {
            r.from_name: {f"{POINT}{plain_word(r.value.get('rating'))}": True} for r in ratings
        }
        who = work.completed_by
        if isinstance(who, dict):
            who = who.get("email") or who.get("id")
        where = f"{place}, annotation {number}"
        yield RawAnswer(where, task.data, _annotator(who), questions, work.lead_time)


def _of_user(place: str, user: User) -> Iterator[RawAnswer]:
    for key, kept in user.instance_id_to_label_to_value.items():
        questions: dict[str, Any] = defaultdict(dict)
        if isinstance(kept, dict):
            questions |= kept
        else:
            for part, value in kept:
                questions[part.schema][part.name] = value
        yield RawAnswer(f"{place}, {key!r}", {"": key}, _annotator(user.user_id), questions, None)


def _of_instance(path: Path, place: str, instance: Instance) -> RawAnswer:
    key = instance.id if instance.instance_id is None else instance.instance_id
    if key is None:
        raise FileError(f"{place}: the record has no id; {EXPECTED_FILES}")
    # the first version of Potato has a folder named after each annotator
    who = path.resolve().parent.name if instance.user_id is None else instance.user_id
    spent = SPENT.search(str((instance.behavioral_data or {}).get("time_string", "")))
    days, hours, minutes, seconds = map(int, spent.groups()) if spent else (0, 0, 0, 0)
    total = float(((days * 24 + hours) * 60 + minutes) * 60 + seconds) if spent else None
    questions = instance.label_annotations or instance.labels
    return RawAnswer(place, {"": key}, _annotator(who), questions, total)


def _annotator(name: Any) -> str:
    return ("" if name is None else str(name).strip()[:100]) or "unknown"


def _chosen(questions: Mapping[str, Any], name: str | None) -> Given:
    """The answer to the chosen question; empty if it was not answered."""
    if name is None and len(questions) > 1:
        raise ValueError(
            f"there are several questions, {', '.join(questions)}; choose one with --schema"
        )
    given = questions.get(next(iter(questions), "") if name is None else name, {})
    return given if isinstance(given, dict) else {SLIDER: given}
