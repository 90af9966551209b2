"""The methods compared, each at the defaults of its package, and only what it cannot do without.

A new rival is one entry here. Linear and kernel methods see features standardised on the training
rows; trees need none of that.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ordspan
from peers.adapters import SEED, CensoredTrees, Classified, Rounded


class Method(NamedTuple):
    """A way to learn: ``make(n_classes)`` gives a fresh model."""

    name: str
    package: str
    make: Callable[[int], Any]
    reads_ranges: bool = False  # else it is given their middles, or the exact part of the rows
    proba: bool = True  # whether it gives a probability for every grade

    @property
    def missing(self) -> bool:
        """Whether its package is not installed."""
        return find_spec({"scikit-learn": "sklearn"}.get(self.package, self.package)) is None


def ours(name: str, *before: Any, **fixed: Any) -> Callable[[int], Any]:
    """An estimator of this library, told all grades."""

    def make(n_classes: int) -> Any:
        model = getattr(ordspan, name)(
            classes=np.arange(1, n_classes + 1), random_state=SEED, **fixed
        )
        return make_pipeline(StandardScaler(), *before, model)

    return make


def theirs(
    path: str, wrap: Callable[..., Any] = Classified, scaled: bool = True, **fixed: Any
) -> Callable[[int], Any]:
    """An estimator by its import path, imported only when it is to run."""
    module, _, name = path.rpartition(".")

    def make(n_classes: int) -> Any:
        model = wrap(getattr(import_module(module), name)(**fixed))
        return make_pipeline(StandardScaler(), model) if scaled else model

    return make


def nystroem(n_classes: int) -> Any:
    from sklearn.kernel_approximation import Nystroem

    return ours("OrdinalSVM", Nystroem(random_state=SEED))(n_classes)


def median(classifier: Any) -> Classified:
    """A classifier that predicts the median of its probabilities, the best for MAE."""
    return Classified(classifier, median=True)


SKORDINAL, SKLEARN = "skordinal.classifiers", "sklearn.linear_model"
ONE_THREAD: Any = {"n_jobs": 1, "random_state": SEED}
TREES: Any = {"scaled": False}
PA1: Any = {"loss": "hinge", "penalty": None, "learning_rate": "pa1", "eta0": 1.0}
METHODS = (
    Method("OrdinalPA", "ordspan", ours("OrdinalPA"), True),
    Method("OrdinalSVM", "ordspan", ours("OrdinalSVM"), True),
    Method("KernelOrdinalPA", "ordspan", ours("KernelOrdinalPA"), True),
    Method("Nystroem + OrdinalSVM", "ordspan", nystroem, True),
    Method("mord LogisticAT", "mord", theirs("mord.LogisticAT")),
    Method("mord LogisticIT", "mord", theirs("mord.LogisticIT")),
    Method("mord OrdinalRidge", "mord", theirs("mord.OrdinalRidge", Rounded), proba=False),
    Method("skordinal LogisticAT", "skordinal", theirs(f"{SKORDINAL}.LogisticAT")),
    Method("skordinal SVOR", "skordinal", theirs(f"{SKORDINAL}.SVOR"), proba=False),
    Method("skordinal REDSVM", "skordinal", theirs(f"{SKORDINAL}.REDSVM"), proba=False),
    Method("statsmodels OrderedModel", "statsmodels", theirs("peers.adapters.Ordered", median)),
    Method(
        "SGDClassifier pa1", "scikit-learn", theirs(f"{SKLEARN}.SGDClassifier", **PA1), proba=False
    ),
    Method("river PA one-vs-rest", "river", theirs("peers.adapters.RiverOneVsRest"), proba=False),
    Method(
        "LogisticRegression, median",
        "scikit-learn",
        theirs(f"{SKLEARN}.LogisticRegression", median),
    ),
    Method(
        "LightGBM rounded",
        "lightgbm",
        theirs("lightgbm.LGBMRegressor", Rounded, **TREES, **ONE_THREAD, verbosity=-1),
        proba=False,
    ),
    Method("XGBoost AFT", "xgboost", CensoredTrees, True),
    Method(
        "ogboost",
        "ogboost",
        theirs("ogboost.GradientBoostingOrdinal", median, **TREES, random_state=SEED),
    ),
    Method(
        "ordboost", "ordboost", theirs("ordboost.OrdBoostClassifier", median, **TREES, **ONE_THREAD)
    ),
    Method(
        "constant",
        "scikit-learn",
        theirs("sklearn.dummy.DummyClassifier", median, strategy="prior"),
    ),
)
BY_NAME = {method.name: method for method in METHODS}
