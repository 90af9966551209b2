"""`ordspan serve` as a command: what it says, what it refuses, and the export of labels."""

import json

import pytest

from commands.tables import said
from serving.served import empty, serving, visited

EMPTY = ("--grades", "1..5", "--columns", "a,b", "--text", "b")


@pytest.fixture(autouse=True)
def ended_at_once():
    """The command ends when it would begin to serve; `test_kills` lets it go on."""
    with visited(lambda client: None):
        yield


@pytest.mark.parametrize("secret", [True, False])
def test_the_start_says_whether_requests_need_the_secret(secret, tmp_path):
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


def test_labels_are_exported_as_a_table_for_train_and_the_folder_goes_on(tmp_path):
    state, out = tmp_path / "state", tmp_path / "labels.csv"
    assert "nothing to export" in said("serve", "--state", state, "--export", out, code=1)
    with serving(state, empty("a,b", text=["b"])) as client:
        labels = [("k1", "2-3", "@x"), ("k2", 4, "-5"), ("k3", 1, "=y"), ("k4", 1, 7)]
        for key, label, note in labels:
            client.post("/learn", json={"a": -1.5, "b": note, "label": label, "key": key})
        client.post("/undo", json={"key": "k3"})
        assert "3 labels written" in said("serve", "--state", state, "--export", out)
    assert out.read_text().splitlines() == [
        *("key,lower,upper,a,b", "k1,2,3,-1.5,'@x", "k2,4,4,-1.5,-5", "k4,1,1,-1.5,7")
    ]
    assert json.loads(said("serve", "--state", state, "--json"))["labels"] == 3
    assert "hashed words of b" in said("info", state / "base.ordspan")
