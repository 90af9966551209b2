"""The JSON text of a model file: what it must hold, and parameters as plain values."""

from __future__ import annotations

from sys import float_info
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import msgspec
import numpy as np
from numpy.typing import NDArray

from ordspan.files.batch import Count
from ordspan.files.features import Recipe
from ordspan.files.opening import FileOptions, Identity

Scalar = bool | int | float | str
Finite = Annotated[float, msgspec.Meta(ge=-float_info.max, le=float_info.max)]


class PlainArray(msgspec.Struct):
    """An array or a NumPy scalar as JSON."""

    dtype: Annotated[str, msgspec.Meta(pattern="^[<>|=]?[biufU][0-9]{1,9}$")]
    values: Scalar | list[Scalar]


class Constant(TypedDict):
    """The grade that would have been best for every row, and its MAE."""

    grade: bool | int | float | str
    mae: float


class TrainingSettings(TypedDict):
    """Those settings of a training that are shown; there are more."""

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
        "constant": Constant | None,
        "left_out": dict[str, str],
        "notes": list[str],
        "sweeps": NotRequired[Count],
    },
)
"""How a model was trained, as far as it is shown or needed to go on."""


class Note(msgspec.Struct):
    """What a checkpoint says besides: what it was made with and from, and how far it has come."""

    settings: dict[str, Any]
    files: list[Identity]
    progress: dict[str, Any]


class Table(msgspec.Struct):
    """What a model that was trained from files says besides."""

    recipe: Recipe
    labels: dict[str, str | None]
    options: FileOptions
    training: dict[str, Any]

    def __post_init__(self) -> None:
        msgspec.convert(self.training, Training)


class Node(msgspec.Struct, omit_defaults=True):
    """A transformer: its class, its parameters, what it has learned, and what is inside it."""

    kind: str
    parameters: dict[str, Any]
    fitted: dict[str, Any] = {}
    n_features: Annotated[int, msgspec.Meta(ge=1)] | None = None
    feature_names: list[str] | None = None
    output: Literal["default", "pandas", "polars"] | None = None
    inside: list[tuple[str, Node | Literal["drop", "passthrough"]]] = []


class Steps(msgspec.Struct):
    """What a file says of the Pipeline around an estimator."""

    before: Node  # a Pipeline of all steps but the last
    last: str  # the name of the last


class Calibrated(msgspec.Struct):
    """What a file says of the `CalibratedOrdinal` around an estimator."""

    parameters: dict[str, Any]  # but for the estimator
    estimator: Literal["default", "given", "frozen"]
    pipeline: Steps | None = None  # inside it


class Header(msgspec.Struct):
    """The JSON text of a model file."""

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
    pipeline: Steps | None = None  # around everything


def plain(name: str, value: Any) -> Any:
    """A parameter as JSON; arrays and NumPy scalars keep their type."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        value = np.asarray(value)
    if isinstance(value, list | tuple):
        return [plain(name, v) for v in value]
    if isinstance(value, dict):  # JSON would make words of the keys
        return {"pairs": [[plain(name, k), plain(name, v)] for k, v in value.items()]}
    if hasattr(value, "__array__"):
        array: NDArray[Any] = np.asarray(value)
        if array.dtype.kind in "biufU" and array.ndim < 2:
            return {"dtype": array.dtype.str, "values": array.tolist()}
    if callable(value):
        raise TypeError(
            f"cannot save {name}={value!r}: a model file holds no code; use a {name} that has a "
            "name, or 'precomputed' with its values"
        )
    raise TypeError(
        f"cannot save {name}={value!r}; use plain numbers, words or lists (for random_state an int)"
    )


def unplain(value: Any, room: int) -> Any:
    """A parameter as it was before `plain`; an array takes no more than ``room`` bytes."""
    if isinstance(value, list):
        return [unplain(v, room) for v in value]
    if not isinstance(value, dict):
        return value
    if "pairs" in value:
        return {unplain(k, room): unplain(v, room) for k, v in value["pairs"]}
    return array_of(msgspec.convert(value, PlainArray), room)


def array_of(stored: PlainArray, room: int) -> Any:
    """An array, or a NumPy scalar, of no more than ``room`` bytes."""
    dtype = np.dtype(stored.dtype)
    size = dtype.itemsize * (len(stored.values) if isinstance(stored.values, list) else 1)
    if size > room:
        raise ValueError(f"an array of {size:,} bytes in so small a file")
    array = np.array(stored.values, dtype=dtype)
    return array if array.ndim else array[()]
