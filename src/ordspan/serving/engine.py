"""A model that learns from a log: after a kill the log gives the same model, to the byte."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from copy import copy
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from ordspan.atomic import check_can_write, write_atomically
from ordspan.checkpoint import Checkpoint, sole_writer
from ordspan.files.batch import Batch, Count, FileError
from ordspan.files.features import Scale, prepare_features
from ordspan.learners.scoring import rank_among
from ordspan.modelfile import ModelFileError, from_bytes, to_bytes
from ordspan.serving.log import LEARN, SKIP, UNDO, Event, Log, Totals
from ordspan.serving.records import batch_of
from ordspan.tabular import ESTIMATORS, SVM, TabularModel

COVERAGE = 0.9
EVERY = 10_000
"""Events between two snapshots."""
PORTION = 8192
"""Events that are learned together where the model is rebuilt."""
LOG, BASE, SNAPSHOT = "log.sqlite", "base.ordspan", "snapshot.ordspan"

Content = tuple[str, int | None, int | None]


class BatchPredictions(NamedTuple):
    """What a model says of some rows, in ranks 1..K."""

    score: NDArray[np.float64]
    rank: NDArray[np.int64]
    low: NDArray[np.int64] | None  # None where the model is not calibrated
    high: NDArray[np.int64] | None

    def ranks(self, row: int) -> tuple[int, int | None, int | None]:
        """Rank and range of a row."""
        if self.low is None or self.high is None:
            return int(self.rank[row]), None, None
        return int(self.rank[row]), int(self.low[row]), int(self.high[row])


class Lesson(NamedTuple):
    """One row to learn: values in the order of the model's columns, and the ranks of its label."""

    values: Sequence[Any]
    lower: int
    upper: int
    key: str | None = None
    extra: Mapping[str, Any] | None = None


class Checked(NamedTuple):
    """Lessons that were found good, and their rows."""

    lessons: Sequence[Lesson]
    batch: Batch


class KeyConflictError(ValueError):
    """A key that another label has."""


class SnapshotProgress(msgspec.Struct):
    """How far a snapshot has come."""

    events: Count


def predict_batch(
    model: TabularModel, batch: Batch, coverage: float = COVERAGE
) -> BatchPredictions:
    """Score, rank and range of every row."""
    features = prepare_features(model.recipe, model.scale, batch)
    score = model.learner.latent(features)
    rank = rank_among(model.learner.thresholds, score)
    if model.calibration is None:
        return BatchPredictions(score, rank, None, None)
    return BatchPredictions(score, rank, *model.calibration.ranges(score, rank, coverage))


def copied(model: TabularModel) -> TabularModel:
    """A model that goes its own way from here."""
    twin = TabularModel(
        copy(model.learner),
        model.classes_,
        model.parameters,
        model.recipe,
        Scale(model.recipe.n_scaled, model.scale.state.copy()),
        model.columns,
        model.options,
        dict(model.training),
        model.kind,
        model.fitted,
        copy(model.calibration),
    )
    twin.learner.adopt_memory(model.learner.memory.copy())
    if twin.calibration is not None and model.calibration is not None:
        twin.calibration.state = model.calibration.state.copy()
    return twin


