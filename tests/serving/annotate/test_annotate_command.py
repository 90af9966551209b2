"""`ordspan annotate` as a command: beginning, going on, exporting, and what it refuses."""

import json
import shlex
import signal
import subprocess
import sys

import httpx
import pytest
from at_work import Caller, begin, write_items

from ordspan.cli import app
from ordspan.serving import http
from ordspan.serving.engine import Engine, empty_model
from tables import ask


@pytest.fixture
def started(monkeypatch):
    """Applications that the command would serve, with where."""
    found = []

    def run(app, host, port, started):
        started(f"http://{host}:{port}")
        found.append((host, port))

    monkeypatch.setattr(http, "run_server", run)
    return found


def test_the_example_of_the_help_begins_a_folder(tmp_path, monkeypatch, started):
    monkeypatch.chdir(tmp_path)
    write_items(tmp_path)
    (epilog,) = [c.epilog for c in app.registered_commands if c.callback.__name__ == "annotate"]
    answer = ask(*shlex.split(epilog.removeprefix("Example: ordspan ")))
    assert answer.exit_code == 0, answer.output
    assert "Annotate 60 items at http://127.0.0.1:8000 (0 answers so far)." in answer.output
    assert started
    assert (tmp_path / "items-state").is_dir()


def test_what_cannot_be_annotated_is_refused_and_leaves_no_folder(tmp_path, started):
    path, _ = write_items(tmp_path)
    (tmp_path / "bad.csv").write_text("picture\n../a.png\n")
    image = "row 1: the image '../a.png' in column 'picture' is not a file in the folder"
    for words, told in (
        ((), "a file of items"),
        ((path,), "--grades lowest,...,highest"),
        ((tmp_path / "bad.csv", "--grades", "1..5"), image),
        ((tmp_path / "bad.csv", "--grades", "1..5"), "--hide picture"),
    ):
        answer = ask("annotate", *words, "--state", tmp_path / "state", env={"COLUMNS": "10000"})
        assert (answer.exit_code, told in answer.output) == (1, True), answer.output
        assert not (tmp_path / "state").exists()
    Engine(tmp_path / "state", empty_model([1, 2], ["a"])).close()
    answer = ask("annotate", path, "--grades", "1,2", "--state", tmp_path / "state")
    assert (answer.exit_code, "a state folder of ordspan serve" in answer.output) == (1, True)
    assert not started


def test_a_folder_goes_on_without_options_and_its_answers_can_be_trained(tmp_path, started):
    path, ranks = write_items(tmp_path)
    session, state = begin(tmp_path / "state", path, id="id"), tmp_path / "state"
    Caller(session).answer_many(ranks, 30)
    session.engine.close()
    assert json.loads(ask("annotate", "--state", state, "--json").output)["answers"] == 30
    refused = ask("annotate", "--state", state, "--export", path)  # not over the items
    assert (refused.exit_code, len(path.read_text().splitlines())) == (1, 61)
    labels = tmp_path / "labels.csv"
    answer = ask("annotate", "--state", state, "--export", labels, env={"COLUMNS": "10000"})
    assert f"30 answers written to {labels}" in answer.output
    command = shlex.split(answer.output.splitlines()[-1])
    assert command[:2] == ["ordspan", "train"]
    trained = ask(*command[1:])
    assert trained.exit_code == 0, trained.output
    assert ask("info", tmp_path / "labels.ordspan").exit_code == 0
    assert ask("annotate", "--state", state, "--export", "-").output == labels.read_text()


def test_nothing_is_exported_from_a_folder_that_is_not_there(tmp_path):
    path, _ = write_items(tmp_path)
    (tmp_path / "empty").mkdir()
    for name, kind in (("rsx", "a folder"), ("empty", "a state folder")):
        for words in ((), (path, "--grades", "1..5")):
            export = ("--state", tmp_path / name, "--export", tmp_path / "l.csv")
            answer = ask("annotate", *words, *export, env={"COLUMNS": "10000"})
            assert answer.exit_code == 1
            assert f"{name} is not {kind}, so there is nothing to export" in answer.output
    assert not (tmp_path / "rsx").exists()
    assert not [*(tmp_path / "empty").iterdir()]


def test_a_process_serves_the_page_until_it_is_interrupted(tmp_path):
    path, _ = write_items(tmp_path)
    words = [sys.executable, "-m", "ordspan", "annotate", path, "--grades", "1..5", "--json"]
    words += ["--state", tmp_path / "state", "--port", "0"]
    with subprocess.Popen([str(w) for w in words], stdout=subprocess.PIPE, text=True) as process:
        address = json.loads(process.stdout.readline())["address"]
        asked = httpx.post(f"{address}/api/next", json={"annotator": "ann"}).json()
        said = {"key": "k", "annotator": "ann", "item": asked["item"], "lower": 2, "upper": 3}
        assert httpx.post(f"{address}/api/answer", json=said).json()["event"] == 1
        assert "<title>" in httpx.get(address).text
        answer = ask("annotate", "--state", tmp_path / "state", "--export", "-")  # meanwhile
        assert len(answer.output.splitlines()) == 2
        assert ask("annotate", "--state", tmp_path / "state").exit_code == 1  # a second one
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
