"""A model that learns from an event log, which rebuilds it byte for byte after a crash."""

import time
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from copy import copy
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from threading import RLock
from typing import Any

import msgspec
import numpy as np

from ordspan.catalog import ESTIMATORS, PA, SVM, learner_parameters, make_learner
from ordspan.commands.models import read_table_model
from ordspan.core.scaling import COUNT, FEW_ROWS, LIMIT
from ordspan.learners import Calibration
from ordspan.models.atomic import check_can_write, sole_writer, write_atomically
from ordspan.models.file import Checkpoint, ModelFileError, to_bytes
from ordspan.models.table import TableModel
from ordspan.serving.log import LEARN, UNDO, Event, Log
from ordspan.serving.records import RecordReader, RequestError, example_record
from ordspan.tables.encoder import FAR, Encoder, Recipe
from ordspan.tables.rows import Count, FileError

COVERAGE = 0.9
EVERY = 10_000  # events between two snapshots
PORTION = 8192  # events learned at once when the model is rebuilt
LOG, BASE, SNAPSHOT = "log.sqlite", "base.ordspan", "snapshot.ordspan"


def empty_model(classes: Any, columns: Sequence[str], text: Sequence[str] = ()) -> TableModel:
    """An untrained model that learns the scale of its columns online.

    Parameters
    ----------
    classes : array
        The grades from lowest to highest.
    columns : sequence of str
        The columns of a record.
    text : sequence of str
        Text columns, which are hashed; the others are numeric.

    Returns
    -------
    TableModel
        It learns with the defaults of ``ordspan train``.
    """
    if unknown := [name for name in text if name not in columns]:
        raise ValueError(f"the text column {unknown[0]!r} is not one of the columns")
    numbers = tuple(name for name in columns if name not in text)
    recipe = Recipe(numbers, numbers, hashed=tuple(name for name in columns if name in text))
    return untrained(Encoder(recipe), classes)


def untrained(encoder: Encoder, classes: Any) -> TableModel:
    """An untrained model of given features.

    Parameters
    ----------
    encoder : Encoder
        How columns become features; if it knows no number yet, the scale is learned online.
    classes : array
        The grades from lowest to highest.

    Returns
    -------
    TableModel
        It learns with the defaults of ``ordspan train``.
    """
    kind, classes = ESTIMATORS[PA], np.asarray(classes)
    fixed = {"classes": classes, "random_state": 0, "max_iter": 1, "shuffle": False}
    parameters = learner_parameters(PA, {}) | fixed
    settings = {"files": [], "passes": 1, "scaled_on_the_way": not encoder.state.any()}
    return TableModel(
        encoder=encoder,
        kind=kind,
        parameters=parameters,
        classes_=classes,
        learner=make_learner(kind, parameters, encoder.recipe.n_features, len(classes)),
        training={"settings": settings, "rows": 0, "left_out": {}},
        calibration=Calibration(len(classes)),
    )


def learn(model: TableModel, reader: RecordReader, events: Sequence[Event]) -> list[Event]:
    """Learn labels in order; the same events with what was predicted before each was learned.

    Each is predicted by what those before it taught; the width of its range is that of the
    calibration before the first one. A model that started empty learns the scale of its numbers
    too. The events name the numbers that were clipped, or are far from those of the training. If
    this raises, the model is spoilt.
    """
    X, table = reader.logged(events)
    lower, upper = np.array([event[5:7] for event in events]).T
    online, notes = scales_online(model), outliers(model, X)[1]
    scaled = X.copy() if online else X
    features = model.encoder.features(scaled, table, learn=online)
    rows, calibration = model.learner.rows(features, lower, upper), model.calibration
    scores = np.empty(len(events))
    model.learner.learn(rows, scores_before=scores)
    model.training["rows"] += len(events)
    low, high = calibration.ranges(scores, COVERAGE)
    rank: Any = calibration.observe(scores, rows.lower, rows.upper, predict=True)
    predicted = np.array([rank, np.minimum(low, rank), np.maximum(high, rank)]).T.tolist()
    learned = [
        Event._make((*event[:7], *ranks, *event[10:]))
        for event, ranks in zip(events, predicted, strict=True)
    ]
    if online and not model.recipe.n_sparse:
        notes = name_numbers("clipped", model.recipe.numbers, X, np.abs(scaled) == LIMIT)
    for row, note in notes.items():
        if events[row].extra == "{}":  # those of annotate are about the item
            learned[row] = learned[row]._replace(extra=msgspec.json.encode(note).decode())
    return learned


