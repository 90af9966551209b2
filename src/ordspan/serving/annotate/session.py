"""An annotation session: questions out, answers in, each on disk before it is confirmed.

And its progress: speed, error, ranges, agreement, and anchoring on guesses.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import combinations
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from ordspan.core.measures import distance
from ordspan.models.table import TableModel
from ordspan.serving.annotate.items import Folder, Items, can_learn
from ordspan.serving.engine import BASE, COVERAGE, Engine, untrained
from ordspan.serving.log import LEARN, SKIP, UNDO, Event
from ordspan.serving.records import RequestError
from ordspan.tables.encoder import Recipe
from ordspan.tables.rows import FileError

ENOUGH = 30  # answers needed before guesses are shown or used
PATIENCE = 40  # answers after which the page says why the model is not better than a constant grade
FEW_COLUMNS = 3
MOST_POINTS = 200  # most points in the error curve; it is thinned beyond that
RANDOM: Literal["random"] = "random"
WIDEST: Literal["widest"] = "widest"

Rank = Annotated[int, Meta(ge=1, lt=2**31)]


class Guess(msgspec.Struct, frozen=True):
    """Predicted range of ranks and predicted rank."""

    lower: Rank
    upper: Rank
    grade: Rank


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """How an item was asked and answered, besides the label; the log keeps it."""

    annotator: Annotated[str, Meta(min_length=1, max_length=100)]
    item: Annotated[int, Meta(ge=0, lt=2**53)]
    seconds: Annotated[float, Meta(ge=0, le=1e6)] | None = None
    asked_by: Literal["random", "widest"] = RANDOM
    guess: Guess | None = None
    shown: bool = False
    via: Literal["slider", "higher", "lower"] = "slider"
    id: str = ""  # of the item


class Reply(NamedTuple):
    """An answer or a skip, with what was asked."""

    event: Event
    note: Note
    fresh: bool  # whether the item had not been learned before

    @property
    def ends(self) -> tuple[int, int]:
        """Lowest and highest rank of an answer."""
        lower, upper = self.event[5:7]
        return lower or 1, upper or 1

    @property
    def distance(self) -> int:
        """From the prediction before it was learned to the answer."""
        return int(distance(self.event.predicted or 1, *self.ends))

    @property
    def tests(self) -> bool:
        """Whether it tests the model: asked at random, and the item not learned before."""
        return self.fresh and self.event.kind == LEARN and self.note.asked_by == RANDOM


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
        self.seen: dict[str, set[int]] = defaultdict(set)  # answered or skipped, by annotator
        self.n_answers: dict[str, int] = defaultdict(int)  # by annotator
        self.answered = np.zeros(n_items, dtype=np.int64)  # how often, by anyone
        self.loss = 0  # sum of the distances of the model on its tests
        self.constant_losses = np.zeros(n_classes, dtype=np.int64)  # of each grade, on the same
        for event in events:
            self.add(event)

    def add(self, event: Event) -> None:
        """Count the next event of the log; an undo takes its reply back."""
        if event.kind == UNDO and event.undoes is not None:
            reply = self.undone[event.undoes] = self.replies.pop(event.undoes)
            self._count(reply, -1)
        else:
            note = msgspec.json.decode(event.extra, type=Note)
            reply = Reply(event, note, fresh=not self.answered[note.item])
            self.replies[event.id] = reply
            self._count(reply, 1)

    def _count(self, reply: Reply, sign: int) -> None:
        note, seen = reply.note, self.seen[reply.note.annotator]
        seen.add(note.item) if sign > 0 else seen.discard(note.item)
        if reply.event.kind == LEARN:
            self.answered[note.item] += sign
            self.n_answers[note.annotator] += sign
        if reply.tests:
            ranks = np.arange(1, self.constant_losses.size + 1)
            self.loss += sign * reply.distance
            self.constant_losses += sign * distance(ranks, *reply.ends)

    def last(self, annotator: str) -> Reply | None:
        """The last answer or skip of an annotator that is not undone."""
        replies = reversed(self.replies.values())
        return next((reply for reply in replies if reply.note.annotator == annotator), None)

    def beats_constant(self, min_answers: int) -> bool:
        """Whether the model has learned enough rows and beats the best constant grade."""
        return bool(self.answered.sum() >= min_answers and self.loss < self.constant_losses.min())


class Asker:
    """Chooses the next item for an annotator.

    Questions alternate at random between two halves of the items. The first half of a random
    order, shared by all annotators, is asked in that order, so that several people answer the
    same items and the error on them is unbiased: nothing else ever takes items from it. Of the
    other half, the item with the widest predicted range is asked. Which half comes next, and
    whether the guess is shown, is drawn from a generator seeded with the seed, the annotator and
    their number of answers.

    Parameters
    ----------
    n_items : int
        Number of items.
    seed : int
        Seed of the order and the draws.
    features : array or CSR matrix, optional
        Features of all items; without them there are no guesses.
    guess : {"half", "show", "hide"}
        Whether guesses are shown.
    """

    def __init__(self, n_items: int, seed: int, features: Any = None, guess: str = "half") -> None:
        self.seed, self.features, self.guess = seed, features, guess
        self.order = np.random.default_rng(seed).permutation(n_items)
        self.reserved = np.zeros(n_items, dtype=bool)
        self.reserved[self.order[: (n_items + 1) // 2]] = True
        self._cached: tuple[TableModel | None, Any] = None, None

    def guesses(self, history: History) -> bool:
        """Whether the model is good enough to guess, and to choose items."""
        return self.features is not None and history.beats_constant(ENOUGH)

    def ask(self, history: History, model: TableModel, annotator: str) -> Note | None:
        """The next question; None if the annotator has seen all items.

        It has no guess until the model is good enough.

        Parameters
        ----------
        history : History
            Answers so far.
        model : TableModel
            Makes the guesses; never changed in place.
        annotator : str
            Name of the annotator.
        """
        left = np.ones(self.order.size, dtype=bool)
        left[list(history.seen.get(annotator, ()))] = False
        if not left.any():
            return None
        if not self.guesses(history):
            return Note(annotator=annotator, item=self._first(left))
        name, n_answers = int.from_bytes(annotator.encode(), "big"), history.n_answers[annotator]
        widest, show = np.random.default_rng([self.seed, n_answers, name]).integers(2, size=2) > 0
        answer, entropy = self.predictions(model)
        at_random, others = left & self.reserved, left & ~self.reserved
        if by_width := bool((widest and others.any()) or not at_random.any()):
            new = others & (history.answered == 0)  # preferred
            best = new if new.any() else others
            for measure in (answer.high - answer.low, entropy):
                best = best & (measure == measure[best].max())
            item = self._first(best)
        else:
            item = self._first(at_random)
        return Note(
            annotator=annotator,
            item=item,
            asked_by=WIDEST if by_width else RANDOM,
            guess=Guess(*(int(ranks[item]) for ranks in (answer.low, answer.high, answer.rank))),
            shown={"show": True, "hide": False}.get(self.guess, bool(show)),
        )

    def _first(self, left: NDArray[np.bool_]) -> int:
        """The first item of the random order among some."""
        return int(self.order[np.argmax(left[self.order])])

    def predictions(self, model: TableModel) -> Any:
        """Answer of the model to all items, and their entropy; cached."""
        if self._cached[0] is not model:
            answer = model.answer(self.features, COVERAGE)
            chances = model.needed_calibration().probabilities(answer.score)
            entropy = -(chances * np.log(np.maximum(chances, 1e-300))).sum(axis=1)
            self._cached = model, (answer, entropy)
        return self._cached[1]


class Session:
    """Ask people about items and learn from their answers.

    Parameters
    ----------
    path : Path
        The state folder; a new one starts with an untrained model.
    items : Items
        The items.
    folder : Folder
        What the state folder remembers.
    guess : {"half", "show", "hide"}
        Whether the model's guesses are shown.
    """

    def __init__(self, path: Path, items: Items, folder: Folder, guess: str = "half") -> None:
        self.items, self.folder = items, folder
        self.grades: list[Any] = folder.options["classes"]
        new = not (path / BASE).exists()
        self.engine = Engine(path, untrained(items.encoder, self.grades) if new else None)
        if self.engine.model.recipe != items.encoder.recipe:
            self.engine.close()
            raise FileError(
                f"{path} was created by a version of ordspan that reads {items.path} differently; "
                "continue with that version, or start a new folder with --state"
            )
        self.history = History(len(items), len(self.grades), self.engine.events())
        learns = can_learn(items.encoder.recipe)
        features = items.encoder.features(items.X.copy(), items.words) if learns else None
        self.asker = Asker(len(items), folder.seed, features, guess)
        self.lock = Lock()

    def ask(self, annotator: str) -> dict[str, Any]:
        """The next item for an annotator."""
        with self.lock:
            question = self.asker.ask(self.history, self.engine.model, annotator)
            if question is None:
                return {"item": None} | self._counts(annotator)
            return self._question(question)

    def answer(self, key: str, note: Note, *ends: int) -> dict[str, Any]:
        """Learn an answer, or record a skip if it has no ends; once for each key."""
        with self.lock:
            event = self.engine.with_key(key)
            if event is None:
                event = self._learn(key, note, ends)
                self.history.add(event)
            reply = self.history.replies.get(event.id) or self.history.undone.get(event.id)
            said = reply and (reply.note.item, reply.note.annotator, *reply.event[5:7])
            if said != (note.item, note.annotator, *(ends or (None, None))):
                raise RequestError(
                    f"the key {key!r} belongs to another answer; use a different key for each", 409
                )
            return {"event": event.id, "answered": self._counts(note.annotator)["answered"]}

    def _learn(self, key: str, note: Note, ends: Sequence[Any]) -> Event:
        if note.item >= len(self.items):
            raise RequestError(f"there is no item {note.item}; items count from 0", 404)
        if note.item in self.history.seen[note.annotator]:
            raise RequestError(
                f"{note.annotator} has answered or skipped {self.items.name(note.item)} already; "
                "undo that first",
                409,
            )
        # an item that may have been chosen for its width does not test the model
        chosen = self.asker.guesses(self.history) and not self.asker.reserved[note.item]
        why = WIDEST if chosen else note.asked_by
        note = msgspec.structs.replace(note, asked_by=why, id=self.items.key(note.item))
        extra = msgspec.json.encode(note).decode()
        if not ends:
            return self.engine.note(SKIP, key, extra=extra)
        values = msgspec.json.encode(self.items.values(note.item)).decode()
        label = Event(0, LEARN, key, 0.0, values, *ends)._replace(extra=extra)
        return self.engine.learn([label])[0]

    def undo(self, key: str, annotator: str) -> dict[str, Any]:
        """Undo the last answer or skip of an annotator, and ask it again."""
        with self.lock:
            event = self.engine.with_key(key)
            if event is None:
                last = self.history.last(annotator)
                if last is None:
                    raise RequestError(f"{annotator} has no answer that can be undone", 404)
                event = self.engine.undo(last.event.id, key)
                self.history.add(event)
            reply = self.history.undone.get(event.undoes or 0)
            if reply is None or reply.note.annotator != annotator:
                raise RequestError(
                    f"the key {key!r} belongs to something else; use a different key for each", 409
                )
            then = reply.event
            ends = {"undone": then.kind, "lower": then.lower, "upper": then.upper}
            return ends | self._question(reply.note)

    def _question(self, note: Note) -> dict[str, Any]:
        """An item as the page shows it, perhaps with a guess."""
        return {
            "item": note.item,
            "name": self.items.name(note.item),
            "cells": self.items.cells(note.item),
            "asked_by": note.asked_by,
            "guess": note.guess,
            "show_guess": note.shown,
        } | self._counts(note.annotator)

    def _counts(self, annotator: str) -> dict[str, int]:
        """Number of items an annotator has answered, and has left."""
        seen = len(self.history.seen[annotator])
        return {"answered": self.history.n_answers[annotator], "left": len(self.items) - seen}


def progress(history: History, recipe: Recipe) -> dict[str, Any]:
    """The numbers of the progress page, as plain values."""
    replies = list(history.replies.values())
    answers = [one for one in replies if one.event.kind == LEARN]
    tests = [one for one in answers if one.tests]
    by_name: dict[str, list[Reply]] = defaultdict(list)
    for one in replies:
        by_name[one.note.annotator].append(one)
    return _work(replies) | {
        "items": history.answered.size,
        "items_answered": int((history.answered > 0).sum()),
        "error": error_curve([one.distance for one in tests]),
        "advice": advice(history, recipe),
        "best_constant": int(history.constant_losses.min()) / len(tests) if tests else None,
        "coverage": _coverage(tests),
        "annotators": [{"name": name} | _work(own) for name, own in sorted(by_name.items())],
        "agreement": _agreement(answers),
        "anchoring": {"shown": _anchoring(answers, True), "hidden": _anchoring(answers, False)},
    }


def advice(history: History, recipe: Recipe) -> str:
    """Why the model does not beat a constant grade after PATIENCE answers, as far as is known."""
    if int(history.answered.sum()) < PATIENCE or history.beats_constant(PATIENCE):
        return ""
    if not can_learn(recipe):
        reason = "There is no column to learn from. Add columns that say something about the grade."
    elif recipe.sentences:
        names = " and ".join(dict(recipe.sentences))
        reason = f"It learns from {names} word by word, which takes one or two hundred answers."
    elif recipe.hashed and not recipe.numbers:
        reason = (
            f"It only has texts to learn from ({', '.join(recipe.hashed)}), and knows a text by "
            "the whole cell, not by its words. Add columns with numbers or categories."
        )
    elif len(recipe.columns) < FEW_COLUMNS:
        reason = (
            f"It only learns from {' and '.join(recipe.columns)}. Add columns that say more about "
            "the grade."
        )
    else:
        reason = "Its columns may say little about the grade, or it may need more answers."
    return f"The model is not better than always giving the same grade. {reason}"


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if len(values) else None


def _work(replies: Collection[Reply]) -> dict[str, Any]:
    """Answers, skips and their speed, the share of ranges, and the mean number of grades."""
    ends = [one.ends for one in replies if one.event.kind == LEARN]
    widths = [1 + upper - lower for lower, upper in ends]
    minutes = sum(one.note.seconds or 0.0 for one in replies) / 60
    return {
        "minutes": minutes,
        "answers": len(ends),
        "skips": len(replies) - len(ends),
        "per_minute": len(ends) / minutes if minutes else None,
        "range_share": _mean([width > 1 for width in widths]),
        "mean_width": _mean(widths),
    }


def error_curve(distances: Sequence[int]) -> list[dict[str, float]]:
    """Mean of the first n distances, n = 1, 2, ..., plus and minus 1.96 standard errors.

    >>> error_curve([0, 1])[-1] == {"answers": 2, "mae": 0.5, "low": 0.0, "high": 0.5 + 1.96 / 2}
    True
    """
    values = np.asarray(distances, dtype=np.float64)
    n = np.arange(1, values.size + 1)
    mae = np.cumsum(values) / n
    variance = np.maximum(0.0, np.cumsum(values**2) - n * mae**2) / np.maximum(1, n - 1)
    half = 1.96 * np.sqrt(variance / n)
    places = np.unique(np.linspace(0, values.size - 1, min(values.size, MOST_POINTS)).astype(int))
    columns = (n, mae, np.maximum(0.0, mae - half), mae + half)
    points = zip(*(column[places].tolist() for column in columns), strict=True)
    return [dict(zip(("answers", "mae", "low", "high"), point, strict=True)) for point in points]


def _coverage(tests: Iterable[Reply]) -> dict[str, float] | None:
    """How often the range predicted before learning contains the answer, or a grade of it."""
    ranges = [(*one.ends, *one.event[8:10]) for one in tests if one.event.low is not None]
    if not ranges:
        return None
    lower, upper, low, high = np.array(ranges, dtype=np.int64).T
    contains, meets = (low <= lower) & (upper <= high), (low <= upper) & (lower <= high)
    return {"contains": float(contains.mean()), "meets": float(meets.mean()), "asked": COVERAGE}


def _agreement(answers: Iterable[Reply]) -> dict[str, Any]:
    """Agreement over pairs of annotators who answered the same item."""
    by_item: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for one in answers:
        by_item[one.note.item].append(one.ends)
    pairs = [pair for ends in by_item.values() for pair in combinations(ends, 2)]
    gaps = [max(0, a[0] - b[1], b[0] - a[1]) for a, b in pairs]
    return {
        "items": sum(len(ends) > 1 for ends in by_item.values()),
        "pairs": len(pairs),
        "same": _mean([a == b for a, b in pairs]),
        "meet": _mean([gap == 0 for gap in gaps]),
        "gap": _mean(gaps),
    }


def _anchoring(answers: Iterable[Reply], shown: bool) -> dict[str, Any]:
    """Mean distance between the midpoints of answer and guess, where it was shown or not."""
    distances = [
        abs(sum(one.ends) - guess.lower - guess.upper) / 2
        for one in answers
        if (guess := one.note.guess) is not None and one.note.shown == shown
    ]
    return {"n": len(distances), "distance": _mean(distances)}
