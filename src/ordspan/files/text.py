"""Texts of any size as blocks of whole lines: plain, gzip, zstd or standard input."""

from __future__ import annotations

import csv
import gzip
import os
import re
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ordspan.files.batch import FileError

BLOCK_BYTES = 1 << 23
LONGEST_LINE = 1 << 26
STDIN = "-"
UTF8_MARK = b"\xef\xbb\xbf"
PACKED = (".gz", ".zst")
LOOK_AHEAD = 1 << 15
QUOTE = b'"'
MOST_LINES = 10_000
"""A quoted cell that spans more lines than these is taken for a quote that is not closed."""
csv.field_size_limit(max(LONGEST_LINE, csv.field_size_limit()))  # else cells of 128 kB end in error
FILLED = re.compile(rb"[^\r\n]")


class Moment:
    """Where a walk over files can be ended: between two blocks, and while it waits for a pipe."""

    waiting = False

    def pass_by(self) -> None:
        """Called before every block; whoever wants to end the walk lets it raise."""


moment = Moment()


class Block(NamedTuple):
    """Some whole lines of a text."""

    content: bytes
    line: int  # number of its first line, from 1
    share: float  # of the file that has been read
    odd: bool = False  # whether a quote in it is not where quotes belong

    @property
    def n_lines(self) -> int:
        """Number of lines; the last may lack its end."""
        return self.content.count(b"\n") + (not self.content.endswith(b"\n"))

    def is_blank(self) -> bool:
        """Whether there is nothing but line ends."""
        return FILLED.search(self.content) is None

    def numbered_lines(self) -> list[tuple[int, bytes]]:
        """The lines that are not blank, with their numbers.

        >>> Block(b"a\\n\\nb\\n", line=5, share=1.0).numbered_lines()
        [(5, b'a'), (7, b'b')]
        """
        lines = enumerate(self.content.split(b"\n"), self.line)
        return [(number, text) for number, line in lines if (text := line.rstrip(b"\r"))]


def plain_name(path: str) -> str:
    """The name without the ending of its packing.

    >>> plain_name("a.csv.gz")
    'a.csv'
    """
    return path[: -len(Path(path).suffix)] if path.lower().endswith(PACKED) else path


class Text:
    """The unpacked bytes of a file or of standard input, from the beginning."""

    def __init__(self, path: str) -> None:
        self.size = 0
        if path == STDIN:
            self._file: Any = sys.stdin.buffer
            self._raw: Any = sys.stdin.buffer
            return
        if not Path(path).is_file():
            raise FileError(f"{path}: no such file")
        self.size = Path(path).stat().st_size
        self._file = self._raw = open(path, "rb", buffering=0)  # noqa: SIM115
        if path.lower().endswith(".gz"):
            self._file = gzip.GzipFile(fileobj=self._raw)
        elif path.lower().endswith(".zst"):
            import pyarrow as pa

            self._file = pa.CompressedInputStream(pa.PythonFile(self._raw), "zstd")

    @property
    def share(self) -> float:
        """How much of the file has been read; 0 where that cannot be known."""
        return self._raw.tell() / self.size if self.size else 0.0

    def read(self) -> bytes:
        """The next bytes: a block of a file, if it can be to the end of a line; some of a pipe."""
        moment.pass_by()
        if self._raw is not sys.stdin.buffer:
            more = 0
            if self._file is self._raw and hasattr(os, "pread"):  # spares a copy of the block
                ahead = os.pread(self._raw.fileno(), LOOK_AHEAD, self._raw.tell() + BLOCK_BYTES)
                more = ahead.find(b"\n") + 1
            return bytes(self._file.read(BLOCK_BYTES + more))
        moment.waiting = True
        try:
            return sys.stdin.buffer.read1(BLOCK_BYTES)
        finally:
            moment.waiting = False

    def close(self) -> None:
        """Let go of the file."""
        if self._raw is not sys.stdin.buffer:
            self._file.close()
            self._raw.close()


