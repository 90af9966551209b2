"""An annotation session: questions out, answers in, each on disk before it is confirmed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec
import numpy as np

from ordspan.serving.annotate.asking import HALF, Asker
from ordspan.serving.annotate.history import Extra, History
from ordspan.serving.annotate.items import Items
from ordspan.serving.annotate.progress import progress
from ordspan.serving.annotate.settings import FolderSettings
from ordspan.serving.engine import BASE, Engine, KeyConflictError, MissingError
from ordspan.serving.log import Event
from ordspan.serving.records import Rows
from ordspan.serving.starting import untrained
from ordspan.tables.rows import FileError

MOST_ASKED = 10_000
"""Most open questions kept in memory."""


def open_engine(folder: Path, items: Items, settings: FolderSettings) -> Engine:
    """Open the model and log of a state folder; a new one starts with an untrained model."""
    start = None
    if not (folder / BASE).exists():
        start = untrained(items.encoder, np.array(settings.grades))
    engine = Engine(folder, start)
    if engine.model.recipe != items.encoder.recipe:
        engine.close()
        raise FileError(
            f"{folder} was created by a version of ordspan that reads {items.path} differently; "
            "continue with that version, or start a new folder with --state"
        )
    return engine


class Session:
    """Ask people about items and learn from their answers.

    Parameters
    ----------
    engine : Engine
        The model and its log.
    items : Items
        The items.
    settings : FolderSettings
        Settings of the state folder.
    guess : {"half", "show", "hide"}
        Whether the model's guesses are shown.
    """

    def __init__(
        self, engine: Engine, items: Items, settings: FolderSettings, guess: str = HALF
    ) -> None:
        self.engine, self.items, self.settings = engine, items, settings
        self.history = History(len(items), len(settings.grades), engine.events())
        features = items.features() if items.learnable else None
        self._asker = Asker(len(items), settings.seed, features, guess)
        self._asked: dict[tuple[str, int], Extra] = {}
        self._lock = Lock()
        self._progress: tuple[int, dict[str, Any]] = (-1, {})

    def ask(self, annotator: str, without: Collection[int] = ()) -> dict[str, Any]:
        """The next item for an annotator."""
        here = [item for item in without if 0 <= item < len(self.items)]
        with self._lock:
            question = self._asker.ask(self.history, self.engine.model, annotator, here)
            if question is None:
                return {"item": None} | self._counts(annotator)
            return self._put(question)

    def answer(self, key: str, extra: Extra, *ends: int) -> dict[str, Any]:
        """Learn an answer, or record a skip if it has no ends; once for each key."""
        with self._lock:
            event = self.history.keys.get(key)
            if event is None:
                extra = self._as_asked(extra)
                event = self._learn(key, extra, ends) if ends else self.engine.skip(extra, key)
                self.history.add(event)
                self._asked.pop((extra.annotator, extra.item), None)
            elif not self._is_same(event, extra, ends):
                raise KeyConflictError(
                    f"the key {key!r} belongs to another answer; use a different key for each"
                )
            return {"event": event.id, "answered": self._counts(extra.annotator)["answered"]}

    def _learn(self, key: str, extra: Extra, ends: Sequence[int]) -> Event:
        values = [tuple(self.items.values(extra.item))]
        X, table = self.engine.reader.arrays(self.engine.model.encoder, values)
        lower, upper = np.array(ends).reshape(2, 1)
        noted = msgspec.json.encode(extra).decode()
        return self.engine.learn(Rows(values, X, table, lower, upper, [key]), noted)[0]

    def _is_same(self, event: Event, extra: Extra, ends: Sequence[int]) -> bool:
        """Whether an event is an answer or a skip of the same item by the same annotator."""
        reply = self.history.replies.get(event.id) or self.history.undone.get(event.id)
        return (
            reply is not None
            and (reply.extra.item, reply.extra.annotator) == (extra.item, extra.annotator)
            and (event.lower, event.upper) == (ends or (None, None))
        )

    def undo(self, key: str, annotator: str) -> dict[str, Any]:
        """Undo the last answer or skip of an annotator, and ask it again."""
        with self._lock:
            event = self.history.keys.get(key)
            if event is None:
                last = self.history.last(annotator)
                if last is None:
                    raise MissingError(f"{annotator} has no answer that can be undone")
                event = self.engine.undo(last.event.id, key)
                self.history.add(event)
            undone = self.history.undone.get(event.undoes or 0)
            if undone is None or undone.extra.annotator != annotator:
                whose = "an answer" if undone is None else "another annotator"
                raise KeyConflictError(
                    f"the key {key!r} belongs to {whose}; use a different key for each"
                )
            then = undone.event
            ends = {"undone": then.kind, "lower": then.lower, "upper": then.upper}
            return ends | self._put(undone.extra)

    def progress(self) -> dict[str, Any]:
        """Current progress."""
        with self._lock:
            n_events = self.engine.n_events
            if self._progress[0] != n_events:
                self._progress = n_events, progress(self.history, self.items.encoder.recipe)
            return self._progress[1]

    def _as_asked(self, extra: Extra) -> Extra:
        """Add how the item was asked, if that is still in memory."""
        if not 0 <= extra.item < len(self.items):
            raise MissingError(f"there is no item {extra.item}; items count from 0")
        if extra.item in self.history.seen.get(extra.annotator, ()):
            raise KeyConflictError(
                f"{extra.annotator} has answered or skipped {self.items.name(extra.item)} already; "
                "undo that first"
            )
        if self.items.ids is not None:
            extra = msgspec.structs.replace(extra, id=self.items.key(extra.item))
        asked = self._asked.get((extra.annotator, extra.item))
        if asked is None:  # asked before a restart
            return extra
        shown = asked.guess is not None and (asked.shown or extra.shown)
        return msgspec.structs.replace(
            extra, asked_by=asked.asked_by, guess=asked.guess, shown=shown
        )

    def _put(self, question: Extra) -> dict[str, Any]:
        """A question in the format of the page."""
        if len(self._asked) >= MOST_ASKED:
            self._asked.clear()
        self._asked[question.annotator, question.item] = question
        return {
            "item": question.item,
            "name": self.items.name(question.item),
            "cells": self.items.cells(question.item),
            "asked_by": question.asked_by,
            "guess": question.guess and question.guess._asdict(),
            "show_guess": question.shown,
        } | self._counts(question.annotator)

    def _counts(self, annotator: str) -> dict[str, int]:
        """Number of items an annotator has answered, and has left."""
        seen = len(self.history.seen.get(annotator, ()))
        answered = self.history.n_answers.get(annotator, 0)
        return {"answered": answered, "left": len(self.items) - seen}
