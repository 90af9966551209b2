"""`ordspan serve` as a process: it starts, learns, ends when asked, and goes on where it was."""

import json
import signal
import subprocess
import sys
from contextlib import contextmanager

import httpx
import pytest

from commands.tables import ask, said
from ordspan.serving import http
from serving.served import ROW, empty, model_file, serving

EMPTY = ("--grades", "1..5", "--columns", "a,b", "--text", "b")


@contextmanager
def served(*words):
    """A client of `ordspan serve`, and what it said at its start; it is ended as a system does."""
    command = [sys.executable, "-m", "ordspan", "serve", "--port", "0", "--json", *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            line = process.stdout.readline()
            assert line, process.stderr.read().decode()
            said = json.loads(line)
            with httpx.Client(base_url=said["address"], timeout=30) as client:
                yield client, said
        finally:
            process.send_signal(signal.SIGTERM)
            said = process.communicate(timeout=60)[1].decode()
    assert "Traceback" not in said, said


@pytest.mark.slow
def test_it_learns_ends_and_goes_on(tmp_path):
    state = tmp_path / "state"
    with served("--model", model_file("mixed"), "--state", state) as (client, said):
        assert said["events"] == 0
        assert said["address"].startswith("http://127.0.0.1:")
        refused = client.post("/learn", json=ROW | {"size": "x", "label": "mid"})
        assert "column 'size': Expected `float | null`, got `str`" in refused.json()["detail"]
        for key in ("one", "two", "one"):
            learned = client.post("/learn", json=ROW | {"label": "mid", "key": key})
            assert learned.status_code == 200
        content = client.get("/model").content
    token = tmp_path / "token"
    token.write_text("a-secret-of-some-length\n")
    with served("--state", state, "--token-file", token) as (client, said):
        assert said["events"] == 2
        assert client.get("/model").status_code == 401
        bearer = {"Authorization": "Bearer a-secret-of-some-length"}
        assert client.get("/model", headers=bearer).content == content


@pytest.mark.parametrize("secret", [True, False])
def test_the_start_says_whether_requests_need_the_secret(secret, tmp_path, monkeypatch):
    monkeypatch.setattr(http, "run_server", lambda app, host, port, started: started("http://x"))
    (tmp_path / "token").write_text("a-secret-of-some-length\n")
    words = ("--host", "0.0.0.0", "--token-file", tmp_path / "token") if secret else ()
    output = said("serve", "--state", tmp_path / "state", *EMPTY, *words)
    assert ("must send Authorization: Bearer SECRET" in output) == secret
    assert "a-secret" not in output


WRONG = [
    ([], "give one with --model, or --grades and --columns"),
    (["--grades", "1..5"], "both --grades and --columns"),
    (["--columns", "a"], "both --grades and --columns"),
    (["--model", "none"], "no such model file"),
    ([*EMPTY, "--host", "0.0.0.0"], "--token-file"),
    ([*EMPTY, "--host", "example.org"], "--token-file"),
    ([*EMPTY, "--token-file", "weak"], "at least 16"),
    ([*EMPTY, "--token-file", "nowhere"], "nowhere"),
    ([*EMPTY, "--model", "weak"], "either --model"),
    ([*EMPTY, "--grades", "1"], "grades"),
    ([*EMPTY, "--text", "c"], "'c'"),
    ([*EMPTY, "--columns", "a"], "each column once"),
    ([*EMPTY, "--columns", "label"], "'label'"),
    ([*EMPTY, "--columns", '5" disk'], "which no request can name"),
    ([*EMPTY, "--state", "."], "is a state folder of ordspan annotate"),
]


@pytest.mark.parametrize(("words", "sentence"), WRONG)
def test_what_cannot_be_served_is_refused_with_a_sentence(words, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "weak").write_text("1234")
    (tmp_path / "annotate.json").write_text("{}")
    assert sentence in " ".join(said("serve", "--state", "state", *words, code=1).split())
    assert not (tmp_path / "state").exists(), "it would be in the way of the next try"


def test_labels_are_exported_as_a_table_for_train(tmp_path):
    state, out = tmp_path / "state", tmp_path / "labels.csv"
    assert "nothing to export" in ask("serve", "--state", state, "--export", out).output
    with serving(state, empty("a,b", text=["b"])) as client:
        labels = [("k1", "2-3", "@x"), ("k2", 4, "-5"), ("k3", 1, "=y"), ("k4", 1, 7)]
        for key, label, note in labels:
            client.post("/learn", json={"a": -1.5, "b": note, "label": label, "key": key})
        client.post("/undo", json={"key": "k3"})
        answer = ask("serve", "--state", state, "--export", out)  # while it is served
    assert "3 labels written" in answer.output
    assert out.read_text().splitlines() == [
        *("key,lower,upper,a,b", "k1,2,3,-1.5,'@x", "k2,4,4,-1.5,-5", "k4,1,1,-1.5,7")
    ]
