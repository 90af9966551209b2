"""The methods compared, each with the four settings it may choose from by inner cross-validation.

A new rival is one entry here. Linear and kernel methods see features standardised on the training
rows; trees need none of that. All RBF kernels have the width gamma = 1 / number of features.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ordspan
from peers.adapters import SEED, CensoredTrees, Classified, Rounded

Config = Mapping[str, Any]


@dataclass(frozen=True)
class Method:
    """A way to learn.

    Attributes
    ----------
    name : str
        As tables show it.
    package : str
        Distribution it comes from.
    make : callable
        ``make(n_features, n_classes, **config)`` gives a fresh model.
    grid : tuple of dict
        Settings to choose from; one means nothing is tuned.
    reads_intervals : bool
        Whether it learns from intervals as they are; else it is given their middles.
    proba : bool
        Whether it gives a probability for every grade.
    baseline : bool
        Whether it is there for its probabilities only and has no place in the other tables.
    """

    name: str
    package: str
    make: Callable[..., Any]
    grid: tuple[Config, ...] = ({},)
    reads_intervals: bool = False
    proba: bool = True
    baseline: bool = False

    @property
    def ours(self) -> bool:
        """Whether it is a method of this library."""
        return self.package == "ordspan"

    @property
    def missing(self) -> bool:
        """Whether its package is not installed."""
        return find_spec({"scikit-learn": "sklearn"}.get(self.package, self.package)) is None

    @property
    def version(self) -> str:
        """Version of the package."""
        return version(self.package)


def over(name: str, *values: Any) -> tuple[Config, ...]:
    """A grid of one parameter."""
    return tuple({name: value} for value in values)


def crossed(first: str, firsts: tuple, second: str, seconds: tuple) -> tuple[Config, ...]:
    """A grid of two parameters."""
    return tuple({first: a, second: b} for a in firsts for b in seconds)


def scaled(*steps: Any) -> Any:
    return make_pipeline(StandardScaler(), *steps)


def classified(
    path: str, median: bool = False, rbf: bool = False, **fixed: Any
) -> Callable[..., Any]:
    """``make`` of a classifier by its import path; imported only when it is to run."""
    module, _, name = path.rpartition(".")

    def make(n_features: int, n_classes: int, **config: Any) -> Any:
        width = {"gamma": 1 / n_features} if rbf else {}
        classifier = getattr(import_module(module), name)(**fixed, **width, **config)
        return scaled(Classified(classifier, median))

    return make


def grades(n_classes: int) -> np.ndarray:
    return np.arange(1, n_classes + 1)


def ordinal_pa(n_features: int, n_classes: int, **config: Any) -> Any:
    return scaled(ordspan.OrdinalPA(classes=grades(n_classes), random_state=SEED, **config))


def ordinal_svm(n_features: int, n_classes: int, C: float) -> Any:
    return scaled(ordspan.OrdinalSVM(C, classes=grades(n_classes)))


def kernel_pa(n_features: int, n_classes: int, C: float) -> Any:
    learner = ordspan.KernelOrdinalPA(
        C=C, kernel="rbf", gamma=1 / n_features, classes=grades(n_classes), random_state=SEED
    )
    return scaled(learner)


def nystroem_svm(n_features: int, n_classes: int, C: float) -> Any:
    from sklearn.kernel_approximation import Nystroem

    features = Nystroem(gamma=1 / n_features, n_components=200, random_state=SEED)
    return scaled(features, ordspan.OrdinalSVM(C, classes=grades(n_classes)))


def mord_ridge(n_features: int, n_classes: int, alpha: float) -> Any:
    from mord import OrdinalRidge

    return scaled(Rounded(OrdinalRidge(alpha=alpha)))


def sgd_pa1(n_features: int, n_classes: int, C: float, average: bool) -> Any:
    from sklearn.linear_model import SGDClassifier

    learner = SGDClassifier(
        loss="hinge", penalty=None, learning_rate="pa1", eta0=C, average=average, random_state=SEED
    )
    return scaled(Classified(learner))


def lightgbm_rounded(n_features: int, n_classes: int, num_leaves: int) -> Any:
    from lightgbm import LGBMRegressor

    return Rounded(LGBMRegressor(num_leaves=num_leaves, n_jobs=1, random_state=SEED, verbosity=-1))


def xgboost_aft(n_features: int, n_classes: int, **config: Any) -> Any:
    return CensoredTrees(n_classes, **config)


def ogboost(n_features: int, n_classes: int, max_depth: int, learning_rate: float) -> Any:
    from ogboost import GradientBoostingOrdinal
    from sklearn.tree import DecisionTreeRegressor

    tree = DecisionTreeRegressor(max_depth=max_depth)
    booster = GradientBoostingOrdinal(
        tree, learning_rate=learning_rate, link_function="logit", random_state=SEED
    )
    return Classified(booster, median=True)


LINEAR_C = over("C", 0.01, 0.1, 1.0, 10.0)
KERNEL_C = over("C", 0.1, 0.5, 2.0, 10.0)
ALPHA = over("alpha", 0.1, 1.0, 10.0, 100.0)
BALANCED = crossed("balanced", (False, True), "C", (0.01, 0.1))
AVERAGE = crossed("average", (False, True), "C", (0.01, 0.1))
CENSORED = crossed("max_depth", (2, 4), "scale", (0.5, 1.0))
BOOSTED = crossed("max_depth", (2, 4), "learning_rate", (0.1, 0.3))
logistic_at = classified("skordinal.classifiers.LogisticAT")
svor = classified("skordinal.classifiers.SVOR", rbf=True)
redsvm = classified("skordinal.classifiers.REDSVM", rbf=True)
ordered = classified("peers.adapters.OrderedRegression", median=True)
one_vs_rest = classified("peers.adapters.RiverOneVsRest")
logistic = classified("sklearn.linear_model.LogisticRegression", median=True)
shares = classified("sklearn.dummy.DummyClassifier", median=True, strategy="prior")

METHODS = (
    Method("OrdinalPA (defaults)", "ordspan", ordinal_pa, reads_intervals=True),
    Method("OrdinalPA (tuned)", "ordspan", ordinal_pa, BALANCED, reads_intervals=True),
    Method("OrdinalSVM", "ordspan", ordinal_svm, LINEAR_C, reads_intervals=True),
    Method("KernelOrdinalPA", "ordspan", kernel_pa, KERNEL_C, reads_intervals=True),
    Method("Nystroem + OrdinalSVM", "ordspan", nystroem_svm, KERNEL_C, reads_intervals=True),
    Method("mord LogisticAT", "mord", classified("mord.LogisticAT"), ALPHA),
    Method("mord LogisticIT", "mord", classified("mord.LogisticIT"), ALPHA),
    Method("mord OrdinalRidge", "mord", mord_ridge, ALPHA, proba=False),
    Method("skordinal LogisticAT", "skordinal", logistic_at, ALPHA),
    Method("skordinal SVOR", "skordinal", svor, KERNEL_C, proba=False),
    Method("skordinal REDSVM", "skordinal", redsvm, KERNEL_C, proba=False),
    Method("statsmodels OrderedModel", "statsmodels", ordered),
    Method("SGDClassifier pa1", "scikit-learn", sgd_pa1, AVERAGE, proba=False),
    Method(
        "river PA one-vs-rest", "river", one_vs_rest, over("C", 0.001, 0.01, 0.1, 1.0), proba=False
    ),
    Method(
        "LightGBM rounded",
        "lightgbm",
        lightgbm_rounded,
        over("num_leaves", 4, 8, 16, 31),
        proba=False,
    ),
    Method("XGBoost AFT", "xgboost", xgboost_aft, CENSORED, reads_intervals=True),
    Method("ogboost", "ogboost", ogboost, BOOSTED),
    Method("LogisticRegression", "scikit-learn", logistic, LINEAR_C),
    Method("constant", "scikit-learn", shares, baseline=True),
)
BY_NAME = {method.name: method for method in METHODS}
