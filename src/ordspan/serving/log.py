"""The event log in SQLite; an event is on disk before it is confirmed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

LEARN, SKIP, UNDO = "learn", "skip", "undo"
APPLICATION, FORMAT = 0x6F726473, 1
"""Stored in the header of the SQLite file: the application and the format version."""
MOST_NAMED = 500
"""Keys per query, well below SQLite's limit on parameters."""
TOGETHER = 50
"""Events per statement: SQLite lets other threads run after each."""
TABLE = """
CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    key TEXT UNIQUE,
    time REAL NOT NULL,
    "values" TEXT NOT NULL,
    lower INTEGER,
    upper INTEGER,
    predicted INTEGER,
    low INTEGER,
    high INTEGER,
    undoes INTEGER,
    extra TEXT NOT NULL
) STRICT
"""
REMEDIES = {
    "locked": "another process is writing to it; end that process, such as a backup or sqlite3",
    "full": "free some disk space",
    "malformed": "restore it from a backup",
    "not a database": "restore it from a backup",
    "readonly": "check the permissions of the folder and its files",
    "unable to open": "check the permissions of the folder and its files",
}


Judged = tuple[int, bool | None, bool | None]
"""Distance of a prediction, and whether its range, if it has one, contains and meets the label."""


class LogError(OSError):
    """The log cannot be read or written; nothing was learned."""


class Event(NamedTuple):
    """One row of the log; ids count from 1 without gaps.

    Labels, predictions and ranges are ranks 1..K. The time is informational: order is by id.
    """

    id: int
    kind: str
    key: str | None
    time: float
    values: str  # JSON, in the order of the model's columns
    lower: int | None = None
    upper: int | None = None
    predicted: int | None = None  # before it was learned
    low: int | None = None  # 90 % range before it was learned, if calibrated
    high: int | None = None
    undoes: int | None = None  # id of the event that is undone
    extra: str = "{}"  # JSON, application data

    @property
    def judged(self) -> Judged:
        """How good the prediction of a learned event was."""
        # only the range may be missing
        lower, upper, predicted, low, high = (rank or 0 for rank in self[5:10])
        distance = max(lower - predicted, predicted - upper, 0)
        if self.low is None:
            return distance, None, None
        return distance, low <= lower and upper <= high, low <= upper and lower <= high


class Totals(NamedTuple):
    """Sums over the events that were learned and not undone."""

    rows: int
    error: int  # distances from the prediction to the label
    contains: int  # rows whose 90 % range contains the whole label
    meets: int  # rows whose range contains any grade of the label


class Log:
    """The events of one state folder.

    Parameters
    ----------
    path : Path
        The file; created if it does not exist.
    """

    last: int  # number of the last event; 0 if there is none

    def __init__(self, path: Path) -> None:
        self.path = path
        with _sqlite_errors(self.path):
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute("PRAGMA trusted_schema = OFF")
            self._prepare()

    def _prepare(self) -> None:
        ((there,),) = self._rows("SELECT count(*) FROM sqlite_master")
        ((application,),) = self._rows("PRAGMA application_id")
        ((version,),) = self._rows("PRAGMA user_version")
        if there and (application, version) != (APPLICATION, FORMAT):
            raise LogError(
                f"{self.path} was not written by this version of ordspan; choose another "
                "state folder"
            )
        if not there:
            with self._db:
                self._db.execute("BEGIN IMMEDIATE")
                self._db.execute(TABLE)
                self._db.execute(f"PRAGMA application_id = {APPLICATION}")
                self._db.execute(f"PRAGMA user_version = {FORMAT}")
        ((n_events, self.last),) = self._rows("SELECT count(*), coalesce(max(id), 0) FROM events")
        if n_events != self.last:
            raise LogError(
                f"{self.path} holds {n_events:,} events, but the last one is number {self.last:,}; "
                "restore it from a backup"
            )

    def append(self, events: Sequence[Event]) -> None:
        """Write events, all or none; they are on disk when this returns."""
        one = f"({', '.join('?' * len(Event._fields))})"
        with _sqlite_errors(self.path), self._db:
            self._db.execute("BEGIN IMMEDIATE")
            for begin in range(0, len(events), TOGETHER):
                some = events[begin : begin + TOGETHER]
                many = f"INSERT INTO events VALUES {', '.join([one] * len(some))}"
                self._db.execute(many, [*chain(*some)])
        self.last += len(events)

    def _rows(self, query: str, *parameters: Any) -> Iterator[Any]:
        with _sqlite_errors(self.path):
            yield from self._db.execute(query, parameters)

    def read(self, after: int = 0) -> Iterator[Event]:
        """The events after a number, in order."""
        return map(Event._make, self._rows("SELECT * FROM events WHERE id > ? ORDER BY id", after))

    def undone(self, after: int = 0) -> list[int]:
        """Ids of events undone by events after a number."""
        query = "SELECT undoes FROM events WHERE undoes IS NOT NULL AND id > ?"
        return [number for (number,) in self._rows(query, after)]

    def undo_of(self, number: int) -> Event | None:
        """The event that undid an event, if any."""
        rows = self._rows("SELECT * FROM events WHERE undoes = ?", number)
        return next(map(Event._make, rows), None)

    def with_keys(self, keys: Sequence[str]) -> dict[str, Event]:
        """Events by key, for those of the keys that exist."""
        found: dict[str, Event] = {}
        for begin in range(0, len(keys), MOST_NAMED):
            some = keys[begin : begin + MOST_NAMED]
            query = f"SELECT * FROM events WHERE key IN ({', '.join('?' * len(some))})"
            found |= {row[2]: Event._make(row) for row in self._rows(query, *some)}
        return found

    def totals(self) -> Totals:
        """Totals over all rows that were not undone."""
        (totals,) = self._rows(f"""
            SELECT count(*), coalesce(sum(max(lower - predicted, predicted - upper, 0)), 0),
                coalesce(sum(low <= lower AND upper <= high), 0),
                coalesce(sum(low <= upper AND lower <= high), 0)
            FROM events WHERE kind = '{LEARN}' AND id NOT IN
                (SELECT undoes FROM events WHERE undoes IS NOT NULL)
        """)
        return Totals._make(totals)

    def close(self) -> None:
        """Close the file."""
        self._db.close()


@contextmanager
def _sqlite_errors(path: Path) -> Iterator[None]:
    """Turn SQLite errors into `LogError` with the file and a remedy."""
    try:
        yield
    except sqlite3.Error as error:
        reason = str(error)
        remedy = next((REMEDIES[word] for word in REMEDIES if word in reason), "check the disk")
        raise LogError(f"{path}: {reason}; {remedy}") from error
