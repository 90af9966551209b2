"""Training in a process that is forked from one that has imported and compiled everything."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from files_to_train import make_rows, write_rows

import ordspan.cli
import ordspan.commands.evaluate
import ordspan.commands.predict
import ordspan.files.arrow_file
import ordspan.files.csv_file
import ordspan.files.json_file  # noqa: F401
from ordspan.checkpoint import ENDING
from ordspan.commands import train_run
from ordspan.commands.train import Every, TrainJob, train
from ordspan.files import svmlight, tables
from ordspan.files.features import Recipe, Scale, unusable_rows
from ordspan.files.svmlight import SvmlightFile
from ordspan.learners import Calibration
from ordspan.learners.catalog import make_learner


def run_job(path, out, buffer):
    """Begin a training of three passes, or go on with it; its parts and windows are small."""
    label = None if path.name.endswith(".txt") else "grade"
    job = TrainJob([str(path)], label=label, passes=3, shuffle_buffer=buffer)
    resume = out.with_name(out.name + ENDING).exists()
    with pytest.MonkeyPatch.context() as patch:
        for module in (svmlight, tables):
            patch.setattr(module, "PART_BYTES", 8_000)
        patch.setattr(train_run, "BUFFER_BYTES", 64 * 700)
        every = Every(rows=300, seconds=0)
        return train(job, out, every=every, resume=resume, overwrite=True)


def warm_up():
    """Compile what commands use; Polars is imported, but cannot be used before a fork."""
    X, grades = make_rows(50)
    parameters = {"variant": "PA-I", "C": 0.1, "average": True, "balanced": True}
    with tempfile.TemporaryDirectory() as folder:
        path = write_rows(Path(folder), "txt", X, grades)
        (sparse,) = SvmlightFile(str(path)).sparse_rows()
    for matrix in (X, sparse.X):
        recipe = Recipe(("x0", "x1", "x2")) if matrix is X else Recipe(n_sparse=3)
        scale, order = Scale(3), np.arange(50)
        unusable_rows(recipe, matrix)
        scaled = scale.learn(matrix)
        scale.apply(matrix)
        for rows in (None, order):
            learner, calibration = make_learner("OrdinalPA", parameters, 3, 4), Calibration(4)
            choices = {"order": rows, "predict": True, "calibration": calibration}
            ranks = learner.learn_many(scaled, grades, grades, **choices)
        scores = learner.latent(scaled)
        calibration.probabilities(scores)
        calibration.ranges(scores, ranks, 0.9)
