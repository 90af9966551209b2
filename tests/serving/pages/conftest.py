"""A small twin of the server of ``ordspan annotate``, a browser before it, and axe-core."""

import base64
import json
import shutil
import socket
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from filelock import FileLock

import ordspan
from devtools import Page

PAGES = Path(ordspan.__file__).parent / "serving" / "annotate" / "pages"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
AXE = "axe-core@4.10.3"


def items(n, *more):
    return [[{"name": "age", "kind": "number", "value": str(20 + i)}, *more] for i in range(n)]


class Fake:
    """Items asked in order; ``calls`` holds the body of each POST as (path, body)."""

    def __init__(self):
        self.grades, self.items = ["low", "mid", "high"], items(5)
        self.guess, self.show_guess = None, False
        self.progress, self.token = {}, None
        self.calls, self.given, self.keys = [], [], {}
        self.faults = []  # of the next calls that change something: "drop", "late drop" or a status

    def answer(self, path, body):
        """What the server says; a key that was seen gets its first answer again."""
        if path == "/api/task":
            task = {"title": "items.csv", "question": "Which grade fits?"}
            return task | {"grades": self.grades, "n_items": len(self.items)}
        if path == "/api/progress":
            return self.progress
        if path == "/api/next":
            return self.next()
        if body["key"] not in self.keys:
            self.keys[body["key"]] = self.change(path, body)
        return self.keys[body["key"]]

    def change(self, path, body):
        if path == "/api/undo":
            last, kept = self.given.pop(), ("lower", "upper")
            undone = "learn" if "lower" in last else "skip"
            return self.next() | {"undone": undone} | {end: last.get(end) for end in kept}
        assert body["item"] == len(self.given)
        self.given.append(body)
        return {"event": len(self.given), "answered": self.counts()["answered"]}

    def counts(self):
        answered = sum("lower" in given for given in self.given)
        return {"answered": answered, "left": len(self.items) - len(self.given)}

    def next(self):
        at = len(self.given)
        if at == len(self.items):
            return {"item": None} | self.counts()
        asked = {"asked_by": "random", "guess": self.guess, "show_guess": self.show_guess}
        item = {"item": at, "name": f"row {at + 1}", "cells": self.items[at]}
        return item | asked | self.counts()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        path = self.path.partition("?")[0]
        page = {"/": "annotate.html", "/progress": "progress.html"}.get(path)
        if page or path.startswith("/static/"):
            file = PAGES / (page or path.removeprefix("/static/"))
            self.reply(200, file.read_bytes(), KINDS[file.suffix])
        elif self.allowed():
            if path.startswith("/api/image/"):
                self.reply(200, PICTURE, "image/png")
            else:
                self.reply(200, self.server.fake.answer(path, None))

    def do_POST(self):
        fake = self.server.fake
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.allowed():
            return
        fake.calls.append((self.path, body))
        fault = fake.faults.pop(0) if fake.faults and "key" in body else None
        if isinstance(fault, int):
            self.reply(fault, {"detail": "The queue is full."})
        elif fault == "drop":
            self.connection.shutdown(socket.SHUT_RDWR)
        elif self.path == "/api/undo" and not fake.given:
            self.reply(404, {"detail": "ann has no answer that can be undone."})
        else:
            answer = fake.answer(self.path, body)
            if fault == "late drop":  # learned, but the person cannot know
                self.connection.shutdown(socket.SHUT_RDWR)
            else:
                self.reply(200, answer)

    def allowed(self):
        token = self.server.fake.token
        good = token is None or self.headers["Authorization"] == f"Bearer {token}"
        if not good:
            self.reply(401, {"detail": "The token is missing or wrong."})
        return good

    def reply(self, status, content, kind="application/json"):
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if status == 503:
            self.send_header("Retry-After", "1")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


@pytest.fixture
def fake():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.fake = Fake()
    server.fake.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server.fake
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def open_page(browser, fake):
    """Open a page of the fake server; at the end its console must hold no error.

    ``name`` is the annotator as of an earlier visit; failed requests are no errors of a page
    where the test makes them fail (``faulty``); its waits are shorter by the factor ``hurry``.
    """
    opened = []

    def opening(path="/", name="ann", faulty=False, hurry=1, **looks):
        page = Page(browser, **looks)
        opened.append((page, faulty))
        if name:
            remember = f"localStorage.setItem('ordspan.annotator', {json.dumps(name)})"
            page.call("Page.addScriptToEvaluateOnNewDocument", source=remember)
        if hurry > 1:
            timer = f"(slow => window.setTimeout = (f, ms) => slow(f, ms / {hurry}))(setTimeout)"
            page.call("Page.addScriptToEvaluateOnNewDocument", source=timer)
        page.open(fake.url + path)
        return page

    yield opening
    for page, faulty in opened:
        problems = [p for p in page.problems() if not (faulty and p[0] == "network")]
        page.close()
        assert problems == []


@pytest.fixture(scope="session")
def axe(pytestconfig):
    """The source of axe-core, from the npm registry."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("axe-core comes with npm, and npm is not on the path")
    folder = pytestconfig.cache.mkdir(AXE.replace("@", "-"))
    script = folder / "node_modules" / "axe-core" / "axe.min.js"
    with FileLock(folder / "lock"):
        if not script.exists():
            command = [npm, "install", "--silent", "--no-save", "--ignore-scripts", "--prefix"]
            subprocess.run([*command, folder, AXE], check=True, timeout=120)
    return script.read_text("utf-8")
