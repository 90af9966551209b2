"""Training from files: the same as in memory, and never a lost row."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from files_to_train import FORMATS, make_rows, write_rows
from warm_trainer import run_job

import ordspan
from ordspan import OrdinalPA
from ordspan.commands.stopping import Stop, Stopped, stoppable
from ordspan.commands.train import Every, TrainJob, train
from ordspan.commands.train_rows import portions
from ordspan.data import stream
from ordspan.files import arrow_file, text
from ordspan.files.batch import Batch, FileError
from ordspan.files.features import Scale

KILLS = int(os.environ.get("ORDSPAN_KILLS", "5"))  # in each case; many take minutes
POSIX = pytest.mark.skipif(os.name != "posix", reason="needs the signals of POSIX")
X, GRADES = make_rows(4000)


def job(path, **choices):
    label = {} if path.name.endswith(".txt") else {"label": "grade"}
    return TrainJob([str(path)], **label | choices)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(text, "BLOCK_BYTES", 10_000)
    monkeypatch.setattr(arrow_file, "MAX_ROWS", 300)


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("variant", ["PA", "PA-I", "PA-II"])
def test_training_from_a_file_is_partial_fit_on_its_rows(tmp_path, ending, variant, small_blocks):
    path = write_rows(tmp_path, ending, X, GRADES)
    summary = train(
        job(path, parameters={"variant": variant, "C": 0.5}, standardise=False), tmp_path / "m"
    )
    expected = OrdinalPA(variant, 0.5, classes=[1, 2, 3, 4]).partial_fit(X, GRADES)
    model = ordspan.load(tmp_path / "m").estimator
    np.testing.assert_array_equal(model.thresholds_, expected.thresholds_)
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    assert summary["rows"] == 4000
    assert summary["updates"] == expected.n_updates_


@pytest.mark.parametrize("balanced", [False, True])
def test_standardised_training_is_partial_fit_on_a_standardised_stream(tmp_path, balanced):
    path = write_rows(tmp_path, "csv", X, GRADES)
    parameters = {"balanced": balanced, "average": False}
    train(job(path, parameters=parameters), tmp_path / "m")
    model = OrdinalPA(**parameters, classes=[1, 2, 3, 4])
    for batch in stream(path, label="grade", standardise=True):
        model.partial_fit(batch.X, batch.y)
    trained = ordspan.load(tmp_path / "m")
    np.testing.assert_array_equal(trained.estimator.coef_, model.coef_)
    later = [b.X for b in stream(path, label="grade", features=["x0", "x1", "x2"])]
    table = {f"x{j}": np.vstack(later)[:, j] for j in range(3)}
    assert np.mean(np.abs(trained.predict(frame(table)) - GRADES)) < 0.4


def frame(columns):
    import pandas as pd

    return pd.DataFrame(columns)


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("buffer", [0, 700])
def test_a_stopped_run_goes_on_to_the_same_bytes(tmp_path, ending, buffer, small_blocks):
    """Stopped in each part: at the start, within a pass, between the passes, at the end."""
    path = write_rows(tmp_path, ending, X[:2000], GRADES[:2000])
    work = job(path, passes=2, shuffle_buffer=buffer, seed=3)
    train(work, tmp_path / "whole", every=Every(rows=250))
    for stop_at in (1, 900, 2000, 2001, 3999):
        stop, reported = Stop(), []

        def report(learned, mae, share, stop=stop, stop_at=stop_at, reported=reported):
            reported.append(learned)
            stop.requested = learned >= stop_at

        with pytest.raises(Stopped):
            train(work, tmp_path / "m", every=Every(rows=250), stop=stop, report=report)
        assert reported[-1] >= stop_at
        assert not (tmp_path / "m").exists()
        summary = train(work, tmp_path / "m", every=Every(rows=250), resume=True)
        assert summary["resumed"]
        assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes()
        assert not (tmp_path / "m.checkpoint").exists()
        (tmp_path / "m").unlink()


def test_skipped_rows_are_counted_once_however_often_a_run_is_stopped(tmp_path, small_blocks):
    path = write_rows(tmp_path, "csv", X, GRADES)
    text = path.read_text().splitlines(keepends=True)
    for line in range(100, 4000, 100):
        text[line] = "x,1,1,1\n" if line % 200 else "1,1,1,9\n"
    path.write_text("".join(text))
    work = job(path, on_bad_row="skip", classes=[1, 2, 3, 4])
    whole = train(work, tmp_path / "whole")
    assert whole["skipped"] == 39
    checkpoint = tmp_path / "m.checkpoint"
    for _ in range(20):
        stop = Stop()
        seen = []

        def report(learned, mae, share, seen=seen, stop=stop):
            seen.append(learned)
            stop.requested = len(seen) > 2

        try:
            summary = train(
                work,
                tmp_path / "m",
                every=Every(rows=130),
                resume=checkpoint.exists(),
                stop=stop,
                report=report,
            )
            break
        except Stopped:
            continue
    assert summary["skipped"] == 39
    assert summary["skipped_examples"] == whole["skipped_examples"]
    assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes()


TRAIN = """
import sys
from pathlib import Path
from warm_trainer import run_job

