"""What are the costs and benefits of training on Dask, with one and two worker processes?

The data has the shape of MSLR (136 float32 features, 5 grades) and is generated on the workers in
16 blocks. ``make bench`` runs this at full size and writes docs/measured/dask.md; the tests run
it at toy size. Times are wall-clock times, because the work is done in other processes.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from statistics import NormalDist

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

from measuring import Row, command, table
from ordspan import OrdinalPA
from ordspan.distributed import fit

N_ROWS, WIDTH, N_CLASSES, N_BLOCKS, ROUNDS = 2_000_000, 136, 5, 16, 3
NOISE = 0.5
CLASSES = list(range(1, N_CLASSES + 1))


def grades(rows: np.ndarray) -> np.ndarray:
    """Five equally likely grades, from a noisy linear score of the rows."""
    direction = np.random.default_rng(0).standard_normal(WIDTH)
    direction /= np.linalg.norm(direction)
    score = rows[:, :WIDTH] @ direction + NOISE * rows[:, WIDTH]
    normal = NormalDist(sigma=float(np.hypot(1.0, NOISE)))
    edges = [normal.inv_cdf(i / N_CLASSES) for i in range(1, N_CLASSES)]
    return np.searchsorted(edges, score) + 1


def on_workers(client: Client, n: int) -> tuple[da.Array, da.Array]:
    """The rows and labels of all blocks, generated on the workers and kept there."""
    chunks = (n // N_BLOCKS, WIDTH + 1)  # the last column is the noise of the scores
    both = da.random.default_rng(1).standard_normal((n, WIDTH + 1), chunks=chunks, dtype=np.float32)
    # contiguous, as rows come from files: a view of fewer columns would be copied in each round
    X = both[:, :WIDTH].map_blocks(np.ascontiguousarray)
    X, y = client.persist([X, both.map_blocks(grades, drop_axis=1, dtype=np.int64)])
    wait([X, y])
    return X, y


def train(client: Client, data: tuple[da.Array, da.Array]) -> OrdinalPA:
    return fit(client, OrdinalPA(classes=CLASSES), *data, rounds=ROUNDS)


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
    taken = []
    with cluster_of(n_workers) as client:
        data = on_workers(client, n)
        train(client, data)  # compile before measuring
        for _ in range(repeats):
            start = time.perf_counter()
            train(client, data)
            taken.append(time.perf_counter() - start)
    return min(taken) / ROUNDS


def errors(n: int) -> list[float]:
    """Test error of mixing, and of as many passes of partial_fit over the same blocks."""
    rng, serial = np.random.default_rng(2), OrdinalPA(classes=CLASSES)
    test = rng.standard_normal((max(200, n // 20), WIDTH + 1), dtype=np.float32)
    with cluster_of(2) as client:
        X, y = on_workers(client, n)
        mixed = train(client, (X, y))
        for number in [*range(N_BLOCKS)] * ROUNDS:
            serial.partial_fit(X.blocks[number].compute(), y.blocks[number].compute())
    rows = np.ascontiguousarray(test[:, :WIDTH])
    return [-model.score(rows, grades(test)) for model in (mixed, serial)]


def run(scale: float = 1.0) -> list[Row]:
    """Error and throughput of mixing, against passes in one process and one worker."""
    n, repeats, turns = (max(20, int(N_ROWS * scale) // N_BLOCKS)) * N_BLOCKS, 5, 2
    if not scale:
        repeats = turns = 1
    times = [[round_seconds(workers, n, repeats) for workers in (1, 2)] for _ in range(turns)]
    one, two = map(min, zip(*times, strict=True))
    mixed, serial = errors(n)
    size = f"OrdinalPA(), {n:,} × {WIDTH} float32, {N_BLOCKS} blocks, {ROUNDS} rounds"
    error = f"{size}: test MAE ({mixed:.4f}) / that of {ROUNDS} serial passes ({serial:.4f})"
    speed = f"{size}: throughput of 2 workers ({n / two:,.0f} rows per second) / 1 worker"
    return [Row.at_most(error, mixed / serial, 1.01), Row.at_least(speed, one / two, 1.6)]


if __name__ == "__main__":
    command(lambda scale: table(run(scale), "Training on Dask"), __doc__)
