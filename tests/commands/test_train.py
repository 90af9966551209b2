"""`ordspan train`: the same model as in memory, however often it is stopped or killed."""

import os
import re
import signal
import time
from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from files_to_train import FORMATS, make_rows, write_rows
from scipy.sparse import csr_array
from sklearn.base import clone

import processes
from commands.tables import check_resumes, machine_of, said, stopped, summary
from fuzz.train_kills import train_and_kill
from ordspan import KernelOrdinalPA, OrdinalPA, OrdinalSVM, load

POSIX = pytest.mark.skipif(os.name != "posix", reason="needs the signals of POSIX")
X, GRADES = make_rows(4000)
NAMES, CLASSES = ["x0", "x1", "x2"], [1, 2, 3, 4]
TABLE = pd.DataFrame(X, columns=NAMES).assign(grade=GRADES)
BY_GRADE = np.argsort(GRADES, kind="stable")
KERNEL = ["--learner", "kernel", "--budget", 60]
ORDERS = {"in order": ["--no-shuffle"], "shuffled": ["--shuffle"], "sorted": [], "kernel": KERNEL}
ALL_ROWS = ["--learner", "kernel", "--kernel", "linear", "--budget", 10_000, "--C", 1e-9]
"""A model that keeps every row it learns, as it is still wrong after all of them."""


def words_for(path, model="m", *more):
    """What to ask for to train from a file; the model is written beside it."""
    label = [] if path.name.endswith(".txt") else ["--label", "grade"]
    return ["train", path, *label, "--model", path.with_name(model), *more]


@pytest.fixture
def path(tmp_path):
    return write_rows(tmp_path, "csv", X, GRADES)


def test_standard_input_is_standardised_by_the_rows_up_to_each_one(tmp_path):
    """Up to the thousandth, that is; after it the spread may be some rows old."""
    rows = X[:1000]
    path = write_rows(tmp_path, "csv", rows, GRADES[:1000])
    words = words_for(path, "m", "--grades", "1..4", "--format", "csv")
    said("train", "-", *words[2:], input=path.read_bytes())
    mean, spread = (
        np.array([f(rows[: k + 1], axis=0) for k in range(1000)]) for f in (np.mean, np.std)
    )
    seen = np.divide(rows - mean, spread, out=np.zeros_like(rows), where=spread > 0)
    expected = OrdinalPA(classes=CLASSES).partial_fit(seen, GRADES[:1000])
    np.testing.assert_allclose(load(tmp_path / "m").estimator.coef_, expected.coef_, rtol=1e-6)


def test_a_kernel_is_that_of_the_library(path):
    words = ["--gamma", 0.3, "--budget", 60, "--C", 0.5, "--no-standardise", "--learner", "kernel"]
    said(*words_for(path), *words)
    trained = load(path.with_name("m")).estimator
    expected = clone(trained).partial_fit(X, GRADES)
    assert isinstance(expected, KernelOrdinalPA)
    assert (expected.gamma, expected.budget, expected.C) == (0.3, 60, 0.5)
    np.testing.assert_array_equal(trained.latent(X), expected.latent(X))


def test_an_svm_is_fitted_to_all_rows(tmp_path):
    rows = ((X - X.mean(axis=0)) / X.std(axis=0)).round(3)
    path = write_rows(tmp_path, "csv", rows, GRADES)
    words = ["--learner", "svm", "--C", 0.5, "--no-standardise"]
    found = summary(*words_for(path), *words)
    expected = OrdinalSVM(C=0.5, random_state=0).fit(rows, GRADES)
    np.testing.assert_array_equal(load(tmp_path / "m").estimator.coef_, expected.coef_)
    error = np.abs(expected.predict(rows) - GRADES).mean()
    assert found["fitted_mae"] == pytest.approx(error, rel=1e-12)
    with machine_of(8192):
        refused = said(*words_for(path, "n"), "--learner", "svm", code=1)
    assert "the svm needs all rows in memory, which would take about 0.0 GB" in refused


