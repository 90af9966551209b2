"""How fast is a trial with B support vectors, compared with a bare loop?

``make bench`` writes docs/measured/kernel.md; the tests run it at toy size. The bare loop is a
compiled loop that computes B rbf values and their weighted sum and nothing else.
"""

from __future__ import annotations

from functools import partial
from math import exp

import numpy as np
from numba import njit

from measuring import (
    FAST,
    Row,
    command,
    graded_rows,
    in_fresh_process,
    megabytes_in_use,
    ratio,
    seconds,
    table,
)
from ordspan.learners import KernelLearner

WIDTH, N_CLASSES, GAMMA = 8, 5, 0.1


@njit(cache=True, fastmath=FAST)
def bare_plain(support, coefs, X):
    """B rbf values and their weighted sum for every row, written the obvious way."""
    total = 0.0
    for i in range(X.shape[0]):
        for b in range(support.shape[0]):
            away = 0.0
            for j in range(support.shape[1]):
                away += (support[b, j] - X[i, j]) ** 2
            total += coefs[b] * exp(-GAMMA * away)
    return total


def learner_with(n_support: int, **options: object) -> KernelLearner:
    """A learner with this many support vectors."""
    X, ranks = graded_rows(30 * n_support, WIDTH, N_CLASSES)
    learner, start = KernelLearner(WIDTH, N_CLASSES, gamma=GAMMA, **options), 0
    while step := n_support - learner.n_support:
        learner.learn_many(X[start : start + step], ranks[start : start + step])
        start += step
    return learner


def against_bare(what: str, learner: KernelLearner, X: np.ndarray, ranks: np.ndarray) -> Row:
    """Time of a trial relative to the bare loop with the same support vectors."""
    support, coefs = learner.support_vectors, learner.dual_coef
    times, took = ratio(
        partial(learner.learn_many, X, ranks), partial(bare_plain, support, coefs, X)
    )
    work = f"a trial {what} ({took / len(X) * 1e9:.0f} ns): time / plain bare loop"
    return Row.at_most(work, times, 1.5)


def trials(n_support: int, n_trials: int) -> Row:
    """Trials that keep the number of support vectors: the rows are the support vectors again."""
    learner, passes = learner_with(n_support), max(1, n_trials // n_support)
    ranks = np.random.default_rng(1).integers(1, N_CLASSES + 1, n_support)
    X, labels = np.tile(learner.support_vectors, (passes, 1)), np.tile(ranks, passes)
    return against_bare(f"with {n_support} support vectors, d = {WIDTH}", learner, X, labels)


def budgeted_trials(n_support: int, n_trials: int) -> list[Row]:
    """New rows on a full budget: nearly every trial adds a support vector and removes another."""
    rows, data = [], graded_rows(n_trials, WIDTH, N_CLASSES, seed=2)
    for mean in ("", ", averaged"):
        learner = learner_with(n_support, average=bool(mean), budget=n_support)
        what = f"on a full budget of {n_support}, nearest{mean}"
        rows.append(against_bare(what, learner, *data))
    return rows


def _stream(n: int, budget: int) -> tuple[float, float, float]:
    """Learn n rows, generated in portions; slowdown, growth of memory, and total time."""
    portion = max(1, n // 20)
    learner = KernelLearner(WIDTH, N_CLASSES, gamma=GAMMA, average=True, budget=budget)
    took = []
    for number in range(20):
        X, ranks = graded_rows(portion, WIDTH, N_CLASSES, seed=number)
        took.append(seconds(partial(learner.learn_many, X, ranks)))
        if number == 1:  # the budget is full, and everything is compiled
            before = megabytes_in_use()
    assert learner.n_support <= budget
    return np.median(took[-5:]) / np.median(took[1:6]), megabytes_in_use() - before, sum(took)


def long_stream(n: int, budget: int) -> list[Row]:
    slower, extra, took = in_fresh_process(_stream, n, budget)
    work = f"a stream of {n:,} rows, budget {budget} ({took:.1f} s): "
    return [
        Row.at_most(work + "time of the last rows / the first", slower, 1.2),
        Row.at_most(work + "growth of memory after the first tenth", extra, 20, " MB"),
    ]


def run(scale: float = 1.0) -> list[Row]:
    """All rows; a scale below 1 shrinks the data, as a check that it still runs."""
    n_trials = max(200, int(20_000 * scale))
    sizes = (100, 500, 2000) if scale >= 1 else (20,)
    rows = [trials(n_support, n_trials) for n_support in sizes]
    for n_support in sizes:
        rows += budgeted_trials(n_support, n_trials)
    return rows + long_stream(max(2000, int(1_000_000 * scale)), max(10, int(100 * scale)))


if __name__ == "__main__":
    command(lambda scale: table(run(scale), "Speed of the kernel trick"), __doc__)
