"""Texts of any size as blocks of whole lines: plain, gzip, zstd or standard input."""

from __future__ import annotations

import codecs
import csv
import gzip
import os
import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ordspan.files.batch import FileError
from ordspan.wording import by, either, option

BLOCK_BYTES = 1 << 23
LONGEST_LINE = 1 << 26
N_SPANS = 32
"""Places of a large file that a look takes rows from."""
PART_BYTES = 1 << 20
"""Parts of a file that are learned in random order: small, so that many of them are mixed."""
STDIN = "-"
UTF8_MARK = b"\xef\xbb\xbf"
MARKS = {
    UTF8_MARK: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Byte-order marks, by which a text tells its encoding."""
MAGIC = {
    b"PAR1": "a Parquet file (.parquet)",
    b"ARROW1": "an Arrow file (.arrow)",
    b"\x1f\x8b": "packed by gzip (.gz)",
    b"\x28\xb5\x2f\xfd": "packed by zstd (.zst)",
    b"PK\x03\x04": "an Excel workbook (.xlsx), or another zip file",
}
"""First bytes of files that are sometimes named as texts."""
LONGEST_MARK = max(map(len, MARKS))
WIDEST = ("utf-32-le", "utf-32-be")
WESTERN = "cp1252"
"""Windows-1252, of which Latin-1 is a part: for a text that is not UTF-8 in any letter."""
SAVE_AS_UTF8 = "save it as UTF-8"
UTF16 = "encoding='utf-16-le'"
SAMPLE_BYTES = 1 << 12
FEW_NULLS = 4
PACKED = (".gz", ".zst")
LOOK_AHEAD = 1 << 15
QUOTE = b'"'
MAX_LINES = 10_000
"""A quoted cell that spans more lines than these is taken for a quote that is not closed."""
csv.field_size_limit(max(LONGEST_LINE, csv.field_size_limit()))  # else cells of 128 kB end in error
FILLED = re.compile(rb"[^\r\n]")


class StopHook:
    """Where a walk over files can be ended: between two blocks, and while it waits for a pipe."""

    waiting = False

    def check(self) -> None:
        """Called before every block; whoever wants to end the walk lets it raise."""


stop_hook = StopHook()


class TextBlock(NamedTuple):
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

        >>> TextBlock(b"a\\n\\nb\\n", line=5, share=1.0).numbered_lines()
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


class Part(NamedTuple):
    """Some whole records of a plain text, from one byte to before another."""

    begin: int
    end: int
    line: int  # number of its first line; 0 where it is not known


class Text:
    """The bytes of a file or of standard input as UTF-8: unpacked, other encodings translated.

    Parameters
    ----------
    path : str
        The file, or "-" for standard input.
    encoding : str, optional
        Left out, it is judged by a byte-order mark and by the first block.
    part : Part, optional
        Of a text that is `plain`, only this.
    size : int
        Bytes to read at a time.
    """

    def __init__(
        self,
        path: str,
        encoding: str | None = None,
        part: Part | None = None,
        size: int = 0,
    ) -> None:
        self.path, self._size = path, size or BLOCK_BYTES
        self.size, self._end = 0, None if part is None else part.end
        self._is_pipe = path == STDIN
        self._open()
        if part is not None:
            self._raw.seek(part.begin)
        self._head = self._raw_bytes()
        while 0 < len(self._head) < LONGEST_MARK and (more := self._raw_bytes()):
            self._head += more
        self.begin = 0  # where the text begins, after a mark
        self.encoding = "utf-8" if part else self._judged(encoding)
        self._old_mac = part is None and b"\r" in self._head and b"\n" not in self._head
        self._decoder = None
        if self.encoding != "utf-8":
            self._decoder = codecs.getincrementaldecoder(self.encoding)("strict")
        packed = self._file is not self._raw
        self.plain = not (packed or self._is_pipe or self._decoder or self._old_mac)

    def _open(self) -> None:
        if self._is_pipe:
            self._file: Any = sys.stdin.buffer
            self._raw: Any = sys.stdin.buffer
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

    def _judged(self, told: str | None) -> str:
        """The encoding, as told or by the look of the first bytes; a mark is left out."""
        head = self._head
        mark = next((m for m in MARKS if head.startswith(m)), b"")
        found = MARKS.get(mark, "")
        if found in WIDEST:
            raise FileError(f"{self.path}: the text is in {found.upper()}; {SAVE_AS_UTF8}")
        if found == "utf-8" and told in (None, "utf-8"):
            self._head, self.begin = head[len(mark) :], len(mark)
        if told is not None:
            return told
        for magic, what in MAGIC.items():
            if head.startswith(magic):
                raise FileError(f"{self.path}: this is {what}, not a text; name it accordingly")
        sample = head[:SAMPLE_BYTES]
        # a few are faults of their lines
        if not found and sample.count(0) > max(FEW_NULLS, len(sample) // 100):
            raise FileError(
                f"{self.path}: it contains null bytes, so it is not a text, or UTF-16 without a "
                "byte-order mark"
                + either(SAVE_AS_UTF8, by("give", option("--encoding utf-16-le", UTF16)))
            )
        return found or ("utf-8" if _looks_like_utf8(head, len(head) >= self._size) else WESTERN)

    @property
    def head(self) -> bytes:
        """The first bytes, which are still to be read, as UTF-8."""
        head = self._head
        if self._decoder is not None:
            head = codecs.getincrementaldecoder(self.encoding)("replace").decode(head).encode()
        return head.replace(b"\r", b"\n") if self._old_mac else head

    @property
    def share(self) -> float:
        """How much of the file has been read; 0 where that cannot be known."""
        return self._raw.tell() / self.size if self.size else 0.0

    def read(self) -> bytes:
        """The next bytes: a block of a file, if it can be to the end of a line; some of a pipe."""
        stop_hook.check()
        while True:
            got, self._head = self._head or self._raw_bytes(), b""
            text = self._translated(got)
            if text or not got:
                return text

    def _translated(self, got: bytes) -> bytes:
        if self._decoder is not None:
            try:
                got = self._decoder.decode(got, final=not got).encode()
            except UnicodeError as error:
                raise FileError(
                    f"{self.path}: the text is not in {self.encoding} ({error}); {SAVE_AS_UTF8}"
                ) from None
        return got.replace(b"\r", b"\n") if self._old_mac else got

    def _raw_bytes(self) -> bytes:
        if self._is_pipe:
            stop_hook.waiting = True
            try:
                return bytes(self._raw.read1(self._size))
            finally:
                stop_hook.waiting = False
        more, at = 0, self._raw.tell() if self._file is self._raw else 0
        if self._end is not None:
            return bytes(self._file.read(min(self._size, self._end - at)))
        if self._file is self._raw and hasattr(os, "pread"):  # spares a copy of the block
            ahead = os.pread(self._raw.fileno(), LOOK_AHEAD, at + self._size)
            more = ahead.find(b"\n") + 1
        return bytes(self._file.read(self._size + more))

    def close(self) -> None:
        """Let go of the file."""
        if not self._is_pipe:
            self._file.close()
            self._raw.close()

    def __del__(self) -> None:
        """Let go of a file that was looked at and not read to its end."""
        if not self._is_pipe and hasattr(self, "_raw"):
            self._raw.close()


def _looks_like_utf8(head: bytes, cut: bool = False) -> bool:
    """Whether bytes are UTF-8, perhaps damaged here and there, and not one byte a letter.

    The last letter may be ``cut``.

    >>> _looks_like_utf8("Ü".encode()), _looks_like_utf8("Ü".encode("cp1252"))
    (True, False)
    """
    if head.isascii():
        return True
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head, final=not cut)
    except UnicodeDecodeError:
        return not head.decode(errors="ignore").isascii()  # some letter is right
    return True


def text_blocks(
    path: str,
    *,
    delimiter: str = "",
    encoding: str | None = None,
    part: Part | None = None,
    text: Text | None = None,
) -> Iterator[TextBlock]:
    """Whole lines, about BLOCK_BYTES at a time; of CSV, which has a delimiter, whole records.

    ``text`` may be open already; only a ``part`` of a plain text may be wanted.
    """
    with _damage_told(path):
        text = text or Text(path, encoding, part)
        try:
            yield from _cut(path, text, delimiter, 1 if part is None else part.line)
        finally:
            text.close()


@contextmanager
def _damage_told(path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        if not path.lower().endswith(PACKED):
            raise
        raise FileError(f"{path}: damaged or cut short ({error}); copy it anew") from None


def open_text(path: str, encoding: str | None = None) -> Text:
    """A text whose beginning can be looked at before its blocks are read."""
    with _damage_told(path):
        return Text(path, encoding)


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
    """Lines from places spread evenly over a plain text; no line is known by its number.

    Where cells hold line ends a part may begin inside of one, so this is for a look only.
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
            cut, odd = got.find(b"\n") + 1, True  # of CSV: a line whose quote is not closed
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
        may_be_closed = lines[at].count(QUOTE) % 2 and at + MAX_LINES >= len(lines)
        if used == 0 and may_be_closed:
            break
        end += sum(map(len, lines[at : at + (used or 1)])) + (used or 1)
        at += used or 1
    return end, True


def beginning(block: TextBlock, size: int, delimiter: str) -> TextBlock:
    """The first whole records of a block, about ``size`` bytes of them."""
    if len(block.content) <= size:
        return block
    content = block.content[: block.content.find(b"\n", size) + 1 or None]
    if not delimiter or QUOTE not in content:
        return block._replace(content=content)
    cut, odd = end_of_records(content, delimiter)
    return block._replace(content=content[: cut or None], odd=odd)


def record(lines: list[bytes], at: int, delimiter: str) -> tuple[int, list[str]]:
    """How many lines the record has that begins on a line, and its cells; 0 if it does not end."""
    n_most = MAX_LINES if lines[at].count(QUOTE) % 2 else 1
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
