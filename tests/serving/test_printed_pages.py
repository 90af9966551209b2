"""The pages on serving and annotating from top to bottom: what is printed is sent and answered."""

import io
import json
import os
import re
import shlex
import subprocess
import sys
import urllib.request
from pathlib import Path

import polars as pl
import pytest

from commands.tables import ask
from printed import ROOT, blocks
from serving.served import visited


def commands(block):
    """Run the commands of a block as printed; what the last one said."""
    for line in block.splitlines():
        program, *words = shlex.split(line)
        assert program == "ordspan", line
        answer = ask(*words)
        assert answer.exit_code == 0, f"{line}\n{answer.output}"
    return answer.output


def curl(client, command):
    """The answer to the request of a command."""
    program, *words = shlex.split(command)
    assert program == "curl"
    given = {name: words[words.index(name) + 1] for name in ("-H", "-d") if name in words}
    (path,) = (
        re.fullmatch(r"(?:http://)?localhost:8000(/.*)", word)
        for word in words
        if "localhost" in word
    )
    headers = dict([given["-H"].split(": ", 1)])
    return client.request(
        "POST" if "-d" in given else "GET", path[1], content=given.get("-d"), headers=headers
    )


def rounded(value):
    """A JSON value with three digits, as pages show it."""
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    return round(value, 3) if isinstance(value, float) else value


@pytest.fixture
def visits(monkeypatch, tmp_path):
    """What is done with each service that a command starts: functions of a client."""
    waiting = []
    monkeypatch.chdir(tmp_path)
    with visited(lambda client: waiting.pop(0)(client)):
        yield waiting
    assert not waiting


@pytest.mark.skipif(os.name != "posix", reason="runs a command in a shell")
def test_the_service_answers_as_its_page_says(visits):
    scripts, terminal = blocks("docs/serving.md", "python"), blocks("docs/serving.md", "")
    requests, answers = blocks("docs/serving.md", "bash"), blocks("docs/serving.md", "json")
    (metrics,) = blocks("docs/serving.md", "text")

    def ask_and_learn(client):
        for request, answer in zip(requests, answers, strict=True):
            assert rounded(curl(client, request).json()) == json.loads(answer)
        shown = client.get("/metrics").text.splitlines()
        assert set(metrics.splitlines()) <= set(shown)

    exec(scripts[0], {})
    visits.append(ask_and_learn)
    commands(terminal[0])

    secret, serve = terminal[2].splitlines()
    subprocess.run(secret.replace("python", shlex.quote(sys.executable), 1), shell=True, check=True)
    request = terminal[3].replace("$(cat secret.txt)", Path("secret.txt").read_text().strip())

    def need_the_secret(client):
        assert client.get("/openapi.json").status_code == 401
        assert curl(client, request).status_code == 200

    visits.append(need_the_secret)
    commands(serve)


@pytest.mark.slow
def test_learning_from_every_label_gains_what_the_page_says(visits, monkeypatch):
    scripts, terminal = blocks("docs/serving.md", "python"), blocks("docs/serving.md", "")

    def send_all(client):
        def send(request):
            answer = client.post(request.full_url, content=request.data, headers=request.headers)
            return io.BytesIO(answer.content)

        monkeypatch.setattr(urllib.request, "urlopen", send)
        exec(scripts[2], {})

    exec(scripts[1], {})
    visits.append(send_all)
    printed = float(commands(terminal[1]).splitlines()[-1])
    assert f"It prints {printed:.2f}." in (ROOT / "docs" / "serving.md").read_text("utf-8")


def test_answers_are_exported_and_trained_as_the_page_on_annotating_says(visits):
    (script, convert), terminal = (blocks("docs/annotating.md", kind) for kind in ("python", ""))

    def answer_some(client):
        for number in range(12):
            asked = client.post("/api/next", json={"annotator": "ann"}).json()
            label = {"lower": number % 4 + 1, "upper": min(number % 4 + 2, 4)}
            about = {"shown": asked["show_guess"], "key": f"{number}", "seconds": 1.0}
            kept = {name: asked[name] for name in ("item", "asked_by", "guess")}
            client.post("/api/answer", json={"annotator": "ann", **kept, **about, **label})

    exec(script, {})
    visits.append(answer_some)
    commands(terminal[0])
    commands(terminal[1])
    assert len(pl.read_csv("labels.csv")) == 12
    write_exports(pl.read_csv("digits.csv")["image"].to_list())
    exec(convert, {})
    answers = pl.read_csv("answers.csv")
    assert len(answers) == 149
    assert set(answers[:74]["lower"]) == {"poor"}
    assert set(answers[74:]["lower"]) == {"fair"}
    assert set(answers[74:]["upper"]) == {"clear"}
    commands(terminal[2])


def write_exports(images):
    """Answers as Label Studio and Potato export them; the first one was cancelled."""
    rating = {"type": "rating", "from_name": "legible", "value": {"rating": 2}}
    tasks = [
        {
            "data": {"image": image},
            "annotations": [{"completed_by": 7, "was_cancelled": i == 0, "result": [rating]}],
        }
        for i, image in enumerate(images[:75])
    ]
    Path("label-studio.json").write_text(json.dumps(tasks))
    ends = {"legible": {"range_low": "3", "range_high": "4"}}
    answers = [{"instance_id": i, "user_id": "ann", "labels": ends} for i in images[75:]]
    Path("potato.jsonl").write_text("".join(json.dumps(answer) + "\n" for answer in answers))