class Engine:
    """The model of a state folder, which learns from events and never forgets one it confirmed.

    The folder holds the model that it began with, the log of all events, and a snapshot of the
    model from time to time. Snapshot plus the rest of the log is the model, to the byte.

    Parameters
    ----------
    folder : path-like
        The state folder; it is made where there is none.
    start : TabularModel, optional
        The model to begin with. A folder that was begun before needs none; if one is given, it
        must be the same.
    every : int
        Events between two snapshots.
    """

    def __init__(
        self, folder: str | Path, start: TabularModel | None = None, *, every: int = EVERY
    ) -> None:
        self.folder, self.every = Path(folder), every
        self._open = ExitStack()
        self._lock = Lock()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            check_can_write(self.folder / LOG)
            self._open.enter_context(sole_writer(self.folder / LOG))
            self._base = self._begin(start)
            self._log = Log(self.folder / LOG)
            self._open.callback(self._log.close)
            self._snapshot = Checkpoint(
                self.folder / SNAPSHOT, {"serves": os.fspath(LOG)}, [], "remove it"
            )
            self._last, self._saved = self._log.last, 0
            self._mine = self._rebuilt()
        except BaseException:
            self._open.close()
            raise
        self.model = copied(self._mine)

    def _begin(self, start: TabularModel | None) -> TabularModel:
        """The model before any event."""
        path, name = self.folder / BASE, str(self.folder / BASE)
        given = None if start is None else to_bytes(start)
        if not path.exists():
            if given is None:
                raise FileError(f"{self.folder} holds no model yet; give one to begin with")
            if (self.folder / LOG).exists():
                raise FileError(
                    f"{name} is missing, which the log of {self.folder} began with; restore it"
                )
            write_atomically(path, given)
        content = path.read_bytes()
        if given is not None and given != content:
            raise FileError(
                f"{self.folder} was begun with another model; leave the model out to go on with "
                "it, or choose another state folder"
            )
        model = from_bytes(content, name)
        if not isinstance(model, TabularModel):
            raise FileError(f"{name} holds no model of ordspan train")
        return model

    def _rebuilt(self) -> TabularModel:
        """The model as of the last event."""
        found = self._read_snapshot()
        if found is not None and all(n > found[1] for n in self._log.undone(after=found[1])):
            model, self._saved = found
            return self._learned(model, after=self._saved)
        return self._learned(copied(self._base), after=0)

    def _read_snapshot(self) -> tuple[TabularModel, int] | None:
        try:
            found = self._snapshot.read(TabularModel, SnapshotProgress)
        except ModelFileError:  # damaged; the log has it all
            return None
        if found is not None and found[1].events > self._last:
            raise FileError(
                f"{self.folder / SNAPSHOT} has learned {found[1].events:,} events, but the log "
                f"ends with number {self._last:,}: the disk has lost some. Restore {LOG} from a "
                "backup, or remove the snapshot to go on without them"
            )
        return None if found is None else (found[0], found[1].events)

    def replayed(self) -> TabularModel:
        """The model rebuilt from the log alone, without a snapshot."""
        with self._lock:
            return self._learned(copied(self._base), after=0)

    def _learned(self, model: TabularModel, after: int) -> TabularModel:
        """A model that has learned what the log holds after an event, but for what was undone."""
        undone = set(self._log.undone())
        events = (e for e in self._log.read(after) if e.kind == LEARN and e.id not in undone)
        while some := list(islice(events, PORTION)):
            try:
                rows = [msgspec.json.decode(event.values) for event in some]
                ends = [np.array([event[at] for event in some]) for at in (5, 6)]
                learn(model, batch_of(model.recipe, rows, "counted from the first"), *ends)
            except (ValueError, TypeError, IndexError, msgspec.DecodeError) as error:
                raise FileError(
                    f"{self._log.path}: the events {some[0].id} to {some[-1].id} cannot be learned "
                    f"again ({error}); the file is damaged, restore it from a backup"
                ) from error
        return model

    def checked(self, lessons: Sequence[Lesson]) -> Checked:
        """Lessons whose values fit the model; a bad one is refused by its place."""
        return Checked(lessons, batch_of(self.model.recipe, [lesson.values for lesson in lessons]))

    def learn(self, lessons: Sequence[Lesson]) -> list[Event]:
        """Learn in order, all or nothing; it is on disk when this returns.

        A lesson whose key was learned before counts no more: its first event is returned.
        """
        if not lessons:
            return []
        (done,) = self.learn_groups([self.checked(lessons)])
        if isinstance(done, Exception):
            raise done
        return done

    def learn_groups(self, groups: Iterable[Checked]) -> list[list[Event] | Exception]:
        """`learn` for each of several groups of lessons, with one write to disk for all.

        A group that cannot be learned has its error in the place of its events; an error in
        writing is raised, and then none of them was learned.
        """
        if self._base.kind == ESTIMATORS[SVM]:
            raise ValueError("an OrdinalSVM is fitted at once and cannot go on; train it anew")
        with self._lock:
            new: list[Event] = []
            done: list[list[Event] | Exception] = []
            try:
                known = self._known(groups := list(groups))
                for group in groups:
                    done.append(self._learn_group(group, known, new))
                self._log.append(new)
            except BaseException:
                self._mine = copied(self.model)
                raise
            if new:
                self._last += len(new)
                self._publish()
        return done

    def _known(self, groups: Sequence[Checked]) -> dict[str, Event]:
        keys = [lesson.key for group in groups for lesson in group.lessons if lesson.key]
        return self._log.with_keys(keys) if keys else {}

    def _learn_group(
        self, group: Checked, known: dict[str, Event], new: list[Event]
    ) -> list[Event] | Exception:
        """Learn what is new of a group, and take note of it; nothing where a part is refused."""
        lessons = group.lessons
        told = [(lesson.key, (_values(lesson), lesson.lower, lesson.upper)) for lesson in lessons]
        fresh: list[int] = []
        own: dict[str, Content] = {}
        for place, (key, content) in enumerate(told):
            then = None if key is None else own.get(key) or _content(known.get(key))
            if then is None:
                fresh.append(place)
                own |= {} if key is None else {key: content}
            elif then != content:
                return KeyConflictError(
                    f"record {place + 1}: the key {key!r} belongs to another label; give every "
                    "label its own"
                )
        if not fresh:
            return [known[str(key)] for key, _ in told]
        batch = group.batch if len(fresh) == len(lessons) else group.batch.only(np.array(fresh))
        ends = [np.array([lessons[place][side] for place in fresh]) for side in (1, 2)]
        try:
            before = predict_batch(self._mine, batch)
            learn(self._mine, batch, *ends)
        except ValueError as error:
            return error
        first, now = self._last + len(new) + 1, time.time()
        events = {
            place: Event(
                first + row,
                LEARN,
                lessons[place].key,
                now,
                *told[place][1],
                *before.ranks(row),
                None,
                msgspec.json.encode(lessons[place].extra or {}).decode(),
            )
            for row, place in enumerate(fresh)
        }
        new += events.values()
        known |= {event.key: event for event in events.values() if event.key is not None}
        return [events.get(place) or known[str(key)] for place, (key, _) in enumerate(told)]

    def skip(self, extra: dict[str, Any], key: str | None = None) -> Event:
        """Take note of a row that was not labelled."""
        return self._note(SKIP, key, None, extra)

    def undo(self, event_id: int, key: str | None = None) -> Event:
        """Take an event back: the model becomes that of the log without it."""
        return self._note(UNDO, key, event_id, {})

    def _note(self, kind: str, key: str | None, undoes: int | None, extra: Any) -> Event:
        with self._lock:
            if key is not None and (before := self._log.with_keys([key]).get(key)):
                if before.kind != kind:
                    raise KeyConflictError(
                        f"the key {key!r} belongs to another event; give each its own"
                    )
                return before
            if undoes is not None and not self._log.can_undo(undoes):
                raise ValueError(f"there is no label or skip number {undoes} to take back")
            told = msgspec.json.encode(extra).decode()
            number = self._last + 1
            event = Event(number, kind, key, time.time(), "", undoes=undoes, extra=told)
            self._log.append([event])
            self._last = number
            if undoes is not None:
                self._mine = self._rebuilt()
            self._publish()
        return event

    def _publish(self) -> None:
        """Let predictions see what is on disk now, and keep it from time to time."""
        self.model = copied(self._mine)
        if self._last - self._saved >= self.every:
            self.save()

    def save(self) -> None:
        """Write a snapshot; without room for it the log has it all."""
        with suppress(OSError):
            self._snapshot.write(self.model, SnapshotProgress(self._last))
            self._saved = self._last

    @property
    def n_events(self) -> int:
        """Number of the last event."""
        return self._last

    def events(self, after: int = 0) -> list[Event]:
        """The events after a number, in order."""
        with self._lock:
            return list(self._log.read(after))

    def totals(self) -> Totals:
        """What the log says of all rows that count."""
        with self._lock:
            return self._log.totals()

    def close(self) -> None:
        """Keep a snapshot, and let go of the folder."""
        with self._lock:
            if self._saved < self._last:
                self.save()
            self._open.close()


def learn(
    model: TabularModel, batch: Batch, lower: NDArray[np.int64], upper: NDArray[np.int64]
) -> None:
    """Learn rows, one after the other; a model that began empty learns its scale with them."""
    on_the_way = model.recipe.standardise and _is_scaled_on_the_way(model)
    before = model.scale.state.copy() if on_the_way else None
    try:
        features = prepare_features(model.recipe, model.scale, batch, learn=on_the_way)
        model.learner.learn_many(features, lower, upper, calibration=model.calibration)
    except BaseException:
        if before is not None:
            model.scale.state[...] = before
        raise
    model.training["rows"] += len(batch)


def _is_scaled_on_the_way(model: TabularModel) -> bool:
    return bool(model.training["settings"].get("scaled_on_the_way"))


def _values(lesson: Lesson) -> str:
    return msgspec.json.encode(lesson.values).decode()


def _content(event: Event | None) -> Content | None:
    """What must be the same where a key comes again."""
    return None if event is None else (event.values, event.lower, event.upper)
