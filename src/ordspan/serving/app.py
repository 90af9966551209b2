"""The service over HTTP: predict, learn, undo, the model and its metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import partial
from typing import Any

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

import ordspan
from ordspan.learners.rows import RowValueError
from ordspan.models.file import to_bytes
from ordspan.models.table import TableModel
from ordspan.serving.engine import Engine
from ordspan.serving.guard import MAX_BODY_BYTES, Guard
from ordspan.serving.log import Event
from ordspan.serving.metrics import CONTENT_TYPE, Metrics
from ordspan.serving.models import COVERAGE
from ordspan.serving.records import (
    REQUEST,
    Key,
    RecordReader,
    Rows,
    check_names,
    decoded,
    example_record,
    some_range,
)
from ordspan.serving.responses import application, as_json
from ordspan.serving.service import MOST_WAITING, Service
from ordspan.tables.rows import RowError
from ordspan.wording import LONGEST_SHOWN, brief

HEALTH, DOCS = "/health", "/openapi.json"
MANY_BYTES = 1 << 17
"""Larger bodies are processed in a thread, so that small ones are not delayed."""


class UndoRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Request to undo a label."""

    key: Key


def make_app(
    engine: Engine,
    *,
    token: str | None = None,
    most_waiting: int = MOST_WAITING,
    most_bytes: int = MAX_BODY_BYTES,
) -> Guard:
    """The application of ``ordspan serve``.

    Parameters
    ----------
    engine : Engine
        The model and its log; closed on shutdown.
    token : str, optional
        Bearer token required for every request except the health check.
    most_waiting : int
        Most rows that may wait to be learned.
    most_bytes : int
        Largest request body in bytes.

    Returns
    -------
    Guard
        An ASGI application.
    """
    check_names(engine.model.recipe)
    service = Service(engine, most_waiting=most_waiting)
    handlers = Handlers(service)

    routes = [
        Route("/predict", handlers.predict, methods=["POST"]),
        Route("/learn", handlers.learn, methods=["POST"]),
        Route("/undo", handlers.undo, methods=["POST"]),
        Route("/model", handlers.model),
        Route("/metrics", handlers.metrics_text),
        Route(HEALTH, handlers.health),
    ]
    about = describe(engine, routes)
    paths = [*about["paths"], DOCS]
    metrics = handlers.metrics = Metrics(engine, paths, lambda: service.n_waiting)
    engine.learned = metrics.learned
    routes += [
        Route(
            "/", lambda _: as_json(about["info"] | {"docs": DOCS, "requests": [*about["paths"]]})
        ),
        Route("/docs", lambda _: RedirectResponse(DOCS)),
        Route(DOCS, lambda _: as_json(about)),
    ]
    app = application(routes, service.close)
    app.router.redirect_slashes = False
    return Guard(app, token=token, public=[HEALTH], observe=metrics.asked, most_bytes=most_bytes)


class Handlers:
    """What is done with each request."""

    metrics: Metrics

    def __init__(self, service: Service) -> None:
        self.service, self.engine = service, service.engine
        self.reader: RecordReader = service.engine.reader

    async def predict(self, request: Request) -> Response:
        """Predict grade, probabilities and range of a record or a list of records."""
        text = check_parameters(request, "coverage").get("coverage", COVERAGE)
        try:
            coverage = float(text)
        except ValueError:
            raise RowError(f"{REQUEST}: coverage is {brief(text)}, not a number") from None
        model = self.engine.model

        def work(body: bytes) -> Response:
            rows, alone = self.reader.read(model.encoder, body, labelled=False)
            with refusals():
                answers = predictions(model, self.reader, rows, coverage)
            return as_json(answers[0] if alone else answers)

        return await _process(work, await request.body())

    async def learn(self, request: Request) -> Response:
        """Learn labelled records; the response is sent once they are on disk."""
        check_parameters(request)
        read = partial(self.reader.read, self.engine.model.encoder, labelled=True)
        rows, alone = await _process(read, await request.body())
        if len(rows) > (most := self.service.most_waiting):
            raise HTTPException(413, f"{REQUEST} has {len(rows):,} records; send at most {most:,}")
        with refusals():
            events = await self.service.learn(rows)
        grades = self.engine.model.classes_.tolist()
        answers = [
            _confirmed(grades, event) | _if_any("unseen", self.reader.unseen(row))
            for event, row in zip(events, rows.values, strict=True)
        ]
        return as_json(answers[0] if alone else answers)

    async def undo(self, request: Request) -> Response:
        """Undo the label with a key: the model becomes what it is without it."""
        check_parameters(request)
        asked = decoded(await request.body(), UndoRequest)
        event = await run_in_threadpool(self.engine.undo_key, asked.key)
        return as_json({"event": event.id, "undone": event.undoes})

    async def model(self, request: Request) -> Response:
        """Download the current model as a file that every ordspan command accepts."""
        content = await run_in_threadpool(to_bytes, self.engine.model)
        named = {"Content-Disposition": 'attachment; filename="model.ordspan"'}
        return Response(content, 200, named, "application/octet-stream")

    async def health(self, request: Request) -> Response:
        """Whether the service is ready; needs no token."""
        return as_json({"ready": True})

    async def metrics_text(self, request: Request) -> Response:
        """Rows, error, coverage, latency and queue length, for Prometheus."""
        return Response(self.metrics.text(), media_type=CONTENT_TYPE)


