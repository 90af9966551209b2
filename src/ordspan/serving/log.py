"""The event log in SQLite; an event is on disk before it is confirmed."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

LEARN, SKIP, UNDO = "learn", "skip", "undo"
APPLICATION, FORMAT = 0x6F726473, 1
"""Stored in the header of the SQLite file: the application and the format version."""
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
TOTALS = f"""
SELECT count(*), total(max(lower - predicted, predicted - upper, 0)),
    total(low <= lower AND upper <= high), total(low <= upper AND lower <= high)
FROM events WHERE kind = '{LEARN}' AND id > ? AND id <= ? AND id NOT IN
    (SELECT undoes FROM events WHERE undoes IS NOT NULL)
"""
REMEDIES = {
    "locked": "another process is writing to it; end that process, such as a backup or sqlite3",
    "full": "free some disk space",
}
OTHER_REMEDY = "check the disk and the permissions of the folder, or restore it from a backup"


class LogError(OSError):
    """The log cannot be read or written; nothing was learned."""

    status = 503  # of the answer to a request


class Event(NamedTuple):
    """One row of the log; ids count from 1 without gaps, and a label to be learned has none yet.

    Labels, predictions and ranges are ranks 1..K. The time is informational: order is by id.
    """

    id: int
    kind: str
    key: str | None
    time: float
    values: str  # JSON, in the order of the model's columns
    lower: int = 0
    upper: int = 0
    predicted: int = 0  # before it was learned
    low: int = 0  # 90 % range before it was learned
    high: int = 0
    undoes: int | None = None  # id of the event that is undone
    extra: str = "{}"  # JSON, application data


class Log:
    """The events of one state folder.

    Parameters
    ----------
    path : Path
        The file; created if it does not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._errors():
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            for pragma in ("journal_mode = WAL", "synchronous = FULL", "trusted_schema = OFF"):
                self._db.execute(f"PRAGMA {pragma}")
            if not self._one("SELECT count(*) FROM sqlite_master")[0]:
                with self._db:
                    self._db.execute("BEGIN IMMEDIATE")
                    self._db.execute(TABLE)
                    self._db.execute(f"PRAGMA application_id = {APPLICATION}")
                    self._db.execute(f"PRAGMA user_version = {FORMAT}")
            written_by = *self._one("PRAGMA application_id"), *self._one("PRAGMA user_version")
            if written_by != (APPLICATION, FORMAT):
                raise LogError(
                    f"{path} was not written by this version of ordspan; choose another state "
                    "folder"
                )
            count, self.last = self._one("SELECT count(*), coalesce(max(id), 0) FROM events")
            if count != self.last:
                raise LogError(
                    f"{path} holds {count:,} events, but the last one is number {self.last:,}; "
                    "restore it from a backup"
                )

    def _one(self, query: str, *values: Any) -> Any:
        return self._db.execute(query, values).fetchone()

    def append(self, events: Sequence[Event]) -> None:
        """Write events, all or none; they are on disk when this returns."""
        places = ", ".join("?" * len(Event._fields))
        with self._errors(), self._db:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany(f"INSERT INTO events VALUES ({places})", events)
        self.last += len(events)

    def select(self, where: str, *values: Any) -> Iterator[Event]:
        """The events that fulfil a condition, in order."""
        with self._errors():
            query = f"SELECT * FROM events WHERE {where} ORDER BY id"
            yield from map(Event._make, self._db.execute(query, values))

    def with_keys(self, keys: Sequence[str]) -> dict[str | None, Event]:
        """Events by key, for those of the keys that exist."""
        some = self.select("key IN (SELECT value FROM json_each(?))", json.dumps(keys))
        return {event.key: event for event in some}

    def totals(self, after: int, last: int) -> tuple[int, float, float, float]:
        """Sums over the labels of some events, without those that were undone.

        Labels, distances from the prediction to them, predicted ranges that contain the whole
        label, and that contain any grade of it.
        """
        with self._errors():
            totals: tuple[int, float, float, float] = self._one(TOTALS, after, last)
            return totals

    def close(self) -> None:
        """Close the file; what was appended is on disk already."""
        self._db.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn SQLite errors into `LogError` with the file and a remedy."""
        try:
            yield
        except sqlite3.Error as error:
            reason = str(error)
            remedy = next((REMEDIES[word] for word in REMEDIES if word in reason), OTHER_REMEDY)
            raise LogError(f"{self.path}: {reason}; {remedy}") from error
