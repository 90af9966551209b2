"""Training from a pipe, whose rows come only once: what was learned can always be continued."""

import io
import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from files_to_train import make_rows
from tables import ask

import ordspan
from ordspan.commands.stopping import Stop, Stopped
from ordspan.commands.train import Every, TrainJob, train
from ordspan.commands.train_run import Run
from ordspan.files.batch import FileError, RowError

X, GRADES = make_rows(600)
HEAD = "x0,x1,x2,grade\n"
ROWS = [f"{a},{b},{c},{grade}\n" for (a, b, c), grade in zip(X.tolist(), GRADES, strict=True)]
WORDS = ("--format", "csv", "--label", "grade", "--grades", "1..4")


def piped(monkeypatch, rows, **choices):
    """A job whose rows come from standard input."""
    pipe = io.BufferedReader(io.BytesIO((HEAD + "".join(rows)).encode()))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=pipe))
    labels = {} if "start" in choices else {"label": "grade", "classes": [1, 2, 3, 4]}
    return TrainJob(["-"], **labels | choices)


def interrupt(job, out):
    """Train until the first rows are learned; leaves a checkpoint."""
    stop = Stop()
    with pytest.raises(Stopped):
        train(job, out, stop=stop, report=lambda *_: setattr(stop, "requested", True))


def test_every_message_names_the_way_to_continue(tmp_path, monkeypatch):
    out, left = tmp_path / "m", tmp_path / "m.checkpoint"
    interrupt(piped(monkeypatch, ROWS[:300]), out)
    monkeypatch.undo()
    rows = HEAD + "".join(ROWS[300:])
    path = tmp_path / "rows.csv"
    path.write_text(rows)
    for words, way in (
        ((), f"--from {left} continues it, --overwrite starts over"),
        (("--resume",), f"leave out --resume, and continue it with --from {left}"),
    ):
        answer = ask("train", "-", *WORDS, "--model", out, *words, input=rows)
        assert answer.exit_code == 1
        assert way in answer.output
        answer = ask("train", path, *WORDS, "--model", out, *words)
        assert f"--from {left} and another output path" in answer.output
    told = "".join(ask("info", left).output.split())  # is wrapped
    assert f"continuewithordspantrain--from{left}" in told
    answer = ask(
        "train", "-", "--format", "csv", "--from", left, "--model", out, "--json", input=rows
    )
    assert answer.exit_code == 0, answer.output
    assert ordspan.load(out).training["rows"] == 600
    assert not left.exists()


def test_the_checkpoint_of_a_run_stays_until_its_own_continuation_replaces_it(
    tmp_path, monkeypatch
):
    out, left = tmp_path / "m", tmp_path / "m.checkpoint"
    interrupt(piped(monkeypatch, ROWS[:300]), out)
    held = []

    def report(*progress):
        held.append(ordspan.load(left).training["rows"])

    job = piped(monkeypatch, ROWS[300:], start=str(left))
    train(job, out, every=Every(rows=100, seconds=0), report=report, overwrite=True)
    assert held == [400, 500, 600]
    interrupt(piped(monkeypatch, ROWS[:300]), tmp_path / "n")
    job = piped(monkeypatch, ROWS[300:], start=str(tmp_path / "n.checkpoint"))
    left, held[:] = tmp_path / "n.checkpoint", []
    train(job, tmp_path / "n", every=Every(seconds=0), report=report)
    assert held == [300]  # what a kill leaves before the first checkpoint


