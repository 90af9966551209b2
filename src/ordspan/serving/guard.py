"""Checks of every request before it is handled: host, token, content type and size."""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware

from ordspan.serving.responses import as_json

LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1", "[::1]")
MAX_BODY_BYTES = 1 << 20
CLOSE = {"Connection": "close"}
"""After a refusal, as the rest of the request was not read."""
SHORTEST_TOKEN = 16
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", PAGE_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]

Observe = Callable[[str, int, float], None]
"""Called with the path, the status and the seconds of every request."""


def read_token(path: Path) -> str:
    """Read a token from a file, without surrounding whitespace."""
    token = path.read_text(encoding="latin-1").strip()
    if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable():
        raise ValueError(
            f"{path}: a token needs at least {SHORTEST_TOKEN} ASCII characters; create one with "
            'python -c "import secrets; print(secrets.token_urlsafe())"'
        )
    return token


def check_host(host: str, token: str | None) -> None:
    """Refuse to accept other machines without a token."""
    if token is None and host not in LOCAL_HOSTS:
        raise ValueError(
            f"--host {host} accepts other machines; add --token-file with a secret that they "
            "must send, or listen on 127.0.0.1 only"
        )


class Guard:
    """Wrap an application in the checks that all requests share.

    Parameters
    ----------
    app : ASGI application
        The application.
    token : str, optional
        Bearer token required for every request; without one, only this machine may connect.
    public : collection of str
        Paths that hold no data and need no token.
    observe : callable, optional
        Called after every request.
    most_bytes : int
        Largest request body.
    """

    def __init__(
        self,
        app: Any,
        *,
        token: str | None = None,
        public: Collection[str] = (),
        observe: Observe | None = None,
        most_bytes: int = MAX_BODY_BYTES,
    ) -> None:
        self.public, self.observe, self.most_bytes = public, observe, most_bytes
        self._too_large = f"the body has more than {most_bytes:,} bytes; send fewer rows"
        self._expected = None if token is None else f"Bearer {token}".encode()
        self.app = app if token else TrustedHostMiddleware(app, LOCAL_HOSTS, www_redirect=False)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle a request, or reject it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        begin, status = time.perf_counter(), 0

        async def answer(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), *HEADERS]
            await send(message)

        size = 0

        async def limited() -> Any:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > self.most_bytes:
                raise HTTPException(413, self._too_large, CLOSE)
            return message

        if (refused := self._refused(scope)) is None:
            await self.app(scope, limited, answer)
        else:
            status, detail, headers = refused
            await as_json({"detail": detail}, status, headers)(scope, receive, answer)
        if self.observe is not None:
            self.observe(scope["path"], status, time.perf_counter() - begin)

    def _refused(self, scope: Any) -> tuple[int, str, dict[str, str]] | None:
        """Reason to reject a request by its headers, if any; its body is not read."""
        headers = dict(scope["headers"])
        if self._expected is not None and scope["path"] not in self.public:
            given = headers.get(b"authorization", b"")
            if not hmac.compare_digest(given, self._expected):
                detail = "send the token of this service as Authorization: Bearer TOKEN"
                return 401, detail, CLOSE | {"WWW-Authenticate": "Bearer"}
        if scope["method"] in ("GET", "HEAD"):
            return None
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if kind != b"application/json":
            # pages of other sites can send other types from a browser without a preflight
            return 415, "send JSON, with Content-Type: application/json", CLOSE
        if b"content-encoding" in headers:
            return 415, "send the body uncompressed, without Content-Encoding", CLOSE
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self.most_bytes:
            return 413, self._too_large, CLOSE
        return None
