"""The JSON header of a model file: its schema, and parameters as plain values."""

from __future__ import annotations

from sys import float_info
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import msgspec
import numpy as np
from numpy.typing import NDArray

from ordspan.tables.encoder import Recipe
from ordspan.tables.files import FileOptions, Identity
from ordspan.tables.rows import Count

Scalar = bool | int | float | str
Finite = Annotated[float, msgspec.Meta(ge=-float_info.max, le=float_info.max)]


class PlainArray(msgspec.Struct):
    """An array or a NumPy scalar as JSON."""

    dtype: Annotated[str, msgspec.Meta(pattern="^[<>|=]?[biufU][0-9]{1,9}$")]
    values: Scalar | list[Scalar]


class StoredConstant(TypedDict):
    """The best constant prediction, and its MAE."""

    grade: bool | int | float | str
    mae: float


class TrainingSettings(TypedDict):
    """The training settings that ``ordspan info`` shows."""

    files: list[str]
    passes: Annotated[int, msgspec.Meta(ge=1)]


Training = TypedDict(
    "Training",
    {
        "settings": TrainingSettings,
        "from": NotRequired[str | None],
        "rows": Count,
        "skipped": Count,
        "mae": list[float],
        "constant": StoredConstant | None,
        "left_out": dict[str, str],
        "notes": list[str],
        "sweeps": NotRequired[Count],
    },
)
"""The record of a training, as far as it is shown or needed to continue."""


class Note(msgspec.Struct):
    """Additional data of a checkpoint: settings, files and progress."""

    settings: dict[str, Any]
    files: list[Identity]
    progress: dict[str, Any]


class Table(msgspec.Struct):
    """Additional data of a model trained from files."""

    recipe: Recipe
    labels: dict[str, str | None]
    options: FileOptions
    training: dict[str, Any]

    def __post_init__(self) -> None:
        msgspec.convert(self.training, Training)


class Calibrated(msgspec.Struct):
    """The `CalibratedOrdinal` around an estimator."""

    parameters: dict[str, Any]  # except the estimator
    estimator: Literal["default", "given", "frozen"]


class Header(msgspec.Struct, forbid_unknown_fields=True):
    """The JSON header of a model file."""

    format: int
    estimator: str
    parameters: dict[str, Any]
    classes: PlainArray
    n_features: Annotated[int, msgspec.Meta(ge=1)]
    n_iter: Count
    fitted: dict[str, Finite]
    feature_names: list[str] | None = None
    table: Table | None = None
    checkpoint: Note | None = None
    calibrated: Calibrated | None = None


def plain(name: str, value: Any) -> Any:
    """A parameter as JSON; arrays and NumPy scalars keep their type."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        value = np.asarray(value)
    if isinstance(value, list | tuple):
        return [plain(name, v) for v in value]
    if isinstance(value, dict):  # JSON keys would become strings
        return {"pairs": [[plain(name, k), plain(name, v)] for k, v in value.items()]}
    if hasattr(value, "__array__"):
        array: NDArray[Any] = np.asarray(value)
        if array.dtype.kind in "biufU" and array.ndim < 2:
            return {"dtype": array.dtype.str, "values": array.tolist()}
    raise TypeError(
        f"cannot save {name}={value!r}; use plain numbers, strings or lists (for random_state, an "
        "int)"
    )


def from_plain(value: Any, room: int) -> Any:
    """The inverse of `plain`; arrays may take at most ``room`` bytes."""
    if isinstance(value, list):
        return [from_plain(v, room) for v in value]
    if not isinstance(value, dict):
        return value
    if "pairs" in value:
        return {from_plain(k, room): from_plain(v, room) for k, v in value["pairs"]}
    return array_of(msgspec.convert(value, PlainArray), room)


def array_of(stored: PlainArray, room: int) -> Any:
    """An array or NumPy scalar of at most ``room`` bytes."""
    dtype = np.dtype(stored.dtype)
    size = dtype.itemsize * (len(stored.values) if isinstance(stored.values, list) else 1)
    if size > room:
        raise ValueError(f"an array of {size:,} bytes is too large for this file")
    array = np.array(stored.values, dtype=dtype)
    return array if array.ndim else array[()]
