"""`ordspan serve` killed at any moment: no confirmed label is lost, and none is learned twice."""

import json
import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from multiprocessing import Pipe, get_context
from random import Random

import httpx
import polars as pl
import pytest

from commands.tables import said
from ordspan import load
from ordspan.__main__ import main
from serving.served import model_of, models_along

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="needs the signals of POSIX"),
]
KILLS = int(os.environ.get("ORDSPAN_KILLS", "3"))  # many take minutes
SEED = int(os.environ.get("ORDSPAN_SEED", "1"))
MOMENTS = ("at work", "starting", "draining")
FORKS = get_context("forkserver")
FORKS.set_forkserver_preload(["ordspan.cli", "ordspan.serving.app"])
COLUMNS, N_CLIENTS = ("a", "b", "c"), 4
PATIENCE = 600  # seconds: a hang, not a busy machine


def serve(words, out):
    """`ordspan serve` in a process of its own, which has its imports already."""
    sys.stdout = os.fdopen(os.dup(out.fileno()), "w")
    sys.argv = ["ordspan", "serve", *map(str, words)]
    main()


def begin(state, chance):
    """A new process that serves a folder, and what it prints."""
    words = ["--state", state, "--grades", "1..5", "--columns", ",".join(COLUMNS)]
    words += ["--port", 0, "--json", "--snapshot-every", chance.choice((1, 20, 500))]
    printed, out = Pipe(duplex=False)
    process = FORKS.Process(target=serve, args=(words, out))
    process.start()
    out.close()
    return process, printed


class Client:
    """Sends labels to one server after the other, and remembers which were confirmed."""

    def __init__(self, name, chance):
        self.name, self.chance, self.numbers = name, chance, count()
        self.confirmed = {}  # by number of event
        self.unanswered = []

    def some_labels(self):
        if self.confirmed and self.chance.random() < 0.1:
            return [self.chance.choice(list(self.confirmed.values()))]  # sent again
        return [self.label() for _ in range(self.chance.choice((1, 1, 5)))]

    def label(self):
        row = {name: round(self.chance.gauss(0, 3), 3) for name in COLUMNS}
        ends = sorted(self.chance.choices(range(1, 6), k=2))
        return row | {"label": ends, "key": f"{self.name} {next(self.numbers)}"}

    def send(self, address):
        """Send until the server is gone; labels without an answer are sent to the next one."""
        with (
            suppress(httpx.TransportError),
            httpx.Client(base_url=address, timeout=PATIENCE) as client,
        ):
            while True:
                self.unanswered = self.unanswered or self.some_labels()
                answer = client.post("/learn", json=self.unanswered)
                if answer.status_code == 503:  # it is about to end
                    return
                assert answer.status_code == 200, answer.text
                for record, done in zip(self.unanswered, answer.json(), strict=True):
                    assert self.confirmed.setdefault(done["event"], record) == record
                self.unanswered = []


def n_confirmed(clients):
    return sum(len(client.confirmed) for client in clients)


def live(state, clients, chance, moment):
    """One life of a server, and its end."""
    process, printed = begin(state, chance)
    with printed, ThreadPoolExecutor(N_CLIENTS) as pool:
        sent = []
        if moment == "starting":
            time.sleep(chance.uniform(0, 0.5))
        else:
            with os.fdopen(os.dup(printed.fileno())) as lines:
                address = json.loads(lines.readline())["address"]
            before = n_confirmed(clients)
            sent = [pool.submit(client.send, address) for client in clients]
            time.sleep(chance.uniform(0.1, 0.5))
            while n_confirmed(clients) < before + 10 and not any(one.done() for one in sent):
                time.sleep(0.01)  # a busy machine
        if moment in ("draining", "ended"):
            process.terminate()
            time.sleep(chance.uniform(0, 0.05))
        if moment != "ended":
            process.kill()
        for one in sent:
            one.result()
        process.join(PATIENCE)
        assert process.exitcode in (-signal.SIGKILL, -signal.SIGTERM, 0)


def test_a_server_that_is_killed_at_any_moment_loses_nothing(tmp_path):
    chance, state = Random(SEED), tmp_path / "state"
    clients = [Client(f"client {n}", Random(f"{SEED} {n}")) for n in range(N_CLIENTS)]
    for kill in range(KILLS):
        live(state, clients, chance, MOMENTS[kill % len(MOMENTS)])
    n_before = len(labels_of(state))
    live(state, clients, chance, "ended")
    kept = {path.name for path in state.iterdir() if path.suffix != ".partial"}
    assert kept == {"base.ordspan", "log.sqlite", "snapshot.ordspan"}
    labels = labels_of(state)
    assert len({label["key"] for label in labels}) == len(labels)
    confirmed = {number: label for one in clients for number, label in one.confirmed.items()}
    assert len(confirmed) > 10
    for number, label in confirmed.items():
        assert labels[number - 1] == label
    silent = {*range(n_before + 1, len(labels) + 1)} - confirmed.keys()
    assert not silent, "a server that ends of itself confirms all that it learned"


def labels_of(state):
    """The labels of a folder by number, whose model must be what they teach one by one."""
    rows = pl.read_csv(said("serve", "--state", state, "--export", "-").encode()).to_dicts()
    labels = [row | {"label": [row.pop("lower"), row.pop("upper")]} for row in rows]
    assert model_of(state) == models_along(load(state / "base.ordspan"), labels)[-1]
    return labels
