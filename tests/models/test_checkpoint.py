"""Checkpoints: nothing goes on from other files or settings, and nobody shares a model's path."""

import os
import re
from shutil import copyfile

import pytest
from files_to_train import make_rows, write_rows

import ordspan
from commands.tables import said, stopped
from processes import start

X, GRADES = make_rows(2000)
posix = pytest.mark.skipif(os.name != "posix", reason="links and kills of POSIX")


@pytest.fixture
def folder(tmp_path):
    """A folder with one file to train from."""
    (tmp_path / "rows").mkdir()
    write_rows(tmp_path / "rows", "csv", X, GRADES)
    return tmp_path / "rows"


def flip(share):
    """Another digit somewhere in the file; its size and time of modification stay."""

    def change(path):
        told, content = path.stat(), bytearray(path.read_bytes())
        start = int(share * (len(content) - 40)) + 30
        content[next(i for i in range(start, len(content)) if chr(content[i]).isdigit())] ^= 1
        path.write_bytes(content)
        os.utime(path, ns=(told.st_atime_ns, told.st_mtime_ns))

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *((flip(share), "content of .*rows.csv") for share in (0.0, 0.3, 0.7, 0.999)),
        (lambda path: os.utime(path, ns=(1, 1)), r"modification time of .*rows.csv = \d+, .* is 1"),
        (lambda path: path.write_text(path.read_text() * 2), "content of .*rows.csv"),
        (lambda path: path.rename(path.with_name("a.csv")), "content of .*a.csv = None"),
        (lambda path: copyfile(path, path.with_name("z.csv")), "content of .*z.csv = None"),
    ],
)
def test_changed_files_are_noticed(folder, tmp_path, change, message):
    words = ["--label", "grade", "--checkpoint-every", 500, "--model", tmp_path / "m"]
    stopped("train", folder, *words)
    words.append("--resume")
    assert "was made with files =" in said("train", folder / "rows.csv", *words, code=1)
    change(folder / "rows.csv")
    refused = said("train", folder, *words, code=1)
    assert re.search(f"m.checkpoint was made with {message}", refused)


HOLD = """
import sys
from pathlib import Path
from ordspan.models.atomic import sole_writer

with sole_writer(Path(sys.argv[1])):
    print("ready", flush=True)
    sys.stdin.read()
"""


@posix
def test_a_second_training_waits_for_nobody_and_a_killed_one_lets_go(folder, tmp_path):
    out, link = tmp_path / "m", tmp_path / "link"
    link.symlink_to(out)
    words = ["train", folder, "--label", "grade", "--model", link]
    with start(out, code=HOLD) as process:
        assert process.stdout.readline() == "ready\n"
        assert "is being trained by another process; wait for it" in said(*words, code=1)
        assert not out.exists()
        process.kill()
    assert (tmp_path / ".m.lock").exists()  # left behind, and taken over
    said(*words)
    assert ordspan.load(out).training["rows"] == 2000
    assert {path.name for path in tmp_path.iterdir()} == {"rows", "m", "link"}
    assert link.is_symlink()
