"""JSON lines by Polars, one object a line; a block that it refuses is read again, line by line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from math import isfinite
from typing import Any

import numpy as np
import polars as pl

from ordspan.files.ahead import THREADS, side_by_side
from ordspan.files.batch import (
    EMPTY,
    JUDGED_ROWS,
    NUMBER,
    OTHER,
    TEXT,
    Faults,
    FileError,
    is_number,
)
from ordspan.files.tables import Frame, TableFile, not_a_number
from ordspan.files.text import STDIN, Block, blocks

HALF = re.compile(
    rb"\\u[dD][89abAB]..(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F]", re.DOTALL
)
"""A surrogate without the other of its pair, which Polars would read as another letter."""


class JsonFile(TableFile):
    """A file, or standard input, with one JSON object a line; its keys are the columns."""

    def _open(self) -> list[str]:
        rest = self._blocks()
        self._head = next(rest, None)
        self._begun: Iterator[Block] | None = chain([self._head] if self._head else [], rest)
        if self._head is None:
            raise FileError(f"{self.path}: the file is empty")
        number, line = _filled_lines(self._head)[0]
        first, fault = _object(line)
        if fault:
            raise FileError(f"{self.path}, line {number}: {fault}")
        return list(first)

    def _blocks(self) -> Iterator[Block]:
        return (block for block in blocks(self.path) if block.content.strip())

    def kinds(self) -> dict[str, str]:
        """What each key holds, judged by the first lines, for which a pipe is waited for."""
        begun = self._begun or self._blocks()
        head: list[Block] = []
        lines: list[tuple[int, bytes]] = []
        while len(lines) < JUDGED_ROWS and (more := next(begun, None)):
            head.append(more)
            lines += _filled_lines(more)
        self._begun = chain(head, begun)
        rows = [_object(line)[0] for _, line in lines[:JUDGED_ROWS]]
        return {name: _kind([row.get(name) for row in rows]) for name in self.names}

    def frames(self, numbers: Sequence[str], texts: Sequence[str], start: int) -> Iterator[Frame]:
        """At least the rows from ``start`` on."""
        begun, self._begun = self._begun, None
        rest = begun or self._blocks()
        row = 0
        while row < start and (block := next(rest, None)):
            n_rows = len(_filled_lines(block))
            if row + n_rows > start:
                rest = chain([block], rest)
                break
            row += n_rows
        parse = partial(_parsed, numbers=numbers, texts=texts)
        for found in side_by_side(parse, rest, 0 if self.path == STDIN else THREADS):
            yield found._replace(row=row)
            row += found.lines.size


def _filled_lines(block: Block) -> list[tuple[int, bytes]]:
    return [(number, line) for number, line in block.numbered_lines() if line.strip()]


def _parsed(block: Block, numbers: Sequence[str], texts: Sequence[str]) -> Frame:
    content, numbered = block.content, _filled_lines(block)
    lines = np.array([number for number, _ in numbered], dtype=np.int64)
    words: dict[str, Any] = dict.fromkeys(texts, pl.String())  # as written, also of numbers
    floats: dict[str, Any] = dict.fromkeys([n for n in numbers if n not in texts], pl.Float64())
    try:
        if b"\\u" not in content or not HALF.search(content):
            frame = pl.read_ndjson(content, schema=words | floats)
            if frame.height == lines.size:
                return Frame(frame, lines, {}, block.share)
    except pl.exceptions.PolarsError:
        pass
    faults, rows = Faults(), []
    for place, (_, line) in enumerate(numbered):
        row, fault = _object(line)
        if fault := fault or _number_fault(row, numbers):
            faults[place], row = fault, {}
        rows.append(row)
    frame = pl.DataFrame(
        [[_as_float(row.get(n)) for n in floats] for row in rows], floats, orient="row"
    )
    if words:  # again by Polars, so that they are the same whichever way was taken
        again = "\n".join(
            json.dumps({name: _word(row.get(name)) for name in words}) for row in rows
        )
        frame = frame.hstack(pl.read_ndjson(again.encode(), schema=words))
    return Frame(frame, lines, faults, block.share)


def _object(line: bytes) -> tuple[dict[str, Any], str]:
    """The object on a line, or what is wrong with it."""
    try:
        row = json.loads(line, object_pairs_hook=_first_of_each, parse_constant=str)
    except UnicodeDecodeError as error:
        return {}, f"byte {error.start + 1} is not UTF-8; save the file as UTF-8"
    except (ValueError, RecursionError) as error:
        return {}, f"not JSON: {error}"
    if HALF.search(line):
        return {}, "half of a surrogate pair such as \\ud800 is no letter; correct it"
    if not isinstance(row, dict):
        return {}, f"{line[:40].decode()!r} is not an object with a value for each column"
    return row, ""


def _first_of_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object with the first value of a key that comes twice, as Polars reads it."""
    return dict(pairs) | dict(pairs[::-1])  # in the order of the keys, the first values last


def _kind(values: list[Any]) -> str:
    if any(isinstance(v, list | dict) for v in values):
        return OTHER
    known = [v for v in values if v is not None]
    n_words = sum(isinstance(v, str) for v in known)
    return TEXT if 2 * n_words > len(known) else NUMBER


def _number_fault(row: dict[str, Any], numbers: Sequence[str]) -> str:
    for name in numbers:
        value = row.get(name)
        if value is None or value in EMPTY or (not isinstance(value, str) and is_number(value)):
            continue
        return not_a_number(name, value)
    return ""


def _word(value: Any) -> Any:
    """A value that can be written as JSON again; a number too large for a double cannot."""
    return str(value) if isinstance(value, float) and not isfinite(value) else value


def _as_float(value: Any) -> float | None:
    return None if value is None or isinstance(value, str) else float(value)
