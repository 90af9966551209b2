"""Small tables in files, a model of them, and the command line in this process."""

import csv
import io
import json
import os
import shlex
import signal
from contextlib import contextmanager
from functools import cache
from unittest.mock import patch

import numpy as np
import polars as pl
import pyarrow as pa
from pyarrow import csv as arrow_csv
from pyarrow import parquet
from typer import testing

from ordspan.cli import app

# Typer makes all commands anew for each call, which takes longer than most of them do
if hasattr(testing, "_get_command"):
    testing._get_command = cache(testing._get_command)
GRADES = ["low", "mid", "high", "top"]
FEATURES = ["size", "age"]


def ask(*words, **more):
    return testing.CliRunner().invoke(app, [str(word) for word in words], **more)


def said(*words, code=0, **more):
    """What a command prints; it ends with this exit code, and never with a traceback."""
    answer = ask(*words, **more)
    assert isinstance(answer.exception, SystemExit | None), answer.exception
    assert answer.exit_code == code, answer.output
    return answer.output


def example(name):
    """The example of a command's help, whatever lines it is broken into."""
    shown = " ".join(said(name, "--help").split())
    return shlex.split(shown.partition("Example: ordspan ")[2])


def summary(*words, **more):
    """What a command prints with --json."""
    answer = ask(*words, "--json", **more)
    assert answer.exit_code == 0, answer.output
    return json.loads(answer.stdout)


def stopped(*words, checkpoints=1, number=signal.SIGTERM, code=130, **more):
    """What a command prints that gets a signal when it has written so many checkpoints."""
    replace, written = os.replace, []

    def replace_and_stop(*paths, **how):
        replace(*paths, **how)
        if not str(paths[1]).endswith(".checkpoint"):  # a compiled function of Numba
            return
        written.append(paths)
        if len(written) == checkpoints:
            signal.raise_signal(number)

    before = signal.getsignal(number)
    with patch("os.replace", replace_and_stop):
        printed = said(*words, code=code, **more)
    assert signal.getsignal(number) is before
    return printed


def check_resumes(folder, *words, checkpoints=1):
    """A training that is stopped goes on to the bytes of one that is not."""
    whole, model = folder / "whole", folder / "resumed"
    said(*words, "--model", whole)
    stopped(*words, "--model", model, checkpoints=checkpoints)
    assert not model.exists()
    assert summary(*words, "--model", model, "--resume")["resumed"]
    assert model.read_bytes() == whole.read_bytes()
    assert not model.with_name("resumed.checkpoint").exists()


def ratings(n=300, seed=0):
    """Rows with an id, two numbers of very different scale, a word, and a grade made of them."""
    rng = np.random.default_rng(seed)
    size, age = rng.normal(5000, 300, n).round(2), rng.normal(0.3, 0.1, n).round(5)
    town = rng.choice(["Ulm", "Bonn, am Rhein", 'the "other"'], n)
    rank = np.digitize((size - 5000) / 300 + (age - 0.3) / 0.2, [-1, 0, 1])
    columns = {"id": [f"r{i}" for i in range(n)], "size": size, "age": age, "town": town}
    return pa.table(columns | {"grade": np.array(GRADES)[rank]})


OPINIONS = {"great": 2, "good": 1, "not bad": 1, "not good": -1, "bad": -1, "awful": -2}
WORDS = "the food was service here we came with friends on a rainy day and it is so"
FILLERS = np.array(WORDS.split())


def reviews(n=400, seed=0):
    """Sentences that differ, of which one opinion decides the stars."""
    rng = np.random.default_rng(seed)
    cells, stars = [], []
    for opinion in rng.choice([*OPINIONS], n):
        words = [*rng.choice(FILLERS, rng.integers(5, 12))]
        words.insert(rng.integers(len(words)), opinion)
        cells.append(" ".join(words).capitalize() + rng.choice([".", "!", " :-)"]))
        stars.append(3 + OPINIONS[opinion])
    return pl.DataFrame({"id": [f"r{i}" for i in range(n)], "review": cells, "stars": stars})


def write_table(table, path):
    """A file of the format that its ending tells."""
    name = str(path)
    if name.endswith(".parquet"):
        parquet.write_table(table, path, row_group_size=1500)
    elif name.endswith(".jsonl"):
        table.to_pandas().to_json(path, orient="records", lines=True, double_precision=15)
    else:
        with pa.output_stream(path, compression="gzip" if name.endswith(".gz") else None) as file:
            arrow_csv.write_csv(table, file)
    return path


def read_rows(path):
    """The rows of a CSV file, as Python's own reader reads them."""
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def trained(folder, *words, name="model"):
    """A model of ``ratings`` that ordspan train wrote."""
    data = write_table(ratings(), folder / f"{name}-train.csv")
    model = folder / name
    order = ["--label", "grade", "--grades", ",".join(GRADES)]
    answer = ask("train", data, *order, "--drop", "id", *words, "--model", model)
    assert answer.exit_code == 0, answer.output
    return model


class Trickle(io.BytesIO):
    """Standard input that gives a few bytes at a time, and lines in pieces."""

    def __init__(self, content, size=7):
        super().__init__(content)
        self.size = size

    def read1(self, size=-1):
        return super().read1(self.size)


@contextmanager
def machine_of(n_bytes):
    """A machine with so much memory."""
    real = os.sysconf
    told = {"SC_PHYS_PAGES": n_bytes // real("SC_PAGE_SIZE")}
    with patch("os.sysconf", lambda name: told[name] if name in told else real(name)):
        yield


@contextmanager
def limited_room(n_bytes):
    """No file can become larger than this, as on a disk that is full."""
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
