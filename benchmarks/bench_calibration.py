"""Is the median of the probabilities a good prediction, and do several passes keep them honest?

``make bench`` runs this at full size and writes docs/measured/calibration.md; the tests run it at
toy size. The sets of other packages need ``pip install 'ordspan[peers]'``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import ordspan
from bench_ranges import Split, cut, splits
from measuring import command, machine
from ordspan import CalibratedOrdinal, KernelOrdinalPA, OrdinalPA, OrdinalSVM
from ordspan.catalog import DEFAULT_BUDGET
from ordspan.commands import train as training
from ordspan.datasets import Dataset, DataUnavailable
from ordspan.experiments.reproduce import PAPER
from ordspan.metrics import interval_coverage, ranked_probability_score
from peers.sets import JUDGEMENTS, UNSEEN, load

SHARES = {"exact": 0.0, "75 % ranges": 0.75}
SEVERAL = ("wine", "diamonds", "california")
KEPT = ((0.05, 5000), (0.1, 5000), (0.2, 1000), (0.2, 5000), (0.3, 5000), (0.3, 20_000))
"""Rows kept for calibration: the share of all, and the most."""

PAGE = """\
# The median of the probabilities, and several passes

{}

Models learn 70 % of the rows and are tested on the exact grades of the others, in {} random
splits.

## Median or thresholds

MAE of the same model by the thresholds of its ranker, and by the median of its probabilities, which
it predicts. *Difference* is the mean over the splits of median minus thresholds, with its standard
error: below 0 the median is better. It is marked if it is more than two standard errors. *Stream*
is one pass, calibrated along the way; *fit* calibrates by five-fold cross-validation.

{}

{}

## Several passes

`ordspan train --passes`: medians over the splits, on rows that were neither learned nor used to
calibrate. *Noise* is the standard deviation, over splits, of the difference of the RPS from that of
one pass: one training may differ by as much. An RPS above that of one pass by more than the noise,
or a coverage of 90 % ranges lower by more than 0.01, is marked.

{}

## How many rows to keep

The RPS after ten passes over that of one pass, means over the splits, by the share of the rows that
is kept for calibration and the most rows that are kept. In use: {}.

