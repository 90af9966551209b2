"""Metrics of the service in the text format of Prometheus."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from ordspan.serving.engine import Engine
from ordspan.serving.log import LEARN, Event, Judged, Totals
from ordspan.serving.models import COVERAGE

WINDOW = 1000
"""Rows in the running averages."""
BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
COUNTERS = {
    "ordspan_learned_rows": "Rows learned.",
    "ordspan_absolute_error": "Sum of the distances in grades from the prediction before learning "
    "to the label.",
    "ordspan_range_contains_label": "Rows whose whole label lay in the predicted range at "
    f"{COVERAGE:.0%}.",
    "ordspan_range_meets_label": "Rows whose label shared a grade with the predicted range at "
    f"{COVERAGE:.0%}.",
}
"""The names and meanings of `Totals`."""
CONTENT_TYPE = CONTENT_TYPE_LATEST

disable_created_metrics()  # one extra line per metric with the start time of the process


class Metrics:
    """Counts of rows and requests, error, coverage and latency.

    Parameters
    ----------
    engine : Engine
        Its log provides the counts from before a restart.
    paths : iterable of str
        Paths counted by name; all others count as "other".
    waiting : callable
        Returns the number of rows waiting to be learned.
    """

    def __init__(self, engine: Engine, paths: Iterable[str], waiting: Callable[[], int]) -> None:
        self._registry, self._paths = CollectorRegistry(), set(paths)
        self._recent: deque[Judged] = deque(maxlen=WINDOW)
        r = self._registry
        self._counters = [Counter(name, about, registry=r) for name, about in COUNTERS.items()]
        gauge = partial(Gauge, registry=r)
        about = f"Mean distance over the last {WINDOW:,} rows."
        self._mae = gauge("ordspan_running_mae", about)
        about = (
            f"Share of the last {WINDOW:,} rows; the coverage of the true grade lies between the "
            "two bounds."
        )
        self._coverage = gauge("ordspan_running_coverage", about, ["bound"])
        gauge("ordspan_queue_rows", "Rows waiting to be learned.").set_function(waiting)
        name, labels = "ordspan_request_seconds", ["path", "status"]
        self._seconds = Histogram(name, "Time to respond.", labels, buckets=BUCKETS, registry=r)
        self._count(engine.totals())
        self._take(engine.events(after=engine.n_events - WINDOW))

    def learned(self, events: Iterable[Event]) -> None:
        """Count newly learned rows."""
        if found := self._take(events):
            distances, *ranges = zip(*found, strict=True)
            contains, meets = (sum(filter(None, bools)) for bools in ranges)
            self._count(Totals(len(found), sum(distances), contains, meets))

    def _count(self, totals: Totals) -> None:
        for counter, amount in zip(self._counters, totals, strict=True):
            counter.inc(amount)

    def _take(self, events: Iterable[Event]) -> list[Judged]:
        found = [event.judged for event in events if event.kind == LEARN]
        self._recent.extend(found)
        return found

    def asked(self, path: str, status: int, seconds: float) -> None:
        """Count a request."""
        known = path if path in self._paths else "other"
        self._seconds.labels(known, str(status)).observe(seconds)

    def text(self) -> bytes:
        """All metrics as text."""
        if recent := list(self._recent):  # a copy, as another thread may add rows
            self._mae.set(sum(distance for distance, *_ in recent) / len(recent))
        if ranged := [judged for judged in recent if judged[1] is not None]:
            _, contains, meets = zip(*ranged, strict=True)
            self._coverage.labels("contains").set(sum(contains) / len(ranged))
            self._coverage.labels("meets").set(sum(meets) / len(ranged))
        return generate_latest(self._registry)
