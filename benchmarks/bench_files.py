"""How fast is training from files, compared with bare readers and with Vowpal Wabbit?

``make bench`` runs this at full size; the tests run it at toy size. Times are processor times
summed over all threads, except where they are labelled as wall clock.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import compute, csv, parquet
from sklearn.datasets import load_svmlight_file

from measuring import Row, command, graded_rows, in_fresh_process, ratio, table
from ordspan import OrdinalPA, train_files

N, D, GRADES = 723_412, 136, [1, 2, 3, 4, 5]
TEXT_ROWS = 60_000
"""Rows of the svmlight file: fewer, because scikit-learn reads it slowly."""
BIG_BYTES = 5 << 30


def run_job(path: Path, **choices: object) -> None:
    label = None if path.suffix == ".txt" else "grade"
    train_files(
        path, path.with_name("model"), overwrite=True, label=label, classes=GRADES, **choices
    )


def as_table(X: np.ndarray, grades: np.ndarray) -> pa.Table:
    return pa.table({f"x{j}": X[:, j] for j in range(X.shape[1])} | {"grade": grades})


def write_svmlight(path: Path, X: np.ndarray, grades: np.ndarray) -> None:
    with path.open("w") as file:
        for grade, row in zip(grades, X, strict=True):
            cells = " ".join(f"{j}:{value!s}" for j, value in enumerate(row, 1))
            file.write(f"{grade} qid:1 {cells}\n")


def write_vowpal(path: Path, X: np.ndarray, grades: np.ndarray) -> None:
    """Write numbers in their shortest form, as pyarrow does in a CSV file."""
    with path.open("wb") as file:
        for begin in range(0, len(X), 5000):
            rows, heads = X[begin : begin + 5000], grades[begin : begin + 5000]
            words = [compute.binary_join_element_wise(as_text(heads), "|", " ")]
            for j in range(rows.shape[1]):
                words.append(compute.binary_join_element_wise(str(j), as_text(rows[:, j]), ":"))
            lines = compute.binary_join_element_wise(*words, " ").to_pylist()
            file.write("\n".join([*lines, ""]).encode())


def as_text(values: np.ndarray) -> pa.Array:
    return compute.cast(pa.array(values), pa.string())


def from_parquet(folder: Path, X: np.ndarray, grades: np.ndarray, repeats: int) -> list[Row]:
    path = folder / "rows.parquet"
    parquet.write_table(as_table(X, grades), path)

    def bare() -> None:
        parquet.read_table(path)
        OrdinalPA(classes=GRADES).partial_fit(X, grades)

    times, took = ratio(lambda: run_job(path), bare, repeats)
    work = (
        f"Parquet, {len(X):,} × {D} float32 ({took:.1f} s): time / bare pyarrow read plus a pass "
    )
    return [Row.at_most(work + "in memory", times, 3)]


def from_csv(folder: Path, X: np.ndarray, grades: np.ndarray, repeats: int) -> list[Row]:
    path = folder / "rows.csv"
    csv.write_csv(as_table(X, grades), path)
    times, took = ratio(lambda: run_job(path), lambda: csv.read_csv(path), repeats)
    work = f"CSV, the same rows ({took:.1f} s): time / bare pyarrow CSV read"
    return [Row.at_most(work, times, 1.5)]


def from_svmlight(folder: Path, X: np.ndarray, grades: np.ndarray, repeats: int) -> list[Row]:
    path = folder / "rows.txt"
    write_svmlight(path, X, grades)
    times, took = ratio(
        lambda: run_job(path, n_features=D), lambda: load_svmlight_file(str(path)), repeats
    )
    work = f"svmlight, {len(X):,} rows ({took:.1f} s): time / scikit-learn's reader alone"
    return [Row.at_most(work, times, 1.5)]


def both_clocks(work: Callable[[], object]) -> np.ndarray:
    """Wall-clock and processor time of one call."""
    before = np.array([time.perf_counter(), time.process_time()])
    work()
    return np.array([time.perf_counter(), time.process_time()]) - before


def against_vowpal(folder: Path, X: np.ndarray, grades: np.ndarray, repeats: int) -> list[Row]:
    """Compare with one pass of Vowpal Wabbit at its defaults (squared loss, its text format)."""
    try:
        import vowpalwabbit
    except ModuleNotFoundError:
        return []
    write_vowpal(folder / "rows.vw", X, grades)
    csv.write_csv(as_table(X, grades), folder / "rows.csv")
    parquet.write_table(as_table(X, grades), folder / "rows.parquet")
    parquet.write_table(
        as_table(X, grades), folder / "plain.parquet", use_dictionary=False, compression=None
    )

    def vowpal() -> None:
        vowpalwabbit.Workspace(f"-d {folder / 'rows.vw'} --quiet").finish()

    work = {
        "CSV": lambda: run_job(folder / "rows.csv"),
        "Parquet as pyarrow writes it": lambda: run_job(folder / "rows.parquet"),
        "Parquet, uncompressed, no dictionary": lambda: run_job(folder / "plain.parquet"),
    }
    for job in (vowpal, *work.values()):
        job()  # bring the files into the page cache
    theirs, ours = [], {name: [] for name in work}
    for turn in range(repeats):
        theirs.append(both_clocks(vowpal))
        names = list(work)
        for name in names[turn % 3 :] + names[: turn % 3]:  # each job affects the one after it
            ours[name].append(both_clocks(work[name]))
    rows = []
    for name, target in zip(work, (1.5, 6, 6), strict=True):
        wall, busy = np.median(np.array(theirs) / ours[name], axis=0)
        took = statistics.median(wall for wall, _ in ours[name])
        label = f"{name}, {len(X):,} rows ({took:.2f} s wall clock): speed-up over one pass of "
        label += f"Vowpal Wabbit, wall clock (processor time: {busy:.1f} ×)"
        rows.append(Row.at_least(label, wall, target))
    return rows


def write_big_csv(path: Path, n_bytes: int) -> None:
    n_rows = 20_000 if n_bytes else 200
    csv.write_csv(as_table(*graded_rows(n_rows, D, 5, dtype=np.float32)), path)
    head, _, body = path.read_bytes().partition(b"\n")
    with path.open("wb") as file:
        file.write(head + b"\n")
        for _ in range(max(1, n_bytes // len(body))):
            file.write(body)


def write_big_parquet(path: Path, n_bytes: int) -> None:
    """Row groups of a million rows, as pyarrow writes them."""
    n_rows = 1_000_000 if n_bytes else 200
    rows = as_table(*graded_rows(n_rows, D, 5, dtype=np.float32))
    with parquet.ParquetWriter(path, rows.schema) as file:
        for _ in range(max(1, n_bytes // rows.nbytes)):
            file.write_table(rows)


def big_memory(path: str, answer: object) -> None:
    """Peak megabytes of the command that trains from a file."""
    command_costs(Path(path))
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    answer.put(peak)  # type: ignore[attr-defined]


def memory(folder: Path, name: str, write: Callable[[Path, int], None], n_bytes: int) -> list[Row]:
    path = folder / f"big.{name.lower()}"
    write(path, n_bytes)
    peak = in_fresh_process(big_memory, str(path))
    gigabytes = path.stat().st_size / 2**30
    work = f"peak memory of ordspan train on a {name} file of {gigabytes:.1f} GB"
    return [Row.at_most(work, peak, 600, " MB")]


def command_costs(path: Path) -> float:
    """Processor time of ``ordspan train`` in a separate process."""
    model = path.with_name("model")
    words = ["train", str(path), "--label", "grade", "--grades", "1..5", "--model", str(model)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ordspan(*words, "--overwrite")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def ordspan(*words: str) -> None:
    command = [sys.executable, "-m", "ordspan", *words]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def small_file(folder: Path, repeats: int = 5) -> Row:
    csv.write_csv(as_table(*graded_rows(500, 8, 5)), folder / "small.csv")
    times = [command_costs(folder / "small.csv") for _ in range(repeats + 1)][1:]
    work = "ordspan train on a CSV file of 500 rows, processor time of the whole command"
    return Row.at_most(work, statistics.median(times), 1.5, " s")


def help_seconds(repeats: int) -> float:
    """Median wall-clock seconds of ``ordspan --help``."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        ordspan("--help")
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def run(scale: float) -> list[Row]:
    n, n_text = max(200, int(N * scale)), max(200, int(TEXT_ROWS * scale))
    repeats = 3 if scale else 1
    X, grades = graded_rows(n, D, 5, dtype=np.float32)
    text_rows = X[:n_text].copy(), grades[:n_text].copy()
    n_bytes = int(BIG_BYTES * scale)
    rows: list[Row] = []
    parts: list[Callable[[Path], list[Row]]] = [
        lambda folder: from_parquet(folder, X, grades, repeats),
        lambda folder: from_csv(folder, X, grades, 1 if scale else repeats),
        lambda folder: from_svmlight(folder, *text_rows, repeats),
        lambda folder: against_vowpal(folder, X, grades, 2 * repeats),
        lambda folder: [small_file(folder, 5 if scale else 1)],
        lambda folder: memory(folder, "CSV", write_big_csv, n_bytes),
        lambda folder: memory(folder, "Parquet", write_big_parquet, n_bytes),
    ]
    for part in parts:
        with tempfile.TemporaryDirectory() as folder:
            rows += part(Path(folder))
    seconds = help_seconds(5 if scale else 1)
    rows.append(Row.at_most("ordspan --help, wall clock", seconds, 0.4, " s"))
    return rows


NOTE = """
Every run is given its grades (`classes`) and, for svmlight, the number of features; otherwise it
first makes an extra pass over the labels of a CSV file, or over the whole svmlight file. Vowpal
Wabbit runs at its defaults (squared loss) on its own text format, with numbers as short as in the
CSV file. Like ordspan it reads in one thread and learns in another, so both clocks are shown; they
are medians of six turns, with our runs in a different order each time. Text is read by Polars,
Parquet by pyarrow, which alone takes 340 MB for the 137 open columns of that file, whose row groups
have a million rows and dictionaries of 1 MB.
"""


def report(scale: float) -> str:
    return table(run(scale), "Training from files") + NOTE


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    command(report, __doc__ or "")
