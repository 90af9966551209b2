"""The annotation pages and their HTTP API."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import FileResponse
from msgspec import Meta, Struct

from ordspan.serving.annotate.history import Extra, Guess
from ordspan.serving.annotate.session import MissingError, Session
from ordspan.serving.engine import KeyConflictError
from ordspan.serving.guard import Guard
from ordspan.serving.log import LogError
from ordspan.serving.records import BodyError, decoded
from ordspan.serving.responses import add_error_handlers, as_json
from ordspan.tables.rows import RowError
from ordspan.wording import as_text

PAGES = {"/": "annotate.html", "/progress": "progress.html"}
KINDS = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
LONGEST_BODY = 1 << 16
STATUSES = {
    MissingError: 404,
    KeyConflictError: 409,
    RowError: 422,
    LogError: 503,
    BodyError: 400,
}

Name = Annotated[str, Meta(min_length=1, max_length=100)]
Key = Annotated[str, Meta(min_length=1, max_length=200)]
Index = Annotated[int, Meta(ge=0, lt=2**53)]
Rank = Annotated[int, Meta(ge=1, lt=2**31)]
Seconds = Annotated[float, Meta(ge=0, le=1e6)]
AskedBy = Literal["random", "widest"]


class NextRequest(Struct):
    """Request for the next item."""

    annotator: Name
    folder: str | None = None
    skip_items: Annotated[list[Index], Meta(max_length=1000)] = []


class UndoRequest(Struct):
    """Request to undo the last answer or skip."""

    key: Key
    annotator: Name
    folder: str | None = None


class Shown(Struct):
    """The guess sent with an item."""

    lower: Rank
    upper: Rank
    grade: Rank | None = None


class SkipRequest(Struct):
    """Request to skip an item."""

    key: Key
    annotator: Name
    item: Index
    folder: str | None = None
    seconds: Seconds | None = None
    asked_by: AskedBy = "random"


class AnswerRequest(Struct):
    """An answer."""

    key: Key
    annotator: Name
    item: Index
    lower: Rank
    upper: Rank
    folder: str | None = None
    seconds: Seconds | None = None
    asked_by: AskedBy = "random"
    guess: Shown | None = None
    shown: bool = False
    via: Literal["slider", "higher", "lower"] = "slider"


def make_app(session: Session, *, title: str, question: str, token: str | None = None) -> Guard:
    """The application of ``ordspan annotate``.

    Parameters
    ----------
    session : Session
        Selects items and learns answers; its engine is closed on shutdown.
    title, question : str
        Texts shown above the items.
    token : str, optional
        Bearer token required for every request except the pages themselves.

    Returns
    -------
    Guard
        An ASGI application.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(session.engine.close)

    app = FastAPI(
        title="ordspan", docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan
    )
    app.state.folder = f"{session.settings.digest[:16]}-{session.settings.seed}"
    add_error_handlers(app, STATUSES)
    _add_questions(app, session, title, question)
    _add_answers(app, session)
    public = _add_pages(app)
    return Guard(app, token=token, public=public, most_bytes=LONGEST_BODY)


async def read(request: Request, kind: type[Any]) -> Any:
    """Decode and validate the body of a request."""
    asked = decoded(await request.body(), kind)
    folder = request.app.state.folder
    if asked.folder not in (None, folder):
        raise KeyConflictError(
            "this page belongs to other items than those that are served now; reload the page"
        )
    asked.annotator = asked.annotator.strip()
    if not asked.annotator or as_text(asked.annotator) != asked.annotator:
        raise HTTPException(
            422, "the annotator's name must have visible characters and no control characters"
        )
    return asked


def _add_questions(app: FastAPI, session: Session, title: str, question: str) -> None:
    @app.get("/api/task")
    async def task() -> Response:
        grades = [str(grade) for grade in session.settings.grades]
        shown: dict[str, Any] = {"title": title, "grades": grades, "question": question}
        shown |= {"n_items": len(session.items), "folder": app.state.folder}
        return as_json(shown)

    @app.post("/api/next")
    async def ask(request: Request) -> Response:
        asked: NextRequest = await read(request, NextRequest)
        return as_json(await run_in_threadpool(session.ask, asked.annotator, asked.skip_items))

    @app.get("/api/progress")
    async def progress() -> Response:
        return as_json(await run_in_threadpool(session.progress))

    @app.get("/api/image/{item}/{cell}")
    async def image(item: str, cell: str) -> Response:
        places = [int(n) for n in (item, cell) if n.isascii() and n.isdecimal() and len(n) < 10]
        found = await run_in_threadpool(session.items.image, *places) if len(places) == 2 else None
        if found is None:
            raise HTTPException(404, "there is no image")
        return FileResponse(found[0], media_type=found[1])


def _add_answers(app: FastAPI, session: Session) -> None:
    last = len(session.settings.grades)

    @app.post("/api/answer")
    async def answer(request: Request) -> Response:
        given: AnswerRequest = await read(request, AnswerRequest)
        for end in (given, given.guess):
            if end is not None and not end.lower <= end.upper <= last:
                raise HTTPException(
                    422, f"{end.lower} to {end.upper} is not a range of ranks from 1 to {last}"
                )
        guess = None
        if given.guess is not None:
            middle = (given.guess.lower + given.guess.upper) // 2
            grade = min(given.guess.grade or middle, last)
            guess = Guess(given.guess.lower, given.guess.upper, grade)
        extra = Extra(
            given.item,
            given.annotator,
            given.seconds,
            given.asked_by,
            guess,
            given.shown,
            given.via,
        )
        saved = await run_in_threadpool(session.answer, given.key, given.lower, given.upper, extra)
        return as_json(saved)

    @app.post("/api/skip")
    async def skip(request: Request) -> Response:
        given: SkipRequest = await read(request, SkipRequest)
        extra = Extra(given.item, given.annotator, given.seconds, given.asked_by)
        return as_json(await run_in_threadpool(session.skip, given.key, extra))

    @app.post("/api/undo")
    async def undo(request: Request) -> Response:
        given: UndoRequest = await read(request, UndoRequest)
        return as_json(await run_in_threadpool(session.undo, given.key, given.annotator))


def _add_pages(app: FastAPI) -> list[str]:
    """Serve the static files of the pages; returns their paths."""
    folder = files("ordspan.serving.annotate") / "pages"
    served = {f"/static/{file.name}": file.name for file in folder.iterdir()} | PAGES

    def page(name: str) -> Callable[[], Any]:
        content, kind = (folder / name).read_bytes(), KINDS[Path(name).suffix]

        async def send() -> Response:
            return Response(content, media_type=kind)

        return send

    for path, name in served.items():
        app.get(path)(page(name))
    return list(served)
