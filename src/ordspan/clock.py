"""Elapsed time without compilation by Numba, and a message if compilation takes long."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from threading import Timer
from typing import Any

from numba.core.event import Event, Listener, register

LONG = 1.0
"""Seconds of compilation after which a message explains the delay."""


class CompileTime(Listener):
    """Total time spent compiling; code from the cache takes none.

    Compiling a function compiles those it calls, so events nest, and only the outermost count.
    Numba's lock keeps threads from compiling at the same time.
    """

    def __init__(self) -> None:
        self._spent: tuple[float, float | None] = (0.0, None)  # so far, and current start
        self._depth = 0
        self._say: Any = None
        self._timer = Timer(0.0, self._say_once)

    def seconds(self) -> float:
        """Seconds spent compiling in this process so far."""
        before, since = self._spent  # read together: another thread may be compiling
        return before if since is None else before + time.perf_counter() - since

    def announce(self, say: Callable[[], None]) -> None:
        """Call a function once, in its own thread, as soon as compiling has taken long."""
        self._say = say

    def announce_on_terminal(self) -> None:
        """Say once, if there is a terminal and nobody else says it, why compiling takes long."""
        if self._say is None and sys.stderr is not None and sys.stderr.isatty():
            message = "ordspan: compiling for this machine; later runs start without this delay"
            self.announce(lambda: print(message, file=sys.stderr))

    def on_start(self, event: Event) -> None:
        """Start the clock, and the timer for the announcement."""
        self._depth += 1
        if self._depth > 1:
            return
        before, _ = self._spent
        self._spent = (before, time.perf_counter())
        if self._say is not None:
            self._timer = Timer(max(0.0, LONG - before), self._say_once)
            self._timer.daemon = True
            self._timer.start()

    def on_end(self, event: Event) -> None:
        """Stop the clock and the timer."""
        self._depth -= 1
        if self._depth == 0:
            self._spent = (self.seconds(), None)
            self._timer.cancel()

    def _say_once(self) -> None:
        say, self._say = self._say, lambda: None
        say()


compiling = CompileTime()
register("numba:compile", compiling)


class Clock:
    """Counts seconds from its creation, without those spent compiling."""

    def __init__(self) -> None:
        self._begun = _working_time()

    def seconds(self) -> float:
        """Seconds since the clock was made."""
        return _working_time() - self._begun


def _working_time() -> float:
    return time.perf_counter() - compiling.seconds()
