"""Model files as the commands want them, and how to open the files that they are to grade."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ordspan.files.batch import FileError
from ordspan.files.grades import LabelReader
from ordspan.files.opening import FileOptions, format_of
from ordspan.header import Header
from ordspan.learners import Calibration
from ordspan.modelfile import checked_header, model_of
from ordspan.tabular import TabularModel

FOUND = (*",;\t|", "utf-8", "utf-16", "utf-16-le", "utf-16-be", "cp1252", "latin-1", None)
"""Delimiters and encodings that a look at a file finds."""
RETRAIN = "train a model that knows it"


class ModelFile(NamedTuple):
    """A model, and what its file says of it."""

    path: str
    model: Any  # a TabularModel, or an estimator that was saved from Python
    header: Header
    size: int  # bytes

    @property
    def estimator(self) -> Any:
        """The ranker itself."""
        if isinstance(self.model, TabularModel):
            return self.model.estimator
        if self.header.calibrated is None:
            return self.model
        fitted = self.model.estimator_
        return fitted.estimator if self.header.calibrated.estimator == "frozen" else fitted

    @property
    def calibration(self) -> Calibration | None:
        """What gives probabilities and ranges, where the model has it."""
        if isinstance(self.model, TabularModel):
            return self.model.calibration
        return None if self.header.calibrated is None else self.model.calibration_


def read_model(path: str | Path) -> ModelFile:
    """The model in a file; what is not one is refused with the reason.

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
    """The model in a file that ``ordspan train`` wrote; others do not know the columns."""
    file = read_model(path)
    if not isinstance(file.model, TabularModel):
        raise FileError(
            f"{file.path} holds an estimator ({type(file.model).__name__}) that was saved from "
            "Python, without the columns of a table; give a model that ordspan train wrote, or "
            "call ordspan.load(...).predict(X) in Python"
        )
    return file.model


def options_for(model: TabularModel, files: Sequence[str], told: FileOptions) -> FileOptions:
    """How to open files for a model: as told, or as their names tell, or as in training."""
    format = told.format
    if format is None:
        try:
            [format_of(path, FileOptions()) for path in files]
        except FileError:
            format = model.options.format  # still None where that was not told either
    then = model.options
    return replace(
        told,
        format=format,
        # what a look finds is found in each file anew
        delimiter=told.delimiter or (None if then.delimiter in FOUND else then.delimiter),
        encoding=told.encoding or (None if then.encoding in FOUND else then.encoding),
        zero_based=model.recipe.zero_based,
        n_features=model.recipe.n_sparse,
    )


class KnownGrades(LabelReader):
    """Ranks of labels for a model that is trained: its grades are what they are."""

    owner = "the model's "

    @property
    def way_out(self) -> str:
        """What to do about a grade that is none of them."""
        return f"correct it, or {RETRAIN}"
