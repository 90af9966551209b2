"""Runs the cells in processes of their own, keeps each row at once, ends what takes too long."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable
from functools import cache
from multiprocessing.connection import Connection, wait

from ordspan.data import Dataset
from peers.measure import measure, unfinished
from peers.plan import Cell, Plan, load
from peers.table import Result

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def work(pipe: Connection, plan: Plan, data_dir: str | None) -> None:
    """Measure the cells that come through the pipe until it is closed."""

    @cache
    def dataset(name: str) -> Dataset:
        return load(name, plan, data_dir)

    while True:
        try:
            cell = pipe.recv()
        except EOFError:
            return
        rows = dataset(cell.dataset)
        pipe.send(size := len(rows.ranks))
        end_after(0)  # no limit on warming up
        try:
            result = measure(cell, rows, plan, begin_fold=lambda: end_after(plan.cap))
        except Exception as fault:  # a peer may fail in any way; the table tells it
            reason = " ".join(f"failed: {type(fault).__name__} {fault}".split())
            result = unfinished(cell, plan, size, reason[:120])
        pipe.send(result)


def end_after(seconds: float) -> None:
    """Let the system end this process when it has used so much more processor time; 0 is no limit.

    A peer deep in compiled code hears no Python signal; the system's own it cannot miss. A limit on
    the total (RLIMIT_CPU) would not do: its clock counts ticks, and on a busy machine runs away
    from that of the process by more than a fold takes.
    """
    signal.setitimer(signal.ITIMER_PROF, seconds)


class Worker:
    """A process that measures one cell after another, and a new one where it was ended."""

    def __init__(self, plan: Plan, data_dir: str | None) -> None:
        self.plan, self.data_dir = plan, data_dir
        self.start()

    def start(self) -> None:
        """Begin with a fresh process."""
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(
            target=work, args=(theirs, self.plan, self.data_dir), daemon=True
        )
        self.process.start()
        theirs.close()

    def give(self, cell: Cell) -> None:
        """Start a cell."""
        self.cell, self.rows = cell, 0
        self.pipe.send(cell)

    def hear(self) -> Result | None:
        """The row when it is done; None while it goes on. Waits for a message."""
        try:
            message = self.pipe.recv()
        except (EOFError, ConnectionError):
            return self.ended()
        if isinstance(message, Result):
            return message
        self.rows = message
        return None

    def ended(self) -> Result:
        """A row that tells why the process ended; another process is started."""
        self.process.join()
        code = self.process.exitcode
        late = code == -signal.SIGPROF
        reason = "did not finish" if late else f"failed: the process ended with exit code {code}"
        self.stop()
        self.start()
        return unfinished(self.cell, self.plan, self.rows, reason)

    def stop(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def run(
    plan: Plan,
    todo: Iterable[Cell],
    keep: Callable[[Result], object],
    *,
    jobs: int,
    data_dir: str | None = None,
) -> None:
    """Measure the cells, each row handed to ``keep`` as soon as it is there."""
    for name in ONE_THREAD:
        os.environ[name] = "1"  # processor time counts every thread
    waiting = list(todo)[::-1]
    workers = [Worker(plan, data_dir) for _ in range(min(jobs, len(waiting)))]
    try:
        busy = [worker for worker in workers if _next(worker, waiting)]
        while busy:
            heard = wait([worker.pipe for worker in busy])
            for worker in [worker for worker in busy if worker.pipe in heard]:
                result = worker.hear()
                if result is not None:
                    keep(result)
                    if not _next(worker, waiting):
                        busy.remove(worker)
    finally:
        for worker in workers:
            worker.stop()


def _next(worker: Worker, waiting: list[Cell]) -> bool:
    if waiting:
        worker.give(waiting.pop())
        return True
    return False
