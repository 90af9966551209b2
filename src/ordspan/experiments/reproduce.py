"""Load data sets, run the experiments, and write figures and report to a folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from ordspan import data
from ordspan.data import Dataset, DataUnavailable
from ordspan.experiments.claims import write_claims
from ordspan.experiments.figures import figure1, figure2
from ordspan.experiments.report import write_report
from ordspan.experiments.summary import write_summary
from ordspan.experiments.table import Results, read_table
from ordspan.models.atomic import write_atomically

PAPER = ("california", "abalone", "parkinson", "mslr")


def load_datasets(
    names: Sequence[str] | None, data_dir: Path | None
) -> tuple[tuple[Dataset, ...], dict[str, str]]:
    """Load the available data sets, and report how to get the others.

    Parameters
    ----------
    names : sequence of str or None
        Data sets; None means the paper's four.
    data_dir : Path or None
        Folder to look in first.

    Returns
    -------
    datasets, unavailable
    """
    found: list[Dataset] = []
    missing: dict[str, str] = {}
    for name in PAPER if names is None else names:
        try:
            found.append(data.load_dataset(name, data_dir))
        except DataUnavailable as reason:
            missing[name] = f"{reason.reason}; {reason.way_to_get_it}"
    return tuple(found), missing


def write_outputs(folder: Path, seconds: float | None = None) -> Results:
    """Write summary, figures, claims and report from the results table of a folder.

    Parameters
    ----------
    folder : Path
        Contains ``results.parquet``; everything else is written there.
    seconds : float, optional
        How long the run took; by default, the value of an earlier call.
    """
    table = folder / "results.parquet"
    if not table.exists():
        raise FileNotFoundError(f"{folder} has no results.parquet; run ordspan reproduce first")
    results = Results(read_table(table))
    note = folder / "seconds.json"
    if seconds is not None:
        write_atomically(note, json.dumps(round(seconds, 2)).encode())
    elif note.exists():
        seconds = json.loads(note.read_text(encoding="utf-8"))
    write_summary(results, folder / "summary.csv")
    write_claims(results, folder / "claims.md")
    figure1(results, folder)
    figure2(results, folder)
    write_report(results, folder, seconds=seconds)
    return results
