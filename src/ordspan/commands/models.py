"""Model files as the commands want them: found, whole, and with the columns they need."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from ordspan.data.files.lines import FileError
from ordspan.modelfile import checked_header, from_bytes
from ordspan.tabular import TabularModel


class ModelFile(NamedTuple):
    """A model, and what its file says of it."""

    path: str
    model: Any  # a TabularModel, or an estimator that was saved from Python
    header: dict[str, Any]
    size: int  # bytes

    @property
    def estimator(self) -> Any:
        """The ranker itself."""
        return self.model.estimator if isinstance(self.model, TabularModel) else self.model


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
    return ModelFile(name, from_bytes(content, name), header, len(content))


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