{}
"""


def stream(split: Split, ranker: Any) -> CalibratedOrdinal:
    return CalibratedOrdinal(ranker).partial_fit(split.X, split.y, classes=split.classes)


def fit(split: Split, ranker: Any) -> CalibratedOrdinal:
    ranker.set_params(classes=split.classes)
    return CalibratedOrdinal(ranker, random_state=0).fit(split.X, split.y)


WAYS = {
    "stream, pa": (stream, OrdinalPA()),
    "stream, kernel": (stream, KernelOrdinalPA(budget=DEFAULT_BUDGET, random_state=0)),
    "fit, pa": (fit, OrdinalPA(random_state=0)),
    "fit, kernel": (fit, KernelOrdinalPA(budget=DEFAULT_BUDGET, random_state=0)),
    "fit, svm": (fit, OrdinalSVM()),
}


def sets(names: Iterable[str], scale: float) -> Iterator[Dataset]:
    """The data sets that are available."""
    for name in names:
        try:
            yield cut(load(name, 10**9), scale)
        except DataUnavailable as reason:
            print(f"skipped {name}: {reason}")


def markdown(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A table."""
    lines = [columns, ["---" for _ in columns], *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def medians(scale: float, n_splits: int) -> tuple[str, str]:
    """The table of both predictions, and a summary."""
    rows, ratios, verdicts = [], {way: [] for way in WAYS}, []
    for data in sets((*PAPER, *JUDGEMENTS, *UNSEEN), scale):
        for (labels, share), way in product(SHARES.items(), WAYS):
            found = []
            for split in splits(data, share, n_splits):
                model = WAYS[way][0](split, WAYS[way][1])
                both = model.estimator_.predict(split.X_test), model.predict(split.X_test)
                found.append([np.abs(p - split.y_test).mean() for p in both])
            thresholds, median = np.mean(found, axis=0)
            gain, error = median - thresholds, np.std(np.diff(found), ddof=1) / n_splits**0.5
            clear = "worse" if gain > 0 else "better"
            verdicts.append(clear if abs(gain) > 2 * error else "equal")
            ratios[way].append(median / thresholds)
            numbers = f"{thresholds:.3f}", f"{median:.3f}", f"{gain:+.4f} ± {error:.4f}"
            rows.append((data.name, labels, way, *numbers, verdicts[-1].replace("equal", "")))
    counts = ", ".join(f"{verdicts.count(v)} {v}" for v in ("better", "equal", "worse"))
    means = "; ".join(f"{way} {np.exp(np.mean(np.log(r))):.3f}" for way, r in ratios.items())
    columns = ("set", "labels", "model", "thresholds", "median", "difference", "")
    said = f"In all: {counts}. MAE of the median / of the thresholds, geometric means: {means}."
    return markdown(columns, rows), said


def trained(data: Dataset, learner: str, passes: int, n_splits: int) -> np.ndarray:
    """MAE, RPS and coverage on rows never seen, one row a split."""
    found = []
    names = [f"x{j}" for j in range(data.X.shape[1])]
    with tempfile.TemporaryDirectory() as folder:
        file, model = Path(folder, "rows.csv"), Path(folder, "model")
        for seed, split in enumerate(splits(data, 0.0, n_splits)):
            rows = pl.DataFrame(split.X, schema=names).with_columns(grade=pl.Series(split.y))
            rows.write_csv(file)
            settings = {"label": "grade", "classes": split.classes.tolist(), "overwrite": True}
            settings |= {"learner": learner, "passes": passes, "seed": seed}
            table = ordspan.train_files(file, model, **settings)
            new, y = pl.DataFrame(split.X_test, schema=names), split.y_test
            mae, ranges = np.abs(table.predict(new) - y).mean(), table.predict_interval(new, 0.9)
            rps = ranked_probability_score(y, table.predict_proba(new), classes=split.classes)
            found.append((mae, rps, interval_coverage(y, ranges, classes=split.classes)))
    return np.array(found)


def several_passes(scale: float, n_splits: int) -> tuple[str, str]:
    """The table of passes, and that of the rows to keep."""
    in_use = training.CALIBRATION_SHARE, training.MAX_CALIBRATION
    rows, columns = [], ["share", "at most"]
    kept = {choice: [f"{choice[0]:g}", f"{choice[1]:,}"] for choice in KEPT}
    for data, learner in product(sets(SEVERAL, scale), ("pa", "kernel")):
        one = trained(data, learner, 1, n_splits)
        for passes in (1, 3, 10):
            found = one if passes == 1 else trained(data, learner, passes, n_splits)
            mae, rps, coverage = np.median(found, axis=0)
            noise = np.std((found - one)[:, 1])
            worse = rps > np.median(one[:, 1]) + noise or coverage < np.median(one[:, 2]) - 0.01
            numbers = f"{mae:.3f}", f"{rps:.4f}", f"{noise:.4f}", f"{coverage:.3f}"
            rows.append((data.name, learner, passes, *numbers, "worse" if worse else ""))
        columns.append(f"{data.name}, {learner}")
        for choice, cells in kept.items():
            training.CALIBRATION_SHARE, training.MAX_CALIBRATION = choice
            ten = trained(data, learner, 10, n_splits)
            cells.append(f"{ten[:, 1].mean() / one[:, 1].mean():.3f}")
        training.CALIBRATION_SHARE, training.MAX_CALIBRATION = in_use
    names = ("set", "learner", "passes", "MAE", "RPS", "noise", "coverage", "")
    return markdown(names, rows), markdown(columns, kept.values())


def report(scale: float) -> str:
    """The page."""
    n_splits = max(2, round(10 * scale))
    in_use = f"{training.CALIBRATION_SHARE:g}, at most {training.MAX_CALIBRATION:,}"
    both, passes = medians(scale, n_splits), several_passes(scale, n_splits)
    return PAGE.format(machine(), n_splits, *both, passes[0], in_use, passes[1])


if __name__ == "__main__":
    command(report, __doc__.splitlines()[0])
