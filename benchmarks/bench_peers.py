"""How does ordspan compare with other libraries, everything at its defaults?

``make peers`` runs this at full size and writes docs/measured/peers.csv and the tables in peers.md
beside it; the tests run it at toy size. Every row is saved at once, and ``--add`` goes on where an
interrupted run stopped.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from itertools import product
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from ordspan import CalibratedOrdinal, coarsen, metrics
from ordspan.datasets import Dataset, DataUnavailable
from peers.adapters import SEED
from peers.methods import BY_NAME, Method
from peers.sets import JUDGEMENTS, UNSEEN, RangeSet, load

DATASETS = ("california", "abalone", "parkinson", "mslr", *JUDGEMENTS, *UNSEEN, "income")
LABELS = ("exact", "75 % ranges", "100 % ranges", "symmetric ranges", "brackets of people")
"""Kinds of training labels; the first three by the paper's recipe, the last of income only."""
EXACT, MIDDLES, EXACT_PART = "as they are", "middles", "exact part"
"""How a method is given them."""
FEW_ROWS = 2_000  # sets up to this size are split into five folds, others into three
CAP = 20.0  # seconds of processor time that fit and predictions of one fold may take
LATE = "did not finish"
WARM_UP_ROWS = 60
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Cell(NamedTuple):
    """One row of the table: a method on the labels of a data set."""

    dataset: str
    labels: str
    given: str
    method: str


SCORES = ("mae", "mae_sd", "kappa", "rps", "fit_seconds", "predict_seconds")
COLUMNS = [*Cell._fields, "rows", "status", *SCORES, "package"]


def available(names: Iterable[str], rows: int | None) -> dict[str, Dataset]:
    """The data sets that can be had, whole or cut to so many rows."""
    found = {}
    for name in names:
        try:
            found[name] = load(name, rows)
        except DataUnavailable as reason:
            print(f"left out: {name}: {reason}")
    return found


def cells(datasets: Iterable[str], labels: Iterable[str], methods: Iterable[str]) -> Iterator[Cell]:
    """All rows of the table whose package is here; the constant sees exact labels only."""
    installed = [BY_NAME[name] for name in methods if not BY_NAME[name].missing]
    for dataset, kind, method in product(datasets, labels, installed):
        constant = method.name == "constant" and kind != LABELS[0]
        if (kind == LABELS[-1]) == (dataset == "income") and not constant:
            for given in ways(kind, method):
                yield Cell(dataset, kind, given, method.name)


def ways(labels: str, method: Method) -> tuple[str, ...]:
    """How a method can be given labels; where all are ranges, no exact part is left."""
    if labels == LABELS[0] or method.reads_ranges:
        return (EXACT,)
    return (MIDDLES, EXACT_PART) if labels == LABELS[1] else (MIDDLES,)


