"""Train from files on a Dask cluster: one file is one block, read by the workers."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from distributed import Client, LocalCluster
from distributed.comm import get_address_host_port
from numpy.typing import NDArray

from ordspan.atomic import write_atomically
from ordspan.checkpoint import sole_writer
from ordspan.clock import Clock
from ordspan.commands.outputs import room_told
from ordspan.commands.stopping import Stop
from ordspan.commands.train import Report, Run, TrainJob, check_model_path
from ordspan.distributed.blocks import Blocks
from ordspan.distributed.cluster import Cluster
from ordspan.distributed.file_blocks import Spec, block_names, delayed_blocks, found_by_workers
from ordspan.distributed.training import Progress, fit_blocks
from ordspan.estimators import OrdinalPA
from ordspan.files.batch import N_EXAMPLES, FileError
from ordspan.files.features import Scale
from ordspan.files.opening import expand
from ordspan.files.text import STDIN
from ordspan.modelfile import to_bytes

LOCAL = "local"
TIMEOUT = 60.0


class Measured(NamedTuple):
    """What the first walk over a file finds."""

    scale: NDArray[np.float64]
    rows: int
    skipped: int
    examples: list[str]


def measure(path: str, spec: Spec) -> Measured:
    """Mean and spread of the features of a file, and its rows, on a worker."""
    reader, scale, rows = spec.reader(path), Scale(spec.recipe.n_scaled), 0
    for batch in reader.batches():
        rows += len(batch)
        if spec.recipe.standardise:
            scale.learn(batch.X)
    return Measured(scale.state[:3], rows, reader.bad.count, reader.bad.examples)


def joined(scales: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Counts, means and sums of squared deviations of all rows, from those of the blocks.

    The parts are joined in their order by the formula of Chan, Golub and LeVeque (1983).

    >>> one, two = np.array([[1.0], [2.0], [0.0]]), np.array([[1.0], [4.0], [0.0]])
    >>> joined([one, two]).ravel()
    array([2., 3., 2.])
    """
    count, mean, spread = (row.copy() for row in scales[0])
    for more, their_mean, their_spread in scales[1:]:
        total = count + more
        share = np.divide(more, total, out=np.zeros_like(total), where=total > 0)
        step = their_mean - mean
        spread += their_spread + step * step * count * share
        mean += step * share
        count = total
    return np.array([count, mean, spread])


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """A client of the cluster at an address, or of one on this machine."""
    if address == LOCAL:
        with (
            # what a block raises is told by ourselves
            LocalCluster(
                threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
            ) as cluster,
            Client(cluster, set_as_default=False) as client,
        ):
            yield client
        return
    if not address.startswith("inproc://"):  # which has no port to knock at
        _knock(address)
    with Client(address, timeout=TIMEOUT / 4, set_as_default=False) as client:
        yield client


def _knock(address: str) -> None:
    """Refuse an address where nobody listens: a client would wait long, and be hard to stop."""
    try:
        socket.create_connection(get_address_host_port(address), timeout=TIMEOUT / 4).close()
    except (OSError, ValueError, TypeError, OverflowError) as error:
        raise FileError(
            f"no Dask scheduler answers at {address!r} ({error}); give its address, such as "
            "tcp://10.0.0.5:8786, or local"
        ) from None


def train_on_dask(
    job: TrainJob,
    out: str | Path,
    address: str,
    *,
    resume: bool = False,
    stop: Stop | None = None,
    report: Report | None = None,
) -> dict[str, Any]:
    """Train on a Dask cluster by iterative parameter mixing, and write the model.

    Every file is a block; a pass over the files is a round, with a checkpoint after it. Mean and
    spread of the features are found by a walk of their own before the first round. The workers
    must see the files under the same names.

    Parameters
    ----------
    job : TrainJob
        What to train; a ``shuffle_buffer`` shuffles the rows of each file in each round.
    out : path
        Where to write the model.
    address : str
        Of the scheduler, or "local" for a cluster on this machine.
    resume : bool
        Go on from the checkpoint, if there is one, with the same result.
    stop : Stop, optional
        Asks the run to end.
    report : callable, optional
        Called whenever a block has arrived.

    Returns
    -------
    dict
        A summary in plain values.
    """
    path, clock, stop = Path(out), Clock(), stop or Stop()
    files = expand(job.files)
    check_model_path(path, files)
    if STDIN in files:
        raise ValueError("standard input has no blocks to share out; give files with --dask")
    with sole_writer(path), connected(address) as client, stop.at_any_moment():
        cluster = Cluster(client, timeout=TIMEOUT, retries=0, persist=False)
        run = prepared_run(cluster, job, path)
        if not resume:
            run.checkpoint.remove()
        resumed = run.checkpoint.read() is not None
        _fit(cluster, run, report)
    return run.summary(run.progress.learned, resumed, clock.seconds())


def prepared_run(cluster: Cluster, job: TrainJob, out: Path) -> Run:
    """The run, with grades and number of features found by the workers where they are not told."""
    paths = [os.path.abspath(path) for path in expand(job.files)]
    options, classes = found_by_workers(
        cluster, paths, job.options, job.label_columns(), job.order, job.on_bad_row
    )
    return Run(replace(job, order=classes.tolist(), options=options), out, dask=True)


def _fit(cluster: Cluster, run: Run, report: Report | None) -> None:
    """Measure, mix and write."""
    job, reader = run.job, run.reader
    spec = Spec(reader.options, reader.recipe, reader.columns, run.classes, job.on_bad_row)
    names = block_names(run.files)
    tasks = [(os.path.abspath(path), spec) for path in run.files]
    found = cluster.run(measure, tasks, names, "ordspan-measure")
    rows, skipped = sum(f.rows for f in found), sum(f.skipped for f in found)
    if rows == 0:
        raise FileError(f"{run.files[0]}: no usable row in any file; {skipped} skipped")
    run.scale.state[:3] = joined([f.scale for f in found])
    state = run.scale.state if job.standardise else None
    blocks = Blocks(
        *delayed_blocks(cluster, run.files, spec, state),
        names,
        [],
        np.zeros((1, reader.recipe.n_features)),
        run.classes,
    )
    estimator = fit_blocks(
        cluster,
        OrdinalPA(**job.parameters(run.classes)),
        blocks,
        job.passes,
        shuffle=job.shuffle_buffer > 0,
        checkpoint=run.checkpoint,
        progress=_told_to(report, rows),
    )
    run.progress.mae = [done.mae for done in estimator.rounds_]
    run.progress.learned, run.progress.skipped = rows * job.passes, skipped
    run.learner = estimator.learner_
    model = run.model()
    model.training["blocks"] = len(run.files)
    with room_told(str(run.out)):
        write_atomically(run.out, to_bytes(model))
    run.checkpoint.remove()
    run.bad.examples = [example for f in found for example in f.examples][:N_EXAMPLES]


def _told_to(report: Report | None, rows: int) -> Any:
    """Dask's progress in the words of a training run."""
    if report is None:
        return None

    def tell(done: Progress) -> None:
        share = (done.round - 1 + done.done / done.blocks) / done.rounds
        report(round(rows * done.rounds * share), done.mae, share)

    return tell
