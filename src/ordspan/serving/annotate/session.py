"""An annotation session: questions out, answers in, each on disk before it is confirmed.

And its progress: speed, error, ranges, agreement, and anchoring on guesses.
"""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import polars as pl
from msgspec import Meta
from numpy.typing import ArrayLike, NDArray
from starlette.responses import Response

from ordspan.core.measures import distance
from ordspan.serving.annotate.items import Folder, Items, can_learn
from ordspan.serving.engine import BASE, COVERAGE, Engine, untrained
from ordspan.serving.log import LEARN, SKIP, Event
from ordspan.serving.records import Key, RequestError, decoded
from ordspan.tables.encoder import Recipe
from ordspan.tables.rows import FileError
from ordspan.wording import first_few

ENOUGH = 30  # answers needed before guesses are shown or used
PATIENCE = 40  # answers after which the page says why the model is not better than a constant grade
MOST_POINTS = 200  # most points in the error curve; it is thinned beyond that
Reason = Literal["random", "widest"]
RANDOM: Reason = "random"
WIDEST: Reason = "widest"
c = pl.col
REPLY = {"event": int, "annotator": str, "item": int, "seconds": float, "tests": bool}
REPLY |= {"shown": bool, "lower": int, "upper": int, "predicted": int, "low": int, "high": int}
REPLY |= {"guess_low": int, "guess_high": int, "guess": int}
"""Columns of the table of answers and skips."""

Rank = Annotated[int, Meta(ge=1, lt=2**31)]


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """How an item was asked and answered, besides the label; the log keeps it."""

    annotator: Annotated[str, Meta(min_length=1, max_length=100)]
    item: Annotated[int, Meta(ge=0, lt=2**53)]
    seconds: Annotated[float, Meta(ge=0, le=1e6)] | None = None
    asked_by: Reason = RANDOM
    guess: tuple[Rank, Rank, Rank] | None = None  # lowest, highest and predicted rank, the median
    shown: bool = False
    via: Literal["slider", "higher", "lower"] = "slider"
    id: str = ""  # of the item
    tests: bool = False  # whether it tests the model: asked at random, and not learned before


class NextRequest(msgspec.Struct, kw_only=True):
    """Who asks for an item, and for which state folder, so that an old page notices."""

    annotator: str
    folder: str | None = None


class UndoRequest(NextRequest, kw_only=True):
    """Request to undo the last answer or skip."""

    key: Key


class AnswerRequest(Note, frozen=True, kw_only=True):
    """An answer; a skip has no ends."""

    key: Key
    folder: str | None = None
    lower: Rank | None
    upper: Rank | None


class History:
    """The events of a log in order, and the answers and skips that are not undone.

    Parameters
    ----------
    n_items, n_classes : int
        Number of items and of grades.
    events : iterable of Event
        All events of the log.
    """

    def __init__(self, n_items: int, n_classes: int, events: Iterable[Event] = ()) -> None:
        self.replies: dict[int, tuple[Event, Note]] = {}  # by event id, without undone ones
        self.undone: dict[int, tuple[Event, Note]] = {}
        # items that an annotator has answered (True) or skipped
        self.handled: dict[str, dict[int, bool]] = defaultdict(dict)
        self.answered = np.zeros(n_items, dtype=np.int64)  # how often, by anyone
        # sums of distances to the answers that test the model: its own, and of each constant grade
        self.losses = np.zeros(1 + n_classes, dtype=np.int64)
        for event in events:
            self.add(event)

    def add(self, event: Event) -> None:
        """Count the next event of the log; an undo takes its reply back."""
        if event.undoes is not None:
            self.undone[event.undoes] = self.replies.pop(event.undoes)
            event, note = self.undone[event.undoes]
            del self.handled[note.annotator][note.item]
            sign = -1
        else:
            note = msgspec.json.decode(event.extra, type=Note)
            self.replies[event.id] = event, note
            self.handled[note.annotator][note.item] = event.kind == LEARN
            sign = 1
        if event.kind == LEARN:
            self.answered[note.item] += sign
            if note.tests:
                ranks = [event.predicted, *range(1, self.losses.size)]
                self.losses += sign * distance(ranks, event.lower, event.upper)

    def n_answers(self, annotator: str) -> int:
        """Number of items that an annotator has answered."""
        return sum(self.handled[annotator].values())

    def last(self, annotator: str) -> Event | None:
        """The last answer or skip of an annotator that is not undone."""
        replies = reversed(self.replies.values())
        return next((event for event, note in replies if note.annotator == annotator), None)

    def beats_constant(self, min_answers: int) -> bool:
        """Whether the model has learned enough rows and beats the best constant grade."""
        enough = self.answered.sum() >= min_answers
        return bool(enough and self.losses[0] < self.losses[1:].min())


