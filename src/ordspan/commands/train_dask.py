"""Train from files on a Dask cluster; each file is a block, read by a worker."""

from __future__ import annotations

import ordspan.distributed  # noqa: F401  first, as its error names the extra to install

# isort: split
import logging
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from dask.delayed import delayed
from distributed import Client, LocalCluster
from distributed.comm import get_address_host_port

from ordspan.catalog import PA
from ordspan.clock import Clock
from ordspan.commands.model_path import check_model_path, no_checkpoint_hint, refuse_to_overwrite
from ordspan.commands.outputs import report_full_disk
from ordspan.commands.stopping import Stop
from ordspan.commands.tally import LabelCounts
from ordspan.commands.train_job import TrainJob
from ordspan.commands.train_progress import TrainReport
from ordspan.commands.train_run import MAX_CALIBRATION, Run
from ordspan.distributed.blocks import Blocks
from ordspan.distributed.cluster import Cluster
from ordspan.distributed.training import Progress, calibrate, prepare, train
from ordspan.estimators import OrdinalPA
from ordspan.labels.text import LabelReader
from ordspan.models.atomic import write_atomically
from ordspan.models.checkpoint import Rounds, sole_writer
from ordspan.models.file import to_bytes
from ordspan.tables.encoder import Encoder, stack_rows
from ordspan.tables.files import expand, is_svmlight
from ordspan.tables.profile import Profile, sample_file
from ordspan.tables.reading import RowReader, find_words, sample_sparse
from ordspan.tables.rows import N_EXAMPLES, BadRows, FileError
from ordspan.tables.svmlight import index_base, survey
from ordspan.tables.text import STDIN

LOCAL = "local"
TIMEOUT = 60.0
MAX_BETWEEN = 0.3
"""Largest accepted share of the variance of the labels that lies between files."""


class Counted(NamedTuple):
    """Counts of one file."""

    labels: LabelCounts
    skipped: int
    examples: list[str]
    unlabelled: int


def reader_of(reader: RowReader, path: str) -> Any:
    """A reader of one of the files, which shares nothing that changes with the reader of all."""
    assert reader.grades is not None
    return replace(
        reader,
        files=[path],
        first=None,
        encoder=Encoder(reader.recipe, reader.encoder.state.copy()),
        grades=LabelReader(reader.grades.classes),
        bad=BadRows(reader.bad.policy),
    )


def count(reader: RowReader, path: str) -> Counted:
    """Count the rows and grades of a file; runs on a worker."""
    own = reader_of(reader, path)
    labels = LabelCounts(own.grades.classes.size)
    for batch in own.batches():
        labels.add(batch.lower, batch.upper)
    return Counted(labels, own.bad.count, own.bad.examples, own.unlabelled)


def read_block(reader: RowReader, path: str) -> tuple[Any, Any]:
    """Features and labels of a file; runs on a worker."""
    own = reader_of(reader, path)
    classes, parts, ends = own.grades.classes, [], []
    for batch in own.batches():
        parts.append(own.encoder.features(batch.X, batch.table))
        ends.append(np.column_stack([batch.lower, batch.upper]))
    if not parts:
        return np.empty((0, own.recipe.n_features)), np.empty((0, 2), dtype=classes.dtype)
    return stack_rows(parts), classes[np.concatenate(ends) - 1]


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
            # workers may have another working directory
            paths = [os.path.abspath(path) for path in files]
            run = prepared_run(cluster, job, paths, path)
            if not resume:
                run.checkpoint.remove()
            elif run.checkpoint.read(OrdinalPA, Rounds) is None:
                raise FileError(no_checkpoint_hint(path, run.checkpoint.path))
            _fit(cluster, run, paths, report)
    return run.summary(run.progress.learned, resume, clock.seconds())


def prepared_run(cluster: Cluster, job: TrainJob, paths: list[str], out: Path) -> Run:
    """The run; workers sample the files, and find the grades and features that are not given."""
    options, columns, words = job.options, job.label_columns(), None
    if is_svmlight(paths[0], options):
        if job.classes is None or not options.n_features:
            extents = cluster.run(survey, [(path,) for path in paths], paths, "ordspan-survey")
            words = set().union(*(extent.grades for extent in extents))
            if not options.n_features:
                zero_based, n_features = index_base(paths, extents, options.zero_based)
                options = replace(options, zero_based=zero_based, n_features=n_features)
        tasks: list[Any] = [([path], options) for path in paths]
        states, orders = zip(
            *cluster.run(sample_sparse, tasks, paths, "ordspan-sample"), strict=True
        )
        samples: Any = sum(states[1:], states[0]), next(filter(None, orders), "")
    else:
        tasks = [(path, options, len(paths), (*job.text, *job.hashed)) for path in paths]
        samples = cluster.run(sample_file, tasks, paths, "ordspan-sample")
        profile = Profile(samples)
        profile.check(columns.names())  # here, as workers would log a traceback
        if job.classes is None and not profile.whole:
            tasks = [([path], options, columns) for path in paths]
            words = set().union(*cluster.run(find_words, tasks, paths, "ordspan-grades"))
    return Run(replace(job, options=options), out, dask=True, samples=samples, words=words)


def _fit(cluster: Cluster, run: Run, paths: list[str], report: TrainReport | None) -> None:
    """Count the rows, train in rounds and write the model."""
    job, progress = run.job, run.progress
    reader = cluster.share(replace(run.reader, first=None), "ordspan-reader")
    counts = cluster.run(count, [(reader, path) for path in paths], paths, "ordspan-count")
    for part in counts:
        run.labels.merge(part.labels)
    progress.good, progress.skipped = run.labels.rows, sum(part.skipped for part in counts)
    progress.unlabelled = sum(part.unlabelled for part in counts)
    run.bad.count = progress.skipped
    run.bad.examples = [example for part in counts for example in part.examples][:N_EXAMPLES]
    if not progress.good:
        raise FileError(f"{run.files[0]}: no usable row in any file; {run.bad.summary()}")
    run.bad.check(progress.good, job.allow_skipped)
    refuse_separate_grades(run.files, [part.labels for part in counts])
    read = delayed(read_block, pure=False)
    sample = np.zeros((1, run.reader.recipe.n_features))
    blocks = Blocks([read(reader, path) for path in paths], paths, sample, run.classes)
    model = prepare(OrdinalPA(**run.parameters), blocks)
    parts = train(
        cluster,
        model,
        blocks,
        run.checkpoint,
        job.passes,
        shuffle=run.shuffle,
        progress=None if report is None else _progress_reporter(report, progress.good),
        calibration_rows=-(-MAX_CALIBRATION // len(paths)),
    )
    n_kept = sum(part.scores.size for part in parts)
    if job.passes > 1 and n_kept:
        run.notes.append(
            f"{n_kept:,} rows are not learned in any pass, but kept to calibrate probabilities"
        )
    progress.mae = [done.mae for done in model.rounds_]
    progress.learned = sum(done.rows for done in model.rounds_)
    run.learner, run.calibration = model.learner_, calibrate(model, parts) if n_kept else None
    run.training["blocks"] = len(paths)
    with report_full_disk(str(run.out)):
        write_atomically(run.out, to_bytes(run.model()))
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


def _progress_reporter(report: TrainReport, rows: int) -> Callable[[Progress], None]:
    """A callback that reports the progress of Dask as that of a training run."""

    def forward(done: Progress) -> None:
        share = (done.round - 1 + done.done / done.blocks) / done.rounds
        report(round(rows * done.rounds * share), done.mae, share)

    return forward