def test_the_checkpoint_of_a_run_on_files_is_not_replaced_by_its_continuation(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(HEAD + "".join(ROWS))
    interrupt(TrainJob([str(path)], label="grade"), tmp_path / "m")
    before = (tmp_path / "m.checkpoint").read_bytes()
    job = TrainJob([str(path)], start=str(tmp_path / "m.checkpoint"))
    for overwrite in (False, True):
        with pytest.raises(FileError, match=r"would be replaced .* choose another output path"):
            train(job, tmp_path / "m", overwrite=overwrite)
    assert (tmp_path / "m.checkpoint").read_bytes() == before


@pytest.mark.parametrize("bad", ["1,2,3,explode\n", "1,2,x,1\n", "1,2\n"])
def test_a_bad_row_loses_none_of_the_rows_before_it(tmp_path, monkeypatch, bad):
    job = piped(monkeypatch, [*ROWS[:300], bad, *ROWS[300:]])
    with pytest.raises(RowError, match="line 302") as caught:
        train(job, tmp_path / "m")
    assert "m.checkpoint holds the model after 300 rows of this pipe" in caught.value.__notes__[0]
    assert not (tmp_path / "m").exists()
    train(piped(monkeypatch, ROWS[:300]), tmp_path / "clean")
    saved, clean = (ordspan.load(tmp_path / name) for name in ("m.checkpoint", "clean"))
    assert saved.estimator.coef_.tolist() == clean.estimator.coef_.tolist()
    rows = HEAD + "".join(ROWS[:300]) + bad
    answer = ask("train", "-", *WORDS, "--model", tmp_path / "n", input=rows)
    assert answer.exit_code == 1
    left = tmp_path / "n.checkpoint"
    way = f"{left} holds the model after 300 rows of this pipe; continue it with --from {left}"
    assert answer.output.strip().endswith(way)


def test_a_checkpoint_that_cannot_be_written_does_not_hide_the_error(tmp_path, monkeypatch):
    def fail(self):
        raise FileError("m.checkpoint: No space left on device")

    monkeypatch.setattr(Run, "save_checkpoint", fail)
    with pytest.raises(RowError, match="explode") as caught:
        train(piped(monkeypatch, [*ROWS[:300], "1,2,3,explode\n"]), tmp_path / "m")
    assert not getattr(caught.value, "__notes__", [])


def test_too_many_bad_rows_lose_no_good_row(tmp_path, monkeypatch):
    job = piped(monkeypatch, [*ROWS[:100], *["1,2,3,9\n"] * 100], on_bad_row="skip")
    with pytest.raises(FileError, match=r"50\.0%"):
        train(job, tmp_path / "m")
    assert ordspan.load(tmp_path / "m.checkpoint").training["rows"] == 100


def test_a_bad_row_of_a_file_leaves_nothing_behind(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(HEAD + "".join(ROWS) + "1,2,3,explode\n")
    answer = ask("train", path, *WORDS, "--model", tmp_path / "m", "--json")
    assert answer.exit_code == 1
    assert [found.name for found in tmp_path.iterdir()] == ["rows.csv"]
    path.write_text(HEAD + "".join(ROWS))
    told = ask("train", path, *WORDS, "--model", tmp_path / "m", "--json").stdout
    assert json.loads(told)["rows"] == 600


def test_a_pipe_that_continues_goes_on_learning_the_scale(tmp_path, monkeypatch):
    train(piped(monkeypatch, ROWS), tmp_path / "whole")
    bad = "oops,1,1,1\n"
    with pytest.raises(RowError):
        train(piped(monkeypatch, [*ROWS[:3], bad]), tmp_path / "m")
    left = tmp_path / "m.checkpoint"
    train(piped(monkeypatch, ROWS[3:], start=str(left)), tmp_path / "m")
    whole, parts = (ordspan.load(tmp_path / name) for name in ("whole", "m"))
    np.testing.assert_allclose(parts.scale.state, whole.scale.state, rtol=1e-9)
    np.testing.assert_allclose(parts.learner.weights, whole.learner.weights, rtol=1e-6)


@pytest.mark.parametrize("buffer", [100, 1000])
def test_rows_that_wait_to_be_shuffled_are_learned_before_an_error(tmp_path, monkeypatch, buffer):
    with pytest.raises(RowError):
        train(
            piped(monkeypatch, [*ROWS[:250], "oops,1,1,1\n"], shuffle_buffer=buffer), tmp_path / "m"
        )
    assert ordspan.load(tmp_path / "m.checkpoint").training["rows"] == 250


def test_a_pipe_is_not_judged_by_its_first_rows_alone(tmp_path, monkeypatch):
    """A town that is repeated a few times in 500 rows is no id."""
    towns = [f"town {i}" for i in range(590)] + [f"town {i}" for i in range(10)]
    rows = [row.replace(",", f",{town},", 1) for row, town in zip(ROWS, towns, strict=True)]
    monkeypatch.setattr(sys.modules[__name__], "HEAD", "x0,town,x1,x2,grade\n")
    rows[497:500] = rows[:3]
    summary = train(piped(monkeypatch, rows), tmp_path / "m")
    assert "town" not in summary["left_out"]
