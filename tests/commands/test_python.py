"""The functions for files in Python are the commands, under other names."""

import pytest
from files_to_train import make_rows, write_rows
from tables import ask

import ordspan
from ordspan.data import stream

X, GRADES = make_rows(300)


@pytest.fixture
def path(tmp_path):
    return write_rows(tmp_path, "csv", X, GRADES)


def test_they_write_the_same_bytes_as_the_commands(path, tmp_path):
    model = ordspan.train_files(path, tmp_path / "a", label="grade", C=0.5, decimal=".")
    words = ["--label", "grade", "--C", "0.5", "--decimal", "."]
    assert ask("train", path, *words, "--model", tmp_path / "b").exit_code == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert model.training["rows"] == 300
    done = ordspan.predict_files([path], tmp_path / "a", tmp_path / "a.csv", coverage=0.9)
    words = ["--model", tmp_path / "b", "--range", "0.9", "--out", tmp_path / "b.csv"]
    assert ask("predict", path, *words).exit_code == 0
    assert done["rows"] == 300
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    found = ordspan.evaluate_files(path, tmp_path / "a", page=tmp_path / "a.html")
    assert found["rows"] == 300
    assert (tmp_path / "a.html").read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("labels", "did you mean label="),
        ("lable", "did you mean label="),
        ("grades", "did you mean classes="),
        ("delimeter", "did you mean delimiter="),
        ("banana", "it has C, allow_skipped, "),
    ],
)
def test_what_is_not_a_setting_is_refused(path, tmp_path, given, meant):
    with pytest.raises(TypeError, match=rf"^train_files\(\) has no setting {given}=; {meant}"):
        ordspan.train_files(path, tmp_path / "a", **{given: "grade"})
    with pytest.raises(TypeError, match=r"^predict_files.* range=; did you mean coverage="):
        ordspan.predict_files(path, tmp_path / "a", tmp_path / "b.csv", range=0.9)


def test_the_name_of_one_column_is_not_taken_apart(path, tmp_path):
    model = ordspan.train_files(path, tmp_path / "a", label="grade", drop="x1")
    assert model.recipe.columns == ("x0", "x2")
    ordspan.predict_files(path, tmp_path / "a", tmp_path / "a.csv", keep="x1")
    assert (tmp_path / "a.csv").read_text().startswith("x1,prediction,")
    assert stream(path, label="grade", features="x1", keep="x0").feature_names == ["x1"]


def test_a_parameter_of_another_learner_names_it(path, tmp_path):
    with pytest.raises(TypeError, match=r"no setting gamma=; it belongs to learner='kernel'"):
        ordspan.train_files(path, tmp_path / "a", label="grade", gamma=1.0)
    with pytest.raises(ValueError, match="learner"):
        ordspan.train_files(path, tmp_path / "a", label="grade", learner="PA", C=1.0)


WITHOUT_POLARS = """
import sys
sys.modules["polars"] = None
import ordspan
for name in ("train_files", "predict_files", "evaluate_files", "data.stream"):
    try:
        eval(f"ordspan.{name}")("a.csv")
    except ModuleNotFoundError as error:
        print(error)
"""


def test_a_missing_extra_is_named(bare):
    done = bare.run(code=WITHOUT_POLARS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["this needs polars: pip install 'ordspan[cli]'"] * 4


def test_an_existing_model_is_not_replaced(path, tmp_path):
    ordspan.train_files(path, tmp_path / "a", label="grade")
    with pytest.raises(ValueError, match="overwrite=True replaces it"):
        ordspan.train_files(path, tmp_path / "a", label="grade")
