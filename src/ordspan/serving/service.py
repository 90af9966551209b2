"""A queue of labels, learned in order by one thread and confirmed once on disk."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from threading import Condition, Thread
from typing import NamedTuple

from ordspan.serving.engine import Engine
from ordspan.serving.log import Event
from ordspan.serving.records import Rows

MOST_WAITING = 20_000
AT_ONCE = 5_000
"""Most rows written to disk at once."""


class BusyError(Exception):
    """Too many rows are waiting to be learned."""


class _Waiting(NamedTuple):
    rows: Rows
    future: asyncio.Future[list[Event]]
    loop: asyncio.AbstractEventLoop


class Service:
    """An engine shared by concurrent requests.

    Parameters
    ----------
    engine : Engine
        The model and its log.
    most_waiting : int
        Most rows that may wait; further ones are refused.
    """

    def __init__(self, engine: Engine, *, most_waiting: int = MOST_WAITING) -> None:
        self.engine, self.most_waiting = engine, most_waiting
        self.n_waiting = 0
        self._line: deque[_Waiting] = deque()
        self._change, self._ending = Condition(), False
        self._thread = Thread(target=self._work, name="learning", daemon=True)
        self._thread.start()

    async def learn(self, rows: Rows) -> list[Event]:
        """Learn in order, all or nothing; the events are on disk when this returns."""
        loop = asyncio.get_running_loop()
        waiting = _Waiting(rows, loop.create_future(), loop)
        with self._change:
            if self._ending or self.n_waiting + len(rows) > self.most_waiting:
                raise BusyError(
                    f"{self.n_waiting:,} of at most {self.most_waiting:,} rows are waiting to be "
                    "learned; try again in a moment"
                )
            self.n_waiting += len(rows)
            self._line.append(waiting)
            self._change.notify()
        return await waiting.future

    def _work(self) -> None:
        while some := self._next():
            try:
                done = self.engine.learn_groups([one.rows for one in some])
            except Exception as error:
                done = [error] * len(some)
            with self._change:
                self.n_waiting -= sum(len(one.rows) for one in some)
            for loop in {one.loop for one in some}:
                answers = [(one, d) for one, d in zip(some, done, strict=True) if one.loop is loop]
                loop.call_soon_threadsafe(_answer, answers)

    def _next(self) -> list[_Waiting]:
        """The next items of the queue, up to a number of rows; empty after `close`."""
        with self._change:
            while not self._line and not self._ending:
                self._change.wait()
            some: list[_Waiting] = []
            n_rows = 0
            while self._line and (not some or n_rows < AT_ONCE):
                some.append(self._line.popleft())
                n_rows += len(some[-1].rows)
            return some

    def close(self) -> None:
        """Learn the rest of the queue, then release the state folder."""
        with self._change:
            self._ending = True
            self._change.notify()
        self._thread.join()
        self.engine.close()


def _answer(answers: Sequence[tuple[_Waiting, list[Event] | Exception]]) -> None:
    for waiting, done in answers:
        if waiting.future.done():
            continue
        if isinstance(done, Exception):
            waiting.future.set_exception(done)
        else:
            waiting.future.set_result(done)
