"""Checks of every request before it is handled: host, token, content type and size."""

from __future__ import annotations

import hmac
import re
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import msgspec

LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
LOCAL_NAMES = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]{1,5})?")
MAX_BODY_BYTES = 8 << 20
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
        self.app, self.public, self.observe, self.most_bytes = app, public, observe, most_bytes
        self._expected = None if token is None else f"Bearer {token}".encode()

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

        refused = self._refused(scope)
        if refused is None and scope["method"] not in ("GET", "HEAD"):
            body, refused = await self._body(scope, receive)
            receive = _replayed(body, receive)
        if refused is None:
            await self.app(scope, receive, answer)
        else:
            await _send_error(answer, *refused)
        if self.observe is not None:
            self.observe(scope["path"], status, time.perf_counter() - begin)

    def _refused(self, scope: Any) -> tuple[int, str] | None:
        """Reason to reject a request by its headers, if any."""
        headers = dict(scope["headers"])
        if self._expected is None:
            host = headers.get(b"host", b"").decode("latin-1")
            if not LOCAL_NAMES.fullmatch(host):
                return 421, f"this service only accepts requests to {' or '.join(LOCAL_HOSTS)}"
        elif scope["path"] not in self.public:
            given = headers.get(b"authorization", b"")
            if not hmac.compare_digest(given, self._expected):
                return 401, "send the token of this service as Authorization: Bearer TOKEN"
        if scope["method"] in ("GET", "HEAD"):
            return None
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if kind != b"application/json":
            # pages of other sites can send other types from a browser without a preflight
            return 415, "send JSON, with Content-Type: application/json"
        if b"content-encoding" in headers:
            return 415, "send the body uncompressed, without Content-Encoding"
        return None

    async def _body(self, scope: Any, receive: Any) -> tuple[bytes, tuple[int, str] | None]:
        """The whole body, or the reason to reject it."""
        parts, size = [], 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return b"", (400, "the request ended early")
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self.most_bytes:
                return b"", (
                    413,
                    f"the body has more than {self.most_bytes:,} bytes; send fewer rows",
                )
            if not message.get("more_body"):
                return b"".join(parts), None


def _replayed(body: bytes, receive: Any) -> Any:
    """A receive function that replays a body already read."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Any:
        return waiting.pop() if waiting else await receive()

    return again


async def _send_error(send: Any, status: int, detail: str) -> None:
    """Send an error and close the connection, as the rest of the request was not read."""
    body = msgspec.json.encode({"detail": detail})
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
