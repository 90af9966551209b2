"""Models of every kind, and the service of one, for the tests of HTTP."""

import csv
import io
import warnings
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
from files_to_train import make_rows, write_rows

from ordspan.commands.models import read_table_model
from ordspan.commands.train import TrainJob, train
from ordspan.labels.grades import read_order
from ordspan.models.file import to_bytes
from ordspan.serving.app import make_app
from ordspan.serving.engine import Engine, empty_model

with warnings.catch_warnings():  # about the package that Starlette would rather have
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

GRADES = ["low", "mid", "high"]
ROW = {"size": 1.5, "price": 1234.5, "town": "Ulm", "note": "old roof"}
"""A record of the model "mixed"."""


@cache
def model_file(kind: str) -> Path:
    """A trained model: of numbers, of every sort of column, of svmlight rows, kernel or SVM."""
    folder = Path(mkdtemp())
    model = folder / "model"
    if kind == "mixed":
        job = TrainJob(mixed_file(folder), model, label="grade", classes=GRADES, hashed=["note"])
    elif kind == "svmlight":
        job = TrainJob(write_rows(folder, "txt", *make_rows(300)), model)
    else:
        learner = {"learner": kind} if kind in ("kernel", "svm") else {}
        learner |= {"budget": 12} if kind == "kernel" else {}
        learner |= {"cut": [2, 3, 4]} if kind == "bands" else {}
        rows = write_rows(folder, "csv", *make_rows(300))
        job = TrainJob(rows, model, label="grade", **learner)
    train(job)
    return model


def mixed_file(folder: Path) -> Path:
    """Numbers with gaps, numbers without, few words, many words."""
    rng = np.random.default_rng(0)
    lines = io.StringIO()
    write = csv.writer(lines, delimiter=";")
    write.writerow(["size", "price", "town", "note", "grade"])
    for number in range(300):
        size, town = rng.normal(), rng.choice(["Ulm", "Aach", ""])
        price = f"{rng.integers(1000, 9999)}.{rng.integers(10)}"
        grade = GRADES[int(np.digitize(size + (town == "Ulm"), [-0.3, 0.8]))]
        size = "" if number % 9 == 0 else f"{size:.2f}"
        write.writerow([size, price, town, f"word{number % 70} {town}", grade])
    path = folder / "mixed.csv"
    path.write_text(lines.getvalue())
    return path


def empty(columns="a,b", grades="1..5", text=()):
    """A model that has learned nothing."""
    return empty_model(read_order(grades), columns.split(","), text)


@contextmanager
def serving(folder, model, **options):
    """A client of a service in this process; its engine is `client.engine`."""
    engine = opened(folder, model)
    app = make_app(engine, **options)
    with TestClient(app, base_url="http://127.0.0.1") as client:
        client.engine = engine
        yield client


def opened(folder, model):
    """An engine that begins with a model, or with the kind of one."""
    start = read_table_model(model_file(model)) if isinstance(model, str) else model
    return Engine(folder, start)


def standing(client):
    """What a refused request must leave alone."""
    return to_bytes(client.engine.model), client.engine.n_events, len(client.engine.events())
