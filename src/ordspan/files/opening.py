"""Which files are meant, what format each has, and its reader."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from glob import glob
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from ordspan.files.batch import FileError
from ordspan.files.text import STDIN, UTF8_MARK, plain_name
from ordspan.wording import by, either, option

FORMATS = {
    "csv": (".csv", ".tsv"),
    "jsonl": (".jsonl", ".ndjson"),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "xlsx": (".xlsx",),
    "svmlight": (".txt", ".svm", ".svmlight", ".libsvm", ".letor"),
}
SAMPLE_BYTES, N_SAMPLES = 1 << 12, 32
ENDINGS = tuple(end for ends in FORMATS.values() for end in ends)


@dataclass(frozen=True)
class FileOptions:
    """How to open a file.

    Parameters
    ----------
    format : str, optional
        "csv", "jsonl", "parquet", "arrow", "xlsx" or "svmlight"; left out, the ending of the name
        decides.
    delimiter : str, optional
        What separates the fields of a CSV file; left out, it is found by a look at the file.
    zero_based : bool, optional
        Whether the indices of svmlight files begin at 0; left out, they do if 0 occurs.
    n_features : int
        Number of features of svmlight files; 0 where it is not known yet.
    encoding : str, optional
        Of texts; left out, it is found by a look at the file.
    decimal : {".", ","}, optional
        Decimal sign of numbers in texts; left out, it is found by a look at the columns.
    """

    format: str | None = None
    delimiter: str | None = None
    zero_based: bool | None = None
    n_features: int = 0
    encoding: str | None = None
    decimal: str | None = None

    def __post_init__(self) -> None:
        if self.format is not None and self.format not in FORMATS:
            raise ValueError(f"unknown format {self.format!r}; choose from {', '.join(FORMATS)}")
        if self.delimiter is not None and (
            len(self.delimiter) != 1 or not self.delimiter.isascii()
        ):
            raise ValueError(f"the delimiter must be one ASCII character, got {self.delimiter!r}")
        if self.decimal not in (None, ".", ","):
            raise ValueError(f"the decimal sign must be . or , but is {self.decimal!r}")
        if self.encoding is not None:
            try:
                codecs.getincrementaldecoder(self.encoding)
                b"".decode(self.encoding)  # some codecs, such as rot13, do not read texts
            except (LookupError, UnicodeError):
                raise ValueError(
                    f"unknown encoding {self.encoding!r}; utf-8, utf-16 and cp1252 are common"
                ) from None


def expand(paths: Iterable[str | Path]) -> list[str]:
    """Files in order; a folder or a pattern stands for the files of it whose format is known."""
    found: list[str] = []
    for path in map(str, paths):
        if path != STDIN and Path(path).is_dir():
            found += _of_known_format(path, Path(path).iterdir())
        elif set(path) & set("*?[") and not Path(path).exists():
            found += _of_known_format(path, map(Path, glob(path, recursive=True)))
        else:
            found.append(path)
    if not found:
        raise FileError("no file was named")
    if STDIN in found and len(found) > 1:
        raise FileError("standard input cannot be mixed with files")
    return found


def _of_known_format(where: str, paths: Iterable[Path]) -> list[str]:
    shown = sorted(str(path) for path in paths if path.is_file() and path.name[0] not in "._")
    known = [path for path in shown if plain_name(path).lower().endswith(ENDINGS)]
    if not known:
        raise FileError(f"{where}: no files with an ending of {', '.join(ENDINGS)} in it")
    return known


def sizes_of(files: Sequence[str]) -> list[int]:
    """Bytes of every file, 0 for standard input; a missing one is refused."""
    missing = next((path for path in files if path != STDIN and not Path(path).is_file()), None)
    if missing is not None:
        raise FileError(f"{missing}: no such file")
    return [0 if path == STDIN else Path(path).stat().st_size for path in files]


class Identity(NamedTuple):
    """By which a file is known again: another content shows in one of these, but for rare luck."""

    name: str
    size: int
    time: int  # of its last modification, in nanoseconds
    digest: str


def identity(path: str) -> Identity:
    """What tells a file from one that was changed in place: also samples spread over it."""
    told = Path(path).stat()
    digest = blake2b(digest_size=16)
    with open(path, "rb") as file:
        last = max(0, told.st_size - SAMPLE_BYTES)
        for part in range(N_SAMPLES + 1):
            file.seek(last * part // N_SAMPLES)
            digest.update(file.read(SAMPLE_BYTES))
    return Identity(path, told.st_size, told.st_mtime_ns, digest.hexdigest())


def format_of(path: str, options: FileOptions) -> str:
    """The format that was told, or that the name's ending tells."""
    if options.format is not None:
        return options.format
    if path == STDIN:
        return _format_of_stdin()
    ending = Path(plain_name(path)).suffix.lower()
    for name, endings in FORMATS.items():
        if ending in endings:
            return name
    raise FileError(
        f"{path}: the ending {ending!r} does not tell the format. Files ending with "
        f"{', '.join(ENDINGS)} can be read"
        + either(by("for another name give", option(f"--format {'|'.join(FORMATS)}", "format=")))
    )


def _format_of_stdin() -> str:
    """JSON lines begin with a brace; a peek leaves the bytes for the reader."""
    standard_input: Any = sys.stdin.buffer
    first = standard_input.peek(1).removeprefix(UTF8_MARK).lstrip()[:2]
    if first in (b"[{", b"[\n"):
        raise FileError("standard input is a JSON array; give one object a line instead")
    return "jsonl" if first[:1] == b"{" else "csv"


def is_svmlight(path: str, options: FileOptions) -> bool:
    """Whether a file has svmlight rows, whose label and query stand at known places."""
    return path != STDIN and format_of(path, options) == "svmlight"


def open_file(path: str, options: FileOptions) -> Any:
    """The reader of a file; each format's libraries are imported only for it."""
    name = format_of(path, options)
    if path == STDIN and name not in ("csv", "jsonl"):
        raise FileError(f"standard input takes csv or jsonl, not {name}; give a file")
    if name == "svmlight":
        from ordspan.files.svmlight import SvmlightFile

        zero_based = bool(options.zero_based)
        return SvmlightFile(path, n_features=options.n_features, zero_based=zero_based)
    if name in ("parquet", "arrow"):
        from ordspan.files.arrow_file import ArrowFile, ParquetFile

        return (ParquetFile if name == "parquet" else ArrowFile)(path)
    if name == "jsonl":
        from ordspan.files.json_file import JsonFile

        return JsonFile(path, options.encoding)
    from ordspan.files.csv_file import CsvFile, ExcelFile

    if name == "xlsx":
        return ExcelFile(path)
    return CsvFile(path, options.delimiter, options.encoding)


def check_columns(path: str, there: Iterable[str], wanted: Iterable[str]) -> None:
    """Refuse a file in which a wanted column is missing."""
    there = list(there)
    for name in wanted:
        if name not in there:
            raise FileError(f"{path}: no column {name!r}; {describe_columns(there)}")


def describe_columns(there: Sequence[str]) -> str:
    """The columns of a file, and what to try where they look like one long name."""
    told = "there are " + ", ".join(there[:20]) + (", ..." if len(there) > 20 else "")
    if len(there) > 1 or " " not in there[0].strip():
        return told
    spaces = option("--delimiter ' '", "delimiter=' '")
    return told + either(by("are fields separated by spaces? Give", spaces))
