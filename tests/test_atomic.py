"""Files appear whole or not at all, and nothing is left of those who were killed."""

import os
import signal
import subprocess
import sys

import pytest

from ordspan.atomic import PREFIX, check_can_write, opened_atomically, write_atomically

posix = pytest.mark.skipif(os.name != "posix", reason="locks, links and signals of POSIX")
WRITER = """
import sys
from pathlib import Path
from ordspan.atomic import opened_atomically
with opened_atomically(Path(sys.argv[1])) as file:
    file.write(b"half")
    print("begun", flush=True)
    sys.stdin.readline()
"""


def writer(path):
    """A process that has begun to write a file, and waits."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", WRITER, str(path)]
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
    assert process.stdout.readline() == "begun\n"
    return process


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@posix
def test_what_a_killed_process_leaves_is_removed_and_what_a_living_one_writes_is_not(tmp_path):
    dead, living = writer(tmp_path / "dead"), writer(tmp_path / "living")
    with dead, living:
        dead.send_signal(signal.SIGKILL)
        dead.wait()
        assert len(names(tmp_path)) == 2
        write_atomically(tmp_path / "other", b"")
        assert len(names(tmp_path)) == 2  # the file, and that of the living process
        living.communicate("\n", timeout=30)
    assert names(tmp_path) == ["living", "other"]
    assert (tmp_path / "living").read_bytes() == b"half"


@posix
def test_files_of_another_machine_and_of_others_are_kept(tmp_path):
    strangers = [".ordspan-another-machine-abc", ".ordspanrc", "ordspan-x"]
    for name in strangers:
        (tmp_path / name).touch()
    write_atomically(tmp_path / "file", b"")
    assert names(tmp_path) == sorted([*strangers, "file"])


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


def test_a_name_that_just_fits_can_be_written(tmp_path):
    path = tmp_path / ("x" * 255)
    check_can_write(path)
    write_atomically(path, b"whole")
    assert names(tmp_path) == [path.name]


def test_a_name_that_cannot_be_written_is_refused_beforehand(tmp_path):
    with pytest.raises(OSError, match=r"cannot be written \(File name too long\); choose another"):
        check_can_write(tmp_path / ("x" * 256))
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="cannot be written"):
        check_can_write(tmp_path / "file" / "model")
    assert names(tmp_path) == ["file"]


def test_errors_name_the_folder_not_the_temporary_file(tmp_path):
    missing = tmp_path / "missing"
    with pytest.raises(FileNotFoundError, match=f"no folder {missing} to write model to; create"):
        write_atomically(missing / "model", b"")
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError) as caught:
        write_atomically(tmp_path / "file" / "model", b"")
    assert caught.value.filename == str(tmp_path / "file")
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(error), opened_atomically(path) as file:  # noqa: PT012
        file.write(b"new")
        assert any(name.startswith(PREFIX) for name in names(tmp_path))
        raise error
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("file", b"old")]
