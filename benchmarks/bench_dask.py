"""What are the costs and benefits of training on Dask, with one and two worker processes?

The data has the shape of MSLR (136 float32 features, 5 grades) and is generated on the workers in
16 blocks. ``make bench`` runs this at full size and writes docs/measured/dask.md; the tests run
it at toy size. Times are wall-clock times, because the work is done in other processes.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from statistics import NormalDist
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait
from distributed.comm.tcp import TCP

from measuring import Row, command, table
from ordspan import OrdinalPA
from ordspan.distributed import fit

N_ROWS, WIDTH, N_CLASSES, N_BLOCKS, ROUNDS = 2_000_000, 136, 5, 16, 3
TURNS = 2
NOISE = 0.5
CLASSES = list(range(1, N_CLASSES + 1))


class Figures(NamedTuple):
    """What was measured."""

    errors: dict[int, tuple[list[float], list[float]]]  # by rows: mixed and serial, by round
    one_worker: float  # seconds per round
    two_workers: float
    moved: float  # bytes per round


def make_rows(number: int, n: int) -> np.ndarray:
    """Block ``number``: standard normal rows, with the noise of their scores in the last column."""
    rng = np.random.default_rng([1, number])
    return rng.standard_normal((n, WIDTH + 1), dtype=np.float32)


def grades(rows: np.ndarray) -> np.ndarray:
    """Five equally likely grades, from a noisy linear score of the rows."""
    direction = np.random.default_rng(0).standard_normal(WIDTH)
    direction /= np.linalg.norm(direction)
    score = rows[:, :WIDTH] @ direction + NOISE * rows[:, WIDTH]
    normal = NormalDist(sigma=float(np.hypot(1.0, NOISE)))
    edges = [normal.inv_cdf(i / N_CLASSES) for i in range(1, N_CLASSES)]
    return np.searchsorted(edges, score) + 1


def on_workers(client: Client, n: int, blocks: int) -> tuple[da.Array, da.Array]:
    """The rows and labels of all blocks, generated on the workers and kept there."""
    size = n // blocks

    def make(block_info: Any = None) -> np.ndarray:
        return make_rows(block_info[None]["chunk-location"][0], size)

    both = da.map_blocks(
        make,
        chunks=((size,) * blocks, (WIDTH + 1,)),
        dtype=np.float32,
        meta=np.empty((0, 0), dtype=np.float32),
    )
    # contiguous, as rows come from files: a view of fewer columns would be copied in each round
    X = both.map_blocks(
        lambda rows: np.ascontiguousarray(rows[:, :WIDTH]),
        chunks=(both.chunks[0], (WIDTH,)),
        dtype=np.float32,
    )
    y = both.map_blocks(grades, drop_axis=1, dtype=np.int64)
    X, y = client.persist([X, y])
    wait([X, y])
    return X, y


def count_bytes() -> None:
    """Start to count the bytes that this process writes to other processes."""
    if hasattr(TCP, "ordspan_bytes"):
        return
    TCP.ordspan_bytes = 0
    original = TCP.write

    async def counted(self: TCP, *args: Any, **kwargs: Any) -> int:
        size = await original(self, *args, **kwargs)
        TCP.ordspan_bytes += size
        return size

    TCP.write = counted


def bytes_so_far() -> int:
    return TCP.ordspan_bytes


def bytes_moved(client: Client, work: Callable[[], object]) -> int:
    """Bytes that client, scheduler and workers write to each other during the work."""
    count_bytes()
    client.run(count_bytes)
    before = bytes_so_far() + sum(client.run(bytes_so_far).values())
    work()
    return bytes_so_far() + sum(client.run(bytes_so_far).values()) - before


def clocked(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def train(client: Client, data: tuple[da.Array, da.Array], rounds: int = ROUNDS) -> OrdinalPA:
    return fit(client, OrdinalPA(classes=CLASSES), *data, rounds=rounds)


def error_of(model: OrdinalPA, test: np.ndarray) -> float:
    return -model.score(np.ascontiguousarray(test[:, :WIDTH]), grades(test))


def serial_errors(n: int, test: np.ndarray) -> list[float]:
    """Test error after each pass of partial_fit over the same blocks."""
    parts = [make_rows(number, n // N_BLOCKS) for number in range(N_BLOCKS)]
    pairs = [(np.ascontiguousarray(rows[:, :WIDTH]), grades(rows)) for rows in parts]
    del parts
    model, errors = OrdinalPA(classes=CLASSES), []
    for _ in range(ROUNDS):
        for X, y in pairs:
            model.partial_fit(X, y)
        errors.append(error_of(model, test))
    return errors


def mixed_errors(client: Client, data: tuple[da.Array, da.Array], test: np.ndarray) -> list[float]:
    """Test error after each round."""
    return [error_of(train(client, data, rounds), test) for rounds in range(1, ROUNDS + 1)]


@contextlib.contextmanager
def cluster_of(n_workers: int) -> Iterator[Client]:
    """A cluster of its own for each measurement: an idle one uses a tenth of a core."""
    with (
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, memory_limit=0, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def round_seconds(n_workers: int, n: int, repeats: int) -> float:
    """Least seconds per round: a busy machine can only make times longer."""
    with cluster_of(n_workers) as client:
        data = on_workers(client, n, N_BLOCKS)
        train(client, data)  # compile before measuring
        return min(clocked(lambda: train(client, data)) / ROUNDS for _ in range(repeats))


def measure(n: int, repeats: int) -> Figures:
    test = make_rows(N_BLOCKS, max(200, n // 20))
    turns = TURNS if repeats > 1 else 1
    times = [[round_seconds(workers, n, repeats) for workers in (1, 2)] for _ in range(turns)]
    errors = {}
    with cluster_of(2) as client:
        for size in (n // 100, n // 10, n):
            data = on_workers(client, max(size, 2 * N_BLOCKS), N_BLOCKS)
            serial = serial_errors(max(size, 2 * N_BLOCKS), test)
            errors[size] = mixed_errors(client, data, test), serial
        moved = bytes_moved(client, lambda: train(client, data)) / ROUNDS
    return Figures(errors, *map(min, zip(*times, strict=True)), moved)


def rows_of(found: Figures, n: int) -> list[Row]:
    size = f"OrdinalPA(), {n:,} × {WIDTH} float32, {N_BLOCKS} blocks, {ROUNDS} rounds"
    mixed, serial = (errors[-1] for errors in found.errors[n])
    speed = f"{n / found.two_workers:,.0f} rows per second"
    return [
        Row.at_most(
            f"{size}: test MAE ({mixed:.4f}) / that of {ROUNDS} serial passes ({serial:.4f})",
            mixed / serial,
            1.01,
        ),
        Row.at_least(
            f"{size}: throughput of 2 workers ({speed}) / 1 worker",
            found.one_worker / found.two_workers,
            1.6,
        ),
        Row.at_most(f"{size}: sent per round, besides the data", found.moved / 1e6, 1.0, " MB"),
    ]


def error_table(errors: dict[int, tuple[list[float], list[float]]]) -> list[str]:
    """Test error after each round, and after each pass of partial_fit over the same blocks."""
    rounds = range(1, ROUNDS + 1)
    head = [f"after {kind} {r}" for kind in ("round", "serial pass") for r in rounds]
    lines = ["| rows | " + " | ".join(head) + " |", "|---" * (1 + len(head)) + "|"]
    for size, (mixed, serial) in errors.items():
        cells = [f"{error:.4f}" for error in (*mixed, *serial)]
        lines.append(f"| {size:,} | " + " | ".join(cells) + " |")
    return lines


def report(scale: float = 1.0) -> str:
    """The targets, and the errors by round, as Markdown."""
    n = max(N_BLOCKS * 20, int(N_ROWS * scale))
    found = measure(n, repeats=5 if scale > 0 else 1)
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    lines = [table(rows_of(found, n), "Training on Dask")]
    lines.append(f"dask {version('dask')}; load average at the end: {load}.")
    lines += ["", *error_table(found.errors)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    command(report, __doc__)
