"""Text of any size as blocks of whole lines: plain, gzip, zstd or standard input."""

from __future__ import annotations

import codecs
import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ordspan.tables.batch import FileError
from ordspan.tables.lines import LONGEST_LINE, QUOTE, TextBlock, end_of_records, well_quoted
from ordspan.wording import hint

BLOCK_BYTES = 1 << 23
N_SPANS = 32
"""Places of a large file that a preview takes rows from."""
PART_BYTES = 1 << 20
"""Size of the parts that are learned in random order: small, so that many are mixed."""
STDIN = "-"
UTF8_MARK = b"\xef\xbb\xbf"
MARKS = {
    UTF8_MARK: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Byte-order marks, which give the encoding."""
MAGIC = {
    b"PAR1": "a Parquet file (.parquet)",
    b"ARROW1": "an Arrow file (.arrow)",
    b"\x1f\x8b": "compressed by gzip (.gz)",
    b"\x28\xb5\x2f\xfd": "compressed by zstd (.zst)",
    b"PK\x03\x04": "an Excel workbook (.xlsx), or another zip file",
}
"""First bytes of files that are sometimes misnamed as text files."""
LONGEST_MARK = max(map(len, MARKS))
WIDEST = ("utf-32-le", "utf-32-be")
WESTERN = "cp1252"
"""Windows-1252, a superset of printable Latin-1: for text without any valid UTF-8 character."""
SAVE_AS_UTF8 = "save it as UTF-8"
UTF16 = hint("encoding='utf-16-le'", "--encoding utf-16-le")
SAMPLE_BYTES = 1 << 12
FEW_NULLS = 4
PACKED = (".gz", ".zst")
LOOK_AHEAD = 1 << 15


def plain_name(path: str) -> str:
    """The name without the ending of its compression.

    >>> plain_name("a.csv.gz")
    'a.csv'
    """
    return path[: -len(Path(path).suffix)] if path.lower().endswith(PACKED) else path


class Part(NamedTuple):
    """Some whole records of a plain text, from byte ``begin`` to before byte ``end``."""

    begin: int
    end: int
    line: int  # number of its first line; 0 if it is not known


class Text:
    """The bytes of a file or of standard input as UTF-8, decompressed and transcoded.

    Parameters
    ----------
    path : str
        The file, or "-" for standard input.
    encoding : str, optional
        By default, detected by a byte-order mark and the first block.
    part : Part, optional
        Read only this part; for text that is `plain`.
    size : int
        Bytes to read at a time.
    pipe : binary file, optional
        What to read if the path is "-".
    """

    def __init__(
        self,
        path: str,
        encoding: str | None = None,
        part: Part | None = None,
        size: int = 0,
        pipe: Any = None,
    ) -> None:
        self.path, self._size = path, size or BLOCK_BYTES
        self.size, self._end = 0, None if part is None else part.end
        self._is_pipe = path == STDIN
        self._open(pipe)
        if part is not None:
            self._raw.seek(part.begin)
        self._head = self._raw_bytes()
        while 0 < len(self._head) < LONGEST_MARK and (more := self._raw_bytes()):
            self._head += more
        self.begin = 0  # first byte of the text, after a mark
        self.encoding = "utf-8" if part else self._detect_encoding(encoding)
        self._old_mac = part is None and b"\r" in self._head and b"\n" not in self._head
        self._decoder = None
        if self.encoding != "utf-8":
            self._decoder = codecs.getincrementaldecoder(self.encoding)("strict")
        compressed = self._file is not self._raw
        self.plain = not (compressed or self._is_pipe or self._decoder or self._old_mac)

    def _open(self, pipe: Any) -> None:
        if self._is_pipe:
            self._file: Any = pipe
            self._raw: Any = pipe
            return
        if not Path(self.path).is_file():
            raise FileError(f"{self.path}: no such file")
        self.size = Path(self.path).stat().st_size
        self._file = self._raw = open(self.path, "rb", buffering=0)  # noqa: SIM115
        if self.path.lower().endswith(".gz"):
            self._file = gzip.GzipFile(fileobj=self._raw)
        elif self.path.lower().endswith(".zst"):
            import pyarrow as pa

            self._file = pa.CompressedInputStream(pa.PythonFile(self._raw), "zstd")

    def _detect_encoding(self, given: str | None) -> str:
        """The encoding, as given or by the first bytes; skips a byte-order mark."""
        head = self._head
        mark = next((m for m in MARKS if head.startswith(m)), b"")
        found = MARKS.get(mark, "")
        if found in WIDEST:
            raise FileError(f"{self.path}: the text is in {found.upper()}; {SAVE_AS_UTF8}")
        if found == "utf-8" and given in (None, "utf-8"):
            self._head, self.begin = head[len(mark) :], len(mark)
        if given is not None:
            return given
        for magic, what in MAGIC.items():
            if head.startswith(magic):
                raise FileError(f"{self.path}: this is {what}, not text; rename it accordingly")
        sample = head[:SAMPLE_BYTES]
        # a few null bytes are faults of their lines
        if not found and sample.count(0) > max(FEW_NULLS, len(sample) // 100):
            raise FileError(
                f"{self.path}: contains null bytes, so it is not text, or UTF-16 without a "
                f"byte-order mark; {SAVE_AS_UTF8}, or give {UTF16}"
            )
        return found or ("utf-8" if _looks_like_utf8(head, len(head) >= self._size) else WESTERN)

    @property
    def head(self) -> bytes:
        """The first bytes as UTF-8, without consuming them."""
        head = self._head
        if self._decoder is not None:
            head = codecs.getincrementaldecoder(self.encoding)("replace").decode(head).encode()
        return head.replace(b"\r", b"\n") if self._old_mac else head

    @property
    def share(self) -> float:
        """How much of the file has been read; 0 if that is not known."""
        return self._raw.tell() / self.size if self.size else 0.0

    def read(self) -> bytes:
        """The next bytes: a block of a file, if possible up to a line end; less of a pipe."""
        while True:
            got, self._head = self._head or self._raw_bytes(), b""
            text = self._transcoded(got)
            if text or not got:
                return text

    def _transcoded(self, got: bytes) -> bytes:
        if self._decoder is not None:
            try:
                got = self._decoder.decode(got, final=not got).encode()
            except UnicodeError as error:
                raise FileError(
                    f"{self.path}: the text is not {self.encoding} ({error}); {SAVE_AS_UTF8}"
                ) from None
        return got.replace(b"\r", b"\n") if self._old_mac else got

    def _raw_bytes(self) -> bytes:
        if self._is_pipe:
            return bytes(self._raw.read1(self._size))
        more, at = 0, self._raw.tell() if self._file is self._raw else 0
        if self._end is not None:
            return bytes(self._file.read(min(self._size, self._end - at)))
        if self._file is self._raw and hasattr(os, "pread"):  # avoids copying the block
            ahead = os.pread(self._raw.fileno(), LOOK_AHEAD, at + self._size)
            more = ahead.find(b"\n") + 1
        return bytes(self._file.read(self._size + more))

    def close(self) -> None:
        """Close the file."""
        if not self._is_pipe:
            self._file.close()
            self._raw.close()

    def __del__(self) -> None:
        """Close a file that was not read to its end."""
        if not self._is_pipe and hasattr(self, "_raw"):
            self._raw.close()


def _looks_like_utf8(head: bytes, cut: bool = False) -> bool:
    """Whether bytes are UTF-8, perhaps with some damage, and not a single-byte encoding.

    The last character may be ``cut``.

    >>> _looks_like_utf8("Ü".encode()), _looks_like_utf8("Ü".encode("cp1252"))
    (True, False)
    """
    if head.isascii():
        return True
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head, final=not cut)
    except UnicodeDecodeError:
        return not head.decode(errors="ignore").isascii()  # some character is valid
    return True


def text_blocks(
    path: str,
    *,
    delimiter: str = "",
    encoding: str | None = None,
    part: Part | None = None,
    text: Text | None = None,
) -> Iterator[TextBlock]:
    """Whole lines, about BLOCK_BYTES at a time; with a delimiter, whole CSV records.

    ``text`` may be open already; ``part`` limits the blocks to a part of a plain text.
    """
    with _damage_reported(path):
        text = text or Text(path, encoding, part)
        try:
            yield from _cut(path, text, delimiter, 1 if part is None else part.line)
        finally:
            text.close()


@contextmanager
def _damage_reported(path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        if not path.lower().endswith(PACKED):
            raise
        raise FileError(f"{path}: damaged or truncated ({error}); copy it again") from None


def open_text(path: str, encoding: str | None = None, pipe: Any = None) -> Text:
    """A text whose head can be inspected before its blocks are read."""
    with _damage_reported(path):
        return Text(path, encoding, pipe=pipe)


def parts_of(path: str, begin: int, line: int, *, delimiter: str = "", size: int) -> list[Part]:
    """Whole records of a plain text from a byte on, about ``size`` bytes in each part."""
    found: list[Part] = []
    end = Path(path).stat().st_size
    text = Text(path, "utf-8", Part(begin, end, line), size)
    try:
        for block in _cut(path, text, delimiter, line):
            found.append(Part(begin, begin + len(block.content), block.line))
            begin = found[-1].end
    finally:
        text.close()
    return found


def spread_parts(path: str, begin: int, count: int, size: int) -> list[Part]:
    """Lines from places spread evenly over a plain text, without line numbers.

    If cells contain line breaks a part may begin inside one, so this is for previews only.
    """
    total = Path(path).stat().st_size
    found: list[Part] = []
    with open(path, "rb") as file:
        for number in range(count):
            start = begin + (total - begin) * number // count
            file.seek(start)
            if number:
                file.readline(LONGEST_LINE)
            start = file.tell()
            file.seek(min(start + size, total))
            file.readline(LONGEST_LINE)
            if start < file.tell() and (not found or start >= found[-1].end):
                found.append(Part(start, file.tell(), 0))
    return found


def _cut(path: str, text: Text, delimiter: str, line: int = 1) -> Iterator[TextBlock]:
    rest = b""
    while got := text.read():
        cut, odd = got.rfind(b"\n") + 1, False
        if delimiter and (QUOTE in got or QUOTE in rest):
            rest, got = b"", rest + got
            cut, odd = end_of_records(got, delimiter)
        if cut == 0:
            rest += got
            if len(rest) <= LONGEST_LINE:
                continue
            rest, got = b"", rest
            cut, odd = got.find(b"\n") + 1, True  # in CSV: a quote that is not closed
            if cut == 0 or not delimiter:
                raise FileError(
                    f"{path}, line {line}: longer than {LONGEST_LINE} bytes; is this a text file?"
                )
        content = got if cut == len(got) and not rest else rest + got[:cut]
        rest = got[cut:]
        yield TextBlock(content, line, text.share, odd)
        line += content.count(b"\n")
    if rest:
        yield TextBlock(rest, line, 1.0, bool(delimiter) and not well_quoted(rest, delimiter))
