"""Compiling is announced once on a terminal, and is not counted as time spent working."""

import json
import os
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest
from numba.core import event

from ordspan import clock
from ordspan.cli.app import COMPILING, progress_bar
from ordspan.clock import Clock, CompileTime

COMMAND = """
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


def start():
    event.start_event("numba:compile")


def end():
    event.end_event("numba:compile")


@pytest.fixture
def compiling(monkeypatch):
    """A fresh listener."""
    fresh = CompileTime()
    monkeypatch.setattr(clock, "compiling", fresh)
    with event.install_listener("numba:compile", fresh):
        yield fresh


@pytest.fixture
def now(monkeypatch):
    """A time that goes on only by ``now.seconds += ...``."""
    now = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(clock, "time", SimpleNamespace(perf_counter=lambda: now.seconds))
    return now


def test_nested_compiling_counts_once(compiling, now):
    start()
    now.seconds += 1
    start()
    now.seconds += 2
    end()
    assert compiling.seconds() == 3
    now.seconds += 4
    end()
    now.seconds += 8
    assert compiling.seconds() == 7


def test_a_clock_stands_still_while_compiling_goes_on(compiling, now):
    watch = Clock()
    now.seconds += 1
    start()
    now.seconds += 2
    assert watch.seconds() == 1
    end()
    now.seconds += 4
    assert watch.seconds() == 5
    assert Clock().seconds() == 0


def test_long_compiling_is_announced_while_it_goes_on_and_only_once(compiling, monkeypatch):
    monkeypatch.setattr(clock, "LONG", 0.01)
    said, times = threading.Event(), []
    compiling.announce(lambda: (times.append(1), said.set()))
    start()
    assert said.wait(10)
    end()
    start()
    time.sleep(0.1)
    end()
    assert times == [1]


def test_short_compiling_is_announced_where_it_adds_up(compiling, now, monkeypatch):
    monkeypatch.setattr(clock, "LONG", 3600.0)
    said = threading.Event()
    compiling.announce(said.set)
    start()
    now.seconds += 3600
    end()
    assert not said.is_set()
    start()  # what came before is enough
    assert said.wait(10)
    end()


def on_a_terminal(folder, *words):
    """What a command writes to a terminal, its JSON, and its seconds in all and for compiling."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache"), "COLUMNS": "200"}
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, *map(str, words), "--json"],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    shown = []
    reader = threading.Thread(target=lambda: shown.extend(read_all(ours)))
    reader.start()
    output, _ = process.communicate(timeout=300)
    reader.join()
    os.close(ours)
    assert process.returncode == 0, b"".join(shown).decode()
    summary, times = output.decode().splitlines()
    return b"".join(shown).decode(), json.loads(summary), *map(float, times.split())


def read_all(terminal):
    """All that is written to a terminal; Linux reports its end as an error."""
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:
            return
        if not part:
            return
        yield part


@pytest.mark.slow
def test_only_the_first_run_is_told_that_it_compiles_and_no_time_counts_it(tmp_path):
    (tmp_path / "a.csv").write_text("size,grade\n" + "1,1\n2,2\n3,3\n" * 100)
    words = ["train", "a.csv", "--label", "grade", "--model", "m"]
    shown, summary, wall, compiled = on_a_terminal(tmp_path, *words)
    assert compiled > 1
    assert shown.count(COMPILING) == 1
    assert summary["seconds"] + compiled <= wall + 0.001  # rounded to milliseconds
    assert summary["rows_per_second"] >= 300 / (wall - compiled) - 1
    shown, summary, wall, compiled = on_a_terminal(tmp_path, *words, "--overwrite")
    assert compiled == 0
    assert COMPILING not in shown
    assert "MAE" in shown  # so it is a terminal
    assert summary["seconds"] <= wall


def test_without_a_terminal_nothing_is_said(compiling, capsys, monkeypatch):
    monkeypatch.setattr(clock, "LONG", 0.0)
    with progress_bar():
        start()
        time.sleep(0.1)
        end()
    assert capsys.readouterr() == ("", "")
