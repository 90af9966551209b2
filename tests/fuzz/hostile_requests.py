"""Hostile bytes to a real server: a 4xx or 503, and no row learned that was not asked for."""

import asyncio
import atexit
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Thread

import numpy as np

from fuzz.bad_requests import HOST, MOST_BYTES, connection

PATIENCE = 0.5
CONNECTIONS, AT_ONCE = 400, 60
MOST_GROWTH = 300 << 20
"""Bytes of memory that the server may take more than at its start."""
OWN_WORDS = (b"Invalid HTTP request received.", b"Exceeded concurrency limit")
"""What uvicorn says without asking the application; there is nothing of ours in it."""


def attack(rng, folder: Path) -> None:
    """Many connections at once; then the server must stand as the answers say."""
    target = server(folder)
    label = str(rng.choice(["2-3", "7"]))
    sent = [connection(rng, label) for _ in range(CONNECTIONS)]
    asyncio.run(target.attacked(sent))
    target.check()


class Server:
    """A server in a process of its own, and what it should have learned."""

    def __init__(self, folder: Path) -> None:
        self.errors = folder / "errors.txt"
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, __file__, str(folder / "state")],
                env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        address = self.process.stdout.readline().decode()
        self.port = int(address.rpartition(":")[2])
        self.events: set[int] = set()  # that were confirmed since the last check
        self.learned = self.unsure = 0
        self.statuses: Counter[int] = Counter()
        self.model = self.ask(b"/model")
        self.most = self.memory("VmHWM") + MOST_GROWTH
        atexit.register(self.end)

    def end(self) -> None:
        """Stop it, and say what was done to it."""
        peak = self.memory("VmHWM") >> 20
        self.process.terminate()
        assert self.process.wait(20) in (0, -signal.SIGTERM)
        print(f"    answers {dict(sorted(self.statuses.items()))}, {self.learned} rows, {peak} MB")

    def memory(self, name: str) -> int:
        """Bytes that the server has, or had at most."""
        status = Path(f"/proc/{self.process.pid}/status")
        if not status.exists():  # not Linux
            return 0
        return int(re.search(rf"{name}:\s+(\d+) kB", status.read_text())[1]) << 10

    async def attacked(self, sent: list[tuple[str, list[bytes]]]) -> None:
        """Send everything, much of it at the same time, and judge the answers."""
        room = asyncio.Semaphore(AT_ONCE)

        async def one(how: str, requests: list[bytes]) -> tuple[bytes, bytes, bool]:
            async with room:
                return await self.exchanged(how, requests)

        for exchange in asyncio.as_completed([one(*what) for what in sent]):
            raw, answer, whole = await exchange
            for status, head, body in answers(answer):
                self.statuses[status] += 1
                assert status < 500 or status == 503, (status, raw)
                own = any(words.startswith(body) for words in OWN_WORDS)  # some may be lost
                assert own or b"nosniff" in head, (head, raw)
                if status == 200:
                    numbers = map(int, re.findall(rb'"event":(\d+)', body))
                    self.events |= {number for number in numbers if number > self.learned}
            self.unsure += 0 if whole else 3 * raw.count(b"learn")

    async def exchanged(self, how: str, requests: list[bytes]) -> tuple[bytes, bytes, bool]:
        """What was sent, all that came back, and whether that was all."""
        raw, got = b"".join(requests), bytearray()
        if how == "broken off":
            raw = raw[: len(requests[0]) // 2]  # a part of the first one
        elif how == "half":
            raw = b"".join(requests[:-1]) + requests[-1][: len(requests[-1]) // 2]
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        sending = asyncio.ensure_future(send(writer, raw, how))
        try:
            if how == "broken off":
                await sending
                return raw, b"", True
            async with asyncio.timeout(10 * PATIENCE + 20):  # the server ends every connection
                while part := await reader.read(1 << 16):
                    got += part
                    if how == "at once" and len(list(answers(got))) == len(requests):
                        break
            return raw, bytes(got), True
        except ConnectionError:  # what was on its way back is lost
            return raw, bytes(got + reader._buffer), False
        finally:
            sending.cancel()
            writer.transport.abort()

    def ask(self, path: bytes) -> bytes:
        """The answer to a good request."""

        async def asked() -> bytes:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            writer.write(
                b"GET " + path + b" HTTP/1.1\r\n" + HOST + b"\r\nConnection: close\r\n\r\n"
            )
            content = await reader.read()
            writer.close()
            return content

        ((status, _, body),) = answers(asyncio.run(asked()))
        assert status == 200
        return body

    def check(self) -> None:
        """It lives, has learned what it confirmed, and has said nothing unexpected."""
        assert self.process.poll() is None
        rows = int(
            float(re.search(rb"(?m)^ordspan_learned_rows_total (\S+)", self.ask(b"/metrics"))[1])
        )
        model = self.ask(b"/model")
        confirmed = self.learned + len(self.events)
        assert confirmed <= rows <= confirmed + self.unsure, (rows, confirmed, self.unsure)
        assert rows > self.learned or model == self.model
        self.model, self.learned, self.unsure = model, rows, 0
        self.events.clear()
        assert self.memory("VmHWM") <= self.most or not self.most
        said = self.errors.read_text()
        unexpected = re.sub(r"WARNING: .*\n", "", said)
        assert not unexpected, unexpected


async def send(writer, raw: bytes, how: str) -> None:
    """Write at once, in small pieces, or so slowly that nobody waits for it."""
    size = {"in pieces": 7, "slowly": 1}.get(how, len(raw) or 1)
    pause = PATIENCE / 20 if how == "slowly" else 0
    with suppress(ConnectionError):
        for begin in range(0, min(len(raw), 2000), size):
            writer.write(raw[begin : begin + size])
            await writer.drain()
            await asyncio.sleep(pause)
        writer.write(raw[2000:] if size < 2000 else b"")
        await writer.drain()


def answers(raw: bytes):
    """Status, head and body of every answer in what came back, but for one cut short."""
    while raw:
        head, end, rest = raw.partition(b"\r\n\r\n")
        status = re.match(rb"HTTP/1\.1 (\d{3}) ", head)
        assert status, raw[:200]
        if not end:
            return
        size = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
        if int(status[1]) == 100:
            raw = rest
        elif size and len(rest) < int(size[1]):
            return
        elif size:
            yield int(status[1]), head, rest[: int(size[1])]
            raw = rest[int(size[1]) :]
        elif b"chunked" in head:
            body, _, raw = rest.partition(b"0\r\n\r\n")
            yield int(status[1]), head, body.partition(b"\r\n")[2].removesuffix(b"\r\n")
        else:
            yield int(status[1]), head, rest
            return


@cache
def server(folder: Path) -> Server:
    """The server of a run."""
    return Server(folder)


def serve(folder: str) -> None:
    """Serve a model of numbers and words that has learned nothing, without much patience."""
    from ordspan.files.grades import read_order
    from ordspan.serving import running
    from ordspan.serving.app import make_app
    from ordspan.serving.engine import Engine
    from ordspan.serving.models import copy_model, learn, predict_batch
    from ordspan.serving.records import batch_of
    from ordspan.serving.starting import empty_model

    def end_with_the_fuzzer() -> None:
        sys.stdin.read()
        os.kill(os.getpid(), signal.SIGTERM)

    Thread(target=end_with_the_fuzzer, daemon=True).start()
    running.REQUEST_TIMEOUT = PATIENCE
    engine = Engine(folder, empty_model(read_order("1..5"), ["a", "b", "word"], ["word"]))
    batch = batch_of(engine.model.recipe, [[1, 2, "compiled before anyone asks"]])
    learn(copy_model(engine.model), batch, np.array([1]), np.array([5]))
    predict_batch(engine.model, batch)
    app = make_app(engine, most_bytes=MOST_BYTES)
    app.timeout = PATIENCE
    running.run_server(app, "127.0.0.1", 0, lambda address: print(address, flush=True))


if __name__ == "__main__":
    serve(sys.argv[1])
