"""Handle requests to stop (Ctrl-C, SIGTERM) at a safe point."""

import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from traceback import walk_stack
from types import FrameType
from typing import Any, TypeVar

from ordspan.commands.jobs import FileJob

T = TypeVar("T")

FRAGILE = ("importlib", "_frozen_importlib", "_frozen_importlib_external", "llvmlite", "numba")
"""Modules in which an exception would be swallowed or fatal."""


def is_fragile(frame: FrameType | None) -> bool:
    """Whether modules are being imported, or compiled code loaded."""
    names = (caller.f_globals.get("__name__", "") for caller, _ in walk_stack(frame))
    return any(name.partition(".")[0] in FRAGILE for name in names)


class Stopped(KeyboardInterrupt):
    """The run was stopped on request, in a consistent state."""


class Stop:
    """Set by a signal; raises only where work can be interrupted."""

    requested = False
    _anywhere = False

    def request(self, number: int, frame: FrameType | None) -> None:
        """Note the request, and raise at once where that is safe."""
        self.requested = True
        if self._anywhere and not is_fragile(frame):
            raise Stopped

    def check(self) -> None:
        """Raise if a stop was requested."""
        if self.requested:
            raise Stopped

    @contextmanager
    def at_any_moment(self) -> Iterator[None]:
        """Allow interruption anywhere in the block."""
        before, self._anywhere = self._anywhere, True
        try:
            self.check()
            yield
        finally:
            self._anywhere = before

    def between(self, items: Iterable[T]) -> Iterator[T]:
        """The items, until a stop is requested."""
        self.check()
        for item in items:
            yield item
            self.check()


class StoppablePipe:
    """A pipe that a request to stop interrupts only between reads.

    All rows received before that can be used, which matters because they cannot be read again.
    """

    def __init__(self, stop: Stop, stream: Any) -> None:
        self._stop, self._stream = stop, stream

    def peek(self, size: int) -> bytes:
        """The next bytes, without consuming them."""
        with self._stop.at_any_moment():
            return bytes(self._stream.peek(size))

    def read1(self, size: int) -> bytes:
        """The next bytes; waits until there are some, or the end."""
        with self._stop.at_any_moment():
            return bytes(self._stream.read1(size))


@contextmanager
def stoppable(job: FileJob) -> Iterator[tuple[Stop, StoppablePipe | None]]:
    """Turn Ctrl-C and SIGTERM, unless they are ignored, into a request to stop inside the block.

    Also gives the pipe that the job reads, if it reads one. Python handles signals in its main
    thread only, so in other threads a run is not stopped.
    """
    stop, pipe = Stop(), None
    with ExitStack() as ending:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if (before := signal.getsignal(number)) is not signal.SIG_IGN:
                    ending.callback(signal.signal, number, before)
                    signal.signal(number, stop.request)
        if job.is_pipe:
            with stop.at_any_moment():  # opening waits for a writer
                named = job.pipe and ending.enter_context(open(job.pipe, "rb"))
            pipe = StoppablePipe(stop, named or sys.stdin.buffer)
        yield stop, pipe
