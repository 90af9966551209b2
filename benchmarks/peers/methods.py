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
    note : str
        What else a reader should know.
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
    note: str = ""
    proba: bool = True
    baseline: bool = False

    @property
    def ours(self) -> bool:
        """Whether it is a method of this library."""
        return self.package == "ordspan"

    @property
    def missing(self) -> str:
        """Why it cannot run here; empty when it can."""
        module = {"scikit-learn": "sklearn"}.get(self.package, self.package)
        return "" if find_spec(module) else f"{self.package} is not installed"

    @property
    def version(self) -> str:
        """Version of the package."""
        return version(self.package)


def over(name: str, *values: Any) -> tuple[Config, ...]:
    """A grid of one parameter.

    >>> over("C", 1, 10)
    ({'C': 1}, {'C': 10})
    """
    return tuple({name: value} for value in values)


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

METHODS = (
    Method(
        "OrdinalPA (defaults)", "ordspan", ordinal_pa, reads_intervals=True, note="nothing tuned"
    ),
    Method(
        "OrdinalPA (tuned)",
        "ordspan",
        ordinal_pa,
        tuple({"balanced": balanced, "C": C} for balanced in (False, True) for C in (0.01, 0.1)),
        reads_intervals=True,
    ),
    Method("OrdinalSVM", "ordspan", ordinal_svm, LINEAR_C, True),
    Method("KernelOrdinalPA", "ordspan", kernel_pa, KERNEL_C, True, "RBF kernel"),
    Method(
        "Nystroem + OrdinalSVM",
        "ordspan",
        nystroem_svm,
        KERNEL_C,
        True,
        "RBF kernel by 200 features of scikit-learn's Nystroem",
    ),
    Method("mord LogisticAT", "mord", classified("mord.LogisticAT"), ALPHA),
    Method("mord LogisticIT", "mord", classified("mord.LogisticIT"), ALPHA),
    Method("mord OrdinalRidge", "mord", mord_ridge, ALPHA, False, "middles not rounded", False),
    Method(
        "skordinal LogisticAT", "skordinal", classified("skordinal.classifiers.LogisticAT"), ALPHA
    ),
    Method(
        "skordinal SVOR",
        "skordinal",
        classified("skordinal.classifiers.SVOR", rbf=True),
        KERNEL_C,
        note="RBF kernel, implicit constraints",
        proba=False,
    ),
    Method(
        "skordinal REDSVM",
        "skordinal",
        classified("skordinal.classifiers.REDSVM", rbf=True),
        KERNEL_C,
        note="RBF kernel",
        proba=False,
    ),
    Method(
        "statsmodels OrderedModel",
        "statsmodels",
        classified("peers.adapters.OrderedRegression", median=True),
        note="logit, BFGS up to 200 steps, no penalty to tune; predicts the median",
    ),
    Method(
        "SGDClassifier pa1",
        "scikit-learn",
        sgd_pa1,
        tuple({"average": average, "C": C} for average in (False, True) for C in (0.01, 0.1)),
        note="one against the rest",
        proba=False,
    ),
    Method(
        "river PA one-vs-rest",
        "river",
        classified("peers.adapters.RiverOneVsRest"),
        over("C", 0.001, 0.01, 0.1, 1.0),
        note="PA-I, one pass as over a stream",
        proba=False,
    ),
    Method(
        "LightGBM rounded",
        "lightgbm",
        lightgbm_rounded,
        over("num_leaves", 4, 8, 16, 31),
        note="100 trees, squared error, middles not rounded",
        proba=False,
    ),
    Method(
        "XGBoost AFT",
        "xgboost",
        xgboost_aft,
        tuple({"max_depth": depth, "scale": scale} for depth in (2, 4) for scale in (0.5, 1.0)),
        True,
        "survival:aft, normal, 100 trees; rank k is the time exp(k), bounds open at both ends",
    ),
    Method(
        "ogboost",
        "ogboost",
        ogboost,
        tuple({"max_depth": d, "learning_rate": rate} for d in (2, 4) for rate in (0.1, 0.3)),
        note="GradientBoostingOrdinal, logit, 100 trees; predicts the median",
    ),
    Method(
        "LogisticRegression",
        "scikit-learn",
        classified("sklearn.linear_model.LogisticRegression", median=True),
        LINEAR_C,
        note="knows no order of grades; predicts the median of its probabilities",
    ),
    Method(
        "constant",
        "scikit-learn",
        classified("sklearn.dummy.DummyClassifier", median=True, strategy="prior"),
        note="shares of the grades in the training rows; for its probabilities only",
        baseline=True,
    ),
)
BY_NAME = {method.name: method for method in METHODS}
