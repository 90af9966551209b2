"""A small believable table of results, made without training anything."""

from __future__ import annotations

import numpy as np

from ordspan.experiments.protocol import kept_trials
from ordspan.experiments.results import Results, table_type

DATASETS = ("california", "abalone", "parkinson", "mslr")
MAIN = ("PA", "PA-I", "PA-II", "PRank", "MCP")
EXTRA = ("PA average", "PA-I average", "PA-II average", "PA sca", "PA-I sca", "PA-II sca")
HINDSIGHT_RUNS = 2
CLASSES = 5
LEVEL = {"PA": 0.7, "PA-I": 0.6, "PA-II": 0.65, "PRank": 0.8, "MCP": 1.0, "hindsight": 0.4}


def fake_results(
    *,
    datasets=DATASETS,
    algorithms=MAIN,
    fractions=(0, 50, 75),
    runs=4,
    trials=300,
    level=None,
    growing=False,
):
    """Results whose algorithms settle at the errors of ``level``."""
    rng, kept = np.random.default_rng(0), kept_trials(trials)
    level = LEVEL | (level or {})
    names = [(d, f, a) for d in datasets for f in fractions for a in (*algorithms, "hindsight")]
    table = np.zeros(len(names), table_type(runs, kept.size, CLASSES - 1))
    exact = {}  # PRank and MCP learn from exact labels, so their rows are the same everywhere
    for row, (dataset, labels, algorithm) in zip(table, names, strict=True):
        base, _, extra = algorithm.partition(" ")
        goal = level[base] * {"": 1, "average": 0.85, "sca": 1.05}[extra]
        if algorithm in ("PRank", "MCP"):
            if (dataset, algorithm) not in exact:
                exact[dataset, algorithm] = _errors(rng, goal, labels, (runs, trials))
            drawn = exact[dataset, algorithm]
        else:
            drawn = _errors(rng, goal + labels / 7500, labels, (runs, trials))
        drawn = drawn[:, :, ::-1] if growing else drawn
        row["dataset"], row["labels"], row["algorithm"] = dataset, labels, algorithm
        row["C"] = 0.01 if algorithm.startswith(("PA-I", "PA-II")) else np.nan
        row["runs"] = min(runs, HINDSIGHT_RUNS) if algorithm == "hindsight" else runs
        row["error_sums"], row["interval_error_sums"] = drawn.cumsum(axis=2)[..., kept - 1]
        losses = 2.0 * row["error_sums"][0]
        row["losses"] = np.nan if algorithm == "MCP" else losses
        row["bounds"] = 3.0 * losses + 50.0 if algorithm == "PA-I" else np.nan
        spread = np.sqrt(kept)[:, None] * np.linspace(-0.1, 0.1, CLASSES - 1)
        row["thresholds"] = np.nan if algorithm in ("MCP", "hindsight") else spread
    settings = {
        "runs": runs,
        "hindsight_runs": min(runs, HINDSIGHT_RUNS),
        "trials": trials,
        "versions": {"numpy": np.__version__},
        "rule": "the C of the grid with the lowest error in three pilot runs",
        "grid": [0.001, 0.01, 0.1],
        "sources": {name: f"made up for the tests <{name}>" for name in datasets},
        "unavailable": {n: "not fetched; fetch it & try" for n in DATASETS if n not in datasets},
        "truth_mae": {"synthetic": 0.4} if "synthetic" in datasets else {},
    }
    return Results(table, kept, settings)


def _errors(rng, goal, labels, shape):
    """Errors that fall towards the goal, and what the intervals leave of them."""
    expected = goal * (1 + 1.5 / np.sqrt(1 + np.arange(shape[1]) / 5))
    errors = rng.binomial(CLASSES - 1, np.minimum(expected / (CLASSES - 1), 1), shape)
    forgiven = (rng.random(shape) < labels / 100) * rng.integers(0, 3, shape)
    return np.array([errors, np.maximum(errors - forgiven, 0)])
