"""Shared responses: JSON, and errors as a status with a message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

UNAVAILABLE = 503


def as_json(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A response in JSON."""
    return Response(msgspec.json.encode(content), status, headers, "application/json")


def error_handlers(statuses: Mapping[type[Exception], int]) -> dict[Any, Any]:
    """Handlers that respond to each type of error with its status and message."""

    def report(request: Request, error: Exception) -> Response:
        status = next(code for kind, code in statuses.items() if isinstance(error, kind))
        headers = {"Retry-After": "1"} if status == UNAVAILABLE else None
        return as_json({"detail": str(error)}, status, headers)

    def report_http_error(request: Request, error: HTTPException) -> Response:
        return as_json({"detail": error.detail}, error.status_code, error.headers)

    return dict.fromkeys(statuses, report) | {HTTPException: report_http_error}
