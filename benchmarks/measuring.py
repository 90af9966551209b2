"""How the benchmarks measure: ratios taken in one run, warm-up outside the clock, medians."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import multiprocessing
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numba import njit
from threadpoolctl import threadpool_limits

FAST = {"reassoc", "contract", "nsz"}


class Row(NamedTuple):
    """One measured ratio and the bar it is held against."""

    work: str
    measured: float
    bar: str
    reached: bool

    @classmethod
    def at_most(cls, work: str, measured: float, bar: float, unit: str = " ×") -> Row:
        """A figure that must not be larger than the bar."""
        return cls(work, measured, f"≤ {bar:g}{unit}", measured <= bar)

    @classmethod
    def at_least(cls, work: str, measured: float, bar: float, unit: str = " ×") -> Row:
        """A figure that must not be smaller than the bar."""
        return cls(work, measured, f"≥ {bar:g}{unit}", measured >= bar)


def seconds(work: Callable[[], object]) -> float:
    """Processor time of one call: all work here is one thread, and machines are shared."""
    start = time.process_time()
    work()
    return time.process_time() - start


def ratio(
    ours: Callable[[], object], theirs: Callable[[], object], repeats: int = 5
) -> tuple[float, float]:
    """Median of ours/theirs taken in turns after one warm-up each, and our median seconds."""
    # processor time counts every thread, and those of BLAS go on spinning after their work
    with threadpool_limits(limits=1):
        ours(), theirs()
        pairs = [(seconds(theirs), seconds(ours)) for _ in range(repeats)]
    return statistics.median(o / t for t, o in pairs), statistics.median(o for _, o in pairs)


def machine() -> str:
    """Processor, cores, date and versions, in one line."""
    try:
        with open("/proc/cpuinfo") as info:
            names = [line.split(":")[1].strip() for line in info if line.startswith("model name")]
    except OSError:
        names = []
    parts = ("ordspan", "numpy", "numba", "scikit-learn", "scipy")
    versions = ", ".join(f"{part} {version(part)}" for part in parts)
    cpu = names[0] if names else platform.processor()
    return (
        f"{date.today()}; {cpu}, {os.cpu_count()} cores; Python {platform.python_version()}, "
        f"{versions}"
    )


def table(rows: list[Row], title: str) -> str:
    """The rows as a Markdown table."""
    lines = [f"# {title}", "", machine(), "", "| work | measured | bar | |", "|---|---|---|---|"]
    for row in rows:
        mark = "reached" if row.reached else "NOT reached"
        lines.append(f"| {row.work} | {row.measured:.2f} | {row.bar} | {mark} |")
    return "\n".join(lines) + "\n"


def forget_peak() -> None:
    """Let the peak start from what is in use now, where Linux allows it.

    Otherwise what making the data needed for a moment, and freed memory that was not given back,
    would hide as much again later.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
        with open("/proc/self/clear_refs", "w") as switch:
            switch.write("5")


def peak_megabytes() -> float:
    """Most memory that this process has had; not to be known on Windows."""
    import resource

    with contextlib.suppress(OSError), open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def in_fresh_process(work: Callable[..., object], *args: object) -> float:
    """What the work puts into the queue it is given, from a process of its own."""
    context = multiprocessing.get_context("spawn")
    answer = context.Queue()
    process = context.Process(target=work, args=(*args, answer))
    process.start()
    process.join()
    if process.exitcode:
        raise RuntimeError(f"{work.__name__} ended with exit code {process.exitcode}")
    return answer.get()


def command(report: Callable[[float], str], description: str) -> None:
    """Print a report made at the scale asked for, and save it if asked to."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--scale", type=float, default=1.0, help="1 is the full size")
    parser.add_argument("--save", type=Path, help="also write the report to this file")
    options = parser.parse_args()
    text = report(options.scale)
    print(text)
    if options.save:
        options.save.write_text(text, encoding="utf-8")


def graded_rows(
    n: int, d: int, n_classes: int, seed: int = 0, dtype: type = np.float64
) -> tuple[np.ndarray, np.ndarray]:
    """Standard normal rows filled in place, and ranks from a noisy linear score."""
    rng = np.random.default_rng(seed)
    X = np.empty((n, d), dtype=dtype)
    score = np.empty(n)
    direction = rng.standard_normal(d) / np.sqrt(d)
    for start in range(0, n, 10_000):
        part = slice(start, start + 10_000)
        X[part] = rng.standard_normal(X[part].shape)
        score[part] = X[part] @ direction + 0.5 * rng.standard_normal(X[part].shape[0])
    edges = np.quantile(score, np.arange(1, n_classes) / n_classes)
    return X, np.searchsorted(edges, score).astype(np.int64) + 1


@njit(cache=True, fastmath=FAST)
def bare_dense(weights, data, update):
    """The floor of a dense pass: dot, squared norm, and an axpy on the marked rows."""
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
    """The floor of a sparse pass."""
    for i in range(update.size):
        # slices spare the loop the check for negative positions: the floor should be low
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
