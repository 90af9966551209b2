"""Metrics of the service in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Lock

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.exposition import CONTENT_TYPE_LATEST as CONTENT_TYPE
from prometheus_client.exposition import generate_latest

from ordspan.serving.log import Log

__all__ = ["CONTENT_TYPE", "Metrics"]

WINDOW = 1000  # events in the running averages
BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
COUNTERS = {
    "ordspan_learned_rows": "Rows learned.",
    "ordspan_absolute_error": "Sum of the distances in grades from the prediction before learning "
    "to the label.",
    "ordspan_range_contains_label": "Rows whose whole label lay in the predicted range at 90%.",
    "ordspan_range_meets_label": "Rows whose label shared a grade with that range.",
}
"""Sums of `Log.totals`."""

disable_created_metrics()  # one extra line per metric with the start time of the process


class Metrics:
    """Counts of rows, error, coverage and latency; rows are counted in the log when asked for.

    Parameters
    ----------
    path : Path
        The log; it has its own connection, so that a write to disk is not waited for.
    waiting : callable
        Returns the number of rows waiting to be learned.
    """

    def __init__(self, path: Path, waiting: Callable[[], int]) -> None:
        self._log, self._lock, self._last = Log(path), Lock(), 0
        r = self._registry = CollectorRegistry()
        self._counters = [Counter(name, about, registry=r) for name, about in COUNTERS.items()]
        gauge, last = partial(Gauge, registry=r), f"over the last {WINDOW:,} labels"
        self._mae = gauge("ordspan_running_mae", f"Mean distance {last}.")
        about = f"Share {last}; the coverage of the true grade lies between the two bounds."
        self._coverage = gauge("ordspan_running_coverage", about, ["bound"])
        gauge("ordspan_queue_rows", "Rows waiting to be learned.").set_function(waiting)
        name, labels = "ordspan_request_seconds", ["path", "status"]
        self._seconds = Histogram(name, "Time to respond.", labels, buckets=BUCKETS, registry=r)

    def asked(self, path: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._seconds.labels(path, str(status)).observe(seconds)

    def text(self, last: int) -> bytes:
        """All metrics as text, up to an event."""
        with self._lock:
            totals = self._log.totals(self._last, last)
            for counter, amount in zip(self._counters, totals, strict=False):
                counter.inc(amount)
            self._last = max(self._last, last)
            rows, error, contains, meets, ranges = self._log.totals(last - WINDOW, last)
            if rows:
                self._mae.set(error / rows)
            if ranges:
                self._coverage.labels("contains").set(contains / ranges)
                self._coverage.labels("meets").set(meets / ranges)
            return generate_latest(self._registry)

    def close(self) -> None:
        """Close the log."""
        self._log.close()
