"""Compiling is announced once on a terminal, and is not counted as time spent working."""

import json
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from processes import read_terminal, start

pytestmark = pytest.mark.slow
FIT = "import ordspan\nfor _ in range(2): ordspan.OrdinalPA().fit([[-1.0], [1.0]], [1, 2])"
TRAIN = """
import sys, time
from numba.core.event import install_timer
from ordspan.cli import app
took = []
begun = time.perf_counter()
try:
    with install_timer("numba:compile", took.append):
        app(prog_name="ordspan", standalone_mode=False)
finally:
    print(time.perf_counter() - begun, sum(took))
"""


def on_a_terminal(folder, code, *words):
    """What code writes to a terminal, and what it prints."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    env = os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache"), "COLUMNS": "200"}
    started = start(*words, code=code, stderr=theirs, cwd=folder, env=env)
    with started as process, ThreadPoolExecutor(1) as pool:
        os.close(theirs)
        reading = pool.submit(read_terminal, ours)
        output, _ = process.communicate(timeout=300)
        shown = reading.result().decode()
    assert process.returncode == 0, shown
    return shown, output.splitlines()


def test_a_first_fit_says_once_that_it_compiles_and_the_next_process_need_not(tmp_path):
    first, second = (on_a_terminal(tmp_path, FIT)[0] for _ in range(2))
    assert first.count("compiling for this machine") == 1
    assert second == ""


def test_only_the_first_training_is_told_that_it_compiles_and_no_time_counts_it(tmp_path):
    (tmp_path / "a.csv").write_text("size,grade\n" + "1,1\n2,2\n3,3\n" * 100)
    words = ["train", "a.csv", "--label", "grade", "--model", "m", "--json"]
    for number in range(2):
        shown, (summary, times) = on_a_terminal(tmp_path, TRAIN, *words)
        words.append("--overwrite")
        summary, (wall, compiled) = json.loads(summary), map(float, times.split())
        assert shown.count("Compiling for this processor") == (1 if number == 0 else 0)
        assert (compiled > 1) if number == 0 else (compiled == 0)
        assert "MAE" in shown  # so it is a terminal
        assert summary["seconds"] + compiled <= wall + 0.001  # rounded to milliseconds
