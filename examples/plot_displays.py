"""
Look at a model: scores, distances, reliability
===============================================

Three plots say most of what there is to know about an ordinal model: where the scores of each grade
lie between the thresholds, how far predictions are off, and whether probabilities are reliable.
They work like scikit-learn's displays, take pipelines, and labels may be ranges.
"""

# %%
# The data
# --------
# The 4,177 shells of Abalone, in four grades of age. The sex is a column of words, a tenth of the
# weights is missing, and half of the labels are ranges; the model is judged on exact ones.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ordspan import CalibratedOrdinal, OrdinalPA, coarsen
from ordspan.datasets import load_dataset
from ordspan.plot import ConfusionDistanceDisplay, ReliabilityDisplay, ScoreDisplay

data = load_dataset("abalone")
shells = pd.DataFrame(data.X[:, 3:], columns=data.feature_names[3:])
sizes = list(shells.columns)
shells["sex"] = np.array(["male", "female", "infant"])[data.X[:, :3].argmax(axis=1)]
shells.loc[::10, "shell_weight"] = np.nan
y = coarsen(data.ranks, 0.5, random_state=0)
train, test = slice(0, 3000), slice(3000, None)

columns = make_column_transformer(
    (make_pipeline(SimpleImputer(), StandardScaler()), sizes),
    (OneHotEncoder(handle_unknown="ignore"), ["sex"]),
)
ranker = CalibratedOrdinal(OrdinalPA(random_state=0), random_state=0)
model = make_pipeline(columns, ranker).fit(shells[train], y[train])

# %%
# Scores and thresholds
# ---------------------
# Each shape shows how the scores of a grade are spread, and its box the quartiles. What lies
# outside the two thresholds of the grade is predicted wrong: more than half of the oldest shells
# look younger than they are.

display = ScoreDisplay.from_estimator(model, shells[test], data.ranks[test])
display.ax_.set_title("Scores by true grade, and the thresholds")
plt.show()

# %%
# Distances
# ---------
# Each row is a true grade, in per cent. Mistakes next to column 0 are off by one grade.

display = ConfusionDistanceDisplay.from_estimator(model, shells[test], data.ranks[test])
display.ax_.set_title("How many grades predictions are off, by true grade")
plt.show()

# %%
# Reliability
# -----------
# Of all statements "grade k or lower with probability 0.7", about 70 % should come true. With
# ranges as labels the true grade is not known, and bars show what is certain.

figure, axes = plt.subplots(1, 2, figsize=(9, 4.5), layout="constrained")
for labels, title, ax in zip((data.ranks, y), ("exact labels", "ranges"), axes):
    ReliabilityDisplay.from_estimator(model, shells[test], labels[test], ax=ax)
    ax.set_title(title)
plt.show()
