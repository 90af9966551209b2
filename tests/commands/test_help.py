"""The help of the commands for files: examples that work when pasted, and completion."""

import shlex

import pyarrow as pa
import pytest

from commands.tables import ask, ratings, write_table
from ordspan.cli import app
from ordspan.files.features import MISSING
from ordspan.files.opening import FORMATS
from ordspan.learners.catalog import ESTIMATORS
from ordspan.learners.checks import VARIANTS

EPILOGS = {
    command.name or command.callback.__name__: command.epilog for command in app.registered_commands
}
IN_ORDER = ["train", "predict", "evaluate", "info", "export"]


def pasted(name):
    """Run the example of a command's help."""
    start, _, words = EPILOGS[name].partition("ordspan ")
    assert start == "Example: "
    return ask(*shlex.split(words))


def test_the_examples_of_the_help_work_one_after_the_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = ratings()
    grades = pa.array(
        [{"low": 1, "mid": 2, "high": 3, "top": 4}[g.as_py()] for g in table["grade"]]
    )
    numbers = table.drop_columns(["id", "town", "grade"]).append_column("grade", grades)
    write_table(numbers, tmp_path / "ratings.csv")
    write_table(table.drop_columns(["grade"]), tmp_path / "new.csv")
    for name in IN_ORDER:
        if name == "export":
            pytest.importorskip("onnx")
        answer = pasted(name)
        assert answer.exit_code == 0, answer.output
    written = {"ratings.csv", "new.csv", "ratings.ordspan", "graded.csv", "ratings.onnx"}
    assert {path.name for path in tmp_path.iterdir()} == written


@pytest.mark.parametrize("name", IN_ORDER)
def test_help_shows_the_example_and_usage_mistakes_end_with_2(name):
    shown = ask(name, "--help")
    assert shown.exit_code == 0
    assert "Example: ordspan" in " ".join(shown.output.split())
    assert ask(name, "--nonsense").exit_code == 2
    assert ask(name).exit_code == 2


def test_shells_can_complete():
    shown = ask("--help").output
    assert "--install-completion" in shown
    assert "--show-completion" in shown


@pytest.mark.parametrize(
    ("option", "known"),
    [
        ("--variant", VARIANTS),
        ("--format", FORMATS),
        ("--on-bad-row", ["raise", "skip"]),
        ("--learner", ESTIMATORS),
        ("--missing", MISSING),
        ("--checkpoint-every", ["100000", "30s", "5m"]),
    ],
)
def test_a_word_that_an_option_does_not_know_is_wrong_usage(option, known, tmp_path):
    """Words that the library knows get as far as the file, which is missing."""
    rest = ["train", tmp_path / "missing.csv", "--label", "y", "--model", tmp_path / "m"]
    wrong = ask(*rest, option, "nonsense")
    assert wrong.exit_code == 2
    assert all(word in wrong.output for word in ("nonsense", *known))
    for word in known:
        right = ask(*rest, option, word)
        assert right.exit_code == 1
        assert "no such file" in right.output
