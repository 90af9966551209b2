"""Learn ordered grades from exact labels or from ranges, one example at a time."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ordspan.commands.python import evaluate_files, predict_files, train_files
    from ordspan.core.labels import intervals
    from ordspan.data.coarsening import coarsen
    from ordspan.estimators import (
        CalibratedOrdinal,
        KernelOrdinalPA,
        MulticlassPA,
        MulticlassPerceptron,
        OrdinalPA,
        OrdinalSVM,
        PRank,
    )
    from ordspan.estimators.splitting import StratifiedIntervalKFold
    from ordspan.estimators.steps import latent, predict_interval
    from ordspan.estimators.text_labels import parse_intervals
    from ordspan.modelfile import ModelFileError, load, save

_HOMES = {
    "CalibratedOrdinal": "ordspan.estimators",
    "KernelOrdinalPA": "ordspan.estimators",
    "ModelFileError": "ordspan.modelfile",
    "MulticlassPA": "ordspan.estimators",
    "MulticlassPerceptron": "ordspan.estimators",
    "OrdinalPA": "ordspan.estimators",
    "OrdinalSVM": "ordspan.estimators",
    "PRank": "ordspan.estimators",
    "StratifiedIntervalKFold": "ordspan.estimators.splitting",
    "coarsen": "ordspan.data.coarsening",
    "evaluate_files": "ordspan.commands.python",
    "intervals": "ordspan.core.labels",
    "latent": "ordspan.estimators.steps",
    "load": "ordspan.modelfile",
    "parse_intervals": "ordspan.estimators.text_labels",
    "predict_files": "ordspan.commands.python",
    "predict_interval": "ordspan.estimators.steps",
    "save": "ordspan.modelfile",
    "train_files": "ordspan.commands.python",
}
_ROOMS = ("bounds", "data", "distributed", "learners", "metrics", "plot", "river")

__all__ = [
    "CalibratedOrdinal",
    "KernelOrdinalPA",
    "ModelFileError",
    "MulticlassPA",
    "MulticlassPerceptron",
    "OrdinalPA",
    "OrdinalSVM",
    "PRank",
    "StratifiedIntervalKFold",
    "__version__",
    "coarsen",
    "evaluate_files",
    "intervals",
    "latent",
    "load",
    "parse_intervals",
    "predict_files",
    "predict_interval",
    "save",
    "train_files",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _ROOMS:
        return import_module(f"ordspan.{name}")
    raise AttributeError(f"module 'ordspan' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS])
