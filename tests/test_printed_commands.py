"""Every command that the README and the guide print is run as printed."""

import shlex

import pandas as pd
import pytest
from files_to_train import make_rows

from check_wheel import FILES
from printed import blocks
from tables import ask, said

PRINTED = ("files", "probabilities", "reproduce", "survey")
PAGES = ("README.md", *(f"docs/{name}.md" for name in PRINTED))
FEW = ["--runs", "2", "--trials", "100", "--fractions", "50"]  # all would take half a minute


@pytest.mark.parametrize("page", PAGES)
def test_commands_run_as_printed(tmp_path, monkeypatch, page):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ORDSPAN_OFFLINE", "1")
    if page == "README.md":
        exec(FILES, {})
    for text in blocks(page, "python"):
        if not text.startswith(">>>"):  # a script, which writes files for the commands
            exec(text, {})
    lines = [line for block in blocks(page) for line in block.splitlines()]
    commands = [line for line in lines if line.startswith("ordspan ")]
    assert commands
    for line in commands:
        words = shlex.split(line, comments=True)[1:]
        said(*words, *(FEW if words[0] == "reproduce" else []))


def test_the_commands_for_rows_that_keep_coming_run_as_printed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, grades = make_rows(60)
    houses = pd.DataFrame(X, columns=["size", "age", "rooms"]).assign(price=grades)
    houses.to_csv("new.csv", index=False)

    def shell(command):
        *producer, words = command.split("|")
        assert producer in ([], ["producer "])
        rows = houses.to_csv(index=False) + "oops,1,1,1\n"
        # from a real pipe the format is found
        answer = ask(*shlex.split(words)[1:], "--format", "csv", input=rows if producer else None)
        return answer.exit_code, sorted(file.name for file in tmp_path.glob("live*"))

    first, second, third = blocks("docs/streaming.md", "sh")
    assert shell(first.replace("--on-bad-row skip ", "")) == (1, ["live.ordspan.checkpoint"])
    assert shell(second) == (0, ["live.ordspan.checkpoint"])
    assert len(pd.read_csv("graded.csv")) == 60
    assert shell(third) == (0, ["live.ordspan"])
