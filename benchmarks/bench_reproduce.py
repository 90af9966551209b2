"""How fast are the experiments compared with plain NumPy, and how long does section 6 take?

``make bench`` runs this at full size; the tests run it at toy size.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from measuring import Row, command, ratio, table
from ordspan.datasets import DataUnavailable, load_dataset, synthetic
from ordspan.experiments import protocol
from ordspan.experiments.protocol import Curve

sys.path.append(str(Path(__file__).parents[1] / "tests"))
import naive  # the slow reference implementations

NAIVE_RULES = {"MCP": "perceptron"}


def learn_all(stream: protocol.TrialStream, n_classes: int) -> None:
    for algorithm in protocol.ALGORITHMS:
        curve = Curve(algorithm)
        learner = curve.learner(stream.X.shape[1], n_classes, 0.01)
        protocol.predictions(learner, curve, stream)


def learn_all_naively(stream: protocol.TrialStream, n_classes: int) -> None:
    for algorithm in protocol.ALGORITHMS:
        labels, rule = stream.labels(Curve(algorithm)), NAIVE_RULES.get(algorithm, algorithm)
        naive.learn_stream(stream.X, *labels, rule, C=0.01, n_classes=n_classes)


def against_numpy(trials: int) -> list[Row]:
    rows = []
    for n_features in (8, 136):
        data = synthetic(n=2000, n_features=n_features)
        stream = next(protocol.streams(data, (50,), 0, protocol.REPORTED, 0, trials))
        times, took = ratio(
            lambda stream=stream: learn_all(stream, 5),
            lambda stream=stream: learn_all_naively(stream, 5),
        )
        work = f"{trials} trials of all five algorithms, d = {n_features} ({took * 1e3:.1f} ms): "
        rows.append(Row.at_least(work + "speed-up over plain NumPy", 1 / times, 100))
    return rows


def whole_section() -> list[Row]:
    """Wall-clock seconds of the whole command, if the paper's data sets are available."""
    from ordspan.experiments import reproduce, runner

    start = time.perf_counter()
    try:
        datasets = tuple(load_dataset(name) for name in reproduce.PAPER)
    except DataUnavailable as missing:
        print(f"section 6 is not timed: {missing}")
        return []
    with tempfile.TemporaryDirectory() as folder:
        runner.run(runner.Plan(datasets), Path(folder), jobs=os.cpu_count() or 1)
        reproduce.write_outputs(Path(folder))
    seconds = time.perf_counter() - start
    work = "all of section 6: 4 data sets, 3 fractions, 5 algorithms, 100 runs, tuning, report"
    return [Row.at_most(work, seconds, 60, " s")]


def run(scale: float = 1.0) -> list[Row]:
    """All rows; a scale below 1 shortens the streams and skips section 6."""
    rows = against_numpy(max(20, int(2000 * scale)))
    return rows + whole_section() if scale >= 1.0 else rows


if __name__ == "__main__":
    command(lambda scale: table(run(scale), "Speed of the experiments"), __doc__)
