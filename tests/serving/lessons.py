"""Models of every kind that can be served, and rows for them to learn."""

import json
import shutil
from functools import cache

import numpy as np
import polars as pl
from files_to_train import make_rows

from ordspan.commands.models import read_table_model
from ordspan.models.file import to_bytes
from ordspan.serving.engine import copy_model, empty_model, learn, untrained, warm_up
from ordspan.serving.log import Event
from ordspan.serving.records import RecordReader
from ordspan.tables.encoder import Encoder, Recipe
from serving.served import model_file

GRADES = np.array([1, 2, 3, 4])
KINDS = ("empty", "hashed", "fixed", "words", "kernel", "svmlight")
WORDS = ("", "cook", "smith", "clerk")


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
    return read_table_model(model_file(kind))


def lessons(kind, n_rows, seed=0, key=None):
    """Events to learn: rows with labels, exact ones and ranges, and some of them with gaps."""
    rng = np.random.default_rng(seed)
    X, ranks = make_rows(n_rows, seed)
    made = []
    for row, rank in zip(X.tolist(), ranks.tolist(), strict=True):
        lower, upper = rank - rng.integers(2), rank + rng.integers(2)
        values = row[: 1 if kind == "hashed" else 2 if kind in ("fixed", "words") else 3]
        if kind == "svmlight":
            values = [{place: value for place, value in enumerate(row, 1) if rng.integers(3)}]
        elif not rng.integers(5):
            values[0] = None
        if kind in ("hashed", "words"):
            values = [*values, str(rng.choice(WORDS))]
        ends = max(int(lower), 1), min(int(upper), 4)
        made.append(Event(0, "learn", key, 0.0, json.dumps(values), *ends))
    return made


def one_by_one(model, events):
    """The bytes of a copy that learns events in turn, without any log."""
    model = copy_model(start(model) if isinstance(model, str) else model)
    reader = RecordReader(model)
    for event in events:
        learn(model, reader, [event])
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
