"""Finding files, their formats, and their readers."""

import codecs
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from glob import escape, glob
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from ordspan.labels.forms import number_as_text
from ordspan.tables import FORMATS
from ordspan.tables.rows import FileError
from ordspan.tables.text import STDIN, ending_of
from ordspan.wording import check_choice, closest, hint

SAMPLE_BYTES, N_SAMPLES = 1 << 12, 32
LONGEST_HEADER = 1 << 16
HEADER_ROW = hint("header_row=", "--header-row N")
UNSURE = (".txt", ".xlsx")  # endings that people give to CSV files too
FORMAT_OF = {ending: name for name, (_, *endings) in FORMATS.items() for ending in endings}


@dataclass(frozen=True)
class FileOptions:
    """How to open a file.

    Parameters
    ----------
    format : str, optional
        "csv", "jsonl", "parquet", "arrow", "xlsx", "sav", "dta" or "svmlight"; by default, it
        follows from the ending of the name.
    delimiter : str, optional
        Field separator of CSV files; by default, detected.
    zero_based : bool, optional
        Whether the indices of svmlight files start at 0; by default, they do if 0 occurs.
    n_features : int
        Number of features of svmlight files; 0 if it is not known yet.
    encoding : str, optional
        Encoding of text files; by default UTF-8, or UTF-16 with a byte-order mark.
    decimal : {".", ","}, optional
        Decimal sign of text files; by default, found for each file.
    na : sequence
        Cells that mean no answer, in every column (99) or in one ("income:99").
    sheet : str, optional
        The sheet of an Excel workbook; by default, the only one.
    header_row : int, optional
        The row of an Excel sheet or the line of a CSV file that names the columns; by default,
        found in a sheet, and the first line of a CSV file.
    """

    format: str | None = None
    delimiter: str | None = None
    zero_based: bool | None = None
    n_features: int = 0
    encoding: str | None = None
    decimal: str | None = None
    na: tuple[str, ...] = ()
    sheet: str | None = None
    header_row: int | None = None

    def __post_init__(self) -> None:
        codes = [self.na] if isinstance(self.na, str | int | float) else self.na
        delimiter = "\t" if self.delimiter == r"\t" else self.delimiter
        vars(self).update(na=tuple(map(number_as_text, codes)), delimiter=delimiter)
        check_choice("format", self.format or "csv", FORMATS)
        check_choice("decimal sign", self.decimal or ".", (".", ","))
        if self.delimiter is not None and not re.fullmatch(r"[\0-\x7f]", self.delimiter):
            raise ValueError(f"the delimiter must be one ASCII character, got {self.delimiter!r}")
        try:
            "a".encode(self.encoding or "utf-8")
        except (LookupError, UnicodeError):
            raise ValueError(
                f"unknown encoding {self.encoding!r}; utf-8, utf-16 and cp1252 are common"
            ) from None


def expand(paths: Iterable[str | Path]) -> list[str]:
    """Files in order, which exist; a folder or a pattern expands to its files of known formats."""
    found: list[str] = []
    for path in map(str, paths):
        is_folder = path != STDIN and Path(path).is_dir()
        if not is_folder and (Path(path).exists() or not set(path) & set("*?[")):
            found.append(path)
            continue
        among = map(Path, glob(str(Path(escape(path), "*")) if is_folder else path, recursive=True))
        files = [str(file) for file in among if file.is_file() and file.name[0] not in "._~"]
        known = [file for file in sorted(files) if ending_of(file) in FORMAT_OF]
        if not known:
            raise FileError(f"{path}: no files that end in {', '.join(FORMAT_OF)}")
        found += known
    if not found:
        raise FileError("no files given; name at least one")
    if STDIN in found and len(found) > 1:
        raise FileError("standard input and other pipes cannot be mixed with files; give one alone")
    twice = next((p for p, n in Counter(map(os.path.abspath, found)).items() if n > 1), None)
    if twice is not None:
        raise FileError(f"{twice} is given twice; give each file once")
    sizes_of(found)
    return found


def sizes_of(files: Sequence[str]) -> list[int]:
    """Sizes of files in bytes, 0 for standard input; raises if one is missing."""
    missing = next((path for path in files if path != STDIN and not Path(path).is_file()), None)
    if missing is not None:
        raise FileError(f"{missing}: no such file")
    return [0 if path == STDIN else Path(path).stat().st_size for path in files]


class Identity(NamedTuple):
    """What identifies a file; a change of its content almost surely changes one of these."""

    name: str
    time: int  # last modification, in nanoseconds
    digest: str  # of its size, and of samples of its content


