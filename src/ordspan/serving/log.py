"""The event log: what was learned, in order, in SQLite; an event that was returned is on disk."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

LEARN, SKIP, UNDO = "learn", "skip", "undo"
APPLICATION, FORMAT = 0x6F726473, 1
"""What SQLite keeps in the head of the file: that it is such a log, and how it is written."""
MOST_NAMED = 500
"""Keys in one question to SQLite, which takes some thousand."""
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
WAYS_OUT = {
    "full": "make room on the disk",
    "malformed": "restore it from a backup",
    "not a database": "restore it from a backup",
    "readonly": "check the rights of the folder and its files",
    "unable to open": "check the rights of the folder and its files",
}
UNDONE = "(SELECT undoes FROM events WHERE undoes IS NOT NULL)"


class LogError(OSError):
    """The log cannot be read or written; nothing was learned."""


class Event(NamedTuple):
    """One line of the log; the numbers count from 1 without gaps.

    Labels, predictions and ranges are ranks 1..K. The time is only shown: order is by number.
    """

    id: int
    kind: str
    key: str | None
    time: float
    values: str  # JSON, in the order of the model's columns
    lower: int | None = None
    upper: int | None = None
    predicted: int | None = None  # before it was learned
    low: int | None = None  # range at 90 % before it was learned, where it was calibrated
    high: int | None = None
    undoes: int | None = None  # number of the event that is taken back
    extra: str = "{}"  # JSON, whatever else is to be remembered


class Totals(NamedTuple):
    """Sums over the events that were learned and not taken back."""

    rows: int
    error: int  # distances from the prediction to the label
    ranged: int  # rows that had a range at 90 %
    contains: int  # of them those whose range holds the whole label
    meets: int  # ... any grade of the label


class Log:
    """The events of one state folder.

    Parameters
    ----------
    path : Path
        The file; it is made where there is none.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with _sqlite_errors(self.path):
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute("PRAGMA trusted_schema = OFF")
            self._prepare()

    def _prepare(self) -> None:
        there = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        application, version = (
            self._db.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("application_id", "user_version")
        )
        if there and (application != APPLICATION or version != FORMAT):
            raise LogError(
                f"{self.path} is not a log that this version of ordspan writes; choose another "
                "state folder"
            )
        if not there:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute(TABLE)
            self._db.execute(f"PRAGMA application_id = {APPLICATION}")
            self._db.execute(f"PRAGMA user_version = {FORMAT}")
            self._db.execute("COMMIT")
        n_events = self._db.execute("SELECT count(*) FROM events").fetchone()[0]
        if n_events != self.last:
            raise LogError(
                f"{self.path} holds {n_events:,} events, but the last has number {self.last:,}; "
                "restore it from a backup"
            )

    @property
    def last(self) -> int:
        """Number of the last event; 0 if there is none."""
        with _sqlite_errors(self.path):
            found: int = self._db.execute("SELECT coalesce(max(id), 0) FROM events").fetchone()[0]
        return found

    def append(self, events: Iterable[Event]) -> None:
        """Write events, all or none; they are on disk when this returns."""
        places = ", ".join("?" * len(Event._fields))
        with _sqlite_errors(self.path):
            try:
                self._db.execute("BEGIN IMMEDIATE")
                self._db.executemany(f"INSERT INTO events VALUES ({places})", events)
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def read(self, after: int = 0) -> Iterator[Event]:
        """The events after a number, in order."""
        with _sqlite_errors(self.path):
            rows = self._db.execute("SELECT * FROM events WHERE id > ? ORDER BY id", (after,))
            yield from map(Event._make, rows)

    def undone(self, after: int = 0) -> list[int]:
        """Numbers of the events that were taken back by events after a number."""
        question = "SELECT undoes FROM events WHERE undoes IS NOT NULL AND id > ?"
        with _sqlite_errors(self.path):
            return [number for (number,) in self._db.execute(question, (after,))]

    def can_undo(self, number: int) -> bool:
        """Whether there is such an event that was not taken back, and takes none back itself."""
        question = (
            f"SELECT count(*) FROM events WHERE id = ? AND kind != '{UNDO}' AND id NOT IN {UNDONE}"
        )
        with _sqlite_errors(self.path):
            return bool(self._db.execute(question, (number,)).fetchone()[0])

    def with_keys(self, keys: Sequence[str]) -> dict[str, Event]:
        """The events that have some of these keys, by key."""
        found: dict[str, Event] = {}
        with _sqlite_errors(self.path):
            for begin in range(0, len(keys), MOST_NAMED):
                some = keys[begin : begin + MOST_NAMED]
                places = ", ".join("?" * len(some))
                rows = self._db.execute(f"SELECT * FROM events WHERE key IN ({places})", some)
                found |= {row[2]: Event._make(row) for row in rows}
        return found

    def totals(self) -> Totals:
        """What the log says of all rows that count."""
        question = f"""
            SELECT count(*), coalesce(sum(max(lower - predicted, predicted - upper, 0)), 0),
                count(low), coalesce(sum(low <= lower AND upper <= high), 0),
                coalesce(sum(low <= upper AND lower <= high), 0)
            FROM events WHERE kind = '{LEARN}' AND id NOT IN {UNDONE}
        """
        with _sqlite_errors(self.path):
            return Totals._make(self._db.execute(question).fetchone())

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()


@contextmanager
def _sqlite_errors(path: Path) -> Iterator[None]:
    """Turn what SQLite says into an error with the file and the way out."""
    try:
        yield
    except sqlite3.Error as error:
        told = str(error)
        way = next((WAYS_OUT[word] for word in WAYS_OUT if word in told), "check the disk")
        raise LogError(f"{path}: {told}; {way}") from error
