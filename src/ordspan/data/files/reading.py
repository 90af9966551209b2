"""Files as rows ready to learn from: which files, which columns, which grades, and from where."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from ordspan.core.labels import Ranks
from ordspan.data.files.chunks import NUMBER, TEXT, BadRows, Chunk, Place
from ordspan.data.files.csv_file import CsvFile
from ordspan.data.files.features import Recipe, feature_rows
from ordspan.data.files.grades import Grades, LabelColumns, classes_of, coded
from ordspan.data.files.json_file import JsonFile
from ordspan.data.files.lines import PACKED, STDIN, FileError, plain_name
from ordspan.data.files.parquet_file import ParquetFile
from ordspan.data.files.svmlight_file import GROUP, LABEL, SvmlightFile, survey

FORMATS = {
    "csv": (".csv", ".tsv"),
    "jsonl": (".jsonl", ".ndjson"),
    "parquet": (".parquet", ".pq"),
    "svmlight": (".txt", ".svm", ".svmlight", ".libsvm", ".letor"),
}


@dataclass(frozen=True)
class FileOptions:
    """How to open a file.

    Parameters
    ----------
    format : str, optional
        "csv", "jsonl", "parquet" or "svmlight"; left out, the ending of the name decides.
    delimiter : str
        What separates the fields of a CSV file.
    zero_based : bool
        Whether the indices of an svmlight file begin at 0.
    n_features : int
        Number of features of an svmlight file; 0 where it is not known yet.
    """

    format: str | None = None
    delimiter: str = ","
    zero_based: bool = False
    n_features: int = 0

    def __post_init__(self) -> None:
        if self.format is not None and self.format not in FORMATS:
            raise ValueError(f"unknown format {self.format!r}; choose from {', '.join(FORMATS)}")
        if len(self.delimiter) != 1 or not self.delimiter.isascii():
            raise ValueError(f"the delimiter must be one ASCII character, got {self.delimiter!r}")


class Position(NamedTuple):
    """How far a walk over files has come: this many passes, files, and rows of a chunk are done."""

    walk: int = 0
    file: int = 0
    start: int = 0
    line: int = 1
    used: int = 0


BEGINNING = Position()


def sizes_of(files: Sequence[str]) -> list[int]:
    """Bytes of every file, 0 for standard input; a missing one is refused."""
    missing = next((path for path in files if path != STDIN and not Path(path).is_file()), None)
    if missing is not None:
        raise FileError(f"{missing}: no such file")
    return [0 if path == STDIN else Path(path).stat().st_size for path in files]


def share_read(files: Sequence[str], sizes: Sequence[int], position: Position) -> float | None:
    """How much of the files lies before a position; None where that cannot be known."""
    if any(path == STDIN or path.endswith(PACKED) for path in files):
        return None
    done: float = sum(sizes[: position.file])
    if position.file < len(files):
        done += _bytes_before(files[position.file], sizes[position.file], position.start)
    return done / max(1, sum(sizes))


def _bytes_before(path: str, size: int, start: int) -> float:
    """Bytes of a file before a place, which a Parquet file counts in rows."""
    if not path.endswith(FORMATS["parquet"]):
        return start
    return size * start / max(1, _parquet_rows(path))


@lru_cache
def _parquet_rows(path: str) -> int:
    from pyarrow import parquet

    return int(parquet.read_metadata(path).num_rows)


class Piece(NamedTuple):
    """Rows of one chunk: raw features, ranks, and where they come from."""

    chunk: Chunk
    matrix: Any
    lower: Ranks | None
    upper: Ranks | None
    position: Position  # of its first row
    skipped: int  # bad rows before its chunk

    def rows(self, begin: int, end: int) -> Piece:
        """Some of its rows."""
        if begin == 0 and end >= len(self.chunk):
            return self
        part = slice(begin, end)
        return Piece(
            self.chunk.part(begin, end),
            self.matrix[part],
            None if self.lower is None else self.lower[part],
            None if self.upper is None else self.upper[part],
            self.position._replace(used=self.position.used + begin),
            self.skipped,
        )

    def without(self, faults: dict[int, str], bad: BadRows) -> Piece:
        """The piece without its faulty rows, which ``bad`` meets."""
        if not faults:
            return self
        stays = bad.drop(self.chunk, faults)
        return self._replace(
            chunk=self.chunk.only(stays),
            matrix=self.matrix[stays],
            lower=None if self.lower is None else self.lower[stays],
            upper=None if self.upper is None else self.upper[stays],
        )

    def after(self) -> Position:
        """The position of the row that follows."""
        return self.position._replace(used=self.position.used + len(self.chunk))


def expand(paths: Iterable[str | Path]) -> list[str]:
    """Files in order; a folder stands for the files in it whose format is known."""
    found: list[str] = []
    endings = tuple(end for ends in FORMATS.values() for end in ends)
    for path in map(str, paths):
        if path != STDIN and Path(path).is_dir():
            inside = sorted(str(p) for p in Path(path).iterdir() if p.is_file())
            inside = [p for p in inside if plain_name(p).lower().endswith(endings)]
            if not inside:
                raise FileError(f"{path}: no files with an ending of {', '.join(endings)} in it")
            found += inside
        else:
            found.append(path)
    if not found:
        raise FileError("no file was named")
    if STDIN in found and len(found) > 1:
        raise FileError("standard input cannot be mixed with files")
    return found


def format_of(path: str, options: FileOptions) -> str:
    """The format that was told, or that the name's ending tells."""
    if options.format is not None:
        return options.format
    if path == STDIN:
        return "auto"
    ending = Path(plain_name(path)).suffix.lower()
    for name, endings in FORMATS.items():
        if ending in endings:
            return name
    raise FileError(f"{path}: the ending {ending!r} tells no format; give --format")


