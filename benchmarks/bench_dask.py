"""What are the costs and benefits of training on Dask, with one and two worker processes?

The data has the shape of MSLR (136 float32 features, 5 grades) and is generated on the workers in
16 blocks. ``make bench`` runs this at full size and writes docs/measured/dask.md; the tests run
it at toy size. Times are wall-clock times, because the work is done in other processes.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from statistics import NormalDist
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

from measuring import Row, command, table
from ordspan import OrdinalPA
from ordspan.distributed import fit

N_ROWS, WIDTH, N_CLASSES, N_BLOCKS, ROUNDS = 2_000_000, 136, 5, 16, 3
TURNS = 2
NOISE = 0.5
CLASSES = list(range(1, N_CLASSES + 1))


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


def clocked(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def train(client: Client, data: tuple[da.Array, da.Array], rounds: int = ROUNDS) -> OrdinalPA:
    return fit(client, OrdinalPA(classes=CLASSES), *data, rounds=rounds)


def error_of(model: OrdinalPA, test: np.ndarray) -> float:
    return -model.score(np.ascontiguousarray(test[:, :WIDTH]), grades(test))


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


def serial_error(n: int, test: np.ndarray) -> float:
    """Test error after as many passes of partial_fit over the same blocks."""
    model = OrdinalPA(classes=CLASSES)
    for _ in range(ROUNDS):
        for number in range(N_BLOCKS):
            rows = make_rows(number, n // N_BLOCKS)
            model.partial_fit(np.ascontiguousarray(rows[:, :WIDTH]), grades(rows))
    return error_of(model, test)


def run(scale: float = 1.0) -> list[Row]:
    """Error and throughput of mixing, against passes in one process and one worker."""
    n, repeats, turns = (
        max(N_BLOCKS * 20, int(N_ROWS * scale)),
        5 if scale else 1,
        TURNS if scale else 1,
    )
    times = [[round_seconds(workers, n, repeats) for workers in (1, 2)] for _ in range(turns)]
    one, two = map(min, zip(*times, strict=True))
    test = make_rows(N_BLOCKS, max(200, n // 20))
    with cluster_of(2) as client:
        mixed = error_of(train(client, on_workers(client, n, N_BLOCKS)), test)
    serial = serial_error(n, test)
    size = f"OrdinalPA(), {n:,} × {WIDTH} float32, {N_BLOCKS} blocks, {ROUNDS} rounds"
    error = f"{size}: test MAE ({mixed:.4f}) / that of {ROUNDS} serial passes ({serial:.4f})"
    speed = f"{size}: throughput of 2 workers ({n / two:,.0f} rows per second) / 1 worker"
    return [Row.at_most(error, mixed / serial, 1.01), Row.at_least(speed, one / two, 1.6)]


if __name__ == "__main__":
    command(lambda scale: table(run(scale), "Training on Dask"), __doc__)
