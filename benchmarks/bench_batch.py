"""How fast is the batch optimum, compared with LIBLINEAR on replicated rows and with mord?

``make bench`` runs this at full size and writes docs/measured/batch.md; the tests run it at toy
size. Times are compared only at equal objectives.
"""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from measuring import Row, command, graded_rows, ratio, table
from ordspan import OrdinalSVM
from ordspan.learners import LinearLearner

GAP = 1e-3


def replicated(X: np.ndarray, ranks: np.ndarray, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """One copy of each row per threshold, with an extra column for each threshold."""
    d = X.shape[1]
    rows = np.zeros((len(X) * (n_classes - 1), d + n_classes - 1))
    signs = np.empty(len(rows), dtype=np.int64)
    for i in range(1, n_classes):
        part = slice((i - 1) * len(X), i * len(X))
        rows[part, :d] = X
        rows[part, d + i - 1] = -1.0
        signs[part] = np.where(i < ranks, 1, -1)
    return rows, signs


def value(v: np.ndarray, rows: np.ndarray, signs: np.ndarray, C: float) -> float:
    return 0.5 * v @ v + C * np.maximum(0.0, 1.0 - signs * (rows @ v)).sum()


def liblinear_to(goal: float, rows: np.ndarray, signs: np.ndarray, C: float) -> LinearSVC:
    """The loosest LinearSVC whose objective is no worse than the goal."""
    for tol in (1.0, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4):
        model = LinearSVC(loss="hinge", C=C, tol=tol, fit_intercept=False, max_iter=10_000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(rows, signs)
        if value(model.coef_[0], rows, signs, C) <= goal:
            return model
    return model


def against_liblinear(n: int) -> list[Row]:
    X, ranks = graded_rows(n, 20, 5)
    out = []
    for C in (0.001, 0.01, 0.1, 1.0):
        ours = OrdinalSVM(C, loss="hinge", tol=GAP).fit(X, ranks)
        rows, signs = replicated(X, ranks, 5)
        peer = liblinear_to(ours.primal_value_ * (1 + GAP), rows, signs, C)
        theirs = value(peer.coef_[0], rows, signs, C)

        def their_work(peer: LinearSVC = peer) -> None:
            peer.fit(*replicated(X, ranks, 5))

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            times, took = ratio(lambda ours=ours: ours.fit(X, ranks), their_work)
        work = f"OrdinalSVM, {n:,} × 20, K = 5, C = {C:g}, gap {GAP:g} ({took * 1e3:.0f} ms, "
        work += f"objective {ours.primal_value_:.5g}; LinearSVC tol {peer.tol:g}: {theirs:.5g}): "
        work += "speed-up over LinearSVC on replicated rows"
        out.append(Row.at_least(work, 1 / times, 5))
    return out


def against_mord(n: int) -> list[Row]:
    try:
        from mord import LogisticAT
    except ImportError:
        print("mord is not installed (pip install mord): skipping its rows")
        return []
    X, ranks = graded_rows(2 * n, 20, 5)
    train, test = slice(0, n), slice(n, None)
    rows = []
    for loss, tol in product(("hinge", "squared_hinge"), (GAP, 1e-2)):
        ours, peer = OrdinalSVM(loss=loss, tol=tol), LogisticAT()
        times, took = ratio(
            lambda ours=ours: ours.fit(X[train], ranks[train]),
            lambda peer=peer: peer.fit(X[train], ranks[train]),
        )
        errors = [np.abs(m.predict(X[test]) - ranks[test]).mean() for m in (ours, peer)]
        work = f"OrdinalSVM, {loss}, {n:,} × 20, K = 5, gap {tol:g} ({took * 1e3:.0f} ms): "
        rows += [
            Row.at_least(work + "speed-up over mord.LogisticAT", 1 / times, 5),
            Row.at_most(work + "test MAE / mord.LogisticAT's", errors[0] / errors[1], 1.01),
        ]
    return rows


def against_one_pass(n: int, d: int) -> list[Row]:
    X, ranks = graded_rows(n, d, 5)
    model = OrdinalSVM(loss="hinge", tol=1e-2)

    def one_pass() -> None:
        LinearLearner(d, 5).learn_many(X, ranks)

    times, took = ratio(lambda: model.fit(X, ranks), one_pass)
    work = f"OrdinalSVM, {n:,} × {d}, K = 5, C = {model.C:g}, gap 1e-2 ({took:.1f} s, "
    work += f"{model.n_iter_} sweeps): time / one online pass"
    return [Row.at_most(work, times, 30)]


def run(scale: float = 1.0) -> list[Row]:
    n = max(400, int(20_000 * scale))
    rows = against_liblinear(n) + against_mord(n)
    return rows + against_one_pass(max(400, int(723_412 * scale)), 136)


if __name__ == "__main__":
    command(lambda scale: table(run(scale), "Speed of the batch optimum"), __doc__)
