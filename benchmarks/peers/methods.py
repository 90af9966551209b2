"""The methods compared, each with the four settings it may choose from by inner cross-validation.

A new rival is one entry here. Linear and kernel methods see features standardised on the training
rows; trees need none of that. All RBF kernels have the width gamma = 1 / number of features.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ordspan
from peers.adapters import (
    SEED,
    CensoredTrees,
    Classified,
    OrderedRegression,
    RiverOneVsRest,
    Rounded,
)

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
    """

    name: str
    package: str
    make: Callable[..., Any]
    grid: tuple[Config, ...] = ({},)
    reads_intervals: bool = False
    note: str = ""

    @property
    def ours(self) -> bool:
        """Whether it is a method of this library."""
        return self.package == "ordspan"

    @property
    def missing(self) -> str:
        """Why it cannot run here; empty when it can."""
        if self.name == "KernelOrdinalPA" and not hasattr(ordspan, "KernelOrdinalPA"):
            return "this version of ordspan has none"
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


def grades(n_classes: int) -> np.ndarray:
    return np.arange(1, n_classes + 1)


def ordinal_pa(n_features: int, n_classes: int, **config: Any) -> Any:
    return scaled(ordspan.OrdinalPA(classes=grades(n_classes), random_state=SEED, **config))


def ordinal_svm(n_features: int, n_classes: int, C: float) -> Any:
    return scaled(ordspan.OrdinalSVM(C, classes=grades(n_classes)))


def kernel_pa(n_features: int, n_classes: int, C: float) -> Any:
    from ordspan import KernelOrdinalPA

    return scaled(
        KernelOrdinalPA(
            C=C, kernel="rbf", gamma=1 / n_features, classes=grades(n_classes), random_state=SEED
        )
    )


def nystroem_svm(n_features: int, n_classes: int, C: float) -> Any:
    from sklearn.kernel_approximation import Nystroem

    features = Nystroem(gamma=1 / n_features, n_components=200, random_state=SEED)
    return scaled(features, ordspan.OrdinalSVM(C, classes=grades(n_classes)))


def mord_at(n_features: int, n_classes: int, alpha: float) -> Any:
    from mord import LogisticAT

    return scaled(Classified(LogisticAT(alpha)))


def mord_it(n_features: int, n_classes: int, alpha: float) -> Any:
    from mord import LogisticIT

    return scaled(Classified(LogisticIT(alpha)))


def mord_ridge(n_features: int, n_classes: int, alpha: float) -> Any:
    from mord import OrdinalRidge

    return scaled(Rounded(OrdinalRidge(alpha=alpha)))


def skordinal_at(n_features: int, n_classes: int, alpha: float) -> Any:
    from skordinal.classifiers import LogisticAT

    return scaled(Classified(LogisticAT(alpha)))


def svor(n_features: int, n_classes: int, C: float) -> Any:
    from skordinal.classifiers import SVOR

    return scaled(Classified(SVOR(C, gamma=1 / n_features)))


def redsvm(n_features: int, n_classes: int, C: float) -> Any:
    from skordinal.classifiers import REDSVM

    return scaled(Classified(REDSVM(C, gamma=1 / n_features)))


def ordered_model(n_features: int, n_classes: int) -> Any:
    return scaled(Classified(OrderedRegression()))


def sgd_pa1(n_features: int, n_classes: int, C: float, average: bool) -> Any:
    from sklearn.linear_model import SGDClassifier

    learner = SGDClassifier(
        loss="hinge", penalty=None, learning_rate="pa1", eta0=C, average=average, random_state=SEED
    )
    return scaled(Classified(learner))


def river_pa(n_features: int, n_classes: int, C: float) -> Any:
    return scaled(Classified(RiverOneVsRest(C)))


def lightgbm_rounded(n_features: int, n_classes: int, num_leaves: int) -> Any:
    from lightgbm import LGBMRegressor

    return Rounded(LGBMRegressor(num_leaves=num_leaves, n_jobs=1, random_state=SEED, verbosity=-1))


def xgboost_aft(n_features: int, n_classes: int, **config: Any) -> Any:
    return CensoredTrees(n_classes, **config)


KERNEL_C = over("C", 0.1, 0.5, 2.0, 10.0)
ALPHA = over("alpha", 0.1, 1.0, 10.0, 100.0)

METHODS = (
    Method(
        "OrdinalPA (defaults)",
        "ordspan",
        ordinal_pa,
        reads_intervals=True,
        note="nothing tuned",
    ),
    Method(
        "OrdinalPA (tuned)",
        "ordspan",
        ordinal_pa,
        tuple({"balanced": balanced, "C": C} for balanced in (False, True) for C in (0.01, 0.1)),
        reads_intervals=True,
    ),
    Method("OrdinalSVM", "ordspan", ordinal_svm, over("C", 0.01, 0.1, 1.0, 10.0), True),
    Method("KernelOrdinalPA", "ordspan", kernel_pa, KERNEL_C, True, "RBF kernel"),
    Method(
        "Nystroem + OrdinalSVM",
        "ordspan",
        nystroem_svm,
        KERNEL_C,
        True,
        "RBF kernel by 200 features of scikit-learn's Nystroem",
    ),
    Method("mord LogisticAT", "mord", mord_at, ALPHA),
    Method("mord LogisticIT", "mord", mord_it, ALPHA),
    Method("mord OrdinalRidge", "mord", mord_ridge, ALPHA, note="middles not rounded"),
    Method("skordinal LogisticAT", "skordinal", skordinal_at, ALPHA),
    Method("skordinal SVOR", "skordinal", svor, KERNEL_C, note="RBF kernel, implicit constraints"),
    Method("skordinal REDSVM", "skordinal", redsvm, KERNEL_C, note="RBF kernel"),
    Method(
        "statsmodels OrderedModel",
        "statsmodels",
        ordered_model,
        note="logit, BFGS up to 200 steps, no penalty to tune; predicts the median",
    ),
    Method(
        "SGDClassifier pa1",
        "scikit-learn",
        sgd_pa1,
        tuple({"average": average, "C": C} for average in (False, True) for C in (0.01, 0.1)),
        note="one against the rest",
    ),
    Method(
        "river PA one-vs-rest",
        "river",
        river_pa,
        over("C", 0.001, 0.01, 0.1, 1.0),
        note="PA-I, one pass as over a stream",
    ),
    Method(
        "LightGBM rounded",
        "lightgbm",
        lightgbm_rounded,
        over("num_leaves", 4, 8, 16, 31),
        note="100 trees, squared error, middles not rounded",
    ),
    Method(
        "XGBoost AFT",
        "xgboost",
        xgboost_aft,
        tuple({"max_depth": depth, "scale": scale} for depth in (2, 4) for scale in (0.5, 1.0)),
        True,
        "survival:aft, normal, 100 trees; rank k is the time exp(k), bounds open at both ends",
    ),
)
BY_NAME = {method.name: method for method in METHODS}
