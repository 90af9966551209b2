"""Who may ask, and how much."""

import hmac
from pathlib import Path

import pytest

from ordspan.serving.guard import HEADERS, PAGE_POLICY, check_host, read_token
from serving.served import empty, serving, standing

TOKEN = "correct-horse-battery"
ROW = {"a": 1, "b": 2}
PATHS = ("/model", "/metrics", "/docs", "/openapi.json", "/v2", "/v2/models/ordspan", "/nowhere")


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("open"), empty(), most_bytes=100) as client:
        yield client


@pytest.fixture(scope="module")
def locked(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("locked"), empty(), token=TOKEN) as client:
        yield client


@pytest.mark.parametrize("path", PATHS)
def test_nothing_but_health_is_answered_without_the_token(path, locked):
    for headers in ({}, bearer("wrong"), bearer(TOKEN[:-1]), bearer(TOKEN + "x"), bearer("")):
        refused = locked.get(path, headers=headers)
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"] == "Bearer"
        assert TOKEN not in refused.text
    assert locked.get(path, headers=bearer(TOKEN)).status_code == (404 if "no" in path else 200)


def test_labels_need_the_token_before_their_body_is_looked_at(locked):
    before = standing(locked)
    for path in ("/learn", "/predict", "/v2/models/ordspan/infer"):
        refused = locked.post(path, json=ROW | {"label": 3})
        assert refused.status_code == 401
    in_other_words = ("Basic x", f"bearer {TOKEN}", TOKEN, f"Bearer  {TOKEN}", "Bearer \xff")
    for words in in_other_words:
        refused = locked.post(
            "/learn", json=ROW, headers={"Authorization": words.encode("latin-1")}
        )
        assert refused.status_code == 401
    assert standing(locked) == before
    learned = locked.post("/learn", json=ROW | {"label": 3}, headers=bearer(TOKEN))
    assert learned.status_code == 200


def test_with_a_token_the_name_does_not_matter(locked):
    for host in ("evil.example", "[[::1", "a:b:c"):
        for path, status in (("/v2", 200), ("/v2/", 404), ("/predict/", 404)):
            answer = locked.get(path, headers=bearer(TOKEN) | {"Host": host})
            assert answer.status_code == status


@pytest.mark.parametrize("path", ["/v2/health/live", "/v2/health/ready"])
def test_health_is_answered_to_everyone(path, locked):
    assert locked.get(path, headers={"Host": "evil.example"}).status_code == 200
    assert locked.get(path + "/x").status_code == 401


def test_tokens_are_compared_in_constant_time(locked, monkeypatch):
    compared = []

    def compare(*values):
        compared.append(values)
        return real(*values)

    real = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", compare)
    locked.get("/v2", headers=bearer("wrong"))
    assert compared == [(b"Bearer wrong", f"Bearer {TOKEN}".encode())]


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "127.0.0.1:8000", "[::1]:8000", "[::1]"]
)
def test_without_a_token_this_machine_may_ask(host, client):
    assert client.get("/v2", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        *(
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "evil.example:80",
            "",
        ),
        *(
            "localhost:80:80",
            "[[::1",
            "[localhost]",
            "0.0.0.0",
            "localhost@evil.example",
            "127.0.0.2",
        ),
    ],
)
@pytest.mark.parametrize("path", ["/v2", "/v2/health/live", "/predict/"])
def test_without_a_token_another_name_is_refused(path, host, client):
    """A page of another site may have its own name point here (DNS rebinding)."""
    refused = client.get(path, headers={"Host": host})
    assert refused.status_code == 421
    (words,) = refused.json().values()
    assert "127.0.0.1" in words


WRONG_HEADS = {
    "another type": ({"Content-Type": "text/plain"}, "application/json"),
    "a form": ({"Content-Type": "application/x-www-form-urlencoded"}, "application/json"),
    "no type": ({}, "application/json"),
    "gzip": ({"Content-Type": "application/json", "Content-Encoding": "gzip"}, "Content-Encoding"),
    "binary tensors": (
        {"Content-Type": "application/json", "Inference-Header-Content-Length": "3"},
        "binary_data=False",
    ),
}


@pytest.mark.parametrize("name", WRONG_HEADS)
@pytest.mark.parametrize("path", ["/learn", "/predict", "/v2x"])
def test_only_plain_json_is_read(path, name, client):
    headers, words = WRONG_HEADS[name]
    before = standing(client)
    refused = client.post(path, content=b'{"a":1,"b":2,"label":3}', headers=headers)
    assert (refused.status_code, words in refused.json()["detail"]) == (415, True)
    assert standing(client) == before


@pytest.mark.parametrize("in_parts", [True, False], ids=["chunked", "with its length"])
def test_a_body_over_the_limit_is_not_read(in_parts, client):
    body = b'{"a":1,"b":2,"label":3}' + b" " * 77
    headers, before = {"Content-Type": "application/json"}, standing(client)
    for size, status in ((101, 413), (100, 200)):
        whole = body + b" " * (size - 100)
        content = iter([whole[:50], whole[50:]]) if in_parts else whole
        answer = client.post("/learn", content=content, headers=headers)
        assert answer.status_code == status
        if status == 413:
            assert "more than 100 bytes; send fewer rows" in answer.json()["detail"]
            assert standing(client) == before


def test_every_answer_has_the_headers_of_security(client, locked):
    answers = [
        *(client.get(path) for path in PATHS),
        client.put("/learn", json=ROW),
        client.get("/learn"),
        client.post("/learn", json=[]),
        client.post("/learn", json=ROW | {"label": 1}),
        client.post("/learn", content=b"x" * 101, headers={"Content-Type": "application/json"}),
        client.post("/learn", content=b"x"),
        client.get("/v2", headers={"Host": "evil.example"}),
        locked.get("/v2"),
    ]
    statuses = {answer.status_code for answer in answers}
    assert statuses == {200, 401, 404, 405, 413, 415, 421, 422}
    for answer in answers:
        for name, value in HEADERS:
            assert answer.headers[name.decode()] == value.decode()
    assert "default-src 'none'" in PAGE_POLICY
    assert "unsafe" not in PAGE_POLICY


def test_no_path_of_a_request_reaches_the_file_system(client):
    for path in ("/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/model%00", "/model/../docs/x"):
        assert client.get(path).status_code == 404


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.168.0.7", "example.org", "127.0.0.2"])
def test_other_machines_are_let_in_with_a_token_only(host):
    with pytest.raises(ValueError, match="--token-file"):
        check_host(host, None)
    check_host(host, TOKEN)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_this_machine_needs_no_token(host):
    check_host(host, None)


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"short\n", b"fifteen letters", "ümläut".encode() * 9, b"\xff" * 20, b"a\nb" * 9],
)
def test_a_weak_token_is_refused_with_the_way_to_a_good_one(content, tmp_path):
    path = tmp_path / "token"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"token: a token needs .*token_urlsafe"):
        read_token(path)


def test_a_token_is_read_without_its_line_end(tmp_path):
    path = Path(tmp_path, "token")
    path.write_text(f"{TOKEN}\r\n")
    assert read_token(path) == TOKEN
