"""The pages of ``ordspan annotate`` in a browser whose requests a small twin of the server answers,
and axe-core."""

import base64
import json
import shutil
import subprocess
from importlib.resources import files
from urllib.parse import urlsplit

import pytest
from acting import ready
from filelock import FileLock

from ordspan.serving.annotate.app import KINDS, PAGES
from ordspan.serving.http import PAGE_POLICY

STATIC = files("ordspan.serving.annotate") / "pages"
PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
AXE = "axe-core@4.10.3"


class Fake:
    """Items asked in order; ``calls`` holds the body of each POST as (path, body)."""

    def __init__(self):
        self.grades = ["low", "mid", "high"]
        self.items = [[{"name": "age", "kind": "number", "value": str(20 + i)}] for i in range(5)]
        self.guess, self.show_guess = None, False
        self.progress, self.token = {}, None
        self.calls, self.given, self.keys = [], [], {}
        self.faults = []  # of the next calls that change something: "drop", "late drop" or a status

    def handle(self, route):
        """Answer a request of the page, or fail as the next fault says."""
        request, path = route.request, urlsplit(route.request.url).path
        if not path.startswith("/api/"):
            name = PAGES.get(path) or path.removeprefix("/static/")
            kind = KINDS[f".{name.rpartition('.')[2]}"]
            head = {"Content-Security-Policy": PAGE_POLICY, "Content-Type": kind}
            route.fulfill(body=(STATIC / name).read_bytes(), headers=head)
        elif self.token and request.headers.get("authorization") != f"Bearer {self.token}":
            route.fulfill(status=401, json={"detail": "The token is missing or wrong."})
        elif path == "/api/image":
            route.fulfill(body=PICTURE, content_type="image/png")
        else:
            body = request.post_data_json or {}
            if body:
                self.calls.append((path, body))
            fault = self.faults.pop(0) if self.faults and "key" in body else None
            self.reply(route, path, body, fault)

    def reply(self, route, path, body, fault):
        if fault == "drop":
            route.abort("connectionreset")
        elif path == "/api/undo" and not self.given:
            route.fulfill(status=404, json={"detail": "ann has no answer that can be undone."})
        elif isinstance(fault, int):
            head = {"Retry-After": "1"} if fault == 503 else {}
            route.fulfill(status=fault, json={"detail": "The queue is full."}, headers=head)
        else:
            answer = self.answer(path, body)
            if fault == "late drop":  # learned, but the person cannot know
                route.abort("connectionreset")
            else:
                route.fulfill(json=answer)

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
            last = self.given.pop()
            undone = {"undone": "learn" if last["lower"] else "skip"}
            return self.next() | undone | {end: last[end] for end in ("lower", "upper")}
        assert body["item"] == len(self.given)
        self.given.append(body)
        return {"event": len(self.given), "answered": self.counts()["answered"]}

    def counts(self):
        answered = sum(given["lower"] is not None for given in self.given)
        return {"answered": answered, "left": len(self.items) - len(self.given)}

    def next(self):
        at = len(self.given)
        if at == len(self.items):
            return {"item": None} | self.counts()
        asked = {"asked_by": "random", "guess": self.guess, "show_guess": self.show_guess}
        item = {"item": at, "name": f"row {at + 1}", "cells": self.items[at]}
        return item | asked | self.counts()

    def keys_sent(self):
        return [body["key"] for _, body in self.calls if "key" in body]

    def labels(self):
        return [(given["lower"], given["upper"]) for given in self.given]


@pytest.fixture
def fake():
    return Fake()


@pytest.fixture
def open_page(browser, fake):
    """Open a page and wait for the first item; at the end its console must hold no error.

    ``name`` is the annotator as of an earlier visit; failed requests are no errors of a page
    where the test makes them fail (``faulty``).
    """
    contexts, problems = [], []

    def opening(path="/", name="ann", faulty=False, host="127.0.0.1", **looks):
        looks = {"viewport": {"width": 1200, "height": 900}, "reduced_motion": "reduce"} | looks
        contexts.append(browser.new_context(**looks))
        page = contexts[-1].new_page()
        page.set_default_timeout(15_000)
        page.route("**", fake.handle)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: heard(message.text))

        def heard(text):
            if not (faulty and text.startswith("Failed to load resource")):
                problems.append(text)

        if name:
            remember = f"localStorage.setItem('ordspan.annotator', {json.dumps(name)})"
            page.add_init_script(remember)
        page.goto(f"http://{host}{path}")
        if name and not fake.token and path == "/":
            ready(page)
        return page

    yield opening
    for context in contexts:
        context.close()
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
