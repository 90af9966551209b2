"""The summary of a results table: final errors of every curve."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ordspan.experiments.table import Cell, Results


class SummaryRow(NamedTuple):
    """Final errors of one curve; the fields are the columns of summary.csv."""

    dataset: str
    labels: int  # per cent of interval labels
    algorithm: str
    C: float | None
    mae: float  # against exact labels, mean over runs
    sem: float  # standard error of mae; nan with a single run
    interval_mae: float  # against the labels it was trained on
    trials: int
    runs: int
    hindsight_ratio: float | None  # mae relative to the best fixed ranker, on its runs


def cells(results: Results) -> list[Cell]:
    """All cells of the table, ordered by data set, fraction and algorithm."""
    grid = (
        Cell(dataset, labels, algorithm)
        for dataset in results.datasets
        for labels in results.labels
        for algorithm in results.algorithms
    )
    return [cell for cell in grid if cell in results]


def summary_rows(results: Results) -> list[SummaryRow]:
    """Final errors of every cell, in the order of `cells`.

    Parameters
    ----------
    results : Results

    Returns
    -------
    list of SummaryRow
    """
    return [_row(results, cell) for cell in cells(results)]


def write_summary(results: Results, path: Path) -> Path:
    """Write the summary as a CSV file.

    Parameters
    ----------
    results : Results
    path : Path
        The file to write, usually ``summary.csv``.

    Returns
    -------
    Path
        The file written.
    """
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(SummaryRow._fields)
        writer.writerows([_text(value) for value in row] for row in summary_rows(results))
    return Path(path)


def _row(results: Results, cell: Cell) -> SummaryRow:
    final = results.final(cell)
    runs, trials = results.errors(cell).shape
    # a single run has no spread, and zero would look like certainty
    sem = float(final.std(ddof=1) / np.sqrt(runs)) if runs > 1 else float("nan")
    interval_mae = float(results.final(cell, interval=True).mean())
    C = results.aggressiveness(cell)
    ratio = results.hindsight_ratio(cell)
    return SummaryRow(*cell, C, float(final.mean()), sem, interval_mae, trials, runs, ratio)


def _text(value: str | float | None) -> str:
    if isinstance(value, float):
        return f"{value:.9g}"
    return "" if value is None else str(value)