def blocks(path: str, *, delimiter: str = "") -> Iterator[Block]:
    """Whole lines, about BLOCK_BYTES at a time; of CSV, which has a delimiter, whole records."""
    text = Text(path)
    try:
        yield from _cut(path, text, delimiter)
    except (OSError, EOFError, zlib.error) as error:
        if not path.lower().endswith(PACKED):
            raise
        raise FileError(f"{path}: damaged or cut short ({error}); copy it anew") from None
    finally:
        text.close()


def _cut(path: str, text: Text, delimiter: str) -> Iterator[Block]:
    rest, line = b"", 1
    beginning = True
    while got := text.read():
        if beginning:
            while len(got) < len(UTF8_MARK) and (more := text.read()):
                got += more
            beginning, got = False, got.removeprefix(UTF8_MARK)
        cut, odd = got.rfind(b"\n") + 1, False
        if delimiter and (QUOTE in got or QUOTE in rest):
            rest, got = b"", rest + got
            cut, odd = end_of_records(got, delimiter)
        if cut == 0:
            rest += got
            if len(rest) <= LONGEST_LINE:
                continue
            rest, got = b"", rest
            cut, odd = got.find(b"\n") + 1, True  # of CSV: a line whose quote is not closed
            if cut == 0 or not delimiter:
                raise FileError(
                    f"{path}, line {line}: longer than {LONGEST_LINE} bytes; is this a text file?"
                )
        content = got if cut == len(got) and not rest else rest + got[:cut]
        rest = got[cut:]
        yield Block(content, line, text.share, odd)
        line += content.count(b"\n")
    if rest:
        yield Block(rest, line, 1.0, bool(delimiter) and not well_quoted(rest, delimiter))


def end_of_records(content: bytes, delimiter: str) -> tuple[int, bool]:
    r"""Where the last whole record ends, 0 if none does; and whether a quote is misplaced.

    >>> end_of_records(b'a,"b"\nc,"d\n', ","), end_of_records(b'5" disk\n', ",")
    ((6, False), (8, True))
    """
    cut = content.rfind(b"\n") + 1
    open_quote = content.count(QUOTE, 0, cut) % 2
    while open_quote and cut:  # the last quote is open: go back to the line that it stands on
        before = content.rfind(b"\n", 0, content.rfind(QUOTE, 0, cut)) + 1
        open_quote ^= content.count(QUOTE, before, cut) % 2
        cut = before
    if well_quoted(content[: cut or None], delimiter):
        return cut, False
    lines = content.split(b"\n")[:-1]
    at = end = 0
    while at < len(lines):
        used, _ = record(lines, at, delimiter)
        may_be_closed = lines[at].count(QUOTE) % 2 and at + MOST_LINES >= len(lines)
        if used == 0 and may_be_closed:
            break
        end += sum(map(len, lines[at : at + (used or 1)])) + (used or 1)
        at += used or 1
    return end, True


def record(lines: list[bytes], at: int, delimiter: str) -> tuple[int, list[str]]:
    """How many lines the record has that begins on a line, and its cells; 0 if it does not end."""
    n_most = MOST_LINES if lines[at].count(QUOTE) % 2 else 1
    texts = (line.decode(errors="surrogateescape") + "\n" for line in lines[at : at + n_most])
    reader = csv.reader(texts, delimiter=delimiter, strict=True)
    try:
        cells = next(reader)
    except csv.Error:
        return 0, []
    return reader.line_num, cells


def well_quoted(content: bytes, delimiter: str) -> bool:
    r"""Whether every quote begins or ends a cell, or is doubled within quotes.

    >>> well_quoted(b'1,"a ""b"" c",""\n', ","), well_quoted(b'5" disk,"a"', ",")
    (True, False)
    """
    letters = np.frombuffer(content, dtype=np.uint8)
    quotes = np.flatnonzero(letters == ord(QUOTE))
    if not quotes.size:
        return True
    around = np.concatenate([[ord("\n")], letters, [ord("\n")]])
    ends = np.frombuffer(delimiter.encode() + b'\n\r"', dtype=np.uint8)
    before, after = around[quotes[::2]], around[quotes[1::2] + 2]
    return bool(quotes.size % 2 == 0 and np.isin(before, ends).all() and np.isin(after, ends).all())
