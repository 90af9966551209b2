"""How fast is training from files: against the bare readers, and against Vowpal Wabbit?

``make bench`` runs this at full size; the tests run it at toy size. Every figure is processor time,
the sum over all threads.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet
from sklearn.datasets import load_svmlight_file

from measuring import (
    Row,
    command,
    forget_peak,
    graded_rows,
    in_fresh_process,
    peak_megabytes,
    ratio,
    table,
)
from ordspan import OrdinalPA
from ordspan.commands.train import TrainJob, train

N, D, GRADES = 723_412, 136, [1, 2, 3, 4, 5]
TEXT_ROWS = 60_000
"""Rows of the texts that are read more slowly; the time of each grows with the rows."""
BIG_BYTES = 5 << 30


def run_job(path: Path, **choices: object) -> None:
    label = None if path.suffix == ".txt" else "grade"
    train(TrainJob([str(path)], label=label, order=GRADES, **choices), path.with_name("model"))


def as_table(X: np.ndarray, grades: np.ndarray) -> pa.Table:
    return pa.table({f"x{j}": X[:, j] for j in range(X.shape[1])} | {"grade": grades})


def write_svmlight(path: Path, X: np.ndarray, grades: np.ndarray) -> None:
    with path.open("w") as file:
        for grade, row in zip(grades, X, strict=True):
            cells = " ".join(f"{j}:{value}" for j, value in enumerate(row, 1))
            file.write(f"{grade} qid:1 {cells}\n")


def write_vowpal(path: Path, X: np.ndarray, grades: np.ndarray) -> None:
    with path.open("w") as file:
        for grade, row in zip(grades, X, strict=True):
            cells = " ".join(f"{j}:{value}" for j, value in enumerate(row))
            file.write(f"{grade} | {cells}\n")


def from_parquet(folder: Path, X: np.ndarray, grades: np.ndarray, repeats: int) -> list[Row]:
    path = folder / "rows.parquet"
    parquet.write_table(as_table(X, grades), path)

    def bare() -> None:
        parquet.read_table(path)
        OrdinalPA(classes=GRADES).partial_fit(X, grades)

    times, took = ratio(lambda: run_job(path), bare, repeats)
    work = f"Parquet, {len(X):,} × {D} float32 ({took:.1f} s): against a bare pyarrow read and the "
    return [Row.at_most(work + "pass in memory", times, 3)]


def from_csv(folder: Path, X: np.ndarray, grades: np.ndarray, repeats: int) -> list[Row]:
    path = folder / "rows.csv"
    csv.write_csv(as_table(X, grades), path)
    times, took = ratio(lambda: run_job(path), lambda: csv.read_csv(path), repeats)
    work = f"CSV, the same rows ({took:.1f} s): against a bare pyarrow CSV read"
    return [Row.at_most(work, times, 1.5)]


def from_svmlight(folder: Path, X: np.ndarray, grades: np.ndarray, repeats: int) -> list[Row]:
    path = folder / "rows.txt"
    write_svmlight(path, X, grades)
    choices = {"options": _options(n_features=D)}
    times, took = ratio(
        lambda: run_job(path, **choices), lambda: load_svmlight_file(str(path)), repeats
    )
    work = f"svmlight, {len(X):,} rows ({took:.1f} s): against scikit-learn's reader alone"
    return [Row.at_most(work, times, 1.5)]


def _options(**choices: int) -> object:
    from ordspan.data.files.reading import FileOptions

    return FileOptions(**choices)


def against_vowpal(folder: Path, X: np.ndarray, grades: np.ndarray, repeats: int) -> list[Row]:
    """One pass of Vowpal Wabbit at its defaults (squared loss, its own text format)."""
    try:
        import vowpalwabbit
    except ModuleNotFoundError:
        return []
    for name, write in (("rows.vw", write_vowpal), ("rows.txt", write_svmlight)):
        write(folder / name, X, grades)
    csv.write_csv(as_table(X, grades), folder / "rows.csv")
    parquet.write_table(as_table(X, grades), folder / "rows.parquet")
    parquet.write_table(
        as_table(X, grades), folder / "plain.parquet", use_dictionary=False, compression=None
    )

    def vowpal() -> None:
        vowpalwabbit.Workspace(f"-d {folder / 'rows.vw'} --quiet").finish()

    rows = []
    for name, told, bar in (
        ("rows.csv", "CSV", 1.5),
        ("rows.parquet", "Parquet as pyarrow writes it", 10),
        ("plain.parquet", "Parquet, neither packed nor with a dictionary", 10),
    ):
        times, took = ratio(lambda name=name: run_job(folder / name), vowpal, repeats)
        work = f"{told}, {len(X):,} rows ({took:.2f} s): faster than Vowpal Wabbit's one pass"
        rows.append(Row.at_least(work, 1 / times, bar))
    return rows


def big_memory(folder: str, n_bytes: int, answer: object) -> None:
    """Megabytes that training from a large CSV file takes beyond what was in use before."""
    path = Path(folder) / "big.csv"
    X, grades = graded_rows(20_000, D, 5, dtype=np.float32)
    csv.write_csv(as_table(X, grades), path)
    head, _, body = path.read_bytes().partition(b"\n")
    with path.open("wb") as file:
        file.write(head + b"\n")
        for _ in range(max(1, n_bytes // len(body))):
            file.write(body)
    size = path.stat().st_size
    del X, grades, body
    forget_peak()
    run_job(path)
    path.unlink()
    answer.put((peak_megabytes(), size / 2**30))  # type: ignore[attr-defined]


def help_seconds(repeats: int = 5) -> float:
    """Wall seconds of ``ordspan --help``, the median."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "ordspan", "--help"], check=True, stdout=subprocess.DEVNULL
        )
        times.append(time.perf_counter() - start)
    return statistics.median(times)


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def run(scale: float) -> list[Row]:
    n, n_text = max(200, int(N * scale)), max(200, int(TEXT_ROWS * scale))
    repeats = 3 if scale else 1
    X, grades = graded_rows(n, D, 5, dtype=np.float32)
    some = X[:n_text].copy(), grades[:n_text].copy()
    rows: list[Row] = []
    parts: list[Callable[[Path], list[Row]]] = [
        lambda folder: from_parquet(folder, X, grades, repeats),
        lambda folder: from_csv(folder, X, grades, 1 if scale else repeats),
        lambda folder: from_svmlight(folder, *some, repeats),
        lambda folder: against_vowpal(folder, *some, repeats),
    ]
    for part in parts:
        with scratch() as folder:
            rows += part(folder)
    with scratch() as folder:
        n_bytes = int(BIG_BYTES * scale)
        peak, gigabytes = in_fresh_process(big_memory, str(folder), n_bytes)
    work = f"peak memory of training from a CSV file of {gigabytes:.1f} GB, all told"
    rows.append(Row.at_most(work, peak, 500, " MB"))
    rows.append(Row.at_most("ordspan --help, wall clock", help_seconds(), 0.4, " s"))
    return rows


NOTE = """
Every training is told its grades (`order`) and, from svmlight, its number of features; left to find
them, it walks once more over the labels of a CSV file, or over an svmlight file, first. Vowpal
Wabbit runs at its defaults (squared loss), in its own text format. Of the time from Parquet,
pyarrow's own decoding is about half.
"""


def report(scale: float) -> str:
    return table(run(scale), "Training from files") + NOTE


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    command(report, __doc__ or "")
