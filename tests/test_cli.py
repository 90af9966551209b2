"""`ordspan reproduce`, and the command line as a whole."""

import csv
import os
import signal
import time

import pytest

from processes import start
from tables import limited_room, said

QUICK = ["reproduce", "--datasets", "synthetic", "--runs", "3", "--trials", "100"]
COLUMNS = "dataset,labels,algorithm,C,mae,sem,interval_mae,trials,runs,hindsight_ratio"
WRITTEN = {"results.npz", "summary.csv", "claims.csv", "report.html"}
WRITTEN |= {f"figure{n}.{kind}" for n in (1, 2) for kind in ("png", "pdf")}


def read(folder):
    with (folder / "summary.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli") / "out"
    return folder, said(*QUICK, "--out", folder)


def test_reproduce_writes_one_folder_and_prints_the_summary(finished):
    folder, output = finished
    assert {path.name for path in folder.iterdir()} == WRITTEN
    assert "PA-II" in output
    assert "report.html" in output
    rows = read(folder)
    assert ",".join(rows[0]) == COLUMNS
    assert len(rows) == 3 * 5
    assert all(float(row["hindsight_ratio"]) > 0 for row in rows)
    assert {row["algorithm"] for row in rows} == {"PA", "PA-I", "PA-II", "PRank", "MCP"}


def test_the_report_can_be_drawn_anew_from_the_table_alone(finished, tmp_path):
    folder, _ = finished
    (tmp_path / "results.npz").write_bytes((folder / "results.npz").read_bytes())
    said("reproduce", "--report-only", tmp_path)
    for name in WRITTEN:
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_rivals_and_extra_curves_run_when_asked_for(tmp_path):
    asked = "PA-I,PRank,PRIL,MC-PA,MC-PA-I,MC-PA-II"
    extra = ["--average", "--solver", "sca", "--fractions", 50, "--algorithms", asked]
    said(*QUICK, *extra, "--out", tmp_path)
    rows = read(tmp_path)
    assert [row["algorithm"] for row in rows] == [*asked.split(","), "PA-I average", "PA-I sca"]
    assert {"PA-I", "MC-PA-I", "MC-PA-II"} <= {row["algorithm"] for row in rows if row["C"]}


@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
def test_a_full_disk_is_told_in_one_line(tmp_path):
    with limited_room(0):
        assert "File too large" in said(*QUICK, "--out", tmp_path, code=1)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_three_of_the_four_sets_run_anywhere_and_the_fourth_is_named_last(tmp_path, monkeypatch):
    monkeypatch.setenv("ORDSPAN_OFFLINE", "1")
    monkeypatch.setenv("ORDSPAN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ORDSPAN_DATA", raising=False)
    few = ["--runs", 2, "--trials", 50, "--fractions", 50]
    last = said("reproduce", *few, "--out", tmp_path / "out").strip().splitlines()[-1]
    assert last.startswith("Not run: mslr: ")
    assert "get MSLR-WEB10K from https://" in last
    found = {row["dataset"] for row in read(tmp_path / "out")}
    assert found == {"california", "abalone", "parkinson"}
    alone = said("reproduce", "--datasets", "mslr", "--out", tmp_path / "none", code=1)
    assert "nothing to run" in alone


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_ctrl_c_stops_within_a_second_and_says_how_to_go_on(tmp_path):
    words = ["--datasets", "synthetic", "--trials", 2000, "--runs", 5000, "--out", tmp_path]
    with start("reproduce", *words) as process:
        while not list(tmp_path.glob("cells-*/*.npy")):
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        asked = time.monotonic()
        _, message = process.communicate(timeout=60)
    assert time.monotonic() - asked < 5  # a second on a quiet machine
    assert process.returncode == 130
    assert "Run the same command again to continue" in message
