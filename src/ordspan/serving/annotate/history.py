"""Answers and skips so far, without those that were undone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import msgspec
import numpy as np

from ordspan.core.losses import distance
from ordspan.serving.log import LEARN, UNDO, Event

RANDOM, WIDEST, IMPORT = "random", "widest", "import"


class Guess(NamedTuple):
    """A predicted range of ranks, and the predicted one."""

    lower: int
    upper: int
    grade: int


class Extra(msgspec.Struct, frozen=True):
    """What an event of annotation holds beside the record and its label."""

    item: int
    annotator: str
    seconds: float | None = None
    asked_by: str = RANDOM
    guess: Guess | None = None
    shown: bool = False
    via: str = ""


class Reply(NamedTuple):
    """An answer or a skip."""

    event: Event
    extra: Extra
    fresh: bool  # whether nothing had been learned of the item before

    @property
    def ends(self) -> tuple[int, int]:
        """Lowest and highest rank of an answer."""
        assert self.event.lower is not None
        assert self.event.upper is not None
        return self.event.lower, self.event.upper

    @property
    def tests(self) -> bool:
        """Whether it tests the model: drawn at random, and its item not learned before."""
        return self.fresh and self.event.kind == LEARN and self.extra.asked_by == RANDOM

    @property
    def distance(self) -> int:
        """Ranks between the prediction before learning and the answer."""
        assert self.event.predicted is not None
        return int(distance(self.event.predicted, *self.ends))


class History:
    """The events of a log in order, and what still holds of them.

    Parameters
    ----------
    n_items, n_classes : int
        Number of items, and of grades.
    events : iterable of Event
        The log from its beginning.
    """

    def __init__(self, n_items: int, n_classes: int, events: Iterable[Event] = ()) -> None:
        self.events: list[Event] = []
        self.replies: dict[int, Reply] = {}  # by the number of the event, undone ones left out
        self.keys: dict[str, Event] = {}
        self.seen: dict[str, set[int]] = defaultdict(set)  # answered or skipped, by annotator
        self.n_answers: dict[str, int] = defaultdict(int)  # by annotator
        self.answered = np.zeros(n_items, dtype=np.int64)  # how often, by anyone
        self.tests, self.loss = 0, 0  # of the model, and the sum of its distances
        self.constant_losses = np.zeros(n_classes, dtype=np.int64)  # of the same rows
        self._undone: dict[int, Reply] = {}
        for event in events:
            self.add(event)

    def add(self, event: Event) -> None:
        """Take the next event in; one that is known already changes nothing."""
        if event.id <= len(self.events):
            return
        self.events.append(event)
        if event.key is not None:
            self.keys[event.key] = event
        if event.kind == UNDO and event.undoes is not None:
            reply = self._undone[event.undoes] = self.replies.pop(event.undoes)
            self._count(reply, -1)
        else:
            extra = msgspec.json.decode(event.extra, type=Extra)
            reply = Reply(event, extra, fresh=not self.answered[extra.item])
            self.replies[event.id] = reply
            self._count(reply, 1)

    def undone(self, number: int) -> Reply:
        """What was taken back, by its number."""
        return self._undone[number]

    def last(self, annotator: str) -> Reply | None:
        """The last answer or skip of an annotator that still holds; imported ones are not."""
        found = (
            reply
            for reply in reversed(self.replies.values())
            if reply.extra.annotator == annotator and reply.extra.asked_by != IMPORT
        )
        return next(found, None)

    def has_seen(self, annotator: str, item: int) -> bool:
        """Whether an annotator has answered or skipped an item."""
        return annotator in self.seen and item in self.seen[annotator]

    def earned(self, enough: int) -> bool:
        """Whether the model has learned enough, and beats the best constant grade."""
        learned = int(self.answered.sum())
        return learned >= enough and bool(self.tests) and self.loss < self.constant_losses.min()

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
            self.loss += sign * reply.distance
            self.constant_losses += sign * distance(ranks, *reply.ends)