def identity(path: str) -> Identity:
    """The identity of a file, with a digest of its size and of samples spread over it."""
    status = Path(path).stat()
    digest = blake2b(b"%d" % status.st_size, digest_size=16)
    with open(path, "rb") as file:
        last = max(0, status.st_size - SAMPLE_BYTES)
        for part in range(N_SAMPLES + 1):
            file.seek(last * part // N_SAMPLES)
            digest.update(file.read(SAMPLE_BYTES))
    return Identity(path, status.st_mtime_ns, digest.hexdigest())


def format_of(path: str, options: FileOptions) -> str:
    """The format that was given, or that follows from the ending of the name."""
    if options.format:
        return options.format
    if path.lower().endswith(UNSURE) and is_csv(path):
        return "csv"
    ending = ending_of(path)
    if ending not in FORMAT_OF:
        raise FileError(
            f"{path}: unknown ending {ending!r}. Files that end in {', '.join(FORMAT_OF)} can be "
            "read; for other names give " + hint("format=", f"--format {'|'.join(FORMATS)}")
        )
    return FORMAT_OF[ending]


def is_csv(path: str) -> bool:
    """Whether a file holds CSV: its first line is text with delimiters, and no svmlight row."""
    with suppress(OSError), open(path, "rb") as file:
        line = file.readline(LONGEST_HEADER).partition(b"#")[0]
        foreign = b"\0" in line or re.search(rb"\s(qid|[0-9]+):", line)
        return not foreign and any(delimiter in line for delimiter in b",;\t|")
    return False


def is_utf8(path: str) -> bool:
    """Whether a file begins with letters in UTF-8 that are not ASCII, or marked as UTF-16."""
    with suppress(OSError, UnicodeDecodeError), open(path, "rb") as file:
        head = file.read(LONGEST_HEADER)
        marked = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        return marked or not codecs.getincrementaldecoder("utf-8")().decode(head).isascii()
    return False


def is_svmlight(path: str, options: FileOptions) -> bool:
    """Whether a file has svmlight rows, whose label and query have fixed places."""
    return path != STDIN and format_of(path, options) == "svmlight"


def open_file(path: str, options: FileOptions, pipe: Any = None) -> Any:
    """The reader of a file; imports the libraries of its format only.

    A ``pipe``, open in binary mode, is read instead of standard input.
    """
    pipe = (pipe or sys.stdin.buffer) if path == STDIN else None
    if pipe is not None and options.format is None:  # a peek leaves the bytes for the reader
        first = pipe.peek(1).removeprefix(codecs.BOM_UTF8).lstrip()[:2]
        is_json = first[:1] == b"{" or first in (b"[{", b"[\n")
        options = replace(options, format="jsonl" if is_json else "csv")
    name = format_of(path, options)
    if pipe is not None and name not in ("csv", "jsonl"):
        raise FileError(f"standard input takes csv or jsonl, not {name}; give a file")
    from ordspan.tables import formats

    return getattr(formats, FORMATS[name][0])(path, options, pipe)


def check_columns(path: str, there: Iterable[str], wanted: Iterable[str], why: str = "") -> None:
    """Raise if a file lacks a wanted column; all such columns are named, and what is meant.

    Two columns of one name are refused too.

    >>> check_columns("a.csv", ["age", "income"], ["incme"])
    Traceback (most recent call last):
    ...
    ordspan.tables.rows.FileError: a.csv: no column 'incme'; the columns are age, income; did you \
mean 'income'?
    """
    counts = Counter(there)
    if twice := [name for name, count in counts.items() if count > 1]:
        raise FileError(f"{path}: more than one column is named {twice[0]!r}; rename one of them")
    there, missing = list(counts), [name for name in wanted if name not in counts]
    if not missing:
        return
    close = next(filter(None, (closest(name, there) for name in missing)), "")
    end = f"; did you mean {close!r}?" if close else ""
    if not close and any(re.fullmatch(r"column \d+", name) for name in there):
        end = f"; if another row holds the names of the columns, give {HEADER_ROW}"
    if len(there) == 1 and " " in there[0].strip():
        end = f"; if a title stands above the names of the columns, give {HEADER_ROW}; if fields "
        end += "are separated by spaces, " + hint("delimiter=' '", "--delimiter ' '")
    columns = ", ".join(there[:20]) + ", ..." * (len(there) > 20)
    what = f"no column{'s' * (len(missing) > 1)} {', '.join(map(repr, missing))}"
    raise FileError(f"{path}: {what}{why}; the columns are {columns}{end}")
