"""Convert parameters and fitted values of transformers to JSON and back."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from ordspan.header import PlainArray, array_of

NUMBER_TYPES: dict[str, type] = {
    t.__name__: t
    for t in (np.float64, np.float32, np.int64, np.int32, np.int16, np.int8, np.uint8, np.bool_)
}
"""Allowed output types, by name."""
INSIDE = "__calibrated"
"""Prefix of the tensors of a pipeline inside a `CalibratedOrdinal`; no step has this name."""
ARRAYS, DTYPES = "biufUO", "biufO"
SCALARS = (type(None), bool, int, float, str, np.generic)


class SizeBudget:
    """Memory that reading a file may still use, in bytes."""

    def __init__(self, room: int) -> None:
        self.left = room

    def take(self, n_bytes: int) -> None:
        """Use some bytes; refuse a small file that needs too many."""
        self.left -= n_bytes
        if self.left < 0:
            raise ValueError(f"{n_bytes:,} bytes more in so small a file")


def encode_value(value: Any) -> Any:
    """A value as JSON; other types become a dict with the type as its only key.

    >>> encode_value((0, 1)), encode_value(float("nan")), encode_value(np.array(["a"]))
    ({'tuple': [0, 1]}, {'float': 'nan'}, {'array': ['<U1', ['a']]})
    """
    if value is None or isinstance(value, str) or type(value) in (bool, int):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, list):
        return [encode_value(v) for v in value]
    if isinstance(value, tuple):
        return {"tuple": [encode_value(v) for v in value]}
    if isinstance(value, slice):
        return {"slice": [encode_value(v) for v in (value.start, value.stop, value.step)]}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {key: encode_value(v) for key, v in value.items()}}
    if isinstance(value, type) and NUMBER_TYPES.get(value.__name__) is value:
        return {"type": value.__name__}
    if isinstance(value, np.dtype) and value.kind in DTYPES:
        return {"dtype": value.str}
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in ARRAYS and value.ndim < 2:
        plain = value.tolist()
        entries = [encode_value(v) for v in plain] if value.ndim else encode_value(plain)
        return {"array": [value.dtype.str, entries]}
    if callable(value):
        raise TypeError(f"{value!r}, and a model file holds no code")
    raise TypeError(f"{value!r}, a {type(value).__name__}, which model files cannot store")


def decode_value(stored: Any, budget: SizeBudget) -> Any:
    """The value that `encode_value` was given."""
    if isinstance(stored, list):
        return [decode_value(v, budget) for v in stored]
    if not isinstance(stored, dict):
        return stored
    [(kind, content)] = stored.items()
    return DECODERS[kind](content, budget)


def _dict(content: Any, budget: SizeBudget) -> dict[str, Any]:
    return {k: decode_value(v, budget) for k, v in msgspec.convert(content, dict[str, Any]).items()}


def _slice(content: Any, budget: SizeBudget) -> slice:
    start, stop, step = decode_value(content, budget)
    return slice(start, stop, step)


def _dtype(content: Any, budget: SizeBudget) -> np.dtype[Any]:
    found = np.dtype(msgspec.convert(content, str))
    if found.kind not in DTYPES:
        raise ValueError(f"a dtype {content!r}")
    return found


def _array(content: Any, budget: SizeBudget) -> Any:
    dtype, entries = content
    values = decode_value(entries, budget)
    if dtype != "|O":
        plain = msgspec.convert({"dtype": dtype, "values": values}, PlainArray)
        array = array_of(plain, budget.left)
        budget.take(array.nbytes)
        return array
    if not isinstance(values, list) or not all(isinstance(v, SCALARS) for v in values):
        raise ValueError("an array of anything but words and numbers")
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    return objects


DECODERS: dict[str, Callable[[Any, SizeBudget], Any]] = {
    "float": lambda content, _: {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[content],
    "tuple": lambda content, budget: tuple(decode_value(list(content), budget)),
    "slice": _slice,
    "dict": _dict,
    "type": lambda content, _: NUMBER_TYPES[content],
    "dtype": _dtype,
    "array": _array,
}