def open_file(path: str, options: FileOptions) -> Any:
    """The reader of a file."""
    name = format_of(path, options)
    if name == "auto":
        name = _format_of_stdin()
    if path == STDIN and name not in ("csv", "jsonl"):
        raise FileError(f"standard input takes csv or jsonl, not {name}; give a file")
    if name == "csv":
        return CsvFile(path, options.delimiter)
    if name == "jsonl":
        return JsonFile(path)
    if name == "parquet":
        return ParquetFile(path)
    return SvmlightFile(path, n_features=options.n_features, zero_based=options.zero_based)


def _format_of_stdin() -> str:
    """JSON lines begin with a brace; a peek leaves the bytes for the reader."""
    standard_input: Any = sys.stdin.buffer
    return "jsonl" if standard_input.peek(1)[:1] == b"{" else "csv"


def make_recipe(
    path: str,
    options: FileOptions,
    *,
    taken: Sequence[str] = (),
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    text: Sequence[str] = (),
    hash_bits: int,
    standardise: bool,
) -> tuple[Recipe, Any]:
    """Which columns of a file are features, judged by its beginning; and its reader, to go on.

    Columns in ``taken`` (labels, groups) and ``drop`` are not; those in ``text`` are words.
    """
    reader = open_file(path, options)
    if isinstance(reader, SvmlightFile):
        if features is not None or drop or text:
            raise ValueError(f"{path}: svmlight rows have no named columns to choose from")
        recipe = Recipe((), (), hash_bits, options.n_features, options.zero_based, standardise)
        return recipe, reader
    kinds = reader.kinds()
    check_columns(path, reader.names, [*taken, *(features or ()), *drop, *text])
    outside = {*taken, *drop}
    chosen = [n for n in (features or reader.names) if n not in outside]
    if not chosen:
        raise ValueError(f"{path}: no column is left to learn from")
    for name in chosen:
        if name not in text and kinds[name] not in (NUMBER, TEXT):
            raise ValueError(
                f"{path}: column {name!r} holds neither numbers nor words; leave it out with "
                f"--drop {name}, or take it as words with --text {name}"
            )
    words = tuple(n for n in chosen if n in text or kinds[n] == TEXT)
    numbers = tuple(n for n in chosen if n not in words)
    return Recipe(numbers, words, hash_bits, 0, False, standardise), reader


def check_columns(path: str, there: Iterable[str], wanted: Iterable[str]) -> None:
    """Refuse a file in which a wanted column is missing."""
    there = list(there)
    for name in wanted:
        if name not in there:
            raise FileError(f"{path}: no column {name!r}; {columns_told(there)}")


def columns_told(there: Sequence[str]) -> str:
    """The columns of a file, and what to try where they look like one long name."""
    shown = ", ".join(there[:20]) + (", ..." if len(there) > 20 else "")
    other = next((d for d in ";\t|" if len(there) == 1 and d in there[0]), None)
    hint = "" if other is None else f"; give --delimiter {other!r}?"
    return f"there are {shown}{hint}"


