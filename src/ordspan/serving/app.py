"""The service over HTTP: predict, learn, undo, the model and its metrics.

A label: checked by `Application`, decoded into the record of the model, queued, learned with all
that wait, logged, published, answered with what was predicted before.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

import ordspan
from ordspan.labels.amounts import range_ends
from ordspan.models.file import to_bytes
from ordspan.serving.engine import COVERAGE, LOG, Engine
from ordspan.serving.http import UNAVAILABLE, Application
from ordspan.serving.log import LEARN, Event, Log
from ordspan.serving.records import (
    REQUEST,
    Key,
    RequestError,
    decoded,
    example_record,
    some_range,
)
from ordspan.wording import brief

HEALTH, DOCS = "/health", "/openapi.json"
MANY_BYTES = 1 << 17  # larger bodies are predicted in a thread, so that small ones are not delayed
MOST_WAITING = 20_000
AT_ONCE = 5_000  # rows from which no more requests are added to one write to disk
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


class UndoRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The key of the label to undo."""

    key: Key


def make_app(
    engine: Engine, *, token: str | None = None, most_waiting: int = MOST_WAITING
) -> Application:
    """The application of ``ordspan serve``.

    Parameters
    ----------
    engine : Engine
        The model and its log; closed on shutdown.
    token : str, optional
        Bearer token required for every request except the health check.
    most_waiting : int
        Most rows that may wait to be learned.

    Returns
    -------
    Application
        An ASGI application.
    """
    service = Service(engine, most_waiting)
    routes: dict[str, Any] = {
        "POST /predict": service.predict,
        "POST /learn": service.learn,
        "POST /undo": service.undo,
        "GET /model": service.model,
        "GET /metrics": service.metrics_text,
        f"GET {HEALTH}": service.health,
    }
    about = describe(engine, routes)
    welcome = about["info"] | {"docs": DOCS, "requests": [*about["paths"]]}
    return Application(
        routes | {"GET /": welcome, "GET /docs": RedirectResponse(DOCS), f"GET {DOCS}": about},
        service.close,
        token=token,
        public=[HEALTH],
        observe=service.metrics.count,
    )


