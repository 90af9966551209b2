"""Train from files on a Dask cluster; each file is a block, read by a worker."""

from __future__ import annotations

import ordspan.distributed  # noqa: F401  first, as its error names the extra to install

# isort: split
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

from ordspan.catalog import PA
from ordspan.clock import Clock
from ordspan.commands.continuing import check_model_path, no_checkpoint_hint, refuse_to_overwrite
from ordspan.commands.jobs import TrainJob
from ordspan.commands.outputs import report_full_disk
from ordspan.commands.stopping import Stop
from ordspan.commands.tally import LabelCounts
from ordspan.commands.train import Run, TrainReport
from ordspan.distributed.blocks import Blocks
from ordspan.distributed.cluster import Cluster
from ordspan.distributed.file_blocks import Spec, block_names, delayed_blocks, preview_on_workers
from ordspan.distributed.training import Progress, fit_blocks
from ordspan.estimators import OrdinalPA
from ordspan.models.atomic import write_atomically
from ordspan.models.checkpoint import Rounds, sole_writer
from ordspan.models.file import to_bytes
from ordspan.tables.files import expand
from ordspan.tables.rows import N_EXAMPLES, FileError
from ordspan.tables.text import STDIN

LOCAL = "local"
TIMEOUT = 60.0
MAX_BETWEEN = 0.3
"""Largest accepted share of the variance of the labels that lies between files."""


class Counted(NamedTuple):
    """Counts of one file."""

    rows: int
    skipped: int
    examples: list[str]
    labels: LabelCounts


def count(path: str, spec: Spec) -> Counted:
    """Count the rows and grades of a file; runs on a worker."""
    reader, labels = spec.reader(path), LabelCounts(len(spec.classes))
    for batch in reader.batches():
        assert batch.lower is not None
        assert batch.upper is not None
        labels.add(batch.lower, batch.upper)
    return Counted(labels.rows, reader.bad.count, reader.bad.examples, labels)


@contextmanager
def connected(address: str | Client) -> Iterator[Client]:
    """A client of the cluster at an address, or of a local one; a given client stays open."""
    if isinstance(address, Client):
        yield address
        return
    if not isinstance(address, str):
        raise TypeError(f'dask is {address!r}; give an address, "local" or a distributed.Client')
    if address == LOCAL:
        with _local_cluster() as cluster, Client(cluster, set_as_default=False) as client:
            yield client
        return
    if not address.startswith("inproc://"):  # has no port to connect to
        _check_reachable(address)
    with Client(address, timeout=TIMEOUT / 4, set_as_default=False) as client:
        yield client


def _local_cluster() -> LocalCluster:
    """A cluster on this machine, which logs no errors of blocks: Cluster reports them."""
    silent = {"dashboard_address": ":0", "silence_logs": logging.CRITICAL}
    try:
        return LocalCluster(threads_per_worker=1, **silent)
    except RuntimeError as error:
        raise RuntimeError(
            f"{error} Workers import the script that starts them; in a script, call this "
            'function below: if __name__ == "__main__":'
        ) from error


def _check_reachable(address: str) -> None:
    """Refuse an unreachable address: a client would wait long and be hard to interrupt."""
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
    address: str | Client,
    *,
    resume: bool = False,
    overwrite: bool = False,
    stop: Stop | None = None,
    report: TrainReport | None = None,
) -> dict[str, Any]:
    """Train on a Dask cluster by iterative parameter mixing, and write the model.

    Each file is a block and each pass a round, with a checkpoint after it. The workers preview
    the files before the first round, so the same paths must exist on every worker.

    Parameters
    ----------
    job : TrainJob
        What to train. The rows of each file are shuffled in each round if ``shuffle`` is
        set or the rows are sorted. Only the learner "pa" is supported.
    out : path
        Where to write the model.
    address : str or distributed.Client
        Address of the scheduler, "local" for a cluster on this machine, or a client.
    resume : bool
        Resume from the checkpoint, which must exist, with the same result.
    overwrite : bool
        Replace an existing model.
    stop : Stop, optional
        Requests an early end.
    report : callable, optional
        Called when a block is done.

    Returns
    -------
    dict
        A summary in plain values.
    """
    path, clock, stop = Path(out), Clock(), stop or Stop()
    files = expand(job.files)
    check_model_path(path, files)
    if STDIN in files:
        raise ValueError("standard input cannot be split into blocks; give files")
    if job.learner != PA or job.start is not None or job.hold_out:
        raise ValueError(
            "Dask supports only the learner pa, trained from scratch and on all rows; "
            "train without Dask"
        )
    with sole_writer(path):
        if not (overwrite or resume):
            refuse_to_overwrite(path)
        with connected(address) as client, stop.at_any_moment():
            cluster = Cluster(client, timeout=TIMEOUT, retries=0, persist=False)
            run = prepared_run(cluster, job, path)
            if not resume:
                run.checkpoint.remove()
            elif run.checkpoint.read(OrdinalPA, Rounds) is None:
                raise FileError(no_checkpoint_hint(path, run.checkpoint.path))
            _fit(cluster, run, report)
    return run.summary(run.progress.learned, resume, clock.seconds())


