"""How does ordspan compare with other libraries, on exact labels, on ranges, and by probabilities?

``make peers`` runs this at full size and writes docs/measured/peers.csv; the tests run it at toy
size. Every row is saved at once, and ``--add`` goes on where an interrupted run stopped.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ordspan.datasets import Dataset, DataUnavailable
from peers.measure import EXACT, EXACT_PART, INTERVALS, MIDDLES, Cell, described, measure
from peers.methods import BY_NAME
from peers.sets import JUDGEMENTS, UNSEEN, load

DATASETS = ("california", "abalone", "parkinson", "mslr", *JUDGEMENTS, *UNSEEN, "income")
LABELS = (0, 50, 75, 100)  # per cent of the training labels that are made ranges
RECIPES = ("paper", "symmetric", "surveys")  # how; the second with 100 % only, the third: income
ROWS, SPLITS, REPEATS = 1000, 5, 2
CAP = 10.0  # seconds of processor time that tuning, fit and predictions of one fold may take
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
SCORES = [f"{name}{sd}" for name in ("mae", "macro_mae", "kappa", "rps") for sd in ("", "_sd")]
KEY = list(Cell._fields)
COLUMNS = [*KEY, "rows", "folds", "status", *SCORES, "fit_seconds", "predict_seconds"]
COLUMNS += ["setting", "package", "date"]


def available(names: Iterable[str], rows: int, data_dir: str | None) -> dict[str, Dataset]:
    """The data sets that can be had, cut to so many rows."""
    found = {}
    for name in names:
        try:
            found[name] = load(name, rows, data_dir)
        except DataUnavailable as reason:
            print(f"left out: {reason}")
    return found


def cells(datasets: Iterable[str], labels: Iterable[int], methods: Iterable[str]) -> Iterator[Cell]:
    """All rows of the table whose package is here; a baseline sees exact labels only.

    The labels of people are ranges; their exact part would be those of one survey.
    """
    installed = [name for name in methods if not BY_NAME[name].missing]
    for dataset, percent, name, recipe in product(datasets, labels, installed, RECIPES):
        fits = (recipe == "surveys") == (dataset == "income")
        fits = fits and (recipe == "paper" or percent == 100)
        if fits and (percent == 0 or not BY_NAME[name].baseline):
            for given in ways(percent, BY_NAME[name].reads_intervals):
                yield Cell(dataset, percent, given, name, recipe)


def ways(labels: int, reads_intervals: bool) -> tuple[str, ...]:
    """How a method can be given labels; where all are ranges, no exact part is left."""
    if labels == 0:
        return (EXACT,)
    if reads_intervals:
        return (INTERVALS,)
    return (MIDDLES, EXACT_PART) if labels < 100 else (MIDDLES,)


def work(pipe: Connection, cell: Cell, dataset: Dataset, splits: int, repeats: int) -> None:
    """Send the row of a cell, or end with the processor time of a fold.

    A peer deep in compiled code hears no Python signal; the system's own it cannot miss.
    """

    def begin_fold() -> None:
        signal.setitimer(signal.ITIMER_PROF, CAP)

    try:
        pipe.send(measure(cell, dataset, splits, repeats, begin_fold))
    except Exception as fault:  # a peer may fail in any way; the table tells it
        pipe.send(" ".join(f"failed: {type(fault).__name__} {fault}".split())[:120])


def in_own_process(cell: Cell, dataset: Dataset, splits: int, repeats: int) -> dict[str, Any]:
    """The row of a cell, measured in a process that may be ended."""
    repeats = repeats if cell.labels == 0 else 1
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=work, args=(theirs, cell, dataset, splits, repeats))
    process.start()
    theirs.close()
    try:
        answer = ours.recv()
    except EOFError:
        process.join()
        late = process.exitcode == -signal.SIGPROF
        answer = "did not finish" if late else f"failed: exit code {process.exitcode}"
    process.join()
    if isinstance(answer, str):
        return described(cell, dataset, splits * repeats, answer)
    return answer


def compare(
    datasets: dict[str, Dataset],
    labels: Iterable[int] = LABELS,
    methods: Iterable[str] = tuple(BY_NAME),
    splits: int = SPLITS,
    repeats: int = REPEATS,
    jobs: int = 1,
    table: pd.DataFrame | None = None,
    keep: Callable[[pd.DataFrame], object] = lambda table: None,
) -> pd.DataFrame:
    """Measure the cells that the table lacks; ``keep`` is given the table after each."""
    for name in ONE_THREAD:
        os.environ[name] = "1"  # processor time counts every thread
    rows = [] if table is None else table.to_dict("records")
    done = {tuple(row[name] for name in KEY) for row in rows}
    wanted = list(cells(datasets, labels, methods))
    todo = [cell for cell in wanted if tuple(cell) not in done]

    def measured(cell: Cell) -> dict[str, Any]:
        return in_own_process(cell, datasets[cell.dataset], splits, repeats)

    with ThreadPoolExecutor(jobs) as pool:
        for number, row in enumerate(pool.map(measured, todo), 1):
            rows.append(row)
            keep(pd.DataFrame(rows, columns=COLUMNS))
            print(f"{number}/{len(todo)}", *(row[name] for name in [*KEY, "status"]), sep=", ")
    order = {tuple(cell): place for place, cell in enumerate(wanted)}
    rows.sort(key=lambda row: order.get(tuple(row[name] for name in KEY), len(order)))
    return pd.DataFrame(rows, columns=COLUMNS)


def write(table: pd.DataFrame, path: Path) -> None:
    """Replace the file at once, so that a kill costs no row."""
    part = path.with_suffix(".part")
    table.to_csv(part, index=False, float_format="%.5g")
    part.replace(path)


def mean_ranks(table: pd.DataFrame) -> str:
    """Mean rank by MAE over the data sets, a column for each share of ranges; 1 is best.

    A method that did not finish shares the last rank.
    """
    table = table[[not BY_NAME[name].baseline for name in table.method]].fillna({"mae": np.inf})
    ranks = table.groupby(["dataset", "labels", "recipe"]).mae.rank()
    kinds = table.labels.astype(str) + " % " + table.recipe
    table = table.assign(rank=ranks, labels=kinds)
    return table.pivot_table("rank", ["method", "given"], "labels", sort=False).to_string(
        float_format="{:.1f}".format, na_rep=""
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--save", type=Path, help="write the table to this CSV file")
    parser.add_argument("--add", action="store_true", help="keep its rows, run what it lacks")
    parser.add_argument("--rows", type=int, default=ROWS, help="most rows of a data set")
    parser.add_argument("--jobs", type=int, default=2, help="processes, one thread each")
    parser.add_argument("--data-dir", help="folder with the data; left out, ORDSPAN_DATA if set")
    options = parser.parse_args()
    if options.add and not options.save:
        parser.error("--add needs --save FILE, where the table is")
    saved = pd.read_csv(options.save) if options.add else None
    datasets = available(DATASETS, options.rows, options.data_dir)

    def keep(table: pd.DataFrame) -> None:
        if options.save:
            write(table, options.save)

    table = compare(datasets, jobs=options.jobs, table=saved, keep=keep)
    keep(table)
    for unseen in (False, True):
        print(mean_ranks(table[table.dataset.isin(UNSEEN) == unseen]))


if __name__ == "__main__":
    main()
