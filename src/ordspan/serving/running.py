"""Run an application until it is stopped; requests in progress are finished first."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import uvicorn

LONGEST_HEAD = 1 << 16
KEEP_ALIVE = 30
"""Seconds until a connection without a request is closed."""
LONGEST_SHUTDOWN = 10
"""Seconds that requests in progress have to finish once the server is stopped."""


class Server(uvicorn.Server):
    """A server that reports its address once it accepts requests."""

    def __init__(self, config: uvicorn.Config, started: Callable[[str], None]) -> None:
        super().__init__(config)
        self._report_started = started

    async def startup(self, sockets: Any = None) -> None:
        """Open the port and report the address."""
        await super().startup(sockets)
        if self.started and self.servers:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            shown = f"[{host}]" if ":" in host else host
            self._report_started(f"http://{shown}:{port}")


def run_server(app: Any, host: str, port: int, started: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; then finish requests in progress.

    Parameters
    ----------
    app : ASGI application
        The application.
    host, port :
        Address to listen on; port 0 picks a free one.
    started : callable
        Called with the URL once requests are accepted.
    """
    with suppress(ImportError, ValueError, OSError):  # Windows, or a lower limit of the system
        import resource

        # as many open files as the system allows, so that idle connections lock nobody out
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http="h11",
        ws="none",
        lifespan="on",
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=LONGEST_SHUTDOWN,
        h11_max_incomplete_event_size=LONGEST_HEAD,
    )
    Server(config, started).run()
