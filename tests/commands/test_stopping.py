"""Requests to stop: heard where it is safe, and no row of a pipe is lost."""

import io
import signal
import sys

import pytest

import ordspan
from ordspan.commands.stopping import StoppablePipe, Stopped, stoppable
from ordspan.commands.train import TrainJob, train

JOB = TrainJob("a.csv", "m")


def test_a_background_job_keeps_ignoring_ctrl_c():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with stoppable(JOB) as (stop, _):
            signal.raise_signal(signal.SIGINT)
        assert not stop.requested
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_signal_interrupts_waiting_for_a_pipe():
    class Endless(io.BytesIO):
        def read1(self, size):
            signal.raise_signal(signal.SIGTERM)
            pytest.fail("still waiting")

    with stoppable(JOB) as (stop, _), pytest.raises(Stopped):
        StoppablePipe(stop, Endless()).read1(1)


def test_rows_that_a_pipe_has_delivered_are_learned_before_the_stop(tmp_path, monkeypatch):
    rows = b"a,g\n" + b"".join(b"%d,%d\n" % (i * i % 7, i % 2 + 1) for i in range(300))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(rows))))
    how = {"label": "g", "classes": [1, 2], "checkpoint_every": "100"}  # cuts it into portions
    with pytest.raises(Stopped):
        train(
            TrainJob("-", tmp_path / "m", **how),
            report=lambda *_: signal.raise_signal(signal.SIGINT),
        )
    assert ordspan.load(tmp_path / "m.checkpoint").training["rows"] == 300