@pytest.mark.parametrize("ending", FORMATS)
def test_a_run_on_a_file_of_several_blocks_goes_on_to_the_same_bytes(tmp_path, ending):
    """Stopped after the second block of text, or within a group of rows."""
    path = write_rows(tmp_path, ending, *make_rows(10_000), note=1000)
    words = [*words_for(path)[:-2], "--no-shuffle", "--checkpoint-every", 3000]
    words += ["--drop", "note"] if ending != "txt" else []
    check_resumes(tmp_path, *words, checkpoints=2)


@pytest.mark.parametrize("ending", FORMATS)
def test_a_sorted_file_is_learned_in_random_order_each_row_once(tmp_path, ending):
    path = write_rows(tmp_path, ending, X[BY_GRADE], GRADES[BY_GRADE])
    found = summary(*words_for(path), *ALL_ROWS, "--no-standardise")
    assert found["shuffled"]
    learned = load(tmp_path / "m").estimator.support_vectors_
    assert not np.array_equal(learned, X[BY_GRADE])
    np.testing.assert_array_equal(np.sort(learned, axis=0), np.sort(X, axis=0))


def test_the_order_is_kept_where_told_and_the_seed_decides_a_random_one(path):
    write_rows(path.parent, "csv", X[BY_GRADE], GRADES[BY_GRADE])
    notes = summary(*words_for(path, "kept"), "--no-shuffle", "--no-standardise")["notes"]
    assert any("alike in their labels: they are learned in that order, as" in n for n in notes)
    expected = OrdinalPA(classes=CLASSES).partial_fit(X[BY_GRADE], GRADES[BY_GRADE])
    np.testing.assert_array_equal(load(path.with_name("kept")).estimator.coef_, expected.coef_)
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        said(*words_for(path, name), "--shuffle", "--seed", seed)
    same, again, other = (path.with_name(name).read_bytes() for name in "abc")
    assert same == again != other


def test_rows_that_are_held_out_are_evaluated_and_not_learned(path):
    words = ["--hold-out", 0.25, "--seed", 5]
    held_out = summary(*words_for(path), *ALL_ROWS, *words, "--no-standardise")["held_out"]
    model = load(path.with_name("m"))
    learned = set(map(tuple, model.estimator.support_vectors_.tolist()))
    rest = TABLE[[row not in learned for row in map(tuple, X.tolist())]]
    assert len(rest) == held_out["rows"] == pytest.approx(1000, abs=100)
    assert held_out["mae"] == pytest.approx(-model.score(rest[NAMES], rest["grade"]), rel=1e-12)
    for told in held_out["probabilities"]["ranges"]:  # of exact labels: they hold it or not
        low, high = model.predict_interval(rest[NAMES], told["coverage"]).T
        grade = rest["grade"].to_numpy()
        assert told["expected"] == pytest.approx(np.mean((low <= grade) & (grade <= high)))
    others = (["--hold-out", 0.25, "--seed", 6], ["--hold-out", 0.5, "--seed", 5])
    for number, other in enumerate(others):
        assert summary(*words_for(path, f"{number}"), *other)["held_out"] != held_out


@pytest.mark.parametrize(
    ("order", "ending"),
    [*product([*ORDERS][:3], FORMATS), ("kernel", "csv")],
)
def test_a_stopped_run_goes_on_to_the_same_bytes(tmp_path, ending, order):
    """Stopped at the start, within a pass and between two, and again where it went on."""
    rows = BY_GRADE[::2] if order == "sorted" else np.arange(2000)
    path = write_rows(tmp_path, ending, X[rows], GRADES[rows])
    words = [*ORDERS[order], "--passes", 2, "--checkpoint-every", 250, "--hold-out", 0.1]
    said(*words_for(path, "whole"), *words)
    for checkpoints in (1, 2, 4):
        told = stopped(*words_for(path), *words, checkpoints=checkpoints)
        assert "rows; continue with resume=True (--resume)" in told
        assert not (tmp_path / "m").exists()
        stopped(*words_for(path), *words, "--resume")
        assert summary(*words_for(path), *words, "--resume")["resumed"]
        assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes()
        assert {p.name for p in tmp_path.iterdir()} & {"m.checkpoint", "m.rows"} == set()
        (tmp_path / "m").unlink()