async def _process(work: Callable[[bytes], Any], body: bytes) -> Any:
    return work(body) if len(body) <= MANY_BYTES else await run_in_threadpool(work, body)


@contextmanager
def refusals() -> Any:
    """Report value errors of the model, such as an uncalibrated coverage, as errors of the request.

    Subclasses keep their own meaning.
    """
    try:
        yield
    except ValueError as error:
        if type(error) not in (ValueError, RowValueError):
            raise
        raise RowError(f"{REQUEST}: {error}") from None


def check_parameters(request: Request, *known: str) -> Mapping[str, str]:
    """Parameters in the address; an unknown one is refused, as it would have no effect."""
    given = request.query_params if request.scope["query_string"] else {}
    for name in given:
        if name not in known:
            alike = get_close_matches(name[:LONGEST_SHOWN], known, 1, 0.7)
            way_out = f"did you mean {alike[0]}?" if alike else "remove it"
            raise RowError(f"{REQUEST}: unknown parameter {brief(name)}; {way_out}")
    return given


def predictions(
    model: TableModel, reader: RecordReader, rows: Rows, coverage: float
) -> list[dict[str, Any]]:
    """Predictions for rows, in grades."""
    answer, calibration = (
        model.answer(model.encoder.features(rows.X, rows.table)),
        model.calibration,
    )
    grades = model.classes_.tolist()
    names = [str(grade) for grade in grades]
    calibrated: list[list[Any]] = [[None] * len(rows)] * 3
    if calibration is not None:
        low_high = calibration.ranges(answer.score, coverage)
        chances = calibration.probabilities(answer.score)
        calibrated = [array.tolist() for array in (*low_high, chances)]
    return [
        {
            "grade": grades[rank - 1],
            "rank": rank,
            "score": score,
            "range": _in_grades(grades, low, high),
            "probabilities": chance and dict(zip(names, chance, strict=True)),
        }
        | _if_any("unseen", reader.unseen(row))
        for rank, score, low, high, chance, row in zip(
            answer.rank.tolist(), answer.score.tolist(), *calibrated, rows.values, strict=True
        )
    ]


def _if_any(name: str, values: dict[str, Any]) -> dict[str, Any]:
    return {name: values} if values else {}


def _in_grades(grades: Sequence[Any], low: int | None, high: int | None) -> list[Any] | None:
    return None if low is None or high is None else [grades[low - 1], grades[high - 1]]


def _confirmed(grades: Sequence[Any], event: Event) -> dict[str, Any]:
    """Response to a label: its event number, and the prediction made before learning it."""
    assert event.predicted is not None
    answer = {
        "event": event.id,
        "predicted": grades[event.predicted - 1],
        "range": _in_grades(grades, event.low, event.high),
    }
    return answer if event.extra == "{}" else answer | msgspec.json.decode(event.extra)


def describe(engine: Engine, routes: Sequence[Route]) -> dict[str, Any]:
    """The requests in OpenAPI, from the declared record and an example for the model."""
    model, reader = engine.model, engine.reader
    example = example_record(model.recipe)
    labelled = example | {"label": some_range(model.classes_), "key": "interview 17"}
    record = dict[str, Any] if model.recipe.n_sparse else reader.type
    (one, undo), schemas = msgspec.json.schema_components(
        [record, UndoRequest], ref_template="#/components/schemas/{name}"
    )
    either = {"oneOf": [one, {"type": "array", "items": one}]}
    bodies = {
        "/predict": {"schema": either, "example": example},
        "/learn": {"schema": either, "example": labelled},
        "/undo": {"schema": undo, "example": {"key": "interview 17"}},
    }
    paths: dict[str, Any] = {}
    for route in routes:
        text = (route.endpoint.__doc__ or "").strip()
        about: dict[str, Any] = {"summary": text, "responses": {"200": {"description": "Done."}}}
        if body := bodies.get(route.path):
            about["requestBody"] = {"required": True, "content": {"application/json": body}}
        paths[route.path] = {"post" if body else "get": about}
    info = {
        "title": "ordspan",
        "version": ordspan.__version__,
        "description": "Ordinal predictions with probabilities and ranges, learned online.",
    }
    return {
        "openapi": "3.1.0",
        "info": info,
        "paths": paths,
        "components": {"schemas": schemas},
    }
