"""Other files read like a stream: as a model that learned from that stream needs them."""

import io

import numpy as np
import pandas as pd
import pytest

from ordspan.data import stream
from ordspan.files.batch import FileError, RowError

N = 400
rng = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "size": rng.normal(5, 2, N).round(3),
        "age": rng.integers(18, 90, N),
        "town": rng.choice(["Graz", "Pune", "Turku"], N),
        "grade": rng.choice(["low", "mid", "high"], N),
    }
)
GRADES = ["low", "mid", "high"]


def rows_of(batches):
    return np.vstack([batch.X for batch in batches])


@pytest.fixture
def whole(tmp_path):
    FRAME.to_csv(tmp_path / "all.csv", index=False)
    return stream(tmp_path / "all.csv", label="grade", classes=GRADES, standardise=True)


def test_rows_of_another_file_are_what_they_were_in_the_first(whole, tmp_path):
    some = (FRAME.town != "Pune") & (FRAME["size"] > 5)  # another mean, and a word less
    part = FRAME[some].assign(note="x")[["town", "note", "grade", "age", "size"]]
    part.to_csv(tmp_path / "part.csv", index=False)
    part.to_parquet(tmp_path / "part.parquet")
    for name in ("part.csv", "part.parquet"):
        batches = stream(tmp_path / name, like=whole, label="grade", classes=GRADES)
        np.testing.assert_array_equal(rows_of(batches), rows_of(whole)[some])
        assert [*np.concatenate([b.y for b in batches])] == part.grade.tolist()
        assert batches.classes.tolist() == GRADES
        assert batches.feature_names == whole.feature_names
    third = stream(tmp_path / "part.csv", like=batches)
    np.testing.assert_array_equal(rows_of(third), rows_of(whole)[some])


def test_files_without_the_label_have_rows_without_labels(whole, tmp_path):
    FRAME.drop(columns="grade").to_csv(tmp_path / "new.csv", index=False)
    batches = stream(tmp_path / "new.csv", like=whole)
    np.testing.assert_array_equal(rows_of(batches), rows_of(whole))
    assert {batch.y is None for batch in batches} == {True}
    with pytest.raises(FileError, match="no column 'grade'"):
        list(stream(tmp_path / "new.csv", like=whole, label="grade"))


def test_unseen_words_are_noted_and_unknown_grades_refused(whole, tmp_path):
    FRAME.replace({"Pune": "Oslo", "high": "top"}).to_csv(tmp_path / "new.csv", index=False)
    batches = stream(tmp_path / "new.csv", like=whole, on_bad_row="skip")
    rows_of(batches)
    assert "town = 'Oslo'" in batches.notes[-1]
    with pytest.raises(RowError, match="'top' is not among the grades of the stream given as like"):
        list(stream(tmp_path / "new.csv", like=whole))


def test_a_pipe_lends_the_scale_it_has_learned(whole, tmp_path, monkeypatch):
    content = (tmp_path / "all.csv").read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))
    choice = {"features": ["size", "age"], "standardise": True}
    pipe = stream("-", label="grade", classes=GRADES, **choice)
    last = rows_of(pipe)[-1]
    later = stream(tmp_path / "all.csv", like=pipe)
    np.testing.assert_allclose(rows_of(later)[-1], last, rtol=1e-12)


@pytest.mark.parametrize(
    "given",
    [
        {"label": "town"},
        {"lower": "grade"},
        {"classes": ["high", "mid", "low"]},
        {"features": ["size"]},
        {"missing": "error"},
    ],
)
def test_what_does_not_agree_is_refused(whole, tmp_path, given):
    (name,) = given
    with pytest.raises(ValueError, match=f"{name}=.* differs from .* given as like"):
        stream(tmp_path / "all.csv", like=whole, **given)


def test_svmlight_rows_keep_their_width_and_scale(tmp_path):
    (tmp_path / "a.txt").write_text("1 1:2 3:4\n2 2:1 3:2\n")
    (tmp_path / "b.txt").write_text("2 1:2\n1 2:1\n")
    first = stream(tmp_path / "a.txt", standardise=True)
    (known,), (later,) = list(first), list(stream(tmp_path / "b.txt", like=first))
    assert later.X.shape == (2, 3)
    assert later.X[:, [0]].toarray().tolist() == known.X[:, [0]].toarray().tolist()
    assert later.y.tolist() == [2, 1]


def test_files_with_and_without_labels_are_not_mixed(tmp_path):
    for name, text in (("a", "x,g\n1,1\n2,2\n"), ("b", "x\n3\n")):
        (tmp_path / f"{name}.csv").write_text(text)
    first = stream(tmp_path / "a.csv", label="g")
    both = [tmp_path / "b.csv", tmp_path / "a.csv"]
    for files in (both, both[::-1]):
        with pytest.raises(ValueError, match=r"a\.csv has labels, .*b\.csv has none"):
            list(stream(files, like=first))
    with pytest.raises(TypeError, match="like must be a stream, not int"):
        stream(both, like=3)
