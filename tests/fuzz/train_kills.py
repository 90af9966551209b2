"""Training that is killed at any moment: the same model file as without, and nothing beside it.

Each attack makes one table and kills its training twice, or ``ORDSPAN_KILLS`` times. 200 kills::

    ORDSPAN_KILLS=4 python tests/fuzz/run.py train_kills --attacks 50
"""

import gzip
import os
import signal
import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

import processes

KILLS = int(os.environ.get("ORDSPAN_KILLS", "2"))
FORMATS = ("csv", "quoted.csv", "csv.gz", "jsonl", "parquet", "svm")
INTERRUPTED = 130  # the exit code after Ctrl-C
ROWS = {"pa": 300_000, "kernel": 15_000}
"""Rows of all passes together: about a second of learning."""


def attack(rng, folder: Path) -> None:
    """Train once undisturbed, then again with kills on the way."""
    learner, passes = str(rng.choice([*ROWS])), int(rng.integers(1, 6))
    words = ["--learner", learner, "--passes", passes]
    words += ["--checkpoint-every", str(rng.choice(["500", "5000", "0.02s"]))]
    words += ["--hold-out", 0.1] * int(rng.integers(2)) + ["--budget", 50] * (learner == "kernel")
    ending, is_sorted = str(rng.choice(FORMATS)), bool(rng.integers(2))
    with TemporaryDirectory(dir=folder) as name:
        path = Path(name, f"rows.{ending}")
        write(path, make_table(rng, ROWS[learner] // passes, is_sorted))
        words = ["train", path.name, *words, *([] if ending == "svm" else ["--label", "grade"])]
        killed: list[str] = []
        try:
            train_and_kill(rng, path.parent, words, killed)
        except AssertionError as error:
            order = "sorted" if is_sorted else "not sorted"
            raise AssertionError(f"{error}\n{words}, {order}, killed {killed}") from error


def train_and_kill(rng, folder: Path, words: list, killed: list[str]) -> None:
    """Kill a training at random moments and go on, until it has been killed often enough."""
    seconds = finish(folder, *words, "--model", "whole")
    whole, before = (folder / "whole").read_bytes(), names(folder)
    model, checkpoint = folder / "m", folder / "m.checkpoint"
    while True:
        more = ["--model", "m", "--resume" if checkpoint.exists() else "--overwrite"]
        started = time.monotonic()
        if len(killed) == KILLS:
            finish(folder, *words, *more)
        elif moment := kill(rng, folder, [*words, *more], seconds):
            killed.append(f"{moment} with {more[-1]}")
            assert not model.exists() or model.read_bytes() == whole, "another model after a kill"
            continue
        assert model.read_bytes() == whole, "another model"
        assert names(folder) == before | {"m"}, f"left behind: {names(folder) - before - {'m'}}"
        if len(killed) == KILLS:
            return
        if more[-1] == "--overwrite":  # the undisturbed run took longer, perhaps as it compiled
            seconds = min(seconds, time.monotonic() - started)
        model.unlink()


def kill(rng, folder: Path, words: list, seconds: float) -> str | None:
    """Start a training and kill it, or press Ctrl-C; when, or None if it ended before.

    Half of the kills wait for the next change in the folder, as moments between the steps of
    writing a file are short.
    """
    moment, waits = rng.uniform(0.3, 1.0) * seconds, bool(rng.integers(2))
    pause = rng.uniform(0, 0.003)
    number = signal.SIGINT if rng.random() < 0.2 else signal.SIGKILL
    with started_in(folder, words) as process:
        try:
            process.wait(moment)
        except subprocess.TimeoutExpired:
            before = state(folder)
            while waits and process.poll() is None and state(folder) == before:
                time.sleep(0.0002)
            time.sleep(pause)
            process.send_signal(number)
        printed = process.stderr.read()
    assert process.returncode in (0, -signal.SIGKILL, INTERRUPTED), printed
    if process.returncode == 0:
        return None
    how = " by Ctrl-C" * (number == signal.SIGINT) + " and a change" * waits
    return f"after {moment:.2f} s{how}"


def finish(folder: Path, *words) -> float:
    """Train to the end; how many seconds it takes."""
    started = time.monotonic()
    with started_in(folder, words) as process:
        _, printed = process.communicate(timeout=300)
    assert process.returncode == 0, printed
    return time.monotonic() - started


def started_in(folder: Path, words) -> subprocess.Popen:
    return processes.start(*words, cwd=folder, stdout=subprocess.DEVNULL)


def names(folder: Path) -> set[str]:
    """Files in a folder, except the half-written ones that a kill leaves behind."""
    return {path.name for path in folder.iterdir() if path.suffix != ".partial"}


def state(folder: Path) -> set[tuple[str, int, int]]:
    """Names, sizes and times of all files that are there; they may vanish meanwhile."""
    found = set()
    for entry in os.scandir(folder):
        try:
            status = entry.stat()
        except FileNotFoundError:
            continue
        found.add((entry.name, status.st_size, status.st_mtime_ns))
    return found


def make_table(rng, n: int, is_sorted: bool) -> pl.DataFrame:
    """Numbers with gaps, few words, many words, and four grades."""
    x = rng.normal(0, 10, size=(n, 8)).round(3)
    grade = np.digitize(x @ rng.normal(size=8) / 20 + rng.normal(size=n), [-1, 0, 1]) + 1
    table = pl.DataFrame({f"x{j}": x[:, j] for j in range(8)} | {"grade": grade})
    table = table.with_columns(
        x0=pl.when(pl.Series(rng.random(n) > 0.1)).then("x0"),
        word=pl.Series(rng.choice(["Ulm", "Graz, Styria", "Bern"], n)),
        code=pl.Series(rng.integers(0, 700, n)).map_elements("c{}".format, pl.String),
    )
    return table.sort("grade") if is_sorted else table


def write(path: Path, table: pl.DataFrame) -> None:
    if path.suffix == ".parquet":
        table.write_parquet(path, row_group_size=10_000)
    elif path.suffix == ".jsonl":
        table.write_ndjson(path)
    elif path.suffix == ".svm":
        cells = "".join(f" {j + 1}:{{}}" for j in range(1, 8))
        columns = [f"x{j}" for j in range(1, 8)]
        lines = table.select(line=pl.format("{}" + cells, "grade", *columns))["line"]
        path.write_text("\n".join([*lines, ""]))
    else:
        content = table.write_csv(quote_style="always" if "quoted" in path.name else "necessary")
        path.write_bytes(
            gzip.compress(content.encode(), 1) if path.suffix == ".gz" else content.encode()
        )