def test_skipped_rows_are_counted_once_however_often_a_run_is_stopped(path):
    lines = path.read_text().splitlines(keepends=True)
    lines[100:4000:100] = ["x,1,1,1\n", "1,1,1,9\n", "1,1,1,1,1\n"] * 13
    lines[1000:3000] = ["1,1,1,9\n"] * 2000  # whole blocks of them
    path.write_text("".join(lines))
    words = ["--on-bad-row", "skip", "--allow-skipped", 0.6, "--grades", "1..4"]
    words += ["--checkpoint-every", 200]
    whole = summary(*words_for(path, "whole"), *words)
    assert whole["skipped"] == 2019
    stopped(*words_for(path), *words)
    for _ in range(3):
        stopped(*words_for(path), *words, "--resume")
    found = summary(*words_for(path), *words, "--resume")
    for name in ("skipped", "skipped_examples", "rows"):
        assert found[name] == whole[name]
    assert path.with_name("m").read_bytes() == path.with_name("whole").read_bytes()


@pytest.mark.slow
@POSIX
@pytest.mark.parametrize(
    ("ending", "order"), [*zip(FORMATS, ["in order", "shuffled", "sorted"] * 2, strict=False)]
)
def test_kills_lose_nothing(tmp_path, ending, order):
    rows = BY_GRADE if order == "sorted" else np.arange(4000)
    path = write_rows(tmp_path, ending, X[rows], GRADES[rows])
    words = ["train", path.name, *words_for(path)[2:-2], *ORDERS[order]]
    words += ["--passes", 40, "--checkpoint-every", 300]
    train_and_kill(np.random.default_rng(0), tmp_path, words, [])


@pytest.mark.parametrize("again", [[], ["--resume"]])
def test_rows_that_a_kill_has_left_are_removed_or_written_anew(path, again):
    """Rows may be incomplete after a kill, and those of another run are of no use."""
    words, left = ["--passes", 3, "--checkpoint-every", 1000], path.with_name("m.rows")
    said(*words_for(path, "whole"), *words)
    if again:
        stopped(*words_for(path), *words)
        assert left.is_dir()
        for part in left.iterdir():
            os.truncate(part, part.stat().st_size // 2)
    else:
        left.mkdir()
        (left / "rows").write_bytes(bytes(1000))
    said(*words_for(path), *words, *again)
    assert path.with_name("m").read_bytes() == path.with_name("whole").read_bytes()
    assert not left.exists()


def test_a_lack_of_space_for_rows_read_again_is_told_before(tmp_path, monkeypatch):
    path = write_rows(tmp_path, "csv", *make_rows(10_000), note=1000)
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=10_000))
    refused = said(*words_for(path), "--drop", "note", "--passes", 2, code=1)
    assert "rows that are read more than once" in refused
    assert "write the model to another disk, or make one pass over unsorted rows" in refused
    assert "Note: rows are kept on disk" not in refused  # they would be few
    assert [file.name for file in tmp_path.iterdir()] == ["rows.csv"]
    said(*words_for(path), "--drop", "note")


def test_much_space_for_rows_read_again_is_announced_before_it_is_used(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=10_000))
    path = tmp_path / "rows.csv"  # 250 features of 8 bytes for each row of a few bytes
    path.write_text("word,grade\n" + "".join(f"w{i % 250},{i % 4}\n" for i in range(600_000)))
    announced = said(*words_for(path), "--passes", 2, code=1).partition("rows that are read more")[
        0
    ]
    note = r"Note: rows are kept on disk while training, about 1\.[12] GB beside the model\."
    assert re.search(note, announced)


@POSIX
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_writes_a_checkpoint_and_exits_soon(path, number):
    words = ["--passes", 100_000, "--checkpoint-every", 1000]
    with processes.start(*words_for(path), *words) as process:
        while not path.with_name("m.checkpoint").exists():
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.01)
        asked = time.monotonic()
        process.send_signal(number)
        _, printed = process.communicate(timeout=60)
    assert process.returncode == 130
    assert time.monotonic() - asked < 5  # a second on a quiet machine
    assert "--resume" in printed
    left = {"rows.csv", "m.checkpoint", "m.rows"}
    assert {file.name for file in path.parent.iterdir()} == left


