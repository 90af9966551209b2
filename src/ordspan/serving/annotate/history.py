"""Answers and skips so far, without those that were undone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from ordspan.core.measures import distance
from ordspan.serving.log import LEARN, UNDO, Event

RANDOM, WIDEST = "random", "widest"


class Guess(NamedTuple):
    """Predicted range of ranks and predicted rank."""

    lower: int
    upper: int
    grade: int


class Extra(msgspec.Struct, frozen=True):
    """Annotation data of an event, besides the record and its label."""

    item: int
    annotator: str
    seconds: float | None = None
    asked_by: str = RANDOM
    guess: Guess | None = None
    shown: bool = False
    via: str = ""
    id: str | None = None  # of the item, if it has one


class Reply(NamedTuple):
    """An answer or a skip."""

    event: Event
    extra: Extra
    fresh: bool  # whether the item had not been learned before

    @property
    def ends(self) -> tuple[int, int]:
        """Lowest and highest rank of an answer."""
        assert self.event.lower is not None
        assert self.event.upper is not None
        return self.event.lower, self.event.upper

    @property
    def tests(self) -> bool:
        """Whether it tests the model: asked at random, and the item not learned before."""
        return self.fresh and self.event.kind == LEARN and self.extra.asked_by == RANDOM


class History:
    """The events of a log in order, and the replies that are not undone.

    Parameters
    ----------
    n_items, n_classes : int
        Number of items and of grades.
    events : iterable of Event
        All events of the log.
    """

    def __init__(self, n_items: int, n_classes: int, events: Iterable[Event] = ()) -> None:
        self.replies: dict[int, Reply] = {}  # by event id, without undone ones
        self.undone: dict[int, Reply] = {}
        self.keys: dict[str, Event] = {}
        self.seen: dict[str, set[int]] = defaultdict(set)  # answered or skipped, by annotator
        self.n_answers: dict[str, int] = defaultdict(int)  # by annotator
        self.answered = np.zeros(n_items, dtype=np.int64)  # how often, by anyone
        self.tests, self.loss = 0, 0  # number of tests of the model, and the sum of its distances
        self.constant_losses = np.zeros(n_classes, dtype=np.int64)  # of each grade, on these tests
        for event in events:
            self.add(event)

    def add(self, event: Event) -> None:
        """Add the next event."""
        if event.key is not None:
            self.keys[event.key] = event
        if event.kind == UNDO and event.undoes is not None:
            reply = self.undone[event.undoes] = self.replies.pop(event.undoes)
            self._count(reply, -1)
        else:
            extra = msgspec.json.decode(event.extra, type=Extra)
            reply = Reply(event, extra, fresh=not self.answered[extra.item])
            self.replies[event.id] = reply
            self._count(reply, 1)

    def last(self, annotator: str) -> Reply | None:
        """The last answer or skip of an annotator that is not undone."""
        replies = reversed(self.replies.values())
        return next((reply for reply in replies if reply.extra.annotator == annotator), None)

    def beats_constant(self, min_answers: int) -> bool:
        """Whether the model has learned enough rows and beats the best constant grade."""
        learned = int(self.answered.sum())
        return (
            learned >= min_answers and bool(self.tests) and self.loss < self.constant_losses.min()
        )

    def _count(self, reply: Reply, sign: int) -> None:
        event, extra = reply.event, reply.extra
        seen = self.seen[extra.annotator]
        seen.add(extra.item) if sign > 0 else seen.discard(extra.item)
        if event.kind != LEARN:
            return
        self.answered[extra.item] += sign
        self.n_answers[extra.annotator] += sign
        if reply.tests:
            ranks = np.arange(1, self.constant_losses.size + 1)
            self.tests += sign
            self.loss += sign * event.judged[0]
            self.constant_losses += sign * distance(ranks, *reply.ends)


def read_history(events: Sequence[Event], n_classes: int) -> History:
    """The history of a log whose items are not known."""
    noted = (msgspec.json.decode(event.extra, type=Extra) for event in events if event.kind != UNDO)
    return History(1 + max((extra.item for extra in noted), default=0), n_classes, events)
