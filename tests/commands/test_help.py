"""The help of the commands for files: examples that work when pasted, and completion."""

import shlex

import pytest

from commands.tables import ratings, said, write_table

IN_ORDER = ["train", "predict", "evaluate", "info", "export"]


def example(name):
    """The example of a command's help, whatever lines it is broken into."""
    shown = " ".join(said(name, "--help").split())
    return shlex.split(shown.partition("Example: ordspan ")[2])


def test_the_examples_of_the_help_work_one_after_the_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = ratings().to_pandas()
    ranks = table["grade"].map({"low": 1, "mid": 2, "high": 3, "top": 4})
    table.assign(grade=ranks).drop(columns=["id", "town"]).to_csv("ratings.csv", index=False)
    write_table(ratings().drop_columns(["grade"]), "new.csv")
    for name in IN_ORDER:
        said(*example(name))
        said(name, "--nonsense", code=2)
        said(name, code=2)
    written = {"ratings.csv", "new.csv", "ratings.ordspan", "graded.csv", "ratings.onnx"}
    assert {path.name for path in tmp_path.iterdir()} == written


def test_shells_can_complete():
    shown = said("--help")
    assert "--install-completion" in shown
    assert "--show-completion" in shown


@pytest.mark.parametrize(
    ("option", "known"),
    [
        ("--variant", ["PA", "PA-I", "PA-II"]),
        ("--format", ["csv", "jsonl", "parquet", "arrow", "xlsx", "svmlight"]),
        ("--on-bad-row", ["raise", "skip"]),
        ("--learner", ["pa", "kernel", "svm"]),
        ("--missing", ["mean", "error"]),
    ],
)
def test_a_word_that_an_option_does_not_know_is_wrong_usage(option, known, tmp_path):
    """Words that it knows get as far as the file, which is missing."""
    words = ["train", tmp_path / "missing.csv", "--label", "y", "--model", tmp_path / "m", option]
    wrong = said(*words, "nonsense", code=2)
    assert all(word in wrong for word in ("nonsense", *known))
    for word in known:
        assert "no such file" in said(*words, word, code=1)


def test_the_time_between_checkpoints_is_rows_or_a_time(tmp_path):
    words = ["train", tmp_path / "missing.csv", "--label", "y", "--model", tmp_path / "m"]
    for word in ("100000", "30s", "5m"):
        assert "no such file" in said(*words, "--checkpoint-every", word, code=1)
    wrong = said(*words, "--checkpoint-every", "often", code=1)
    assert "'often' is neither rows, such as 100000, nor a time, such as 30s" in wrong
