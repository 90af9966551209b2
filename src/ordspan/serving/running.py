"""Run an application until it is stopped; requests in progress are finished first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ordspan.serving.guard import REQUEST_TIMEOUT

MOST_CONNECTIONS = 512
LONGEST_HEAD = 1 << 16


class TimeoutProtocol(H11Protocol):
    """HTTP that closes connections whose client sends or reads too slowly."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start the timeout for a request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Stop the timeout once the request is complete."""
        super().data_received(data)
        if self._is_answering() and not self.flow.write_paused:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        """Start the timeout for the next request, unless it has arrived."""
        super().on_response_complete()
        if not self.transport.is_closing() and not self._is_answering():
            self._wait()

    def pause_writing(self) -> None:
        """Start the timeout for a client that does not read."""
        super().pause_writing()
        self._wait()

    def resume_writing(self) -> None:
        """Stop the timeout once the client has caught up."""
        super().resume_writing()
        if self._is_answering():
            self._stop_waiting()

    def send_400_response(self, msg: str) -> None:
        """Reject invalid HTTP, or close the connection if a response has started."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()
        if self.cycle is not None:
            self.cycle.disconnected = True

    def connection_lost(self, error: Exception | None) -> None:
        """Stop the timeout."""
        super().connection_lost(error)
        self._stop_waiting()

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait(self) -> None:
        """Close the connection after the timeout, unless the client is still reading."""
        before = self.transport.get_write_buffer_size()

        def look() -> None:
            if self.transport.get_write_buffer_size() < before:
                self._wait()
            else:
                self.transport.abort()

        self._stop_waiting()
        self._deadline = self.loop.call_later(REQUEST_TIMEOUT, look)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


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

    async def shutdown(self, sockets: Any = None) -> None:
        """Finish requests in progress and close all connections."""
        closing = asyncio.create_task(self._close_late_connections())
        try:
            await super().shutdown(sockets)
        finally:
            closing.cancel()

    async def _close_late_connections(self) -> None:
        """Close connections that are just being opened, which uvicorn would wait for forever."""
        while True:
            await asyncio.sleep(0.1)
            for connection in list(self.server_state.connections):
                if not connection.transport.is_closing():
                    connection.shutdown()


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
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=TimeoutProtocol,
        ws="none",
        lifespan="on",
        access_log=False,
        log_level="warning",
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=int(REQUEST_TIMEOUT),
        h11_max_incomplete_event_size=LONGEST_HEAD,
    )
    Server(config, started).run()
