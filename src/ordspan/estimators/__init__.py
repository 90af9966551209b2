"""The scikit-learn API: parameters, validation, classes_, partial_fit."""

from typing import TYPE_CHECKING, Any

from ordspan.estimators.kernel import KernelOrdinalPA
from ordspan.estimators.online import MulticlassPA, MulticlassPerceptron, OrdinalPA, PRank
from ordspan.estimators.svm import OrdinalSVM

if TYPE_CHECKING:
    from ordspan.estimators.calibrated import CalibratedOrdinal

__all__ = [
    "CalibratedOrdinal",
    "KernelOrdinalPA",
    "MulticlassPA",
    "MulticlassPerceptron",
    "OrdinalPA",
    "OrdinalSVM",
    "PRank",
]


def __getattr__(name: str) -> Any:
    """Import what needs scikit-learn's pipelines and splitters only when it is used."""
    if name == "CalibratedOrdinal":
        from ordspan.estimators.calibrated import CalibratedOrdinal

        return CalibratedOrdinal
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