class Service:
    """What is done with each request, and the queue of labels.

    Parameters
    ----------
    engine : Engine
        The model and its log.
    most_waiting : int
        Most rows that may wait; further ones are refused.
    """

    def __init__(self, engine: Engine, most_waiting: int) -> None:
        self.engine, self.reader, self.most_waiting = engine, engine.reader, most_waiting
        self.grades: list[Any] = engine.model.classes_.tolist()
        self.names = [str(grade) for grade in self.grades]
        self.starts, self.ends = range_ends(self.grades)
        self.n_waiting, self._ending = 0, False
        self._line: deque[tuple[Sequence[Event], asyncio.Future[Any]]] = deque()
        self._work: asyncio.Task[None] | None = None
        self.metrics = Metrics(engine.folder / LOG, lambda: self.n_waiting)

    async def predict(self, body: bytes, coverage: str = str(COVERAGE)) -> Any:
        """Predict grade, probabilities and range of a record or a list of records."""
        try:
            share = float(coverage)
        except ValueError:
            raise RequestError(f"{REQUEST}: coverage is {brief(coverage)}, not a number") from None
        if len(body) <= MANY_BYTES:
            return self._predictions(body, share)
        return await run_in_threadpool(self._predictions, body, share)

    def _predictions(self, body: bytes, coverage: float) -> Any:
        model, (records, alone) = self.engine.model, self.reader.read(body)
        features = model.encoder.features(*self.reader.arrays(records))
        score = model.learner.latent(features)
        low_high_chances: list[Any] = [[None] * len(records)] * 3
        if (calibration := model.calibration) is not None:
            arrays = *calibration.ranges(score, coverage), calibration.probabilities(score)
            low_high_chances = [array.tolist() for array in arrays]
        answers = [
            {
                "grade": self.grades[rank - 1],
                "rank": rank,
                "score": value,
                "range": self._in_grades(low, high),
                "probabilities": chance and dict(zip(self.names, chance, strict=True)),
            }
            | self.reader.unseen(record)
            for rank, value, low, high, chance, record in zip(
                model.ranks(score).tolist(), score.tolist(), *low_high_chances, records, strict=True
            )
        ]
        return answers[0] if alone else answers

    async def learn(self, body: bytes) -> Any:
        """Learn labelled records; the response is sent once they are on disk."""
        records, alone = self.reader.read(body)
        labels = [self.reader.label(one, number) for number, one in enumerate(records, 1)]
        if len(labels) > self.most_waiting:
            message = f"{REQUEST} has {len(labels):,} records; send at most {self.most_waiting:,}"
            raise RequestError(message, 413)
        answers = [
            {
                "event": event.id,
                "predicted": self.grades[(event.predicted or 1) - 1],
                "range": self._in_grades(event.low, event.high),
            }
            | ({} if event.extra == "{}" else msgspec.json.decode(event.extra))
            | self.reader.unseen(record)
            for event, record in zip(await self._queue(labels), records, strict=True)
        ]
        return answers[0] if alone else answers

    def _in_grades(self, low: int | None, high: int | None) -> Any:
        return low and high and [self.starts[low - 1], self.ends[high - 1]]

    async def _queue(self, labels: Sequence[Event]) -> list[Event]:
        """Learn in order, all or nothing; the events are on disk when this returns."""
        if self._ending or self.n_waiting + len(labels) > self.most_waiting:
            raise RequestError(
                f"{self.n_waiting:,} of at most {self.most_waiting:,} rows are waiting to be "
                "learned; try again in a moment",
                UNAVAILABLE,
            )
        future = asyncio.get_running_loop().create_future()
        self.n_waiting += len(labels)
        self._line.append((labels, future))
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._learn_waiting())
        events: list[Event] = await future
        return events

    async def _learn_waiting(self) -> None:
        """Learn until nothing waits, each time as many as wait by then, up to a number of rows."""
        done: Sequence[list[Event] | Exception]
        while self._line:
            some, n_rows = [], 0
            while self._line and n_rows < AT_ONCE:
                some.append(self._line.popleft())
                n_rows += len(some[-1][0])
            try:
                groups = [labels for labels, _ in some]
                done = await asyncio.to_thread(self.engine.learn_groups, groups)
            except Exception as error:
                done = [error] * len(some)
            self.n_waiting -= n_rows
            for (_, future), answer in zip(some, done, strict=True):
                if future.done():  # its request was cancelled
                    continue
                if isinstance(answer, Exception):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)

    def undo(self, body: bytes) -> Any:
        """Undo the label with a key: the model becomes what it is without it."""
        key = decoded(body, UndoRequest).key
        event = self.engine.with_key(key)
        if event is None or event.kind != LEARN:
            raise RequestError(f"there is no label with the key {key!r}", 404)
        return {"event": self.engine.undo(event.id).id, "undone": event.id}

    def model(self) -> Response:
        """Download the current model as a file that every ordspan command accepts."""
        content = to_bytes(self.engine.model)
        named = {"Content-Disposition": 'attachment; filename="model.ordspan"'}
        return Response(content, 200, named, "application/octet-stream")

    def metrics_text(self) -> Response:
        """Rows, error, coverage, latency and queue length, for Prometheus."""
        return Response(self.metrics.text(self.engine.n_events), media_type=CONTENT_TYPE_LATEST)

    async def health(self) -> Any:
        """Whether the service is ready; needs no token."""
        return {"ready": True}

    async def close(self) -> None:
        """Learn the rest of the queue, then release the state folder."""
        self._ending = True
        if self._work is not None:
            await self._work
        self.metrics.close()
        await asyncio.to_thread(self.engine.close)


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

    def count(self, path: str, status: int, seconds: float) -> None:
        """Add a request to the histogram of response times."""
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


def describe(engine: Engine, routes: dict[str, Any]) -> dict[str, Any]:
    """The requests in OpenAPI, from the declared record and an example for the model."""
    example = example_record(engine.model.recipe)
    labelled = example | {"label": some_range(engine.model.classes_), "key": "interview 17"}
    (one, undo), schemas = msgspec.json.schema_components(
        [engine.reader.type, UndoRequest], ref_template="#/components/schemas/{name}"
    )
    either = {"oneOf": [one, {"type": "array", "items": one}]}
    bodies = {
        "/predict": {"schema": either, "example": example},
        "/learn": {"schema": either, "example": labelled},
        "/undo": {"schema": undo, "example": {"key": "interview 17"}},
    }
    paths: dict[str, Any] = {}
    for route, handler in routes.items():
        method, path = route.split()
        about: dict[str, Any] = {"summary": handler.__doc__}
        about["responses"] = {"200": {"description": "Done."}}
        if path in bodies:
            content = {"application/json": bodies[path]}
            about["requestBody"] = {"required": True, "content": content}
        paths[path] = {method.lower(): about}
    info = {
        "title": "ordspan",
        "version": ordspan.__version__,
        "description": "Ordinal predictions with probabilities and ranges, learned online.",
    }
    return {"openapi": "3.1.0", "info": info, "paths": paths, "components": {"schemas": schemas}}
