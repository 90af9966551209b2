"""How fast is a trial with B support vectors, compared with a bare loop and with NumPy?

``make bench`` writes docs/measured/kernel.md; the tests run it at toy size. Every ratio is
measured within one run. A bare loop is a compiled loop that computes B rbf values and their
weighted sum and nothing else. There are two: the plain one, with the exp of the C library; and the
fastest one we know, with the support vectors side by side and a vectorised exp.
"""

from __future__ import annotations

from math import exp

import numpy as np
from numba import njit

from measuring import (
    FAST,
    Row,
    command,
    forget_peak,
    graded_rows,
    in_fresh_process,
    peak_megabytes,
    ratio,
    seconds,
    table,
)
from ordspan.core.kernels import LANES, rbf_values
from ordspan.learners import KernelLearner
from ordspan.learners.kernel import aligned_zeros

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


@njit(fastmath=FAST)  # not cached: it calls a function of another file
def bare_fast(blocks, coefs, X):
    """The same, block by block."""
    total, values = 0.0, np.empty(LANES)
    for i in range(X.shape[0]):
        for b in range(blocks.shape[0]):
            weights = coefs[b * LANES : (b + 1) * LANES]
            rbf_values(blocks[b], X[i], GAMMA, values)
            for lane in range(weights.size):
                total += weights[lane] * values[lane]
    return total


def in_blocks(support: np.ndarray) -> np.ndarray:
    n_blocks = -(-len(support) // LANES)
    flat = np.zeros((n_blocks * LANES, support.shape[1]))
    flat[: len(support)] = support
    blocks = aligned_zeros(n_blocks, support.shape[1], LANES)
    blocks[...] = flat.reshape(n_blocks, LANES, -1).transpose(0, 2, 1)
    return blocks


def learner_with(n_support: int, **options: object) -> tuple[KernelLearner, np.ndarray, np.ndarray]:
    """A learner with this many support vectors, the vectors, and labels for them."""
    X, ranks = graded_rows(30 * n_support, WIDTH, N_CLASSES)
    learner = KernelLearner(WIDTH, N_CLASSES, gamma=GAMMA, **options)
    start = 0
    while learner.n_support < n_support:
        step = n_support - learner.n_support
        learner.learn_many(X[start : start + step], ranks[start : start + step])
        start += step
    rng = np.random.default_rng(1)
    return learner, learner.support_vectors, rng.integers(1, N_CLASSES + 1, n_support)


def trials(n_support: int, n_trials: int) -> list[Row]:
    """Trials that keep the number of support vectors: the rows are the support vectors again."""
    learner, support, ranks = learner_with(n_support)
    passes = max(1, n_trials // n_support)
    X, labels = np.tile(support, (passes, 1)), np.tile(ranks, passes)
    coefs, blocks = learner.dual_coef, in_blocks(support)

    def ours() -> None:
        learner.learn_many(X, labels)

    rows = []
    for name, loop in (
        ("plain bare loop", lambda: bare_plain(support, coefs, X)),
        ("fastest bare loop", lambda: bare_fast(blocks, coefs, X)),
    ):
        times, took = ratio(ours, loop)
        work = f"a trial with {n_support} support vectors, d = {WIDTH} "
        work += f"({took / len(X) * 1e9:.0f} ns): time / {name}"
        rows.append(Row.at_most(work, times, 1.5))
    assert learner.n_support == n_support
    return rows


def budgeted_trials(n_support: int, n_trials: int) -> list[Row]:
    """New rows on a full budget: nearly every trial adds a support vector and removes another."""
    X, ranks = graded_rows(n_trials, WIDTH, N_CLASSES, seed=2)
    rows = []
    for average in (False, True):
        learner, support, _ = learner_with(n_support, average=average, budget=n_support)
        coefs = learner.dual_coef
        times, took = ratio(
            lambda learner=learner: learner.learn_many(X, ranks),
            lambda support=support, coefs=coefs: bare_plain(support, coefs, X),
        )
        mean = ", averaged" if average else ""
        work = f"a trial on a full budget of {n_support}, nearest{mean} "
        work += f"({took / len(X) * 1e9:.0f} ns): time / plain bare loop"
        rows.append(Row.at_most(work, times, 1.5))
    return rows


def numpy_prank(X: np.ndarray, ranks: np.ndarray) -> int:
    """Kernel PRank (Crammer & Singer, 2001) in plain NumPy; returns the number of mistakes."""
    support, coefs = np.empty_like(X), np.empty(len(X))
    theta, n_support = np.zeros(N_CLASSES - 1), 0
    for x, rank in zip(X, ranks, strict=True):
        away = np.sum((support[:n_support] - x) ** 2, axis=1)
        score = np.exp(-GAMMA * away) @ coefs[:n_support]
        if 1 + np.sum(score >= theta) == rank:
            continue
        side = np.where(np.arange(1, N_CLASSES) < rank, 1.0, -1.0)
        move = np.where(side * (score - theta) <= 0, side, 0.0)
        theta -= move
        support[n_support], coefs[n_support] = x, move.sum()
        n_support += 1
    return n_support


def against_numpy(n: int) -> list[Row]:
    X, ranks = graded_rows(n, WIDTH, N_CLASSES, seed=3)
    rows = []
    for budget in (None, 100):
        made = []

        def ours(budget: int | None = budget, made: list[KernelLearner] = made) -> None:
            learner = KernelLearner(WIDTH, N_CLASSES, gamma=GAMMA, budget=budget)
            learner.learn_many(X, ranks)
            made[:] = [learner]

        times, took = ratio(ours, lambda: numpy_prank(X, ranks), repeats=3)
        kept = f"budget {budget}" if budget else "no budget"
        work = (
            f"{n:,} rows, {kept} ({made[0].n_support} support vectors at the end, {took:.3f} s): "
        )
        work += f"speed-up over kernel PRank in NumPy ({numpy_prank(X, ranks)} support vectors)"
        rows.append(Row.at_least(work, 1 / times, 20))
    return rows


def _stream(n: int, budget: int, answer: object) -> None:
    """Learn n rows, generated in portions; slowdown, growth of memory, and total time."""
    portion = max(1, n // 20)
    learner = KernelLearner(WIDTH, N_CLASSES, gamma=GAMMA, average=True, budget=budget)
    took = []
    for number in range(20):
        X, ranks = graded_rows(portion, WIDTH, N_CLASSES, seed=number)
        took.append(seconds(lambda X=X, ranks=ranks: learner.learn_many(X, ranks)))
        if number == 1:  # the budget is full, and everything is compiled
            forget_peak()
            before = peak_megabytes()
    assert learner.n_support <= budget
    answer.put((np.median(took[-5:]) / np.median(took[1:6]), peak_megabytes() - before, sum(took)))


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
    rows = []
    for n_support in sizes:
        rows += trials(n_support, n_trials)
    for n_support in sizes:
        rows += budgeted_trials(n_support, n_trials)
    rows += against_numpy(max(200, int(5000 * scale)))
    return rows + long_stream(max(2000, int(1_000_000 * scale)), max(10, int(100 * scale)))


NOTE = """
The plain bare loop is written the obvious way; the fastest shows how much could still be gained.
Both have the same target.
"""


if __name__ == "__main__":
    command(lambda scale: table(run(scale), "Speed of the kernel trick") + NOTE, __doc__)
