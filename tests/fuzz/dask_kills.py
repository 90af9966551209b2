"""Workers that die at any moment: the same model to the bit as without, or a clear error."""

import atexit
import faulthandler
import logging
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from threading import Event, Thread

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, Status

from ordspan import OrdinalPA
from ordspan.datasets import synthetic
from ordspan.distributed import fit

MOST_KILLS = 3  # Dask gives a task up when the fourth worker has died of it
HANGS = 180  # seconds after which a fit will not end any more, even on a busy machine
WORKERS, BLOCKS, ROUNDS, SIZE = 2, 8, 3, 50
DATA = synthetic(n=BLOCKS * SIZE)
KILLED: list[int] = []  # ids of all processes so far


def attack(rng, folder: Path) -> None:
    """One fit of random settings, and one to three kills on the way."""
    settings = {name: bool(rng.integers(2)) for name in ("persist", "known", "shuffle")}
    if rng.integers(2):
        settings["progress"] = lambda progress: None
    try:
        connected().wait_for_workers(2, timeout=30)
        fit_and_kill(connected(), rng, **settings)
    except TimeoutError:  # a nanny has died with its worker
        connected.cache_clear()
    except RuntimeError as error:  # both nannies have
        if "has had no worker for" not in str(error) or connected().nthreads():
            raise
        print(f": {error}")
        connected.cache_clear()


def fit_and_kill(client, rng, **settings) -> None:
    """A fit whose workers are killed at random moments gives the model of an undisturbed one."""
    client.wait_for_workers(2, timeout=HANGS)
    expected, seconds = undisturbed(client, settings.get("shuffle", False))
    moments = np.sort(rng.uniform(0, seconds, size=rng.integers(1, MOST_KILLS + 1)))
    over = Event()
    killer = Thread(target=kill, args=(client.cluster, rng, moments, over))
    faulthandler.dump_traceback_later(HANGS, exit=True)
    killer.start()
    try:
        model = trained(client, **settings)
    finally:
        over.set()
        killer.join()
        faulthandler.cancel_dump_traceback_later()
    same = np.array_equal(model.learner_.state, expected.learner_.state)
    same &= model.rounds_ == expected.rounds_
    assert same, f"another model with {settings} and kills after {moments} s"


def kill(cluster, rng, moments, over) -> None:
    """Kill a worker at each moment, counted from now in seconds, until the fit is over.

    One that is just starting is spared: its nanny would not start another.
    """
    start = time.monotonic()
    for moment in moments:
        if over.wait(max(0.0, start + moment - time.monotonic())):
            return
        nannies = [n for n in cluster.workers.values() if n.status == Status.running]
        ids = [n.process.pid for n in nannies if n.process.status == Status.running]
        if ids:
            KILLED.append(int(rng.choice(ids)))
            with suppress(ProcessLookupError):
                os.kill(KILLED[-1], signal.SIGKILL)


def slowly(block):
    """Blocks that take a while to make, so that there is something to interrupt."""
    time.sleep(0.05)
    return block


def trained(client, persist=False, known=False, **settings):
    rows = da.from_array(DATA.X, chunks=(SIZE, -1)).map_blocks(slowly, dtype=float, meta=DATA.X[:0])
    labels = da.from_array(DATA.ranks, chunks=SIZE)
    if persist:
        rows, labels = client.persist([rows, labels])
    model = OrdinalPA(random_state=0, classes=[1, 2, 3, 4, 5] if known else None)
    return fit(client, model, rows, labels, rounds=ROUNDS, **settings)


@cache
def undisturbed(client, shuffle):
    """The model as it must be at the end, and how many seconds a fit takes."""
    trained(client)  # imports and compiles
    started = time.monotonic()
    model = trained(client, shuffle=shuffle)
    return model, time.monotonic() - started


@contextmanager
def mortals() -> Iterator[Client]:
    """A client of a cluster whose nannies start a new worker for each that died."""
    patience = {"distributed.deploy.lost-worker-timeout": HANGS}  # a busy machine takes long
    with dask.config.set(patience):
        cluster = LocalCluster(
            n_workers=WORKERS,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        )
        try:
            with Client(cluster, set_as_default=False) as client:
                yield client
        finally:  # a cluster whose nanny is just starting a worker may never be closed
            with suppress(TimeoutError):
                cluster.close(timeout=30)


@cache
def connected() -> Client:
    """A cluster for as long as this process lives."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(mortals())