def prepared_run(cluster: Cluster, job: TrainJob, out: Path) -> Run:
    """The run; workers find the grades and the number of features that are not given."""
    paths = [os.path.abspath(path) for path in expand(job.files)]
    found = preview_on_workers(
        cluster, paths, job.options, job.label_columns(), job.classes, job.on_bad_row
    )
    job = replace(job, **vars(found.options))
    return Run(job, out, dask=True, samples=found.samples, words=found.words)


def _fit(cluster: Cluster, run: Run, report: TrainReport | None) -> None:
    """Count the rows, train in rounds and write the model."""
    job, reader = run.job, run.reader
    spec = Spec(
        *(reader.options, reader.recipe, reader.columns, run.classes, job.on_bad_row),
        reader.decimals,
    )
    names = block_names(run.files)
    tasks = [(os.path.abspath(path), spec) for path in run.files]
    found = cluster.run(count, tasks, names, "ordspan-count")
    rows, skipped = sum(f.rows for f in found), sum(f.skipped for f in found)
    run.bad.count = skipped
    run.bad.examples = [example for f in found for example in f.examples][:N_EXAMPLES]
    if rows == 0:
        raise FileError(f"{run.files[0]}: no usable row in any file; {skipped} skipped")
    run.bad.check(rows, job.allow_skipped)
    refuse_separate_grades(run.files, [part.labels for part in found])
    run.progress.good = rows
    for part in found:
        run.labels.merge(part.labels)
    blocks = Blocks(
        *delayed_blocks(cluster, run.files, spec, reader.encoder.state),
        names,
        [],
        np.zeros((1, reader.recipe.n_features)),
        run.classes,
    )
    estimator = fit_blocks(
        cluster,
        OrdinalPA(**run.model.parameters),
        blocks,
        job.passes,
        shuffle=run.shuffle,
        checkpoint=run.checkpoint,
        progress=_report_progress(report, rows),
    )
    run.progress.mae = [done.mae for done in estimator.rounds_]
    run.progress.learned, run.progress.skipped = rows * job.passes, skipped
    run.model.learner = estimator.learner_
    model = run.trained()
    model.training["blocks"] = len(run.files)
    with report_full_disk(str(run.out)):
        write_atomically(run.out, to_bytes(model))
    run.checkpoint.remove()


def refuse_separate_grades(files: Sequence[str], counts: Sequence[LabelCounts]) -> None:
    """Refuse files with very different grades: each block would learn only its own."""
    rows = np.array([count.rows for count in counts])
    grades = np.arange(1, counts[0].lower.size + 1)
    sums = np.array([(c.lower + c.upper) @ grades / 2 for c in counts])
    squares = sum(((c.lower + c.upper) @ grades**2) / 2 for c in counts)
    mean = sums.sum() / rows.sum()
    total = squares - rows.sum() * mean**2
    between = (np.square(sums) / np.maximum(rows, 1)).sum() - rows.sum() * mean**2
    if len(files) > 1 and between > MAX_BETWEEN * total > 0:
        raise FileError(
            "each file is trained as a block of its own, but the grades differ between files "
            f"({between / total:.0%} of their variance lies between the files, such as "
            f"{files[0]}); mix the rows of the files first, or train without Dask"
        )


def _report_progress(report: TrainReport | None, rows: int) -> Any:
    """A callback that reports the progress of Dask as that of a training run."""
    if report is None:
        return None

    def forward(done: Progress) -> None:
        share = (done.round - 1 + done.done / done.blocks) / done.rounds
        report(round(rows * done.rounds * share), done.mae, share)

    return forward