def scales_online(model: TableModel) -> bool:
    """Whether a model learns the scale of its numbers too."""
    return model.recipe.standardise and bool(model.training["settings"].get("scaled_on_the_way"))


def outliers(model: TableModel, X: Any) -> tuple[Any, dict[int, Any]]:
    """Numbers of rows as they are predicted, and what answers say of those that are absurd, by row.

    A model that started empty clips them as it does in learning; a trained one does not.
    """
    if model.recipe.n_sparse or (scale := model.centre_and_factor()) is None:
        return X, {}
    (mean, factor), names = scale, model.recipe.numbers
    distance = np.abs(X - mean) * factor
    if not scales_online(model):
        return X, name_numbers("far", names, X, distance > FAR)
    clipped = (distance > LIMIT) & (model.encoder.state[COUNT] >= FEW_ROWS)
    nearest = mean + (X - mean) * (LIMIT / np.maximum(distance, LIMIT))
    return np.where(clipped, nearest, X), name_numbers("clipped", names, X, clipped)


def name_numbers(what: str, names: Sequence[str], X: Any, chosen: Any) -> dict[int, Any]:
    """Of each row with chosen numbers, these by their columns."""
    notes: dict[int, Any] = {}
    for row, column in np.argwhere(chosen).tolist():
        notes.setdefault(row, {what: {}})[what][names[column]] = X[row, column].item()
    return notes


def copy_model(model: TableModel) -> TableModel:
    """A model that learns without changing this one."""
    copied = replace(
        model,
        encoder=Encoder(model.recipe, model.encoder.state.copy()),
        learner=copy(model.learner),
        training=dict(model.training),
        calibration=copy(model.calibration),
    )
    copied.learner.adopt_state(model.learner.state.copy())
    copied.calibration.state = model.calibration.state.copy()
    return copied


