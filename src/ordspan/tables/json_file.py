"""JSON lines, read by Polars; a block that it rejects is read again, line by line."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import chain
from math import isfinite
from typing import Any

import numpy as np
import polars as pl

from ordspan.labels.forms import is_number
from ordspan.tables.batch import EMPTY, INFER_ROWS, NUMBER, OTHER, TEXT, UNTYPED, Faults, FileError
from ordspan.tables.lines import TextBlock
from ordspan.tables.tables import Frame, TextFile, as_text_hint, not_a_number
from ordspan.tables.text import SAVE_AS_UTF8, STDIN, open_text, text_blocks
from ordspan.wording import SHOWN

HALF = re.compile(
    rb"\\u[dD][89abAB]..(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F]", re.DOTALL
)
"""An unpaired surrogate, which Polars would read as another character."""
SURROGATE = re.compile("[\ud800-\udfff]")
STRING = re.compile(rb'"(?:[^"\\]|\\.)*"?', re.DOTALL)
OPENING, CLOSING = list(b"[{"), list(b"]}")
DEEPEST = 64
"""Deepest nesting that is read: Polars crashes at some hundred levels."""
MAX_INT_DIGITS = 4000
"""Python refuses to parse integers with more digits than about this."""


class JsonFile(TextFile):
    """A file, or standard input, with one JSON object per line; its keys are the columns."""

    def __init__(self, path: str, encoding: str | None = None, pipe: Any = None) -> None:
        self.encoding, self._pipe = encoding, pipe
        self._kinds: dict[str, str] = {}
        self._searching = False
        super().__init__(path)

    def _open(self) -> list[str]:
        text = open_text(self.path, self.encoding, self._pipe)
        self.plain, self.begin = text.plain, text.begin
        rest = (block for block in text_blocks(self.path, text=text) if block.content.strip())
        head = next(rest, None)
        if head is None:
            raise FileError(f"{self.path}: the file is empty")
        self._begun = chain([head], rest)
        lines = _filled_lines(head)[:INFER_ROWS]
        if self.path != STDIN:
            lines = self._first_lines()
        found = [_object(line) for _, line in lines]
        if all(fault for _, fault in found):
            raise FileError(f"{self.path}, line {lines[0][0]}: {found[0][1]}")
        return list(dict.fromkeys(name for row, _ in found for name in row))

    def _first_lines(self) -> list[tuple[int, bytes]]:
        blocks = self._head(INFER_ROWS)
        return [line for block in blocks for line in _filled_lines(block)][:INFER_ROWS]

    def kinds(self) -> dict[str, str]:
        """The kind of each key, from the JSON types in the first lines."""
        if not self._kinds:
            rows = [_object(line)[0] for _, line in self._first_lines()]
            self._kinds = {name: _json_kind([row.get(name) for row in rows]) for name in self.names}
        return self._kinds

    def sample(self, size: int) -> tuple[pl.DataFrame, bool]:
        """Rows spread over the file; adds keys that the first lines do not have."""
        self._searching = True
        return super().sample(size)

    def _good_rows(self, found: list[TextBlock]) -> pl.DataFrame:
        if self._searching:
            for block in found:
                self._take_names(block)
        return super()._good_rows(found)

    def _take_names(self, block: TextBlock) -> None:
        try:
            _check_plain(block.content)
            keys = pl.read_ndjson(block.content, infer_schema_length=None).columns
        except pl.exceptions.PolarsError:
            rows = (_object(line)[0] for _, line in _filled_lines(block))
            keys = list(dict.fromkeys(name for row in rows for name in row))
        for name in keys:
            if name not in self.names:
                self.names.append(name)
                self._kinds[name] = UNTYPED

    def find(self, wanted: Sequence[str]) -> None:
        """Search the rest of the file for keys that the first lines do not have."""
        missing = (
            {name for name in wanted if name not in self.names} if self.path != STDIN else set()
        )
        for block in text_blocks(self.path, encoding=self.encoding) if missing else ():
            for name in list(missing):
                if json.dumps(name, ensure_ascii=False).encode() in block.content:
                    self.names.append(name)
                    missing.discard(name)
            if not missing:
                break

    def typed_numbers(self) -> list[str]:
        """Columns of numbers and booleans."""
        return [name for name, kind in self.kinds().items() if kind == NUMBER]

    def _n_rows(self, block: TextBlock) -> int:
        return len(_filled_lines(block))

    def _parsed(self, block: TextBlock, numbers: Sequence[str], texts: Sequence[str]) -> Frame:
        content, numbered = block.content, _filled_lines(block)
        lines = np.array([number for number, _ in numbered], dtype=np.int64)
        words: dict[str, Any] = dict.fromkeys(texts, pl.String())  # as written, numbers too
        floats: dict[str, Any] = dict.fromkeys([n for n in numbers if n not in texts], pl.Float64())
        try:
            _check_plain(content)
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
            [[_float_or_none(row.get(n)) for n in floats] for row in rows], floats, orient="row"
        )
        if words:  # again by Polars, so that the result is the same either way
            again = "\n".join(
                json.dumps({name: _json_value(row.get(name)) for name in words}) for row in rows
            )
            frame = frame.hstack(pl.read_ndjson(again.encode(), schema=words))
        return Frame(frame, lines, faults, block.share)


def _filled_lines(block: TextBlock) -> list[tuple[int, bytes]]:
    return [(number, line) for number, line in block.numbered_lines() if line.strip()]


def _object(line: bytes) -> tuple[dict[str, Any], str]:
    """The object on a line, or what is wrong with it."""
    if _is_deep(line):
        return {}, f"lists or objects are nested more than {DEEPEST} deep; flatten them"
    try:
        row = json.loads(
            line.decode(),
            object_pairs_hook=_first_of_each,
            parse_constant=str,
            parse_int=_whole_number,
        )
    except UnicodeDecodeError as error:
        return {}, f"byte {error.start + 1} is not UTF-8; {SAVE_AS_UTF8}"
    except json.JSONDecodeError as error:
        return {}, f"not JSON: {error.msg}, at column {error.colno}"
    if HALF.search(line) and SURROGATE.search(json.dumps(row, ensure_ascii=False)):
        return {}, "half of a surrogate pair such as \\ud800 is not a character; correct it"
    if not isinstance(row, dict):
        return {}, f"{line.decode()[:SHOWN]!r} is not an object with a value for each column"
    return row, ""


def _check_plain(content: bytes) -> None:
    """Raise Polars' error for content that it would misread, or crash on."""
    half = b"\\u" in content and HALF.search(content)
    if half or b"\0" in content or _is_deep(content):
        raise pl.exceptions.ComputeError("not plain")


