"""Elapsed time without compilation by Numba, and a message that explains the delay."""

import sys
import time
from collections.abc import Callable
from typing import Any

from numba.core.event import Event, TimingListener, register


class CompileTime(TimingListener):
    """Total time spent compiling; code from the cache takes none.

    Numba's lock keeps threads from compiling at the same time.
    """

    _say: Any = None

    def announce(self, say: Callable[[], None]) -> None:
        """Call a function once, when something is compiled."""
        self._say = say

    def announce_on_terminal(self) -> None:
        """Say once, on a terminal and if nobody else says it, why the first call takes long."""
        if self._say is None and sys.stderr is not None and sys.stderr.isatty():
            message = "ordspan: compiling for this machine; later runs start without this delay"
            self.announce(lambda: print(message, file=sys.stderr))

    def on_start(self, event: Event) -> None:
        """Announce, and start the clock."""
        super().on_start(event)
        if self._say is not None:
            say, self._say = self._say, lambda: None
            say()


compiling = CompileTime()
register("numba:compile", compiling)


def working_time() -> float:
    """Seconds since some moment of the past, without those spent compiling."""
    return time.perf_counter() - (compiling.duration if compiling.done else 0.0)
