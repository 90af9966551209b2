"""
One update, before and after
============================

A ranker is a score :math:`w \\cdot x` and sorted thresholds; the grade is one more than the number
of thresholds below the score. A label, one grade or a range of grades, says on which side of the
score each threshold belongs. An update is the smallest move of weights and thresholds after which
they lie there, by a margin of 1.

Five grades have four thresholds. Here an example comes whose label is "3 or 4": thresholds 1 and 2
belong below its score, threshold 4 above it, and threshold 3, between the two grades of the label,
may lie anywhere.
"""

from copy import deepcopy

import matplotlib.pyplot as plt
import numpy as np

from ordspan.datasets import synthetic
from ordspan.learners import LinearLearner

BLUE, ORANGE, GREY, BAND = "#0072B2", "#D55E00", "#767676", "#e8eef3"

# %%
# A ranker that has seen 60 examples meets a new one, which it grades too low: its score lies below
# threshold 2.

data = synthetic(n=60, n_features=2, random_state=1)
start = LinearLearner(n_features=2, n_classes=5, variant="PA-II", C=0.5)
start.learn_many(data.X, data.ranks)
x, lower, upper = np.array([-0.9, -0.1]), 3, 4
print("score     ", (start.weights @ x).round(2))
print("thresholds", start.thresholds.round(2))
print("grade     ", start.predict_one(x), "but the label says 3 or 4")

# %%
# Each variant goes on from the same ranker. PA corrects the example in full. PA-I moves no
# threshold further than C, so it may stop short. PA-II leaves some violation in exchange for a
# shorter move.


def after(variant, C):
    """The ranker after learning the example by one variant."""
    learner = deepcopy(start)
    learner.adopt_settings(LinearLearner(2, 5, variant, C))
    learner.learn_one(x, lower, upper)
    return learner


learners = {
    "PA": after("PA", 1.0),
    "PA-I, C = 0.65": after("PA-I", 0.65),
    "PA-II, C = 0.5": after("PA-II", 0.5),
}
for name, learner in learners.items():
    print(f"{name:15} score {learner.weights @ x:5.2f}, thresholds {learner.thresholds.round(2)}")

# %%
# The band is the margin around the score: the thresholds in blue have to leave it on the side that
# the label asks for. Arrows show what moved. Threshold 3 is free and stays. Threshold 1 stays too,
# although it was inside the margin: the rising score clears it, and the smallest move knows that.


def draw_line(ax, height, learner, text):
    """One number line: the margin around the score, the score and the thresholds."""
    score = learner.weights @ x
    ax.fill_betweenx([height - 0.2, height + 0.2], score - 1, score + 1, color=BAND, zorder=0)
    ax.plot(score, height, "D", color=ORANGE, markersize=8, zorder=4)
    ax.axhline(height, color="black", linewidth=0.8, zorder=1)
    for i, threshold in enumerate(learner.thresholds, start=1):
        free = lower <= i < upper
        colour = GREY if free else BLUE
        ax.plot([threshold] * 2, [height - 0.13, height + 0.13], color=colour, linewidth=3)
        side = 0.19 if height else -0.19
        ax.text(
            threshold,
            height + side,
            rf"$\theta_{i}$",
            ha="center",
            va="bottom" if height else "top",
            color=colour,
            fontsize=12,
        )
    ax.text(-0.015, height, text, ha="right", va="center", transform=ax.get_yaxis_transform())


def draw_moves(ax, learner):
    """Arrows from where score and thresholds were to where they are."""
    moves = [(start.weights @ x, learner.weights @ x, ORANGE)]
    moves += [(old, new, BLUE) for old, new in zip(start.thresholds, learner.thresholds)]
    for old, new, colour in moves:
        if abs(old - new) > 0.01:
            style = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.3, "shrinkB": 0}
            ax.annotate("", (new, 0.17), (old, 0.83), arrowprops=style)


figure, axes = plt.subplots(3, 1, figsize=(8.5, 7.6), sharex=True, layout="constrained")
for ax, (name, learner) in zip(axes, learners.items()):
    draw_line(ax, 1, start, "before")
    draw_line(ax, 0, learner, "after")
    draw_moves(ax, learner)
    ax.set_title(name, loc="left", fontsize=12, fontweight="bold")
    ax.set_ylim(-0.5, 1.5)
    ax.set_yticks([])
    ax.spines[:].set_visible(False)
    ax.tick_params(bottom=ax is axes[-1])
axes[-1].spines["bottom"].set_visible(True)
axes[-1].set_xlabel("score")
axes[0].plot([], [], "D", color=ORANGE, markersize=8, label="score of the example")
axes[0].plot([], [], color=BLUE, linewidth=3, label="threshold with a side to be on")
axes[0].plot([], [], color=GREY, linewidth=3, label="free threshold")
axes[0].fill_between([], [], color=BAND, label="margin of 1")
figure.legend(loc="outside upper center", ncols=4, frameon=False)
plt.show()
