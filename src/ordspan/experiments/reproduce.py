"""Load the data sets, and write everything that is made from the results to a folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ordspan.datasets import Dataset, DataUnavailable, load_dataset
from ordspan.experiments.claims import Claim, claims_text, make_claims
from ordspan.experiments.figures import write_figures
from ordspan.experiments.report import report_page
from ordspan.experiments.results import Results, SummaryRow, write_summary
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
            found.append(load_dataset(name, data_dir))
        except DataUnavailable as reason:
            missing[name] = f"{reason.reason}; {reason.way_to_get_it}"
    return tuple(found), missing


class Outcome(NamedTuple):
    """The results of a folder, and what was made from them."""

    results: Results
    summary: list[SummaryRow]
    claims: list[Claim]


def write_outputs(folder: Path, seconds: float | None = None) -> Outcome:
    """Write summary, figures, claims and page from the table of results of a folder.

    Parameters
    ----------
    folder : Path
        Contains ``results.npz``; everything else is written there.
    seconds : float, optional
        How long the run took; by default, the value of an earlier call.
    """
    table, note = folder / "results.npz", folder / "seconds.json"
    if not table.exists():
        raise FileNotFoundError(f"{folder} has no results.npz; run ordspan reproduce first")
    results = Results.load(table)
    if seconds is not None:
        write_atomically(note, json.dumps(round(seconds, 2)).encode())
    elif note.exists():
        seconds = json.loads(note.read_text(encoding="utf-8"))
    summary, claims = results.summary(), make_claims(results)
    write_summary(summary, folder / "summary.csv")
    write_figures(results, folder)
    texts = {
        "claims.md": claims_text(claims, results.settings),
        "report.html": report_page(results, claims, summary, seconds),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    return Outcome(results, summary, claims)
