"""Puts the outcome of `ordspan reproduce` into docs/measured, so that a build needs no data.

ordspan reproduce --data-dir DATA --out RESULTS
python docs/refresh_reproduced.py RESULTS
"""

import csv
import os
import platform
import sys
from datetime import date
from pathlib import Path

import numpy as np
from PIL import Image

import ordspan
from ordspan.experiments.claims import (
    FAILS,
    HOLDS,
    NOT_RUN,
    PAPER,
    VERDICTS,
    Claim,
    by_sentence,
    claim_row,
    count_verdicts,
    make_claims,
)
from ordspan.experiments.results import Results

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


def claims_text(claims: list[Claim], settings: dict) -> str:
    """The claims with their verdicts."""
    sources = {name: settings["sources"][name] for name in settings["datasets"]}
    sources |= {name: f"not available. {why}" for name, why in settings["unavailable"].items()}
    groups = list(enumerate(by_sentence(claims), start=1))
    counts = [
        [f"[{number}](#sentence-{number})", group[0].test, *count_verdicts(group).values()]
        for number, group in groups
    ]
    counts.append(["**all**", "", *count_verdicts(claims).values()])
    parts = [
        "# The paper's claims, tested",
        f"This table: {settings['runs']} runs of {settings['trials']} trials; the paper: 100 runs "
        f"of 7000. The paper gives no C; here: {settings['rule']}.",
        PAPER["method"].strip(),
        "\n".join(f"- **{name}**: {text.strip()}" for name, text in PAPER["tests"].items()),
        PAPER["caveats"].strip(),
        "## Data",
        "\n".join(f"- {name}: {text}" for name, text in sources.items()),
        "## Count",
        markdown_table(["sentence", "test", *VERDICTS], counts),
        "Sentence 8 summarises the comparison with PRank and MCP, so its claims repeat tests of "
        "the previous sentences and add combinations that those do not mention.",
        *(group_text(number, group) for number, group in groups),
    ]
    return "\n\n".join(parts) + "\n"


def group_text(number: int, group: list[Claim]) -> str:
    """The claims of one sentence; "does not hold" alone could mean undecided or the opposite."""
    ran = [claim for claim in group if claim.verdict != NOT_RUN]
    failed = [claim for claim in ran if claim.verdict == FAILS]
    better = sum(claim.low > 0 for claim in failed)
    worse = sum(claim.high < 0 for claim in failed)
    kinds = [(better, "the proposed algorithm is better than claimed"), (worse, "it is worse")]
    how = ", ".join(f"{count} × {words}" for count, words in kinds if count)
    others = f" (of the others: {how})" if how else ""
    holding = count_verdicts(group)[HOLDS]
    outcome = f"{holding} of {len(ran)} tested claims hold{others}" if ran else "not run"
    head = ["data set", "labels", "algorithm", "against", "effect", "95 % interval", "verdict"]
    table = markdown_table(head, [claim_row(claim) for claim in group])
    title = f"## Sentence {number}\n\n> {group[0].sentence}"
    return f"{title}\n\nTest: {group[0].test}. Outcome: {outcome}.\n\n{table}"


def markdown_table(head: list[str], rows: list[list]) -> str:
    """A table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def circumstances() -> str:
    """When and with what."""
    parts = (
        f"Python {platform.python_version()}, ordspan {ordspan.__version__}, numpy {np.__version__}"
    )
    return f"{date.today()}, {os.cpu_count()} cores, {parts}.\n"


def shrink(source: Path, target: Path) -> None:
    """A figure small enough to keep with the sources."""
    image = Image.open(source).convert("RGB")
    height = round(image.height * WIDTH / image.width)
    image.resize((WIDTH, height), Image.Resampling.LANCZOS).quantize(COLOURS).save(
        target, optimize=True
    )


def main(results: Path) -> None:
    """Take over the claims, the errors and the figures of a results folder."""
    table = Results.load(results / "results.npz")
    (PAGES / "claims.md").write_text(claims_text(make_claims(table), table.settings))
    (PAGES / "reproduced-errors.md").write_text(mean_errors(results / "summary.csv"))
    (PAGES / "reproduced-when.md").write_text(circumstances())
    for name in ("figure1.png", "figure2.png"):
        shrink(results / name, PAGES / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
