"""Shared by serve and annotate: checks of every request, its handler, the answer, the server."""

import asyncio
import hmac
import inspect
import socket
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import msgspec
import uvicorn
from starlette.concurrency import run_in_threadpool
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import Response

from ordspan.serving.log import LogError
from ordspan.serving.records import REQUEST, RequestError
from ordspan.wording import brief

LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1", "[::1]")
MAX_BODY_BYTES = 1 << 20
MAX_HEAD_BYTES = 1 << 16
SHORTEST_TOKEN = 16
KEEP_ALIVE = 30  # seconds until a connection without a request is closed
LONGEST_SHUTDOWN = 30  # seconds that requests in progress have to finish once the server is stopped
UNAVAILABLE = 503
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
MORE_HEADERS = {
    401: {"WWW-Authenticate": "Bearer", "Connection": "close"},
    413: {"Connection": "close"},  # the rest of the request was not read
    415: {"Connection": "close"},
    UNAVAILABLE: {"Retry-After": "1"},
}


def read_token(path: str | None, host: str) -> str | None:
    """The token in a file, without surrounding whitespace; other machines must have one."""
    if path is None:
        if host not in LOCAL_HOSTS:
            raise ValueError(
                f"--host {host} accepts other machines; add --token-file with a secret that they "
                "must send, or listen on 127.0.0.1 only"
            )
        return None
    token = Path(path).read_text(encoding="latin-1").strip()
    if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable():
        raise ValueError(
            f"{path}: a token needs at least {SHORTEST_TOKEN} ASCII characters; create one with "
            'python -c "import secrets; print(secrets.token_urlsafe())"'
        )
    return token


def as_json(content: Any, status: int = 200) -> Response:
    """A response in JSON, with the headers of its status."""
    body = msgspec.json.encode(content)
    return Response(body, status, MORE_HEADERS.get(status), "application/json")


def always(content: Any) -> Callable[[], Any]:
    """A handler whose answer never changes."""
    return lambda: content


class Application:
    """An ASGI application: every request is checked, handled, and answered with safe headers.

    Parameters
    ----------
    routes : dict
        Handlers by method and path, such as "POST /learn"; one that is no coroutine runs in a
        thread. It takes the body of a POST, and returns a response or what is to be sent as JSON.
        Its keyword-only arguments are parameters of the address. Its `ValueError` becomes an
        answer that says what is wrong.
    close : callable
        Awaited on shutdown.
    token : str, optional
        Bearer token required for every request; without one, only this machine may connect.
    public : collection of str
        Paths that hold no data and need no token.
    observe : callable, optional
        Called with the path, or "other", the status and the seconds of every request.
    """

    def __init__(
        self,
        routes: Mapping[str, Callable[..., Any]],
        close: Callable[[], Awaitable[None]],
        *,
        token: str | None = None,
        public: Collection[str] = (),
        observe: Callable[[str, int, float], None] | None = None,
    ) -> None:
        self._routes = {tuple(route.split()): handler for route, handler in routes.items()}
        self._paths = {path for _, path in self._routes}
        self._close, self._public, self._observe = close, public, observe
        self._expected = None if token is None else f"Bearer {token}".encode()
        self._handle: Any = self._answer
        if token is None:
            self._handle = TrustedHostMiddleware(self._answer, LOCAL_HOSTS, www_redirect=False)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle a request, or the shutdown."""
        if scope["type"] == "lifespan":
            for event in ("startup", "shutdown"):
                await receive()
                if event == "shutdown":
                    await self._close()
                await send({"type": f"lifespan.{event}.complete"})
            return
        begin, status = time.perf_counter(), 0

        async def answer(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *HEADERS]
            await send(message)

        await self._handle(scope, receive, answer)
        if self._observe is not None:
            path = scope["path"] if scope["path"] in self._paths else "other"
            self._observe(path, status, time.perf_counter() - begin)

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            content = await self._content(scope, receive)
            response = content if isinstance(content, Response) else as_json(content)
        except (RequestError, LogError) as error:
            response = as_json({"detail": str(error)}, error.status)
        except asyncio.CancelledError:  # the shutdown takes too long
            response = as_json({"detail": "the service ends; send it again later"}, UNAVAILABLE)
        except ValueError as error:  # of the model, such as a coverage that is not calibrated
            response = as_json({"detail": f"{REQUEST}: {error}"}, 422)
        await response(scope, receive, send)

    async def _content(self, scope: Any, receive: Any) -> Any:
        """What the handler of a request returns; a body is only read if the headers are right."""
        method, path, headers = scope["method"], scope["path"], dict(scope["headers"])
        reading = method in ("GET", "HEAD")
        if self._expected is not None and path not in self._public:
            token = headers.get(b"authorization", b"")
            if not hmac.compare_digest(token, self._expected):
                raise RequestError(
                    "send the token of this service as Authorization: Bearer TOKEN", 401
                )
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if not reading and kind != b"application/json":
            # pages of other sites can send other types from a browser without a preflight
            raise RequestError("send JSON, with Content-Type: application/json", 415)
        if path not in self._paths:
            raise RequestError(f"there is no {brief(path)} here", 404)
        handler = self._routes.get(("GET" if reading else method, path))
        if handler is None:
            raise RequestError(f"{path} does not take {method}", 405)
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        known: Any = getattr(handler, "__kwdefaults__", None) or ()
        if unknown := [name for name in query if name not in known]:
            raise RequestError(f"{REQUEST}: unknown parameter {brief(unknown[0])}; remove it")
        bodies = [] if reading else [await read_body(receive)]
        if inspect.iscoroutinefunction(handler):
            return await handler(*bodies, **query)
        return await run_in_threadpool(handler, *bodies, **query)


async def read_body(receive: Any) -> bytes:
    """The body of a request, in as many messages as it comes; no more of it than is allowed."""
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > MAX_BODY_BYTES:
            most = f"{MAX_BODY_BYTES:,}"
            raise RequestError(f"the body has more than {most} bytes; send fewer rows", 413)
    return body


class Server(uvicorn.Server):
    """A server that says when it is ready, so that a signal from then on ends it in order.

    Parameters
    ----------
    config : uvicorn.Config
        Its settings.
    ready : callable
        Called when requests are answered.
    """

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.ready = ready

    async def main_loop(self) -> None:
        """Serve until a signal."""
        self.ready()
        await super().main_loop()


def run_server(app: Any, host: str, port: int, started: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; then finish requests in progress.

    Parameters
    ----------
    app : ASGI application
        The application.
    host, port :
        Address to listen on; port 0 picks a free one.
    started : callable
        Called with the URL once requests are answered.
    """
    with suppress(ImportError, ValueError, OSError):  # Windows, or a lower limit of the system
        import resource

        # as many open files as the system allows, so that idle connections lock nobody out
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    config = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="on",
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=LONGEST_SHUTDOWN,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
    )
    how: Any = {"family": socket.AF_INET6 if ":" in host else socket.AF_INET}
    if host == "::" and socket.has_dualstack_ipv6():  # every address, those of IPv4 too
        how["dualstack_ipv6"] = True
    shown = f"[{host}]" if ":" in host else host
    try:
        listening = socket.create_server((host, port), **how, backlog=config.backlog)
    except OSError as error:
        raise OSError(
            f"cannot listen on {shown}:{port} ({error.strerror}); choose another with --port"
        ) from None
    with listening:
        # connections inherit it: small answers are sent at once
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        address = f"http://{shown}:{listening.getsockname()[1]}"
        Server(config, lambda: started(address)).run([listening])
