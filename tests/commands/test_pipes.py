"""Training from a pipe, whose rows come only once: what was learned can always be continued."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pandas as pd
import pytest
from files_to_train import make_rows

import processes
from ordspan import load
from tables import ask, limited_room, said, stopped, summary

X, GRADES = make_rows(600)
HEAD = "x0,x1,x2,grade\n"
ROWS = [f"{a},{b},{c},{grade}\n" for (a, b, c), grade in zip(X.tolist(), GRADES, strict=True)]
POSIX = pytest.mark.skipif(os.name != "posix", reason="pipes and signals of POSIX")


def words(model, *more, start=None):
    labels = ["--from", start] if start else ["--label", "grade", "--grades", "1..4"]
    return ["train", "-", "--format", "csv", *labels, "--model", model, *more]


def piped(rows, *asked, head=HEAD, **more):
    return said(*asked, input=head + "".join(rows), **more)


@pytest.fixture
def model(tmp_path):
    return tmp_path / "m"


@pytest.fixture
def path(tmp_path):
    (tmp_path / "rows.csv").write_text(HEAD + "".join(ROWS))
    return tmp_path / "rows.csv"


@pytest.fixture
def left(model):
    """The checkpoint of a training that an error has ended after 300 rows."""
    piped([*ROWS[:300], "1,2,3,oops\n"], *words(model), code=1)
    return model.with_name("m.checkpoint")


@POSIX
def test_a_checkpoint_that_cannot_be_written_does_not_hide_the_error(model):
    piped(ROWS[:300], *words(model.with_name("other")))  # compiled code needs room too
    with limited_room(500):
        printed = piped([*ROWS[:300], "1,2,3,explode\n"], *words(model), code=1)
    assert "explode" in printed
    assert "no checkpoint was written" in printed
    assert "holds the model after" not in printed


@pytest.mark.parametrize("bad", ["1,2,3,explode\n", "1,2,x,1\n", "1,2,3,4,5\n"])
def test_a_bad_row_loses_none_of_the_rows_before_it(model, bad):
    more = ["--no-standardise"]
    printed = piped([*ROWS[:300], bad, *ROWS[300:]], *words(model, *more), code=1)
    left = f"{model}.checkpoint"
    assert "row 301" in printed
    assert f"{left} holds the model after 300 rows; continue with" in printed
    assert f"(--from {left})" in printed
    assert not model.exists()
    piped(ROWS[:300], *words(model.with_name("clean"), *more))
    saved, clean = (load(path).estimator for path in (left, model.with_name("clean")))
    assert saved.coef_.tolist() == clean.coef_.tolist()


def test_too_many_bad_rows_lose_no_good_row(model):
    rows = [*ROWS[:100], *["1,2,3,9\n"] * 100]
    assert "50.0%" in piped(rows, *words(model, "--on-bad-row", "skip"), code=1)
    assert load(model.with_name("m.checkpoint")).training["rows"] == 100


def test_every_message_names_the_way_to_continue(model, left, path):
    over = f"(--from {left}) continues it, overwrite=True (--overwrite) starts over"
    assert over in piped(ROWS, *words(model), code=1)
    from_file = said("train", path, *words(model)[2:], code=1)
    assert f"(--from {left}) and another output path" in from_file
    told = "".join(said("info", left).split())  # is wrapped
    assert f"continuewithordspantrain--from{left}" in told
    piped(["1,2,3,oops\n"], *words(model, start=left), code=1)
    assert load(left).training["rows"] == 300
    piped(ROWS[300:], *words(model, start=left))
    assert load(model).training["rows"] == 600
    assert not left.exists()


def test_a_pipe_that_continues_goes_on_learning_the_scale(model, left):
    piped(ROWS, *words(model.with_name("whole")))
    piped(ROWS[300:], *words(model, start=left))
    whole, parts = (summary("info", path)["weights"] for path in (model.with_name("whole"), model))
    for one, other in zip(whole, parts, strict=True):
        numbers = ([row[k] for k in ("mean", "spread", "weight")] for row in (one, other))
        np.testing.assert_allclose(*numbers, rtol=1e-6)


def test_the_checkpoint_of_a_run_on_files_is_not_replaced_by_its_continuation(model, path):
    left = model.with_name("m.checkpoint")
    stopped("train", path, "--label", "grade", "--model", model, "--checkpoint-every", 100)
    before = left.read_bytes()
    for more in ([], ["--overwrite"]):
        printed = said("train", path, "--from", left, "--model", model, *more, code=1)
        assert "would be replaced" in printed
        assert "choose another path" in printed
    assert left.read_bytes() == before


def test_a_background_job_keeps_ignoring_ctrl_c(model, path):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        job = ["train", path, "--label", "grade", "--model", model, "--checkpoint-every", 100]
        stopped(*job, number=signal.SIGINT, code=0)
    finally:
        signal.signal(signal.SIGINT, before)


def test_rows_in_long_runs_of_one_grade_get_a_warning(model):
    for order, warned in ((np.argsort(GRADES, kind="stable"), True), (np.argsort(X[:, 2]), False)):
        printed = piped([ROWS[i] for i in order], *words(model, "--overwrite"))
        assert ("the labels come in long runs of one grade" in printed) is warned


def test_words_in_a_pipe_are_not_judged_by_its_first_rows_alone(model):
    """A town that is repeated a few times in 500 rows is no id; a kernel learns from few towns."""
    rows = pd.DataFrame(X).assign(town=[f"town {i % 497}" for i in range(600)], grade=GRADES)
    piped([rows.to_csv(index=False)], *words(model), head="")
    assert [*summary("info", model)["columns"]["hashed"]] == ["town"]
    content = rows.assign(town=np.where(X[:, 0] > 0, "Ulm", "Graz")).to_csv(index=False)
    found = summary(*words(model, "--learner", "kernel", "--overwrite"), input=content)
    assert found["mae"][0] < 0.7 * found["constant"]["mae"]


@POSIX
def test_a_stop_while_waiting_for_rows_keeps_those_learned(model):
    with processes.start(*words(model, "--checkpoint-every", 600)) as process:
        process.stdin.write(HEAD + "".join(ROWS))
        process.stdin.flush()
        while not model.with_name("m.checkpoint").exists():
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.01)
        time.sleep(0.2)  # it waits for more
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    assert process.returncode == 130
    assert load(model.with_name("m.checkpoint")).training["rows"] == 600


@POSIX
@pytest.mark.parametrize("command", ["train", "predict", "evaluate"])
def test_a_named_pipe_is_read_as_a_file_is(tmp_path, model, path, command):
    pipe = tmp_path / "pipe"
    piped(ROWS, *words(model))
    os.mkfifo(pipe)
    threading.Thread(target=lambda: pipe.write_text(path.read_text()), daemon=True).start()
    if command == "train":
        said("train", pipe, *words(tmp_path / "again")[2:])
        assert (tmp_path / "again").read_bytes() == model.read_bytes()
    else:
        of_pipe, of_file = (ask(command, name, "--model", model) for name in (pipe, path))
        assert of_pipe.stdout.splitlines()[-10:] == of_file.stdout.splitlines()[-10:]


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="needs descriptors with names")
def test_process_substitution_is_read_and_what_it_cannot_do_is_said(tmp_path, model, path):
    out = tmp_path / "out.csv"
    piped(ROWS, *words(model))
    command = f"{sys.executable} -m ordspan predict <(cat {path}) --model {model} --out {out}"
    subprocess.run(["bash", "-c", command], check=True, capture_output=True)
    assert len(out.read_text().splitlines()) == 601
    read, write = os.pipe()
    try:
        for more, told in (
            (["--passes", 2], "pipes can be read only once: passes must be 1"),
            (["--resume"], "goes on from its checkpoint with start= (--from), not with resume="),
            ([path], "other pipes cannot be mixed with files; give one alone"),
        ):
            asked = ["train", f"/dev/fd/{read}", *more, "--label", "grade", "--grades", "1..4"]
            assert told in said(*asked, "--model", tmp_path / "n", code=1)
    finally:
        os.close(read)
        os.close(write)
