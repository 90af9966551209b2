"""Servers that die at any moment: no label that was confirmed is lost, and none learned twice.

On its own: python tests/fuzz/serve_kills.py --kills 1000 [--seed 1]
"""

import argparse
import faulthandler
import json
import multiprocessing
import os
import shutil
import signal
import sys
import time
from collections import Counter
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from threading import Thread
from typing import NamedTuple
from urllib.parse import urlsplit

from warm_server import COLUMNS, GRADES, MODEL, learn_row, serve

from ordspan.files.batch import FileError
from ordspan.modelfile import from_bytes, to_bytes
from ordspan.serving.engine import Engine
from ordspan.serving.log import LEARN, UNDO, Event

N_CLIENTS, MOST_KILLS = 8, 20
HANGS = 120  # seconds after which nothing will happen any more, even on a busy machine
LIFE = 0.3  # seconds a server lives at most after its start
MOMENTS = {"at work": 12, "starting": 5, "draining": 3, "not at all": 1}
"""When a server is killed, and how often; one that is not killed is asked to end."""
COUNTS: Counter[str] = Counter()


class Sent(NamedTuple):
    """A label as the log must have it."""

    key: str | None
    values: str
    lower: int
    upper: int


class Client(Thread):
    """Sends labels and questions to whatever server lives, and remembers what was confirmed."""

    address: str | None = None  # of the server that lives
    over = False

    def __init__(self, name: str, seed: int) -> None:
        super().__init__(name=name, daemon=True)
        self.chance, self.connection = Random(seed), None
        self.confirmed: dict[int, Sent] = {}
        self.kept: list[dict] = []  # confirmed ones with a key, which may be sent again
        self.wrong: list[str] = []
        self.idle, self.n_sent = True, 0

    def run(self) -> None:
        """Send until it is over."""
        try:
            while not Client.over:
                if self.chance.random() < 0.3:
                    self.deliver("/predict", [self.row() for _ in range(self.chance.randint(1, 4))])
                elif self.kept and self.chance.random() < 0.1:
                    self.deliver("/learn", [self.chance.choice(self.kept)])
                else:
                    n_rows = self.chance.choice((1, 1, 5))
                    self.deliver("/learn", [self.label() for _ in range(n_rows)])
        except Exception as error:
            self.wrong.append(repr(error))
            self.idle = True

    def row(self) -> dict:
        return {name: round(self.chance.gauss(0, 3), 3) for name in COLUMNS}

    def label(self) -> dict:
        """A row with an exact label or a range, most of them with a key."""
        self.n_sent += 1
        low, high = sorted(self.chance.choices(GRADES, k=2))
        said = {"label": f"{low}-{high}"} if self.chance.random() < 0.5 else {"label": low}
        key = {"key": f"{self.name} {self.n_sent}"} if self.chance.random() < 0.8 else {}
        return self.row() | said | key

    def deliver(self, path: str, records: list[dict]) -> None:
        """Send until there is an answer; without keys, or with bad luck, only once."""
        again = path == "/predict" or all("key" in record for record in records)
        sent = False
        while not Client.over and (not sent or (again and self.chance.random() < 0.8)):
            if Client.address is None:
                time.sleep(0.002)
                continue
            sent, self.idle = True, False
            answered = self.ask(path, records)
            self.idle = True
            if answered:
                return

    def ask(self, path: str, records: list[dict]) -> bool:
        """Whether there was an answer."""
        body = records[0] if len(records) == 1 else records
        try:
            if self.connection is None:
                where = urlsplit(Client.address)
                self.connection = HTTPConnection(where.hostname, where.port, timeout=60)
            head = {"Content-Type": "application/json"}
            self.connection.request("POST", path, json.dumps(body), head)
            answer = self.connection.getresponse()
            content = answer.read()
        except (OSError, HTTPException):
            self.connection = None
            time.sleep(0.005)
            return False
        if answer.status == 503 and b"send these again in a moment" in content:
            return False
        if answer.status != 200:
            self.wrong.append(f"{path} {body}: {answer.status} {content}")
        elif path == "/learn":
            done = json.loads(content)
            done = done if isinstance(done, list) else [done]
            for record, confirmed in zip(records, done, strict=True):
                self.confirmed[confirmed["event"]] = as_sent(record)
                if "key" in record:
                    self.kept.append(record)
        return True


def as_sent(record: dict) -> Sent:
    low, _, high = str(record["label"]).partition("-")
    values = json.dumps([record[name] for name in COLUMNS], separators=(",", ":"))
    return Sent(record.get("key"), values, int(low), int(high or low))


