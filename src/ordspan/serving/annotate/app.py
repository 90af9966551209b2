"""The annotation pages and their HTTP API."""

from __future__ import annotations

from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from ordspan.serving.annotate.session import Note, Rank, Session, progress
from ordspan.serving.http import Application
from ordspan.serving.records import Key, RequestError, decoded

PAGES = {"/": "annotate.html", "/progress": "progress.html"}
KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
KINDS |= {".svg": "image/svg+xml"}


class NextRequest(msgspec.Struct, kw_only=True):
    """Who asks for an item, and for which state folder, so that an old page notices."""

    annotator: str
    folder: str | None = None


class UndoRequest(NextRequest, kw_only=True):
    """Request to undo the last answer or skip."""

    key: Key


class AnswerRequest(Note, frozen=True, kw_only=True):
    """An answer; a skip has no ends."""

    key: Key
    folder: str | None = None
    lower: Rank | None
    upper: Rank | None


def make_app(
    session: Session, *, title: str, question: str, token: str | None = None
) -> Application:
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
    Application
        An ASGI application.
    """
    page, folder = Page(session, title, question), files("ordspan.serving.annotate") / "pages"
    static = {f"/static/{file.name}": file.name for file in folder.iterdir()} | PAGES
    routes: dict[str, Any] = {
        "GET /api/task": page.task,
        "GET /api/progress": page.progress,
        "GET /api/image": page.image,
        "POST /api/next": page.ask,
        "POST /api/answer": page.answer,
        "POST /api/undo": page.undo,
    }
    for path, name in static.items():
        content, kind = (folder / name).read_bytes(), KINDS[Path(name).suffix]
        routes[f"GET {path}"] = Response(content, media_type=kind)
    close = partial(run_in_threadpool, session.engine.close)
    return Application(routes, close, token=token, public=static)


class Page:
    """What is done with each request of the pages."""

    def __init__(self, session: Session, title: str, question: str) -> None:
        self.session = session
        self.folder, grades = str(session.folder.seed), [str(grade) for grade in session.grades]
        self.task: dict[str, Any] = {"title": title, "grades": grades, "question": question}
        self.task |= {"n_items": len(session.items), "folder": self.folder}

    def read(self, body: bytes, kind: type[Any]) -> Any:
        """Decode and validate the body of a request."""
        request = decoded(body, kind)
        if request.folder not in (None, self.folder):
            raise RequestError(
                "this page belongs to other items than those that are served now; reload the page",
                409,
            )
        if not request.annotator.isprintable() or not request.annotator.strip():
            raise RequestError(
                "the annotator's name must have visible characters and no control characters"
            )
        return request

    def progress(self) -> Any:
        """The numbers of the progress page."""
        with self.session.lock:
            return progress(self.session.history, self.session.items.encoder.recipe)

    def image(self, item: str = "", cell: str = "") -> Response:
        """An image of an item, by the numbers of the item and the cell."""
        places = [int(n) for n in (item, cell) if n.isascii() and n.isdecimal() and len(n) < 10]
        image = self.session.items.image(*places) if len(places) == 2 else None
        if image is None:
            raise RequestError("there is no image", 404)
        return Response(image[0], media_type=image[1])

    def ask(self, body: bytes) -> Any:
        """The next item for an annotator."""
        return self.session.ask(self.read(body, NextRequest).annotator)

    def answer(self, body: bytes) -> Any:
        """Learn an answer, or record a skip."""
        said: AnswerRequest = self.read(body, AnswerRequest)
        ends, last = (said.lower, said.upper), len(self.session.grades)
        ranks = [rank for rank in ends if rank is not None]
        if len(ranks) == 1 or ranks != sorted(ranks) or any(rank > last for rank in ranks):
            raise RequestError(f"{ends} is not a range of ranks 1 to {last}")
        return self.session.answer(
            said.key, msgspec.convert(said, Note, from_attributes=True), *ranks
        )

    def undo(self, body: bytes) -> Any:
        """Undo the last answer or skip of an annotator."""
        request: UndoRequest = self.read(body, UndoRequest)
        return self.session.undo(request.key, request.annotator)