class Session:
    """What the pages ask for: the next item, and an answer learned, or undone.

    Questions alternate at random between two halves of the items. The first half of a random
    order, shared by all annotators, is asked in that order, so that several people answer the
    same items and the error on them is unbiased: nothing else ever takes items from it. Of the
    other half, the item with the widest predicted range is asked. Which half comes next, and
    whether the guess is shown, is drawn from a generator seeded with the folder, the annotator
    and their number of answers.

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
        self.items, self.seed, self.guess = items, folder.seed, guess
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
        self.features = items.features() if can_learn(items.encoder.recipe) else None
        self.order = np.random.default_rng(self.seed).permutation(len(items))
        self.reserved = np.zeros(len(items), dtype=bool)
        self.reserved[self.order[: (len(items) + 1) // 2]] = True
        self._lock = Lock()

    def _read(self, body: bytes, kind: type[Any]) -> Any:
        """Decode and validate the body of a request."""
        request = decoded(body, kind)
        if request.folder not in (None, str(self.seed)):
            raise RequestError(
                "this page belongs to other items than those that are served now; reload the page",
                409,
            )
        if not request.annotator.isprintable() or not request.annotator.strip():
            raise RequestError(
                "the annotator's name must have visible characters and no control characters"
            )
        return request

    def progress(self) -> dict[str, Any]:
        """The numbers of the progress page."""
        with self._lock:
            return progress(self.history, self.items.encoder.recipe) | {"guess": self.guess}

    def image(self, *, item: str = "", cell: str = "") -> Response:
        """An image of an item, by the numbers of the item and the cell."""
        places = [int(n) for n in (item, cell) if n.isascii() and n.isdecimal() and len(n) < 10]
        image = self.items.image(*places) if len(places) == 2 else None
        if image is None:
            raise RequestError("there is no image", 404)
        return Response(image[0], media_type=image[1])

    def ask(self, body: bytes) -> dict[str, Any]:
        """The next item for an annotator; none if they have seen all."""
        annotator = self._read(body, NextRequest).annotator
        with self._lock:
            left = np.ones(len(self.items), dtype=bool)
            left[list(self.history.handled[annotator])] = False
            if not left.any():
                return {"item": None} | self._counts(annotator)
            return self._question(self._choose(left, annotator))

    @property
    def guesses(self) -> bool:
        """Whether the model is good enough to guess, and to choose items."""
        return self.features is not None and self.history.beats_constant(ENOUGH)

    def _choose(self, left: NDArray[np.bool_], annotator: str) -> Note:
        """A question about one of the items that are left; without a guess until it is earned."""
        if not self.guesses:
            return Note(annotator=annotator, item=self._first(left))
        seeds = self.seed, self.history.n_answers(annotator), int.from_bytes(annotator.encode())
        widest, show = np.random.default_rng(seeds).integers(2, size=2) > 0
        model = self.engine.model
        score, calibration = model.learner.latent(self.features), model.calibration
        low, high = calibration.ranges(score, COVERAGE)
        asked_by, some, others = RANDOM, left & self.reserved, left & ~self.reserved
        if (widest and others.any()) or not some.any():
            asked_by, new = WIDEST, others & (self.history.answered == 0)
            some = new if new.any() else others
            chances = calibration.probabilities(score)
            entropy = -(chances * np.log(np.maximum(chances, 1e-300))).sum(axis=1)
            for measure in (high - low, entropy):
                some = some & (measure == measure[some].max())
        item = self._first(some)
        return Note(
            annotator=annotator,
            item=item,
            asked_by=asked_by,
            guess=(int(low[item]), int(high[item]), int(model.calibration.predict(score)[item])),
            shown={"show": True, "hide": False}.get(self.guess, bool(show)),
        )

    def _first(self, left: NDArray[np.bool_]) -> int:
        """The first item of the random order among some."""
        return int(self.order[np.argmax(left[self.order])])

    def answer(self, body: bytes) -> dict[str, Any]:
        """Learn an answer, or record a skip if it has no ends; once for each key."""
        said: AnswerRequest = self._read(body, AnswerRequest)
        ends, most = (said.lower or 0, said.upper or 0), len(self.grades)
        if not (ends == (0, 0) or 1 <= ends[0] <= ends[1] <= most):
            given = said.lower, said.upper
            raise RequestError(f"{given} is not a range of ranks 1 to {most}")
        with self._lock:
            event = self.engine.with_key(said.key)
            if event is None:
                event = self._learn(said, ends)
                self.history.add(event)
            known = self.history.replies.get(event.id) or self.history.undone.get(event.id)
            same = known and (known[1].item, known[1].annotator) == (said.item, said.annotator)
            if not same or event[5:7] != ends:
                raise RequestError(
                    f"the key {said.key!r} belongs to another answer; use a different key for each",
                    409,
                )
            return {"event": event.id, "answered": self.history.n_answers(said.annotator)}

    def _learn(self, said: AnswerRequest, ends: tuple[int, int]) -> Event:
        item = said.item
        if item >= len(self.items):
            raise RequestError(f"there is no item {item}; items count from 0", 404)
        if item in self.history.handled[said.annotator]:
            raise RequestError(
                f"{said.annotator} has answered or skipped {self.items.name(item)} already; "
                "undo that first",
                409,
            )
        # an item that may have been chosen for its width does not test the model
        chosen = self.guesses and not self.reserved[item]
        why = WIDEST if chosen else said.asked_by
        tests = ends != (0, 0) and why == RANDOM and not self.history.answered[item]
        note = msgspec.convert(said, Note, from_attributes=True)
        about = {"asked_by": why, "tests": bool(tests), "id": self.items.key(item)}
        extra = msgspec.json.encode(msgspec.structs.replace(note, **about)).decode()
        if ends == (0, 0):
            return self.engine.note(SKIP, said.key, extra=extra)
        values = msgspec.json.encode(self.items.values(item)).decode()
        label = Event(0, LEARN, said.key, 0.0, values, *ends, extra=extra)
        return self.engine.learn([label])[0]

    def undo(self, body: bytes) -> dict[str, Any]:
        """Undo the last answer or skip of an annotator, and ask it again."""
        request: UndoRequest = self._read(body, UndoRequest)
        with self._lock:
            event = self.engine.with_key(request.key)
            if event is None:
                last = self.history.last(request.annotator)
                if last is None:
                    message = f"{request.annotator} has no answer that can be undone"
                    raise RequestError(message, 404)
                event = self.engine.undo(last.id, request.key)
                self.history.add(event)
            reply = self.history.undone.get(event.undoes or 0)
            if reply is None or reply[1].annotator != request.annotator:
                raise RequestError(
                    f"the key {request.key!r} belongs to something else; use a different key for "
                    "each",
                    409,
                )
            then, note = reply
            ends = {"undone": then.kind, "lower": then.lower or None, "upper": then.upper or None}
            return ends | self._question(note)

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
        left = len(self.items) - len(self.history.handled[annotator])
        return {"answered": self.history.n_answers(annotator), "left": left}


def progress(history: History, recipe: Recipe) -> dict[str, Any]:
    """The numbers of the progress page, as plain values."""
    replies = pl.DataFrame(
        [
            (event.id, note.annotator, note.item, note.seconds, note.tests, note.shown)
            + (event[5:10] if event.kind == LEARN else (None,) * 5)
            + (note.guess or (None,) * 3)
            for event, note in history.replies.values()
        ],
        REPLY,
        orient="row",
    )
    tests, seconds, width = replies.filter(c.tests), c.seconds.sum(), 1 + c.upper - c.lower
    work = {
        "minutes": seconds / 60,
        "answers": c.lower.count(),
        "skips": c.lower.null_count(),
        "per_minute": 60 * c.lower.count() / pl.when(seconds > 0).then(seconds),
        "range_share": (width > 1).mean(),
        "mean_width": width.mean(),
    }
    coverage = {
        "contains": ((c.low <= c.lower) & (c.upper <= c.high)).mean(),
        "meets": ((c.low <= c.upper) & (c.lower <= c.high)).mean(),
        "asked": pl.lit(COVERAGE),
    }
    answers = replies.filter(c.lower.is_not_null())
    pairs = answers.join(answers, on="item", suffix="_2").filter(c.event < c.event_2)
    gap = pl.max_horizontal(0, c.lower - c.upper_2, c.lower_2 - c.upper)
    agreement = {
        "items": c.item.n_unique(),
        "pairs": pl.len(),
        "same": ((c.lower == c.lower_2) & (c.upper == c.upper_2)).mean(),
        "meet": (gap == 0).mean(),
        "gap": gap.mean(),
    }
    # from the middle of the guess to the middle of the answer
    away = (c.lower + c.upper - c.guess_low - c.guess_high).abs() / 2
    anchoring = {"n": away.count(), "distance": away.mean()}
    return numbers(replies, work) | {
        "items": history.answered.size,
        "items_answered": int((history.answered > 0).sum()),
        "error": error_curve(distance(*tests["predicted", "lower", "upper"])),
        "advice": advice(history, recipe),
        "best_constant": int(history.losses[1:].min()) / len(tests) if len(tests) else None,
        "coverage": numbers(tests, coverage) if len(tests) else None,
        "annotators": replies.group_by(name="annotator").agg(**work).sort("name").to_dicts(),
        "agreement": numbers(pairs, agreement),
        "anchoring": {
            name: numbers(replies.filter(c.shown == shown), anchoring)
            for name, shown in (("shown", True), ("hidden", False))
        },
    }


def numbers(table: pl.DataFrame, measures: dict[str, Any]) -> dict[str, Any]:
    """Measures of a table."""
    return table.select(**measures).row(0, named=True)


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
    else:
        reason = (
            f"It learns from {first_few(recipe.columns)}. Add columns that say more about the "
            "grade, or give more answers."
        )
    return f"The model is not better than always giving the same grade. {reason}"


def error_curve(distances: ArrayLike) -> list[dict[str, float]]:
    """Mean of the first n distances, n = 1, 2, ..., plus and minus 1.96 standard errors, NaN at 1.

    >>> error_curve([0, 1])[-1] == {"answers": 2, "mae": 0.5, "low": 0.0, "high": 0.5 + 1.96 / 2}
    True
    """
    values = np.asarray(distances, dtype=np.float64)
    n = np.arange(1, values.size + 1)
    mae = np.cumsum(values) / n
    squares = np.maximum(0.0, np.cumsum(values**2) - n * mae**2)
    half = 1.96 * np.sqrt(np.where(n > 1, squares, np.nan) / np.maximum(1, n - 1) / n)
    places = np.unique(np.linspace(0, values.size - 1, min(values.size, MOST_POINTS)).astype(int))
    columns = (n, mae, np.maximum(0.0, mae - half), mae + half)
    points = zip(*(column[places].tolist() for column in columns), strict=True)
    return [dict(zip(("answers", "mae", "low", "high"), point, strict=True)) for point in points]
