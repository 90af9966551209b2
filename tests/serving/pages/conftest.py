"""The pages of ``ordspan annotate`` in a browser, before the real application; and axe-core."""

import base64
import json
import shutil
import subprocess
from contextlib import ExitStack
from urllib.parse import urlsplit

import msgspec
import numpy as np
import pytest
from acting import ready
from filelock import FileLock

from serving.annotate.at_work import annotating

PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
AXE = "axe-core@4.10.3"


class Staged:
    """The application, with contents and faults that a test chooses; items are asked in order.

    ``calls`` holds the body of each POST as (path, body).
    """

    def __init__(self):
        self.grades = ["low", "mid", "high"]
        self.items = [[{"name": "age", "kind": "number", "value": str(20 + i)}] for i in range(5)]
        self.guess, self.show_guess = None, False
        self.progress, self.token = None, None
        self.calls = []
        self.faults = []  # of the next calls that change something: "drop", "late drop" or a status

    def open(self, folder):
        """The application of a new state folder."""
        path = folder / "items.csv"
        path.write_text("size\n" + "".join(f"{number % 2}\n" for number in range(len(self.items))))
        return annotating(folder / "state", path, self.grades, token=self.token)

    def handle(self, route):
        """Answer a request of the page, or fail as the next fault says."""
        request, path = route.request, urlsplit(route.request.url).path
        body = request.post_data_json or {}
        if body:
            self.calls.append((path, body))
        fault = self.faults.pop(0) if self.faults and "key" in body else None
        if isinstance(fault, int):
            head = {"Retry-After": "1"} if fault == 503 else {}
            route.fulfill(status=fault, json={"detail": "The queue is full."}, headers=head)
            return
        if fault != "drop":
            sent = {
                "content": request.post_data,
                "headers": request.headers | {"host": "localhost"},
            }
            answer = self.caller.client.request(request.method, path, **sent)
        if fault:  # a late drop is learned, but the person cannot know
            route.abort("connectionreset")
        elif path == "/api/image" and answer.status_code == 404:
            route.fulfill(body=PICTURE, content_type="image/png")
        else:
            shown = answer.content
            if path.startswith("/api/") and answer.is_success:
                shown = json.dumps(self.contents(path, answer.json()))
            route.fulfill(status=answer.status_code, body=shown, headers=dict(answer.headers))

    def contents(self, path, answer):
        if path == "/api/progress":
            return self.progress or answer
        if answer.get("item") is None:
            return answer
        item = {"name": f"row {answer['item'] + 1}", "cells": self.items[answer["item"]]}
        return answer | item | {"guess": self.guess, "show_guess": self.show_guess}

    @property
    def given(self):
        """Answers and skips that were not undone."""
        replies = self.caller.session.history.replies.values()
        assert [note.item for _, note in replies] == list(range(len(replies)))
        ends = [
            {"lower": event.lower or None, "upper": event.upper or None} for event, _ in replies
        ]
        notes = [msgspec.structs.asdict(note) for _, note in replies]
        return [end | note for end, note in zip(ends, notes, strict=True)]

    def keys_sent(self):
        return [body["key"] for _, body in self.calls if "key" in body]

    def labels(self):
        return [(given["lower"], given["upper"]) for given in self.given]


@pytest.fixture
def staged():
    return Staged()


@pytest.fixture
def open_page(browser, staged, tmp_path):
    """Open a page and wait for the first item; at the end its console must hold no error.

    ``name`` is the annotator as of an earlier visit; failed requests are no errors of a page
    where the test makes them fail (``faulty``).
    """
    problems = []

    def opening(path="/", name="ann", faulty=False, host="127.0.0.1", **looks):
        staged.caller = opened.enter_context(staged.open(tmp_path))
        staged.caller.session.order = np.arange(len(staged.items))
        looks = {"viewport": {"width": 1200, "height": 900}, "reduced_motion": "reduce"} | looks
        page = opened.enter_context(browser.new_context(**looks)).new_page()
        page.set_default_timeout(15_000)
        page.route("**", staged.handle)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: heard(message.text))

        def heard(text):
            if not (faulty and text.startswith("Failed to load resource")):
                problems.append(text)

        if name:
            remember = f"localStorage.setItem('ordspan.annotator', {json.dumps(name)})"
            page.add_init_script(remember)
        page.goto(f"http://{host}{path}")
        if name and not staged.token and path == "/":
            ready(page)
        return page

    with ExitStack() as opened:
        yield opening
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
