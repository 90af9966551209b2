"""Text of any size as blocks of whole lines: plain, gzip, zstd or a pipe, as UTF-8."""

import codecs
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from ordspan.tables.rows import FileError, damage_reported
from ordspan.wording import hint

Block = tuple[bytes, int, float]
"""Whole lines of a text, where they begin in it as UTF-8, and the share of the file read."""
T = TypeVar("T")
S = TypeVar("S")

BLOCK_BYTES = 1 << 22
LONGEST_LINE = 1 << 26
N_SPANS = 32  # places of a large file that a sample takes rows from
STDIN = "-"
PACKED = {".gz": "gzip", ".zst": "zstd"}
THREADS = 2


def ending_of(path: str) -> str:
    """The ending of a name in lower case, before that of its compression.

    >>> ending_of("a.CSV"), ending_of("a.b.jsonl.gz")
    ('.csv', '.jsonl')
    """
    name = Path(path.lower())
    return Path(name.stem).suffix if name.suffix in PACKED else name.suffix


class Text:
    """The bytes of a file or of a pipe as UTF-8, decompressed and transcoded.

    Parameters
    ----------
    path : str
        The file, or "-" for standard input.
    encoding : str, optional
        By default UTF-8, or UTF-16 if there is a byte-order mark.
    quoted : bool
        Whether lines may go on within double quotes, as in CSV.
    pipe : binary file, optional
        What to read if the path is "-".
    """

    def __init__(
        self, path: str, encoding: str | None = None, *, quoted: bool = False, pipe: Any = None
    ) -> None:
        self.path, self._quoted = path, quoted
        packing = PACKED.get(Path(path.lower()).suffix)
        errors = (OSError,) if packing else ()
        self._damage_reported = partial(damage_reported, path, "damaged or truncated", *errors)
        with self._damage_reported():
            self._raw: Any = pipe if path == STDIN else open(path, "rb")  # noqa: SIM115
            self._file: Any = self._raw
            if packing:
                import pyarrow as pa

                self._file = pa.CompressedInputStream(pa.PythonFile(self._raw), packing)
            # the next bytes: a block of a file; of a pipe, what has arrived
            read = self._file.read if path != STDIN else self._file.read1
            self._read = partial(read, BLOCK_BYTES)
            head = self._read()
            while path == STDIN and b"\n" not in head and (more := self._read()):
                head += more
        marked = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        self.encoding = encoding or ("utf-16" if marked else "utf-8")
        self._decoder = None
        if codecs.lookup(self.encoding).name != "utf-8":
            self._decoder = codecs.getincrementaldecoder(self.encoding)("strict")
        self._begin = len(codecs.BOM_UTF8) if head.startswith(codecs.BOM_UTF8) else 0
        self.seekable = self._file is self._raw and path != STDIN and self._decoder is None
        self.head = self._decoded(head[self._begin :])
        if b"\0" in self.head[:4096]:
            raise FileError(
                f"{self.path}: contains null bytes, so it is not text but perhaps another format "
                "under a wrong name, or from standard input, which takes csv or jsonl, or UTF-16 "
                "without a byte-order mark; give the file under its own name, or "
                + hint("encoding='utf-16-le'", "--encoding utf-16-le")
            )
        if b"\r" in self.head and b"\n" not in self.head:
            raise FileError(
                f"{self.path}: its lines end with carriage returns, as on an old Mac; save it "
                "with the line ends of Windows or Unix"
            )

    def _decoded(self, got: bytes) -> bytes:
        if self._decoder is None:
            return got
        with damage_reported(self.path, f"the text is not {self.encoding}", UnicodeError):
            return self._decoder.decode(got, final=not got).encode()

    def first_lines(self, n_lines: int) -> bytes:
        """Up to ``n_lines`` lines and more, which can be read again; may wait for a pipe."""
        more = True
        with self._damage_reported():
            while more and self.head.count(b"\n") < n_lines:
                more = bool(got := self._read())
                self.head += self._decoded(got)
        return self.head[: end_of_lines(self.head, self._quoted)] if more else self.head

    def blocks(self, start: int = 0) -> Iterator[Block]:
        """Whole lines from a byte on, about BLOCK_BYTES at a time; they can be read once."""
        size = 0 if self.path == STDIN else Path(self.path).stat().st_size
        rest, self.head, skip, at, more = self.head, b"", start, start, True
        if self.seekable and start:
            self._raw.seek(self._begin + start)
            rest, skip = b"", 0
        with self._damage_reported():
            while more:
                rest, skip = rest[skip:], max(0, skip - len(rest))
                cut = end_of_lines(rest, self._quoted)
                if not cut and len(rest) > LONGEST_LINE:
                    raise FileError(
                        f"{self.path}: a line of more than {LONGEST_LINE >> 20} MB begins with "
                        f"{rest[:60].decode(errors='replace')!r}; is a quote not closed there, or "
                        "is this not a text file?"
                    )
                if cut:
                    yield rest[:cut], at, self._raw.tell() / size if size else 0.0
                    rest, at = rest[cut:], at + cut
                more = bool(got := self._read())
                rest += self._decoded(got)
        if rest:
            yield rest, at, 1.0

    def sample(self, size: int, n_lines: int = 1) -> tuple[list[bytes], bool]:
        """About ``size`` bytes of lines spread over a file; whether these are all.

        Of a pipe, its first ``n_lines`` lines, which can be read again.
        If cells contain line breaks, a piece of a large file may begin inside one.
        """
        if self.path == STDIN:
            return [self.first_lines(n_lines)], False
        total = Path(self.path).stat().st_size - self._begin
        kept: list[bytes] = []
        if self.seekable and total > size:
            for number in range(N_SPANS):
                self._raw.seek(self._begin + total * number // N_SPANS)
                if number:  # perhaps within a line
                    self._raw.readline(LONGEST_LINE)
                kept.append(self._raw.read(size // N_SPANS) + self._raw.readline(LONGEST_LINE))
            return kept, False
        each = BLOCK_BYTES
        for content, _, _ in self.blocks():
            kept.append(content if each == BLOCK_BYTES else first_lines(content, each))
            if sum(map(len, kept)) > size:
                each //= 2
                kept = [first_lines(content, each) for content in kept]
        return kept, each == BLOCK_BYTES

    def __del__(self) -> None:
        """Close the file."""
        if self.path != STDIN and hasattr(self, "_raw"):
            self._raw.close()


def end_of_lines(content: bytes, quoted: bool = False) -> int:
    r"""Where the last whole line ends, 0 if none does; quoted line ends do not count.

    >>> end_of_lines(b'a,"b"\nc,"d\n', quoted=True), end_of_lines(b'a,"b"\nc,"d\n')
    (6, 11)
    """
    cut = content.rfind(b"\n") + 1
    open_quote = quoted and b'"' in content and content.count(b'"', 0, cut) % 2
    while open_quote and cut:  # the last quote is open: go back to its line
        before = content.rfind(b"\n", 0, content.rfind(b'"', 0, cut)) + 1
        open_quote ^= content.count(b'"', before, cut) % 2
        cut = before
    return cut


def first_lines(content: bytes, size: int) -> bytes:
    """The first whole lines, about ``size`` bytes of them."""
    return content if len(content) <= size else content[: content.find(b"\n", size) + 1 or None]


def parallel_map(make: Callable[[T], S], items: Iterator[T], threads: int = THREADS) -> Iterator[S]:
    """`map` over the items in order, several at a time in other threads.

    >>> list(parallel_map(str.upper, iter("ab")))
    ['A', 'B']
    """
    coming: deque[Future[S]] = deque()
    pool = ThreadPoolExecutor(threads)
    try:
        for item in items:
            coming.append(pool.submit(make, item))
            if len(coming) > threads:
                yield coming.popleft().result()
        while coming:
            yield coming.popleft().result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # may run in a garbage collection
