"""How fast is training from files, compared with bare readers, Vowpal Wabbit and scikit-learn?

``make bench`` runs this at full size; the tests run it at toy size. Times are processor times
summed over all threads, except where they are labelled as wall clock.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute, csv, parquet
from sklearn.datasets import load_svmlight_file

from measuring import Row, command, graded_rows, in_fresh_process, process_costs, ratio, table
from ordspan import OrdinalPA, train_files

N, D, GRADES = 723_412, 136, [1, 2, 3, 4, 5]
TEXT_SHARE = 12  # the svmlight file has one row in so many, as scikit-learn reads it slowly
MIXED_ROWS = 100_000
BARE_PARQUET = "bare pyarrow read plus a pass in memory"
BIG_BYTES = 5 << 30


def run_job(path: Path, **choices: object) -> None:
    label = None if path.suffix == ".txt" else "grade"
    train_files(
        path, path.with_name("model"), overwrite=True, label=label, classes=GRADES, **choices
    )


def as_table(X: np.ndarray, grades: np.ndarray) -> pa.Table:
    return pa.table({f"x{j}": X[:, j] for j in range(X.shape[1])} | {"grade": grades})


def write_lines(path: Path, X: np.ndarray, grades: np.ndarray, head: str, first: int) -> None:
    """Write lines of index:value, numbers in their shortest form, as pyarrow does in a CSV file."""

    def as_text(values: np.ndarray) -> pa.Array:
        return compute.cast(pa.array(values), pa.string())

    with path.open("wb") as file:
        for begin in range(0, len(X), 5000):
            rows, labels = X[begin : begin + 5000], grades[begin : begin + 5000]
            words = [as_text(labels), pa.scalar(head)]
            for j, column in enumerate(rows.T, first):
                words.append(compute.binary_join_element_wise(str(j), as_text(column), ":"))
            lines = compute.binary_join_element_wise(*words, " ").to_pylist()
            file.write("\n".join([*lines, ""]).encode())


def against_readers(folder: Path, X: np.ndarray, grades: np.ndarray, repeats: int) -> list[Row]:
    """Compare with bare readers."""
    table_of_rows, few = as_table(X, grades), len(X) // TEXT_SHARE
    as_parquet, as_csv, as_text = (folder / f"rows.{end}" for end in ("parquet", "csv", "txt"))
    parquet.write_table(table_of_rows, as_parquet)
    csv.write_csv(table_of_rows, as_csv)
    write_lines(as_text, X[:few], grades[:few], "qid:1", first=1)

    def bare_parquet() -> None:
        parquet.read_table(as_parquet)
        OrdinalPA(classes=GRADES).partial_fit(X, grades)

    def compared(what: str, ours: Callable, theirs: Callable, peer: str, target: float) -> Row:
        times, took = ratio(ours, theirs, repeats)
        return Row.at_most(f"{what} ({took:.1f} s): time / {peer}", times, target)

    train, train_sparse = partial(run_job, as_csv), partial(run_job, as_text, n_features=D)
    bare_csv, bare_text = partial(csv.read_csv, as_csv), partial(load_svmlight_file, str(as_text))
    shape, read, sparse = f"{len(X):,} × {D} float32", "bare pyarrow CSV read", f"{few:,} rows"
    return [
        compared(f"Parquet, {shape}", partial(run_job, as_parquet), bare_parquet, BARE_PARQUET, 3),
        compared("CSV, the same rows", train, bare_csv, read, 1.5),
        compared("CSV, five passes", partial(train, passes=5), bare_csv, read, 7.5),
        compared(f"svmlight, {sparse}", train_sparse, bare_text, "scikit-learn's reader", 1.5),
    ]


def against_vowpal(folder: Path, X: np.ndarray, grades: np.ndarray, repeats: int) -> list[Row]:
    """Compare with one pass of Vowpal Wabbit at its defaults (squared loss, its text format)."""
    try:
        import vowpalwabbit
    except ModuleNotFoundError:
        return []
    rows_of_file, plain = as_table(X, grades), {"use_dictionary": False, "compression": None}
    write_lines(folder / "rows.vw", X, grades, "|", first=0)
    csv.write_csv(rows_of_file, folder / "rows.csv")
    parquet.write_table(rows_of_file, folder / "rows.parquet")
    parquet.write_table(rows_of_file, folder / "plain.parquet", **plain)
    jobs = {
        "Vowpal Wabbit": lambda: vowpalwabbit.Workspace(f"-d {folder}/rows.vw --quiet").finish(),
        "CSV": lambda: run_job(folder / "rows.csv"),
        "Parquet as pyarrow writes it": lambda: run_job(folder / "rows.parquet"),
        "Parquet, uncompressed, no dictionary": lambda: run_job(folder / "plain.parquet"),
    }
    clocks: dict[str, list[np.ndarray]] = {name: [] for name in jobs}
    for turn in range(repeats + 1):  # the first brings the files into the page cache
        for name in np.roll([*jobs], turn):  # each job affects the one after it
            before = np.array([time.perf_counter(), time.process_time()])
            jobs[name]()
            after = np.array([time.perf_counter(), time.process_time()])
            clocks[name].append(after - before)
    clocks = {name: taken[1:] for name, taken in clocks.items()}
    theirs, rows = np.array(clocks.pop("Vowpal Wabbit")), []
    for (name, ours), target in zip(clocks.items(), (1.5, 6, 6), strict=True):
        wall, busy = np.median(theirs / ours, axis=0)
        took = np.median(ours, axis=0)[0]
        label = f"{name}, {len(X):,} rows ({took:.2f} s wall clock): speed-up over one pass of "
        label += f"Vowpal Wabbit, wall clock (processor time: {busy:.1f} ×)"
        rows.append(Row.at_least(label, wall, target))
    return rows


def write_big(path: Path, n_bytes: int, writer: Any, n_rows: int) -> None:
    """Write the same rows again and again, in another order; in Parquet each time as a group."""
    rows = as_table(*graded_rows(n_rows if n_bytes else 200, D, 5, dtype=np.float32))
    rng = np.random.default_rng(0)
    with path.open("wb") as sink, writer(sink, rows.schema) as file:
        file.write_table(rows)
        while sink.tell() < n_bytes:  # in the same order, they would look sorted
            file.write_table(rows.take(rng.permutation(rows.num_rows)))


def memory(folder: Path, name: str, writer: Any, n_rows: int, n_bytes: int) -> list[Row]:
    path = folder / f"big.{name.lower()}"
    write_big(path, n_bytes, writer, n_rows)
    peak = in_fresh_process(process_costs, *train_words(path), "--grades", "1..5")[2]
    size = path.stat().st_size / 2**30
    work = f"peak memory of ordspan train on a {name} file of {size:.1f} GB"
    return [Row.at_most(work, peak, 600, " MB")]


def train_words(path: Path) -> list[str]:
    """Arguments of Python that train from a file."""
    model = str(path.with_name("model"))
    words = ["train", str(path), "--label", "grade", "--model", model, "--overwrite"]
    return ["-m", "ordspan", *words]


def commands(folder: Path, repeats: int) -> list[Row]:
    """Measure what is felt on the command line."""
    path = folder / "small.csv"
    csv.write_csv(as_table(*graded_rows(500, 8, 5)), path)
    small = [*train_words(path), "--grades", "1..5"]
    _, cold, _ = process_costs(*small, NUMBA_CACHE_DIR=str(folder / "cache"))
    _, used, _ = np.median([process_costs(*small) for _ in range(repeats + 1)][1:], axis=0)
    wall = np.median([process_costs("-m", "ordspan", "--help")[0] for _ in range(repeats)])
    work = "ordspan train on a CSV file of 500 rows, processor time of the whole command"
    return [
        Row.at_most(f"{work}, nothing compiled yet", cold, 9, " s"),
        Row.at_most(work, used, 1.2, " s"),
        Row.at_most("ordspan --help, wall clock", wall, 0.4, " s"),
    ]


def mixed_table(n: int) -> pa.Table:
    """Make a table like those of flight delays: 15 grades, words, gaps, and half of it empty."""
    rng = np.random.default_rng(0)
    minutes = rng.gamma(2.0, 20.0, n) - 30

    def words(n_values: int, form: str) -> np.ndarray:
        return np.array([form.format(i * 7919) for i in range(n_values)])[
            rng.zipf(1.3, n) % n_values
        ]

    def gaps(values: np.ndarray, share: float) -> pa.Array:
        return pa.array(values, mask=rng.random(n) < share)

    columns = {"grade": np.clip(minutes // 15, -2, 12).astype(int)}
    columns["plane"] = words(5000, "N{:05d}Q")  # too many for a feature each: hashed
    for j, n_values in enumerate((4, 10, 15, 15, 50, 50, 90, 150, 200, 200)):
        columns[f"code{j}"] = words(n_values, "C{:X}")
    for j in range(6):
        columns[f"city{j}"] = words(200, "Port {:X}, Somewhere")
    for j in range(20):
        columns[f"count{j}"] = gaps(rng.integers(0, 10 ** (1 + j % 5), n), 0.02 * (j % 3))
    for j in range(22):
        late = minutes * (j % 4) + rng.normal(0, 30, n)
        columns[f"time{j}"] = gaps(late.round(1 + j % 2), 0.01 * (j % 5) ** 2)
    for j in range(60):
        rare = words(100, "C{:X}") if j % 3 else rng.integers(0, 999, n)
        columns[f"rare{j}"] = gaps(rare, 0.997 if j < 15 else 1)
    return pa.table(columns)


PIPELINE = """
import sys
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import SGDRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
table = pd.read_csv(sys.argv[1])
grades = table.pop("grade")
numbers = make_column_selector(dtype_include="number")
words = make_column_selector(dtype_exclude="number")
columns = make_column_transformer(
    (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
    (OneHotEncoder(handle_unknown="ignore"), words),
)
make_pipeline(columns, SGDRegressor(max_iter=1, tol=None)).fit(table, grades)
"""


def mixed(folder: Path, n: int, repeats: int) -> list[Row]:
    """Compare with pandas and scikit-learn, each time in new processes."""
    path, columns = folder / "mixed.csv", mixed_table(n)
    csv.write_csv(columns, path)
    jobs = train_words(path), ["-W", "ignore", "-c", PIPELINE, str(path)]
    turns = [[process_costs(*words)[1] for words in jobs] for _ in range(repeats + 1)]
    ours, theirs = np.array(turns[1:]).T
    work = f"ordspan train on a mixed CSV file, {n:,} × {columns.num_columns} "
    work += f"({path.stat().st_size / 1e6:.0f} MB)"
    peer = f"pandas and a pipeline of scikit-learn ({np.median(theirs):.1f} s)"
    return [
        Row.at_most(f"{work}, processor time of the whole command", np.median(ours), 4, " s"),
        Row.at_most(f"{work}: time / {peer}", np.median(ours / theirs), 1),
    ]


def run(scale: float) -> list[Row]:
    repeats, n_bytes = 3 if scale else 1, int(BIG_BYTES * scale)
    X, grades = graded_rows(max(1200, int(N * scale)), D, 5, dtype=np.float32)
    rows: list[Row] = []
    parts: list[Callable[[Path], list[Row]]] = [
        lambda folder: against_readers(folder, X, grades, repeats),
        lambda folder: against_vowpal(folder, X, grades, 2 * repeats),
        lambda folder: mixed(folder, max(5000, int(MIXED_ROWS * scale)), repeats),
        lambda folder: commands(folder, 5 if scale else 1),
        lambda folder: memory(folder, "CSV", csv.CSVWriter, 20_000, n_bytes),
        lambda folder: memory(folder, "Parquet", parquet.ParquetWriter, 1_000_000, n_bytes),
    ]
    for part in parts:
        with tempfile.TemporaryDirectory() as folder:
            rows += part(Path(folder))
    return rows


NOTE = """
Every run is given its grades (`classes`) and, for svmlight, the number of features; otherwise it
first makes an extra pass over the labels of a CSV file, or over the whole svmlight file. The mixed
file is read with no option but `--label`. It is made like public tables of flight delays: text in
quotes, half of the columns empty or nearly so, 15 grades, integers and decimals with gaps, words,
and planes, which are too many to be a feature each. Pandas and scikit-learn read it, fill, scale
and one-hot encode it, and make one pass of `SGDRegressor` on the grade; both times include the
start of Python. Vowpal Wabbit runs at its defaults (squared loss) on its own text format, with
numbers as short as in the CSV file. Like ordspan it reads in one thread and learns in another, so
both clocks are shown; they are medians of six turns, with the runs in a different order each time.
Text is read by Polars, Parquet by pyarrow, which alone takes 340 MB for the 137 open columns of
that file, whose row groups have a million rows and dictionaries of 1 MB.
"""


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    command(lambda scale: table(run(scale), "Training from files") + NOTE, __doc__ or "")