def test_nothing_is_replaced_or_resumed_by_accident(path):
    words, model, left = words_for(path), path.with_name("m"), path.with_name("m.checkpoint")
    said(*words)
    before = model.read_bytes()
    assert f"{model} already exists: " in said(*words, "--passes", 2, code=1)
    refused = said(*words, "--passes", 2, "--resume", code=1)
    assert f"{model} is finished; leave out resume=True (--resume) to train anew, or" in refused
    assert model.read_bytes() == before
    said(*words, "--passes", 2, "--overwrite")
    assert model.read_bytes() != before
    model.unlink()
    stopped(*words, "--passes", 3, "--checkpoint-every", 1000)
    assert f"{left} is left from an interrupted training" in said(*words, code=1)
    refused = said(*words, "--passes", 3, "--C", 0.2, "--resume", code=1)
    assert "was made with C = 0.1, now it is 0.2; use" in refused
    said(*words, "--overwrite")
    left.write_bytes(model.read_bytes())
    assert "is a model file, not a checkpoint" in said(*words, "--resume", code=1)


@pytest.mark.parametrize("ending", FORMATS)
def test_going_on_from_a_model_is_partial_fit_of_it(tmp_path, ending):
    for name, rows in (("first", slice(2500)), ("more", slice(2500, None))):
        (tmp_path / name).mkdir()
        write_rows(tmp_path / name, ending, X[rows], GRADES[rows])
    model, later = tmp_path / "first" / "m", tmp_path / "later"
    said(*words_for(tmp_path / "first" / f"rows.{ending}"), "--C", 0.5)
    before = model.read_bytes()
    path = tmp_path / "more" / f"rows.{ending}"
    assert summary("train", path, "--from", model, "--model", later)["rows"] == 1500
    assert model.read_bytes() == before
    rows = (csr_array(X[2500:]), GRADES[2500:]) if ending == "txt" else (TABLE[2500:],)
    expected, found = load(model).partial_fit(*rows), load(later)
    np.testing.assert_array_equal(found.estimator.coef_, expected.estimator.coef_)
    assert found.parameters["C"] == 0.5
    assert found.training["rows"] == expected.training["rows"] == 4000
    said("train", path, "--from", later, "--model", tmp_path / "again")


def test_grades_with_commas_are_quoted_or_stand_in_a_file(tmp_path):
    grades = ["no, never", "perhaps", 'yes, "always"']
    rows = [(i, grades[i * 3 // 60]) for i in range(60)] * 5
    pd.DataFrame(rows, columns=["size", "grade"]).to_csv(tmp_path / "a.csv", index=False)
    (tmp_path / "grades.txt").write_text("\ufeff" + "\r\n".join([*grades, ""]), encoding="utf-8")
    words = ["train", tmp_path / "a.csv", "--label", "grade", "--model"]
    quoted = '"no, never",perhaps,"yes, ""always"""'
    for name, text in (("quoted", quoted), ("file", f"@{tmp_path / 'grades.txt'}")):
        assert summary(*words, tmp_path / name, "--grades", text)["classes"] == grades
    model = load(tmp_path / "file")
    assert model.predict(pd.DataFrame({"size": [1, 58]})).tolist() == [grades[0], grades[2]]


def test_going_on_does_not_learn_from_columns_that_the_model_does_not_know(path):
    said(*words_for(path, "first"))
    start = ["train", path, "--from", path.with_name("first"), "--model"]
    said(*start, path.with_name("m"))
    TABLE.assign(x3=1.5).to_csv(path, index=False)
    assert "first does not know 'x3', which it does not learn" in said(*start, path.with_name("n"))
    models = (load(path.with_name(name)).estimator for name in "mn")
    np.testing.assert_array_equal(*(model.coef_ for model in models))
