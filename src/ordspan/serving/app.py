"""The service over HTTP: predict, learn, undo, the model and its metrics.

A label: checked by `Application`, decoded into the record of the model, queued, learned with all
that wait, logged, published, answered with what was predicted before.
"""

import asyncio
from collections.abc import Sequence
from threading import Lock
from typing import Any

import msgspec
import prometheus_client as prometheus
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

import ordspan
from ordspan.labels.amounts import range_ends
from ordspan.models.file import to_bytes
from ordspan.serving.engine import COVERAGE, Engine, outliers
from ordspan.serving.http import UNAVAILABLE, Application, always
from ordspan.serving.log import LEARN, Event
from ordspan.serving.records import REQUEST, Key, RequestError, decoded, example_record, some_range
from ordspan.wording import brief

HEALTH, DOCS = "/health", "/openapi.json"
MANY_BYTES = 1 << 17  # larger bodies are predicted in a thread, so that small ones are not delayed
MOST_WAITING = 20_000
BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
COUNTERS = {
    "ordspan_learned_rows": "Rows learned.",
    "ordspan_absolute_error": "Sum of the distances in grades from the prediction before learning "
    "to the label.",
    "ordspan_range_contains_label": "Rows whose whole label lay in the predicted range at 90%.",
    "ordspan_range_meets_label": "Rows whose label shared a grade with that range.",
}
"""The sums that `Log.totals` returns, in its order."""

prometheus.disable_created_metrics()  # one extra line per metric with the start time of the process


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
        "GET /metrics": service.metrics,
        f"GET {HEALTH}": service.health,
    }
    about = describe(engine, routes)
    welcome = about["info"] | {"docs": DOCS, "requests": [*about["paths"]]}
    for path, content in (("/", welcome), ("/docs", RedirectResponse(DOCS)), (DOCS, about)):
        routes[f"GET {path}"] = always(content)
    return Application(routes, service.close, token=token, public=[HEALTH], observe=service.observe)


class Service:
    """What is done with each request, the queue of labels, and the metrics.

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
        self.n_waiting = 0
        self._line: list[tuple[Sequence[Event], asyncio.Future[Any]]] = []
        self._work: asyncio.Task[None] | None = None
        r = self._registry = prometheus.CollectorRegistry()
        self._counters = [prometheus.Counter(*named, registry=r) for named in COUNTERS.items()]
        self._counted, self._counting = 0, Lock()  # the last event that they count
        queue = prometheus.Gauge("ordspan_queue_rows", "Rows waiting to be learned.", registry=r)
        queue.set_function(lambda: self.n_waiting)
        named = "ordspan_request_seconds", "Time to respond.", ["path", "status"]
        self._seconds = prometheus.Histogram(*named, registry=r, buckets=BUCKETS)

    async def predict(self, body: bytes, *, coverage: str = str(COVERAGE)) -> Any:
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
        X, table = self.reader.arrays(records)
        X, notes = outliers(model, X)
        score = model.learner.latent(model.encoder.features(X, table))
        calibration = model.calibration
        low_high, chances = calibration.ranges(score, coverage), calibration.probabilities(score)
        arrays = calibration.predict(score), score, *low_high, chances
        answers = [
            {
                "grade": self.grades[rank - 1],
                "rank": rank,
                "score": value,
                "range": [self.starts[low - 1], self.ends[high - 1]],
                "probabilities": dict(zip(self.names, chance, strict=True)),
                **notes.get(row, {}),
            }
            | self.reader.unseen(record)
            for (row, record), rank, value, low, high, chance in zip(
                enumerate(records), *(array.tolist() for array in arrays), strict=True
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
                "predicted": self.grades[event.predicted - 1],
                "range": [self.starts[event.low - 1], self.ends[event.high - 1]],
            }
            | ({} if event.extra == "{}" else msgspec.json.decode(event.extra))
            | self.reader.unseen(record)
            for event, record in zip(await self._queue(labels), records, strict=True)
        ]
        return answers[0] if alone else answers

    async def _queue(self, labels: Sequence[Event]) -> list[Event]:
        """Learn in order, all or nothing; the events are on disk when this returns."""
        if self.n_waiting + len(labels) > self.most_waiting:
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
        done: list[Event] | Exception = await future
        if isinstance(done, Exception):
            raise done
        return done

    async def _learn_waiting(self) -> None:
        """Learn until nothing waits, each time all that wait by then."""
        while self._line:
            some, self._line = self._line, []
            groups = [labels for labels, _ in some]
            learned = await asyncio.to_thread(self.engine.learn_groups, groups)
            self.n_waiting -= sum(map(len, groups))
            for (_, future), done in zip(some, learned, strict=True):
                if not future.done():  # or its request was cancelled
                    future.set_result(done)

    def undo(self, body: bytes) -> Any:
        """Undo the label with a key: the model becomes what it would be without it."""
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

    def observe(self, path: str, status: int, seconds: float) -> None:
        """Add a request to the histogram of response times."""
        self._seconds.labels(path, str(status)).observe(seconds)

    def metrics(self) -> Response:
        """Rows, error, coverage, latency and queue length, for Prometheus."""
        with self._counting:
            last = self.engine.log.last
            totals = self.engine.log.totals(self._counted, last)
            for counter, total in zip(self._counters, totals, strict=True):
                counter.inc(total)
            self._counted = last
        text = prometheus.generate_latest(self._registry)
        return Response(text, media_type=prometheus.CONTENT_TYPE_LATEST)

    async def health(self) -> Any:
        """Whether the service is ready; needs no token."""
        return {"ready": True}

    async def close(self) -> None:
        """Learn the rest of the queue, then release the state folder."""
        if self._work is not None:
            await self._work
        await asyncio.to_thread(self.engine.close)


def describe(engine: Engine, routes: dict[str, Any]) -> dict[str, Any]:
    """The requests in OpenAPI, from the declared record and an example for the model."""
    example = example_record(engine.model.recipe)
    labelled = example | {"label": some_range(engine.model.classes_), "key": "interview 17"}
    (one, undo), schemas = msgspec.json.schema_components(
        [engine.reader.type, UndoRequest], ref_template="#/components/schemas/{name}"
    )
    one_or_list = {"oneOf": [one, {"type": "array", "items": one}]}
    bodies = {
        "/predict": {"schema": one_or_list, "example": example},
        "/learn": {"schema": one_or_list, "example": labelled},
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
