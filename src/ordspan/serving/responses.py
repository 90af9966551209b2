"""Shared responses: JSON, and errors as a status with a message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from ordspan.serving.records import REQUEST
from ordspan.wording import brief

UNAVAILABLE = 503


def as_json(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A response in JSON."""
    return Response(msgspec.json.encode(content), status, headers, "application/json")


def add_error_handlers(app: FastAPI, statuses: Mapping[type[Exception], int]) -> None:
    """Respond to each type of error with its status and message."""

    def report(request: Request, error: Exception) -> Response:
        status = next(code for kind, code in statuses.items() if isinstance(error, kind))
        headers = {"Retry-After": "1"} if status == UNAVAILABLE else None
        return as_json({"detail": str(error)}, status, headers)

    for kind in statuses:
        app.add_exception_handler(kind, report)

    @app.exception_handler(HTTPException)
    def report_http_error(request: Request, error: HTTPException) -> Response:
        return as_json({"detail": error.detail}, error.status_code, error.headers)

    @app.exception_handler(RequestValidationError)
    def report_invalid(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        name, value = first["loc"][-1], brief(first.get("input"))
        return as_json({"detail": f"{REQUEST}: {name} is {value}; {first['msg']}"}, 422)
