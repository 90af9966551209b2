"""A small believable results table, made without training anything."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ordspan.experiments.table import SCHEMA, Results, with_settings

DATASETS = ("california", "abalone", "parkinson", "mslr")
MAIN = ("PA", "PA-I", "PA-II", "PRank", "MCP")
EXTRA = ("PA average", "PA-I average", "PA-II average", "PA sca", "PA-I sca", "PA-II sca")
HINDSIGHT_RUNS = 2
CLASSES = 5
LEVEL = {"PA": 0.7, "PA-I": 0.6, "PA-II": 0.65, "PRank": 0.8, "MCP": 1.0, "hindsight": 0.4}


def fake_table(
    *,
    datasets=DATASETS,
    algorithms=MAIN,
    fractions=(0, 50, 75),
    runs=4,
    trials=300,
    level=None,
    seed=0,
    hindsight=True,
):
    """A table whose algorithms settle at the errors of ``level``."""
    rng, own_rng = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    level = LEVEL if level is None else LEVEL | level
    rows = []
    for dataset in datasets:
        for algorithm in (*algorithms, *(["hindsight"] if hindsight else [])):
            drawn = {}
            kept = min(runs, HINDSIGHT_RUNS) if algorithm == "hindsight" else runs
            for labels in fractions:
                # PRank and MCP learn from exact labels, so their rows are the same everywhere
                fixed = algorithm in ("PRank", "MCP")
                if not (fixed and drawn):
                    goal = _goal(level, algorithm) + (0 if fixed else labels / 7500)
                    source = own_rng if algorithm == "hindsight" else rng
                    drawn = [_errors(source, goal, labels, trials) for _ in range(runs)]
                rows += [_row(dataset, labels, algorithm, run, *drawn[run]) for run in range(kept)]
    return with_settings(
        pa.Table.from_pylist(rows, schema=SCHEMA),
        _settings(datasets, algorithms, fractions, runs, trials, seed),
    )


def fake_results(**options):
    return Results(fake_table(**options))


def _goal(level, algorithm):
    base, _, extra = algorithm.partition(" ")
    return level[base] * {"": 1, "average": 0.85, "sca": 1.05}[extra]


def _errors(rng, goal, labels, trials):
    """Errors that fall towards the goal, and what the intervals leave of them."""
    expected = goal * (1 + 1.5 / np.sqrt(1 + np.arange(trials) / 5))
    errors = rng.binomial(CLASSES - 1, np.minimum(expected / (CLASSES - 1), 1))
    forgiven = (rng.random(trials) < labels / 100) * rng.integers(0, 3, trials)
    return errors.astype(np.uint8), np.maximum(errors - forgiven, 0).astype(np.uint8)


def _row(dataset, labels, algorithm, run, errors, interval_errors):
    known = run == 0 and algorithm != "MCP"
    seen = np.arange(1, errors.size + 1, max(1, errors.size // 40)) if known else np.array([], int)
    thresholds = np.sqrt(seen)[:, None] * np.linspace(-0.1, 0.1, CLASSES - 1)
    losses = 2.0 * errors.cumsum(dtype=float)[seen - 1]
    return {
        "dataset": dataset,
        "labels": labels,
        "algorithm": algorithm,
        "C": 0.01 if algorithm.startswith(("PA-I", "PA-II")) else None,
        "run": run,
        "trials": errors.size,
        "mae": float(errors.mean()),
        "interval_mae": float(interval_errors.mean()),
        "errors": errors.tobytes(),
        "interval_errors": interval_errors.tobytes(),
        "trajectory_trials": seen.tolist(),
        "trajectory": None if algorithm == "hindsight" else thresholds.ravel().tolist(),
        "losses": losses.tolist() if known else None,
        "bounds": (3.0 * losses + 50.0).tolist() if known and algorithm == "PA-I" else None,
    }


def _settings(datasets, algorithms, fractions, runs, trials, seed):
    return {
        "datasets": list(datasets),
        "algorithms": list(algorithms),
        "fractions": list(fractions),
        "runs": runs,
        "hindsight_runs": min(runs, HINDSIGHT_RUNS),
        "trials": trials,
        "seed": seed,
        "version": "0.0",
        "versions": {"numpy": np.__version__},
        "rule": "the C of the grid with the lowest error in three pilot runs",
        "grid": [0.001, 0.01, 0.1],
        "sources": {name: f"made up for the tests <{name}>" for name in datasets},
        "unavailable": {n: "not fetched; fetch it & try" for n in DATASETS if n not in datasets},
        "n_classes": dict.fromkeys(datasets, CLASSES),
        "truth_mae": {"synthetic": 0.4} if "synthetic" in datasets else {},
    }
