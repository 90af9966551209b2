"""
Look at a model: scores, distances, reliability
===============================================

Three plots say most of what there is to know about an ordinal model: where the scores of each grade
lie between the thresholds, how far predictions are off, and whether probabilities are reliable.
They work like scikit-learn's displays, and labels may be ranges.
"""

# %%
# The data
# --------
# Five grades of a noisy score. Half of the labels are ranges; the model is judged on exact ones.

import matplotlib.pyplot as plt
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ordspan import CalibratedOrdinal, OrdinalPA, coarsen
from ordspan.data import synthetic
from ordspan.plot import ConfusionDistanceDisplay, ReliabilityDisplay, ScoreDisplay

data = synthetic(n=6000)
y = coarsen(data.ranks, 0.5, random_state=0)
train, test = slice(0, 4000), slice(4000, 6000)
ranker = CalibratedOrdinal(OrdinalPA(random_state=0), random_state=0)
model = make_pipeline(StandardScaler(), ranker).fit(data.X[train], y[train])

# %%
# Scores and thresholds
# ---------------------
# Boxes reach from quartile to quartile. The part of a box outside the two thresholds of its grade
# is predicted wrong.

ScoreDisplay.from_estimator(model, data.X[test], data.ranks[test])
plt.show()

# %%
# Distances
# ---------
# Each row is a true grade, in per cent. Mistakes next to column 0 are off by one grade.

ConfusionDistanceDisplay.from_estimator(model, data.X[test], data.ranks[test])
plt.show()

# %%
# Reliability
# -----------
# Of all statements "grade k or lower with probability 0.7", about 70 % should come true. With
# ranges as labels the true grade is not known, and bars show what is certain.

figure, axes = plt.subplots(1, 2, figsize=(9, 4.5), layout="constrained")
for labels, title, ax in zip((data.ranks, y), ("exact labels", "ranges"), axes):
    ReliabilityDisplay.from_estimator(model, data.X[test], labels[test], ax=ax)
    ax.set_title(title)
plt.show()
