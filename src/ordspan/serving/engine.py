"""A model that learns from an event log, which rebuilds it byte for byte after a crash."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import msgspec
import numpy as np

from ordspan.catalog import ESTIMATORS, SVM
from ordspan.models.atomic import check_can_write, write_atomically
from ordspan.models.checkpoint import Checkpoint, sole_writer
from ordspan.models.file import ModelFileError, from_bytes, to_bytes
from ordspan.models.table import TableModel
from ordspan.serving.log import LEARN, SKIP, UNDO, Event, Log, Totals
from ordspan.serving.models import copy_model, learn, predict_batch
from ordspan.serving.records import batch_of
from ordspan.tables.rows import Batch, Count, FileError

EVERY = 10_000
"""Events between two snapshots."""
PORTION = 8192
"""Events learned at once when the model is rebuilt."""
LOG, BASE, SNAPSHOT = "log.sqlite", "base.ordspan", "snapshot.ordspan"

Content = tuple[str, int | None, int | None]


class Lesson(NamedTuple):
    """A labelled row: values in the order of the model's columns, and the ranks of its label."""

    values: Sequence[Any]
    lower: int
    upper: int
    key: str | None = None
    extra: Mapping[str, Any] | None = None


class Checked(NamedTuple):
    """Validated lessons and their rows."""

    lessons: Sequence[Lesson]
    batch: Batch


class KeyConflictError(ValueError):
    """The key was used before for something else."""


class SnapshotProgress(msgspec.Struct):
    """Number of events that a snapshot has learned."""

    events: Count


