"""Models of every kind that can be served, and rows for them to learn."""

import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from files_to_train import make_rows, write_rows

from ordspan.commands.train import TrainJob, train
from ordspan.models.file import from_bytes, to_bytes
from ordspan.serving.models import copy_model, encode, learn, warm_up
from ordspan.serving.records import RecordReader, Rows
from ordspan.serving.starting import empty_model, untrained
from ordspan.tables.encoder import Encoder, Recipe

GRADES = np.array([1, 2, 3, 4])
KINDS = ("empty", "hashed", "fixed", "words", "kernel", "svmlight")
WORDS = ("", "cook", "smith", "clerk")


class Lesson(NamedTuple):
    """A labelled row."""

    values: Any
    lower: int
    upper: int
    key: str | None = None


def rows_of(engine, lessons):
    """Lessons as an engine takes them."""
    values, lower, upper, keys = zip(*lessons, strict=True)
    arrays = engine.reader.arrays(engine.model.encoder, values)
    return Rows(values, *arrays, np.array(lower), np.array(upper), keys)


@cache
def start(kind):
    """A model to begin with."""
    if kind == "empty":
        return empty_model(GRADES, ["a", "b", "c"])
    if kind == "hashed":
        return empty_model(GRADES, ["a", "job"], text=["job"])
    if kind in ("fixed", "words"):
        jobs = (("job", WORDS[:3]),) if kind == "words" else ()
        encoder = Encoder(Recipe(("a", "b"), missing_indicators=("a",), words=jobs))
        words = {"job": ["cook"] * 100} if kind == "words" else {}
        encoder.features(make_rows(100)[0][:, :2].copy(), words and pl.DataFrame(words), learn=True)
        return untrained(encoder, GRADES)
    with tempfile.TemporaryDirectory() as folder:
        path = write_rows(Path(folder), "txt" if kind == "svmlight" else "csv", *make_rows(60))
        how = {"label": "grade", "learner": "kernel", "budget": 12}
        model = Path(folder) / "model"
        train(TrainJob(path, model, **({} if kind == "svmlight" else how)))
        return from_bytes((Path(folder) / "model").read_bytes(), "model")


def lessons(kind, n_rows, seed=0, **more):
    """Rows with labels, exact ones and ranges, and some of them with gaps."""
    rng = np.random.default_rng(seed)
    X, ranks = make_rows(n_rows, seed)
    made = []
    for row, rank in zip(X.tolist(), ranks.tolist(), strict=True):
        lower, upper = rank - rng.integers(2), rank + rng.integers(2)
        values = row[: 1 if kind == "hashed" else 2 if kind in ("fixed", "words") else 3]
        if kind == "svmlight":
            values = [(place, value) for place, value in enumerate(row) if rng.integers(3)]
        elif not rng.integers(5):
            values[0] = None
        if kind in ("hashed", "words"):
            values = [*values, str(rng.choice(WORDS))]
        made.append(Lesson(tuple(values), max(int(lower), 1), min(int(upper), 4), **more))
    return made


def one_by_one(model, rows):
    """The bytes of a copy that learns (values, lower, upper, ...) in turn, without any log."""
    model = copy_model(start(model) if isinstance(model, str) else model)
    reader = RecordReader(model)
    for values, *ends in rows:
        features, _ = encode(model, *reader.arrays(model.encoder, [values]))
        learn(model, features, *np.array([ends[:2]]).T)
    return to_bytes(model)


@cache
def compile_all(kind):
    """Learn and predict once, so that nothing is left to compile."""
    warm_up(start(kind))
    one_by_one(kind, lessons(kind, 1))


def killed(engine, folder):
    """The state folder as a kill at this moment leaves it."""
    shutil.copytree(engine.folder, folder, ignore=lambda *_: [".log.sqlite.lock"])
    return folder
