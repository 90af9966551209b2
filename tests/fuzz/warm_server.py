"""A server in a process that is forked from one that has imported and compiled everything."""

import random
import time
from contextlib import suppress
from threading import Thread

import numpy as np

from ordspan.atomic import write_atomically
from ordspan.modelfile import from_bytes, to_bytes
from ordspan.serving.app import make_app
from ordspan.serving.engine import Engine
from ordspan.serving.models import copy_model, learn, predict_batch
from ordspan.serving.records import batch_of
from ordspan.serving.running import run_server
from ordspan.serving.starting import empty_model

COLUMNS = ("a", "b", "c")
GRADES = (1, 2, 3, 4, 5)


def start_model():
    """A model that has learned nothing."""
    return empty_model(np.array(GRADES), COLUMNS)


def learn_row(model, values, lower, upper):
    """Learn one row."""
    learn(model, batch_of(model.recipe, [values]), np.array([lower]), np.array([upper]))


def serve(folder, every, seed, address):
    """Serve the state of a folder, and take back or skip something now and then."""
    engine = Engine(folder, from_bytes(MODEL, "model"), every=every)
    if seed is not None:
        Thread(target=meddle, args=(engine, random.Random(seed)), daemon=True).start()
    run_server(
        make_app(engine), "127.0.0.1", 0, lambda url: write_atomically(address, url.encode())
    )


def meddle(engine, chance):
    """Events that do not come over HTTP, until the engine is closed."""
    with suppress(Exception):
        while True:
            time.sleep(chance.uniform(0, 0.1))
            if chance.random() < 0.5:
                engine.skip({"item": chance.randrange(9)})
            else:
                with suppress(ValueError):  # was taken back before
                    engine.undo(max(1, engine.n_events - chance.randrange(30)))


def warm_up():
    """Compile."""
    model = start_model()
    rng = np.random.default_rng(0)
    for rank in GRADES:
        learn_row(model, rng.normal(size=3).tolist(), rank, rank)
    said = predict_batch(model, batch_of(model.recipe, rng.normal(size=(5, 3)).tolist()))
    assert model.calibration is not None
    model.calibration.probabilities(said.score)
    copy_model(from_bytes(to_bytes(model), "model"))


MODEL = to_bytes(start_model())
