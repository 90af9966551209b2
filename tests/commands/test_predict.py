"""`ordspan predict`: what is written, in which order, and that nothing is half-written."""

import io
import json
import os
import signal
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import ordspan
from commands.tables import FEATURES, GRADES, ask, ratings, read_rows, trained, write_table
from ordspan import OrdinalPA, modelfile, save
from ordspan.commands import outputs
from ordspan.files import text

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
def strict(folder):
    """The same model, which fills no missing number."""
    return trained(folder, "--drop", "town", "--missing", "error", name="strict")


@pytest.fixture(scope="module")
def new(folder):
    return write_table(NEW, folder / "new.csv")


def read_any(path):
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    return pd.read_json(path, lines=True) if path.suffix == ".jsonl" else pd.read_csv(path)


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".jsonl"])
def test_scores_ranks_and_margins_are_what_their_definitions_say(model, new, tmp_path, ending):
    out = tmp_path / f"out{ending}"
    answer = ask("predict", new, "--model", model, "--keep", "id,town", "--out", out)
    assert answer.exit_code == 0, answer.output
    got = read_any(out)
    assert list(got) == ["id", "town", *ADDED]
    assert got["id"].tolist() == NEW["id"].to_pylist()
    assert got["town"].tolist() == NEW["town"].to_pylist()

    seen = ratings().select(FEATURES).to_pandas()
    Z = (NEW.select(FEATURES).to_pandas() - seen.mean()) / seen.std(ddof=0)
    ranker = ordspan.load(model).estimator
    score = Z.to_numpy() @ ranker.coef_
    rank = 1 + (score[:, None] >= ranker.thresholds_).sum(axis=1)
    np.testing.assert_allclose(got["score"], score, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(got["rank"], rank)
    np.testing.assert_array_equal(got["prediction"], np.array(GRADES)[rank - 1])
    nearest = np.abs(score[:, None] - ranker.thresholds_).min(axis=1)
    np.testing.assert_allclose(got["margin"], nearest, rtol=1e-9, atol=1e-9)
    assert set(rank) == {1, 2, 3, 4}


def test_the_file_agrees_with_python_to_the_last_digit(folder, new, tmp_path):
    model = trained(folder, name="words")
    out = tmp_path / "out.csv"
    assert ask("predict", new, "--model", model, "--out", out).exit_code == 0
    rows = read_rows(out)
    loaded = ordspan.load(model)
    assert [float(row["score"]) for row in rows] == loaded.latent(NEW).tolist()
    assert [row["prediction"] for row in rows] == loaded.predict(NEW).tolist()


@pytest.mark.parametrize("name", ["new.csv.gz", "new.parquet", "new.jsonl"])
def test_every_format_of_the_same_rows_gives_the_same_file(model, new, tmp_path, name):
    other = write_table(NEW, tmp_path / name)
    for path, out in ((new, "a.csv"), (other, "b.csv")):
        words = ["--keep", "town,id", "--out", tmp_path / out]
        assert ask("predict", path, "--model", model, *words).exit_code == 0
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_standard_output_has_the_bytes_of_the_file_and_nothing_else(model, new, tmp_path):
    out = tmp_path / "out.csv"
    to_file = ask("predict", new, "--model", model, "--out", out)
    assert to_file.stdout == ""
    assert "200 rows" in to_file.stderr
    for words in ([], ["--out", "-"]):
        shown = ask("predict", new, "--model", model, *words)
        assert shown.stdout_bytes == out.read_bytes()
        assert shown.stderr == ""


def test_standard_input_is_read_too(model, new):
    piped = ask("predict", "-", "--format", "csv", "--model", model, input=new.read_bytes())
    assert piped.stdout_bytes == ask("predict", new, "--model", model).stdout_bytes


def test_the_answer_does_not_depend_on_how_the_file_was_cut(model, new, tmp_path, monkeypatch):
    whole = ask("predict", new, "--model", model, "--keep", "id").stdout_bytes
    monkeypatch.setattr(text, "BLOCK_BYTES", 500)
    monkeypatch.setattr(outputs, "ROW_GROUP", 32)
    assert ask("predict", new, "--model", model, "--keep", "id").stdout_bytes == whole
    out = tmp_path / "out.parquet"
    assert ask("predict", new, "--model", model, "--keep", "id", "--out", out).exit_code == 0
    assert 2 <= parquet.ParquetFile(out).num_row_groups <= 200 // 32
    frame = pd.read_csv(io.BytesIO(whole))
    np.testing.assert_array_equal(pd.read_parquet(out)["score"], frame["score"])


def test_several_files_follow_each_other_and_where_names_each_row(model, new, tmp_path):
    other = write_table(NEW.slice(0, 3), tmp_path / "b.parquet")
    out = tmp_path / "out.csv"
    assert ask("predict", new, other, "--model", model, "--where", "--out", out).exit_code == 0
    rows = read_rows(out)
    places = [(row["file"], int(row["line"])) for row in rows]
    assert places[:200] == [(str(new), line) for line in range(2, 202)]
    assert places[200:] == [(str(other), row) for row in (1, 2, 3)]
    assert [row["score"] for row in rows[200:]] == [row["score"] for row in rows[:3]]


def test_kept_columns_take_the_type_of_the_first_file(model, tmp_path):
    for name, dtype in (("a", pa.int32()), ("b", pa.int64()), ("c", pa.string())):
        key = pa.array([7, 8, 9]).cast(dtype)
        write_table(NEW.slice(0, 3).append_column("key", key), tmp_path / f"{name}.parquet")
    files = [tmp_path / f"{name}.parquet" for name in "abc"]
    out = tmp_path / "out.parquet"
    assert ask("predict", *files, "--model", model, "--keep", "key", "--out", out).exit_code == 0
    assert parquet.read_table(out)["key"].to_pylist() == [7, 8, 9] * 3
    for odd in ("x", 1.5):
        write_table(NEW.slice(0, 1).append_column("key", pa.array([odd])), files[1])
        answer = ask("predict", *files, "--model", model, "--keep", "key", "--out", out)
        assert answer.exit_code == 1
        assert f"{files[1]}: the type of a kept column differs" in answer.output


def test_lists_are_kept_where_the_format_has_them(model, tmp_path):
    table = NEW.slice(0, 2).append_column("tags", pa.array([[1.5], [float("nan")]]))
    path = write_table(table, tmp_path / "a.parquet")
    answer = ask("predict", path, "--model", model, "--keep", "tags", "--out", tmp_path / "o.csv")
    assert answer.exit_code == 1
    assert "column 'tags' holds List" in answer.output
    out = tmp_path / "o.jsonl"
    assert ask("predict", path, "--model", model, "--keep", "tags", "--out", out).exit_code == 0
    assert [json.loads(line)["tags"] for line in out.read_text().splitlines()] == [[1.5], [None]]


def test_categories_are_kept_as_their_words(model, tmp_path):
    town = NEW["town"].combine_chunks().dictionary_encode()
    path = write_table(NEW.set_column(3, "town", town), tmp_path / "a.parquet")
    out = tmp_path / "out.parquet"
    assert ask("predict", path, "--model", model, "--keep", "town", "--out", out).exit_code == 0
    assert parquet.read_table(out)["town"].type == pa.string()


def test_how_files_were_opened_in_training_is_repeated(tmp_path):
    text = "size;age;grade\n1;2;1\n5;6;2\n" * 1 + "1;2;1\n5;6;2\n" * 20
    (tmp_path / "a.dat").write_text(text)
    model = tmp_path / "model"
    how = ["--format", "csv", "--delimiter", ";"]
    assert (
        ask("train", tmp_path / "a.dat", "--label", "grade", *how, "--model", model).exit_code == 0
    )
    assert len(ask("predict", tmp_path / "a.dat", "--model", model).stdout.split()) == 43
    (tmp_path / "b.tsv").write_text(text.replace(";", "\t"))
    assert len(ask("predict", tmp_path / "b.tsv", "--model", model).stdout.split()) == 43
    (tmp_path / "c.csv").write_text(text.replace(";", "|"))
    words = ["--model", model, "--delimiter", "|"]
    assert len(ask("predict", tmp_path / "c.csv", *words).stdout.split()) == 43


@pytest.fixture(scope="module")
def sparse(folder):
    """A model of svmlight rows with three features."""
    rows = "1 qid:4 1:0.5 3:2\n2 qid:4 2:1\n3 qid:5 1:3 2:1 3:1\n" * 30
    (folder / "train.svm").write_text(rows)
    answer = ask("train", folder / "train.svm", "--model", folder / "sparse")
    assert answer.exit_code == 0, answer.output
    return folder / "sparse"


def test_svmlight_rows_keep_their_label_and_query(sparse, tmp_path):
    (tmp_path / "a.svm").write_text("3 qid:9 1:3 2:1 3:1\n1 qid:9 1:0.5\n")
    answer = ask("predict", tmp_path / "a.svm", "--model", sparse, "--keep", "qid,label")
    assert answer.exit_code == 0, answer.output
    heads, first, second = (line.split(",") for line in answer.stdout.split())
    assert heads == ["qid", "label", *ADDED]
    assert (first[:2], second[:2]) == (["9", "3"], ["9", "1"])
    (tmp_path / "b.svm").write_text("3 1:3\n")
    answer = ask("predict", tmp_path / "b.svm", "--model", sparse, "--keep", "qid")
    assert answer.exit_code == 1
    assert "b.svm, line 1: no 'qid'" in answer.output


def test_an_unknown_feature_is_named_with_its_line(sparse, model, new, tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("3 1:3\n1 1:0.5 7:1\n")
    answer = ask("predict", path, "--model", sparse, "--on-bad-row", "raise")
    assert answer.exit_code == 1
    assert "a.svm, line 2: index 7, but there are 3 features" in answer.output
    crossed = ask("predict", path, "--model", model)
    assert (crossed.exit_code, "no column 'size'" in crossed.output) == (1, True)
    crossed = ask("predict", new, "--model", sparse)
    assert (crossed.exit_code, "svmlight rows are expected" in crossed.output) == (1, True)


BAD_FILES = {
    "renamed": ("Size,age\n1,2\n", "no column 'size', which the model", "was it renamed to 'Size'"),
    "missing": ("x,y\n1,2\n", "no column 'size' and 1 more", "the columns are x, y"),
    "text": ("size,age\n1,2\n1,old\n", "line 3: column 'age' holds 'old', not a number"),
    "nan": ("size,age\n1,2\n1,\n", "line 3: column 'age' is empty or NaN"),
    "short": ("size,age\n1,2\n1\n", "line 3: 1 field, but the header has 2"),
    "long": ("size,age\n1,2,3\n", "line 2: 3 fields, but the header has 2"),
    "damaged": (
        "size,age,town\n1,2,Köln\n".encode() + b"1,2,\xff\n",
        "line 3: byte 5 is not UTF-8",
    ),
    "latin": (b"size,age\n1,2\n1,\xe9\n", "line 3: column 'age' holds 'é', not a number"),
    "empty": ("", "the file is empty"),
    "header": ("size,age\n", "no row to predict; does it contain only a header?"),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_a_bad_file_is_told_with_its_place_and_writes_nothing(strict, tmp_path, kind):
    content, *messages = BAD_FILES[kind]
    path = tmp_path / "bad.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    words = ["--on-bad-row", "raise", "--out", tmp_path / "out.csv"]
    answer = ask("predict", path, "--model", strict, *words)
    assert answer.exit_code == 1
    for message in (f"error: {path}", *messages):
        assert message in answer.output
    assert [p.name for p in tmp_path.iterdir()] == ["bad.csv"]


@pytest.mark.parametrize("name", ["cut.csv.gz", "cut.parquet"])
def test_a_truncated_file_is_told_and_writes_nothing(model, tmp_path, name):
    path = write_table(NEW, tmp_path / name)
    path.write_bytes(path.read_bytes()[:-200])
    answer = ask("predict", path, "--model", model, "--out", tmp_path / "out.csv")
    assert answer.exit_code == 1
    assert "truncated" in answer.output
    assert [p.name for p in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--out", "none/out.csv"], "none: no such folder; create it first"),
        (["--out", "out.txt"], "out.txt: unknown file extension '.txt'; choose .csv or .parquet"),
        (["--out", "new.csv"], "new.csv is an input of this command; write to another file"),
        (["--out", "folder.csv"], "folder.csv is a folder"),
        (["--keep", "rank"], "cannot keep the column 'rank': predictions have"),
        (["--where", "--keep", "line"], "cannot keep the column 'line'"),
        (
            ["--keep", "ID"],
            "no column 'ID', which --keep asks for; the columns are id, size, age, town",
        ),
        (["--model", "none"], "none: no such model file; ordspan train writes one"),
        (["--model", "folder.csv"], "folder.csv is a folder; give the name of a model file"),
        (["--model", "new.csv"], "new.csv is not an ordspan model file"),
        (["--model", "newer"], "newer has model format 99, this ordspan reads up to 3; upgrade"),
        (["--model", "plain"], "plain holds an estimator (OrdinalPA) that was saved from Python"),
    ],
)
def test_a_mistake_is_told_in_one_line(model, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    write_table(NEW, tmp_path / "new.csv")
    (tmp_path / "folder.csv").mkdir()
    newer = modelfile.to_bytes(ordspan.load(model), format=99)
    (tmp_path / "newer").write_bytes(newer)
    save(OrdinalPA(random_state=0).fit([[0.0], [1.0]], [1, 2]), "plain")
    before = sorted(tmp_path.iterdir())
    answer = ask("predict", "new.csv", "--model", model, "--out", "out.csv", *words)
    assert answer.exit_code == 1
    assert message in answer.output
    assert "Traceback" not in answer.output
    assert sorted(tmp_path.iterdir()) == before


def test_every_row_is_answered_and_a_bad_one_has_a_reason(strict, tmp_path):
    path, out = tmp_path / "bad.csv", tmp_path / "out.csv"
    path.write_text("id,size,age\na,1,2\nb,big,2\nc,3,\nd,3\ne,5,6\n")
    words = ["--keep", "id", "--where", "--out", out]
    answer = ask("predict", path, "--model", strict, *words)
    assert answer.exit_code == 0
    assert "3 of 5 rows could not be predicted; the column reason says why" in answer.stderr
    assert f"{path}, line 3: column 'size' holds 'big'" in answer.stderr
    rows = read_rows(out)
    assert [row["line"] for row in rows] == ["2", "3", "4", "5", "6"]
    assert [row["id"] for row in rows][:3] == ["a", "b", "c"]
    good, bad = [rows[0], rows[4]], rows[1:4]
    assert all(row[name] for row in good for name in ADDED[:-1])
    assert [row["reason"] for row in good] == ["", ""]
    assert not any(row[name] for row in bad for name in ADDED[:-1])
    for row, reason in zip(bad, ("'size' holds 'big'", "'age' is empty", "2 fields"), strict=True):
        assert reason in row["reason"]
    told = json.loads(ask("predict", path, "--model", strict, *words, "--json").stdout)
    assert (told["rows"], told["empty"], len(told["empty_examples"])) == (5, 3, 3)
    path.write_text("id,size,age\na,x,2\n")
    answer = ask("predict", path, "--model", strict, *words)
    assert "1 of 1 rows could not be predicted" in answer.output
    assert [bool(row["reason"]) for row in read_rows(out)] == [True]


def test_a_missing_number_is_its_mean_unless_that_is_an_error(model, tmp_path):
    means = ratings().select(FEATURES).to_pandas().mean()
    (tmp_path / "gap.csv").write_text("size,age\n5100,\n")
    (tmp_path / "mean.csv").write_text(f"size,age\n5100,{float(means['age'])!r}\n")
    gap, mean = (
        pd.read_csv(io.BytesIO(ask("predict", tmp_path / name, "--model", model).stdout_bytes))
        for name in ("gap.csv", "mean.csv")
    )
    assert gap["score"][0] == pytest.approx(mean["score"][0], rel=1e-12)


def test_a_word_that_training_has_not_seen_is_told(folder, tmp_path):
    model = trained(folder, name="towns")
    path = write_table(NEW.set_column(3, "town", pa.array(["Bern"] * 200)), tmp_path / "a.csv")
    answer = ask("predict", path, "--model", model, "--out", tmp_path / "out.csv")
    assert answer.exit_code == 0
    assert "values not seen in training: town = 'Bern' (200 rows)" in answer.stderr
    path.write_text("size,age,town\n1,2,Ulm\n1,2,Bern\nx,2,Bonn\n1,2\n")  # two bad rows
    answer = ask("predict", path, "--model", model, "--out", tmp_path / "out.csv")
    assert "not seen in training: town = 'Bern' (1 row)" in answer.stderr


def test_a_part_without_rows_changes_nothing(model, new, tmp_path):
    (tmp_path / "none.csv").write_text("size,age\n")
    whole = ask("predict", new, "--model", model).stdout_bytes
    for files in ([tmp_path / "none.csv", new], [new, tmp_path / "none.csv"]):
        assert ask("predict", *files, "--model", model).stdout_bytes == whole


def test_two_things_on_standard_output_are_refused(model, new):
    assert ask("predict", new, "--model", model, "--json").exit_code == 2


@pytest.mark.skipif(os.name != "posix", reason="limits the size of files")
@pytest.mark.parametrize("ending", [".csv", ".parquet", ".jsonl"])
def test_no_room_on_the_disk_is_told_and_leaves_nothing(model, new, tmp_path, ending):
    import resource

    out = tmp_path / f"out{ending}"
    out.write_bytes(b"before")
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        answer = ask("predict", new, "--model", model, "--keep", "id", "--out", out)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    assert answer.exit_code == 1
    assert f"error: {out}: File too large; free some space, or write elsewhere" in answer.output
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [(out.name, b"before")]


@pytest.mark.skipif(os.name != "posix", reason="sends signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_no_file(warm, model, tmp_path, number):
    words = ("predict", "-", "--model", model, "--out", tmp_path / "out.csv")
    with warm.fed(*words) as (process, stdin):
        stdin.write(b"size,age\n1,2\n")
        stdin.flush()
        deadline = time.monotonic() + 60
        while not list(tmp_path.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(number)
        _, message = process.communicate()
    assert process.returncode == 130
    assert "stopped. No file was written." in message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="pipes end differently elsewhere")
@pytest.mark.parametrize("times", [1, 2000])
def test_a_reader_that_has_seen_enough_ends_it_quietly(warm, model, tmp_path, times):
    path = write_table(pa.concat_tables([NEW.slice(0, 20)] * times), tmp_path / "rows.parquet")
    read, write = os.pipe()
    with os.fdopen(read, "rb") as reader:
        process = warm.start("predict", path, "--model", model, stdout=write)
        os.close(write)
        if times > 1:
            assert reader.readline().strip() == ",".join(ADDED).encode()
    _, message = process.communicate()
    assert message == ""
    assert process.returncode == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device without room")
def test_no_room_behind_standard_output_is_told_in_one_line(warm, model, new):
    with open("/dev/full", "wb") as full:
        answer = warm.run("predict", new, "--model", model, stdout=full)
    assert answer.returncode == 1
    told = "error: standard output: No space left on device; free some space, or write elsewhere"
    assert answer.stderr.strip() == told
