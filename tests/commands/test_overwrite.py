"""Only what ordspan wrote is replaced, and only if told; names that cannot be right are refused."""

import sys

import pytest

from commands.tables import ratings, said, summary, trained, write_table


@pytest.fixture
def model(tmp_path):
    return trained(tmp_path, "--drop", "town")


NAMES = ["p.csv", "p.parquet", "p.jsonl", "p.xlsx", "g.onnx", "e.html", "m"]


@pytest.mark.parametrize("name", NAMES)
def test_only_results_of_the_same_kind_are_replaced_if_told(model, tmp_path, name):
    data, out = tmp_path / "model-train.csv", tmp_path / name
    words = {
        "g.onnx": ["export", model, out],
        "e.html": ["evaluate", data, "--model", model, "--html", out],
        "m": ["train", data, "--label", "grade", "--grades", "low,mid,high,top", "--model", out],
    }.get(name, ["predict", data, "--model", model, "--out", out])
    said(*words)
    before = out.read_bytes()
    assert f"{out} already exists: overwrite=True (--overwrite) replaces it" in said(*words, code=1)
    said(*words, "--overwrite")
    assert out.read_bytes() == before
    out.write_text("a,b\n1,2\n")
    assert "that ordspan wrote; choose another name" in said(*words, "--overwrite", code=1)
    assert out.read_text() == "a,b\n1,2\n"


def test_a_file_beside_the_model_is_not_taken_for_its_checkpoint(model, tmp_path):
    left = tmp_path / "model.checkpoint"
    left.write_text("mine")
    words = ["train", tmp_path / "model-train.csv", "--label", "grade", "--model", model]
    assert "is not a model that ordspan wrote" in said(*words, "--overwrite", code=1)
    assert left.read_text() == "mine"


def test_names_and_lists_that_cannot_be_right_are_refused(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    train = ["train", "model-train.csv", "--label", "grade", "--model"]
    assert ". is a folder; give the name of a file" in said(*train, ".", code=1)
    assert ". is a folder; give the name of a file" in said(*train, "", code=1)
    empty = said("predict", "", "--model", model, code=1)
    assert "a name is empty; give a name, or leave the option out" in empty
    for option in ("--grades", "--drop"):
        broken = said(*train, "n", option, "low,mid\r,high", code=1)
        assert r"'low,mid\r,high' contains a line break; write the list on one line" in broken


def test_all_missing_columns_are_named(model, tmp_path):
    (tmp_path / "a.csv").write_text("town\nUlm\n")
    printed = said("predict", tmp_path / "a.csv", "--model", model, code=1)
    assert "no columns 'size', 'age', which the model" in printed
    words = ["--features", "size,a,b", "--label", "grade", "--model", tmp_path / "m"]
    printed = said("train", tmp_path / "model-train.csv", *words, code=1)
    assert "no columns 'a', 'b'; the columns are id, size" in printed


def test_a_column_that_alone_explains_the_grade_is_named(tmp_path):
    table = ratings()
    codes = {"low": "q", "mid": "c", "high": "x", "top": "a"}
    copy = [codes[grade] for grade in table["grade"].to_pylist()]
    words = ["--label", "grade", "--grades", "low,mid,high,top", "--drop", "id", "--model"]
    honest = write_table(table, tmp_path / "honest.csv")
    assert summary("train", honest, *words, tmp_path / "a")["explained_by"] is None
    leaking = write_table(table.append_column("copy", [copy]), tmp_path / "leaking.csv")
    for more in ([], ["--passes", 3], ["--learner", "svm"]):
        printed = said("train", leaking, *words, tmp_path / "b", "--overwrite", *more)
        assert "'copy' alone explains 100 % of this; is it known before the grade is?" in printed


def test_a_lack_of_memory_ends_in_a_sentence(model, tmp_path, monkeypatch, capfd):
    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr(sys.modules["ordspan.cli.app"], "say", fail)
    said("predict", tmp_path / "none.csv", "--model", model, code=1)
    assert capfd.readouterr().err == "error: not enough memory\n"
