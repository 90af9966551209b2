"""Files appear whole or not at all, whoever writes them at the same time or is killed."""

import os

import pytest

from ordspan.models.atomic import check_can_write, opened_atomically, write_atomically
from processes import start

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


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@posix
def test_a_killed_process_leaves_the_old_file_and_a_partial_one(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with start(path, code=WRITER) as process:
        assert process.stdout.readline() == "begun\n"
        process.kill()
    (left,) = tmp_path.glob("file.*.partial")
    assert contents(tmp_path).keys() == {"file", left.name}
    assert path.read_bytes() == b"old"
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"


def test_of_two_writers_at_once_the_last_one_wins(tmp_path):
    path = tmp_path / "file"
    with opened_atomically(path) as last, opened_atomically(path) as first:
        for _ in range(3):
            last.write(b"l" * 100_000)
            first.write(b"f" * 70_000)
    assert contents(tmp_path) == {"file": b"l" * 300_000}


@posix
def test_a_name_that_just_fits_is_written_with_the_usual_permissions(tmp_path):
    path, usual = tmp_path / ("x" * 255), tmp_path / "usual"
    check_can_write(path)
    write_atomically(path, b"whole")
    usual.touch()
    assert path.stat().st_mode == usual.stat().st_mode
    assert contents(tmp_path) == {"usual": b"", path.name: b"whole"}
