"""How the benchmarks measure: ratios within one run, after a warm-up, as medians."""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from threadpoolctl import threadpool_limits

FAST = {"reassoc", "contract", "nsz"}


class Row(NamedTuple):
    """One measured value and its target."""

    work: str
    measured: float
    target: str
    reached: bool

    @classmethod
    def at_most(cls, work: str, measured: float, target: float, unit: str = " ×") -> Row:
        """A value that should not exceed the target."""
        return cls(work, measured, f"≤ {target:g}{unit}", measured <= target)

    @classmethod
    def at_least(cls, work: str, measured: float, target: float, unit: str = " ×") -> Row:
        """A value that should not be below the target."""
        return cls(work, measured, f"≥ {target:g}{unit}", measured >= target)


def seconds(work: Callable[[], object]) -> float:
    """Processor time of one call: the work uses one thread, and machines are shared."""
    start = time.process_time()
    work()
    return time.process_time() - start


def ratio(
    ours: Callable[[], object], theirs: Callable[[], object], repeats: int = 5
) -> tuple[float, float]:
    """Median of ours / theirs, run in turns after a warm-up, and our median seconds."""
    # processor time counts every thread, and BLAS threads keep spinning after their work
    with threadpool_limits(limits=1):
        ours(), theirs()
        pairs = [(seconds(theirs), seconds(ours)) for _ in range(repeats)]
    return statistics.median(o / t for t, o in pairs), statistics.median(o for _, o in pairs)


def machine() -> str:
    """Date, processor, cores and versions, in one line."""
    cpu = platform.processor()
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as info:
        cpu = next((line.split(":")[1].strip() for line in info if "model name" in line), cpu)
    parts = ("ordspan", "numpy", "numba", "scikit-learn", "scipy")
    versions = ", ".join(f"{part} {version(part)}" for part in parts)
    cores = f"{os.cpu_count()} cores; Python {platform.python_version()}"
    return f"{date.today()}; {cpu}, {cores}, {versions}"


def table(rows: list[Row], title: str) -> str:
    """The rows as a Markdown table."""
    lines = [f"# {title}", "", machine(), ""]
    lines += ["| work | measured | target | result |", "|---|---|---|---|"]
    for row in rows:
        mark = "reached" if row.reached else "NOT reached"
        lines.append(f"| {row.work} | {row.measured:.2f} | {row.target} | {mark} |")
    return "\n".join(lines) + "\n"


def megabytes_in_use() -> float:
    """Memory that this process holds now, on Linux."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def in_fresh_process(work: Callable[..., Any], *args: object) -> Any:
    """What the work returns in a process of its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *args).result()


def process_costs(*words: str, **variables: str) -> np.ndarray:
    """Wall-clock seconds, processor seconds and peak megabytes of Python in a separate process."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *words], stdout=subprocess.DEVNULL, env=os.environ | variables
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, words
    took = time.perf_counter() - started
    # the peak is at least that of this process so far
    return np.array([took, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024])


def judged_sentences(folder: Path, name: str) -> list[tuple[str, np.ndarray]]:
    """Sentences and what some 20 people rated them, -4 to 4 each (Hutto and Gilbert, 2014)."""
    lines = {}
    for kind in ("GroundTruth", "anonDataRatings"):
        text = (folder / f"{name}_{kind}.txt").read_bytes().decode("utf-8-sig", "replace")
        lines[kind] = [line.split("\t") for line in text.splitlines()]
    ratings = {number: json.loads(each) for number, *_, each in lines["anonDataRatings"]}
    return [
        (row[2], np.array(ratings[row[0]])) for row in lines["GroundTruth"] if row[0] in ratings
    ]


def command(report: Callable[..., str], description: str, **options: str) -> None:
    """Print a report at the requested scale, and optionally save it; more options by their help."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--scale", type=float, default=1.0, help="1 is the full size")
    parser.add_argument("--save", type=Path, help="also write the report to this file")
    for name, about in options.items():
        parser.add_argument(f"--{name}", help=about)
    chosen = vars(parser.parse_args())
    save, text = chosen.pop("save"), report(**chosen)
    print(text)
    if save:
        save.write_text(text, encoding="utf-8")


def graded_rows(
    n: int, d: int, n_classes: int, seed: int = 0, dtype: type = np.float64
) -> tuple[np.ndarray, np.ndarray]:
    """Standard normal rows, and ranks from a noisy linear score."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d), dtype=dtype)
    score = X @ (rng.standard_normal(d) / np.sqrt(d)) + 0.5 * rng.standard_normal(n)
    edges = np.quantile(score, np.arange(1, n_classes) / n_classes)
    return X, np.searchsorted(edges, score).astype(np.int64) + 1


@njit(cache=True, fastmath=FAST)
def bare_dense(weights, data, update):
    """The least a dense pass must do: dot, squared norm, and an axpy on the marked rows."""
    width = weights.size
    for i in range(update.size):
        row = data[i * width : (i + 1) * width]
        score = 0.0
        sq_norm = 0.0
        for j in range(width):
            score += weights[j] * row[j]
            sq_norm += row[j] * row[j]
        if update[i]:
            scale = 1e-9 * score / (1.0 + sq_norm)
            for j in range(width):
                weights[j] += scale * row[j]


@njit(cache=True, fastmath=FAST)
def bare_sparse(weights, data, columns, starts, update):
    """The least a sparse pass must do."""
    for i in range(update.size):
        # slicing first avoids the check for negative indices in the loop
        values, cols = data[starts[i] : starts[i + 1]], columns[starts[i] : starts[i + 1]]
        score = 0.0
        sq_norm = 0.0
        for j in range(values.size):
            score += weights[cols[j]] * values[j]
            sq_norm += values[j] * values[j]
        if update[i]:
            scale = 1e-9 * score / (1.0 + sq_norm)
            for j in range(values.size):
                weights[cols[j]] += scale * values[j]
