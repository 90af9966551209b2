"""A model that learns from an event log, which rebuilds it byte for byte after a crash."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import ref

import msgspec
import numpy as np

from ordspan.catalog import ESTIMATORS, SVM
from ordspan.models.atomic import check_can_write, write_atomically
from ordspan.models.checkpoint import Checkpoint, sole_writer
from ordspan.models.file import ModelFileError, from_bytes, to_bytes
from ordspan.models.table import TableModel
from ordspan.serving.log import LEARN, SKIP, UNDO, Event, Log, Totals
from ordspan.serving.models import copy_model, encode, learn
from ordspan.serving.records import RecordReader, Rows, join_rows
from ordspan.tables.rows import Count, FileError

EVERY = 10_000
"""Events between two snapshots."""
PORTION = 8192
"""Events learned at once when the model is rebuilt."""
SMALL = 1 << 18
"""Bytes of a state that is copied faster than rows are learned again."""
LOG, BASE, SNAPSHOT = "log.sqlite", "base.ordspan", "snapshot.ordspan"


class KeyConflictError(ValueError):
    """The key was used before for something else."""


class MissingError(LookupError):
    """There is no such label or item, or nothing to undo."""


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

    model: TableModel  # predicts; never changes
    learned: Callable[[Sequence[Event]], None] | None = None  # called with new events
    _training: TableModel  # the same state, which learns once nobody holds the model
    _spare: tuple[TableModel, ref[TableModel], Any] | None

    def __init__(
        self, folder: str | Path, start: TableModel | None = None, *, every: int = EVERY
    ) -> None:
        self.folder, self.every = Path(folder), every
        self._lock = Lock()
        self._check_can_begin(start)
        with ExitStack() as opened:
            self.folder.mkdir(parents=True, exist_ok=True)
            check_can_write(self.folder / LOG)
            opened.enter_context(sole_writer(self.folder / LOG, "in use"))
            self._base = self._begin(start)
            self._log = opened.enter_context(closing(Log(self.folder / LOG)))
            self._snapshot = Checkpoint(self.folder / SNAPSHOT, {"serves": LOG}, [], "remove it")
            self.reader = RecordReader(self._base)
            self._replace_model(self._rebuilt())
            self._open = opened.pop_all()

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
        path = self.folder / BASE
        given = None if start is None else to_bytes(start)
        if given is not None and not path.exists():
            write_atomically(path, given)
        content = path.read_bytes()
        if given not in (None, content):
            raise FileError(
                f"{self.folder} was started with another model; omit the model to continue with "
                "that one, or choose another state folder"
            )
        model = from_bytes(content, str(path))
        if not isinstance(model, TableModel):
            raise FileError(f"{path} is not a model written by ordspan train")
        return model

    def _rebuilt(self) -> TableModel:
        """The model after the last event."""
        model, self._saved, last = copy_model(self._base), 0, self._log.last
        with suppress(ModelFileError):  # damaged; rebuild from the log
            if found := self._snapshot.read(TableModel, SnapshotProgress):
                learned = found[1].events
                if learned > last:
                    raise FileError(
                        f"{self.folder / SNAPSHOT} has learned {learned:,} events, but the log "
                        f"ends with number {last:,}: some were lost on disk. Restore {LOG} from a "
                        "backup, or delete the snapshot to continue without them"
                    )
                if all(number > learned for number in self._log.undone(after=learned)):
                    model, self._saved = found[0], learned
        return self._learned(model, after=self._saved)

    def _learned(self, model: TableModel, after: int) -> TableModel:
        """Learn the events after a given one, except those that were undone."""
        self._undone = set(self._log.undone())
        events = (e for e in self._log.read(after) if e.kind == LEARN and e.id not in self._undone)
        while some := list(islice(events, PORTION)):
            try:
                rows = self.reader.logged(model.encoder, [event.values for event in some])
                lower = np.array([event.lower for event in some])
                upper = np.array([event.upper for event in some])
                learn(model, encode(model, *rows)[0], lower, upper)
            except (ValueError, TypeError, IndexError) as error:
                raise FileError(
                    f"{self._log.path}: events {some[0].id} to {some[-1].id} cannot be learned "
                    f"again ({error}); the file is damaged, restore it from a backup"
                ) from error
        return model

    def learn(self, rows: Rows, extra: str = "{}") -> list[Event]:
        """Learn rows in order, all or nothing; the events are on disk when this returns.

        A row whose key was learned before is not learned again: its first event is returned.
        ``extra`` is application data of the events, as JSON.
        """
        (done,) = self.learn_groups([rows], extra)
        if isinstance(done, Exception):
            raise done
        return done

    def learn_groups(
        self, groups: Sequence[Rows], extra: str = "{}"
    ) -> list[list[Event] | Exception]:
        """`learn` several groups of rows at once, with a single write to disk.

        A group that cannot be learned returns its error instead of its events; if the write
        fails, the error is raised and nothing was learned.
        """
        if self._base.kind == ESTIMATORS[SVM]:
            raise ValueError(
                "an OrdinalSVM is fitted in one step and cannot be continued; retrain it"
            )
        with self._lock:
            try:
                return [*self._learn_together(groups, extra)]
            except ValueError as error:
                if len(groups) == 1:
                    return [error]
        return [done for group in groups for done in self.learn_groups([group], extra)]

    def _learn_together(self, groups: Sequence[Rows], extra: str) -> list[list[Event]]:
        rows, places = join_rows(groups), []
        keys = [key for key in rows.keys if key is not None]
        taken: dict[str | None, tuple[Any, Any]] = {}  # content, and event or number of a new one
        for event in self._log.with_keys(keys).values():
            undone = event.id in self._undone
            taken[event.key] = None if undone else (event.values, event.lower, event.upper), event
        contents = zip(rows.texts, rows.lower.tolist(), rows.upper.tolist(), strict=True)
        new: list[int] = []
        for row, (key, content) in enumerate(zip(rows.keys, contents, strict=True)):
            known = taken.get(key)
            if known is None:
                known = content, len(new)
                new.append(row)
                if key is not None:
                    taken[key] = known
            elif known[0] != content:
                raise KeyConflictError(
                    f"record {row + 1}: the key {key!r} belongs to another label, or to one that "
                    "was undone; use a different key for each label"
                )
            places.append(known[1])
        events = self._learn_new(rows.only(new), extra) if new else []
        done = (events[place] if isinstance(place, int) else place for place in places)
        return [list(islice(done, len(group))) for group in groups]

    def _learn_new(self, rows: Rows, extra: str) -> list[Event]:
        """Learn rows on a copy of the model, write their events, and publish the copy."""
        model, ends = self._writable_copy(), (rows.lower, rows.upper)
        features, clipped = encode(model, rows.X, rows.table)
        ranks = np.column_stack([*ends, *learn(model, features, *ends)]).tolist()
        now, labelled = time.time(), zip(rows.keys, rows.texts, ranks, strict=True)
        make = partial(Event, extra=extra)
        events = [
            make(number, LEARN, key, now, text, *of_row)
            for number, (key, text, of_row) in enumerate(labelled, self._log.last + 1)
        ]
        if clipped is not None and clipped.any():
            for row in np.flatnonzero(clipped.any(axis=1)).tolist():
                names = np.array(self._base.recipe.numbers)[clipped[row]].tolist()
                values = {
                    "clipped": dict(zip(names, rows.X[row, clipped[row]].tolist(), strict=True))
                }
                events[row] = events[row]._replace(extra=msgspec.json.encode(values).decode())
        self._log.append(events)
        spare, held = self._training, ref(self.model)
        self._replace_model(model)
        self._spare = spare, held, (features, *ends)
        if self.learned is not None:
            self.learned(events)
        self._save_if_due(self.every)
        return events

    def _replace_model(self, model: TableModel) -> None:
        """Publish a model; whoever holds the last one keeps it as it was."""
        self._spare = None
        self._training, self.model = model, replace(model)

    def _writable_copy(self) -> TableModel:
        """A model equal to the published one that nobody else holds.

        A large one is not copied: the model before it learns the same rows, if nobody predicts
        with it any more.
        """
        spare, self._spare = self._spare, None
        if spare is None or self._training.learner.state.nbytes < SMALL or spare[1]() is not None:
            return copy_model(self._training)
        model, _, learned = spare
        model.encoder.state[...] = self._training.encoder.state
        learn(model, *learned)
        return model

    def skip(self, extra: Any, key: str | None = None) -> Event:
        """Record that a row was skipped."""
        with self._lock:
            event = self._note(SKIP, key, extra=msgspec.json.encode(extra).decode())
            self._save_if_due(self.every)
            return event

    def undo(self, event_id: int, key: str | None = None) -> Event:
        """Undo a label or skip: the model is rebuilt from the log without it."""
        with self._lock:
            return self._undo(event_id, key)

    def undo_key(self, key: str) -> Event:
        """Undo the label with a key; once more gives the same event."""
        with self._lock:
            event = self._log.with_keys([key]).get(key)
            if event is None or event.kind != LEARN:
                raise MissingError(f"there is no label with the key {key!r}")
            return self._log.undo_of(event.id) or self._undo(event.id)

    def _undo(self, event_id: int, key: str | None = None) -> Event:
        event = self._note(UNDO, key, undoes=event_id)
        self._replace_model(self._rebuilt())
        self._save_if_due(self.every)
        return event

    def _note(self, kind: str, key: str | None, **more: Any) -> Event:
        """Write an event without a row."""
        event = Event(self._log.last + 1, kind, key, time.time(), "", **more)
        self._log.append([event])
        return event

    def _save_if_due(self, every: int) -> None:
        """Write a snapshot after a number of events; the log is complete without it."""
        if self._log.last - self._saved >= every:
            with suppress(OSError):
                self._snapshot.write(self.model, SnapshotProgress(self._log.last))
                self._saved = self._log.last

    @property
    def n_events(self) -> int:
        """Number of the last event."""
        return self._log.last

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
            self._save_if_due(1)
            self._open.close()
