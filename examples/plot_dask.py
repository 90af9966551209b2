"""
How many rounds on Dask
=======================

On Dask every worker learns its own blocks of rows, and after each round the results are averaged.
How many rounds does it take until the average is as good as one pass over all rows on one machine?
That depends on the number of rows in a block. The data is California: house prices in five grades.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client

from ordspan import OrdinalPA
from ordspan.datasets import load_dataset
from ordspan.distributed import fit

data = load_dataset("california")
n_train, n_shuffles = 16_000, 2
block_sizes, rounds = (4000, 1000, 250), (1, 2, 4, 8)

# %%
# Two workers in this process are enough to show it: the result depends on the blocks, not on how
# many workers there are. The rows are shuffled before they are cut into blocks.

errors = {size: np.empty((n_shuffles, len(rounds))) for size in block_sizes}
one_pass = []
with Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as client:
    for shuffle in range(n_shuffles):
        order = np.random.default_rng(shuffle).permutation(len(data.X))
        train, test = order[:n_train], order[n_train:]
        X, y = data.X[train], data.ranks[train]
        one = OrdinalPA().partial_fit(X, y, classes=[1, 2, 3, 4, 5])
        one_pass.append(-one.score(data.X[test], data.ranks[test]))
        for size, found in errors.items():
            blocks = da.from_array(X, chunks=(size, -1)), da.from_array(y, chunks=size)
            for column, n_rounds in enumerate(rounds):
                model = fit(client, OrdinalPA(), *blocks, rounds=n_rounds)
                found[shuffle, column] = -model.score(data.X[test], data.ranks[test])

print(f"one pass on one machine: {np.mean(one_pass):.3f}")
for size, found in errors.items():
    print(f"blocks of {size} rows, rounds {rounds}:", found.mean(axis=0).round(3))

# %%
# With 4,000 rows in a block two rounds are as good as one pass over all rows. A worker that sees
# only 250 rows between two averages has learned little of its own, and many rounds are needed to
# make up for it. So cut the data into large blocks.

looks = {4000: ("#0072B2", "o", "-"), 1000: ("#D55E00", "s", "--"), 250: ("#009E73", "^", "-.")}
figure, ax = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
for size, (colour, marker, line) in looks.items():
    label = f"{n_train // size} blocks of {size:,} rows"
    mean = errors[size].mean(axis=0)
    ax.plot(rounds, mean, color=colour, marker=marker, linestyle=line, label=label)
ax.axhline(np.mean(one_pass), color="#666666", linestyle=":", label="one pass on one machine")
ax.set_title("Error by rounds, for three sizes of blocks", loc="left")
ax.set_xscale("log", base=2)
ax.set_xticks(rounds, rounds)
ax.set_xlabel("rounds")
ax.set_ylabel("mean absolute error on test rows (grades)")
ax.legend(frameon=False)
ax.grid(axis="y", color="#e5e5e5")
ax.spines[["top", "right"]].set_visible(False)
plt.show()
