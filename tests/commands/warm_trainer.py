"""Imported once by the process that others are forked from: all is imported and compiled."""

import tempfile
from pathlib import Path

from files_to_train import make_rows, write_rows

from ordspan.commands.train import TrainJob, train

with tempfile.TemporaryDirectory() as folder:
    rows = make_rows(50)
    for ending, label in (("csv", "grade"), ("txt", None)):
        path = write_rows(Path(folder), ending, *rows)
        train(TrainJob([str(path)], label=label), Path(folder) / "m")
