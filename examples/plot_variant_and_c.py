"""
Choosing the variant and C
==========================

PA corrects every example in full, so one wrong label undoes much of what was learned. PA-I and
PA-II have a parameter C that says how much one example may change. Averaging over all steps takes
most of the choice away.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ordspan import OrdinalPA, coarsen
from ordspan.datasets import synthetic

data = synthetic(n=8000, n_features=20, noise=0.7, random_state=0)
y = coarsen(data.ranks, 0.5, random_state=0)
train, test = slice(0, 3000), slice(3000, None)
strengths = np.geomspace(1e-4, 10, 11)

# %%
# One pass over 3000 rows, half of them with ranges for labels, for each variant and C; first with
# the parameters after the last row, then with the average over all rows.


def test_error(variant, C, average):
    """Mean absolute error of one pass, a mean over five orders of the rows."""
    models = (
        OrdinalPA(variant, C, average=average, max_iter=1, random_state=seed) for seed in range(5)
    )
    scores = [
        model.fit(data.X[train], y[train]).score(data.X[test], data.ranks[test]) for model in models
    ]
    return -np.mean(scores)


errors = {
    (variant, average): [test_error(variant, C, average) for C in strengths]
    for average in (False, True)
    for variant in ("PA", "PA-I", "PA-II")
}

# %%
# The grey line is the error of the ranker that the data was made with. In the long run none can do
# better; on a sample it may, by luck.

true_scores = data.X[test] @ data.truth.weights
true_grades = 1 + np.searchsorted(data.truth.thresholds, true_scores, side="right")
floor = np.abs(true_grades - data.ranks[test]).mean()

looks = {
    "PA": ("#D55E00", "s", ":"),
    "PA-I": ("#0072B2", "o", "-"),
    "PA-II": ("#009E73", "^", "--"),
}
figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.2), sharey=True, layout="constrained")
for ax, average in zip(axes, (False, True)):
    for variant, (colour, marker, line) in looks.items():
        ax.plot(
            strengths,
            errors[variant, average],
            color=colour,
            marker=marker,
            linestyle=line,
            label=variant + (" (has no C)" if variant == "PA" else ""),
        )
    ax.axhline(floor, color="#767676", linewidth=1, label="true ranker")
    ax.set_xscale("log")
    ax.set_xlabel("C")
    ax.set_title("average=True" if average else "average=False", fontsize=11)
    ax.grid(axis="y", color="#e5e5e5")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("mean absolute error on test rows (grades)")
axes[0].legend(frameon=False)
plt.show()

# %%
# So the defaults, PA-I with C = 0.1 and averaging, are rarely far off. Where it matters, search: a
# range is a row of ``y``, so scikit-learn's tools handle it like any other label.

search = GridSearchCV(
    make_pipeline(StandardScaler(), OrdinalPA(random_state=0)),
    {"ordinalpa__variant": ["PA-I", "PA-II"], "ordinalpa__C": [0.001, 0.01, 0.1, 1.0]},
    cv=3,
)
search.fit(data.X[train], y[train])
print(search.best_params_)
print("error on test rows:", -round(search.score(data.X[test], data.ranks[test]), 3))
