"""Handle requests to stop (Ctrl-C, SIGTERM) at a safe point."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

from ordspan.files.text import stop_hook

T = TypeVar("T")


class Stopped(KeyboardInterrupt):
    """The run was stopped on request, in a consistent state."""


class Stop:
    """Set by a signal; raises only where work can be interrupted.

    That is between two blocks of a file, or while waiting for a pipe. Raising while compiled code
    is being loaded would crash the process.
    """

    def __init__(self) -> None:
        self.requested = False
        self._anywhere = False

    def _request(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
        if self._anywhere or stop_hook.waiting:
            raise Stopped

    def check(self) -> None:
        """Raise if a stop was requested."""
        if self.requested:
            raise Stopped

    @contextmanager
    def at_any_moment(self) -> Iterator[None]:
        """Allow interruption anywhere in the block, which must not compile anything."""
        self.check()
        self._anywhere = True
        try:
            yield
        finally:
            self._anywhere = False

    def between(self, items: Iterable[T]) -> Iterator[T]:
        """The items, until a stop is requested."""
        self.check()
        for item in items:
            yield item
            self.check()


@contextmanager
def stoppable() -> Iterator[Stop]:
    """Turn Ctrl-C and SIGTERM into a request to stop inside the block."""
    stop = Stop()
    stop_hook.check = stop.check  # type: ignore[method-assign]
    before = {
        number: signal.signal(number, stop._request) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield stop
    finally:
        del stop_hook.check
        for number, handler in before.items():
            signal.signal(number, handler)