class State:
    """A state folder, the clients of its servers, and what must be true of it."""

    def __init__(self, rng, folder: Path) -> None:
        self.chance = Random(int(rng.integers(2**32)))
        self.folder, self.address = folder / "state", folder / "address"
        self.every = self.chance.choice((1, 3, 20, 500))
        self.clients = [Client(f"client {n}", self.chance.random()) for n in range(N_CLIENTS)]

    def live(self, moment: str) -> None:
        """One life of a server, which is killed at a moment."""
        before = None if moment != "not at all" else len(self.events())
        server = self.begin()
        if moment != "starting":
            self.wait_for_address(server)
            time.sleep(self.chance.uniform(0, LIFE))
        else:
            time.sleep(self.chance.uniform(0, LIFE / 2))
        if moment in ("draining", "not at all"):
            os.kill(server.pid, signal.SIGTERM)
            time.sleep(self.chance.uniform(0, 0.05))
        if moment != "not at all":
            server.kill()
            COUNTS["kills"] += 1
        server.join()
        assert server.exitcode in (-signal.SIGKILL, -signal.SIGTERM), f"ended by {server.exitcode}"
        Client.address = None
        if before is not None:
            self.check_all_answered(before)

    def begin(self) -> multiprocessing.Process:
        self.address.unlink(missing_ok=True)
        seed = self.chance.choice((None, self.chance.random()))
        server = CONTEXT.Process(target=serve, args=(self.folder, self.every, seed, self.address))
        server.start()
        return server

    def wait_for_address(self, server: multiprocessing.Process) -> None:
        while not self.address.exists():
            assert server.is_alive(), f"could not start: ended by {server.exitcode}"
            time.sleep(0.002)
        Client.address = self.address.read_text()
        if self.chance.random() < 0.1:
            with suppress(FileError):  # as it must be
                Engine(self.folder).close()
                raise AssertionError("two processes had one state folder")

    def check_all_answered(self, n_before: int) -> None:
        """All that a server learned before it ended of itself was confirmed."""
        while not all(client.idle for client in self.clients):
            time.sleep(0.002)
        learned = {event.id for event in self.events() if event.kind == LEARN}
        silent = learned - self.confirmed().keys() - set(range(n_before + 1))
        assert not silent, f"events {sorted(silent)} were learned, but not confirmed"
        COUNTS["ended by SIGTERM"] += 1

    def confirmed(self) -> dict[int, Sent]:
        found: dict[int, Sent] = {}
        for client in self.clients:
            found |= client.confirmed
        return found

    def events(self) -> list[Event]:
        """The log as it is, without touching it."""
        with self.opened() as engine:
            return engine.events()

    def opened(self):
        return _Opened(self.folder)

    def check(self) -> None:
        """The log has all that was confirmed, once, and gives the model that nothing disturbed."""
        confirmed = self.confirmed()
        with self.opened() as engine:
            events = engine.events()
            found, replayed = to_bytes(engine.model), to_bytes(engine.replayed())
        assert [event.id for event in events] == list(range(1, len(events) + 1)), "gaps"
        keys = [event.key for event in events if event.key is not None]
        assert len(keys) == len(set(keys)), "learned twice"
        for number, sent in confirmed.items():
            assert number <= len(events), f"event {number} of {len(events)} was lost"
            event = events[number - 1]
            kept = Sent(event.key, event.values, event.lower or 0, event.upper or 0)
            assert kept == sent, f"event {number}: {sent} was confirmed, but it is {kept}"
        expected = undisturbed(events)
        assert found == expected, "snapshot and rest of the log give another model"
        assert replayed == expected, "the log alone gives another model"
        wrong = [told for client in self.clients for told in client.wrong]
        assert not wrong, wrong[0]


class _Opened:
    """An engine on a copy of a folder as a kill has left it."""

    def __init__(self, folder: Path) -> None:
        self.place = TemporaryDirectory()
        copy = Path(self.place.name) / "state"
        if folder.exists():
            shutil.copytree(folder, copy, ignore=lambda *_: [".log.sqlite.lock"])
        self.engine = Engine(copy, from_bytes(MODEL, "model"))

    def __enter__(self) -> Engine:
        return self.engine

    def __exit__(self, *_: object) -> None:
        self.engine.close()
        self.place.cleanup()


def undisturbed(events: list[Event]) -> bytes:
    """The model that learns the rows of a log one by one."""
    undone = {event.undoes for event in events if event.kind == UNDO}
    model = from_bytes(MODEL, "model")
    for event in events:
        if event.kind == LEARN and event.id not in undone:
            learn_row(model, json.loads(event.values), event.lower, event.upper)
    return to_bytes(model)


def attack(rng, folder: Path, n_kills: int = MOST_KILLS) -> None:
    """Kill the servers of one folder so many times, under load."""
    with TemporaryDirectory(dir=folder) as place:
        state = State(rng, Path(place))
        Client.address, Client.over = None, False
        for client in state.clients:
            client.start()
        try:
            end = COUNTS["kills"] + n_kills
            while COUNTS["kills"] < end:
                (moment,) = state.chance.choices(list(MOMENTS), list(MOMENTS.values()))
                faulthandler.dump_traceback_later(HANGS, exit=True)
                state.live(moment)
                if state.chance.random() < 0.1:
                    state.check()
            state.live("not at all")
        finally:
            Client.over = True
            for client in state.clients:
                client.join()
            faulthandler.cancel_dump_traceback_later()
        state.check()
        left = {path.name for path in state.folder.iterdir()}
        assert left == {"base.ordspan", "log.sqlite", "snapshot.ordspan"}, f"left behind: {left}"
        COUNTS["confirmed labels"] += len(state.confirmed())
        COUNTS["events"] += len(state.events())
        COUNTS["folders"] += 1


os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)  # of the server, to preload from
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["warm_server_preload"])


def main() -> None:
    """Kill so many times, and count what there was to lose."""
    import numpy as np

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    begun = time.monotonic()
    with TemporaryDirectory() as folder:
        while (left := args.kills - COUNTS["kills"]) > 0:
            rng = np.random.default_rng([args.seed, COUNTS["folders"]])
            attack(rng, Path(folder), min(left, MOST_KILLS))
    told = ", ".join(f"{count:,} {what}" for what, count in sorted(COUNTS.items()))
    print(f"seed {args.seed}: {told}; {time.monotonic() - begun:.0f} s, nothing lost")


if __name__ == "__main__":
    main()
