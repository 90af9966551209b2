"""How long does a first fit take to compile, and how much does partial_fit of one row cost?

``make bench`` writes docs/measured/compile.md; the tests run it at toy size. Compile times are
processor times in a fresh process with an empty cache.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import partial

import numpy as np

from measuring import Row, command, graded_rows, seconds, table
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
    ("first OrdinalPA().fit, dense float64, nothing compiled yet", 3.0),
    ("then OrdinalPA().fit on sparse rows", 2.5),
    ("then OrdinalPA().fit on float32 rows", 2.5),
    ("then KernelOrdinalPA().fit", 4.0),
    ("then KernelOrdinalPA(budget=20).fit", 4.0),
)


def compiling(repeats: int, anew: bool) -> list[Row]:
    """Processor time of the first fits in a process, with an empty cache if ``anew``."""
    measured = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as cache:
            environment = os.environ | ({"NUMBA_CACHE_DIR": cache} if anew else {})
            fits = [sys.executable, "-c", FITS]
            printed = subprocess.check_output(fits, env=environment, text=True)
        measured.append([float(line) for line in printed.split()])
    medians = np.median(measured, axis=0).tolist()
    return [
        Row.at_most(work, seconds, target, " s")
        for (work, target), seconds in zip(WORK, medians, strict=True)
    ]


def one_row(n_support: int, repeats: int) -> list[Row]:
    """Time of partial_fit on one new row, for a kernel model with many support vectors."""
    X, ranks = graded_rows(30 * n_support, 8, 5)
    model = KernelOrdinalPA(gamma=0.1).partial_fit(X[:1], ranks[:1], classes=[1, 2, 3, 4, 5])
    start = 1
    while missing := n_support - model.dual_coef_.size:
        model.partial_fit(X[start : start + missing], ranks[start : start + missing])
        start += missing
    took = [
        1000 * seconds(partial(model.partial_fit, X[row : row + 1], ranks[row : row + 1]))
        for row in range(start, start + repeats)
    ]
    work = f"KernelOrdinalPA.partial_fit on one row with {n_support} support vectors"
    return [Row.at_most(work, float(np.median(took)), 0.2, " ms")]


def run(scale: float = 1.0) -> list[Row]:
    """All rows; with a scale below 1 each is measured once, as a check that it still runs."""
    full = scale >= 1
    sizes = (2000, 200) if full else (20, 5)
    return compiling(5 if full else 1, anew=full) + one_row(*sizes)


if __name__ == "__main__":
    command(lambda scale: table(run(scale), "Compile time, and learning a single row"), __doc__)
