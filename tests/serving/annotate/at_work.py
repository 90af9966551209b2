"""Items, events and calls for the tests of annotation."""

import json
from uuid import uuid4

import numpy as np

from ordspan.commands.jobs import AnnotateJob
from ordspan.serving.annotate.app import make_app
from ordspan.serving.annotate.items import open_folder, read_items
from ordspan.serving.annotate.session import Session
from ordspan.serving.log import Event
from serving.served import TestClient

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def write_items(folder, n=60, seed=0):
    """A file of items that can be learned from, and their true ranks 1..5."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)).round(3)
    ranks = np.digitize(X.sum(axis=1), [-1.5, -0.5, 0.5, 1.5]) + 1
    towns = rng.choice(["Ulm", "Graz"], n)
    rows = [f"x{i},{a},{b},{towns[i]}" for i, (a, b) in enumerate(X)]
    path = folder / "items.csv"
    path.write_text("\n".join(["id,size,age,town", *rows, ""]))
    return path, ranks


def read(path, **options):
    return read_items(AnnotateJob(str(path), state="none", **options))


def begin(folder, path=None, grades=None, **options):
    """A session on a state folder, new with five grades, or begun before."""
    if grades is None and path is not None and not folder.exists():
        grades = [1, 2, 3, 4, 5]
    items = None if path is None else str(path)
    remembered, items = open_folder(
        AnnotateJob(items, state=str(folder), classes=grades, **options)
    )
    return Session(folder, items, remembered, options.get("guess", "half"))


class Caller:
    """Calls the application of a session as a page would."""

    def __init__(self, session, **more):
        app = make_app(session, title="t", question="?", **more)
        self.session, self.client = session, TestClient(app, base_url="http://127.0.0.1")

    def call(self, path, body=None, **more):
        """The response to a POST of a body, or to a GET."""
        return self.client.request("GET" if body is None else "POST", path, json=body, **more)

    def next(self, annotator="ann", **more):
        return self.call("/api/next", {"annotator": annotator, **more}).json()

    def answer(self, asked, lower, upper=None, annotator="ann", **more):
        """Answer what was asked; the response."""
        body = {
            "key": str(uuid4()),
            "annotator": annotator,
            "item": asked["item"],
            "lower": int(lower),
            "upper": int(lower if upper is None else upper),
            "seconds": 2.0,
            "asked_by": asked["asked_by"],
            "guess": asked["guess"],
            "shown": asked["show_guess"],
        }
        return self.call("/api/answer", body | more)

    def skip(self, item, annotator="ann", **more):
        ends = {"lower": None, "upper": None}
        return self.call("/api/answer", {"annotator": annotator, "item": item} | ends | more)

    def answer_many(self, ranks, n, annotator="ann"):
        """Answer the next items truly; what was asked."""
        asked = []
        for _ in range(n):
            asked.append(self.next(annotator))
            assert self.answer(asked[-1], ranks[asked[-1]["item"]], annotator=annotator).is_success
        return asked


class Events:
    """Makes the events of a log, one after the other."""

    def __init__(self):
        self.all = []

    def _add(self, kind, extra=None, undoes=None, ranks=(0,) * 5):
        event = Event(
            len(self.all) + 1, kind, None, 0.0, "", *ranks, undoes, json.dumps(extra or {})
        )
        self.all.append(event)
        return event

    def learn(self, item, lower, upper=None, predicted=1, low=1, high=1, tests=True, **extra):
        ranks = (lower, lower if upper is None else upper, predicted, low, high)
        extra = {"item": item, "annotator": "ann", "tests": tests} | extra
        return self._add("learn", extra, ranks=ranks)

    def skip(self, item, **extra):
        return self._add("skip", {"item": item, "annotator": "ann"} | extra)

    def undo(self, event):
        return self._add("undo", undoes=event.id)
