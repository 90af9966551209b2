"""Training from files: the same as in memory, and never a lost row."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from files_to_train import FORMATS, make_rows, write_rows
from warm_trainer import run_job

import ordspan
from fuzz.dask_kills import quick_workers
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
    monkeypatch.setattr(text, "BLOCK_BYTES", 20_000)
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
@pytest.mark.parametrize("stop_at", [1, 900, 4000, 4001, 7999])
def test_a_stopped_run_goes_on_to_the_same_bytes(tmp_path, ending, buffer, stop_at, small_blocks):
    path = write_rows(tmp_path, ending, X, GRADES)
    work = job(path, passes=2, shuffle_buffer=buffer, seed=3)
    train(work, tmp_path / "whole", every=Every(rows=250))
    stop = Stop()

    def report(learned, mae, share):
        stop.requested = learned >= stop_at

    with pytest.raises(Stopped):
        train(work, tmp_path / "m", every=Every(rows=250), stop=stop, report=report)
    assert not (tmp_path / "m").exists()
    summary = train(work, tmp_path / "m", every=Every(rows=250), resume=True)
    assert summary["resumed"]
    assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes()
    assert not (tmp_path / "m.checkpoint").exists()


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


@pytest.fixture
def context():
    with quick_workers() as context:
        yield context


@POSIX
@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("buffer", [0, 700, None])
def test_kills_lose_nothing(tmp_path, context, ending, buffer):
    """In each format: rows in order, shuffled, and sorted."""
    order = np.argsort(GRADES, kind="stable") if buffer is None else np.arange(len(X))
    path = write_rows(tmp_path, ending, X[order], GRADES[order])
    out = tmp_path / "m"

    def begin(out):
        process = context.Process(target=run_job, args=(path, out, buffer))
        process.start()
        return process

    def finish(out):
        """A whole run, and its seconds; a fork that caught a library's lock is begun anew."""
        for _ in range(5):
            begun, process = time.perf_counter(), begin(out)
            process.join(60)
            if process.exitcode == 0:
                return time.perf_counter() - begun
            process.kill()
            process.join()
        raise AssertionError(f"no run came to its end, the last with code {process.exitcode}")

    finish(tmp_path / "first")  # the server is up from here on
    took = finish(tmp_path / "whole")
    whole = (tmp_path / "whole").read_bytes()
    chance = random.Random(f"{ending} {buffer}")
    kills = finished = 0
    while kills < KILLS or not finished:
        process = begin(out)
        process.join(chance.uniform(0, 1.2 * took))
        if process.exitcode is None:
            with suppress(ProcessLookupError):  # it came to its end just now
                os.kill(process.pid, signal.SIGKILL)
                kills += 1
        process.join()
        if process.exitcode == 0:
            assert out.read_bytes() == whole
            out.unlink()
            finished += 1
        elif (tmp_path / "m.checkpoint").exists():
            ordspan.load(tmp_path / "m.checkpoint")
        assert process.exitcode in (0, -signal.SIGKILL)
    summary = run_job(path, out, buffer)
    assert out.read_bytes() == whole
    assert summary["shuffled"] == (buffer != 0)
    note = "the rows are sorted by labels: they are learned in random order"
    assert (note in summary["notes"]) == (buffer is None)


def start(folder, *words, **how):
    command = [sys.executable, "-m", "ordspan", "train", *map(str, words)]
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how
    )


def wait_for(path, process):
    for _ in range(1200):
        if path.exists():
            return
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    raise AssertionError(f"{path} did not appear")


def used_by_children():
    import resource

    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def used_by(process):
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_writes_a_checkpoint_and_exits_within_a_second(tmp_path, number):
    """Within a second of processor time, so that a busy machine changes nothing."""
    write_rows(tmp_path, "csv", X, GRADES)
    words = ["rows.csv", "--label", "grade", "--model", "m", "--passes", "1000"]
    before = used_by_children()
    process = start(tmp_path, *words, "--checkpoint-every", "1000")
    wait_for(tmp_path / "m.checkpoint", process)
    asked = used_by(process)
    process.send_signal(number)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert used_by_children() - before - asked < 1.0
    assert b"--resume" in told
    assert {p.name for p in tmp_path.iterdir()} == {"rows.csv", "m.checkpoint"}


@POSIX
def test_standard_input_is_learned_and_interrupted_while_waiting(tmp_path):
    write_rows(tmp_path, "csv", X, GRADES)
    words = ["-", "--label", "grade", "--grades", "1..4", "--no-standardise", "--model", "m"]
    rows = (tmp_path / "rows.csv").read_bytes()
    process = start(tmp_path, *words, "--json", stdin=subprocess.PIPE)
    told, errors = process.communicate(rows, timeout=120)
    assert process.returncode == 0, errors
    assert json.loads(told)["rows"] == 4000
    from_file = job(tmp_path / "rows.csv", classes=[1, 2, 3, 4], standardise=False)
    train(from_file, tmp_path / "from-file")
    ours, theirs = (ordspan.load(tmp_path / name).estimator for name in ("m", "from-file"))
    np.testing.assert_array_equal(ours.coef_, theirs.coef_)

    words += ["--overwrite", "--checkpoint-every", "1000"]
    process = start(tmp_path, *words, stdin=subprocess.PIPE)
    process.stdin.write(rows)
    process.stdin.flush()
    wait_for(tmp_path / "m.checkpoint", process)
    time.sleep(0.3)  # all rows are learned, and it waits for more
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
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


def test_standard_input_cannot_be_resumed(tmp_path):
    with pytest.raises(ValueError, match="can be read only once: passes"):
        TrainJob(["-"], label="g", classes=[1, 2], passes=2)
    process = start(
        tmp_path, "-", "--label", "g", "--grades", "1,2", "--model", "m", "--resume",
        stdin=subprocess.PIPE,
    )  # fmt: skip
    _, told = process.communicate(b"a,g\n1,1\n", timeout=60)
    assert process.returncode == 1
    assert b"standard input cannot be resumed" in told


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


def test_a_full_disk_is_told_and_leaves_the_old_model_as_it_was(tmp_path, small_disk):
    path = write_rows(tmp_path, "csv", X, GRADES)
    train(job(path), small_disk / "m")
    before = (small_disk / "m").read_bytes()
    process = start(
        tmp_path,
        path,
        "--label",
        "grade",
        "--text",
        "x0",
        "--model",
        small_disk / "m",
        "--overwrite",
    )
    _, told = process.communicate(timeout=120)
    assert process.returncode == 1
    assert b"No space left on device" in told
    assert {p.name for p in small_disk.iterdir()} == {"m"}
    assert (small_disk / "m").read_bytes() == before
