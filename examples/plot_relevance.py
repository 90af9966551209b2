"""
Relevance of search results, measured by NDCG
=============================================

In learning-to-rank data such as Microsoft's MSLR, judges grade the pages found for a query from 0
(irrelevant) to 4 (perfect). What counts is the order in which the pages of a query are shown, best
first. The score of an ordinal model gives that order, and its thresholds say where one grade
ends and the next begins.

This data is synthetic, in the same form: rows belong to queries, low grades are frequent and
high ones rare. Every second judge only said "at least this relevant".
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import ndcg_score

from ordspan import OrdinalPA, intervals

n_queries, n_pages, n_features, n_test = 420, 40, 60, 200
rng = np.random.default_rng(0)

# %%
# Half of the pages are irrelevant, and 1 in 50 is perfect.

X = rng.standard_normal((n_queries * n_pages, n_features))
usefulness = X @ rng.standard_normal(n_features)
usefulness = usefulness / usefulness.std() + 0.7 * rng.standard_normal(len(X))
grades = np.searchsorted(np.quantile(usefulness, [0.5, 0.8, 0.93, 0.98]), usefulness)
query = np.repeat(np.arange(n_queries), n_pages)
test = query < n_test

# %%
# "At least" is a range without an upper end, which ``intervals`` closes.

unsure = rng.random(len(X)) < 0.5
y = intervals(grades, np.where(unsure, np.inf, grades), classes=range(5))
print(y[:4])

# %%
# ``NDCG@10`` is 1 if the ten best pages of every query come first, in order.


def ndcg(scores):
    """Mean NDCG@10 of the test queries, their pages ordered by score."""
    return ndcg_score(grades[test].reshape(-1, n_pages), scores.reshape(-1, n_pages), k=10)


def learn(rows, labels):
    """The model learned from some rows."""
    model = OrdinalPA(classes=range(5), random_state=0)
    return model.fit(X[rows], labels[rows])


sizes, n_draws = [5, 10, 20, 40, 80, 160], 8
quality = {name: np.empty((len(sizes), n_draws)) for name in ("exact", "mixed", "rest")}
for column, size in enumerate(sizes):
    for draw in range(n_draws):
        chosen = rng.choice(np.arange(n_test, n_queries), size, replace=False)
        rows = np.isin(query, chosen)
        quality["exact"][column, draw] = ndcg(learn(rows, grades).latent(X[test]))
        quality["mixed"][column, draw] = ndcg(learn(rows, y).latent(X[test]))
        rows &= ~unsure
        quality["rest"][column, draw] = ndcg(learn(rows, grades).latent(X[test]))

for name, values in quality.items():
    print(f"{name:6}", values.mean(axis=1).round(3))
print(f"in random order {ndcg(rng.random(test.sum())):.3f}")

# %%
# On the left, what an "at least" is worth: less than a grade, more than nothing. On the right, what
# was learned from all queries that are not for testing: the scores of the test pages by their true
# grade, and the thresholds between the predicted grades.

looks = {
    "exact": ("every grade exact", "#0072B2", "o", "-"),
    "mixed": ("half of them “at least”", "#D55E00", "s", "--"),
    "rest": ("without that half", "#009E73", "^", "-."),
}
figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.4), layout="constrained")
for name, (label, colour, marker, line) in looks.items():
    mean = quality[name].mean(axis=1)
    sem = quality[name].std(axis=1, ddof=1) / np.sqrt(n_draws)
    left.plot(sizes, mean, color=colour, marker=marker, linestyle=line, label=label)
    left.fill_between(sizes, mean - sem, mean + sem, color=colour, alpha=0.2, linewidth=0)
figure.suptitle("Order of test queries by number of queries learned, and scores by true grade")
left.set_xscale("log", base=2)
left.set_xticks(sizes, sizes)
left.set_xlabel("queries to learn from, 40 pages each")
left.set_ylabel("mean NDCG@10 of 200 test queries")
left.legend(frameon=False, loc="lower right")
left.grid(axis="y", color="#e5e5e5")

model = learn(~test, y)
scores = model.latent(X[test])
colour = looks["mixed"][1]
right.boxplot(
    [scores[grades[test] == grade] for grade in range(5)],
    positions=range(5),
    orientation="horizontal",
    widths=0.55,
    whis=(5, 95),
    showfliers=False,
    patch_artist=True,
    boxprops={"facecolor": "#fbe3d3", "edgecolor": colour},
    medianprops={"color": colour, "linewidth": 2},
    whiskerprops={"color": colour},
    capprops={"color": colour},
)
for i, threshold in enumerate(model.thresholds_, start=1):
    right.axvline(threshold, color="#333333", linestyle="--", linewidth=1, zorder=0)
    right.text(threshold, 4.56, rf"$\theta_{i}$", ha="center", va="bottom")
right.set_ylim(-0.5, 4.5)
right.set_xlabel("score (boxes: half of the pages, whiskers: 90 %)")
right.set_ylabel("true grade")
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