def find_classes(
    files: Sequence[str], options: FileOptions, columns: LabelColumns, bad: BadRows
) -> NDArray[Any]:
    """All grades in the label columns, by one walk over them alone."""
    return classes_of(find_words(files, options, columns, bad))


def find_words(
    files: Sequence[str], options: FileOptions, columns: LabelColumns, bad: BadRows
) -> set[str]:
    """All different words in the label columns."""
    words: set[str] = set()
    for path in files:
        if path == STDIN:
            raise ValueError("standard input can be read only once: give the grades with --order")
        reader = open_file(path, options)
        if isinstance(reader, SvmlightFile):
            words |= survey(path).grades
            continue
        check_columns(path, reader.names, columns.names())
        for chunk in reader.chunks((), columns.names(), Place(), bad):
            for name in columns.names():
                words.update(coded(chunk.table, name)[1])
    return words


def count_features(files: Sequence[str], options: FileOptions) -> FileOptions:
    """The options with the number of features of svmlight files, found by one quick walk."""
    sparse = [path for path in files if path != STDIN and format_of(path, options) == "svmlight"]
    if options.n_features or not sparse:
        return options
    largest = max(survey(path).largest for path in sparse)
    n_features = largest + options.zero_based
    if n_features < 1:
        raise FileError(f"{sparse[0]}: no line has a feature, index:value")
    return replace(options, n_features=n_features)


@dataclass
class RowReader:
    """Walks over files and yields their rows, checked, as a recipe and label columns want them."""

    files: Sequence[str]
    options: FileOptions
    recipe: Recipe
    columns: LabelColumns
    grades: Grades | None
    bad: BadRows
    extra: Sequence[str] = ()  # columns to carry along: groups, and what a user keeps
    first: Any = None  # the reader of the first file, where it is open already

    def pieces(self, begin: Position = BEGINNING) -> Iterator[Piece]:
        """Rows from a position on, to the end of the files."""
        for number in range(begin.file, len(self.files)):
            at = begin if number == begin.file else Position(begin.walk, number)
            yield from self._of_file(number, at)

    def _of_file(self, number: int, at: Position) -> Iterator[Piece]:
        reader = self._open(number)
        used = at.used
        skipped = self.bad.count
        for chunk in reader.chunks(
            self.recipe.numbers, self._texts(reader), Place(at.start, at.line), self.bad
        ):
            position = Position(at.walk, number, chunk.place.start, chunk.place.line)
            piece = self._piece(chunk, position, skipped)
            skipped = self.bad.count
            size = len(piece.chunk)
            if used < size:
                yield piece.rows(used, size)
            used = max(0, used - size)

    def _open(self, number: int) -> Any:
        if number == 0 and self.first is not None:
            reader, self.first = self.first, None
        else:
            reader = open_file(self.files[number], self.options)
        if isinstance(reader, CsvFile | ParquetFile):
            reader.numbers_in_table = not set(self.extra).isdisjoint(self.recipe.numbers)
        wanted = [*self.recipe.numbers, *self._texts(reader)]
        if self.recipe.n_sparse:
            if not isinstance(reader, SvmlightFile):
                raise FileError(f"{reader.path}: svmlight rows are needed here")
        else:
            check_columns(reader.path, reader.names, wanted)
        return reader

    def _texts(self, reader: Any) -> list[str]:
        """Columns besides the numbers; a column may serve twice, as a label and kept."""
        if isinstance(reader, SvmlightFile):
            return [LABEL, GROUP]
        names = [*self.recipe.words, *self.columns.names(), *self.extra]
        return [n for n in dict.fromkeys(names) if n not in self.recipe.numbers]

    def _piece(self, chunk: Chunk, position: Position, skipped: int) -> Piece:
        matrix, faults = feature_rows(self.recipe, chunk)
        lower = upper = None
        if self.grades is not None:
            lower, upper, wrong = self.grades.read(chunk.table, self.columns)
            faults = wrong | faults
        chunk = chunk.without_numbers([*dict.fromkeys([*self.recipe.words, *self.extra])])
        piece = Piece(chunk, matrix, lower, upper, position, skipped)
        return piece.without(faults, self.bad)
