"""Where training stands after each round: a model file that says a little more."""

from __future__ import annotations

import json
import os
from pathlib import Path
from reprlib import repr as short
from typing import Any

from ordspan.atomic import write_atomically
from ordspan.modelfile import ModelFileError, checked_header, described, from_bytes, to_bytes

SAME = ("estimator", "parameters", "classes", "n_features", "feature_names")
"""What a model file says that must agree for training to go on."""


class Checkpoint:
    """One file that is replaced after each round; without a path, nothing.

    Parameters
    ----------
    path : path-like or None
        The file; it is an ordinary model file too.
    model : estimator
        The one in training, with its classes and features known.
    settings : dict
        What else must agree, besides what the model file says of the model, for training to go on.
    """

    def __init__(self, path: Any, model: Any, settings: dict[str, Any]) -> None:
        self.path = None if path is None else Path(path)
        self.model = model
        self.settings = settings
        if self.path is not None:
            # found out now, not after the first round
            self._expected = json.loads(json.dumps(described(model) | {"distributed": settings}))
            if not self.path.parent.is_dir():
                raise FileNotFoundError(
                    f"checkpoint={os.fspath(path)!r}: there is no folder {str(self.path.parent)!r}"
                )

    def read(self) -> dict[str, Any] | None:
        """What ``write`` was told last, the model's memory put back; None if there is no file."""
        if self.path is None or not self.path.exists():
            return None
        content = self.path.read_bytes()
        header = checked_header(content, str(self.path))
        if "progress" not in header:
            raise ModelFileError(f"{self.path} is a model file, but not a checkpoint of a fit")
        self._refuse_others(header)
        self.model.learner_.restore(from_bytes(content, str(self.path)).learner_.memory)
        return header["progress"]

    def _refuse_others(self, header: dict[str, Any]) -> None:
        """Refuse a checkpoint of other settings or other data, naming the first difference."""
        then = _flat({key: header[key] for key in SAME} | header["distributed"])
        now = _flat({key: self._expected[key] for key in SAME} | self._expected["distributed"])
        for key in sorted(then.keys() | now.keys()):
            if then.get(key) != now.get(key):
                raise ValueError(
                    f"the checkpoint {self.path} was made with {key} = {short(then.get(key))}, "
                    f"now it is {short(now.get(key))}; give another checkpoint=, or delete the "
                    "file to start anew"
                )

    def write(self, progress: dict[str, Any]) -> None:
        """Keep the model as it is now, and how far it has come, whole or not at all."""
        if self.path is not None:
            content = to_bytes(self.model, distributed=self.settings, progress=progress)
            write_atomically(self.path, content)


def _flat(settings: dict[str, Any]) -> dict[str, Any]:
    """Parameters as settings of their own, so that a difference can be named."""
    own = {f"estimator.{name}": value for name, value in settings["parameters"].items()}
    return {name: value for name, value in settings.items() if name != "parameters"} | own
