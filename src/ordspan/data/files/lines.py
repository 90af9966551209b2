"""Texts of any size as blocks of whole lines: plain, gzip, zstd or standard input."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

BLOCK_BYTES = 1 << 22
LONGEST_LINE = 1 << 26
STDIN = "-"
UTF8_MARK = b"\xef\xbb\xbf"
PACKED = (".gz", ".zst")


class Moment:
    """Where a walk over files can be ended: between two blocks, and while it waits for a pipe."""

    waiting = False

    def pass_by(self) -> None:
        """Called before every block; whoever wants to end the walk lets it raise."""


moment = Moment()


class FileError(ValueError):
    """A file that cannot be read: where, why, and the way out."""


class Block(NamedTuple):
    """Some whole lines of a text, and where they stand in it."""

    content: bytes
    start: int  # bytes of the unpacked text before it
    line: int  # number of its first line, from 1
    n_lines: int


def plain_name(path: str) -> str:
    """The name without the ending of its packing.

    >>> plain_name("a.csv.gz")
    'a.csv'
    """
    return next((path.removesuffix(end) for end in PACKED if path.endswith(end)), path)


def open_text(path: str) -> Any:
    """The unpacked bytes of a file or of standard input."""
    if path == STDIN:
        return sys.stdin.buffer
    if not Path(path).is_file():
        raise FileError(f"{path}: no such file")
    if path.endswith(".gz"):
        return gzip.open(path, "rb")
    if path.endswith(".zst"):
        import pyarrow as pa

        # a buffer of its own, because pyarrow takes each read for a call into the file
        return io.BufferedReader(_Raw(pa.input_stream(path, compression="zstd")), 1 << 20)
    return open(path, "rb")


class _Raw(io.RawIOBase):
    """A pyarrow stream with the face of a raw Python file."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        got = self.stream.read(len(buffer))
        buffer[: len(got)] = got
        return len(got)

    def close(self) -> None:
        self.stream.close()
        super().close()


def blocks(path: str, start: int = 0, line: int = 1) -> Iterator[Block]:
    """Whole lines from byte ``start`` on, about BLOCK_BYTES at a time.

    ``line`` is the number of the line that begins at ``start``.
    """
    try:
        with open_text(path) as text:
            _skip(text, start)
            yield from _cut(path, text, start, line)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FileError(f"{path}: damaged or cut short ({error}); copy it anew") from None
    except OSError as error:
        if path.endswith(".zst"):
            raise FileError(f"{path}: damaged or cut short ({error}); copy it anew") from None
        raise


def _skip(text: Any, start: int) -> None:
    """Go to a byte; a packed text is read up to it."""
    if start == 0 or not text.seekable():
        while start > 0 and (got := text.read(min(start, BLOCK_BYTES))):
            start -= len(got)
        return
    text.seek(start)


def _cut(path: str, text: Any, start: int, line: int) -> Iterator[Block]:
    rest = b""
    while got := _read_some(text):
        moment.pass_by()
        if start == 0 and not rest and got.startswith(UTF8_MARK):
            got, start = got[len(UTF8_MARK) :], len(UTF8_MARK)
        cut = got.rfind(b"\n") + 1
        if cut == 0:
            rest += got
            if len(rest) > LONGEST_LINE:
                raise FileError(
                    f"{path}, line {line}: longer than {LONGEST_LINE} bytes; is this a text file?"
                )
            continue
        content = rest + got[:cut]
        rest = got[cut:]
        n_lines = content.count(b"\n")
        yield Block(content, start, line, n_lines)
        start, line = start + len(content), line + n_lines
    if rest:
        yield Block(rest, start, line, 1)


def _read_some(text: Any) -> bytes:
    """The next bytes: a full block of a file, what there is of a pipe."""
    waits = text is sys.stdin.buffer
    moment.waiting = waits
    try:
        some: bytes = (text.read1 if waits else text.read)(BLOCK_BYTES)
    finally:
        moment.waiting = False
    return some


def numbered_lines(block: Block) -> list[tuple[int, bytes]]:
    """The lines of a block that are not blank, with their numbers.

    >>> numbered_lines(Block(b"a\\n\\nb\\n", start=0, line=5, n_lines=3))
    [(5, b'a'), (7, b'b')]
    """
    lines = block.content.split(b"\n")
    return [(block.line + i, text) for i, line in enumerate(lines) if (text := line.rstrip(b"\r"))]
