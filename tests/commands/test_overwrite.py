"""Only what ordspan wrote is replaced, and only if told; names that cannot be right are refused."""

import os
from unittest.mock import Mock

import pytest

from commands.tables import limited_room, ratings, said, summary, trained, write_table


@pytest.fixture
def model(tmp_path):
    return trained(tmp_path, "--drop", "town")


NAMES = ["p.csv", "p.parquet", "p.jsonl", "p.xlsx", "g.onnx", "e.html", "m"]


@pytest.mark.parametrize("name", NAMES)
def test_only_whole_results_of_the_same_kind_are_replaced_if_told(model, tmp_path, name):
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
    if os.name == "posix" and name != "p.xlsx":  # whose library leaves a file open
        there = sorted(tmp_path.iterdir())
        with limited_room(500):
            full = said(*words, "--overwrite", code=1)
        assert "File too large; free some space, or write elsewhere" in full
        assert (out.read_bytes(), sorted(tmp_path.iterdir())) == (before, there)
    out.write_text("a,b\n1,2\n")
    assert "that ordspan wrote; choose another name" in said(*words, "--overwrite", code=1)
    assert out.read_text() == "a,b\n1,2\n"


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
    monkeypatch.setattr("typer.secho", Mock(side_effect=MemoryError))
    said("predict", tmp_path / "none.csv", "--model", model, code=1)
    assert capfd.readouterr().err == "error: not enough memory\n"
