"""
Ranges against exact labels
===========================

How much is a range worth? A share of the exact labels is replaced by ranges that contain them, as
in the paper: one or two grades wider on one side, or two on both. Then there are three ways to go
on: learn from the ranges as they are, replace them by their midpoints, or drop the rows
whose label is not exact. The data is California: house prices in five grades.
"""

import matplotlib.pyplot as plt
import numpy as np

from ordspan import OrdinalPA, coarsen
from ordspan.datasets import load_dataset

data = load_dataset("california")
shares = np.array([0.0, 0.25, 0.5, 0.75, 0.9, 0.97])
n_train, n_runs = 300, 30

# %%
# Three ways to learn from the same rows. A midpoint between two grades is rounded to the lower or
# the higher one at random, so that it is not biased.


def as_ranges(X, y, rng):
    """Every row, its label as it is."""
    return X, y


def as_midpoints(X, y, rng):
    """Every row, with one grade in the middle of its range."""
    return X, np.floor(y.mean(axis=1) + rng.choice([0.0, 0.5], len(y))).astype(int)


def only_exact(X, y, rng):
    """The rows whose label is one grade."""
    exact = y[:, 0] == y[:, 1]
    return X[exact], y[exact]


ways = {"ranges": as_ranges, "midpoints": as_midpoints, "only the exact rows": only_exact}

# %%
# Every run draws other rows and other ranges; all three ways see the same ones, and all are tested
# on the same 5000 rows with exact labels.

errors = {name: np.empty((len(shares), n_runs)) for name in ways}
for run in range(n_runs):
    order = np.random.default_rng(run).permutation(len(data.X))
    train, test = order[:n_train], order[n_train : n_train + 5000]
    for column, share in enumerate(shares):
        y = coarsen(data.ranks[train], share, classes=range(1, 6), random_state=run)
        for name, way in ways.items():
            X, labels = way(data.X[train], y, np.random.default_rng(run))
            model = OrdinalPA(classes=range(1, 6), random_state=run).fit(X, labels)
            errors[name][column, run] = -model.score(data.X[test], data.ranks[test])

for name, values in errors.items():
    print(f"{name:20}", values.mean(axis=1).round(3))

# %%
# With three quarters of the labels turned into ranges the error has hardly risen. Midpoints are
# wrong on purpose, and the rest that is exact becomes too small to learn from.

looks = {
    "ranges": ("#0072B2", "o", "-"),
    "midpoints": ("#D55E00", "s", "--"),
    "only the exact rows": ("#009E73", "^", "-."),
}
figure, ax = plt.subplots(figsize=(7.5, 4.4), layout="constrained")
for name, (colour, marker, line) in looks.items():
    mean = errors[name].mean(axis=1)
    sem = errors[name].std(axis=1, ddof=1) / np.sqrt(n_runs)
    ax.plot(100 * shares, mean, color=colour, marker=marker, linestyle=line, label=name)
    ax.fill_between(100 * shares, mean - sem, mean + sem, color=colour, alpha=0.2, linewidth=0)
ax.set_title("Error by the share of labels that are ranges", loc="left")
ax.set_xlabel("labels that are ranges (%)")
ax.set_ylabel("mean absolute error on test rows (grades)")
ax.legend(title=f"{n_train} rows, learned from", frameon=False)
ax.grid(axis="y", color="#e5e5e5")
ax.spines[["top", "right"]].set_visible(False)
plt.show()