def warm_up(model: TableModel) -> None:
    """Compile what predicting and learning need, on a copy, so that no request waits for it."""
    reader, trial = RecordReader(model), copy_model(model)
    values = [*example_record(model.recipe).values()]
    score = trial.learner.latent(trial.encoder.features(*reader.arrays([values])))
    trial.calibration.probabilities(score)
    trial.calibration.ranges(score, COVERAGE)
    if model.kind != ESTIMATORS[SVM]:
        row = msgspec.json.encode(values).decode()
        learn(trial, reader, [Event(0, LEARN, None, 0.0, row, 1, 1)])


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

    model: TableModel
    """The current model, which never changes: it is replaced after each write."""

    def __init__(
        self, folder: str | Path, start: TableModel | None = None, *, every: int = EVERY
    ) -> None:
        self.folder, self.every = Path(folder), every
        self._lock = RLock()
        base = self.folder / BASE
        if not base.exists() and (self.folder / LOG).exists():
            raise FileError(
                f"{base}, the initial model of the log in {self.folder}, is missing; restore it"
            )
        if not base.exists() and start is None:
            raise FileError(
                f"{self.folder} holds no model yet; give one with --model, or --grades and "
                "--columns to start without one"
            )
        with ExitStack() as opened:
            self.folder.mkdir(parents=True, exist_ok=True)
            check_can_write(self.folder / LOG)
            opened.enter_context(sole_writer(self.folder / LOG, "in use"))
            if start is not None and not base.exists():
                write_atomically(base, to_bytes(start))
            if start is not None and base.read_bytes() != to_bytes(start):
                raise FileError(
                    f"{self.folder} was started with another model; omit the model to continue "
                    "with that one, or choose another state folder"
                )
            self._base = read_table_model(base)
            self.log = opened.enter_context(closing(Log(self.folder / LOG)))
            self._snapshot = Checkpoint(self.folder / SNAPSHOT, {"serves": LOG}, [], "remove it")
            self.reader = RecordReader(self._base)
            self.model = self._rebuilt()
            self._open = opened.pop_all()

    def _rebuilt(self) -> TableModel:
        """The model after the last event."""
        model, self._saved, last = copy_model(self._base), 0, self.log.last
        undone = {event.undoes: event.id for event in self.log.select("undoes IS NOT NULL")}
        self._undone = set(undone)
        with suppress(ModelFileError, KeyError):  # damaged; rebuild from the log
            if snapshot := self._snapshot.read(TableModel, dict[str, Count]):
                saved = snapshot[1]["events"]
                if saved > last:
                    raise FileError(
                        f"{self.folder / SNAPSHOT} has learned {saved:,} events, but the log "
                        f"ends with number {last:,}: some were lost on disk. Restore {LOG} from a "
                        "backup, or delete the snapshot to continue without them"
                    )
                if not any(event and event <= saved < undo for event, undo in undone.items()):
                    model, self._saved = snapshot[0], saved
        events = self.log.select("kind = ? AND id > ?", LEARN, self._saved)
        left = (event for event in events if event.id not in self._undone)
        while some := list(islice(left, PORTION)):
            try:
                learn(model, self.reader, some)
            except (ValueError, TypeError, IndexError) as error:
                raise FileError(
                    f"{self.log.path}: events {some[0].id} to {some[-1].id} cannot be learned "
                    f"again ({error}); the file is damaged, restore it from a backup"
                ) from error
        return model

    def learn(self, labels: Sequence[Event]) -> list[Event]:
        """Learn labels in order, all or nothing; they are on disk when this returns.

        One whose key was learned before is not learned again: its first event is returned.
        """
        (done,) = self.learn_groups([labels])
        if isinstance(done, Exception):
            raise done
        return done

    def learn_groups(self, groups: Sequence[Sequence[Event]]) -> list[list[Event] | Exception]:
        """`learn` several groups of labels at once, with a single write to disk.

        A group that cannot be learned returns its error instead of its events.
        """
        with self._lock:
            try:
                events = iter(self._learn([*chain(*groups)]))
                return [list(islice(events, len(group))) for group in groups]
            except Exception as error:
                if len(groups) == 1:
                    return [error]
        return [done for group in groups for done in self.learn_groups([group])]

    def _learn(self, labels: Sequence[Event]) -> list[Event]:
        """Learn new labels on a copy of the model, write their events, and publish the copy."""
        self._base.check_can_learn()
        known = self.log.with_keys([label.key for label in labels if label.key is not None])
        first, now = self.log.last + 1, time.time()
        new: list[Event] = []
        events = []
        for number, label in enumerate(labels, 1):
            event = known.get(label.key)
            if event is None:
                event = label._replace(id=first + len(new), time=now)
                new.append(event)
                if label.key is not None:
                    known[label.key] = event
            elif event.id in self._undone or event[4:7] != label[4:7]:  # the row and its label
                raise RequestError(
                    f"record {number}: the key {label.key!r} belongs to another label, or to one "
                    "that was undone; use a different key for each label",
                    409,
                )
            events.append(event)
        if new:
            model = copy_model(self.model)
            new = learn(model, self.reader, new)
            self.log.append(new)
            self.model = model
            self._save_if_due(self.every)
        return [event if event.id < first else new[event.id - first] for event in events]

    def undo(self, number: int, key: str | None = None) -> Event:
        """Undo an event: the model is rebuilt from the log without it; once more does nothing."""
        with self._lock:
            done = next(self.log.select("undoes = ?", number), None)
            return done or self.note(UNDO, key, undoes=number)

    def note(self, kind: str, key: str | None, **more: Any) -> Event:
        """Write an event without a row."""
        with self._lock:
            event = Event(self.log.last + 1, kind, key, time.time(), "", **more)
            self.log.append([event])
            if kind == UNDO:
                self.model = self._rebuilt()
            self._save_if_due(self.every)
            return event

    def _save_if_due(self, every: int) -> None:
        """Write a snapshot after a number of events; the log is complete without it."""
        if self.log.last - self._saved >= every:
            with suppress(OSError):
                self._snapshot.write(self.model, {"events": self.log.last})
                self._saved = self.log.last

    @property
    def n_labels(self) -> int:
        """Number of labels that were not undone."""
        return self.log.totals(0, self.log.last)[0]

    def events(self) -> list[Event]:
        """All events of the log, undone ones among them."""
        with self._lock:
            return list(self.log.select("TRUE"))

    def with_key(self, key: str) -> Event | None:
        """The event with a key, if there is one."""
        with self._lock:
            return self.log.with_keys([key]).get(key)

    def close(self) -> None:
        """Write a snapshot and release the folder."""
        with self._lock:
            self._save_if_due(1)
            self._open.close()