path, out, buffer = sys.argv[1:]
run_job(Path(path), Path(out), eval(buffer))
"""


@pytest.mark.slow
@POSIX
@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("buffer", [0, 700, None])
def test_kills_lose_nothing(warm, tmp_path, ending, buffer):
    """In each format: rows in order, shuffled, and sorted."""
    order = np.argsort(GRADES[:2000], kind="stable") if buffer is None else np.arange(2000)
    path = write_rows(tmp_path, ending, X[order], GRADES[order])
    out = tmp_path / "m"
    warm.run(code="pass")  # it is up from here on
    begun = time.perf_counter()
    answer = warm.run(path, tmp_path / "whole", buffer, code=TRAIN)
    took = time.perf_counter() - begun
    assert answer.returncode == 0, answer.stderr
    whole = (tmp_path / "whole").read_bytes()
    chance = random.Random(f"{ending} {buffer}")
    kills = 0
    while kills < KILLS:
        process = warm.start(path, out, buffer, code=TRAIN)
        if process.wait(chance.uniform(0, 0.8 * took)) is None:  # most are killed before their end
            process.send_signal(signal.SIGKILL)
        if process.wait() == 0:
            assert out.read_bytes() == whole
            out.unlink()
        else:
            assert process.returncode == -signal.SIGKILL, process.stderr
            kills += 1
            if (tmp_path / "m.checkpoint").exists():
                ordspan.load(tmp_path / "m.checkpoint")
    summary = run_job(path, out, buffer)
    assert out.read_bytes() == whole
    assert summary["shuffled"] == (buffer != 0)
    note = "the rows are sorted by labels: they are learned in random order"
    assert (note in summary["notes"]) == (buffer is None)


def wait_for(path, process):
    for _ in range(6000):
        if path.exists():
            return
        assert process.wait(0.01) is None, process.stderr
    raise AssertionError(f"{path} did not appear")


def used_by(process):
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_writes_a_checkpoint_and_exits_within_a_second(warm, tmp_path, number):
    """Within a second of processor time, so that a busy machine changes nothing."""
    write_rows(tmp_path, "csv", X, GRADES)
    words = ["rows.csv", "--label", "grade", "--model", "m", "--passes", "1000"]
    process = warm.start("train", *words, "--checkpoint-every", "1000", cwd=tmp_path)
    wait_for(tmp_path / "m.checkpoint", process)
    asked = used_by(process)
    process.send_signal(number)
    _, told = process.communicate()
    assert process.returncode == 130
    assert process.seconds - asked < 1.0
    assert "--resume" in told
    assert {p.name for p in tmp_path.iterdir()} == {"rows.csv", "m.checkpoint"}


@POSIX
def test_standard_input_is_learned_and_interrupted_while_waiting(warm, tmp_path):
    write_rows(tmp_path, "csv", X, GRADES)
    words = ["train", "-", "--label", "grade", "--grades", "1..4", "--no-standardise"]
    words += ["--model", "m"]
    rows = (tmp_path / "rows.csv").read_bytes()
    with warm.fed(*words, "--json", cwd=tmp_path) as (process, stdin):
        stdin.write(rows)
    told, errors = process.communicate()
    assert process.returncode == 0, errors
    assert json.loads(told)["rows"] == 4000
    from_file = job(tmp_path / "rows.csv", classes=[1, 2, 3, 4], standardise=False)
    train(from_file, tmp_path / "from-file")
    ours, theirs = (ordspan.load(tmp_path / name).estimator for name in ("m", "from-file"))
    np.testing.assert_array_equal(ours.coef_, theirs.coef_)

    words += ["--overwrite", "--checkpoint-every", "1000"]
    with warm.fed(*words, cwd=tmp_path) as (process, stdin):
        stdin.write(rows)
        stdin.flush()
        wait_for(tmp_path / "m.checkpoint", process)
        time.sleep(0.3)  # all rows are learned, and it waits for more
        process.send_signal(signal.SIGTERM)
        process.communicate()
    assert process.returncode == 130
    assert ordspan.load(tmp_path / "m.checkpoint").training["rows"] == 4000


def test_standard_input_is_standardised_by_the_rows_up_to_each_one(tmp_path, monkeypatch):
    path = write_rows(tmp_path, "csv", X, GRADES)
    with path.open("rb") as pipe:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=pipe))
        train(TrainJob(["-"], label="grade", classes=[1, 2, 3, 4]), tmp_path / "m")
    rows = Scale(3).learn(X.copy())
    expected = OrdinalPA(classes=[1, 2, 3, 4]).partial_fit(rows, GRADES)
    trained = ordspan.load(tmp_path / "m").estimator
    np.testing.assert_array_equal(trained.coef_, expected.coef_)


def test_standard_input_cannot_be_resumed(warm, tmp_path):
    with pytest.raises(ValueError, match="can be read only once: passes"):
        TrainJob(["-"], label="g", classes=[1, 2], passes=2)
    words = ["train", "-", "--label", "g", "--grades", "1,2", "--model", "m", "--resume"]
    with warm.fed(*words, cwd=tmp_path) as (process, stdin):
        stdin.write(b"a,g\n1,1\n")
    _, told = process.communicate()
    assert process.returncode == 1
    assert "standard input cannot be resumed" in told


def test_a_checkpoint_of_other_settings_or_files_is_refused(tmp_path):
    path = write_rows(tmp_path, "csv", X, GRADES)
    stop = Stop()

    def report(learned, mae, share):
        stop.requested = True

    with pytest.raises(Stopped):
        train(job(path), tmp_path / "m", stop=stop, report=report)
    with pytest.raises(ValueError, match=r"was made with C = 0\.1, now it is 0\.2; use"):
        train(job(path, parameters={"C": 0.2}), tmp_path / "m", resume=True)
    path.write_text(path.read_text() + "1,1,1,1\n")
    with pytest.raises(ValueError, match=r"rows\.csv has changed since"):
        train(job(path), tmp_path / "m", resume=True)
    train(job(path), tmp_path / "m", overwrite=True)
    (tmp_path / "m.checkpoint").write_bytes((tmp_path / "m").read_bytes())
    with pytest.raises(ValueError, match="is a model file, but not a checkpoint"):
        train(job(path), tmp_path / "m", resume=True)


def test_shuffled_windows_hold_each_row_once_and_depend_on_the_seed(tmp_path, small_blocks):
    path = write_rows(tmp_path, "csv", X, GRADES)
    models = {}
    for seed in (0, 1):
        work = job(path, shuffle_buffer=600, seed=seed, standardise=False)
        assert train(work, tmp_path / "m", overwrite=True)["rows"] == 4000
        models[seed] = ordspan.load(tmp_path / "m").estimator.coef_
    assert not np.array_equal(models[0], models[1])
    model = OrdinalPA(classes=[1, 2, 3, 4])
    for first in range(0, 4000, 600):
        rows = np.arange(first, min(first + 600, 4000))
        order = np.random.default_rng([0, 0, first]).permutation(rows.size)
        model.partial_fit(X[rows[order]], GRADES[rows[order]])
    np.testing.assert_array_equal(models[0], model.coef_)


def test_portions_cut_and_fill():
    def rows(begin, end):
        places = np.arange(begin, end)
        return Batch(places[:, None], pl.DataFrame(height=places.size), places, places, "a.csv")

    batches = [rows(0, 5), rows(5, 6), rows(6, 14)]
    sizes = [[len(b) for b in portion] for portion in portions(batches, 4, whole=True)]
    assert sizes == [[4], [1, 1, 2], [4], [2]]
    sizes = [[len(b) for b in portion] for portion in portions(batches, 4, whole=False)]
    assert sizes == [[4], [1], [1], [4], [4]]


@POSIX
def test_signals_are_as_before_after_the_work():
    before = signal.getsignal(signal.SIGTERM)
    with stoppable() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(Stopped):
            stop.check()
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize(
    ("choices", "told"),
    [
        ({"passes": 0}, "passes must be at least 1"),
        ({"label": None}, "no label: give label="),
        ({"label": "x9"}, "no column 'x9'"),
        ({"classes": [1, 2]}, "line .*grade .* is not among"),
        ({"parameters": {"C": -1.0}}, "C must be a finite number above 0"),
        ({"features": ["x0", "none"]}, "no column 'none'"),
    ],
)
def test_a_wrong_choice_is_told_and_nothing_is_written(tmp_path, choices, told):
    path = write_rows(tmp_path, "csv", X, GRADES)
    with pytest.raises(ValueError, match=told):
        train(job(path, **choices), tmp_path / "m")
    assert [p.name for p in tmp_path.iterdir()] == ["rows.csv"]


def test_a_folder_that_does_not_exist_is_told_before_the_work(tmp_path):
    path = write_rows(tmp_path, "csv", X, GRADES)
    with pytest.raises(FileError, match="no such folder"):
        train(job(path), tmp_path / "nowhere" / "m")
    with pytest.raises(FileError, match="is a folder"):
        train(job(path), tmp_path)


def test_blocks_of_bad_rows_alone_are_counted_once(tmp_path, small_blocks):
    path = write_rows(tmp_path, "csv", X, GRADES)
    text = path.read_text().splitlines(keepends=True)
    text[1000:3000] = ["x,1,1,1\n"] * 2000
    path.write_text("".join(text))
    work = job(path, on_bad_row="skip", classes=[1, 2, 3, 4], allow_skipped=0.5)
    whole = train(work, tmp_path / "whole", every=Every(rows=100))
    stop = Stop()

    def report(learned, mae, share):
        stop.requested = learned >= 1100

    with pytest.raises(Stopped):
        train(work, tmp_path / "m", every=Every(rows=100), stop=stop, report=report)
    assert train(work, tmp_path / "m", resume=True)["skipped"] == whole["skipped"] == 2000
    assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes()


def test_a_model_never_replaces_its_input(tmp_path):
    path = write_rows(tmp_path, "csv", X, GRADES)
    with pytest.raises(FileError, match="would overwrite the input"):
        train(job(path), path)
    assert path.read_text().startswith('"x0"')


def test_only_bad_rows_are_no_model(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b,grade\nnan,1,1\n2,nan,2\n")
    with pytest.raises(FileError, match=r"no usable row; 2 skipped, the first: .*line 2"):
        train(job(path, on_bad_row="skip", missing="error"), tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_many_bad_rows_are_no_model_unless_they_are_allowed(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,grade\n" + "1,1\n2,2\nx,2\n" * 30)
    with pytest.raises(FileError, match=r"30 of 90 rows \(33\.3%\) cannot be used.*skipped=0\.34"):
        train(job(path, on_bad_row="skip"), tmp_path / "m")
    assert not (tmp_path / "m").exists()
    allowed = job(path, on_bad_row="skip", allow_skipped=0.34)
    assert train(allowed, tmp_path / "m")["skipped"] == 30


@pytest.fixture
def small_disk(tmp_path):
    """A folder that holds 64 kB and no more."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k,nr_inodes=100", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("needs the right to mount a small disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_told_and_leaves_the_old_model_as_it_was(warm, tmp_path, small_disk):
    path = write_rows(tmp_path, "csv", X, GRADES)
    train(job(path), small_disk / "m")
    before = (small_disk / "m").read_bytes()
    words = ["--label", "grade", "--text", "x0", "--model", small_disk / "m", "--overwrite"]
    answer = warm.run("train", path, *words)
    assert answer.returncode == 1
    assert "No space left on device" in answer.stderr
    assert {p.name for p in small_disk.iterdir()} == {"m"}
    assert (small_disk / "m").read_bytes() == before
