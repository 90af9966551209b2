"""Items, and calls to a session that asks for their grades."""

from contextlib import contextmanager
from uuid import uuid4

import numpy as np

from commands.tables import said
from ordspan.commands.jobs import AnnotateJob
from ordspan.serving.annotate.app import make_app
from ordspan.serving.annotate.items import open_folder
from ordspan.serving.annotate.session import Session
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


@contextmanager
def annotating(folder, path=None, grades=None, token=None, **options):
    """Calls the service of a state folder, new with five grades, or begun before."""
    if grades is None and path is not None and not folder.exists():
        grades = [1, 2, 3, 4, 5]
    items = None if path is None else str(path)
    job = AnnotateJob(items, state=str(folder), classes=grades, **options)
    remembered, items = open_folder(job)
    session = Session(folder, items, remembered, job.guess)
    app = make_app(session, title="t", question="?", token=token)
    with TestClient(app, base_url="http://127.0.0.1") as client:
        yield Caller(session, client)


def told(*words, code=0):
    """What ``ordspan annotate`` prints, in lines as long as they are."""
    return said("annotate", *words, code=code, env={"COLUMNS": "10000"})


class Caller:
    """Calls the application of a session as a page would."""

    def __init__(self, session, client):
        self.session, self.engine, self.client = session, session.engine, client

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

    def skip(self, asked, key, **more):
        body = {"annotator": "ann", "item": asked["item"], "lower": None, "upper": None}
        return self.call("/api/answer", body | {"key": key} | more)

    def undo(self, key, annotator="ann"):
        return self.call("/api/undo", {"key": key, "annotator": annotator})

    def answer_many(self, ranks, n, annotator="ann"):
        """Answer the next items truly; what was asked."""
        asked = []
        for _ in range(n):
            asked.append(self.next(annotator))
            assert self.answer(asked[-1], ranks[asked[-1]["item"]], annotator=annotator).is_success
        return asked
