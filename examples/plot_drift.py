"""
A stream with drift
===================

A stream is learned as it comes: predict the next rows, see their labels, learn them, forget the
rows. Here what the grades depend on changes twice: suddenly after a third of the stream, and slowly
in its last third. The average over all steps is best while nothing changes, and is slow to
forget what it has learned when something does.
"""

import matplotlib.pyplot as plt
import numpy as np

from ordspan import OrdinalPA

n, n_features, n_classes, batch = 24_000, 12, 5, 100
rng = np.random.default_rng(0)

# %%
# The direction of the score turns by 90 degrees at one third, and by another 90 degrees little by
# little over the last third. Every second label is a range: the grade or the one above.

first, second = np.linalg.qr(rng.standard_normal((n_features, 2)))[0].T
part = np.arange(n) / n
angle = np.where(part < 1 / 3, 0.0, np.pi / 2) + np.pi / 2 * np.clip(3 * part - 2, 0, 1)
X = rng.standard_normal((n, n_features))
score = (X @ np.array([first, second]).T * np.column_stack([np.cos(angle), np.sin(angle)])).sum(1)
cuts = [-0.84, -0.25, 0.25, 0.84]  # about as many rows in each class
grades = 1 + np.searchsorted(cuts, score + 0.4 * rng.standard_normal(n))
upper = np.minimum(n_classes, grades + (rng.random(n) < 0.5))
y = np.column_stack([grades, upper])

# %%
# Three learners process the stream in batches of 100 rows.

models = {
    "PA-I, averaged": OrdinalPA("PA-I", 0.1, average=True),
    "PA-I, last step": OrdinalPA("PA-I", 0.01, average=False),
    "PA, last step": OrdinalPA("PA", average=False),
}
errors = {name: [] for name in models}
for start in range(0, n, batch):
    rows = slice(start, start + batch)
    for name, model in models.items():
        if start > 0:  # there is nothing to predict with before the first batch
            errors[name].append(np.abs(model.predict(X[rows]) - grades[rows]).mean())
        model.partial_fit(X[rows], y[rows], classes=range(1, n_classes + 1))

for name, values in errors.items():
    print(f"{name:16} mean absolute error over the stream {np.mean(values):.3f}")

# %%
# Without averaging, a small C is the compromise between noise and drift: PA-I recovers within a few
# hundred rows and then stays low. PA forgets as fast, but every noisy label throws it off. If you
# expect drift, use ``average=False`` and a small C, or restart the average from time to time
# with ``fit``.

window = 10  # batches
looks = {
    "PA-I, averaged": ("#0072B2", "-"),
    "PA-I, last step": ("#D55E00", "-"),
    "PA, last step": ("#009E73", ":"),
}
figure, ax = plt.subplots(figsize=(9, 4.4), layout="constrained")
ax.axvspan(n * 2 / 3, n, color="#f0f0f0", zorder=0)
ax.axvline(n / 3, color="#767676", linewidth=1, linestyle="--")
ax.text(n / 3, 1.01, "sudden change", transform=ax.get_xaxis_transform(), ha="center", fontsize=10)
ax.text(
    n * 5 / 6, 1.01, "slow change", transform=ax.get_xaxis_transform(), ha="center", fontsize=10
)
for name, (colour, line) in looks.items():
    rolling = np.convolve(errors[name], np.ones(window) / window, mode="valid")
    ax.plot(
        batch * (window + np.arange(rolling.size)),
        rolling,
        color=colour,
        linestyle=line,
        linewidth=2,
        label=name,
    )
figure.suptitle("Error after a sudden and a slow change of the data")
ax.set_xlabel("rows seen")
ax.set_ylabel(f"mean absolute error of the last {window * batch} rows (grades)")
ax.xaxis.set_major_formatter("{x:,.0f}")
ax.set_xlim(0, n)
ax.set_ylim(0)
ax.legend(frameon=False, ncols=3, loc="lower center")
ax.spines[["top", "right"]].set_visible(False)
plt.show()
