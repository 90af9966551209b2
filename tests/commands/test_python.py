"""The functions for files in Python are the commands, under other names."""

import inspect

import pandas as pd
import pytest
from files_to_train import make_rows, write_rows

import ordspan
from ordspan import stream
from ordspan.catalog import DEFAULTS
from ordspan.commands.jobs import MODEL, TrainJob, options_of
from tables import said, summary

X, GRADES = make_rows(300)
TABLE = pd.DataFrame(X, columns=["x0", "x1", "x2"]).assign(grade=GRADES)


@pytest.fixture
def path(tmp_path):
    return write_rows(tmp_path, "csv", X, GRADES)


def test_they_do_the_same_as_the_commands(path, tmp_path):
    model = ordspan.train_files(path, tmp_path / "a", label="grade", C=0.5, decimal=".")
    words = ["--label", "grade", "--C", "0.5", "--decimal", "."]
    said("train", path, *words, "--model", tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert model.training["rows"] == 300
    done = ordspan.predict_files([path], tmp_path / "a", tmp_path / "a.csv", coverage=0.9)
    words = ["--model", tmp_path / "b", "--range", "0.9", "--out", tmp_path / "b.csv"]
    said("predict", path, *words)
    assert done["rows"] == 300
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    found = ordspan.evaluate_files(path, tmp_path / "a", page=tmp_path / "a.html")
    assert found["mae"] == summary("evaluate", path, "--model", tmp_path / "b")["mae"]
    assert found["mae"] == -model.score(TABLE) == -model.score(TABLE, TABLE["grade"])
    assert (tmp_path / "a.html").read_text().startswith("<!DOCTYPE html>")


def test_the_signatures_are_real_and_every_setting_has_words():
    plain = inspect.signature(ordspan.train_files).parameters
    assert [*plain][:2] == ["files", "model"]
    assert (plain["passes"].default, plain["passes"].kind) == (None, inspect.Parameter.KEYWORD_ONLY)
    documented = ordspan.train_files.__doc__.partition("Returns")[0]
    assert all(f"\n{name} : " in documented for name in plain)
    with pytest.raises(TypeError, match="missing a required argument: 'model'"):
        ordspan.train_files("a.csv")
    with pytest.raises(TypeError, match="unexpected keyword argument 'labels'"):
        ordspan.train_files("a.csv", "m", labels="x")


def test_names_of_the_command_line_are_known_in_python_and_the_other_way_round(path, tmp_path):
    ordspan.train_files(path, tmp_path / "a", label="grade", grades="1..4", hash=[])
    said("train", path, "--label", "grade", "--classes", "1..4", "--model", tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    ordspan.predict_files(path, tmp_path / "a", tmp_path / "a.csv", range=0.9)
    assert ",lower,upper," in (tmp_path / "a.csv").read_text()


def test_what_would_be_wrong_is_refused(path, tmp_path):
    ordspan.train_files(path, tmp_path / "a", label="grade")
    for settings, message in (
        ({"start": tmp_path / "a", "learner": "kernel"}, r"learner= .* cannot be given with"),
        ({"label": "grade", "learner": "PA"}, "learner 'PA'; choose one of pa, kernel"),
        ({"label": "grade", "passes": 0}, "passes must be at least 1"),
        ({}, "no label: give label=.*; the columns are x0, x1, x2, grade"),
    ):
        with pytest.raises(ValueError, match=message):
            ordspan.train_files(path, tmp_path / "b", **settings)
    with pytest.raises(ValueError, match="X has 300 rows, but there are 1 labels"):
        ordspan.load(tmp_path / "a").score(TABLE, [3])
    svm = ordspan.train_files(path, tmp_path / "svm", label="grade", learner="svm")
    with pytest.raises(ValueError, match="fitted in one step and cannot be continued"):
        svm.partial_fit(TABLE)


def test_the_name_of_one_column_is_not_taken_apart(path, tmp_path):
    ordspan.train_files(path, tmp_path / "a", label="grade", drop="x1")
    assert summary("info", tmp_path / "a")["columns"]["numbers"] == ["x0", "x2"]
    ordspan.predict_files(path, tmp_path / "a", tmp_path / "a.csv", keep="x1")
    assert (tmp_path / "a.csv").read_text().startswith("x1,prediction,")
    assert stream(path, label="grade", features="x1", keep="x0").feature_names == ["x1"]
    TABLE.sort_values("grade").to_csv(path, index=False)
    assert any("alike in their labels" in note for note in stream(path, label="grade").notes)


def test_a_field_of_the_job_is_an_option_everywhere(path, tmp_path):
    settings = ordspan.train_files(path, tmp_path / "a", label="grade").training["settings"]
    shown, known = said("train", "--help"), inspect.signature(ordspan.train_files).parameters
    for name, one in options_of(TrainJob).items():
        assert name in known
        assert one.argument or one.names[0].partition("/")[0] in shown
        assert (name in settings) == (one.of in ("", MODEL) or name in DEFAULTS["pa"])
