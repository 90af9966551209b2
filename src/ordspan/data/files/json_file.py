"""JSON lines: one object a line, its keys are the columns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from ordspan.data.files.chunks import (
    EMPTY,
    JUDGED_LINES,
    NUMBER,
    OTHER,
    TEXT,
    BadRows,
    Chunk,
    Place,
    is_number,
    not_a_number,
)
from ordspan.data.files.lines import Block, FileError, blocks, numbered_lines


class JsonFile:
    """A file, or standard input, with one JSON object a line."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._blocks: Iterator[Block] | None = blocks(path)
        self._first = next(self._blocks, None)
        if self._first is None or not self._first.content.strip():
            raise FileError(f"{path}: the file is empty")
        number, line = numbered_lines(self._first)[0]
        head, fault = _object(line)
        if fault:
            raise FileError(f"{path}, line {number}: {fault}")
        self.names = list(head)

    def kinds(self) -> dict[str, str]:
        """What each key of the first line holds, judged by the first block of lines."""
        assert self._first is not None
        rows = [_object(line)[0] for _, line in islice(numbered_lines(self._first), JUDGED_LINES)]
        return {name: _kind([row.get(name) for row in rows]) for name in self.names}

    def chunks(
        self, numbers: Sequence[str], texts: Sequence[str], place: Place, bad: BadRows
    ) -> Iterator[Chunk]:
        """Chunks from a place on, with the keys ``numbers`` as floats and ``texts`` as words."""
        for block in self._blocks_from(place):
            yield self._chunk(block, numbers, texts, bad)

    def _blocks_from(self, place: Place) -> Iterator[Block]:
        started, self._blocks = self._blocks, None
        if place.start == 0 and started is not None and self._first is not None:
            yield self._first
            yield from started
        else:
            yield from blocks(self.path, place.start, place.line)

    def _chunk(
        self, block: Block, numbers: Sequence[str], texts: Sequence[str], bad: BadRows
    ) -> Chunk:
        import pyarrow as pa

        lines, rows = [], []
        for number, line in numbered_lines(block):
            row, fault = _object(line)
            fault = fault or _number_fault(row, numbers)
            if fault:
                bad.meet(f"{self.path}, line {number}: {fault}")
            else:
                lines.append(number)
                rows.append(row)
        columns: dict[str, Any] = {
            name: np.array([_as_float(row.get(name)) for row in rows], dtype=np.float64)
            for name in numbers
        }
        columns |= {name: pa.array([as_word(row.get(name)) for row in rows]) for name in texts}
        place = Place(block.start, block.line)
        return Chunk(self.path, "line", np.array(lines, np.int64), place, pa.table(columns))


def _object(line: bytes) -> tuple[dict[str, Any], str]:
    """The object on a line, or what is wrong with it."""
    try:
        row = json.loads(line)
    except UnicodeDecodeError as error:
        return {}, f"byte {error.start + 1} is not UTF-8; save the file as UTF-8"
    except ValueError as error:
        return {}, f"not JSON: {error}"
    if not isinstance(row, dict):
        return {}, f"{line[:40].decode()!r} is not an object with a value for each column"
    return row, ""


def _kind(values: list[Any]) -> str:
    if any(isinstance(v, list | dict) for v in values):
        return OTHER
    known = [v for v in values if v is not None]
    n_words = sum(isinstance(v, str) for v in known)
    return TEXT if 2 * n_words > len(known) else NUMBER


def _number_fault(row: dict[str, Any], numbers: Sequence[str]) -> str:
    for name in numbers:
        value = row.get(name)
        if not (
            value is None or value in EMPTY or (value.__class__ is not str and is_number(value))
        ):
            return not_a_number(name, value)
    return ""


def _as_float(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else np.nan


def as_word(value: Any) -> str:
    """A value as it would stand in a CSV file.

    >>> as_word([3, 5]), as_word(None), as_word(2.0)
    ('[3,5]', '', '2')
    """
    if value is None:
        return ""
    if isinstance(value, list):
        return f"[{','.join(as_word(v) for v in value)}]"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
