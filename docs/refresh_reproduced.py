"""Puts the outcome of `ordspan reproduce` into docs/measured, so that a build needs no data.

ordspan reproduce --data-dir DATA --out RESULTS
python docs/refresh_reproduced.py RESULTS
"""

import csv
import os
import platform
import shutil
import sys
from datetime import date
from pathlib import Path

import numpy as np
from PIL import Image

import ordspan

PAGES = Path(__file__).parent / "measured"
WIDTH = 1600
COLOURS = 64


def mean_errors(summary: Path) -> str:
    """The final errors as a Markdown table: a line for each data set and labelling."""
    with summary.open() as lines:
        rows = list(csv.DictReader(lines))
    algorithms = list(dict.fromkeys(row["algorithm"] for row in rows))
    groups = dict.fromkeys((row["dataset"], row["labels"]) for row in rows)
    found = {(row["dataset"], row["labels"], row["algorithm"]): row for row in rows}
    table = [
        f"| data set | ranges | {' | '.join(algorithms)} |",
        "|---" * (2 + len(algorithms)) + "|",
    ]
    for dataset, labels in groups:
        cells = [error_cell(found[dataset, labels, name]) for name in algorithms]
        table.append(f"| {dataset} | {labels} % | {' | '.join(cells)} |")
    return "\n".join(table) + "\n"


def error_cell(row: dict[str, str]) -> str:
    """The error, and in brackets the C it was reached with where there is one."""
    return f"{float(row['mae']):.3f}" + (f" ({float(row['C']):g})" if row["C"] else "")


def circumstances(results: Path) -> str:
    """When, with what and how long."""
    seconds = float((results / "seconds.json").read_text())
    parts = (
        f"Python {platform.python_version()}, ordspan {ordspan.__version__}, numpy {np.__version__}"
    )
    return f"{date.today()}, {os.cpu_count()} cores, {parts}; {seconds:.0f} s.\n"


def shrink(source: Path, target: Path) -> None:
    """A figure small enough to keep with the sources."""
    image = Image.open(source).convert("RGB")
    height = round(image.height * WIDTH / image.width)
    image.resize((WIDTH, height), Image.Resampling.LANCZOS).quantize(COLOURS).save(
        target, optimize=True
    )


def main(results: Path) -> None:
    """Take over the claims, the errors and the figures of a results folder."""
    shutil.copyfile(results / "claims.md", PAGES / "claims.md")
    (PAGES / "reproduced-errors.md").write_text(mean_errors(results / "summary.csv"))
    (PAGES / "reproduced-when.md").write_text(circumstances(results))
    for name in ("figure1.png", "figure2.png"):
        shrink(results / name, PAGES / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
