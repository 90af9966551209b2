"""`ordspan annotate` as a command: beginning, going on, exporting, and what it refuses."""

import json
import re
import shlex
import signal

import httpx
import pytest
from at_work import annotating, told, write_items

from commands.tables import example, said
from processes import start
from serving.served import visited


@pytest.fixture
def started():
    """The services that commands have started; each is ended at once."""
    found = []
    with visited(found.append):
        yield found


def test_the_example_of_the_help_begins_a_folder(tmp_path, monkeypatch, started):
    monkeypatch.chdir(tmp_path)
    write_items(tmp_path)
    output = said(*example("annotate"))
    assert re.search(r"Annotate 60 items at http://127.0.0.1:\d+ \(0 answers so far\)", output)
    assert started
    assert (tmp_path / "items-state").is_dir()


@pytest.mark.parametrize(
    ("content", "words", "sentence"),
    [
        ("", "", "a file of items"),
        ("size\n1\n2\n", "items.csv", "--grades lowest,...,highest"),
        ("id,size\na,1\na,2\n", "items.csv --id id", "row 1: the id 'a' is empty or not unique"),
        ("id,size\na,1\n,2\n", "items.csv --id id", "row 2: the id '' is empty or not unique"),
        ("id,size\n", "items.csv --id id", "a header but no rows"),
        ("1 1:2\n", "items.csv --format svmlight", "no columns to show"),
        ("", "missing.csv", "no such file"),
        ("", "-", "not a pipe"),
    ],
)
def test_what_cannot_be_annotated_is_refused_and_leaves_no_folder(
    content, words, sentence, tmp_path, monkeypatch, started
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "items.csv").write_text(content)
    grades = [] if "--grades" in sentence else ["--grades", "1..5"]
    assert sentence in told(*words.split(), *grades, "--state", "state", code=1)
    assert not (tmp_path / "state").exists()
    assert not started


def test_a_folder_of_the_service_is_refused(tmp_path, started):
    path, state = write_items(tmp_path)[0], tmp_path / "state"
    said("serve", "--state", state, "--grades", "1,2", "--columns", "a")
    output = told(path, "--grades", "1,2", "--state", state, code=1)
    assert "a state folder of ordspan serve" in output
    assert len(started) == 1


def test_a_folder_goes_on_without_options_and_its_answers_can_be_trained(tmp_path, started):
    path, ranks = write_items(tmp_path)
    state, labels = tmp_path / "state", tmp_path / "labels.csv"
    with annotating(state, path, id="id") as caller:
        caller.answer_many(ranks, 30)
    assert json.loads(told("--state", state, "--json"))["answers"] == 30
    told("--state", state, "--export", path, code=1)  # not over the items
    assert len(path.read_text().splitlines()) == 61
    output = told("--state", state, "--export", labels)
    assert f"30 answers written to {labels}" in output
    command = shlex.split(output.splitlines()[-1])
    assert command[:2] == ["ordspan", "train"]
    said(*command[1:])
    said("info", tmp_path / "labels.ordspan")
    assert told("--state", state, "--export", "-") == labels.read_text()


def test_nothing_is_exported_from_a_folder_that_is_not_there(tmp_path):
    path, _ = write_items(tmp_path)
    (tmp_path / "empty").mkdir()
    for name in ("rsx", "empty"):
        for words in ((), (path, "--grades", "1..5")):
            export = ("--state", tmp_path / name, "--export", tmp_path / "l.csv")
            sentence = f"{name} is not a state folder, so there is nothing to export"
            assert sentence in told(*words, *export, code=1)
    assert not (tmp_path / "rsx").exists()
    assert not [*(tmp_path / "empty").iterdir()]


def test_a_process_serves_the_page_until_it_is_interrupted(tmp_path):
    path, state = write_items(tmp_path)[0], tmp_path / "state"
    words = ["annotate", path, "--grades", "1..5", "--json", "--state", state, "--port", 0]
    with start(*words) as process:
        address = json.loads(process.stdout.readline())["address"]
        asked = httpx.post(f"{address}/api/next", json={"annotator": "ann"}).json()
        answer = {"key": "k", "annotator": "ann", "item": asked["item"], "lower": 2, "upper": 3}
        assert httpx.post(f"{address}/api/answer", json=answer).json()["event"] == 1
        assert "<title>" in httpx.get(address).text
        assert len(told("--state", state, "--export", "-").splitlines()) == 2  # meanwhile
        told("--state", state, code=1)  # a second one
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
