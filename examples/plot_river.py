"""
A River stream of house prices
==============================

The blocks of California in the 1990 census are ordered by place. Learned in this order, they are a
stream that drifts: the level of prices changes from region to region. River validates
progressively: it predicts each row before it is learned. Here three models do so, beside a baseline
that repeats the previous grade.
"""

import matplotlib.pyplot as plt
import numpy as np

from ordspan import coarsen
from ordspan.datasets import load_dataset
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
errors["previous grade"] = np.abs(np.diff(data.ranks, prepend=data.ranks[:1]))
for name, error in errors.items():
    print(f"{name:24} mean absolute error {error.mean():.3f}")

# %%
# The average is slow to follow the level of prices. The last step follows, and learns nearly as
# well from ranges. The baseline follows too: neighbours in the stream are neighbours on the map,
# with similar prices, and the last step is only a tenth better.

window = 1000
looks = {
    "average, exact labels": ("#0072B2", "-"),
    "last step, exact labels": ("#D55E00", "-"),
    "last step, 75 % ranges": ("#009E73", "--"),
    "previous grade": ("#767676", ":"),
}
figure, ax = plt.subplots(figsize=(9, 4.4), layout="constrained")
for name, (colour, line) in looks.items():
    rolling = np.convolve(errors[name], np.ones(window) / window, mode="valid")
    at = window + np.arange(rolling.size)
    ax.plot(at, rolling, color=colour, linestyle=line, linewidth=2, label=name)
figure.suptitle("Error along the stream, by model")
ax.set_xlabel("rows seen")
ax.set_ylabel(f"mean absolute error of the last {window:,} rows (grades)")
ax.xaxis.set_major_formatter("{x:,.0f}")
ax.set_xlim(0, len(rows))
ax.set_ylim(0)
ax.legend(frameon=False, ncols=4, loc="upper center", bbox_to_anchor=(0.5, 1.12))
ax.spines[["top", "right"]].set_visible(False)
plt.show()
