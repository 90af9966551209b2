"""
Grades on a ring: the kernel trick, with and without a budget
=============================================================

Some grades grow with the distance from a centre, in all directions. A linear score cannot separate
them, a sum of kernel values can. Here three rankers learn a stream of such grades, half of them
ranges, and the plots show what each has learned.
"""

# %%
# The stream
# ----------
# Two features, four grades by the noisy distance from the middle. Half of the labels are ranges.

import matplotlib.pyplot as plt
import numpy as np

from ordspan import KernelOrdinalPA, OrdinalPA, coarsen

rng = np.random.default_rng(0)
X = rng.standard_normal((6000, 2))
away = np.hypot(*X.T) + 0.1 * rng.standard_normal(len(X))
grades = np.searchsorted([0.7, 1.2, 1.8], away) + 1
ranges = coarsen(grades, 0.5, classes=[1, 2, 3, 4], random_state=0)
train, test = slice(0, 5000), slice(5000, 6000)

# %%
# Three rankers
# -------------
# Without a budget nearly every row that was corrected is kept. With ``budget=60`` there are never
# more than 60: where an update would exceed them, the one that matters least is replaced by its
# projection on the new one and on its nearest neighbour (Wang & Vucetic, 2010).

rankers = {
    "linear": OrdinalPA(),
    "rbf kernel": KernelOrdinalPA(gamma=1.0),
    "rbf kernel, budget 60": KernelOrdinalPA(gamma=1.0, budget=60),
}
batches = [slice(start, start + 100) for start in range(0, 5000, 100)]
curves = {}
for name, ranker in rankers.items():
    errors = []
    for batch in batches:
        ranker.partial_fit(X[batch], ranges[batch], classes=[1, 2, 3, 4])
        errors.append(-ranker.score(X[test], grades[test]))
    curves[name] = errors
    kept = f"{ranker.dual_coef_.size} support vectors" if name != "linear" else "2 weights"
    print(f"{name}: test MAE {errors[-1]:.3f}, {kept}")

# %%
# The error along the stream
# --------------------------

figure, axes = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
for name, errors in curves.items():
    axes.plot(np.arange(1, 51) * 100, errors, label=name)
axes.set_title("Error along the stream, with and without a kernel", loc="left")
axes.set(xlabel="rows learned", ylabel="test MAE", ylim=(0, None))
axes.grid(alpha=0.3)
axes.legend()

# %%
# What each has learned
# ---------------------
# The colours are the predicted grades, the rings the true borders, the dots the support vectors of
# the ranker with a budget.

side = np.linspace(-3, 3, 121)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
angle = np.linspace(0, 2 * np.pi, 200)
figure, panels = plt.subplots(
    1, 3, figsize=(9.6, 3.6), sharex=True, sharey=True, layout="constrained"
)
for panel, (name, ranker) in zip(panels, rankers.items(), strict=True):
    predicted = ranker.predict(grid).reshape(121, 121)
    drawn = panel.pcolormesh(side, side, predicted, cmap="viridis", vmin=0.5, vmax=4.5)
    for radius in (0.7, 1.2, 1.8):
        panel.plot(radius * np.cos(angle), radius * np.sin(angle), color="white", lw=1)
    if "budget" in name:
        panel.plot(*ranker.support_vectors_.T, ".", color="black", markersize=3)
    panel.set(title=name, aspect="equal", xlim=(-3, 3), ylim=(-3, 3))
bar = figure.colorbar(drawn, ax=panels, ticks=[1, 2, 3, 4], shrink=0.8, label="grade")
plt.show()
