"""Requests that nobody should send: any is answered, and none changes what it may not change."""

import json
import os
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordspan.serving.http import MAX_BODY_BYTES
from serving.annotate.at_work import annotating, write_items
from serving.served import empty, serving, standing

N_EXAMPLES = int(os.environ.get("ORDSPAN_EXAMPLES", "200"))
GOOD = {
    "/predict": {"a": 1, "b": 2.5, "word": "roof"},
    "/learn": {"a": 1, "b": 2.5, "word": "roof", "label": "7", "key": "k"},  # 7 is no grade
    "/api/next": {"annotator": "ann"},
    "/api/answer": {"annotator": "ann", "key": "k", "item": 0, "lower": 6, "upper": 6},  # nor is 6
    "/api/undo": {"annotator": "ann", "key": "k"},
}
ODD_PATHS = [
    *("/", "/model", "/metrics", "/openapi.json", "/predict?coverage=nan", "/predict?coverage=%ff"),
    *("/learn/", "//learn", "/%2e%2e/etc/passwd", "/model%00", "/static/..%2fapp.py"),
    *("/api/image?item=0&cell=0", f"/api/image?item={'9' * 5000}", "/" + "a" * 5000),
]
PATHS = st.sampled_from([*GOOD, *ODD_PATHS]) | st.text(max_size=9).map(lambda s: f"/{quote(s)}")
HEADERS = {
    "Host": ["evil.example", "[[::1", "", "localhost:99999999"],
    "Content-Type": ["text/plain", "application/json; charset=utf-16", "\xff", ""],
    "Content-Encoding": ["gzip"],
    "Authorization": ["Bearer \xff\xfe"],
    "X": ["y" * 9000],
}
ODD = (None, True, 1e308, 10**30, "", "1,5", "\ud800", "\0", "NA", "<script>", "3-1", "x" * 5000)
CELLS = st.sampled_from(ODD) | st.floats() | st.integers() | st.text(max_size=9)
VALUES = CELLS | st.lists(CELLS, max_size=3) | st.dictionaries(st.text(max_size=5), CELLS)
MANY = (b"[" * 50_000, b"9" * 5000, b"[" + b"{}," * 5000 + b"{}]", b" " * MAX_BODY_BYTES + b"{}")
NOISE = st.binary(max_size=99) | st.sampled_from([b"", b"[]", *MANY])


@st.composite
def requests(draw):
    """A good request with something wrong, as the arguments of a client."""
    path = draw(PATHS)
    body = GOOD.get(path, GOOD["/learn"])
    names = st.sampled_from([*body, "label", "lower", "x"])
    body = body | draw(st.dictionaries(names, VALUES, max_size=2))
    content = json.dumps([body] * draw(st.integers(1, 3)) if draw(st.booleans()) else body).encode()
    if draw(st.booleans()):
        cut = draw(st.integers(0, len(content)))
        content = content[:cut] + draw(NOISE) + content[cut + draw(st.integers(0, 9)) :]
    headers = {"Content-Type": "application/json"}
    if draw(st.booleans()):
        name = draw(st.sampled_from(list(HEADERS)))
        headers[name] = draw(st.sampled_from(HEADERS[name])).encode("latin-1")
    method = draw(st.sampled_from(["POST"] * 9 + ["GET", "PUT", "OPTIONS", "DELETE", "TRACE"]))
    return {"method": method, "url": path, "content": content, "headers": headers}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Clients of both services."""
    folder = tmp_path_factory.mktemp("hostile")
    with (
        serving(folder / "state", empty("a,b,word", text=["word"])) as client,
        annotating(folder / "items-state", write_items(folder)[0], id="id") as page,
    ):
        page.client.engine = page.engine
        yield client, page.client


@pytest.mark.slow
@settings(max_examples=N_EXAMPLES)
@given(request=requests())
def test_any_request_is_answered_and_what_is_refused_changes_nothing(served, request):
    for client in served:
        before = standing(client)
        answer = client.request(**request)
        assert answer.status_code < 500
        assert answer.headers["x-content-type-options"] == "nosniff"
        if answer.status_code >= 400 and answer.text != "Invalid host header":
            assert answer.json()["detail"]
        if answer.status_code >= 400 or request["url"] in ("/predict", "/api/next"):
            assert standing(client) == before
