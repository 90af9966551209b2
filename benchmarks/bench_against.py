"""Is anything slower than at an earlier commit?

Alternates between the benchmarks of this commit and of another one, each with its own source, and
compares the rows that both tables have. Not part of ``make bench``, because it needs a commit to
compare with::

    python benchmarks/bench_against.py HEAD~1 bench_foundation.py bench_kernel.py
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from measuring import machine

HERE = Path(__file__).parent
ALLOWED = 1.05
"""A row counts as slower if its median ratio is above this."""


def figures(root: Path, script: str) -> dict[str, tuple[float, bool]]:
    """Measured value of each row of a benchmark, by its label, and whether less is better."""
    environment = os.environ | {"PYTHONPATH": str(root / "src")}
    command = [sys.executable, str(root / "benchmarks" / script)]
    text = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found = {}
    for line in text.stdout.splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
        if len(cells) >= 3 and cells[2][:1] in "≤≥":
            found[re.sub(r" \([^)]*\)", "", cells[0])] = float(cells[1]), cells[2][0] == "≤"
    return found


def compare(base: Path, scripts: list[str], turns: int) -> list[tuple[str, float, list[float]]]:
    """Label of each row, and the median and all values of its cost now over its cost then."""
    costs: dict[str, list[float]] = {}
    for _ in range(turns):
        for script in scripts:
            before, now = figures(base, script), figures(HERE.parent, script)
            for label in before.keys() & now.keys():
                (old, less_is_better), (new, _) = before[label], now[label]
                cost = new / old if less_is_better else old / new
                costs.setdefault(label, []).append(cost)
    return [(label, statistics.median(each), sorted(each)) for label, each in costs.items()]


def report(revision: str, rows: list[tuple[str, float, list[float]]]) -> str:
    """The comparison as Markdown."""
    lines = [
        f"# Against commit {revision}",
        "",
        f"Cost now over cost then, median of {len(rows[0][2])} turns; extremes in parentheses.",
        machine(),
        "",
        "| work | now / then | |",
        "|---|---|---|",
    ]
    for label, median, each in sorted(rows):
        mark = "slower" if median > ALLOWED else ""
        lines.append(f"| {label} | {median:.2f} ({each[0]:.2f} to {each[-1]:.2f}) | {mark} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("revision", help="the commit to compare with")
    parser.add_argument("scripts", nargs="+", help="benchmarks that both commits have")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--save", type=Path, help="also write the report to this file")
    options = parser.parse_args()
    git = ["git", "-C", str(HERE.parent), "worktree"]
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder) / "base"
        subprocess.run([*git, "add", "--detach", str(base), options.revision], check=True)
        try:
            text = report(options.revision, compare(base, options.scripts, options.turns))
        finally:
            subprocess.run([*git, "remove", "--force", str(base)], check=True)
    print(text)
    if options.save:
        options.save.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
