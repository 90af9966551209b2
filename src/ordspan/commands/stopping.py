"""A request to stop (Ctrl-C, SIGTERM) that is answered at a safe moment."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

T = TypeVar("T")


class Stopped(KeyboardInterrupt):
    """Work was ended by request, with nothing lost that was promised."""


class Stop:
    """Set by a signal; raised only where the work can be interrupted."""

    def __init__(self) -> None:
        self.requested = False
        self._waiting = False

    def _request(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
        if self._waiting:
            raise Stopped

    def check(self) -> None:
        """Raise if a stop was requested."""
        if self.requested:
            raise Stopped

    @contextmanager
    def at_any_moment(self) -> Iterator[None]:
        """The block can be interrupted anywhere: what it promised to keep is kept already."""
        self.check()
        self._waiting = True
        try:
            yield
        finally:
            self._waiting = False

    def while_waiting(self, items: Iterable[T]) -> Iterator[T]:
        """The items; waiting for the next one can be interrupted at any moment."""
        iterator = iter(items)
        while True:
            try:
                self._waiting = True
                self.check()
                item = next(iterator)
            except StopIteration:
                return
            finally:
                self._waiting = False
            yield item


@contextmanager
def stoppable() -> Iterator[Stop]:
    """Turn Ctrl-C and SIGTERM into a request to stop, as long as the block runs."""
    stop = Stop()
    before = {
        number: signal.signal(number, stop._request) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