class Engine:
    """The model of a state folder, which learns from events and never loses a confirmed one.

    The folder holds the initial model, the log of all events, and a periodic snapshot of the
    model. The snapshot plus the events after it give the current model, byte for byte.

    Parameters
    ----------
    folder : path-like
        The state folder; created if it does not exist.
    start : TableModel, optional
        The initial model. Not needed for an existing state folder; if given, it must be the
        same model.
    every : int
        Events between two snapshots.
    """

    def __init__(
        self, folder: str | Path, start: TableModel | None = None, *, every: int = EVERY
    ) -> None:
        self.folder, self.every = Path(folder), every
        self._open = ExitStack()
        self._lock = Lock()
        self._check_can_begin(start)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            check_can_write(self.folder / LOG)
            self._open.enter_context(sole_writer(self.folder / LOG, "in use"))
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
        self.model = copy_model(self._mine)

    def _check_can_begin(self, start: TableModel | None) -> None:
        """Raise, before a folder is created, if there is no initial model."""
        path = self.folder / BASE
        if path.exists():
            return
        if (self.folder / LOG).exists():
            raise FileError(
                f"{path}, the initial model of the log in {self.folder}, is missing; restore it"
            )
        if start is None:
            raise FileError(
                f"{self.folder} holds no model yet; give one with --model, or --grades and "
                "--columns to start without one"
            )

    def _begin(self, start: TableModel | None) -> TableModel:
        """Read the initial model, or write it to a new folder."""
        path, name = self.folder / BASE, str(self.folder / BASE)
        given = None if start is None else to_bytes(start)
        if given is not None and not path.exists():
            write_atomically(path, given)
        content = path.read_bytes()
        if given is not None and given != content:
            raise FileError(
                f"{self.folder} was started with another model; omit the model to continue with "
                "that one, or choose another state folder"
            )
        model = from_bytes(content, name)
        if not isinstance(model, TableModel):
            raise FileError(f"{name} is not a model written by ordspan train")
        return model

    def _rebuilt(self) -> TableModel:
        """The model after the last event."""
        found = self._read_snapshot()
        if found is not None and all(n > found[1] for n in self._log.undone(after=found[1])):
            model, self._saved = found
            return self._learned(model, after=self._saved)
        self._saved = 0
        return self._learned(copy_model(self._base), after=0)

    def _read_snapshot(self) -> tuple[TableModel, int] | None:
        try:
            found = self._snapshot.read(TableModel, SnapshotProgress)
        except ModelFileError:  # damaged; rebuild from the log
            return None
        if found is not None and found[1].events > self._last:
            raise FileError(
                f"{self.folder / SNAPSHOT} has learned {found[1].events:,} events, but the log "
                f"ends with number {self._last:,}: some were lost on disk. Restore {LOG} from a "
                "backup, or delete the snapshot to continue without them"
            )
        return None if found is None else (found[0], found[1].events)

    def _learned(self, model: TableModel, after: int) -> TableModel:
        """Learn the events after a given one, except those that were undone."""
        undone = set(self._log.undone())
        events = (e for e in self._log.read(after) if e.kind == LEARN and e.id not in undone)
        while some := list(islice(events, PORTION)):
            try:
                rows = [msgspec.json.decode(event.values) for event in some]
                lower = np.array([event.lower for event in some])
                upper = np.array([event.upper for event in some])
                batch = batch_of(model.encoder, rows, "counted from the first")
                learn(model, batch, lower, upper)
            except (ValueError, TypeError, IndexError, msgspec.DecodeError) as error:
                raise FileError(
                    f"{self._log.path}: events {some[0].id} to {some[-1].id} cannot be learned "
                    f"again ({error}); the file is damaged, restore it from a backup"
                ) from error
        return model

    def checked(self, lessons: Sequence[Lesson]) -> Checked:
        """Validate lessons against the model's columns; errors name the position."""
        return Checked(lessons, batch_of(self.model.encoder, [lesson.values for lesson in lessons]))

    def learn(self, lessons: Sequence[Lesson]) -> list[Event]:
        """Learn in order, all or nothing; the events are on disk when this returns.

        A lesson whose key was learned before is not learned again: its first event is returned.
        """
        if not lessons:
            return []
        (done,) = self.learn_groups([self.checked(lessons)])
        if isinstance(done, Exception):
            raise done
        return done

    def learn_groups(self, groups: Iterable[Checked]) -> list[list[Event] | Exception]:
        """`learn` several groups of lessons with a single write to disk.

        A group that cannot be learned returns its error instead of its events; if the write
        fails, the error is raised and nothing was learned.
        """
        if self._base.kind == ESTIMATORS[SVM]:
            raise ValueError(
                "an OrdinalSVM is fitted in one step and cannot be continued; retrain it"
            )
        with self._lock:
            new: list[Event] = []
            done: list[list[Event] | Exception] = []
            try:
                known = self._known(groups := list(groups))
                for group in groups:
                    done.append(self._learn_group(group, known, new))
                self._log.append(new)
            except BaseException:
                self._mine = copy_model(self.model)
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
        """Learn the new lessons of a group and append their events; all or nothing."""
        lessons = group.lessons
        keyed = [(lesson.key, (_values(lesson), lesson.lower, lesson.upper)) for lesson in lessons]
        fresh: list[int] = []
        own: dict[str, Content] = {}
        for place, (key, content) in enumerate(keyed):
            then = None if key is None else own.get(key) or _content(known.get(key))
            if then is None:
                fresh.append(place)
                own |= {} if key is None else {key: content}
            elif then != content:
                return KeyConflictError(
                    f"record {place + 1}: the key {key!r} belongs to another label; use a "
                    "different key for each label"
                )
        if not fresh:
            return [known[str(key)] for key, _ in keyed]
        batch = group.batch if len(fresh) == len(lessons) else group.batch.only(np.array(fresh))
        lower = np.array([lessons[place].lower for place in fresh])
        upper = np.array([lessons[place].upper for place in fresh])
        try:
            before = predict_batch(self._mine, batch)
            learn(self._mine, batch, lower, upper)
        except ValueError as error:
            return error
        first, now = self._last + len(new) + 1, time.time()
        events = {
            place: Event(
                first + row,
                LEARN,
                lessons[place].key,
                now,
                *keyed[place][1],
                *before.ranks(row),
                None,
                msgspec.json.encode(lessons[place].extra or {}).decode(),
            )
            for row, place in enumerate(fresh)
        }
        new += events.values()
        known |= {event.key: event for event in events.values() if event.key is not None}
        return [events.get(place) or known[str(key)] for place, (key, _) in enumerate(keyed)]

    def skip(self, extra: dict[str, Any], key: str | None = None) -> Event:
        """Record that a row was skipped."""
        return self._note(SKIP, key, None, extra)

    def undo(self, event_id: int, key: str | None = None) -> Event:
        """Undo an event: the model is rebuilt from the log without it."""
        return self._note(UNDO, key, event_id, {})

    def _note(self, kind: str, key: str | None, undoes: int | None, extra: Any) -> Event:
        with self._lock:
            if key is not None and (before := self._log.with_keys([key]).get(key)):
                if before.kind != kind:
                    raise KeyConflictError(
                        f"the key {key!r} belongs to another event; use a different key for each"
                    )
                return before
            if undoes is not None and not self._log.can_undo(undoes):
                raise ValueError(f"there is no label or skip with number {undoes} to undo")
            encoded = msgspec.json.encode(extra).decode()
            number = self._last + 1
            event = Event(number, kind, key, time.time(), "", undoes=undoes, extra=encoded)
            self._log.append([event])
            self._last = number
            if undoes is not None:
                self._mine = self._rebuilt()
            self._publish()
        return event

    def _publish(self) -> None:
        """Replace the model that predicts, and write a snapshot when one is due."""
        self.model = copy_model(self._mine)
        if self._last - self._saved >= self.every:
            self.save()

    def save(self) -> None:
        """Write a snapshot; optional, as the log is complete without it."""
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
        """Totals over all rows that were not undone."""
        with self._lock:
            return self._log.totals()

    def close(self) -> None:
        """Write a snapshot and release the folder."""
        with self._lock:
            if self._saved < self._last:
                self.save()
            self._open.close()


def _values(lesson: Lesson) -> str:
    return msgspec.json.encode(lesson.values).decode()


def _content(event: Event | None) -> Content | None:
    """What must be equal when a key is used again."""
    return None if event is None else (event.values, event.lower, event.upper)
