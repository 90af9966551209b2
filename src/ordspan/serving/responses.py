"""Shared by the applications: responses in JSON, and errors as a status with a message."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ordspan.serving.engine import KeyConflictError, MissingError
from ordspan.serving.log import LogError
from ordspan.serving.records import BodyError
from ordspan.serving.service import BusyError
from ordspan.tables.rows import RowError

UNAVAILABLE = 503
STATUSES: dict[Any, int] = {
    BodyError: 400,
    MissingError: 404,
    KeyConflictError: 409,
    RowError: 422,
    BusyError: UNAVAILABLE,
    LogError: UNAVAILABLE,
}


def as_json(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A response in JSON."""
    return Response(msgspec.json.encode(content), status, headers, "application/json")


def application(routes: Sequence[Route], close: Callable[[], Awaitable[None]]) -> Starlette:
    """An application that responds to errors with a message, and is closed on shutdown."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        await close()

    handlers: Any = dict.fromkeys(STATUSES, _report) | {HTTPException: _report_http_error}
    return Starlette(routes=routes, exception_handlers=handlers, lifespan=lifespan)


def _report(request: Request, error: Exception) -> Response:
    status = next(code for kind, code in STATUSES.items() if isinstance(error, kind))
    headers = {"Retry-After": "1"} if status == UNAVAILABLE else None
    return as_json({"detail": str(error)}, status, headers)


def _report_http_error(request: Request, error: HTTPException) -> Response:
    return as_json({"detail": error.detail}, error.status_code, error.headers)
