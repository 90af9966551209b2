"""How fast are the exact updates, compared with a bare loop and with other libraries?

``make bench`` runs this at full size and writes docs/measured/foundation.md; the tests run it at
toy size. Every ratio is measured within one run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import SGDClassifier, SGDRegressor

from measuring import Row, bare_dense, bare_sparse, command, graded_rows, ratio, table
from ordspan import OrdinalPA
from ordspan.learners import LinearLearner

VARIANTS = ("PA", "PA-I", "PA-II")
MSLR_ROWS, MSLR_COLUMNS = 723_412, 136


def pass_of(learner_args: tuple, X: object, ranks: np.ndarray) -> LinearLearner:
    learner = LinearLearner(*learner_args)
    learner.learn_many(X, ranks)
    return learner


def passes(X: Any, ranks: np.ndarray, shape: str, bare: Callable, target: float) -> list[Row]:
    """One pass of each variant, against a bare loop that updates as many rows."""
    (n, d), rows = X.shape, []
    for variant in VARIANTS:
        ours = partial(pass_of, (d, 5, variant), X, ranks)
        rate = ours().n_updates / n
        marks = np.random.default_rng(1).random(n) < rate
        times, took = ratio(ours, partial(bare, marks=marks))
        work = f"{variant}, {n:,} × {d:,}, {shape} ({took / n * 1e9:.0f} ns per row, {rate:.0%} "
        rows.append(Row.at_most(work + "updates): time / bare loop", times, target))
    return rows


def dense_passes(X: np.ndarray, ranks: np.ndarray, target: float) -> list[Row]:
    def bare(marks: np.ndarray) -> None:
        bare_dense(np.zeros(X.shape[1]), X.reshape(-1), marks)

    return passes(X, ranks, "K = 5", bare, target)


def against_sgd(X: np.ndarray, ranks: np.ndarray) -> list[Row]:
    classes = np.arange(1, 6)

    def ours() -> object:
        return OrdinalPA().partial_fit(X, ranks, classes=classes)

    common = {"learning_rate": "pa1", "penalty": None, "shuffle": False, "max_iter": 1, "tol": None}
    regressor = SGDRegressor(loss="epsilon_insensitive", **common)
    classifier = SGDClassifier(loss="hinge", **common)
    rows = []
    for peer, labels, target in ((regressor, ranks.astype(float), 2.5), (classifier, ranks, 10)):
        times, took = ratio(ours, partial(peer.fit, X, labels))
        work = f"OrdinalPA.partial_fit (averaged, validated), {X.shape[0]:,} × {X.shape[1]} "
        work += f"({took:.2f} s): speed-up over {type(peer).__name__} pa1"
        rows.append(Row.at_least(work, 1 / times, target))
    return rows


def sparse_pass(n: int, d: int, stored: int) -> list[Row]:
    rng = np.random.default_rng(2)
    columns = rng.integers(d, size=n * stored).astype(np.int32)
    starts = np.arange(0, n * stored + 1, stored, dtype=np.int32)
    X = sp.csr_array((rng.standard_normal(n * stored), columns, starts), shape=(n, d))
    X.sum_duplicates()
    score = X @ rng.standard_normal(d) + rng.standard_normal(n)
    ranks = np.searchsorted(np.quantile(score, [0.2, 0.4, 0.6, 0.8]), score) + 1

    def bare(marks: np.ndarray) -> None:
        bare_sparse(np.zeros(d), X.data, X.indices, X.indptr, marks)

    return passes(X, ranks, f"CSR, {stored} values per row", bare, 1.6)


def many_classes(n: int, d: int) -> list[Row]:
    data = {k: graded_rows(n, d, k) for k in (5, 100, 1000)}
    rows = []
    for variant, (k, target) in product(("PA-I", "PA-II"), ((100, 4), (1000, 40))):
        ours, few = (partial(pass_of, (d, K, variant), *data[K]) for K in (k, 5))
        times, took = ratio(ours, few)
        work = f"{variant}, {n:,} × {d}, K = {k} ({took / n * 1e9:.0f} ns per row): time / K = 5"
        rows.append(Row.at_most(work, times, target))
    return rows


def one_at_a_time(n: int, d: int) -> list[Row]:
    try:
        from river.linear_model import PARegressor
    except ImportError:
        print("river is not installed (pip install 'ordspan[river]'): skipping its row")
        return []
    X, ranks = graded_rows(n, d, 5)
    arrays = [(x, int(rank)) for x, rank in zip(X, ranks, strict=True)]
    dicts = [({j: float(v) for j, v in enumerate(x)}, rank) for x, rank in arrays]
    learner, peer = LinearLearner(d, 5), PARegressor(C=0.1, mode=1)

    def ours() -> None:
        for x, rank in arrays:
            learner.learn_one(x, rank)

    def theirs() -> None:
        for x, rank in dicts:
            peer.learn_one(x, rank)

    times, took = ratio(ours, theirs)
    work = f"learn_one, d = {d} ({took / n * 1e9:.0f} ns per call): speed-up over river PARegressor"
    return [Row.at_least(work, 1 / times, 8)]


def run(scale: float = 1.0) -> list[Row]:
    """All rows; a scale below 1 shrinks the data, as a check that it still runs."""
    n, few = max(500, int(MSLR_ROWS * scale)), max(500, int(200_000 * scale))
    wide = graded_rows(n, MSLR_COLUMNS, 5)
    rows = dense_passes(*wide, target=1.6)
    rows += against_sgd(*wide)
    del wide
    rows += dense_passes(*graded_rows(n, 8, 5), target=5)
    rows += sparse_pass(few, max(1000, int(100_000 * scale)), 50)
    rows += many_classes(few, 20)
    return rows + one_at_a_time(max(500, int(20_000 * scale)), 8)


if __name__ == "__main__":
    command(lambda scale: table(run(scale), "Speed of the foundation"), __doc__)
