"""How long does `ordspan reproduce` take, and how long with another tree of the source?

``make bench`` runs this at full size; the tests run it at toy size. With ``--base SRC``, the folder
``src`` of a worktree of another commit, both run in turns, and their tables must agree.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from measuring import Row, command, process_costs, table

WORDS = ["-m", "ordspan", "reproduce", "--overwrite"]
OURS = Path(__file__).parents[1] / "src"
FULL = ["--datasets", "california,abalone,parkinson"]
TOY = ["--datasets", "abalone", "--algorithms", "PA", "--runs", "2", "--trials", "40"]


def run(scale: float = 1.0, base: str | None = None) -> list[Row]:
    """All rows; the tests use ``scale`` 0."""
    options, repeats = (FULL, 3) if scale else (TOY, 1)
    trees = {"ours": OURS} | ({"base": base} if base else {})
    with tempfile.TemporaryDirectory() as folder:

        def costs_of(tree: str) -> np.ndarray:
            out = ["--out", f"{folder}/{tree}"]
            return process_costs(*WORDS, *options, *out, PYTHONPATH=str(trees[tree]))

        turns = [[*map(costs_of, trees)] for _ in range(1 + repeats)]
        tables = [set(Path(folder, tree, "summary.csv").read_text().split("\n")) for tree in trees]
    costs = np.array(turns[1:])  # the first turn compiles
    wall, busy, _ = np.median(costs[:, 0], axis=0)
    work = " ".join(["ordspan reproduce", *options])
    if base is None:
        return [Row.at_most(f"{work}: processor time ({wall:.0f} s wall clock)", busy, 30, " s")]
    wall_times, busy_times, _ = np.median(costs[:, 0] / costs[:, 1], axis=0)
    different = len(set.symmetric_difference(*tables))
    return [
        Row.at_most(f"{work}, processor time ({busy:.1f} s) / base", busy_times, 1.05),
        Row.at_most(f"{work}, wall clock ({wall:.1f} s) / base", wall_times, 1.05),
        Row.at_most("lines of summary.csv that are not in both", different, 0, ""),
    ]


if __name__ == "__main__":
    command(
        lambda scale, base: table(run(scale, base), "Reproducing the paper"),
        __doc__,
        base="folder src of another tree to compare with",
    )
