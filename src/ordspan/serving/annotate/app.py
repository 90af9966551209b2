"""The annotation pages and their HTTP API."""

from __future__ import annotations

import unicodedata
from functools import partial
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from ordspan.serving.annotate.history import Extra, Guess
from ordspan.serving.annotate.session import Session
from ordspan.serving.engine import KeyConflictError
from ordspan.serving.guard import Guard
from ordspan.serving.records import REQUEST, Key, decoded
from ordspan.serving.responses import application, as_json
from ordspan.tables.rows import RowError

PAGES = {"/": "annotate.html", "/progress": "progress.html"}
KINDS = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
LONGEST_BODY = 1 << 16

Name = Annotated[str, Meta(min_length=1, max_length=100)]
Index = Annotated[int, Meta(ge=0, lt=2**53)]
Rank = Annotated[int, Meta(ge=1, lt=2**31)]
Seconds = Annotated[float, Meta(ge=0, le=1e6)]
AskedBy = Literal["random", "widest"]


class FromPage(Struct, kw_only=True):
    """What every request of a page says."""

    annotator: Name
    folder: str | None = None


class NextRequest(FromPage, kw_only=True):
    """Request for the next item."""

    skip_items: Annotated[list[Index], Meta(max_length=1000)] = []


class UndoRequest(FromPage, kw_only=True):
    """Request to undo the last answer or skip."""

    key: Key


class Shown(Struct):
    """The guess sent with an item."""

    lower: Rank
    upper: Rank
    grade: Rank | None = None


class SkipRequest(UndoRequest, kw_only=True):
    """Request to skip an item."""

    item: Index
    seconds: Seconds | None = None
    asked_by: AskedBy = "random"


class AnswerRequest(SkipRequest, kw_only=True):
    """An answer."""

    lower: Rank
    upper: Rank
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
    handlers, pages = Handlers(session, title, question), page_routes()
    routes = [
        Route("/api/task", handlers.task),
        Route("/api/progress", handlers.progress),
        Route("/api/image/{item}/{cell}", handlers.image),
        Route("/api/next", handlers.ask, methods=["POST"]),
        Route("/api/answer", handlers.answer, methods=["POST"]),
        Route("/api/skip", handlers.skip, methods=["POST"]),
        Route("/api/undo", handlers.undo, methods=["POST"]),
    ]
    close = partial(run_in_threadpool, session.engine.close)
    public = [page.path for page in pages]
    app = application([*routes, *pages], close)
    return Guard(app, token=token, public=public, most_bytes=LONGEST_BODY)


class Handlers:
    """What is done with each request of the pages."""

    def __init__(self, session: Session, title: str, question: str) -> None:
        self.session = session
        self.folder = f"{session.settings.digest[:16]}-{session.settings.seed}"
        grades = [str(grade) for grade in session.settings.grades]
        self._task: dict[str, Any] = {"title": title, "grades": grades, "question": question}
        self._task |= {"n_items": len(session.items), "folder": self.folder}

    async def read(self, request: Request, kind: type[Any]) -> Any:
        """Decode and validate the body of a request."""
        content = decoded(await request.body())
        try:
            asked = msgspec.convert(content, kind)
        except msgspec.ValidationError as error:
            raise RowError(f"{REQUEST}: {error}") from None
        if asked.folder not in (None, self.folder):
            raise KeyConflictError(
                "this page belongs to other items than those that are served now; reload the page"
            )
        asked.annotator = asked.annotator.strip()
        if not is_visible(asked.annotator):
            raise RowError(
                "the annotator's name must have visible characters and no control characters"
            )
        return asked

    async def task(self, request: Request) -> Response:
        """The title, the question and the grades."""
        return as_json(self._task)

    async def progress(self, request: Request) -> Response:
        """The numbers of the progress page."""
        return as_json(await run_in_threadpool(self.session.progress))

    async def image(self, request: Request) -> Response:
        """An image of an item, by the numbers of the item and the cell."""
        words = request.path_params.values()
        places = [int(n) for n in words if n.isascii() and n.isdecimal() and len(n) < 10]
        find = self.session.items.image
        found = await run_in_threadpool(find, *places) if len(places) == 2 else None
        if found is None:
            raise HTTPException(404, "there is no image")
        return FileResponse(found[0], media_type=found[1])

    async def ask(self, request: Request) -> Response:
        """The next item for an annotator."""
        asked: NextRequest = await self.read(request, NextRequest)
        question = await run_in_threadpool(self.session.ask, asked.annotator, asked.skip_items)
        return as_json(question)

    async def answer(self, request: Request) -> Response:
        """Learn an answer."""
        given: AnswerRequest = await self.read(request, AnswerRequest)
        last = len(self.session.settings.grades)
        for end in (given, given.guess):
            if end is not None and not end.lower <= end.upper <= last:
                raise RowError(f"{end.lower} to {end.upper} is not a range of ranks 1 to {last}")
        guess = None
        if (sent := given.guess) is not None:
            grade = min(sent.grade or (sent.lower + sent.upper) // 2, last)
            guess = Guess(sent.lower, sent.upper, grade)
        about = (given.seconds, given.asked_by, guess, given.shown, given.via)
        extra = Extra(given.item, given.annotator, *about)
        answer = self.session.answer
        return as_json(await run_in_threadpool(answer, given.key, extra, given.lower, given.upper))

    async def skip(self, request: Request) -> Response:
        """Record a skip."""
        given: SkipRequest = await self.read(request, SkipRequest)
        extra = Extra(given.item, given.annotator, given.seconds, given.asked_by)
        return as_json(await run_in_threadpool(self.session.answer, given.key, extra))

    async def undo(self, request: Request) -> Response:
        """Undo the last answer or skip of an annotator."""
        given: UndoRequest = await self.read(request, UndoRequest)
        return as_json(await run_in_threadpool(self.session.undo, given.key, given.annotator))


def is_visible(name: str) -> bool:
    """Whether a name has only letters, marks, digits, signs and spaces between them.

    >>> is_visible("Ann Lee"), is_visible("Ann\\u200b"), is_visible("\\x1b[31m"), is_visible("")
    (True, False, False, False)
    """
    return bool(name) and all(
        char == " " or unicodedata.category(char)[0] in "LMNPS" for char in name
    )


def page_routes() -> list[Route]:
    """The static files of the pages."""
    folder = files("ordspan.serving.annotate") / "pages"
    served = {f"/static/{file.name}": file.name for file in folder.iterdir()} | PAGES
    return [Route(path, partial(_send, folder / name)) for path, name in served.items()]


async def _send(file: Traversable, request: Request) -> Response:
    return Response(file.read_bytes(), media_type=KINDS[Path(file.name).suffix])
