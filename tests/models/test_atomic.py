"""Files appear whole or not at all, whoever writes them at the same time or is killed."""

import os
import subprocess
import sys

import pytest

from ordspan.models.atomic import check_can_write, opened_atomically, write_atomically

posix = pytest.mark.skipif(os.name != "posix", reason="links, modes and kills of POSIX")
WRITER = """
import sys
from pathlib import Path
from ordspan.models.atomic import opened_atomically
with opened_atomically(Path(sys.argv[1])) as file:
    file.write(b"half")
    print("begun", flush=True)
    sys.stdin.readline()
"""


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@posix
def test_a_killed_process_leaves_the_old_file_and_a_partial_one(tmp_path):
    path, pipe = tmp_path / "file", subprocess.PIPE
    path.write_bytes(b"old")
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout.readline() == "begun\n"
        process.kill()
    assert path.read_bytes() == b"old"
    (left,) = tmp_path.glob("file.*.partial")
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["file", left.name]


def test_of_two_writers_at_once_the_last_one_wins(tmp_path):
    path = tmp_path / "file"
    with opened_atomically(path) as last, opened_atomically(path) as first:
        for _ in range(3):
            last.write(b"l" * 100_000)
            first.write(b"f" * 70_000)
    assert path.read_bytes() == b"l" * 300_000
    assert names(tmp_path) == ["file"]


@posix
@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_a_link_and_its_target_is_replaced(tmp_path, there):
    (tmp_path / "models").mkdir()
    target, link = tmp_path / "models" / "v1", tmp_path / "latest"
    if there:
        target.write_bytes(b"old")
    link.symlink_to(target)
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert names(target.parent) == ["v1"]


@posix
def test_a_name_that_just_fits_is_written_with_the_usual_permissions(tmp_path):
    path, usual = tmp_path / ("x" * 255), tmp_path / "usual"
    check_can_write(path)
    write_atomically(path, b"whole")
    usual.touch()
    assert path.stat().st_mode == usual.stat().st_mode
    assert names(tmp_path) == ["usual", path.name]


def test_what_cannot_be_written_is_refused_beforehand_in_words_of_the_user(tmp_path):
    missing, file = tmp_path / "missing", tmp_path / "file"
    file.touch()
    with pytest.raises(OSError, match=r"cannot be written \(File name too long\); choose another"):
        check_can_write(tmp_path / ("x" * 256))
    with pytest.raises(NotADirectoryError, match="cannot be written"):
        check_can_write(file / "model")
    with pytest.raises(FileNotFoundError, match=f"{missing}/model: cannot be written"):
        write_atomically(missing / "model", b"")
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, OSError])
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, error):
    def fail(*_):
        raise error

    path = tmp_path / "file"
    path.write_bytes(b"old")
    if error is OSError:  # a full disk
        monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(error), opened_atomically(path) as file:  # noqa: PT012
        file.write(b"new")
        assert len(names(tmp_path)) == 2
        if error is not OSError:
            fail()
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("file", b"old")]
