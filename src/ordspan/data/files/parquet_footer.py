"""Where the pages of a Parquet file are, as its footer tells.

pyarrow has read the footer before, and knows it to be whole. It could tell the same, but where one
of the numbers makes no sense it then ends the process, instead of raising an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, TEXT, LIST, SET, MAP, STRUCT = range(1, 13)
"""Kinds of values in Thrift's compact protocol."""

ROW_GROUPS = 4  # field of the footer
Struct = dict[int, Any]
"""The values of a struct by the numbers of their fields."""


def row_groups(path: str) -> Iterator[Struct]:
    """The row groups of a file, one after the other; IndexError where the footer is no footer."""
    with Path(path).open("rb") as file:
        file.seek(-8, 2)
        size = int.from_bytes(file.read(4), "little")
        file.seek(-8 - size, 2)
        footer = file.read(size)
    at = field = 0
    while True:
        step, kind, at = _field(footer, at)
        field += step
        if kind == 0:
            return
        if field == ROW_GROUPS and kind == LIST:
            count, _, at = _list(footer, at)
            for _ in range(count):
                group, at = _struct(footer, at)
                yield group
            return
        _, at = _value(footer, at, kind)


def _struct(data: bytes, at: int) -> tuple[Struct, int]:
    found: Struct = {}
    field = 0
    while True:
        step, kind, at = _field(data, at)
        if kind == 0:
            return found, at
        field += step
        found[field], at = _value(data, at, kind)


def _field(data: bytes, at: int) -> tuple[int, int, int]:
    """How far it is to the next field, its kind (0 for the end), and where its value begins."""
    head = data[at]
    if head and not head >> 4:
        raise IndexError("fields out of order")
    return head >> 4, head & 15, at + 1


def _value(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind in (I32, I64, I16):
        number, at = _varint(data, at)
        return (number >> 1) ^ -(number & 1), at
    if kind == TEXT:
        size, at = _varint(data, at)
        return data[at : at + size], at + size
    if kind == STRUCT:
        return _struct(data, at)
    if kind in (LIST, SET):
        count, inner, at = _list(data, at)
        items = []
        for _ in range(count):
            item, at = _value(data, at + (inner <= FALSE), inner)  # here truth takes a byte
            items.append(item)
        return items, at
    if kind in (TRUE, FALSE):
        return kind == TRUE, at
    if kind == BYTE:
        return data[at], at + 1
    if kind == DOUBLE:
        return data[at : at + 8], at + 8
    raise IndexError(f"a value of kind {kind}")


def _list(data: bytes, at: int) -> tuple[int, int, int]:
    """How many values a list has, of which kind, and where they begin."""
    count, kind = data[at] >> 4, data[at] & 15
    if count < 15:
        return count, kind, at + 1
    count, at = _varint(data, at + 1)
    return count, kind, at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7
