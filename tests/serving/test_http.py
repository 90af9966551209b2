"""Who may ask, and how much."""

import asyncio
import hmac
import signal
import socket
from functools import partial

import pytest
import uvicorn

from ordspan.serving.http import (
    HEADERS,
    MAX_BODY_BYTES,
    PAGE_POLICY,
    Application,
    read_token,
    run_server,
)
from serving.served import empty, serving, standing

TOKEN = "correct-horse-battery"
ROW = {"a": 1, "b": 2}
LABELLED = ROW | {"label": 3}
BEARER = {"Authorization": f"Bearer {TOKEN}"}
JSON = {"Content-Type": "application/json"}
PATHS = ("/", "/model", "/metrics", "/openapi.json", "/nowhere")


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("open"), empty()) as client:
        yield client


@pytest.fixture(scope="module")
def locked(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("locked"), empty(), token=TOKEN) as client:
        yield client


def test_nothing_but_health_is_answered_without_the_token(locked):
    before = standing(locked)
    wrong = ("", "Bearer ", "Bearer wrong", f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN}x", "Basic x")
    for words in (*wrong, f"bearer {TOKEN}", TOKEN, f"Bearer  {TOKEN}", "Bearer \xff"):
        headers = {"Authorization": words.encode("latin-1")} if words else {}
        answers = [locked.get(path, headers=headers) for path in (*PATHS, "/health/x")]
        answers += [locked.post(path, json=LABELLED, headers=headers) for path in ("/learn", "/x")]
        for refused in answers:
            assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
            assert TOKEN not in refused.text
    assert standing(locked) == before
    assert locked.get("/health", headers={"Host": "evil.example"}).status_code == 200
    for path in PATHS:
        status = locked.get(path, headers=BEARER | {"Host": "evil.example"}).status_code
        assert status == (404 if path == "/nowhere" else 200)
    assert locked.post("/learn", json=LABELLED, headers=BEARER).status_code == 200


def test_tokens_are_compared_in_constant_time(locked, monkeypatch):
    compared, real = [], hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda *v: compared.append(v) or real(*v))
    locked.get("/metrics", headers={"Authorization": "Bearer wrong"})
    assert compared == [(b"Bearer wrong", f"Bearer {TOKEN}".encode())]


def test_without_a_token_only_names_of_this_machine_are_answered(client):
    """A page of another site may have its own name point here (DNS rebinding)."""
    own = ("127.0.0.1", "localhost", "127.0.0.1:8000", "[::1]:8000", "[::1]")
    others = ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "evil.example:80")
    others += ("", "[[::1", "0.0.0.0", "localhost@evil.example")
    for path in ("/metrics", "/health"):
        for host in own:
            assert client.get(path, headers={"Host": host}).status_code == 200
        for host in (*others, "127.0.0.2"):
            refused = client.get(path, headers={"Host": host})
            assert (refused.status_code, refused.text) == (400, "Invalid host header")


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_only_json_is_read(kind, client):
    before, headers = standing(client), {"Content-Type": kind} if kind else {}
    for path in ("/learn", "/predict"):
        refused = client.post(path, content=b'{"a":1,"b":2,"label":3}', headers=headers)
        assert refused.status_code == 415
        assert "application/json" in refused.json()["detail"]
    assert standing(client) == before


@pytest.mark.parametrize("in_parts", [True, False], ids=["chunked", "with its length"])
def test_a_body_over_the_limit_is_not_read(in_parts, client):
    before = standing(client)
    for size, status in ((MAX_BODY_BYTES + 1, 413), (MAX_BODY_BYTES, 200)):
        whole = b'{"a":1,"b":2,"label":3}'.ljust(size)
        content = iter([whole[:50], whole[50:]]) if in_parts else whole
        answer = client.post("/learn", content=content, headers=JSON)
        assert answer.status_code == status
        if status == 413:
            assert "more than 1,048,576 bytes; send fewer rows" in answer.json()["detail"]
            assert standing(client) == before


def test_every_answer_has_the_headers_of_security(client, locked):
    answers = [
        *(client.get(path) for path in PATHS),
        *(client.request(method, "/learn", json=ROW) for method in ("PUT", "GET", "POST")),
        client.post("/learn", json=LABELLED),
        client.post("/learn", content=b"x" * (MAX_BODY_BYTES + 1), headers=JSON),
        client.post("/learn", content=b"x"),
        client.get("/metrics", headers={"Host": "evil.example"}),
        locked.get("/metrics"),
    ]
    statuses = {answer.status_code for answer in answers}
    assert statuses == {200, 400, 401, 404, 405, 413, 415, 422}
    for answer in answers:
        for name, value in HEADERS:
            assert answer.headers[name.decode()] == value.decode()
    assert "default-src 'none'" in PAGE_POLICY
    assert "unsafe" not in PAGE_POLICY


def test_a_weak_token_is_refused_with_the_way_to_a_good_one(tmp_path):
    path = tmp_path / "token"
    weak = (b"", b"\n", b"fifteen letters", "ümläut".encode() * 9, b"\xff" * 20, b"a\nb" * 9)
    for content in weak:
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"token: a token needs .*token_urlsafe"):
            read_token(str(path), "0.0.0.0")
    path.write_text(f"{TOKEN}\r\n")
    assert read_token(str(path), "0.0.0.0") == TOKEN


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="needs IPv6")
def test_every_address_of_ipv6_means_those_of_ipv4_too(monkeypatch):
    async def connect(server):
        port = int(urls[0].removeprefix("http://[::]:"))
        for host in ("127.0.0.1", "::1"):
            socket.create_connection((host, port), timeout=60).close()

    monkeypatch.setattr(uvicorn.Server, "main_loop", connect)
    urls = []
    run_server(Application({}, partial(asyncio.sleep, 0)), "::", 0, urls.append)
    assert urls


def test_a_busy_port_is_refused_with_the_option_to_choose_another():
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        with pytest.raises(OSError, match=rf"127\.0\.0\.1:{port} \(.* --port"):
            run_server(None, "127.0.0.1", port, print)


def test_a_signal_that_follows_the_announcement_ends_the_server_in_order():
    closed = []

    async def close():
        closed.append(True)

    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)  # uvicorn raises it again at the end
    try:
        run_server(
            Application({}, close), "127.0.0.1", 0, lambda url: signal.raise_signal(signal.SIGTERM)
        )
    finally:
        signal.signal(signal.SIGTERM, before)
    assert closed
