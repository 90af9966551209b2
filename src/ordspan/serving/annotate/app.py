"""The application of ``ordspan annotate``: its pages, and what they ask for."""

from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from ordspan.serving.annotate.session import Session
from ordspan.serving.http import Application, always

PAGES = {"/": "annotate.html", "/progress": "progress.html"}
KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
KINDS |= {".svg": "image/svg+xml"}


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
    task: dict[str, Any] = {"title": title, "question": question, "folder": str(session.seed)}
    task |= {"grades": [str(grade) for grade in session.grades], "n_items": len(session.items)}
    routes: dict[str, Any] = {
        "GET /api/task": always(task),
        "GET /api/progress": session.progress,
        "GET /api/image": session.image,
        "POST /api/next": session.ask,
        "POST /api/answer": session.answer,
        "POST /api/undo": session.undo,
    }
    folder = files("ordspan.serving.annotate") / "pages"
    static = {f"/static/{file.name}": file.name for file in folder.iterdir()} | PAGES
    for path, name in static.items():
        content, kind = (folder / name).read_bytes(), KINDS[Path(name).suffix]
        routes[f"GET {path}"] = always(Response(content, media_type=kind))
    close = partial(run_in_threadpool, session.engine.close)
    return Application(routes, close, token=token, public=static)
