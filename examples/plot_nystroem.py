"""
Random features: a kernel for large data
========================================

A kernel ranker compares each row with all its support vectors. Where there are many rows it is
faster to turn each row into some hundred features first, whose dot products come close to the
kernel's values, and to learn a linear ranker on them. scikit-learn's ``Nystroem`` and
``RBFSampler`` make such features; ``OrdinalPA`` learns from them, all at once in a pipeline, or
batch by batch.
"""

# %%
# The data
# --------
# Five grades of a score that bends and in which features work together.

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ordspan import KernelOrdinalPA, OrdinalPA

rng = np.random.default_rng(0)
X = rng.standard_normal((12_000, 5))
score = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] ** 2
score += 0.2 * rng.standard_normal(len(X))
grades = np.searchsorted(np.quantile(score, [0.2, 0.4, 0.6, 0.8]), score) + 1
train, test = slice(0, 10_000), slice(10_000, 12_000)

# %%
# All at once: a pipeline
# -----------------------
# More features come closer to the kernel, and cost more.


def fitted(model):
    """Test MAE of a model, and the seconds its fit took."""
    start = time.process_time()
    model.fit(X[train], grades[train])
    took = time.process_time() - start
    return -model.score(X[test], grades[test]), took


KernelOrdinalPA(max_iter=1).fit(X[:200], grades[:200])  # compiled before the clock runs
OrdinalPA(max_iter=1).fit(X[:200], grades[:200])
sizes = [25, 50, 100, 200, 400, 800]
found = {"Nystroem": [], "RBFSampler": []}
for kind, maker in (("Nystroem", Nystroem), ("RBFSampler", RBFSampler)):
    for size in sizes:
        features = maker(gamma=0.2, n_components=size, random_state=0)
        model = make_pipeline(StandardScaler(), features, OrdinalPA(C=1.0, random_state=0))
        found[kind].append(fitted(model))
linear, _ = fitted(OrdinalPA(random_state=0))
exact, exact_took = fitted(KernelOrdinalPA(gamma=0.2, random_state=0))
print(f"linear {linear:.3f}; exact kernel {exact:.3f} in {exact_took:.1f} s")

# %%

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
for kind, values in found.items():
    maes, times = np.array(values).T
    left.plot(sizes, maes, "o-", label=kind)
    right.plot(times, maes, "o-", label=kind)
right.plot(exact_took, exact, "k*", markersize=11, label="KernelOrdinalPA")
for axes in (left, right):
    axes.axhline(linear, color="gray", ls=":", label="linear")
    axes.axhline(exact, color="black", ls="--", lw=1, label="exact kernel")
    axes.grid(alpha=0.3)
figure.suptitle("Error by the number of random features, and by the time of a fit")
left.set(xlabel="random features", ylabel="test MAE", ylim=(0, None), xscale="log")
left.set_xticks(sizes, sizes)
left.minorticks_off()
right.set(xlabel="seconds of one fit")
right.legend(fontsize=8)

# %%
# A stream: ``partial_fit`` through the transform
# -----------------------------------------------
# The features are fixed by the first rows that come by; from then on every batch is transformed and
# handed to ``partial_fit``. Memory and the cost of a row stay the same however long the stream is.

nystroem = Nystroem(gamma=0.2, n_components=400, random_state=0)
features = make_pipeline(StandardScaler(), nystroem)
features.fit(X[:1000])
ranker = OrdinalPA(C=1.0)
seen, errors = [], []
for start in range(0, 10_000, 250):
    batch = slice(start, start + 250)
    ranker.partial_fit(features.transform(X[batch]), grades[batch], classes=[1, 2, 3, 4, 5])
    seen.append(start + 250)
    errors.append(-ranker.score(features.transform(X[test]), grades[test]))
print(f"one pass of the stream: test MAE {errors[-1]:.3f}")

# %%

figure, axes = plt.subplots(figsize=(6.5, 3.4), layout="constrained")
axes.plot(seen, errors, label="Nystroem + OrdinalPA, one pass")
axes.axhline(linear, color="gray", ls=":", label="linear, ten passes")
axes.set_title("Error of one pass over the stream", loc="left")
axes.set(xlabel="rows learned", ylabel="test MAE", ylim=(0, None))
axes.grid(alpha=0.3)
axes.legend()
plt.show()
