"""Train from files on a Dask cluster; each file is a block, read by a worker."""

import ordspan.distributed  # noqa: F401  first, as its error names the extra to install

# isort: split
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from dataclasses import replace
from typing import Any

import dask
import numpy as np
import scipy
from dask.delayed import delayed
from distributed import Client, LocalCluster

from ordspan.commands.jobs import Report
from ordspan.commands.stopping import Stop
from ordspan.commands.train import Run
from ordspan.distributed.cluster import Cluster
from ordspan.distributed.training import Progress, prepare, train
from ordspan.estimators import OrdinalPA
from ordspan.metrics.ranks import count_labels
from ordspan.models.file import Rounds
from ordspan.tables.reading import RowReader
from ordspan.tables.rows import N_EXAMPLES, BadRows, FileError

CONNECT_SECONDS = 15.0
FEWEST = 10  # rows of a file of which one is not learned in any pass
MAX_BETWEEN = 0.3
"""Largest accepted share of the variance of the labels that lies between files."""


def reader_of(reader: RowReader, path: str) -> Any:
    """A reader of one of the files, which shares nothing that changes with the reader of all."""
    return replace(deepcopy(reader), files=[path])


def count_labels_of(reader: RowReader, path: str) -> tuple[Any, BadRows, int]:
    """Counts of labels, bad rows and unlabelled rows of a file; runs on a worker."""
    file = reader_of(reader, path)
    n_classes = file.grades.classes.size
    labels = np.zeros((3, n_classes), dtype=np.int64)
    for batch in file.batches():
        labels += count_labels(batch.lower, batch.upper, n_classes)
    return labels, file.bad, file.unlabelled


def read_block(reader: RowReader, path: str) -> tuple[Any, Any]:
    """Features and labels of a file; runs on a worker."""
    file, classes = reader_of(reader, path), reader.grades.classes  # type: ignore[union-attr]
    X: list[Any] = [np.empty((0, file.recipe.n_features))]
    ends = [np.empty((0, 2), dtype=np.int64)]
    for batch in file.batches():
        X.append(file.encoder.features(batch.X, batch.table))
        ends.append(np.column_stack([batch.lower, batch.upper]))
    rows = np.concatenate(X) if file.recipe.dense else scipy.sparse.vstack(X, format="csr")
    return rows, classes[np.concatenate(ends) - 1]


@contextmanager
def connected(address: str | Client) -> Iterator[Client]:
    """A client of the cluster at an address, or of a local one; a given client stays open."""
    if isinstance(address, Client):
        yield address
        return
    # without logs of what blocks raise, as it is raised here
    how: Any = {"dashboard_address": ":0", "silence_logs": logging.CRITICAL}
    local = address == "local"
    # its profiler makes some versions of Python wait for themselves, and nobody looks at it
    with dask.config.set({"distributed.worker.profile.enabled": False}):
        cluster: Any = LocalCluster(threads_per_worker=1, **how) if local else nullcontext(address)
    with cluster as place:
        try:
            client = Client(place, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, TypeError, OverflowError) as error:
            raise FileError(
                f"no Dask scheduler answers at {address!r} ({error}); give its address, such as "
                "tcp://10.0.0.5:8786, or local"
            ) from None
        with client:
            yield client


def learn_in_rounds(run: Run, stop: Stop, report: Report) -> None:
    """Learn on a Dask cluster by iterative parameter mixing.

    Each file is a block and each pass a round, with a checkpoint after it. The same paths must
    exist here and on every worker. The rows of each file are shuffled in each round if ``shuffle``
    is set or the rows are sorted.
    """
    if run.job.resume:
        run.checkpoint.read(OrdinalPA, Rounds)  # raises if it is that of another training
    with stop.at_any_moment(), connected(run.job.dask) as client:
        fit(Cluster(client), run, report)


def fit(cluster: Cluster, run: Run, report: Report) -> None:
    """Count the rows, and train in rounds."""
    # workers may have another working directory
    files, progress = [os.path.abspath(path) for path in run.reader.files], run.progress
    reader = cluster.share(replace(run.reader, opened={}), "ordspan-reader")
    sources = [(reader, path) for path in files]
    counts = cluster.run(count_labels_of, sources, files, "ordspan-count")
    labels, bad, unlabelled = zip(*counts, strict=True)
    progress.labels = sum(labels).tolist()
    progress.bad.count = sum(part.count for part in bad)
    progress.bad.examples = [example for part in bad for example in part.examples][:N_EXAMPLES]
    progress.good, run.reader.unlabelled = sum(progress.labels[0]), sum(unlabelled)
    run.check_rows()
    if max(int(counted[0].sum()) for counted in labels) < (FEWEST if run.passes > 1 else 2):
        raise FileError(
            "no file has enough rows to keep some to calibrate probabilities on; train without Dask"
        )
    refuse_separate_grades(files, labels)
    read = delayed(read_block, pure=False)
    sample = np.zeros((1, run.reader.recipe.n_features))
    blocks = [(path, read(reader, path)) for path in files]

    def forward(done: Progress) -> None:
        share = (done.round - 1 + done.done / done.blocks) / done.rounds
        report(round(progress.good * done.rounds * share), done.mae, share)

    run.model = run.new_model()
    model = prepare(OrdinalPA(**run.model.parameters), sample, run.classes)
    how: Any = {"shuffle": run.shuffle, "progress": forward, "calibrated": True}
    calibration = train(cluster, model, blocks, run.checkpoint, run.passes, **how)
    assert calibration is not None  # some rows were kept for it
    run.model.calibration = calibration
    run.model.learner = model.learner_
    progress.mae = [done.mae for done in model.rounds_]
    progress.learned = sum(done.rows for done in model.rounds_)
    run.note_kept(progress.good - model.rounds_[-1].rows)
    run.model.training["blocks"] = len(files)


def refuse_separate_grades(files: Sequence[str], counts: Sequence[Any]) -> None:
    """Refuse files with very different grades: each block would learn only its own."""
    weight = np.array([(lower + upper) / 2 for lower, upper, _ in counts])
    grades, rows = np.arange(weight.shape[1]), weight.sum(axis=1)
    means, mean = weight @ grades / np.maximum(rows, 1), weight.sum(axis=0) @ grades / rows.sum()
    between, total = rows @ (means - mean) ** 2, weight.sum(axis=0) @ (grades - mean) ** 2
    if between > MAX_BETWEEN * total:
        raise FileError(
            "each file is trained as a block of its own, but the grades differ between files "
            f"({between / total:.0%} of their variance lies between the files, such as "
            f"{files[0]}); mix the rows of the files first, or train without Dask"
        )
