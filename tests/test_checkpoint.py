"""Checkpoints: nothing goes on from other files or settings, and nobody shares a model's path."""

import os
import signal

import pytest
from files_to_train import make_rows, write_rows

import ordspan
from ordspan.checkpoint import sole_writer
from ordspan.commands.stopping import Stop, Stopped
from ordspan.commands.train import Every, TrainJob, train
from ordspan.files import opening
from ordspan.files.batch import FileError
from ordspan.files.opening import identity

X, GRADES = make_rows(2000)


def stopped(job, out):
    """Train until a checkpoint is there."""
    stop = Stop()

    def report(learned, mae, share):
        stop.requested = True

    with pytest.raises(Stopped):
        train(job, out, every=Every(rows=500), stop=stop, report=report)


def flip(path, place):
    """Another digit, the same size, the same time of modification."""
    told = path.stat()
    content = bytearray(path.read_bytes())
    digits = [i for i in range(place, len(content)) if chr(content[i]).isdigit()]
    content[digits[0]] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(told.st_atime_ns, told.st_mtime_ns))


@pytest.mark.parametrize("part", [0.0, 0.3, 0.7, 0.999])
def test_a_file_changed_in_place_is_noticed(tmp_path, monkeypatch, part):
    monkeypatch.setattr(opening, "SAMPLE_BYTES", 4000)  # the samples cover this small file
    path = write_rows(tmp_path, "csv", X, GRADES)
    job = TrainJob([str(path)], label="grade")
    stopped(job, tmp_path / "m")
    flip(path, int(part * (path.stat().st_size - 40)) + 30)
    with pytest.raises(ValueError, match=r"rows\.csv has changed since .*\(different content\)"):
        train(job, tmp_path / "m", resume=True)


def test_a_touched_file_is_noticed(tmp_path):
    path = write_rows(tmp_path, "csv", X, GRADES)
    job = TrainJob([str(path)], label="grade")
    stopped(job, tmp_path / "m")
    os.utime(path, ns=(1, 1))
    with pytest.raises(ValueError, match=r"has changed since .*\(different modification time\)"):
        train(job, tmp_path / "m", resume=True)


def test_samples_reach_the_ends_and_are_spread_between(tmp_path):
    path = tmp_path / "a"
    size = 1_000_000
    path.write_bytes(bytes(size))
    before = identity(str(path))
    step = (size - opening.SAMPLE_BYTES) // opening.N_SAMPLES
    for place in (0, size - 1, 5 * step + 10, 31 * step + 4000):
        content = bytearray(size)
        content[place] = 1
        path.write_bytes(content)
        assert identity(str(path)).digest != before.digest


def test_other_files_are_refused(tmp_path):
    path = write_rows(tmp_path, "csv", X, GRADES)
    other = tmp_path / "other.csv"
    other.write_bytes(path.read_bytes())
    job = TrainJob([str(tmp_path / "rows.csv"), str(other)], label="grade")
    stopped(job, tmp_path / "m")
    fewer = TrainJob([str(path)], label="grade")
    with pytest.raises(ValueError, match="was made with files ="):
        train(fewer, tmp_path / "m", resume=True)


def test_a_folder_with_one_more_file_is_refused(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    first = write_rows(folder, "csv", X, GRADES)
    job = TrainJob([str(folder)], label="grade")
    stopped(job, tmp_path / "m")
    (folder / "zz.csv").write_bytes(first.read_bytes())
    with pytest.raises(ValueError, match="was made from 1 files, now there are 2"):
        train(job, tmp_path / "m", resume=True)


HOLD = """
import sys, time
from pathlib import Path
from ordspan.checkpoint import sole_writer

with sole_writer(Path(sys.argv[1])):
    print("ready", flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(os.name != "posix", reason="kills a process")
def test_a_second_training_waits_for_nobody_and_a_killed_one_lets_go(warm, tmp_path):
    path = write_rows(tmp_path, "csv", X, GRADES)
    job, out = TrainJob([str(path)], label="grade"), tmp_path / "m"
    read, write = os.pipe()
    process = warm.start(out, code=HOLD, stdout=write)
    os.close(write)
    with open(read) as ready:
        assert ready.readline() == "ready\n"
    with pytest.raises(FileError, match="is being trained by another process; wait for it"):
        train(job, out)
    assert not out.exists()
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert (tmp_path / ".m.lock").exists()  # left behind, and taken over
    train(job, out)
    assert ordspan.load(out).training["rows"] == 2000
    assert not (tmp_path / ".m.lock").exists()


def test_the_lock_is_gone_whatever_happens(tmp_path):
    def fail():
        with sole_writer(tmp_path / "m"):
            assert (tmp_path / ".m.lock").exists()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert not (tmp_path / ".m.lock").exists()


@pytest.mark.skipif(os.name != "posix", reason="links of POSIX")
def test_two_links_to_one_model_have_one_writer(tmp_path):
    links = [tmp_path / "a", tmp_path / "b"]
    for link in links:
        link.symlink_to(tmp_path / "model")
    busy = pytest.raises(FileError, match="trained by another process")
    with sole_writer(links[0]), busy, sole_writer(links[1]):
        pass
    assert sorted(tmp_path.iterdir()) == links
