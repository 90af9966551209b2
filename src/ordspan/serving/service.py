"""A queue of labels, learned in order and confirmed once on disk."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from ordspan.serving.engine import Engine
from ordspan.serving.log import Event
from ordspan.serving.records import Rows

MOST_WAITING = 20_000
AT_ONCE = 5_000
"""Most rows written to disk at once."""


class BusyError(Exception):
    """Too many rows are waiting to be learned."""


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
        self.n_waiting, self._ending = 0, False
        self._line: deque[tuple[Rows, asyncio.Future[list[Event]]]] = deque()
        self._work: asyncio.Task[None] | None = None

    async def learn(self, rows: Rows) -> list[Event]:
        """Learn in order, all or nothing; the events are on disk when this returns."""
        if self._ending or self.n_waiting + len(rows) > self.most_waiting:
            raise BusyError(
                f"{self.n_waiting:,} of at most {self.most_waiting:,} rows are waiting to be "
                "learned; try again in a moment"
            )
        future = asyncio.get_running_loop().create_future()
        self.n_waiting += len(rows)
        self._line.append((rows, future))
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._learn_waiting())
        return await future

    async def _learn_waiting(self) -> None:
        """Learn until nothing waits, each time as many as wait by then, up to a number of rows."""
        done: Sequence[list[Event] | Exception]
        while self._line:
            some, n_rows = [], 0
            while self._line and n_rows < AT_ONCE:
                some.append(self._line.popleft())
                n_rows += len(some[-1][0])
            try:
                groups = [rows for rows, _ in some]
                done = await asyncio.to_thread(self.engine.learn_groups, groups)
            except Exception as error:
                done = [error] * len(some)
            self.n_waiting -= n_rows
            for (_, future), answer in zip(some, done, strict=True):
                if future.done():  # its request was cancelled
                    continue
                if isinstance(answer, Exception):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)

    async def close(self) -> None:
        """Learn the rest of the queue, then release the state folder."""
        self._ending = True
        if self._work is not None:
            await self._work
        await asyncio.to_thread(self.engine.close)
