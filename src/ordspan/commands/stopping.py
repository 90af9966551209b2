"""A request to stop (Ctrl-C, SIGTERM) that is answered at a safe moment."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

from ordspan.files.text import stop_hook

T = TypeVar("T")


class Stopped(KeyboardInterrupt):
    """Work was ended by request, with nothing lost that was promised."""


class Stop:
    """Set by a signal; raised only where the work can be interrupted.

    That is between two blocks of a file and while waiting for a pipe. Raised anywhere, it could
    come up in the middle of loading compiled code, which ends the process.
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
        """The block can be interrupted anywhere: it loses nothing, and compiles nothing."""
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
    """Turn Ctrl-C and SIGTERM into a request to stop, as long as the block runs."""
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
