"""Models of every kind, records for them to learn, and the service of one."""

import shutil
import socket
import warnings
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from files_to_train import make_rows, write_rows

from ordspan import load, train_files
from ordspan.models.file import to_bytes
from ordspan.serving.app import make_app
from ordspan.serving.engine import EVERY, Engine, empty_model

with warnings.catch_warnings():  # about the package that Starlette would rather have
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

GRADES = ["low", "mid", "high"]
ROW = {"size": 1.5, "price": 1234.5, "town": "Ulm", "note": "old roof"}
"""A record of the model "mixed"."""
KINDS = ("empty", "hashed", "mixed", "large", "kernel", "svmlight")
"""Models that learn; "large" has 65,536 features for words."""


def empty(columns="a,b", grades=(1, 2, 3, 4, 5), text=()):
    """A model that has learned nothing."""
    return empty_model(grades, columns.split(","), text)


def start(kind):
    """A model to begin with."""
    if kind == "empty":
        return empty("a,b,c")
    return empty("a,town", text=["town"]) if kind == "hashed" else load(model_file(kind))


@cache
def model_file(kind: str) -> Path:
    """A trained model: of numbers, of every sort of column, of svmlight rows, kernel or SVM."""
    folder = Path(mkdtemp())
    options = {
        "kernel": {"learner": "kernel", "budget": 12},
        "svm": {"learner": "svm"},
        "bands": {"cut": [2, 3, 4]},
        "large": {"hash_bits": 16},
    }.get(kind, {})
    if kind in ("mixed", "large"):
        rows, options = mixed_file(folder), options | {"classes": GRADES, "hashed": ["note"]}
    else:
        rows = write_rows(folder, "txt" if kind == "svmlight" else "csv", *make_rows(300))
    options |= {} if kind == "svmlight" else {"label": "grade"}
    train_files(rows, folder / "model", **options)
    return folder / "model"


def mixed_file(folder: Path) -> Path:
    """Numbers with gaps, numbers without, few words, many words."""
    rng, n_rows = np.random.default_rng(0), 300
    size, town = rng.normal(size=n_rows).round(2), rng.choice(["Ulm", "Aach", ""], n_rows)
    columns = {
        "size": [None if number % 9 == 0 else x for number, x in enumerate(size.tolist())],
        "price": rng.integers(10_000, 99_999, n_rows) / 10,
        "town": town,
        "note": [f"word{number % 70} {name}" for number, name in enumerate(town)],
        "grade": np.array(GRADES)[np.digitize(size + (town == "Ulm"), [-0.3, 0.8])],
    }
    pl.DataFrame(columns).write_csv(folder / "mixed.csv", separator=";")
    return folder / "mixed.csv"


def lessons(kind, n_rows, seed=0):
    """Records to learn: exact labels and ranges, gaps and unknown words, each with a key."""
    rng, top = np.random.default_rng(seed), 3 if kind in ("mixed", "large") else 4
    X, ranks = make_rows(n_rows, seed)
    records = []
    for number, (row, rank) in enumerate(zip(X.tolist(), ranks.tolist(), strict=True)):
        gap = row[0] if rng.integers(5) else None
        town = rng.choice(["", "Ulm", "Aach", "Rom", None])
        note = rng.choice(["word3 Ulm", "", "3", "Ünder", f"word{number}"])
        record = {
            "empty": {"a": gap, "b": row[1], "c": row[2]},
            "hashed": {"a": gap, "town": town},
            "svmlight": {"features": {j: x for j, x in enumerate(row, 1) if rng.integers(3)}},
        }.get(kind, {"x0": gap, "x1": row[1], "x2": row[2]})
        if top == 3:
            record = {"size": gap, "price": row[1], "town": town, "note": str(note)}
        rank = min(rank, top)
        ends = [max(1, rank - int(rng.integers(2))), min(top, rank + int(rng.integers(2)))]
        label = [GRADES[end - 1] for end in ends] if top == 3 else ends
        records.append(record | {"label": label, "key": f"key {number}"})
    return records


@contextmanager
def serving(folder, model=None, every=EVERY, **options):
    """A client of a service in this process; its engine is `client.engine`."""
    engine = Engine(folder, start(model) if isinstance(model, str) else model, every=every)
    with TestClient(make_app(engine, **options), base_url="http://127.0.0.1") as client:
        client.engine = engine
        yield client


@contextmanager
def visited(visit):
    """Services that commands start are visited in this process, whatever their port, then ended."""
    create = socket.create_server

    def run(server, sockets):
        address = f"http://localhost:{sockets[0].getsockname()[1]}"
        server.ready()
        with TestClient(server.config.app, base_url=address) as client:
            visit(client)

    with (
        patch("uvicorn.Server.run", run),
        patch("socket.create_server", lambda place, **how: create((place[0], 0), **how)),
    ):
        yield


def refusal(folder, model=None, error=(OSError, ValueError)):
    """The sentence with which a folder is not served."""
    with pytest.raises(error) as said, serving(folder, model):
        pass
    return str(said.value)


def learn(client, records):
    """What is answered to a record or a list of records that must be learned."""
    answer = client.post("/learn", json=records)
    assert answer.status_code == 200, answer.text
    return answer.json()


def model_of(folder):
    """The model of a folder as it is served next."""
    with serving(folder) as client:
        return client.get("/model").content


def models_along(model, records):
    """The models of a service that is never disturbed: at first, and after each record."""
    with TemporaryDirectory() as folder, serving(folder, model) as client:
        models = [client.get("/model").content]
        for record in records:
            learn(client, record)
            models.append(client.get("/model").content)
    return models


def killed(client, folder):
    """The state folder as a kill at this moment leaves it."""
    shutil.copytree(client.engine.folder, folder, ignore=lambda *_: [".log.sqlite.lock"])
    return folder


def standing(client):
    """What a refused request must leave alone."""
    return to_bytes(client.engine.model), client.engine.log.last, len(client.engine.events())
