"""What do the other metrics of OrdinalPA gain, at the defaults, on the paper's four data sets?

Running MAE after all trials of the paper's protocol, averaged learners, C at its default, the same
samples for all. Not a measure of speed; ``make bench`` writes docs/metrics.md.
"""

from __future__ import annotations

import numpy as np

from measuring import command, machine
from ordspan.data import Dataset, DataUnavailable, load, synthetic
from ordspan.experiments import protocol
from ordspan.experiments.reproduce import PAPER
from ordspan.learners import LinearLearner
from ordspan.learners.linear import DEFAULT_C, METRICS

LABELS = (0, 50, 75)


def errors(data: Dataset, runs: int, trials: int) -> dict[str, np.ndarray]:
    """MAE of each metric, (runs, fractions)."""
    found: dict[str, np.ndarray] = {name: np.empty((runs, len(LABELS))) for name in METRICS}
    for run in range(runs):
        sampled = protocol.streams(data, LABELS, 0, protocol.REPORTED, run, trials)
        for column, (_, stream) in enumerate(sampled):
            for name in METRICS:
                learner = LinearLearner(data.X.shape[1], data.n_classes, average=True, metric=name)
                ranks = learner.learn_many(stream.X, stream.lower, stream.upper, predict=True)
                found[name][run, column] = np.abs(ranks - stream.ranks).mean()
    return found


def lines_of(data: Dataset, runs: int, trials: int) -> list[str]:
    found = errors(data, runs, trials)
    lines = []
    for column, percent in enumerate(LABELS):
        base = found["identity"][:, column]
        cells = [f"{base.mean():.4f}"]
        for name in ("balanced", "diagonal"):
            values = found[name][:, column]
            change = values / base - 1.0
            spread = change.std(ddof=1) / np.sqrt(runs) if runs > 1 else np.nan
            cells.append(f"{values.mean():.4f} ({change.mean():+.1%} ± {spread:.1%})")
        lines.append(f"| {data.name} | {percent} % | " + " | ".join(cells) + " |")
    return lines


def report(datasets: list[Dataset], runs: int = 20, trials: int = 7000) -> str:
    """The table as Markdown."""
    text = [
        "# What the other metrics gain",
        "",
        f"Averaged PA-I, C = {DEFAULT_C:g}, MAE after {trials} trials, mean of {runs} runs; in "
        "brackets the change against the identity, paired over runs, ± its standard error.",
        machine(),
        "",
        "| data set | intervals | identity | balanced | diagonal |",
        "|---|---|---|---|---|",
    ]
    for data in datasets:
        text += lines_of(data, runs, trials)
    return "\n".join(text) + "\n"


def available() -> list[Dataset]:
    """The paper's data sets that can be had, and a synthetic stream."""
    found = []
    for name in PAPER:
        try:
            found.append(load(name))
        except DataUnavailable as reason:
            print(f"without {reason}")
    return [*found, synthetic()]


if __name__ == "__main__":
    command(lambda scale: report(available(), runs=max(2, int(20 * scale))), __doc__)