class Fold(NamedTuple):
    """Rows to train on with ranges of ranks, and rows to test on, whose labels are mostly exact."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def folds(dataset: Dataset, cell: Cell) -> Iterator[Fold]:
    """The folds, the same for every method; training rows come in random order."""
    n_splits = 5 if len(dataset.ranks) <= FEW_ROWS else 3
    splitter = StratifiedKFold(n_splits, shuffle=True, random_state=SEED)
    share = {LABELS[0]: 0.0, LABELS[1]: 0.75}.get(cell.labels, 1.0)
    recipe = "symmetric" if cell.labels == LABELS[3] else "paper"
    for number, (train, test) in enumerate(splitter.split(dataset.X, dataset.ranks)):
        rng = np.random.default_rng([SEED, number])
        train, truth = rng.permutation(train), dataset.ranks[test]
        if isinstance(dataset, RangeSet):
            y, truth = dataset.y[train], dataset.y[test]
        else:
            grades = range(1, dataset.n_classes + 1)
            y = coarsen(
                dataset.ranks[train], share, classes=grades, recipe=recipe, random_state=rng
            )
        if cell.given == EXACT_PART:
            exact = y[:, 0] == y[:, 1]
            train, y = train[exact], y[exact]
        yield Fold(dataset.X[train], y, dataset.X[test], truth)


def measure(cell: Cell, dataset: Dataset, begin_fold: Callable[[], object]) -> dict[str, Any]:
    """Means over the folds; ``begin_fold`` is called before each, for a watch."""
    method, results = BY_NAME[cell.method], []
    with_rps = method.proba and cell.labels == LABELS[0]  # no peer has to be given middles there
    for fold in folds(dataset, cell):
        begin_fold()
        results.append(one_fold(method, dataset.n_classes, fold, with_rps))
    table = pd.DataFrame(results)
    return {**table.mean(), "mae_sd": table.mae.std(ddof=0)}


def one_fold(method: Method, n_classes: int, fold: Fold, with_rps: bool) -> dict[str, float]:
    """Distances on the test rows, and processor time in this thread: every method has one."""
    model, start = method.make(n_classes), time.thread_time()
    model.fit(fold.X, fold.y)
    fitted = time.thread_time()
    predicted = model.predict(fold.X_test)
    found = {"fit_seconds": fitted - start, "predict_seconds": time.thread_time() - fitted}
    grades = range(1, n_classes + 1)
    found["mae"] = metrics.mean_absolute_error(fold.y_test, predicted, classes=grades)
    if fold.y_test.ndim == 1:
        found["kappa"] = metrics.quadratic_weighted_kappa(fold.y_test, predicted, classes=grades)
    if with_rps:
        if method.package == "ordspan":
            signal.setitimer(signal.ITIMER_PROF, 0.0)  # the watch is for fit and predictions
            model = CalibratedOrdinal(clone(model), random_state=SEED).fit(fold.X, fold.y)
        chances = np.zeros((len(fold.X_test), n_classes))
        chances[:, model.classes_ - 1] = model.predict_proba(fold.X_test)
        found["rps"] = metrics.ranked_probability_score(fold.y_test, chances, classes=grades)
    return found


def work(pipe: Connection, some: list[Cell], dataset: Dataset) -> None:
    """Send the scores of some cells of one method, or end with the processor time of a fold.

    A peer deep in compiled code hears no Python signal; the system's own it cannot miss.
    """
    # peers warn of unfinished descents and each other's future; their results tell enough
    warnings.simplefilter("ignore")
    X = dataset.X[:WARM_UP_ROWS, :2]  # imports and compiles, off the clock
    ranks = np.arange(len(X)) % dataset.n_classes + 1
    few = Fold(X, np.column_stack([ranks, ranks]), X, ranks)

    def begin_fold() -> None:
        signal.setitimer(signal.ITIMER_PROF, CAP)

    method = BY_NAME[some[0].method]
    one_fold(method, dataset.n_classes, few, method.proba)
    for cell in some:
        try:
            pipe.send(measure(cell, dataset, begin_fold))
        except Exception as fault:  # a peer may fail in any way; the table tells it
            pipe.send(" ".join(f"failed: {type(fault).__name__} {fault}".split())[:120])


def in_own_process(some: list[Cell], dataset: Dataset) -> list[dict[str, Any]]:
    """The rows of some cells of one method, measured in a process that may be ended.

    After a fold that takes too long the method is not tried on the cells that are left.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=work, args=(theirs, some, dataset))
    process.start()
    theirs.close()
    answers: list[Any] = []
    try:
        while len(answers) < len(some):
            answers.append(ours.recv())
    except EOFError:
        process.join()
        late = process.exitcode == -signal.SIGPROF
        why = LATE if late else f"failed: exit code {process.exitcode}"
        answers += [why] * (len(some) - len(answers))
    process.join()
    return [described(cell, dataset, answer) for cell, answer in zip(some, answers, strict=True)]


def described(cell: Cell, dataset: Dataset, answer: Any) -> dict[str, Any]:
    """The row of a cell: its scores, or why there are none."""
    scores = {"status": answer} if isinstance(answer, str) else {"status": "ok", **answer}
    package = BY_NAME[cell.method].package
    about = {"rows": len(dataset.ranks), "package": f"{package} {version(package)}"}
    return {**cell._asdict(), **about, **scores}


def compare(
    datasets: dict[str, Dataset],
    labels: Iterable[str] = LABELS,
    methods: Iterable[str] = tuple(BY_NAME),
    jobs: int = 1,
    table: pd.DataFrame | None = None,
    keep: Callable[[pd.DataFrame], object] = lambda table: None,
) -> pd.DataFrame:
    """Measure the cells that the table lacks; ``keep`` is given the table as it grows."""
    for name in ONE_THREAD:
        os.environ[name] = "1"  # processor time counts every thread
    rows = [] if table is None else table.to_dict("records")
    done = {tuple(row[name] for name in Cell._fields) for row in rows}
    todo: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells(datasets, labels, methods):
        if tuple(cell) not in done:
            todo.setdefault((cell.dataset, cell.method), []).append(cell)

    def measured(some: list[Cell]) -> list[dict[str, Any]]:
        return in_own_process(some, datasets[some[0].dataset])

    with ThreadPoolExecutor(jobs) as pool:
        for number, found in enumerate(pool.map(measured, todo.values()), 1):
            rows += found
            keep(pd.DataFrame(rows, columns=COLUMNS))
            status = ", ".join(dict.fromkeys(row["status"] for row in found))
            print(f"{number}/{len(todo)}", *found[0].values(), status, sep=", ", flush=True)
    return pd.DataFrame(rows, columns=COLUMNS)


