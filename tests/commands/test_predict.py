"""`ordspan predict`: what is written, in which order, and that nothing is half-written."""

import io
import json
import os
import signal
import threading
import time

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from commands.tables import (
    FEATURES,
    GRADES,
    ask,
    ratings,
    read_rows,
    said,
    summary,
    trained,
    write_table,
)
from ordspan import load
from processes import start

POSIX = pytest.mark.skipif(os.name != "posix", reason="needs signals, pipes and limits of POSIX")
ADDED = ["prediction", "rank", "score", "margin", "reason"]
NEW = ratings(n=200, seed=1).drop_columns(["grade"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("predict")


@pytest.fixture(scope="module")
def model(folder):
    """A model of the two numbers alone."""
    return trained(folder, "--drop", "town")


@pytest.fixture(scope="module")
def new(folder):
    return write_table(NEW, folder / "new.csv")


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_scores_ranks_and_margins_are_what_their_definitions_say(model, new, tmp_path, ending):
    out = tmp_path / f"out.{ending}"
    said("predict", new, "--model", model, "--keep", "id,town", "--out", out)
    read = {"csv": pd.read_csv, "parquet": pd.read_parquet}
    got = read.get(ending, lambda path: pd.read_json(path, lines=True))(out)
    assert list(got) == ["id", "town", *ADDED]
    assert got["id"].tolist() == NEW["id"].to_pylist()
    assert got["town"].tolist() == NEW["town"].to_pylist()

    seen = ratings().select(FEATURES).to_pandas()
    Z = (NEW.select(FEATURES).to_pandas() - seen.mean()) / seen.std(ddof=0)
    ranker = load(model)
    score = Z.to_numpy() @ ranker.estimator.coef_
    edges = ranker.calibration.cuts / ranker.calibration.slope  # where the median changes
    rank = 1 + (score[:, None] > edges).sum(axis=1)
    np.testing.assert_allclose(got["score"], score, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(got["rank"], rank)
    np.testing.assert_array_equal(got["prediction"], np.array(GRADES)[rank - 1])
    nearest = np.abs(score[:, None] - edges).min(axis=1)
    np.testing.assert_allclose(got["margin"], nearest, rtol=1e-9, atol=1e-9)
    assert set(rank) == {1, 2, 3, 4}


def test_a_spreadsheet_holds_the_rows_and_runs_no_formula(model, new, tmp_path):
    odd = ["=1+1", "+cmd|' /C calc'!A0", "@SUM(1)", "-2", "http://x.y/z", "12345678901234567890"]
    table = NEW.to_pandas()
    table.loc[: len(odd) - 1, "id"] = odd
    table.to_csv(tmp_path / "odd.csv", index=False)
    words = ["predict", tmp_path / "odd.csv", "--model", model, "--keep", "id", "--range", "0.9"]
    for name in ("a.csv", "a.xlsx"):
        said(*words, "--out", tmp_path / name)
    cells = [*openpyxl.load_workbook(tmp_path / "a.xlsx").active.iter_rows()]
    assert not [cell for row in cells for cell in row if cell.data_type == "f" or cell.hyperlink]
    assert [row[0].value for row in cells[1 : len(odd) + 1]] == odd
    as_csv, as_excel = pd.read_csv(tmp_path / "a.csv"), pd.read_excel(tmp_path / "a.xlsx")
    pd.testing.assert_frame_equal(as_csv, as_excel, rtol=1e-14)


def test_the_same_rows_give_the_same_bytes_however_they_are_read(model, new, tmp_path):
    words, out = ["--model", model, "--keep", "town,id"], tmp_path / "out.csv"
    printed = ask("predict", new, *words, "--out", out)
    assert (printed.stdout, "200 rows" in printed.stderr) == ("", True)
    others = [write_table(NEW, tmp_path / f"new.{kind}") for kind in ("csv.gz", "parquet", "jsonl")]
    (tmp_path / "none.csv").write_text("id,size,age,town\n")
    for files in ([new], *([path] for path in others), [tmp_path / "none.csv", new]):
        printed = ask("predict", *files, *words)
        assert (printed.stdout_bytes, printed.stderr) == (out.read_bytes(), "")
    piped = ask("predict", "-", "--format", "csv", *words, input=new.read_bytes())
    assert piped.stdout_bytes == ask("predict", new, *words, "--out", "-").stdout_bytes


def test_several_files_follow_each_other_and_where_names_each_row(model, new, tmp_path):
    other, out = write_table(NEW.slice(0, 3), tmp_path / "b.parquet"), tmp_path / "out.csv"
    said("predict", new, other, "--model", model, "--where", "--out", out)
    rows = read_rows(out)
    places = [(row["file"], int(row["row"])) for row in rows]
    assert places[:200] == [(str(new), row) for row in range(1, 201)]
    assert places[200:] == [(str(other), row) for row in (1, 2, 3)]
    assert [row["score"] for row in rows[200:]] == [row["score"] for row in rows[:3]]


def test_every_row_is_answered_and_a_bad_one_has_a_reason(tmp_path):
    strict = trained(tmp_path, "--drop", "town", "--missing", "error")
    path, out = tmp_path / "bad.csv", tmp_path / "out.csv"
    path.write_text("id,size,age\na,1,2\nb,big,2\nc,3,\nd,3,4,5\ne,inf,2\nf,5,6\n")
    words = ["predict", path, "--model", strict, "--keep", "id", "--where", "--out", out]
    printed = said(*words)
    assert "4 of 6 rows could not be predicted; the column reason says why" in printed
    assert f"{path}, row 2: column 'size' holds 'big'" in printed
    good, *bad, also_good = rows = read_rows(out)
    assert [row["row"] for row in rows] == ["1", "2", "3", "4", "5", "6"]
    assert [row["id"] for row in rows][:3] == ["a", "b", "c"]
    for row in (good, also_good):
        assert [bool(row[name]) for name in ADDED] == [True] * 4 + [False]
    reasons = ("'size' holds 'big'", "'age' is empty", "more fields than", "'size' holds inf")
    for row, reason in zip(bad, reasons, strict=True):
        assert [bool(row[name]) for name in ADDED] == [False] * 4 + [True]
        assert reason in row["reason"]
    told = summary(*words, "--overwrite")
    assert (told["rows"], told["empty"], len(told["empty_examples"])) == (6, 4, 4)


def test_a_missing_number_is_its_mean_unless_that_is_an_error(model, tmp_path):
    mean = float(ratings().to_pandas()["age"].mean())
    (tmp_path / "a.csv").write_text(f"size,age\n5100,\n5100,{mean!r}\n")
    answer = ask("predict", tmp_path / "a.csv", "--model", model)
    gap, filled = pd.read_csv(io.BytesIO(answer.stdout_bytes))["score"]
    assert gap == pytest.approx(filled, rel=1e-12)


def test_numbers_far_from_those_of_training_are_noted(model, tmp_path):
    (tmp_path / "a.csv").write_text("size,age\n5100,0.3\n1e9,0.3\n-1e9,0.3\n5100,40\nbad,1e9\n")
    far = "is more than 20 standard deviations from the mean"
    printed = said("predict", tmp_path / "a.csv", "--model", model, "--out", tmp_path / "out.csv")
    note = f"Note: values unlike those of training: size {far} (2 rows), age {far} (1 row)."
    assert note in " ".join(printed.split())


# -- columns that are kept -----------------------------------------------------------------------


def test_kept_columns_have_one_type_in_all_files(model, tmp_path):
    files, out = [tmp_path / f"{name}.parquet" for name in "ab"], tmp_path / "out.parquet"
    words = ["predict", *files, "--model", model, "--keep", "key,town", "--out", out]
    for keys in ([7, 8], [8, "x"], [8, 1.5]):
        for path, key in zip(files, keys, strict=True):
            write_table(NEW.slice(0, 1).append_column("key", pa.array([key])), path)
        if {*map(type, keys)} == {int}:
            said(*words)
            assert parquet.read_table(out)["key"].to_pylist() == keys
        else:
            printed = said(*words, "--overwrite", code=1)
            assert f"{files[1]}: a kept column has another type" in printed


def test_lists_and_categories_are_kept_where_the_format_has_them(model, tmp_path):
    town = NEW["town"].combine_chunks().dictionary_encode()
    tags = pa.array([[1.5], [float("nan")], *[[]] * 198])
    table = NEW.set_column(3, "town", town).append_column("tags", tags)
    path = write_table(table, tmp_path / "a.parquet")
    words = ["predict", path, "--model", model, "--keep", "tags,town", "--out"]
    assert "column 'tags' holds List" in said(*words, tmp_path / "o.csv", code=1)
    said(*words, tmp_path / "o.jsonl")
    kept = [json.loads(line)["tags"] for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    assert kept[:2] == [[1.5], [None]]
    said(*words, tmp_path / "o.parquet")
    assert parquet.read_table(tmp_path / "o.parquet")["town"].type == pa.string()


def test_svmlight_rows_keep_their_label_and_query(tmp_path):
    data, sparse, path = tmp_path / "train.svm", tmp_path / "sparse", tmp_path / "a.svm"
    data.write_text("1 qid:4 1:0.5 3:2\n2 qid:4 2:1\n3 qid:5 1:3 2:1 3:1\n" * 30)
    said("train", data, "--model", sparse)
    path.write_text("3 qid:9 1:3 2:1 3:1\n1 qid:9 1:0.5\n")
    answer = ask("predict", path, "--model", sparse, "--keep", "qid,label")
    heads, first, second = (line.split(",") for line in answer.stdout.split())
    assert heads == ["qid", "label", *ADDED]
    assert (first[:2], second[:2]) == (["9", "3"], ["9", "1"])


@POSIX
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_no_file(model, tmp_path, number):
    with start("predict", "-", "--model", model, "--out", tmp_path / "out.csv") as process:
        process.stdin.write("size,age\n1,2\n")
        process.stdin.flush()
        while not list(tmp_path.iterdir()):
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.01)
        process.send_signal(number)
        process.wait(60)
        assert "stopped. No file was written." in process.stderr.read()
    assert process.returncode == 130
    assert list(tmp_path.iterdir()) == []


@POSIX
def test_rows_of_a_pipe_are_answered_as_they_arrive(model):
    with start("predict", "-", "--format", "csv", "--model", model) as process:
        watch = threading.Timer(30, process.kill)
        watch.start()
        for pieces in (["size,a", "ge\n51", "00,0.3\n4"], ["900,0.2\n"]):
            for piece in pieces:
                process.stdin.write(piece)
                process.stdin.flush()
                time.sleep(0.05)
            if len(pieces) > 1:
                assert process.stdout.readline().strip() == ",".join(ADDED)
            assert process.stdout.readline().split(",")[0] in GRADES
        process.stdin.close()
        assert process.stdout.read() == ""
        watch.cancel()
    assert process.returncode == 0


@POSIX
def test_a_reader_that_has_seen_enough_ends_it_quietly(model, tmp_path):
    path = write_table(pa.concat_tables([NEW] * 200), tmp_path / "rows.parquet")
    with start("predict", path, "--model", model) as process:
        assert process.stdout.readline().strip() == ",".join(ADDED)
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0
