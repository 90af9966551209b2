"""How many requests does the service answer, compared with an endpoint that only parses them?

``make bench`` runs this at full size and writes docs/measured/serve.md; the tests run it at toy
size. The bare endpoint is Starlette on the same server: it takes the same bodies and answers with
the number of rows in them. Requests alternate between the two.
"""

from __future__ import annotations

import json
import re
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle

import numpy as np

from measuring import Row, command, table

COLUMNS = [f"x{number}" for number in range(8)]
GRADES = 5
BARE = """
import sys
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
from ordspan.serving.http import run_server

async def parse(request):
    return JSONResponse({"rows": len(await request.json())})

app = Starlette(routes=[Route("/predict", parse, methods=["POST"])])
run_server(app, "127.0.0.1", 0, lambda address: print(address, flush=True))
"""
OURS = ["-m", "ordspan", "serve", "--grades", "1..5", "--columns", ",".join(COLUMNS), "--port", "0"]


@contextmanager
def server(*words: str) -> Iterator[int]:
    """The port of a server in another process."""
    process = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(re.findall(r"127\.0\.0\.1:(\d+)", process.stdout.readline())[0])
    finally:
        process.terminate()
        process.communicate()


def request(path: str, body: object) -> bytes:
    """The bytes of a request."""
    content = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


def rate(port: int, requests: Sequence[bytes], clients: int, seconds: float) -> float:
    """Answers per second to some clients, each sending its next request after each answer."""
    picker, queue, done = selectors.DefaultSelector(), cycle(requests), 0
    for _ in range(clients):
        one = socket.create_connection(("127.0.0.1", port))
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        one.sendall(next(queue))
        picker.register(one, selectors.EVENT_READ, [b""])
    start = time.perf_counter()
    while (now := time.perf_counter()) - start < seconds:
        for key, _ in picker.select(timeout=1):
            waiting = key.data
            waiting[0] += key.fileobj.recv(1 << 20)
            head, _, rest = waiting[0].partition(b"\r\n\r\n")
            length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            if not length or len(rest) < int(length):
                continue
            assert head.startswith(b"HTTP/1.1 200"), (head, rest)
            done, waiting[0] = done + 1, b""
            key.fileobj.sendall(next(queue))
    for key in list(picker.get_map().values()):
        key.fileobj.close()
    return done / (now - start)


def rows(n: int, seed: int = 0) -> list[dict[str, float]]:
    """Records of eight numbers each."""
    values = np.random.default_rng(seed).normal(size=(n, len(COLUMNS))).round(4)
    return [dict(zip(COLUMNS, row, strict=True)) for row in values.tolist()]


def labelled(n: int, seed: int) -> list[dict[str, object]]:
    """Records with their labels, a third of them ranges."""
    found: list[dict[str, object]] = []
    for number, record in enumerate(rows(n, seed)):
        grade = 1 + int(np.searchsorted([-1.5, -0.5, 0.5, 1.5], sum(record.values()) / 2))
        label = grade if number % 3 else f"{max(1, grade - 1)}-{min(GRADES, grade + 1)}"
        found.append(record | {"label": label})
    return found


def medians(measures: Sequence[Callable[[], float]], repeats: int) -> list[float]:
    """The median of each measure, taken in turns after a warm-up."""
    taken = [[measure() for measure in measures] for _ in range(repeats + 1)][1:]
    return np.median(taken, axis=0).tolist()


def run(scale: float = 1.0) -> list[Row]:
    """All rows; the tests use ``scale`` 0."""
    seconds, repeats = (1.0, 5) if scale else (0.1, 1)
    found = []
    with (
        tempfile.TemporaryDirectory() as folder,
        server("-c", BARE) as bare,
        server(*OURS, "--state", f"{folder}/state", "--json") as ours,
    ):
        lessons = [request("/learn", one) for one in labelled(1000, 1)]
        many = [request("/learn", labelled(100, seed)) for seed in range(20)]
        rate(ours, lessons, 16, seconds)
        for n, target in ((1, 0.5), (100, 0.4)):
            asked = [request("/predict", rows(n, seed)) for seed in range(20)]
            theirs, mine = medians(
                [lambda p=p, a=asked: rate(p, a, 4, seconds) for p in (bare, ours)], repeats
            )
            what = f"/predict, {n} row{'s' * (n > 1)} of 8 numbers"
            rates = f"{mine:,.0f} requests per second, bare {theirs:,.0f}"
            work = f"{what} ({rates}): rate / bare endpoint"
            found.append(Row.at_least(work, mine / theirs, target))
        single, hundreds = medians(
            [lambda: rate(ours, lessons, 16, seconds), lambda: 100 * rate(ours, many, 16, seconds)],
            repeats,
        )
    one = "/learn, single rows from 16 clients, each written to disk"
    found.append(Row.at_least(one, single, 500, " per second"))
    hundred = "/learn, 100 rows per request from 16 clients, in rows"
    return [*found, Row.at_least(hundred, hundreds, 20_000, " per second")]


if __name__ == "__main__":
    command(lambda scale: table(run(scale), "Speed of the service"), __doc__)
