"""Blocks of whole lines, and the CSV records in them."""

from __future__ import annotations

import csv
import re
from typing import NamedTuple

import numpy as np

LONGEST_LINE = 1 << 26
QUOTE = b'"'
MAX_LINES = 10_000
"""A quoted cell with more lines than this is taken for a quote that is not closed."""
FILLED = re.compile(rb"[^\r\n]")
csv.field_size_limit(max(LONGEST_LINE, csv.field_size_limit()))  # 128 kB by default


class TextBlock(NamedTuple):
    """Some whole lines of a text."""

    content: bytes
    line: int  # number of its first line, from 1
    share: float  # of the file that has been read
    odd: bool = False  # whether a quote is misplaced

    @property
    def n_lines(self) -> int:
        """Number of lines; the last may lack its line break."""
        return self.content.count(b"\n") + (not self.content.endswith(b"\n"))

    def is_blank(self) -> bool:
        """Whether there is nothing but line breaks."""
        return FILLED.search(self.content) is None

    def numbered_lines(self) -> list[tuple[int, bytes]]:
        """The lines that are not blank, with their numbers.

        >>> TextBlock(b"a\\n\\nb\\n", line=5, share=1.0).numbered_lines()
        [(5, b'a'), (7, b'b')]
        """
        lines = enumerate(self.content.split(b"\n"), self.line)
        return [(number, text) for number, line in lines if (text := line.rstrip(b"\r"))]


def end_of_records(content: bytes, delimiter: str) -> tuple[int, bool]:
    r"""End of the last whole record, 0 if there is none; and whether a quote is misplaced.

    >>> end_of_records(b'a,"b"\nc,"d\n', ","), end_of_records(b'5" disk\n', ",")
    ((6, False), (8, True))
    """
    cut = content.rfind(b"\n") + 1
    open_quote = content.count(QUOTE, 0, cut) % 2
    while open_quote and cut:  # the last quote is open: go back to its line
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
    """Number of lines and cells of the record that begins at a line; 0 if it does not end."""
    n_most = MAX_LINES if lines[at].count(QUOTE) % 2 else 1
    texts = (line.decode(errors="surrogateescape") + "\n" for line in lines[at : at + n_most])
    reader = csv.reader(texts, delimiter=delimiter, strict=True)
    try:
        cells = next(reader)
    except csv.Error:
        return 0, []
    return reader.line_num, cells


def well_quoted(content: bytes, delimiter: str) -> bool:
    r"""Whether every quote opens or closes a cell, or is doubled within quotes.

    >>> well_quoted(b'1,"a ""b"" c",""\n', ","), well_quoted(b'5" disk,"a"', ",")
    (True, False)
    """
    codes = np.frombuffer(content, dtype=np.uint8)
    quotes = np.flatnonzero(codes == ord(QUOTE))
    if not quotes.size:
        return True
    around = np.concatenate([[ord("\n")], codes, [ord("\n")]])
    ends = np.frombuffer(delimiter.encode() + b'\n\r"', dtype=np.uint8)
    before, after = around[quotes[::2]], around[quotes[1::2] + 2]
    return bool(quotes.size % 2 == 0 and np.isin(before, ends).all() and np.isin(after, ends).all())
