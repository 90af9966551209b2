"""Read model files, and open data files for a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ordspan.files.batch import FileError
from ordspan.files.grades import LabelReader
from ordspan.files.opening import FileOptions, options_like
from ordspan.header import Header
from ordspan.learners import Calibration
from ordspan.modelfile import checked_header, model_of
from ordspan.tabular import TabularModel

RETRAIN = "train a model that includes it"


class ModelFile(NamedTuple):
    """A model and the header of its file."""

    path: str
    model: Any  # a TabularModel, or an estimator that was saved from Python
    header: Header
    size: int  # bytes

    @property
    def estimator(self) -> Any:
        """The ordinal estimator itself."""
        if isinstance(self.model, TabularModel):
            return self.model.estimator
        return _layers_of(self.model)[-1]

    @property
    def steps(self) -> list[str] | None:
        """The pipeline steps before the estimator, if any."""
        around = self.header.calibrated
        pipelines = [self.header.pipeline, None if around is None else around.pipeline]
        if pipelines == [None, None]:
            return None
        return [
            step if isinstance(step, str) else step.kind
            for pipeline in pipelines
            if pipeline is not None
            for _, step in pipeline.before.inside
        ]

    @property
    def calibration(self) -> Calibration | None:
        """The calibration for probabilities and ranges, if any."""
        if isinstance(self.model, TabularModel):
            return self.model.calibration
        if self.header.calibrated is None:
            return None
        return next(p.calibration_ for p in _layers_of(self.model) if hasattr(p, "calibration_"))


def _layers_of(model: Any) -> list[Any]:
    from ordspan.estimators.steps import layers_of  # needs scikit-learn's pipelines

    return layers_of(model)


def read_model(path: str | Path) -> ModelFile:
    """Read a model file.

    Parameters
    ----------
    path : path
        A file written by `ordspan.save` or by ``ordspan train``, or a checkpoint of it.
    """
    name = str(path)
    if Path(path).is_dir():
        raise FileError(f"{name} is a folder; give the name of a model file")
    if not Path(path).exists():
        raise FileError(f"{name}: no such model file; ordspan train writes one")
    content = Path(path).read_bytes()
    header = checked_header(content, name)
    return ModelFile(name, model_of(content, header, name), header, len(content))


def read_table_model(path: str | Path) -> TabularModel:
    """Read a model that ``ordspan train`` wrote; other models do not know the columns."""
    file = read_model(path)
    if not isinstance(file.model, TabularModel):
        raise FileError(
            f"{file.path} holds an estimator ({type(file.model).__name__}) that was saved from "
            "Python, without the columns of a table; give a model that ordspan train wrote, or "
            "call ordspan.load(...).predict(X) in Python"
        )
    return file.model


def options_for(model: TabularModel, files: Sequence[str], given: FileOptions) -> FileOptions:
    """How to open files for a model: as given, by file extension, or as in training."""
    return options_like(model.options, model.recipe, files, given)


class KnownGrades(LabelReader):
    """Reads labels for a trained model, whose grades are fixed."""

    owner = "the model's "

    @property
    def remedy(self) -> str:
        """What to do about an unknown grade."""
        return f"correct it, or {RETRAIN}"
