"""
A River stream of house prices
==============================

The 1990 census lists the blocks of California county by county. Learned in this order, they are a
stream that drifts: what a house is worth depends on other features in each region. River validates
progressively: it predicts each row before it is learned. Here three models do so along the stream.
"""

import matplotlib.pyplot as plt
import numpy as np

from ordspan import coarsen
from ordspan.data import load_dataset
from ordspan.river import OrdinalPA

data = load_dataset("california")
rows = [dict(zip(data.feature_names, row, strict=True)) for row in data.X.tolist()]
exact = [(grade, grade) for grade in data.ranks.tolist()]
ranges = [(lower, upper) for lower, upper in coarsen(data.ranks, 0.75, random_state=0).tolist()]

# %%
# The first model predicts with the average over all steps, the others with the last step. The third
# one learns from labels of which 75 % are ranges. All are compared with the exact grades.

runs = {
    "average, exact labels": (OrdinalPA(classes=[1, 2, 3, 4, 5]), exact),
    "last step, exact labels": (OrdinalPA(C=0.01, average=False, classes=[1, 2, 3, 4, 5]), exact),
    "last step, 75 % ranges": (OrdinalPA(C=0.01, average=False, classes=[1, 2, 3, 4, 5]), ranges),
}
errors = {}
for name, (model, labels) in runs.items():
    predicted = []
    for x, label in zip(rows, labels, strict=True):
        predicted.append(model.predict_one(x) or 3)  # None before the first label
        model.learn_one(x, label)
    errors[name] = np.abs(np.array(predicted) - data.ranks)
    print(f"{name:24} mean absolute error {errors[name].mean():.3f}")

# %%
# The average recovers slowly after each change of region. The last step follows, and learns nearly
# as well from ranges.

window = 1000
looks = {
    "average, exact labels": ("#0072B2", "-"),
    "last step, exact labels": ("#D55E00", "-"),
    "last step, 75 % ranges": ("#009E73", "--"),
}
figure, ax = plt.subplots(figsize=(9, 4.4), layout="constrained")
for name, (colour, line) in looks.items():
    rolling = np.convolve(errors[name], np.ones(window) / window, mode="valid")
    at = window + np.arange(rolling.size)
    ax.plot(at, rolling, color=colour, linestyle=line, linewidth=2, label=name)
ax.set_xlabel("rows seen")
ax.set_ylabel(f"mean absolute error of the last {window:,} rows (grades)")
ax.xaxis.set_major_formatter("{x:,.0f}")
ax.set_xlim(0, len(rows))
ax.set_ylim(0)
ax.legend(frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, 1.12))
ax.spines[["top", "right"]].set_visible(False)
plt.show()
