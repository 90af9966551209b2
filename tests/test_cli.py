"""The command line: what it says, writes and returns."""

import csv
import os
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

import ordspan
from ordspan.cli import app

QUICK = ["--datasets", "synthetic", "--runs", "3", "--trials", "100"]
COLUMNS = "dataset,labels,algorithm,C,mae,sem,interval_mae,trials,runs,hindsight_ratio"
WRITTEN = {
    "results.parquet",
    "summary.csv",
    "claims.md",
    "report.html",
    "seconds.json",
    *(f"figure{n}.{kind}" for n in (1, 2) for kind in ("png", "svg", "pdf")),
}


def ask(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli") / "out"
    answer = ask("reproduce", *QUICK, "--out", folder)
    assert answer.exit_code == 0, answer.output
    return folder, answer.output


def test_reproduce_writes_one_folder_and_prints_the_summary(finished):
    folder, output = finished
    assert {path.name for path in folder.iterdir()} == WRITTEN
    assert "PA-II" in output
    assert "report.html" in output
    with (folder / "summary.csv").open() as file:
        assert file.readline().strip() == COLUMNS
        rows = list(csv.reader(file))
    assert len(rows) == 3 * 5
    assert all(float(row[-1]) > 0 for row in rows)
    assert {row[2] for row in rows} == {"PA", "PA-I", "PA-II", "PRank", "MCP"}


def test_the_report_can_be_drawn_anew_from_the_table_alone(finished, tmp_path):
    folder, _ = finished
    (tmp_path / "results.parquet").write_bytes((folder / "results.parquet").read_bytes())
    answer = ask("reproduce", "--report-only", tmp_path)
    assert answer.exit_code == 0, answer.output
    for name in ("summary.csv", "claims.md", "figure1.svg"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_extra_curves(tmp_path):
    extra = ["--average", "--solver", "sca", "--fractions", "50", "--algorithms", "PA-I,PRank"]
    answer = ask("reproduce", *QUICK, *extra, "--out", tmp_path)
    assert answer.exit_code == 0, answer.output
    with (tmp_path / "summary.csv").open() as file:
        names = [row["algorithm"] for row in csv.DictReader(file)]
    assert names == ["PA-I", "PRank", "PA-I average", "PA-I sca"]


def test_rivals_of_the_paper_run_when_asked_for(tmp_path):
    asked = "PA-I,PRIL,MC-PA,MC-PA-I,MC-PA-II,OAP-BPM"
    answer = ask("reproduce", *QUICK, "--fractions", 50, "--algorithms", asked, "--out", tmp_path)
    assert answer.exit_code == 0, answer.output
    with (tmp_path / "summary.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["algorithm"] for row in rows[:6]] == asked.split(",")
    assert {row["algorithm"] for row in rows if row["C"]} == {"PA-I", "MC-PA-I", "MC-PA-II"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--datasets", "boston"], "unknown data set 'boston'; choose from california, abalone"),
        (
            ["--algorithms", "SVM"],
            "unknown algorithm 'SVM'; choose from PA, PA-I, PA-II, PRank, MCP, PRIL, MC-PA",
        ),
        (["--solver", "newton"], "unknown solver 'newton'; choose from exact, sca"),
        (["--fractions", "half"], "whole percentages from 0 to 100, got 'half'"),
        (["--fractions", "150"], "whole percentages"),
        (["--data-dir", "no-such-folder", "--datasets", "abalone"], "no-such-folder"),
    ],
)
def test_a_mistake_is_told_in_one_line_and_writes_nothing(words, message, tmp_path):
    answer = ask("reproduce", *words, "--out", tmp_path / "out")
    assert answer.exit_code == 1
    assert message in answer.output
    assert "Traceback" not in answer.output
    assert not (tmp_path / "out" / "results.parquet").exists()


def test_a_folder_that_cannot_be_written_and_one_without_results(tmp_path):
    (tmp_path / "file").write_text("")
    answer = ask("reproduce", *QUICK, "--out", tmp_path / "file" / "out")
    assert answer.exit_code == 1
    assert "error:" in answer.output
    answer = ask("reproduce", "--report-only", tmp_path)
    assert answer.exit_code == 1
    assert "has no results.parquet; run ordspan reproduce first" in answer.output


def test_other_settings_are_refused(finished):
    folder, _ = finished
    answer = ask("reproduce", *QUICK[:-1], "99", "--out", folder)
    assert answer.exit_code == 1
    assert "--overwrite" in answer.output


def test_a_full_disk_is_told_in_one_line(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    answer = ask("reproduce", *QUICK, "--out", tmp_path)
    assert answer.exit_code == 1
    assert "No space left on device" in answer.output
    assert not (tmp_path / "results.parquet").exists()


def test_three_of_the_four_sets_run_anywhere_and_the_fourth_is_named_last(tmp_path, monkeypatch):
    monkeypatch.setenv("ORDSPAN_OFFLINE", "1")
    monkeypatch.setenv("ORDSPAN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ORDSPAN_DATA", raising=False)
    answer = ask(
        "reproduce", "--runs", 2, "--trials", 50, "--fractions", 50, "--out", tmp_path / "out"
    )
    assert answer.exit_code == 0, answer.output
    last = answer.output.strip().splitlines()[-1]
    assert last.startswith("Not run: mslr: ")
    assert "get MSLR-WEB10K from https://" in last
    with (tmp_path / "out" / "summary.csv").open() as file:
        names = {row["dataset"] for row in csv.DictReader(file)}
    assert names == {"california", "abalone", "parkinson"}
    alone = ask("reproduce", "--datasets", "mslr", "--out", tmp_path / "none")
    assert alone.exit_code == 1
    assert "nothing to run" in alone.output


def test_version_help_and_usage():
    assert ask("--version").output.strip() == f"ordspan {ordspan.__version__}"
    help_text = ask("reproduce", "--help").output
    for option in ("--datasets", "--jobs", "--report-only", "--data-dir", "--average"):
        assert option in help_text
    assert ask("reproduce", "--runs", "none").exit_code == 2
    assert ask("nonsense").exit_code == 2


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_ctrl_c_stops_within_a_second_and_says_how_to_go_on(tmp_path):
    words = ["--datasets", "synthetic", "--trials", "2000", "--runs", "5000", "--out", tmp_path]
    process = subprocess.Popen(
        [sys.executable, "-m", "ordspan", "reproduce", *map(str, words)],
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("cells/*.parquet")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    asked = time.monotonic()
    _, message = process.communicate(timeout=30)
    assert time.monotonic() - asked < 5  # a second on a quiet machine
    assert process.returncode == 130
    assert "Run the same command again to continue" in message
