"""The service over HTTP: predict, learn, the model and its metrics."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from difflib import get_close_matches
from typing import Any

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.concurrency import run_in_threadpool

import ordspan
from ordspan.models.file import to_bytes
from ordspan.models.table import TableModel
from ordspan.serving.engine import Checked, Engine, KeyConflictError, Lesson
from ordspan.serving.guard import MAX_BODY_BYTES, Guard
from ordspan.serving.labels import LabelParser, key_of, some_range
from ordspan.serving.log import Event, LogError
from ordspan.serving.metrics import CONTENT_TYPE, Metrics
from ordspan.serving.models import COVERAGE, predict_batch
from ordspan.serving.offload import Offload
from ordspan.serving.records import (
    KEY,
    LABEL_NAMES,
    MAX_ROWS,
    REQUEST,
    BodyError,
    batch_of,
    check_names,
    decoded,
    example_record,
    refusals,
    values_of,
)
from ordspan.serving.responses import add_error_handlers, as_json
from ordspan.serving.service import MOST_WAITING, BusyError, Service
from ordspan.tables.encoder import Recipe
from ordspan.tables.rows import RowError
from ordspan.wording import LONGEST_SHOWN, brief

STATUSES = {
    RowError: 422,
    KeyConflictError: 409,
    BusyError: 503,
    LogError: 503,
    BodyError: 400,
}
HEALTH = "/health"
PATHS = ("/predict", "/learn", "/model", "/metrics", HEALTH, "/openapi.json")


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
    metrics = Metrics(engine, PATHS, lambda: service.n_waiting)
    service.learned = metrics.learned

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(service.close)

    app = FastAPI(
        title="ordspan",
        version=ordspan.__version__,
        description="Ordinal predictions with probabilities and ranges, learned online.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    add_error_handlers(app, STATUSES)
    _add_service_routes(app, service, metrics, Offload())
    return Guard(app, token=token, public=[HEALTH], observe=metrics.asked, most_bytes=most_bytes)


def read_records(body: bytes, most: int = MAX_ROWS) -> tuple[list[dict[str, Any]], bool]:
    """Records of a request body, and whether it was a single record instead of a list."""
    content = decoded(body)
    records = content if isinstance(content, list) else [content]
    if not records:
        raise RowError(f"{REQUEST} is an empty list; send at least one record")
    if len(records) > most:
        raise HTTPException(413, f"{REQUEST} has {len(records):,} records; send at most {most:,}")
    for number, record in enumerate(records, 1):
        if not isinstance(record, dict):
            raise RowError(
                f"{REQUEST}, record {number}: {brief(record)} is not an object with a value for "
                "each column"
            )
    return records, records is not content


def check_parameters(request: Request, *known: str) -> None:
    """Refuse an unknown parameter in the address: a misspelled one would have no effect."""
    for name in request.query_params:
        if name not in known:
            alike = get_close_matches(name[:LONGEST_SHOWN], known, 1, 0.7)
            way_out = f"did you mean {alike[0]}?" if alike else "remove it"
            raise RowError(f"{REQUEST}: unknown parameter {brief(name)}; {way_out}")


def _add_service_routes(app: FastAPI, service: Service, metrics: Metrics, offload: Offload) -> None:
    engine, labels = service.engine, LabelParser(service.engine.model.classes_)
    grades = engine.model.classes_.tolist()
    most = min(MAX_ROWS, service.most_waiting)
    example = example_record(engine.model.recipe)
    labelled = {"label": some_range(engine.model.classes_), "key": "interview 17"}

    @app.post("/predict", openapi_extra=_body(example))
    async def predict(request: Request, coverage: float = COVERAGE) -> Response:
        """Predict grade, probabilities and range of a record or a list of records."""
        check_parameters(request, "coverage")

        def work(body: bytes) -> Response:
            records, alone = read_records(body)
            found = predict_records(engine.model, records, coverage)
            return as_json(found[0] if alone else found)

        return await offload(work, await request.body())

    @app.post("/learn", openapi_extra=_body(example | labelled))
    async def learn(request: Request) -> Response:
        """Learn labelled records; the response is sent once they are on disk."""
        check_parameters(request)

        def work(body: bytes) -> tuple[Checked, bool]:
            records, alone = read_records(body, most)
            lessons = [lesson_of(engine.model.recipe, labels, *r) for r in enumerate(records, 1)]
            return engine.checked(lessons), alone

        checked, alone = await offload(work, await request.body())
        with refusals():
            events = await service.learn(checked)
        done = [_confirmed(grades, event) for event in events]
        return as_json(done[0] if alone else done)

    @app.get("/model", response_class=Response)
    async def model() -> Response:
        """Download the current model as a file that every ordspan command accepts."""
        content = await run_in_threadpool(to_bytes, engine.model)
        named = {"Content-Disposition": 'attachment; filename="model.ordspan"'}
        return Response(content, 200, named, "application/octet-stream")

    @app.get(HEALTH)
    async def health() -> Response:
        """Whether the service is ready; needs no token."""
        return as_json({"ready": True})

    @app.get("/metrics", response_class=Response)
    async def metrics_text() -> Response:
        """Rows, error, coverage, latency and queue length, for Prometheus."""
        return Response(metrics.text(), media_type=CONTENT_TYPE)


def _body(example: Any) -> dict[str, Any]:
    """The body of a request in OpenAPI, by an example for the model."""
    content = {"application/json": {"example": example}}
    return {"requestBody": {"required": True, "content": content}}


def lesson_of(recipe: Recipe, labels: LabelParser, number: int, record: dict[str, Any]) -> Lesson:
    """Split a labelled record into values, label and key."""
    label = {name: record.pop(name) for name in LABEL_NAMES if name in record}
    key = key_of(record.pop(KEY, None), number)
    return Lesson(values_of(recipe, record, number), *labels.ends(label, number), key)


def predict_records(
    model: TableModel, records: Sequence[Mapping[str, Any]], coverage: float
) -> list[dict[str, Any]]:
    """Predictions for records, in grades."""
    recipe, calibration = model.recipe, model.calibration
    rows = [values_of(recipe, record, number) for number, record in enumerate(records, 1)]
    batch = batch_of(model.encoder, rows)
    with refusals():
        predicted = predict_batch(model, batch, coverage)
    grades = model.classes_.tolist()
    names = [str(grade) for grade in grades]
    chances = None if calibration is None else calibration.probabilities(predicted.score).tolist()
    found = []
    for row, (rank, score) in enumerate(
        zip(predicted.rank.tolist(), predicted.score.tolist(), strict=True)
    ):
        _, low, high = predicted.ranks(row)
        found.append(
            {
                "grade": grades[rank - 1],
                "rank": rank,
                "score": score,
                "range": _in_grades(grades, low, high),
                "probabilities": chances and dict(zip(names, chances[row], strict=True)),
            }
        )
    return found


def _in_grades(grades: Sequence[Any], low: int | None, high: int | None) -> list[Any] | None:
    return None if low is None or high is None else [grades[low - 1], grades[high - 1]]


def _confirmed(grades: Sequence[Any], event: Event) -> dict[str, Any]:
    """Response to a label: its event number, and the prediction made before learning it."""
    assert event.predicted is not None
    return {
        "event": event.id,
        "predicted": grades[event.predicted - 1],
        "range": _in_grades(grades, event.low, event.high),
    }