def write(table: pd.DataFrame, path: Path) -> None:
    """Replace the file at once, so that a kill costs no row."""
    part = path.with_suffix(".part")
    table.to_csv(part, index=False, float_format="%.5g")
    part.replace(path)


def mean_ranks(table: pd.DataFrame, score: str = "mae") -> pd.DataFrame:
    """Mean rank over the data sets, a column for each kind of labels; 1 is best.

    Of the two ways to give a method its labels the better one of each set counts, and a method
    that did not finish shares the last rank.
    """
    table = table.fillna({score: np.inf})
    best = table.groupby(["dataset", "labels", "method"], sort=False)[score].min().reset_index()
    best["rank"] = best.groupby(["dataset", "labels"])[score].rank()
    return best.pivot_table("rank", "method", "labels", sort=False)


def page(table: pd.DataFrame) -> str:
    """All tables as Markdown: mean ranks, then MAE of every method on every data set."""
    table = table.assign(entry=(table.method + ", " + table.given).str.removesuffix(f", {EXACT}"))
    with_proba = table.method.map(lambda name: BY_NAME[name].proba)
    exact = table.labels == LABELS[0]
    scores = {
        "MAE": ("mae", table.method != "constant"),
        "RPS, exact labels": ("rps", exact & with_proba),
    }
    sets = {
        "eight sets": ~table.dataset.isin((*UNSEEN, "income")),
        "four unseen sets": table.dataset.isin(UNSEEN),
    }
    parts = {
        f"Mean ranks by {title}, {which}": mean_ranks(table[rows & some], score)
        for (title, (score, rows)), (which, some) in product(scores.items(), sets.items())
    }
    for kind in table.labels.unique():
        some = table[table.labels == kind]
        parts[f"MAE, {kind}"] = some.pivot_table("mae", "entry", "dataset", sort=False)
    some = table[exact]
    for title, column in (("RPS", "rps"), ("Seconds of a fit", "fit_seconds")):
        parts[f"{title}, exact"] = some.pivot_table(column, "method", "dataset", sort=False)
    lines = ["# Against other libraries: all tables", ""]
    lines += ["`make peers` measures these again; [what they say](../peers.md). An empty cell: the"]
    lines += [f"method did not finish a fold within {CAP:g} s of processor time. Packages: "]
    lines += [", ".join(sorted(table.package.unique())) + "."]
    for title, numbers in parts.items():
        lines += ["", f"## {title}", "", markdown(numbers)]
    return "\n".join(lines) + "\n"


def markdown(numbers: pd.DataFrame) -> str:
    """A table, the best of every column bold."""
    lowest = numbers.min()
    rows = [f"| | {' | '.join(map(str, numbers))} |", "|---" * (numbers.shape[1] + 1) + "|"]
    for name, row in numbers.iterrows():
        shown = ["" if pd.isna(value) else f"{value:#.3g}" for value in row]
        bold = [
            f"**{text}**" if v == b else text for text, v, b in zip(shown, row, lowest, strict=True)
        ]
        rows.append(f"| {name} | {' | '.join(bold)} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--save", type=Path, help="write the table to this CSV file")
    parser.add_argument("--add", action="store_true", help="keep its rows, run what it lacks")
    parser.add_argument("--rows", type=int, help="cut every data set to so many rows")
    parser.add_argument("--jobs", type=int, default=2, help="processes, one thread each")
    options = parser.parse_args()
    if options.add and not options.save:
        parser.error("--add needs --save FILE, where the table is")
    saved = pd.read_csv(options.save) if options.add else None
    datasets = available(DATASETS, options.rows)

    def keep(table: pd.DataFrame) -> None:
        if options.save:
            write(table, options.save)

    table = compare(datasets, jobs=options.jobs, table=saved, keep=keep)
    keep(table)
    print(mean_ranks(table).to_string(float_format="{:.1f}".format, na_rep=""))
    if options.save:
        options.save.with_suffix(".md").write_text(page(table))


if __name__ == "__main__":
    main()