def _is_deep(content: bytes) -> bool:
    """Whether lists and objects on some line are nested too deep.

    >>> _is_deep(b"[" * 100 + b"]" * 100), _is_deep(b'{"a": "' + b"[" * 100 + b'"}')
    (True, False)
    """
    n_lines, n_open = content.count(b"\n"), content.count(b"[") + content.count(b"{")
    if n_open <= n_lines + DEEPEST:  # at least one on every line
        return False
    return any(
        line.count(b"[") + line.count(b"{") > DEEPEST and _depth(line) > DEEPEST
        for line in content.split(b"\n")
    )


def _depth(line: bytes) -> int:
    """Depth of nested lists and objects, ignoring brackets in strings."""
    codes = np.frombuffer(STRING.sub(b"", line), dtype=np.uint8)
    steps = np.isin(codes, OPENING).astype(np.int64) - np.isin(codes, CLOSING)
    return int(np.cumsum(steps).max(initial=0))


def _whole_number(digits: str) -> int | str:
    """An integer; one that Python does not parse stays text."""
    return int(digits) if len(digits) <= MAX_INT_DIGITS else digits


def _first_of_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object with the first value of each repeated key, as Polars reads it."""
    return dict(pairs) | dict(pairs[::-1])  # the left side keeps the order of the keys


def _json_kind(values: list[Any]) -> str:
    if any(isinstance(v, list | dict) for v in values):
        return OTHER
    known = [v for v in values if v is not None]
    n_words = sum(isinstance(v, str) for v in known)
    if not known:
        return UNTYPED
    return TEXT if 2 * n_words > len(known) else NUMBER


def _number_fault(row: dict[str, Any], numbers: Sequence[str]) -> str:
    for name in numbers:
        value = row.get(name)
        if _is_empty(value) or (not isinstance(value, str) and is_number(value)):
            continue
        return not_a_number(name, value) + as_text_hint(name)
    return ""


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str) and value.strip() in EMPTY)


def _json_value(value: Any) -> Any:
    """A value to write as JSON for Polars; very large numbers become text."""
    if isinstance(value, int) and abs(value) >= 2**63:
        return str(value)
    return str(value) if isinstance(value, float) and not isfinite(value) else value


def _float_or_none(value: Any) -> float | None:
    return None if value is None or isinstance(value, str) else float(value)
