"""How long does a first fit take to compile, and how much does partial_fit of one row cost?

``make bench`` writes docs/measured/compile.md; the tests run it at toy size. Compile times are
processor times in a fresh process with an empty cache.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

from measuring import Row, command, graded_rows, table
from ordspan import KernelOrdinalPA

FITS = """
import time
import numpy as np
import scipy.sparse as sp
from ordspan import KernelOrdinalPA, OrdinalPA

X = np.random.default_rng(0).standard_normal((300, 5))
y = np.searchsorted([-1, 0, 1], X[:, 0]) + 1
for estimator, rows in (
    (OrdinalPA(), X),
    (OrdinalPA(), sp.csr_array(X)),
    (OrdinalPA(), X.astype(np.float32)),
    (KernelOrdinalPA(), X),
    (KernelOrdinalPA(budget=20), X),
):
    start = time.process_time()
    estimator.fit(rows, y)
    print(time.process_time() - start)
"""
WORK = (
    ("first OrdinalPA().fit, dense float64, nothing compiled yet", 4.0),
    ("then OrdinalPA().fit on sparse rows", 2.5),
    ("then OrdinalPA().fit on float32 rows", 2.5),
    ("then KernelOrdinalPA().fit", 4.0),
    ("then KernelOrdinalPA(budget=20).fit", 4.0),
)


def compile_seconds(anew: bool) -> list[float]:
    """Processor time of the first fits in a process, with an empty cache if ``anew``."""
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | ({"NUMBA_CACHE_DIR": cache} if anew else {})
        done = subprocess.run(
            [sys.executable, "-c", FITS],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
    return [float(line) for line in done.stdout.split()]


def compiling(repeats: int, anew: bool) -> list[Row]:
    measured = [compile_seconds(anew) for _ in range(repeats)]
    medians = [statistics.median(values) for values in zip(*measured, strict=True)]
    return [
        Row.at_most(work, seconds, target, " s")
        for (work, target), seconds in zip(WORK, medians, strict=True)
    ]


def one_row(n_support: int, repeats: int) -> list[Row]:
    """Time of partial_fit on one new row, for a kernel model with many support vectors."""
    X, ranks = graded_rows(30 * n_support, 8, 5)
    model = KernelOrdinalPA(gamma=0.1).partial_fit(X[:1], ranks[:1], classes=[1, 2, 3, 4, 5])
    start = 1
    while model.dual_coef_.size < n_support:
        part = slice(start, start + n_support - model.dual_coef_.size)
        model.partial_fit(X[part], ranks[part])
        start = part.stop
    took = []
    for row in range(start, start + repeats):
        before = time.process_time()
        model.partial_fit(X[row : row + 1], ranks[row : row + 1])
        took.append(1000 * (time.process_time() - before))
    work = f"KernelOrdinalPA.partial_fit on one row with {n_support} support vectors"
    return [Row.at_most(work, float(np.median(took)), 0.2, " ms")]


def run(scale: float = 1.0) -> list[Row]:
    """All rows; with a scale below 1 each is measured once, as a check that it still runs."""
    full = scale >= 1
    return compiling(5 if full else 1, anew=full) + one_row(
        2000 if full else 20, 200 if full else 5
    )


if __name__ == "__main__":
    command(lambda scale: table(run(scale), "Compile time, and learning a single row"), __doc__)
